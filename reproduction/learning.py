"""Learn rows with any system, and score with the mean of its iterates and with the last one.

A system whose model has weights keeps both. A sum of kernels is averaged over ``SNAPSHOTS`` iterates at equal
distances. Any other estimator has one output.
"""

from dataclasses import replace
from math import ceil
from time import process_time
from typing import Any, Literal

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import rbf_kernel

from pairloom import Grid, Learner, Stream
from pairloom.models import Expansion, RuleLearner
from reproduction.cells import Array

Output = Literal["mean", "last"]
Scores = dict[Output, Array]
"""Scores of test rows by output; only the mean for a system with one output."""

SNAPSHOTS = 32


class Averaged:
    """A model with weights, in one pass: the mean of all iterates, and the last."""

    learns_in_parts = True

    def __init__(self, model: Learner | RuleLearner) -> None:
        self.stream = Stream(replace(model, average="mean"))

    def learn(self, X: Any, y: Array) -> None:
        self.stream.partial_fit(X, y)

    def scores(self, X: Any) -> Scores:
        last = Stream(replace(self.stream.model, average="last"))  # type: ignore[type-var]
        assert self.stream.state is not None
        last.resume(self.stream.state)
        return {"mean": self.stream.score(X), "last": last.score(X)}

    @property
    def cut(self) -> float:
        return float(self.stream.model.cut_share(self.stream.learned))  # type: ignore[attr-defined]


class Expanded:
    """A sum of kernels in one pass: the mean of iterates at equal distances, and the last.

    Supports come and go; the mean has all of them.
    """

    learns_in_parts = True

    def __init__(self, model: Expansion, n_rows: int) -> None:
        self.stream, self.every = Stream(model), ceil(n_rows / SNAPSHOTS)
        self.sums: dict[bytes, float] = {}
        self.cut = 0.0

    def learn(self, X: Any, y: Array) -> None:
        for start in range(0, len(y), self.every):
            part = slice(start, start + self.every)
            self.stream.partial_fit(X[part], y[part])
            for support, coef in zip(*self._terms(), strict=True):
                key = support.tobytes()
                self.sums[key] = self.sums.get(key, 0.0) + coef * len(y[part])

    def scores(self, X: Any) -> Scores:
        supports, _ = self._terms()
        kept = np.array([np.frombuffer(key, supports.dtype) for key in self.sums])
        coef = np.array(list(self.sums.values())) / self.stream.n_seen
        gamma = float(self.stream.learned.memory.gamma)
        mean = [rbf_kernel(_dense(X[i : i + 1000]), kept, gamma) @ coef for i in range(0, X.shape[0], 1000)]
        return {"mean": np.concatenate(mean), "last": self.stream.score(X)}

    def _terms(self) -> tuple[Array, Array]:
        assert isinstance(self.stream.model, Expansion)
        ((supports, coef),) = self.stream.model.terms(self.stream.learned.memory)
        return supports, coef[0]


class Fitted:
    """An estimator with one output."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        self.learns_in_parts = hasattr(estimator, "partial_fit")
        self.cut = 0.0

    def learn(self, X: Any, y: Array) -> None:
        if self.learns_in_parts:
            self.estimator.partial_fit(X, y, classes=[-1, 1])
        else:
            self.estimator.fit(X, y)

    def scores(self, X: Any) -> Scores:
        if hasattr(self.estimator, "decision_function"):
            return {"mean": np.asarray(self.estimator.decision_function(X))}
        return {"mean": np.asarray(self.estimator.predict_proba(X)[:, 1])}


Run = Averaged | Expanded | Fitted


def start(made: Any, n_rows: int) -> Run:
    """Return a run of an estimator, or of a model, over ``n_rows`` rows."""
    if getattr(made, "needs_all_rows", False):
        return Fitted(made)
    model = made.to_model() if hasattr(made, "to_model") else made
    if isinstance(model, Expansion):
        return Expanded(model, n_rows)
    # The other models have no iterates, such as a minimiser in closed form, or more than one, such as a race.
    return Averaged(model) if isinstance(model, (Learner, RuleLearner)) else Fitted(made)


def learn_timed(run: Run, X: Any, y: Array) -> float:
    """Learn rows; return the CPU seconds."""
    began = process_time()
    run.learn(X, y)
    return process_time() - began


def side_by_side(models: list[Any], X: Any, y: Array, X_test: Any) -> list[Scores]:
    """Return the scores of models that share features and memory, learned in one pass; NaN if a model diverged."""
    grid = Grid(replace(model, average="mean") for model in models)
    together = Stream(grid).partial_fit(X, y)
    alone = [together.only(i) for i in range(len(models))]
    last = [replace(one.model, average="last").coef(one.learned) for one in alone]  # type: ignore[type-var,attr-defined]
    weights = np.concatenate([one.coef for one in alone] + last)
    rows = X_test.astype(grid.dtype)
    points = grid.features.apply(together.learned.phi, rows)
    means, lasts = np.split(np.asarray(points @ weights.T), 2, axis=1)
    diverged = set(grid.diverged(together.learned))
    for i in diverged:
        means[:, i] = lasts[:, i] = np.nan
    return [{"mean": means[:, i], "last": lasts[:, i]} for i in range(len(models))]


def aucs(y: Array, scores: Scores) -> dict[Output, float]:
    """Return the AUC by output; 0 if scores are not finite."""
    return {name: float(roc_auc_score(y, one)) if np.isfinite(one).all() else 0.0 for name, one in scores.items()}


def _dense(X: Any) -> Array:
    return np.asarray(X if isinstance(X, np.ndarray) else X.toarray())
