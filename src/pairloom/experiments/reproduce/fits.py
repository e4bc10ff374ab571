"""Exponents of costs."""

from collections.abc import Sequence

import numpy as np
from scipy.stats import t as student

LEVEL = 0.95


def slope(values: Sequence[float], micros: Sequence[float]) -> tuple[float, float, float]:
    """The exponent b of micros = a values^b, by least squares of logarithms, and its 95% t-interval.

    Repetitions of a value are points of their own. ValueError for fewer than three points, or for one value only.

    >>> slope([1, 2, 4, 8], [3, 6, 12, 24])
    (1.0, 1.0, 1.0)
    """
    x, y = np.log(np.asarray(values, float)), np.log(np.asarray(micros, float))
    if len(x) != len(y) or len(x) < 3 or np.ptp(x) == 0:
        raise ValueError(f"a slope needs three points and two different values; got {list(values)}")
    dx, dy = x - x.mean(), y - y.mean()
    spread = dx @ dx
    exponent = dx @ dy / spread
    left = dy - exponent * dx
    error = np.sqrt(left @ left / (len(x) - 2) / spread)
    half = error * student.ppf((1 + LEVEL) / 2, len(x) - 2)
    # Rounding errors are no finding: an exact power is shown as one.
    return round(float(exponent), 12), round(float(exponent - half), 12), round(float(exponent + half), 12)
