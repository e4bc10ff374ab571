"""Shift-invariant kernels: their width rules and the law of their random frequencies."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pairloom.typing import Array

Gamma = float | Sequence[float] | Literal["paper", "median"]

MEDIAN_ROWS = 512


@dataclass(frozen=True)
class Kernel(ABC):
    """A kernel k(x - x') with width parameter gamma: a number, one number per column, or a rule.

    ``"paper"`` is 1 / (2 d). ``"median"`` is one over the median squared distance between two rows of the start
    of the stream.
    """

    gamma: Gamma = "paper"

    def __post_init__(self) -> None:
        if isinstance(self.gamma, str):
            if self.gamma not in ("paper", "median"):
                raise ValueError(f"gamma must be positive, 'paper' or 'median', got {self.gamma!r}")
            return
        gamma = np.asarray(self.gamma, dtype=float)
        if gamma.ndim > 1 or gamma.size == 0 or not (np.isfinite(gamma).all() and (gamma > 0).all()):
            raise ValueError(f"gamma must be a positive number, or one per column, got {self.gamma!r}")
        # A tuple, so that the part stays hashable.
        object.__setattr__(self, "gamma", gamma.item() if gamma.ndim == 0 else tuple(gamma.tolist()))

    def width(self, n_features: int, rows: Array | None) -> Array:
        """gamma as a number (0-d), or as an array of length d."""
        if self.gamma == "paper" or (self.gamma == "median" and rows is None):
            return np.asarray(0.5 / n_features)
        if self.gamma == "median":
            assert rows is not None
            distance = median_squared_distance(rows)
            return np.asarray(1.0 / distance if distance > 0 else 0.5 / n_features)
        gamma = np.asarray(self.gamma, dtype=float)
        if gamma.ndim and gamma.size != n_features:
            raise ValueError(f"gamma has {gamma.size} widths, but the rows have {n_features} columns")
        return gamma

    @abstractmethod
    def frequencies(self, gamma: Array, n_features: int, count: int, rng: np.random.Generator) -> Array:
        """``count`` random frequencies as columns of a (d, count) array."""

    @abstractmethod
    def __call__(self, gamma: Array, X: Array, Y: Array) -> Array:
        """The kernel matrix between the rows of X and of Y."""


@dataclass(frozen=True)
class Gaussian(Kernel):
    """k(x, x') = exp(-sum_i gamma_i (x_i - x'_i)^2), with frequencies q ~ N(0, 2 diag(gamma)).

    >>> Gaussian(0.5)(np.asarray(0.5), np.array([[0.0]]), np.array([[2.0]])).round(4)
    array([[0.1353]])
    """

    def frequencies(self, gamma: Array, n_features: int, count: int, rng: np.random.Generator) -> Array:
        q = np.sqrt(2.0 * gamma) * rng.standard_normal((count, n_features))
        return np.ascontiguousarray(q.T)

    def __call__(self, gamma: Array, X: Array, Y: Array) -> Array:
        root = np.sqrt(gamma)
        return np.asarray(np.exp(-squared_distances(X * root, Y * root)))


def squared_distances(X: Array, Y: Array) -> Array:
    """||x - y||^2 between all rows, in float64; the common mean is taken out first, against cancellation."""
    center = np.mean(X, axis=0, dtype=float)
    X, Y = X - center, Y - center
    squares = np.square(X).sum(axis=1)[:, None] + np.square(Y).sum(axis=1)[None, :]
    return np.asarray(np.maximum(squares - 2.0 * (X @ Y.T), 0.0))


def median_squared_distance(rows: Array) -> float:
    """Median squared distance between two of at most 512 evenly spaced rows; 0 if all are equal.

    Where most pairs are duplicates the median is 0 and says nothing: then the mean.
    """
    take = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), MEDIAN_ROWS)).astype(int))
    distances = squared_distances(rows[take], rows[take])[np.triu_indices(len(take), 1)]
    if distances.size == 0:
        return 0.0
    median, largest = float(np.median(distances)), float(distances.max())
    return median if median > 1e-12 * largest else float(distances.mean())
