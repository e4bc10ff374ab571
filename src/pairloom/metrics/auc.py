"""AUC: the share of pairs of two classes that the scores order correctly."""

import numpy as np

from pairloom.base.typing import Array


def mass_below(scores: Array, mass: Array) -> Array:
    """Return the mass of the rows with a lower score than each row, per column of ``scores``; ties count half.

    Cost: O(n log n) time, O(n) numbers.

    >>> mass_below(np.array([[3.0], [2.0], [2.0], [1.0]]), np.array([0.0, 0.0, 1.0, 1.0])).ravel()
    array([2. , 1.5, 1.5, 0.5])
    """
    n, n_columns = scores.shape
    order = scores.argsort(axis=0)
    ordered = np.take_along_axis(scores, order, axis=0)
    below = np.zeros((n + 1, n_columns))
    np.cumsum(mass[order], axis=0, out=below[1:])
    rises = np.ones((n + 1, n_columns), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=rises[1:-1])
    # Start and end of the run of equal scores around each position in the sorted order.
    place = np.arange(n)[:, None]
    first = np.maximum.accumulate(np.where(rises[:-1], place, 0), axis=0)
    end = np.minimum.accumulate(np.where(rises[1:], place + 1, n)[::-1], axis=0)[::-1]
    middle = 0.5 * (np.take_along_axis(below, first, axis=0) + np.take_along_axis(below, end, axis=0))
    found: Array = np.empty_like(middle)
    np.put_along_axis(found, order, middle, axis=0)
    return found


def pairs_in_order(scores: Array, positive: Array, weights: Array) -> tuple[Array, float]:
    """Return the weight of the pairs that each column of ``scores`` orders correctly (ties: half), and of all pairs.

    Despite rounding, the first never exceeds the second, and they are equal if all pairs are in order.

    >>> pairs_in_order(np.array([[3.0], [2.0], [2.0], [1.0]]), np.array([True, True, False, False]), np.ones(4))
    (array([3.5]), 4.0)
    """
    own, negative = np.where(positive, weights, 0.0), np.where(positive, 0.0, weights)
    total = float(own.sum() * negative.sum())
    found = np.minimum(own @ mass_below(scores, negative), total)
    found[scores[positive].min(axis=0) > scores[~positive].max(axis=0)] = total
    return found, total


def weighted_auc(scores: Array, positive: Array, weights: Array) -> Array:
    """Return the weighted share of the pairs that each column of ``scores`` orders correctly; ties count half.

    It is in [0, 1] despite rounding, and exactly 1 if all pairs are in order.

    >>> weighted_auc(np.array([[3.0], [2.0], [2.0], [1.0]]), np.array([True, True, False, False]), np.ones(4))
    array([0.875])
    """
    found, total = pairs_in_order(scores, positive, weights)
    return np.asarray(found / total)


def mean_auc(scores: Array, labels: Array, weights: Array, targets: Array) -> Array:
    """Return ``weighted_auc`` of scores (rows, models, targets): of each model, the mean over targets against the rest.

    NaN without rows of a target and of the rest. Rows of weight 0 are ignored.
    """
    keep = weights > 0
    scores, labels, weights = scores[keep], labels[keep], weights[keep]
    seen = [k for k, target in enumerate(targets) if 0 < (labels == target).sum() < len(labels)]
    if not seen:
        return np.full(scores.shape[1], np.nan)
    return np.asarray(np.mean([weighted_auc(scores[:, :, k], labels == targets[k], weights) for k in seen], axis=0))
