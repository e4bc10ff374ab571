"""An area under the curve, and how sure it is."""

import numpy as np

from pairloom.base.typing import Array
from pairloom.metrics.auc import mean_auc
from pairloom.metrics.delong import delong
from pairloom.metrics.estimate import Estimate, enclosing


class Area(Estimate):
    """``value``, and the bounds that hold the area of all rows there are with a probability of 95 %."""

    __slots__ = ()


def mean_area(scores: Array, labels: Array, weights: Array, targets: Array) -> Area:
    """The area of scores (rows, targets), mean over the targets that are there; so are the bounds, which is cautious.

    >>> print(mean_area(np.array([[0.1], [0.4], [0.3], [0.9]]), np.array([0, 0, 1, 1]), np.ones(4), np.ones(1)))
    0.7500 (0.0009 to 0.9999)
    """
    value = float(mean_auc(scores[:, None, :], labels, weights, targets)[0])
    bounds = [delong(scores[:, k], labels == target, weights) for k, target in enumerate(targets)]
    there = [bound for bound in bounds if not np.isnan(bound[0])]
    return Area(value, *enclosing(value, *np.mean(there, axis=0).tolist())) if there else Area(np.nan, np.nan, np.nan)
