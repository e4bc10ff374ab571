"""Means with standard errors, their differences, and fitted exponents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import hypot, inf, nan, sqrt

import numpy as np
from scipy.stats import t as student

from reproduction.report.wording import interval

LEVEL = 0.95
"""The level of the intervals of exponents."""


@dataclass(frozen=True)
class Estimate:
    """A mean over folds with its standard error: sd with n - 1, over sqrt(n); NaN from one fold."""

    mean: float
    error: float
    n: int

    @property
    def clear(self) -> int:
        """1 or -1 if it is more than two standard errors from 0, otherwise 0."""
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
    """The number of combined standard errors by which ours is above another mean."""
    combined = hypot(0.0 if np.isnan(ours.error) else ours.error, error)
    return (ours.mean - mean) / combined if combined else inf * np.sign(ours.mean - mean)


@dataclass(frozen=True)
class Slope:
    """Exponent of y ~ factor x^value, with its 95 % interval."""

    value: float
    low: float
    high: float
    factor: float

    def __str__(self) -> str:
        return interval(self.value, self.low, self.high)


def slope(x: Sequence[float], y: Sequence[float]) -> Slope | None:
    """Least squares on logarithms, with a t-interval (NaN from two points); None for fewer than two different x.

    >>> str(slope([1, 2, 4, 8], [3, 6, 12, 24]))
    '1.00 [1.00, 1.00]'
    """
    u, v = np.log(np.asarray(x, dtype=float)), np.log(np.asarray(y, dtype=float))
    if len(set(x)) < 2:
        return None
    du, dv = u - u.mean(), v - v.mean()
    spread, free = du @ du, len(u) - 2
    value = float(du @ dv / spread)
    rest = dv - value * du
    half = float(student.ppf((1 + LEVEL) / 2, free) * sqrt(rest @ rest / free / spread)) if free > 0 else nan
    return Slope(value, value - half, value + half, float(np.exp(v.mean() - value * u.mean())))
