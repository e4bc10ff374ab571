"""How far the area under the curve of so many rows may be from that of all rows there are."""

import numpy as np

from pairloom.base.checks import check_number
from pairloom.base.typing import Array
from pairloom.metrics.auc import mass_below, weighted_auc
from pairloom.metrics.estimate import enclosing


def delong(scores: Array, positive: Array, weights: Array | None = None, level: float = 0.95) -> tuple[float, float]:
    r"""Interval for the area under the curve of fixed scores, by DeLong's variance on the logit scale.

    With V_i the share of the negatives below a positive i, V_j the share of the positives above a negative j (equal
    scores count half), A the area and p the weights of a class divided by their sum,

    .. math:: \mathrm{Var} = \sum_{\text{classes}} \frac{\sum_i p_i^2 (V_i - A)^2}{1 - \sum_i p_i^2}, \qquad
        \operatorname{logit} A \pm t \, \frac{\sqrt{\mathrm{Var}}}{A (1 - A)}

    For equal weights Var is DeLong's estimate. A class counts as 1 / sum p^2 rows; t is Student's quantile with
    Satterthwaite's degrees of freedom, as in the comparison of two means. The scorer is fixed: rows that were scored
    while a model learned say how it did on average.

    If a class counts as fewer than two rows, the variance is the largest there can be, A (1 - A), and t is normal. If
    all pairs are in order, DeLong's variance is 0 and says nothing: the lower bound is then the area at which as many
    independent pairs as the smaller class has rows are all in order with probability (1 - level) / 2; and the mirror
    image if none is. Without rows of both classes the bounds are NaN. If all pairs tie, both bounds are 1/2.

    Coverage measured for 95 % and normal scores: 94 to 97.5 % with 20 rows or more in classes of one size. A rare class
    far above the other is harder: for an area of 0.9, 91 % with 10 and 500 rows, 92 % with 30 and 1,000, 95 % with 100
    and 2,000.

    Parameters
    ----------
    scores
        (n,), not NaN.
    positive
        Which rows are positives, bool.
    weights
        How much each row stands for, as a share of its class: only ratios count, and a row of weight 2 is one row that
        was drawn, not two.
    level
        Probability with which the interval is to hold the area, above 0 and below 1.

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
    there = weights > 0
    scores, positive, weights = scores[there], positive[there], weights[there]
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
    return enclosing(area, _expit(middle - reach), _expit(middle + reach))


def check_level(level: float) -> None:
    """Raise unless ``level`` is a probability between 0 and 1."""
    check_number("level", level, 0.0, 1.0, open_low=True)
    if level == 1.0:
        raise ValueError("level must be below 1: only [0, 1] holds the area for sure")


def _placements(scores: Array, positive: Array, weights: Array) -> tuple[Array, Array]:
    """Share of the negatives below each positive, and of the positives above each negative."""
    own, other = np.where(positive, weights, 0.0), np.where(positive, 0.0, weights)
    below, above = (mass_below(column[:, None], mass)[:, 0] for column, mass in ((scores, other), (-scores, own)))
    return below[positive] / other.sum(), above[~positive] / own.sum()


def _half_width(shares: list[Array], placements: tuple[Array, Array], area: float, tail: float) -> float:
    """t sqrt(Var)."""
    from scipy.special import ndtri, stdtrit  # here: few programs need it

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
    """1 / (1 + e^-x); nothing overflows."""
    e = np.exp(-abs(x))
    return float((1.0 if x > 0 else e) / (1.0 + e))
