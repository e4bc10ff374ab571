"""Data sets of the paper, read and checked, and synthetic streams."""

from pairloom.data.catalogue import DATASETS
from pairloom.data.datasets import Dataset, fetch_dataset, load_dataset
from pairloom.data.fraud import fraud_like
from pairloom.data.payments import payments
from pairloom.data.synthetic import drift, duplicates, imbalanced, sorted_stream

__all__ = [
    "DATASETS",
    "Dataset",
    "drift",
    "duplicates",
    "fetch_dataset",
    "fraud_like",
    "imbalanced",
    "load_dataset",
    "payments",
    "sorted_stream",
]
