"""Means with standard errors, and differences of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import hypot, inf, nan, sqrt

import numpy as np


@dataclass(frozen=True)
class Estimate:
    """A mean over folds, with its standard error: sd with n - 1, over sqrt(n); NaN from one fold."""

    mean: float
    error: float
    n: int

    @property
    def clear(self) -> int:
        """1 or -1 where it is more than two standard errors from 0, otherwise 0."""
        return 0 if not abs(self.mean) > 2 * self.error else 1 if self.mean > 0 else -1


def estimate(values: Sequence[float]) -> Estimate:
    """The mean of some values.

    >>> estimate([1.0, 3.0])
    Estimate(mean=2.0, error=1.0, n=2)
    """
    n = len(values)
    error = float(np.std(values, ddof=1)) / sqrt(n) if n > 1 else nan
    return Estimate(float(np.mean(values)), error, n)


def paired(one: Mapping[int, float], other: Mapping[int, float]) -> Estimate | None:
    """The mean difference over the folds that both have."""
    folds = sorted(one.keys() & other.keys())
    return estimate([one[fold] - other[fold] for fold in folds]) if folds else None


def apart(ours: Estimate, mean: float, error: float) -> float:
    """How many combined standard errors ours lies above another mean."""
    combined = hypot(0.0 if np.isnan(ours.error) else ours.error, error)
    return (ours.mean - mean) / combined if combined else inf * np.sign(ours.mean - mean)
