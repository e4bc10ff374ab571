"""The data sets of an experiment: shuffled once, split into folds, scaled by the training part of each fold."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer

from pairloom.data import DATASETS
from reproduction.cells import Array
from reproduction.sources import Rows, load, shape_of_file, source_of

View = Literal["scaled", "unit", "raw"]
"""Scaling of the rows for a system: columns scaled to [-1, 1] on the training part; also rows of norm 1; or none."""

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

    def in_order(self, number: int) -> "Split":
        """Return the training rows in another order; number 0 is the present one."""
        if number == 0:
            return self
        order = np.random.default_rng(number).permutation(len(self.y))
        return Split(self.X[order], self.y[order], self.X_test, self.y_test)

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
    seeds: int
    selection_folds: int
    selection_rows: int
    slow_selection_rows: int
    most_seconds: float
    etas: tuple[float, ...]
    coarse_etas: tuple[float, ...]
    lambdas: tuple[float, ...]
    widths: tuple[float, ...]
    limits: tuple[tuple[str, int], ...]

    def limit(self, dataset: str) -> int | None:
        """Return the number of rows to draw from a data set; None for all."""
        return dict(self.limits).get(dataset)

    def first_folds(self, dataset: str, n: int, test_rows: int = 1) -> list[Fold]:
        """Return the first ``n`` folds of a data set."""
        return [Fold(dataset, k, self.folds, test_rows, self.seed) for k in range(n)]


def shape_of(name: str, n_folds: int, limit: int | None = None) -> Shape:
    """Return the shape of the training part of a fold; for a data set of the catalogue without reading its files."""
    source = DATASETS.get(source_of(name))
    n, d, sparse = shape_of_file(name) if source is None else (source.n_rows, source.n_features, source.sparse)
    return Shape(min(n, limit or n) * (n_folds - 1) // n_folds, d, sparse)


@lru_cache(maxsize=1)
def _shuffled(name: str, seed: int, limit: int | None) -> Rows:
    X, y = load(name)
    order = np.random.default_rng(seed).permutation(len(y))[:limit]
    return Rows(X[order], y[order])


def split_of(name: str, fold: int, n_folds: int, seed: int, limit: int | None = None) -> Split:
    """Return one outer fold of a data set, or of ``limit`` of its rows. The set that was read last stays in memory."""
    X, y = _shuffled(name, seed, limit)
    train, test = list(StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(X, y))[fold]
    return Split(X[train], y[train], X[test], y[test])


@lru_cache(maxsize=2)
def scaled_split(name: str, fold: int, protocol: Protocol, view: View) -> Split:
    """Return one outer fold as a system sees it."""
    return split_of(name, fold, protocol.folds, protocol.seed, protocol.limit(name)).seen_as(view)
