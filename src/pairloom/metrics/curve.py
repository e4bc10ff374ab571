"""Metrics for the top of a ranking: partial AUC, average precision, precision at k."""

import numpy as np

from pairloom.base.typing import Array


def mass_above(scores: Array, positive: Array, weights: Array) -> tuple[Array, Array]:
    """Return the weight of the positives and of the negatives at or above each distinct score, from the top; 0 first.

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
    """Return the area under the ROC curve up to a false positive rate of ``max_fpr``, standardised to 0.5 for chance.

    As :func:`sklearn.metrics.roc_auc_score`, and for infinite scores too.

    Cost: O(n log n). Reference: McClish, Analyzing a portion of the ROC curve, Medical Decision Making 1989.

    >>> partial_auc(np.array([4.0, 3.0, 2.0, 1.0]), np.array([True, False, True, False]), np.ones(4), 0.5)
    0.6666666666666666
    """
    from sklearn.metrics import roc_auc_score  # imported here: it is slow to import

    area = roc_auc_score(positive, ranks(scores), sample_weight=weights, max_fpr=max_fpr)
    return min(1.0, float(area))  # rounding may exceed 1


def average_precision(scores: Array, positive: Array, weights: Array) -> float:
    """Return the mean, over the positives, of the precision at their scores; equal scores count together.

    As :func:`sklearn.metrics.average_precision_score`, and for infinite scores too.

    Cost: O(n log n).

    >>> average_precision(np.array([4.0, 3.0, 2.0, 1.0]), np.array([True, False, True, False]), np.ones(4))
    0.8333333333333333
    """
    from sklearn.metrics import average_precision_score

    return min(1.0, float(average_precision_score(positive, ranks(scores), sample_weight=weights)))


def ranks(scores: Array) -> Array:
    """Return integers in the order of the scores: scikit-learn rejects infinite scores.

    >>> ranks(np.array([0.5, np.inf, -np.inf, 0.5]))
    array([1, 2, 0, 1])
    """
    return np.asarray(np.unique(scores, return_inverse=True)[1])


def precision_at(scores: Array, positive: Array, weights: Array, k: int) -> float:
    """Return the weighted share of positives among the k rows with the highest scores, or all rows if there are fewer.

    Rows that tie for the last places share them: if 3 rows tie for 2 places, each counts as 2/3 of a row. With equal
    weights that is the mean over all ways to break the tie.

    Cost: O(n) time.

    >>> precision_at(np.array([2.0, 1.0, 1.0, 1.0]), np.array([True, True, False, False]), np.ones(4), 3)
    0.5555555555555556
    """
    return top(scores, positive, weights, k)[0]


def top(scores: Array, positive: Array, weights: Array, k: float) -> tuple[float, float]:
    """Return weighted precision and recall of the k rows with the highest scores; ties as in ``precision_at``.

    k may be a fraction: 1.5 is the first row and half of the second. The recall is NaN without positives.

    Cost: O(n) time.

    >>> top(np.array([3.0, 2.0, 1.0]), np.array([True, False, True]), np.ones(3), 1.5)
    (0.6666666666666666, 0.5)
    """
    k = min(k, len(scores))
    place = len(scores) - int(np.ceil(k))
    border = np.partition(scores, place)[place]
    above, tied = scores > border, scores == border
    counted = weights * np.where(above, 1.0, np.where(tied, (k - above.sum()) / tied.sum(), 0.0))
    hits, positives = counted[positive].sum(), weights[positive].sum()
    # The sums are in different orders, so rounding may make their ratio exceed 1.
    return min(1.0, float(hits / counted.sum())), min(1.0, float(hits / positives)) if positives else np.nan
