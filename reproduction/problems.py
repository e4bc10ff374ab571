"""The data sets of an experiment: shuffled once, split into folds, scaled by the training part of each fold."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer

from pairloom.data import DATASETS, fetch_dataset, load_dataset
from reproduction.cells import Array

View = Literal["scaled", "unit", "raw"]
"""Scaling of the rows for a system: columns scaled to [-1, 1] on the training part; also rows of norm 1; or none."""

STAND_INS = {"rcv1": "reuters.moneyfx"}
"""The data set that is used if the files of another are missing."""

MANY_COLUMNS = 100
"""With at least this number of columns, dense rows have norm 1 in the view "unit". Otherwise even the smallest step of
the paper's grid, 2^-8, is too large for a linear model."""


@dataclass(frozen=True)
class Shape:
    """The shape of the training part of a fold; known before the files are read."""

    n_rows: int
    n_features: int
    sparse: bool


@dataclass(frozen=True)
class Split:
    """Training rows, in the order of the stream, and test rows; labels are -1 and +1."""

    X: Any
    y: Array
    X_test: Any
    y_test: Array

    @property
    def shape(self) -> Shape:
        """Shape of the training rows."""
        return Shape(self.X.shape[0], self.X.shape[1], not isinstance(self.X, np.ndarray))

    def seen_as(self, view: View) -> "Split":
        """Scale both parts by the training rows."""
        if view == "raw":
            return self
        if self.shape.sparse:
            scaler: Any = Normalizer()
        elif view == "unit" and self.shape.n_features >= MANY_COLUMNS:
            scaler = make_pipeline(MinMaxScaler((-1, 1)), Normalizer())
        else:
            scaler = MinMaxScaler((-1, 1))
        return Split(scaler.fit_transform(self.X), self.y, scaler.transform(self.X_test), self.y_test)

    def first(self, n_rows: int | None, n_test: int | None = None) -> "Split":
        """Return the first rows of both parts."""
        return Split(self.X[:n_rows], self.y[:n_rows], self.X_test[:n_test], self.y_test[:n_test])

    def inner(self, n_folds: int, seed: int) -> Iterator["Split"]:
        """Yield inner folds of the training rows."""
        for train, test in StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(self.X, self.y):
            yield Split(self.X[train], self.y[train], self.X[test], self.y[test])


@dataclass(frozen=True)
class Fold:
    """One of ``n_folds`` folds of a data set, with at most ``test_rows`` test rows."""

    dataset: str
    fold: int
    n_folds: int
    test_rows: int
    seed: int

    @property
    def shape(self) -> Shape:
        """Shape of the training part."""
        return shape_of(self.dataset, self.n_folds)

    def split(self) -> Split:
        """Return the scaled rows, in float32."""
        split = split_of(self.dataset, self.fold, self.n_folds, self.seed).first(None, self.test_rows).seen_as("scaled")
        return Split(split.X.astype(np.float32), split.y, split.X_test.astype(np.float32), split.y_test)


@dataclass(frozen=True)
class Protocol:
    """The parameters that all experiments share: see ``configs/protocol.toml``."""

    seed: int
    folds: int
    selection_folds: int
    selection_rows: int
    slow_selection_rows: int
    most_rows: int
    etas: tuple[float, ...]
    lambdas: tuple[float, ...]
    net_lambdas: tuple[float, ...]
    widths: tuple[float, ...]

    def first_folds(self, dataset: str, n: int, test_rows: int = 1) -> list[Fold]:
        """Return the first ``n`` folds of a data set."""
        return [Fold(dataset, k, self.folds, test_rows, self.seed) for k in range(n)]


def is_available(name: str) -> bool:
    """Return whether all files of a data set are on this machine."""
    try:
        fetch_dataset(name, download=False)
    except FileNotFoundError:
        return False
    return True


def source_of(name: str) -> str:
    """Return the data set to read for ``name``: itself, or its stand-in if only that is available."""
    other = STAND_INS.get(name)
    return other if other and not is_available(name) and is_available(other) else name


def shape_of(name: str, n_folds: int) -> Shape:
    """Return the shape of the training part of a fold, without reading files."""
    source = DATASETS[source_of(name)]
    return Shape(source.n_rows * (n_folds - 1) // n_folds, source.n_features, source.sparse)


@lru_cache(maxsize=1)
def _shuffled(name: str, seed: int) -> tuple[Any, Array]:
    data = load_dataset(source_of(name))
    order = np.random.default_rng(seed).permutation(len(data.y))
    return data.X[order], data.y[order]


def split_of(name: str, fold: int, n_folds: int, seed: int) -> Split:
    """Return one outer fold of a data set. The data set that was read last stays in memory."""
    X, y = _shuffled(name, seed)
    train, test = list(StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(X, y))[fold]
    return Split(X[train], y[train], X[test], y[test])
