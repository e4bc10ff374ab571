"""Means with standard errors, tests of differences and of ranks, and fitted exponents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import hypot, inf, nan, sqrt

import numpy as np
from scipy.stats import f as fisher
from scipy.stats import rankdata, studentized_range
from scipy.stats import t as student

from reproduction.report.wording import interval

LEVEL = 0.95
"""The level of intervals and tests."""

Runs = Mapping[tuple[int, int], float]
"""Values by outer fold and seed."""


@dataclass(frozen=True)
class Estimate:
    """A mean with its standard error: sd with n - 1, over sqrt(n); NaN from one value."""

    mean: float
    error: float
    n: int


def estimate(values: Sequence[float]) -> Estimate:
    """The mean of some values.

    >>> estimate([1.0, 3.0])
    Estimate(mean=2.0, error=1.0, n=2)
    """
    n = len(values)
    error = float(np.std(values, ddof=1)) / sqrt(n) if n > 1 else nan
    return Estimate(float(np.mean(values)), error, n)


def by_fold(runs: Runs) -> dict[int, float]:
    """The mean over the seeds of each fold: runs of one fold share their rows and are not independent.

    >>> by_fold({(0, 0): 1.0, (0, 1): 2.0, (1, 0): 4.0})
    {0: 1.5, 1: 4.0}
    """
    folds = sorted({fold for fold, _ in runs})
    return {fold: float(np.mean([value for (own, _), value in runs.items() if own == fold])) for fold in folds}


@dataclass(frozen=True)
class Difference:
    """A mean difference with the corrected resampled t-test: its error, degrees of freedom and two-sided p-value."""

    mean: float
    error: float
    free: int
    p: float

    @property
    def clear(self) -> int:
        """1 or -1 if the difference is significant at 5 %, otherwise 0."""
        return 0 if not self.p < 1 - LEVEL else 1 if self.mean > 0 else -1


def compared(one: Runs, other: Runs) -> Difference | None:
    """The difference over the runs that both have, by the corrected resampled t-test; None if there are none.

    The training parts of k folds overlap, so the variance of the mean is (1 / k + n_test / n_train) s^2 and not s^2 / k
    (Nadeau and Bengio, Machine Learning 52, 2003), where n_test / n_train = 1 / (k - 1). Seeds of a fold are averaged
    first. There are k - 1 degrees of freedom.

    >>> found = compared({(0, 0): 2.0, (1, 0): 4.0}, {(0, 0): 1.0, (1, 0): 1.0})
    >>> found.mean, round(found.error, 6), found.free, round(found.p, 6)
    (2.0, 1.732051, 1, 0.454371)
    """
    shared = one.keys() & other.keys()
    folds = list(by_fold({key: one[key] - other[key] for key in shared}).values())
    k = len(folds)
    if not k:
        return None
    mean = float(np.mean(folds))
    if k == 1:
        return Difference(mean, nan, 0, nan)
    error = float(np.std(folds, ddof=1)) * sqrt(1 / k + 1 / (k - 1))
    p = float(2 * student.sf(abs(mean) / error, k - 1)) if error else float(mean == 0)
    return Difference(mean, error, k - 1, p)


def apart(ours: Estimate, mean: float, error: float) -> float:
    """The number of combined standard errors by which ours is above another mean."""
    combined = hypot(0.0 if np.isnan(ours.error) else ours.error, error)
    return (ours.mean - mean) / combined if combined else inf * np.sign(ours.mean - mean)


@dataclass(frozen=True)
class Ranks:
    """Mean ranks (1 is best) of methods over data sets, with the tests of Friedman and Nemenyi (Demsar 2006).

    ``statistic`` and ``p``: Friedman's test with the correction of Iman and Davenport, F(k - 1, (k - 1)(n - 1));
    ``critical``: two mean ranks that differ by less are not significantly different at 5 %, by Nemenyi's test.
    """

    names: tuple[str, ...]
    means: tuple[float, ...]
    n: int
    statistic: float
    p: float
    critical: float


def ranked(values: Mapping[str, Sequence[float]]) -> Ranks:
    """Rank methods on each data set, the highest value first.

    >>> found = ranked({"a": [3, 3, 3], "b": [2, 2, 1], "c": [1, 1, 2]})
    >>> found.means == (1.0, 2 + 1 / 3, 2 + 2 / 3), round(found.critical, 2)
    (True, 1.91)
    """
    ranks = rankdata(-np.asarray(list(values.values()), float), axis=0)
    k, n = ranks.shape
    means = ranks.mean(axis=1)
    chi = 12 * n / (k * (k + 1)) * (np.square(means).sum() - k * (k + 1) ** 2 / 4)
    rest = n * (k - 1) - chi
    statistic = float((n - 1) * chi / rest) if rest > 1e-12 else inf
    p = float(fisher.sf(statistic, k - 1, (k - 1) * (n - 1))) if n > 1 else nan
    critical = float(studentized_range.ppf(LEVEL, k, inf) / sqrt(2) * sqrt(k * (k + 1) / (6 * n)))
    return Ranks(tuple(values), tuple(means.tolist()), n, statistic, p, critical)


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
