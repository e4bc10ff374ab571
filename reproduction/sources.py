"""Where rows come from: the catalogue of pairloom, or a file of yours in LIBSVM format, CSV or NPZ."""

import bz2
import gzip
import lzma
import os
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_svmlight_file

from pairloom.data import DATASETS, fetch_dataset, load_dataset
from reproduction.cells import Array

STAND_INS = {"rcv1": "reuters.moneyfx"}
"""The data set that is used if the files of another are missing."""

OPENERS: dict[str, Any] = {".xz": lzma.open, ".gz": gzip.open, ".bz2": bz2.open}


class Rows(NamedTuple):
    """All rows of a data set; labels are -1 and +1."""

    X: Any
    y: Array


def title_of(name: str) -> str:
    """Return the name of a data set in results: of a file, its name without endings.

    >>> title_of("usps"), title_of("keel/segment0.csv.xz")
    ('usps', 'segment0')
    """
    return name if name in DATASETS else _stem(name)[0]


def is_available(name: str) -> bool:
    """Return whether all files of a data set of the catalogue are on this machine."""
    try:
        fetch_dataset(name, download=False)
    except FileNotFoundError:
        return False
    return True


def source_of(name: str) -> str:
    """Return the data set to read for ``name``: itself, or its stand-in if only that is available."""
    other = STAND_INS.get(name)
    return other if other and not is_available(name) and is_available(other) else name


def find(name: str) -> Path:
    """Return the path of a file, which may be relative to the folder that PAIRLOOM_DATA names."""
    places = [Path(name), Path(os.environ.get("PAIRLOOM_DATA", "")) / name]
    for place in places:
        if place.is_file():
            return place.resolve()
    raise FileNotFoundError(f"no file {name!r}, nor in the folder that PAIRLOOM_DATA names")


def fetch(name: str) -> None:
    """Raise FileNotFoundError or ImportError unless a data set can be read."""
    if name in DATASETS:
        fetch_dataset(source_of(name))
    else:
        find(name)


def load(name: str) -> Rows:
    """Read a data set. In a file, the rarer label is positive."""
    if name in DATASETS:
        data = load_dataset(source_of(name))
        return Rows(data.X, data.y)
    path = find(name)
    X, labels = READERS.get(_stem(name)[1], _read_libsvm)(path)
    values, counts = np.unique(labels, return_counts=True)
    if len(values) != 2:
        raise ValueError(f"{path}: needs two labels, but has {len(values)}: {', '.join(map(str, values[:5]))}")
    if not np.isfinite(X.data if hasattr(X, "data") else X).all():
        raise ValueError(f"{path}: has missing or infinite values, which the systems do not take")
    return Rows(X, np.where(labels == values[counts.argmin()], 1, -1))


@lru_cache
def shape_of_file(name: str) -> tuple[int, int, bool]:
    """Return rows, columns, and whether rows are sparse; any shape for a file that is not here, which is not run."""
    try:
        X, _ = load(name)
    except FileNotFoundError:
        return 1_000, 10, False
    return X.shape[0], X.shape[1], not isinstance(X, np.ndarray)


def _stem(name: str) -> tuple[str, str]:
    """Return the name of a file without endings, and its ending without that of a compression."""
    path = Path(name)
    path = path.with_suffix("") if path.suffix in OPENERS else path
    return path.stem, path.suffix


def _read_libsvm(path: Path) -> tuple[Any, Array]:
    with OPENERS.get(path.suffix, open)(path, "rb") as file:
        X, labels = load_svmlight_file(file, zero_based="auto")
    return (X.toarray() if X.shape[1] <= 1000 else X), labels


def _read_csv(path: Path) -> tuple[Any, Array]:
    """Read numbers, with the label in the last column and perhaps a line of names."""
    with OPENERS.get(path.suffix, open)(path, "rt", encoding="utf-8") as file:
        cells = np.loadtxt(file, delimiter=",", dtype=str, ndmin=2)
    for first in (0, 1):
        try:
            return cells[first:, :-1].astype(float), cells[first:, -1]
        except ValueError as error:
            reason = error
    raise ValueError(f"{path}: a column is not numeric ({reason}); the label must be the last column")


def _read_npz(path: Path) -> tuple[Any, Array]:
    with np.load(path, allow_pickle=False) as arrays:
        if not {"X", "y"} <= set(arrays):
            raise ValueError(f"{path}: needs the arrays X and y, but has {', '.join(arrays)}")
        return arrays["X"].astype(float), arrays["y"]


READERS = {".csv": _read_csv, ".npz": _read_npz}
"""Readers by ending; all other files are LIBSVM files."""
