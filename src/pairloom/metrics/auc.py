"""Area under the curve: the share of pairs of two classes that scores put in order."""

import numpy as np

from pairloom.base.typing import Array


def mass_below(scores: Array, mass: Array) -> Array:
    """Mass of the rows with a lower score than each row, in each column of ``scores``; equal scores count half.

    Cost: O(n log n) time, O(n) numbers.

    >>> mass_below(np.array([[3.0], [2.0], [2.0], [1.0]]), np.array([0.0, 0.0, 1.0, 1.0])).ravel()
    array([2. , 1.5, 1.5, 0.5])
    """
    from scipy.stats import rankdata  # here: it takes longer to import than all the rest

    lowest, highest = (rankdata(scores, method=method, axis=0).astype(int) for method in ("min", "max"))
    order = scores.argsort(axis=0)
    below = np.zeros((len(scores) + 1, scores.shape[1]))
    np.cumsum(mass[order], axis=0, out=below[1:])
    return 0.5 * (np.take_along_axis(below, lowest - 1, axis=0) + np.take_along_axis(below, highest, axis=0))


def weighted_auc(scores: Array, positive: Array, weights: Array) -> Array:
    """Share of the pairs, by weight, that each column of ``scores`` puts in order; ties count half.

    >>> weighted_auc(np.array([[3.0], [2.0], [2.0], [1.0]]), np.array([True, True, False, False]), np.ones(4))
    array([0.875])
    """
    own, negative = np.where(positive, weights, 0.0), np.where(positive, 0.0, weights)
    return np.asarray((own @ mass_below(scores, negative)) / (own.sum() * negative.sum()))


def mean_auc(scores: Array, labels: Array, weights: Array, targets: Array) -> Array:
    """``weighted_auc`` of scores (rows, models, targets): of each model, the mean over targets against the rest.

    NaN until rows of a target and of its rest are there. Rows of weight 0 are not.
    """
    there = weights > 0
    scores, labels, weights = scores[there], labels[there], weights[there]
    seen = [k for k, target in enumerate(targets) if 0 < (labels == target).sum() < len(labels)]
    if not seen:
        return np.full(scores.shape[1], np.nan)
    return np.asarray(np.mean([weighted_auc(scores[:, :, k], labels == targets[k], weights) for k in seen], axis=0))
