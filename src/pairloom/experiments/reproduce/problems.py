"""The data sets of an experiment: shuffled once, cut into folds, scaled by the training part of each."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer

from pairloom.base.typing import Array
from pairloom.data import DATASETS, load_dataset
from pairloom.data.places import usual_places

View = Literal["scaled", "unit", "raw"]
"""Of the rows: columns in [-1, 1] on the training part; then also each row of norm 1; or as in the file."""

STAND_INS = {"rcv1": "reuters.moneyfx"}
"""What is used where the files of a data set are not here."""

MANY_COLUMNS = 100
"""From here on the rows of dense sets have norm 1 in the view "unit": without that, even the shortest step of the
paper's grid, 2^-8, is too long for a linear model."""


@dataclass(frozen=True)
class Shape:
    """What is known of the training part of a fold before it is read."""

    n_rows: int
    n_features: int
    sparse: bool


@dataclass(frozen=True)
class Split:
    """Rows to learn, in the order of the stream, and rows to test on; labels -1 and +1."""

    X: Any
    y: Array
    X_test: Any
    y_test: Array

    @property
    def shape(self) -> Shape:
        """Of the rows to learn."""
        return Shape(self.X.shape[0], self.X.shape[1], not isinstance(self.X, np.ndarray))

    def seen_as(self, view: View) -> "Split":
        """Scaled by the rows to learn."""
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
        """The first rows of either part."""
        return Split(self.X[:n_rows], self.y[:n_rows], self.X_test[:n_test], self.y_test[:n_test])

    def inner(self, n_folds: int, seed: int) -> Iterator["Split"]:
        """The rows to learn, cut again."""
        for train, test in StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(self.X, self.y):
            yield Split(self.X[train], self.y[train], self.X[test], self.y[test])


def at_hand(name: str) -> bool:
    """Whether all files of a data set are here."""
    places = usual_places(None)
    return all(places.find(part) is not None for part in DATASETS[name].parts)


def source_of(name: str) -> str:
    """The data set that is read for ``name``: itself, or its stand-in where only that is here."""
    other = STAND_INS.get(name, name)
    return other if not at_hand(name) and at_hand(other) else name


def shape_of(name: str, n_folds: int) -> Shape:
    """Of the training part of a fold; opens no file."""
    source = DATASETS[source_of(name)]
    return Shape(source.n_rows * (n_folds - 1) // n_folds, source.n_features, source.sparse)


@lru_cache(maxsize=1)
def _shuffled(name: str, seed: int) -> tuple[Any, Array]:
    data = load_dataset(source_of(name))
    order = np.random.default_rng(seed).permutation(len(data.y))
    return data.X[order], data.y[order]


def split_of(name: str, fold: int, n_folds: int, seed: int) -> Split:
    """One outer fold of a data set; the last set that was read stays in memory."""
    X, y = _shuffled(name, seed)
    train, test = list(StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(X, y))[fold]
    return Split(X[train], y[train], X[test], y[test])
