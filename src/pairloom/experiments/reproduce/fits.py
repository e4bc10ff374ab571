"""Exponents of costs."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan, sqrt

import numpy as np
from scipy.stats import t as student

LEVEL = 0.95


@dataclass(frozen=True)
class Slope:
    """Exponent of y ~ factor x^value, with its 95 % interval."""

    value: float
    low: float
    high: float
    factor: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]".replace("-", "\N{MINUS SIGN}")


def slope(x: Sequence[float], y: Sequence[float]) -> Slope | None:
    """Least squares on logarithms, with a t-interval (NaN from two points); None from fewer than two different x.

    Repetitions of a value are points of their own.

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
