"""What stands at the top of a ranking: partial area, average precision, precision at k."""

import numpy as np

from pairloom.base.typing import Array
from pairloom.metrics.auc import weighted_auc


def mass_above(scores: Array, positive: Array, weights: Array) -> tuple[Array, Array]:
    """Weight of the positives and of the negatives at or above each distinct score, from the top; 0 first.

    >>> mass_above(np.array([1.0, 2.0, 2.0]), np.array([True, True, False]), np.ones(3))
    (array([0., 1., 2.]), array([0., 1., 1.]))
    """
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    last = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True))
    sides = (np.where(positive, weights, 0.0), np.where(positive, 0.0, weights))
    own, other = (np.append(0.0, np.cumsum(side[order])[last]) for side in sides)
    return own, other


def partial_auc(scores: Array, positive: Array, weights: Array, max_fpr: float) -> float:
    r"""Area under the curve where at most ``max_fpr`` of the negatives are above, standardised to 0.5 for chance.

    .. math:: \tfrac12 \left(1 + \frac{A - c^2 / 2}{c - c^2 / 2}\right), \quad
        A = \int_0^c \mathrm{TPR} \, d \, \mathrm{FPR}, \quad c = \mathrm{max\_fpr}

    Cost: O(n log n). Reference: McClish, Analyzing a portion of the ROC curve, Medical Decision Making 1989.

    >>> partial_auc(np.array([4.0, 3.0, 2.0, 1.0]), np.array([True, False, True, False]), np.ones(4), 0.5)
    0.6666666666666666
    """
    if max_fpr == 1.0:
        return float(weighted_auc(scores[:, None], positive, weights)[0])
    own, other = mass_above(scores, positive, weights)
    tpr, fpr = own / own[-1], other / other[-1]
    stop = int(np.searchsorted(fpr, max_fpr, side="right"))
    x, y = (
        np.append(fpr[:stop], max_fpr),
        np.append(tpr[:stop], np.interp(max_fpr, fpr[stop - 1 : stop + 1], tpr[stop - 1 : stop + 1])),
    )
    area, chance = float(np.trapezoid(y, x)), 0.5 * max_fpr**2
    return min(1.0, 0.5 * (1.0 + (area - chance) / (max_fpr - chance)))  # rounding may bring it above 1


def average_precision(scores: Array, positive: Array, weights: Array) -> float:
    r"""Mean, over the positives, of the precision at their scores; equal scores come in together.

    .. math:: \sum_s (R_s - R_{s'}) P_s, \quad s' \text{ the next higher score}

    Cost: O(n log n).

    >>> average_precision(np.array([4.0, 3.0, 2.0, 1.0]), np.array([True, False, True, False]), np.ones(4))
    0.8333333333333333
    """
    own, other = mass_above(scores, positive, weights)
    found = float(np.diff(own) @ (own / np.where(own > 0, own + other, 1.0))[1:] / own[-1])
    return min(1.0, found)  # rounding may bring it above 1


def precision_at(scores: Array, positive: Array, weights: Array, k: int) -> float:
    """Share of the positives, by weight, among the k rows with the highest scores; of all rows if there are fewer.

    Rows that tie for the last places share them: if 3 rows tie for 2 places, each counts for 2/3 of a row. With equal
    weights that is the mean over all ways to break the tie.

    Cost: O(n) time.

    >>> precision_at(np.array([2.0, 1.0, 1.0, 1.0]), np.array([True, True, False, False]), np.ones(4), 3)
    0.5555555555555556
    """
    return top(scores, positive, weights, k)[0]


def top(scores: Array, positive: Array, weights: Array, k: float) -> tuple[float, float]:
    """Precision and recall, by weight, of the k rows with the highest scores, as ``precision_at`` counts them.

    k may be a fraction: 1.5 is the first row, and half of the second. The recall is NaN without positives.

    Cost: O(n) time.

    >>> top(np.array([3.0, 2.0, 1.0]), np.array([True, False, True]), np.ones(3), 1.5)
    (0.6666666666666666, 0.5)
    """
    k = min(k, len(scores))
    place = len(scores) - int(np.ceil(k))
    border = np.partition(scores, place)[place]
    above, tied = scores > border, scores == border
    counted = weights * np.where(above, 1.0, np.where(tied, (k - above.sum()) / tied.sum(), 0.0))
    found, there = counted[positive].sum(), weights[positive].sum()
    # Two sums in different orders: rounding may bring their ratio above 1.
    return min(1.0, float(found / counted.sum())), min(1.0, float(found / there)) if there else np.nan
