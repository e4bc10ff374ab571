"""Concordance: the share of pairs in the right order, for graded or real labels."""

import warnings
from typing import Any

import numpy as np
from scipy.stats import weightedtau
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import check_consistent_length, column_or_1d

from pairloom.base.typing import Array
from pairloom.base.validation import check_weight

ROUNDING = 1e-12
"""Relative tolerance of sums over all pairs."""


def concordance(y_true: Any, y_score: Any, *, sample_weight: Any = None, groups: Any = None) -> float:
    r"""Return the share of pairs with different labels that the scores order correctly; ties count half.

    .. math:: \sum_{y_i > y_j} w_i w_j \left([s_i > s_j] + \tfrac12 [s_i = s_j]\right) / \sum_{y_i > y_j} w_i w_j

    For two labels it is the AUC; without ties it is (1 + Kendall's tau) / 2. 1 is perfect, 0.5 is chance.

    Parameters
    ----------
    y_true
        Labels, graded or real.
    y_score
        Scores; only their order matters.
    sample_weight
        Weights of the rows; the weight of a pair is their product.
    groups
        Only pairs within a group count. All pairs have equal weight, so that large groups have more influence.

    Cost: O(n log n), regardless of the number of groups.

    >>> concordance([0, 1, 1, 2], [0.1, 0.3, 0.2, 0.2])
    0.7
    """
    y, s = column_or_1d(y_true), column_or_1d(y_score)
    assert_all_finite(y, input_name="y_true")
    assert_all_finite(s, input_name="y_score")
    g = np.zeros(len(y), int) if groups is None else np.unique(column_or_1d(groups), return_inverse=True)[1]
    check_consistent_length(y, s, g)
    weight = check_weight(sample_weight, len(y))
    keep = weight > 0
    y, s, g, weight = y[keep], s[keep], g[keep], weight[keep]
    by_label, by_score = _ranks(g, y), _ranks(g, s)
    across, labels_differ, scores_differ = (_pairs(kind, weight) for kind in (g, by_label, by_score))
    inside = labels_differ - across
    if not inside > ROUNDING * labels_differ:
        text = "no pair of different labels (within a group): the concordance is undefined"
        warnings.warn(text, UndefinedMetricWarning, stacklevel=2)
        return float("nan")
    right_less_wrong = 0.0
    if scores_differ > 0:
        # Kendall's tau-b. Ranks are by group first, so that all pairs across groups are in order; subtract them.
        tau = weightedtau(by_label, by_score, rank=False, weigher=weight.__getitem__, additive=False).statistic
        right_less_wrong = float(tau) * np.sqrt(labels_differ * scores_differ) - across
    return float(np.clip(0.5 + 0.5 * right_less_wrong / inside, 0.0, 1.0))


def _ranks(g: Array, values: Array) -> Array:
    """Return ranks by group, then by value; equal values of a group have the same rank."""
    order = np.lexsort((values, g))
    steps = (np.diff(g[order]) != 0) | (values[order][1:] != values[order][:-1])
    ranks = np.empty(len(g), np.int64)
    ranks[order] = np.concatenate([[0], np.cumsum(steps)])[: len(g)]
    return ranks


def _pairs(kind: Array, weight: Array) -> float:
    """Return the weight of all pairs of different kinds."""
    return float(weight.sum() ** 2 - np.square(np.bincount(kind, weights=weight)).sum()) / 2.0
