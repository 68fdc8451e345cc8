"""What `benchmarks/run_all.py` measures, one file per part."""
