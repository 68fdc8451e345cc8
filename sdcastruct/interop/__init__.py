"""Other libraries' interfaces; only the module `eli5` needs its library to be imported."""
