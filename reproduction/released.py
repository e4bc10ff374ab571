"""What the authors' released code computes, with its crash repaired: a column of the table.

Written from a description of that code, not from the code. It differs from the paper in nearly every part:

- no Fourier features; rows have norm 4;
- the buffers start with the first positive and the first negative row of the whole training set;
- strata of each class, s = 4; a row that joins a stratum moves its centroid away: c <- c + 0.05 (c - x);
- a positive is paired with the negatives that represent their strata, but weighted by the counts of the positive
  strata, and the sum is divided by their number once more;
- a step along (1 - m) times the difference, the gradient of the square loss without its factor 2, then an L1 threshold;
- training stops after 1,000 rows.

As released, every run ends with a ValueError on its first positive row, since the counts of strata are passed in place
of the radius. Here the radius is the mean squared distance of 1,000 random pairs of rows, which that code computes and
never uses. AUC is computed from scores; the released code computes it from a clipped sigmoid, which has ties.
"""

from typing import Any, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.preprocessing import normalize

from reproduction.cells import Array

ROWS, SLOTS, NORM, CENTROID_STEP, PAIRS = 1_000, 4, 4.0, 0.05, 1_000


class ReleasedCode(ClassifierMixin, BaseEstimator):
    """A linear classifier by the released code, with its crash repaired."""

    def __init__(self, eta: float = 2.0**-7, l1: float = 1e-8, random_state: int = 0) -> None:
        self.eta = eta
        self.l1 = l1
        self.random_state = random_state

    def fit(self, X: Any, y: Array) -> Self:
        """Learn the first 1,000 rows; labels are -1 and +1."""
        X, y = rows_of_norm(X[:ROWS]), np.asarray(y[:ROWS])
        eps = self._mean_squared_distance(X)
        self.w_ = np.zeros(X.shape[1])
        strata = {label: Strata(X[np.flatnonzero(y == label)[0]]) for label in (-1, 1)}
        for x, label in zip(X, y, strict=True):
            own, other = strata[label], strata[-label]
            gradient = np.zeros_like(self.w_)
            # Strata without a counterpart in the other class have no weight.
            for count, member in zip(own.counts, other.members, strict=False):
                apart = label * (x - member)
                gradient -= count / own.counts.sum() * (1.0 - self.w_ @ apart) * apart
            w = self.w_ - self.eta * gradient / len(other.members)
            self.w_ = np.sign(w) * np.maximum(np.abs(w) - self.eta * self.l1, 0.0)
            own.add(x, eps)
        return self

    def decision_function(self, X: Any) -> Array:
        """Return the scores of rows."""
        scores: Array = rows_of_norm(X) @ self.w_
        return scores

    def _mean_squared_distance(self, X: Array) -> float:
        one, other = np.random.default_rng(self.random_state).integers(len(X), size=(2, PAIRS))
        return float(np.square(X[one] - X[other]).sum(axis=1).mean())


class Strata:
    """The strata of one class: centroids, newest members and counts."""

    def __init__(self, x: Array) -> None:
        self.centroids, self.members, self.counts = [x.copy()], [x], np.array([1.0])

    def add(self, x: Array, eps: float) -> None:
        """Add a row to the nearest stratum, or start one."""
        distances = [float(np.square(x - c).sum()) for c in self.centroids]
        nearest = int(np.argmin(distances))
        if distances[nearest] > eps and len(self.members) < SLOTS:
            self.centroids.append(x.copy())
            self.members.append(x)
            self.counts = np.append(self.counts, 1.0)
            return
        self.counts[nearest] += 1
        self.members[nearest] = x
        self.centroids[nearest] = self.centroids[nearest] + CENTROID_STEP * (self.centroids[nearest] - x)


def rows_of_norm(X: Any) -> Array:
    """Return dense rows of norm 4."""
    dense: Array = NORM * normalize(X.toarray() if issparse(X) else np.asarray(X, float))
    return dense
