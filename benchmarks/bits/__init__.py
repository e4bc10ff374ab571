"""The cases of ``benchmarks/same_bits.py``: models, and the streams that they learn."""
