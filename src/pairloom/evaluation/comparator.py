"""The best fixed weights in hindsight: the minimiser of sum_t L_t(w) over the pairs of a whole stream.

Row t forms pairs with all earlier rows of the other class, each pair with weight c_t = 1 / N_t. The margin of a pair is
the score of its positive row minus that of its negative row. So the sum is

    sum over positives p and negatives n of  c_max(p, n)  l(<w, z_p - z_n>)

This differs from the objective of :class:`~pairloom.systems.ExactAUC`, where all pairs have the same weight: here, late
rows have more pairs, each with a smaller weight.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.optimize import minimize

from pairloom.base.typing import Array
from pairloom.evaluation.replay import Pass
from pairloom.losses import Hinge, Loss, Square

Scale = Literal["class", "history"]
"""N_t: the number of partners of row t, or of all rows before it."""

RIDGE = 1e-8
"""Ridge penalty relative to the mean squared distance of a pair: weights in directions without data are 0."""

SMOOTHING = (1e-1, 1e-2, 1e-3, 1e-4)
"""Decreasing widths of the smoothed hinge; losses change by at most half of the last."""


class Comparator(NamedTuple):
    """Weights w (D,), and a bound on the excess of their mean loss per row (with the ridge) over the minimum.

    A ridge-strongly convex function is at most ||gradient||^2 / (2 ridge) above its minimum.
    """

    w: Array
    excess: float


@dataclass(frozen=True)
class SmoothHinge(Loss):
    """The hinge, quadratic over ``width`` before its kink: at most width / 2 below max(0, 1 - m)."""

    width: float = 1e-4

    name = "smooth hinge"
    smoothness = np.inf

    def value(self, margin: Array) -> Array:
        gap = np.maximum(0.0, 1.0 - margin)
        return np.where(gap < self.width, np.square(gap) / (2.0 * self.width), gap - 0.5 * self.width)

    def derivative(self, margin: Array) -> Array:
        return -np.clip((1.0 - margin) / self.width, 0.0, 1.0)


@dataclass(frozen=True)
class PairWeights:
    """c_t of each row, and ``degrees``: the total weight of all pairs of each row, with earlier and later rows."""

    positive: Array
    c: Array
    degrees: Array

    @classmethod
    def of(cls, positive: Array, normalization: Scale) -> "PairWeights":
        """Return the weights of rows in order.

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
        """Number of rows with an earlier partner."""
        return int((self.c > 0).sum())

    def matrix(self) -> Array:
        """Return the weight of each pair: (positives, negatives)."""
        p, n = np.flatnonzero(self.positive), np.flatnonzero(~self.positive)
        return np.where(p[:, None] > n, self.c[p][:, None], self.c[n])


def minimiser(own: Pass, k: int, normalization: Scale, penalty: float = 0.0) -> Comparator:
    """Return the minimiser of sum_t L_t(w) + (penalty / 2) ||w||^2, for vector k of a learner, in its feature space.

    The square loss has a closed form, G w = h, with G and h the weighted sums of d d' and d, d = z_p - z_n: O(T D^2)
    flops. Other losses use L-BFGS, in coordinates in which G is the identity: O(T^2 + T D) per iteration.
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
    return minimise_lbfgs(own, weights, G, ridge)


def second_moment(own: Pass, weights: PairWeights) -> tuple[Array, Array]:
    """Return G and h per row. G is a quadratic form of a graph Laplacian: sum_t deg_t z_t z_t' - (C + C')."""
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


def minimise_lbfgs(own: Pass, weights: PairWeights, G: Array, ridge: float) -> Comparator:
    """Return the minimiser by L-BFGS, for losses other than the square loss."""
    Z = np.concatenate([Z for _, Z in own.blocks()])
    L, C = np.linalg.cholesky(G), weights.matrix() / weights.n_rows
    losses = [SmoothHinge(width) for width in SMOOTHING] if type(own.learner.loss) is Hinge else [own.learner.loss]
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
    """Return the loss over pairs with weights C, and its gradient."""
    s = Z @ w
    margins = s[positive][:, None] - s[~positive]
    Q = C * loss.derivative(margins)
    return float((C * loss.value(margins)).sum()), Q.sum(axis=1) @ Z[positive] - Q.sum(axis=0) @ Z[~positive]
