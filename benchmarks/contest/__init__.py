"""The parts of ``benchmarks/accuracy.py``: data sets, contestants, rounds, records, and what is shown of them."""
