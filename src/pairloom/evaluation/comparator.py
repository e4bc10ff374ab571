"""The best fixed weights in hindsight: the minimiser of sum_t L_t(w) over the pairs of a whole stream.

Row t makes pairs with all rows of the other class before it, each of weight c_t = 1 / N_t. A pair's margin is the
difference of the scores of its positive and its negative row, whichever came first. So the sum is

    sum over positives p and negatives n of  c_max(p, n)  l(<w, z_p - z_n>)

This is not what :class:`~pairloom.systems.ExactAUC` minimises, where all pairs weigh the same: here the pairs of a late
row, of which there are more, weigh less each.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.optimize import minimize

from pairloom.base.typing import Array
from pairloom.evaluation.passes import Pass
from pairloom.losses import Hinge, Loss, Square

Scale = Literal["class", "history"]
"""N_t: the rows that row t makes a pair with, or all rows before it."""

RIDGE = 1e-8
"""Of the comparator's mean loss, relative to the mean squared distance of a pair: directions without data stay at 0."""

SMOOTHING = (1e-1, 1e-2, 1e-3, 1e-4)
"""Widths of the round corner in the hinge's place, one after the other; no loss moves by more than half of the last."""


class Comparator(NamedTuple):
    """Weights w (D,), and a bound of how far their mean loss per row (with the ridge) is above the least there is.

    A function with (ridge / 2) ||w||^2 in it is at most ||gradient||^2 / (2 ridge) above its minimum.
    """

    w: Array
    excess: float


@dataclass(frozen=True)
class RoundHinge(Loss):
    """The hinge with a corner of some width: max(0, 1 - m) less at most width / 2, and smooth."""

    width: float = 1e-4

    name = "round hinge"
    smoothness = np.inf

    def value(self, margin: Array) -> Array:
        gap = np.maximum(0.0, 1.0 - margin)
        return np.where(gap < self.width, np.square(gap) / (2.0 * self.width), gap - 0.5 * self.width)

    def derivative(self, margin: Array) -> Array:
        return -np.clip((1.0 - margin) / self.width, 0.0, 1.0)


@dataclass(frozen=True)
class PairWeights:
    """c_t of each row, and ``degrees``: the weight of all pairs, earlier and later, that a row is part of."""

    positive: Array
    c: Array
    degrees: Array

    @classmethod
    def of(cls, positive: Array, normalization: Scale) -> "PairWeights":
        """Those of rows in order, of which some are positive.

        >>> weights = PairWeights.of(np.array([True, False, False, True]), "class")
        >>> weights.c.tolist(), weights.degrees.tolist()
        ([0.0, 1.0, 1.0, 0.5], [2.0, 1.5, 1.5, 1.0])
        """
        sides = np.array([~positive, positive], dtype=float)
        before = np.cumsum(sides, axis=1) - sides
        partners = np.where(positive, before[0], before[1])
        total = partners if normalization == "class" else np.arange(len(positive), dtype=float)
        c = np.divide(1.0, total, out=np.zeros(len(positive)), where=partners > 0)
        after = np.cumsum((sides * c)[:, ::-1], axis=1)[:, ::-1] - sides * c
        return cls(positive, c, c * partners + np.where(positive, after[0], after[1]))

    @property
    def n_rows(self) -> int:
        """Rows that make a pair with one before them."""
        return int((self.c > 0).sum())

    def matrix(self) -> Array:
        """The weight of each pair: (positives, negatives)."""
        p, n = np.flatnonzero(self.positive), np.flatnonzero(~self.positive)
        return np.where(p[:, None] > n, self.c[p][:, None], self.c[n])


def minimiser(own: Pass, k: int, normalization: Scale, penalty: float = 0.0) -> Comparator:
    """w with the least sum_t L_t(w) + (penalty / 2) ||w||^2, for the vector k of a learner, in its feature space.

    Of the square loss in closed form, G w = h, with G and h the weighted sums of d d' and d, d = z_p - z_n: O(T D^2)
    flops. Of other losses by L-BFGS, in coordinates in which G is the identity: O(T^2 + T D) for each of its steps.
    """
    positive = own.batch.y[own.first :] == own.learner.pairs.targets[k]
    weights = PairWeights.of(positive, normalization)
    if weights.n_rows == 0:
        return Comparator(np.zeros(own.dim), 0.0)
    G, h = second_moment(own, weights)
    ridge = penalty / weights.n_rows + (RIDGE * float(np.trace(G)) or RIDGE)
    G.flat[:: len(G) + 1] += 0.5 * ridge
    if type(own.learner.loss) is Square:
        w = np.asarray(cho_solve(cho_factor(G), h))
        return Comparator(w, float(np.square(2.0 * (G @ w - h)).sum() / (2.0 * ridge)))
    return descend_all(own, weights, G, ridge)


def second_moment(own: Pass, weights: PairWeights) -> tuple[Array, Array]:
    """G and h per row. The weights make a graph, and G is a form of its Laplacian: sum_t deg_t z_t z_t' - (C + C')."""
    G, h, sums = np.zeros((own.dim, own.dim)), np.zeros(own.dim), np.zeros((2, own.dim))
    origin: Array | None = None
    for rows, Z in own.blocks():
        origin = Z.mean(axis=0) if origin is None else origin
        Z, at = Z - origin, slice(rows.start - own.first, rows.stop - own.first)
        positive, c, degrees = weights.positive[at], weights.c[at], weights.degrees[at]
        sides = np.array([~positive, positive], dtype=float)[:, :, None] * Z
        before = sums[:, None] + np.cumsum(sides, axis=1) - sides
        partners = c[:, None] * np.where(positive[:, None], before[0], before[1])
        cross = Z.T @ partners
        G += (Z.T * degrees) @ Z - cross - cross.T
        h += np.where(positive, degrees, -degrees) @ Z
        sums += sides.sum(axis=1)
    return G / weights.n_rows, h / weights.n_rows


def descend_all(own: Pass, weights: PairWeights, G: Array, ridge: float) -> Comparator:
    """The minimiser of a loss that is not square."""
    Z = np.concatenate([Z for _, Z in own.blocks()])
    L, C = np.linalg.cholesky(G), weights.matrix() / weights.n_rows
    losses = [RoundHinge(width) for width in SMOOTHING] if type(own.learner.loss) is Hinge else [own.learner.loss]
    w = np.zeros(own.dim)
    for loss in losses:

        def objective(v: Array, loss: Loss = loss) -> tuple[float, Array]:
            w = solve_triangular(L, v, lower=True, trans="T")
            value, gradient = mean_loss(loss, Z, weights.positive, C, w)
            value, gradient = value + 0.5 * ridge * float(w @ w), gradient + ridge * w
            return value, solve_triangular(L, gradient, lower=True)

        options = {"maxiter": 500, "maxcor": 30, "ftol": 1e-11, "gtol": 1e-8}
        found = minimize(objective, L.T @ w, jac=True, method="L-BFGS-B", options=options)
        w = solve_triangular(L, found.x, lower=True, trans="T")
    gradient = mean_loss(losses[-1], Z, weights.positive, C, w)[1] + ridge * w
    corner = 0.5 * SMOOTHING[-1] if len(losses) > 1 else 0.0
    return Comparator(w, float(gradient @ gradient) / (2.0 * ridge) + corner)


def mean_loss(loss: Loss, Z: Array, positive: Array, C: Array, w: Array) -> tuple[float, Array]:
    """The sum over pairs, with their weights C, and its gradient."""
    s = Z @ w
    margins = s[positive][:, None] - s[~positive]
    Q = C * loss.derivative(margins)
    return float((C * loss.value(margins)).sum()), Q.sum(axis=1) @ Z[positive] - Q.sum(axis=0) @ Z[~positive]
