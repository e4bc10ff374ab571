"""The squared hinge loss over all pairs of a positive and a negative, in O(n log n).

    L(o) = 1 / (2 W+ W-) sum_{i in P, j in N} w_i w_j max(0, 1 - (o_i - o_j))^2

With shifted scores v_i = o_i - 1 and v_j = o_j, a pair counts if v_j > v_i, as (v_j - v_i)^2. One pass over the rows
sorted by v, with the mass, mean and scatter of the negatives above, gives the loss and its gradient for the positives;
a pass in the other direction, with the positives below, gives the gradient for the negatives.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pairloom.base.compiled import compiled
from pairloom.base.typing import Array


@dataclass(frozen=True)
class PairSums:
    """L, its gradient and its generalised Hessian as functions of the scores o of all rows.

    Parameters
    ----------
    positive : mask of the positive rows; at least one row is positive, and at least one is negative.
    weight : weight of each row, above 0.

    Notes
    -----
    Cost: O(n log n) time for each score vector, O(n) numbers.

    References
    ----------
    Airola, Pahikkala and Salakoski, Training linear ranking SVMs in linearithmic time using red-black trees, Pattern
    Recognition Letters 2011 (sums of this kind).

    Examples
    --------
    >>> sums = PairSums(np.array([True, False, False]), np.ones(3))
    >>> sums.value(np.array([2.0, 0.0, 1.5]))
    0.0625
    """

    positive: Array
    weight: Array

    @cached_property
    def total(self) -> float:
        """W+ W-."""
        return float(self.weight[self.positive].sum() * self.weight[~self.positive].sum())

    def value(self, o: Array) -> float:
        """Return L."""
        v = self._shifted(o)
        return float(scan_value(v, self.positive, self.weight, np.argsort(v))) / (2.0 * self.total)

    def gradient(self, o: Array) -> Array:
        """Return dL / do."""
        v, order = self._sorted(o)
        gradient = np.empty(len(o))
        scan_gradient(v, self.positive, self.weight, order, gradient)
        return gradient / self.total

    def hessian_product(self, o: Array, U: Array) -> Array:
        """Return the generalised Hessian at o, the Laplacian of the graph of active pairs, times each row of U."""
        _, order = self._sorted(o)
        product = np.empty(U.shape)
        scan_laplacian(self.positive, self.weight, order, U, product)
        product /= self.total
        return product

    @cached_property
    def _negatives_first(self) -> Array:
        return np.argsort(self.positive, kind="stable")

    def _shifted(self, o: Array) -> Array:
        """Return v minus the rounded mean score, to reduce rounding errors; an integer shift keeps ties exact."""
        return np.asarray((o - np.rint(o.mean())) - self.positive)

    def _sorted(self, o: Array) -> tuple[Array, Array]:
        """Return v and its sort order; among equal scores, negatives come first, so that they form no pair."""
        v = self._shifted(o)
        return v, self._negatives_first[np.argsort(v[self._negatives_first], kind="stable")]


@dataclass(frozen=True)
class EveryPair(PairSums):
    """The specification: the same sums pair by pair, in O(n+ n-) time and memory."""

    def value(self, o: Array) -> float:
        masses = self._sides()[2]
        return float((masses * np.square(self._gaps(o))).sum() / 2.0)

    def gradient(self, o: Array) -> Array:
        i, j, masses = self._sides()
        slopes = masses * self._gaps(o)
        gradient = np.empty(len(o))
        gradient[i], gradient[j] = -slopes.sum(axis=1), slopes.sum(axis=0)
        return gradient

    def hessian_product(self, o: Array, U: Array) -> Array:
        i, j, masses = self._sides()
        active = masses * (self._gaps(o) > 0)
        product = np.empty(U.shape)
        product[:, i] = U[:, i] * active.sum(axis=1) - U[:, j] @ active.T
        product[:, j] = U[:, j] * active.sum(axis=0) - U[:, i] @ active
        return product

    def _sides(self) -> tuple[Array, Array, Array]:
        i, j = np.flatnonzero(self.positive), np.flatnonzero(~self.positive)
        return i, j, np.outer(self.weight[i], self.weight[j]) / self.total

    def _gaps(self, o: Array) -> Array:
        """Return max(0, v_j - v_i) of all pairs."""
        v = self._shifted(o)
        return np.asarray(np.maximum(0.0, v[~self.positive][None, :] - v[self.positive][:, None]))


@compiled
def scan_value(v: Array, positive: Array, weight: Array, order: Array) -> float:
    """Return the sum of w_i w_j (v_j - v_i)^2 over the pairs with v_j > v_i.

    Mean and scatter of the negatives above, instead of sums of v and v^2, avoid cancellation.
    """
    value, mass, mean, scatter = 0.0, 0.0, 0.0, 0.0
    for r in range(order.shape[0] - 1, -1, -1):
        i = order[r]
        gap = v[i] - mean
        if positive[i]:
            value += weight[i] * (mass * gap * gap + scatter)
        else:
            mass += weight[i]
            mean += weight[i] / mass * gap
            scatter += weight[i] * gap * (v[i] - mean)
    return value


@compiled
def scan_gradient(v: Array, positive: Array, weight: Array, order: Array, gradient: Array) -> None:
    """Fill ``gradient`` with half the gradient of ``scan_value``."""
    n = order.shape[0]
    for own in (True, False):
        mass, mean = 0.0, 0.0
        for r in range(n):
            i = order[n - 1 - r if own else r]
            gap = v[i] - mean
            if positive[i] == own:
                gradient[i] = weight[i] * mass * gap
            else:
                mass += weight[i]
                mean += weight[i] / mass * gap


@compiled
def scan_laplacian(positive: Array, weight: Array, order: Array, U: Array, product: Array) -> None:
    """Fill ``product`` with sum_j w_i w_j (u_i - u_j) over the partners j of each row i, for each u."""
    n = order.shape[0]
    for k in range(U.shape[0]):
        for own in (True, False):
            mass, total = 0.0, 0.0
            for r in range(n):
                i = order[n - 1 - r if own else r]
                if positive[i] == own:
                    product[k, i] = weight[i] * (mass * U[k, i] - total)
                else:
                    mass += weight[i]
                    total += weight[i] * U[k, i]
