"""Small KEEL data sets with rare classes and categories: some for design choices, others to report."""

import csv
import lzma
import os
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.preprocessing import OneHotEncoder

REPORTED = ("abalone9-18", "crx", "flare-F", "mushroom", "segment0", "titanic", "winequality-red-4")
"""Drawn at random before the race was redesigned, from data sets that no earlier choice had used. No rule or default
may be chosen with them."""

CHOSEN_BY = (
    "car-good", "contraceptive", "ecoli3", "haberman", "kddcup-land_vs_satan", "kr-vs-k-zero_vs_eight", "magic",
    "page-blocks0", "phoneme", "poker-8-9_vs_6", "spambase", "vehicle1", "yeast1", "yeast4",
)  # fmt: skip
"""Rules and defaults are chosen on these, and on one half of each larger set."""

HALVES = 15
"""Seed of the shuffle whose first half of a larger data set is for design choices."""

Rows = tuple[pd.DataFrame, np.ndarray]


def read_keel(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return rows in file order, with text one-hot encoded; label 1 is "positive", or the rarest label."""
    with lzma.open(Path(os.environ["PAIRLOOM_DATA"]) / "keel" / f"{name}.csv.xz", "rt") as stream:
        lines = np.array(list(csv.reader(stream)))
    labels, counts = np.unique(lines[:, -1], return_counts=True)
    positive = "positive" if "positive" in labels else labels[counts.argmin()]
    columns = [_numbers(column) for column in lines[:, :-1].T]
    return np.hstack(columns), (lines[:, -1] == positive).astype(int)


def _numbers(column: np.ndarray) -> np.ndarray:
    """Return a numeric column unchanged, or a text column one-hot encoded."""
    try:
        return column.astype(float)[:, None]
    except ValueError:
        return np.asarray(OneHotEncoder(sparse_output=False).fit_transform(column[:, None]))


def read_raw(name: str) -> Rows:
    """Read a KEEL data set with its text columns; label 1 is "positive", or the rarest label."""
    with lzma.open(Path(os.environ["PAIRLOOM_DATA"]) / "keel" / f"{name}.csv.xz", "rt") as stream:
        frame = pd.read_csv(stream, header=None, keep_default_na=False, skipinitialspace=True)
    labels = frame.pop(frame.columns[-1]).astype(str)
    positive = "positive" if (labels == "positive").any() else labels.value_counts().idxmin()
    return frame.rename(columns=lambda k: f"c{k}"), (labels == positive).to_numpy().astype(int)


def half(n_rows: int, *, to_choose: bool) -> np.ndarray:
    """Return the rows of a larger data set for design choices, or the unseen others."""
    order = np.random.default_rng(HALVES).permutation(n_rows)
    return np.sort(order[: n_rows // 2] if to_choose else order[n_rows // 2 :])
