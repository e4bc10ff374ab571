"""Mixed columns: what `benchmarks/columns.py` compares."""
