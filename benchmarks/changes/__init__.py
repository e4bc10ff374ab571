"""Streams that change: what `benchmarks/drift.py` compares."""
