"""Estimates with 95 % intervals: shares by Wilson's method, AUC by DeLong's."""

from typing import NamedTuple

import numpy as np

from pairloom.base.checks import check_number
from pairloom.base.typing import Array
from pairloom.metrics.auc import mass_below, mean_auc, weighted_auc

Z_95 = 1.959963984540054
"""The 97.5 % quantile of the normal distribution."""


class Estimate(NamedTuple):
    """An estimated ``value`` with its 95 % confidence interval, ``low`` to ``high``."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4f} ({self.low:.4f} to {self.high:.4f})"


class Area(Estimate):
    """An AUC with its 95 % confidence interval."""

    __slots__ = ()


def wilson(hit: Array, weights: Array) -> Estimate:
    r"""Return the weighted share of the rows that are ``hit``, with Wilson's interval.

    .. math:: \frac{p + z^2 / 2n \pm z \sqrt{p (1 - p) / n + z^2 / 4n^2}}{1 + z^2 / n}, \quad
        n = \frac{(\sum_i w_i)^2}{\sum_i w_i^2}

    n is the effective sample size: a row of weight 2 counts twice in p, and once as an observation. Without rows the
    value is NaN, and the bounds are 0 and 1.

    Reference: Wilson, Probable inference, the law of succession, and statistical inference, Journal of the American
    Statistical Association 1927; Kish, Survey Sampling, 1965, for n.

    >>> print(wilson(np.array([True, False, False, False]), np.ones(4)))
    0.2500 (0.0456 to 0.6994)
    """
    largest = weights.max(initial=0.0)
    if largest == 0.0:
        return Estimate(np.nan, 0.0, 1.0)
    weights = weights / largest
    total = float(weights.sum())
    return wilson_of_share(min(1.0, float(weights[hit].sum()) / total), total**2 / float(weights @ weights))


def wilson_of_share(p: float, n: float) -> Estimate:
    """Return the share p of n rows with Wilson's interval, as ``wilson`` does.

    >>> print(wilson_of_share(0.25, 4))
    0.2500 (0.0456 to 0.6994)
    """
    middle, reach = p + 0.5 * Z_95**2 / n, Z_95 * np.sqrt(p * (1.0 - p) / n + 0.25 * (Z_95 / n) ** 2)
    low, high = (float(end / (1.0 + Z_95**2 / n)) for end in (middle - reach, middle + reach))
    return Estimate(p, *clip_bounds(p, low, high))


def mean_area(scores: Array, labels: Array, weights: Array, targets: Array) -> Area:
    """Return the AUC of scores (rows, targets), averaged over targets; averaged bounds are conservative.

    >>> print(mean_area(np.array([[0.1], [0.4], [0.3], [0.9]]), np.array([0, 0, 1, 1]), np.ones(4), np.ones(1)))
    0.7500 (0.0009 to 0.9999)
    """
    value = float(mean_auc(scores[:, None, :], labels, weights, targets)[0])
    bounds = [delong(scores[:, k], labels == target, weights) for k, target in enumerate(targets)]
    known = [bound for bound in bounds if not np.isnan(bound[0])]
    return Area(value, *clip_bounds(value, *np.mean(known, axis=0).tolist())) if known else Area(np.nan, np.nan, np.nan)


def delong(scores: Array, positive: Array, weights: Array | None = None, level: float = 0.95) -> tuple[float, float]:
    r"""Return a confidence interval for the AUC of fixed scores, by DeLong's variance on the logit scale.

    With V_i the share of the negatives below a positive i, V_j the share of the positives above a negative j (equal
    scores count half), A the AUC and p the weights of a class divided by their sum,

    .. math:: \mathrm{Var} = \sum_{\text{classes}} \frac{\sum_i p_i^2 (V_i - A)^2}{1 - \sum_i p_i^2}, \qquad
        \operatorname{logit} A \pm t \, \frac{\sqrt{\mathrm{Var}}}{A (1 - A)}

    For equal weights Var is DeLong's estimate. A class counts as 1 / sum p^2 rows; t is Student's quantile with
    Satterthwaite's degrees of freedom, as in the comparison of two means. The scorer is assumed fixed: with
    test-then-train scores, the AUC is that of the model on average.

    If a class counts as fewer than two rows, the variance is the largest possible, A (1 - A), and t is normal. If all
    pairs are in order, DeLong's variance is 0. The lower bound is then the AUC at which n independent pairs are all in
    order with probability (1 - level) / 2, with n the number of rows of the smaller class; and vice versa if no pair
    is. Without rows of both classes the bounds are NaN. If all pairs tie, both bounds are 1/2.

    Measured coverage for 95 % and normal scores: 94 to 97.5 % with 20 or more rows in classes of equal size. A rare
    class far above the other is harder: for an AUC of 0.9, 91 % with 10 and 500 rows, 92 % with 30 and 1,000, 95 % with
    100 and 2,000.

    Parameters
    ----------
    scores
        (n,), not NaN.
    positive
        Which rows are positives, bool.
    weights
        Weight of each row in its class: only ratios matter, and a row of weight 2 is one observation, not two.
    level
        Coverage probability, above 0 and below 1.

    Cost: O(n log n) time, O(n) numbers.

    References: DeLong, DeLong and Clarke-Pearson, Comparing the areas under two or more correlated receiver operating
    characteristic curves, Biometrics 1988; Sun and Xu, Fast implementation of DeLong's algorithm, IEEE Signal
    Processing Letters 2014; Birnbaum and Klose, Bounds for the variance of the Mann-Whitney statistic, Annals of
    Mathematical Statistics 1957.

    >>> low, high = delong(np.arange(40.0), np.arange(40) % 8 > 3)
    >>> round(low, 3), round(high, 3)
    (0.409, 0.765)
    """
    check_level(level)
    weights = np.ones(len(scores)) if weights is None else weights
    keep = weights > 0
    scores, positive, weights = scores[keep], positive[keep], weights[keep]
    if positive.all() or not positive.any():
        return np.nan, np.nan
    shares = [weights[side] / weights[side].sum() for side in (positive, ~positive)]
    rows = min(1.0 / float(share @ share) for share in shares)
    area = float(weighted_auc(scores[:, None], positive, weights)[0])
    tail = 0.5 * (1.0 - level)
    if area == 1.0:
        return tail ** (1.0 / rows), 1.0
    if area == 0.0:
        return 0.0, 1.0 - tail ** (1.0 / rows)
    reach = _half_width(shares, _placements(scores, positive, weights), area, tail) / (area * (1.0 - area))
    middle = np.log(area / (1.0 - area))
    return clip_bounds(area, _expit(middle - reach), _expit(middle + reach))


def paired_difference(scores: Array, others: Array, positive: Array, weights: Array, level: float = 0.95) -> Estimate:
    r"""Return the AUC of scores minus that of other scores of the same rows, with DeLong's interval.

    .. math:: D \pm z \sqrt{\sum_{\text{classes}} \frac{\sum_i p_i^2 (V_i - V'_i - D)^2}{1 - \sum_i p_i^2}}

    with V and p as in :func:`delong`, and D the difference. Weights must be above 0, and rows of both classes.

    Cost: O(n log n). Reference: as :func:`delong`.

    >>> rng = np.random.default_rng(0)
    >>> positive, noise = np.arange(400) % 4 == 0, rng.normal(size=(2, 400))
    >>> print(paired_difference(positive + noise[0], positive + 3.0 * noise[1], positive, np.ones(400)))
    0.1624 (0.0833 to 0.2414)
    """
    from scipy.special import ndtri  # imported here: rarely needed

    check_level(level)
    variance, difference = 0.0, 0.0
    pairs = zip(_placements(scores, positive, weights), _placements(others, positive, weights), strict=True)
    for side, (own, other) in zip((positive, ~positive), pairs, strict=True):
        share = weights[side] / weights[side].sum()
        difference = float(share @ (own - other))  # the same for both classes
        variance += float(np.square(share * (own - other - difference)).sum() / max(1.0 - share @ share, 1e-300))
    reach = float(-ndtri(0.5 * (1.0 - level)) * np.sqrt(variance))
    return Estimate(difference, max(-1.0, difference - reach), min(1.0, difference + reach))


def check_level(level: float) -> None:
    """Raise ValueError unless 0 < ``level`` < 1."""
    check_number("level", level, 0.0, 1.0, open_low=True)
    if level == 1.0:
        raise ValueError("level must be below 1: the interval would be [0, 1]")


def _placements(scores: Array, positive: Array, weights: Array) -> tuple[Array, Array]:
    """Return the share of the negatives below each positive, and of the positives above each negative."""
    own, other = np.where(positive, weights, 0.0), np.where(positive, 0.0, weights)
    below, above = (mass_below(column[:, None], mass)[:, 0] for column, mass in ((scores, other), (-scores, own)))
    return below[positive] / other.sum(), above[~positive] / own.sum()


def _half_width(shares: list[Array], placements: tuple[Array, Array], area: float, tail: float) -> float:
    """Return t sqrt(Var)."""
    from scipy.special import ndtri, stdtrit  # imported here: rarely needed

    squares = np.array([share @ share for share in shares])
    if squares.max() > 0.5:
        return float(-ndtri(tail) * np.sqrt(area * (1.0 - area)))
    spread = [np.square(p * (v - area)).sum() for p, v in zip(shares, placements, strict=True)]
    parts = np.array(spread) / (1.0 - squares)
    variance = float(parts.sum())
    if variance == 0.0:
        return 0.0
    freedom = 1.0 / float((np.square(parts / variance) * squares / (1.0 - squares)).sum())
    return float(-stdtrit(freedom, tail) * np.sqrt(variance))


def _expit(x: float) -> float:
    """Return 1 / (1 + e^-x) without overflow."""
    e = np.exp(-abs(x))
    return float((1.0 if x > 0 else e) / (1.0 + e))


def clip_bounds(value: float, low: float, high: float) -> tuple[float, float]:
    """Return the bounds with 0 <= low <= value <= high <= 1, which rounding may have violated.

    >>> clip_bounds(0.0, -1e-17, 0.5), clip_bounds(1.0, 0.5, 0.9999999999999999)
    ((0.0, 0.5), (0.5, 1.0))
    """
    return max(0.0, min(low, value)), min(1.0, max(high, value))
