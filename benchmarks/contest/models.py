"""Wrappers for models that do not accept raw rows."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import SGDClassifier

from contest.tables import text_columns
from pairloom.features.distances import median_squared_distance

BATCH = 512
AHEAD = 1024
"""Rows that the median distance is taken of, as in pairloom."""


class MedianWidth:
    """What learns from Gaussian features of width ``c`` over the median squared distance of the first scaled rows.

    ``build(gamma=...)`` makes it, ``scaler`` is fitted to all rows.
    """

    def __init__(self, scaler: Any, build: Callable[..., Any], c: float) -> None:
        self.scaler = scaler
        self.build = build
        self.c = c

    def fit(self, X: np.ndarray, y: np.ndarray) -> "MedianWidth":
        X = self.scaler.fit_transform(X)
        self.model = self.build(gamma=self.c / median_squared_distance(X[:AHEAD])).fit(X, y)
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.model.decision_function(self.scaler.transform(X)))


class SamplerSGD:
    """RBFSampler + SGDClassifier, one pass in batches, averaged weights."""

    def __init__(self, gamma: float, n_components: int, **settings: Any) -> None:
        self.sampler = RBFSampler(gamma=gamma, n_components=n_components, random_state=0)
        self.sgd = SGDClassifier(average=True, random_state=0, **settings)

    def fit(self, X: np.ndarray, y: np.ndarray) -> "SamplerSGD":
        self.sampler.fit(X[:1])  # it looks at the number of columns only
        for start in range(0, len(y), BATCH):
            rows = slice(start, start + BATCH)
            self.sgd.partial_fit(self.sampler.transform(X[rows]), y[rows], classes=[0, 1])
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        parts = [X[start : start + BATCH] for start in range(0, len(X), BATCH)]
        return np.concatenate([self.sgd.decision_function(self.sampler.transform(part)) for part in parts])


class RowByRow:
    """A river model, which learns and scores one row at a time; columns are divided by ``unit``."""

    def __init__(self, model: Any, unit: float = 1.0) -> None:
        self.model = model
        self.unit = unit

    def fit(self, X: np.ndarray, y: np.ndarray) -> "RowByRow":
        for row, label in zip(X, y, strict=True):
            self.model.learn_one(self._named(row), bool(label))
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        found = [self.model.predict_proba_one(self._named(row)) for row in X]
        return np.array([p.get(True, 1.0 - p.get(False, 0.5)) for p in found])  # a tree may know one class only

    def _named(self, row: np.ndarray) -> dict[int, float]:
        return dict(enumerate((row / self.unit).tolist()))


class OwnCategories:
    """A model with its own treatment of text: ``mark(frame, names)`` marks these columns for it.

    ``fit`` gets the names of the text columns as its argument ``called``, if any. Arrays are passed unchanged.
    """

    def __init__(self, model: Any, mark: Callable[[pd.DataFrame, list[str]], pd.DataFrame], called: str = "") -> None:
        self.model, self.mark, self.called = model, mark, called

    def fit(self, X: Any, y: np.ndarray) -> "OwnCategories":
        X, names = self._marked(X)
        self.model.fit(X, y, **({self.called: names} if self.called else {}))
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        return np.asarray(self.model.predict_proba(self._marked(X)[0])[:, 1])

    def _marked(self, X: Any) -> tuple[Any, list[str]]:
        if not isinstance(X, pd.DataFrame):
            return X, []
        X = X.set_axis([f"c{k}" for k in range(X.shape[1])], axis=1)  # LightGBM rejects brackets in names
        names = text_columns(X)
        return self.mark(X, names), names


def as_category(frame: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Return text as pandas categories, for LightGBM."""
    return frame.astype(dict.fromkeys(names, "category"))


def as_text(frame: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Return text with missing values as "", for CatBoost."""
    return frame.fillna(dict.fromkeys(names, "")).astype(dict.fromkeys(names, object))
