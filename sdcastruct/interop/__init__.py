"""Other libraries' interfaces; none of them is needed to import these modules."""
