"""Means with standard errors, differences of them, and slopes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import hypot, inf, nan, sqrt

import numpy as np
from scipy.stats import t as student


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


@dataclass(frozen=True)
class Slope:
    """Exponent of y ~ x^value with its 95 % interval, and the factor before it."""

    value: float
    low: float
    high: float
    factor: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]".replace("-", "−")


def slope(x: Sequence[float], y: Sequence[float]) -> Slope | None:
    """Least squares on logarithms; None from fewer than two different x.

    >>> str(slope([1, 2, 4, 8], [3, 6, 12, 24]))
    '1.00 [1.00, 1.00]'
    """
    u, v = np.log(np.asarray(x, dtype=float)), np.log(np.asarray(y, dtype=float))
    if len(set(x)) < 2:
        return None
    spread = np.square(u - u.mean()).sum()
    value = float(((u - u.mean()) * (v - v.mean())).sum() / spread)
    rest = v - v.mean() - value * (u - u.mean())
    free = len(u) - 2
    half = float(student.ppf(0.975, free) * sqrt(np.square(rest).sum() / free / spread)) if free > 0 else nan
    return Slope(value, value - half, value + half, float(np.exp(v.mean() - value * u.mean())))


def upper_half(x: Sequence[float], y: Sequence[float]) -> Slope | None:
    """The slope over the larger half of the values of x, where what does not grow matters least."""
    values = sorted(set(x))
    middle = values[(len(values) - 1) // 2] if values else 0.0
    kept = [(one, other) for one, other in zip(x, y, strict=True) if one >= middle]
    return slope([one for one, _ in kept], [other for _, other in kept])
