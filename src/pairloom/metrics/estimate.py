"""A number that rows say something about, and how sure it is."""

from typing import NamedTuple

import numpy as np

from pairloom.base.typing import Array

Z = 1.959963984540054
"""The normal quantile of 97.5 %."""


class Estimate(NamedTuple):
    """``value``, and the bounds that hold the number of all rows there are with a probability of 95 %."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4f} ({self.low:.4f} to {self.high:.4f})"


def enclosing(value: float, low: float, high: float) -> tuple[float, float]:
    """The bounds with 0 <= low <= value <= high <= 1, which rounding may have broken.

    >>> enclosing(0.0, -1e-17, 0.5), enclosing(1.0, 0.5, 0.9999999999999999)
    ((0.0, 0.5), (0.5, 1.0))
    """
    return max(0.0, min(low, value)), min(1.0, max(high, value))


def share(hit: Array, weights: Array) -> Estimate:
    r"""The share of the rows, by weight, that are ``hit``, with Wilson's interval.

    .. math:: \frac{p + z^2 / 2n \pm z \sqrt{p (1 - p) / n + z^2 / 4n^2}}{1 + z^2 / n}, \quad
        n = \frac{(\sum_i w_i)^2}{\sum_i w_i^2}

    n is the number of rows of one weight that would say as much: a row of weight 2 counts twice in p, and is still one
    row that came. Without rows the value is NaN, and the bounds are 0 and 1.

    Reference: Wilson, Probable inference, the law of succession, and statistical inference, Journal of the American
    Statistical Association 1927; Kish, Survey Sampling, 1965, for n.

    >>> print(share(np.array([True, False, False, False]), np.ones(4)))
    0.2500 (0.0456 to 0.6994)
    """
    largest = weights.max(initial=0.0)
    if largest == 0.0:
        return Estimate(np.nan, 0.0, 1.0)
    weights = weights / largest
    total = float(weights.sum())
    p, n = min(1.0, float(weights[hit].sum()) / total), total**2 / float(weights @ weights)
    middle, reach = p + 0.5 * Z**2 / n, Z * np.sqrt(p * (1.0 - p) / n + 0.25 * (Z / n) ** 2)
    low, high = (float(end / (1.0 + Z**2 / n)) for end in (middle - reach, middle + reach))
    return Estimate(p, *enclosing(p, low, high))
