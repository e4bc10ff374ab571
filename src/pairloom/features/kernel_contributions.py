"""Contributions of columns to sums of kernels that are products over the columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, lgamma, log, sqrt

import numpy as np

from pairloom.base.compiled import compiled, exp_minus
from pairloom.base.typing import Array
from pairloom.features.compiled_kernels import kernel_row
from pairloom.features.contributions import Contrast, contribute_columns
from pairloom.features.scaling import Scaler

GAUSSIAN, LAPLACE, CAUCHY, LINEAR = 0, 1, 2, 5
"""Codes of the kernels that are products, or sums, over the columns."""

BLOCK = 32
"""Landmarks at a time: their factors stay in the cache."""

ERRORS = {"float32": 1e-8, "float64": 1e-13}
"""Bounds of the error of an integral by its first term, relative to the integrand in the middle, by type."""

TINY = 1e-37
"""Smallest factor."""

Rule = tuple[Array, Array, Array, Array]
"""Quadrature rules: their numbers of nodes q, up to which change of the factors they suffice, nodes, and weights."""


@lru_cache(maxsize=16)
def quadrature(n_players: int, dtype: str) -> Rule:
    """Return Gauss-Legendre rules on [0, 1], the last of which is exact for this number of players.

    The integrand is a polynomial of degree P - 1: ceil(P / 2) nodes are exact. Fewer are enough where factors change
    little. If r is the sum over the factors of |a - b| / (a + b), the coefficient of degree n is at most
    binomial(P, n) (r / P)^n, and the error of q nodes is 4^q q!^4 / ((2 q + 1) (2 q)!^2) times that of degree 2 q.
    """
    most = max(1, ceil(n_players / 2))
    sizes = sorted({q for q in (*range(2, 12), 13, 16, 20, 26, 34, 46, 64, 90, 128) if q < most} | {most})
    limits, nodes, weights = np.empty(len(sizes)), np.zeros((len(sizes), most)), np.zeros((len(sizes), most))
    for k, q in enumerate(sizes):
        at, share = np.polynomial.legendre.leggauss(q)
        nodes[k, :q], weights[k, :q] = (at + 1.0) / 2.0, share / 2.0
        of_power = q * log(4.0) + 4 * lgamma(q + 1) - log(2 * q + 1) - 2 * lgamma(2 * q + 1)
        ways = lgamma(n_players + 1) - lgamma(2 * q + 1) - lgamma(max(1, n_players - 2 * q + 1))
        limits[k] = n_players * np.exp((log(ERRORS[dtype]) - of_power - ways) / (2 * q))
    limits[-1] = np.inf
    return np.array(sizes), limits, nodes.astype(dtype), weights.astype(dtype)


def contribute_kernels(contrast: Contrast, code: int, landmarks: Array, beta: Array, out: Array) -> None:
    r"""Add those of a sum of kernels, sum_j beta_j k(u, l_j), to ``out``.

    .. math::

        \phi_i = \sum_j \beta_j (a_{ij} - b_{ij}) \int_0^1 \prod_{k \ne i} (t a_{kj} + (1 - t) b_{kj}) \, dt,

    with the factors a of the row and b of the background row, the product over the columns of a player. The rows of
    ``contrast`` are scaled such that the width of the kernel is 1. ``code``: that of the kernel, Gaussian, Laplace or
    Cauchy; ``landmarks`` (d, m), ``beta`` (m, classes).

    Cost: for each pair of rows, about 5 P m q flops, for q up to P / 2, in the type of the landmarks.
    """
    dtype = landmarks.dtype
    used, group = np.unique(contrast.players, return_inverse=True)
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(len(used) + 1))
    own = np.zeros((len(contrast.rows), len(used), beta.shape[1]))
    U, V = (np.ascontiguousarray(a[:, order], dtype) for a in (contrast.rows, contrast.background))
    points = np.ascontiguousarray(landmarks[order])
    contribute_products(code, U, V, starts, points, beta, contrast.weights, quadrature(len(used), dtype.name), own)
    out[:, used] += own


@dataclass(frozen=True)
class ExpansionSum:
    """Sums of kernels k(z, support) of scaled rows z: in ``terms``, supports (n, d) and coefficients (classes, n).

    ``code``: that of the Gaussian, the Laplace, the Cauchy or the linear kernel; ``gamma``: its width.
    """

    scaler: Scaler
    code: int
    gamma: float
    terms: Sequence[tuple[Array, Array]]

    def add(self, X: Array, out: Array) -> None:
        Z, k = self.scaler.apply(X), 0
        for supports, coef in self.terms:
            own = slice(k, k + len(coef))
            for i, z in enumerate(Z if len(supports) else Z[:0]):
                values = np.empty(len(supports), Z.dtype)
                kernel_row(self.code, self.gamma, z, supports, values)
                out[i, own] += coef.astype(float) @ values
            k = own.stop

    def contribute(self, contrast: Contrast, out: Array) -> None:
        factor = sqrt(self.gamma) if self.code == GAUSSIAN else self.gamma
        rows, background = self.scaler.apply(contrast.rows), self.scaler.apply(contrast.background)
        k = 0
        for supports, coef in self.terms:
            own = slice(k, k + len(coef))
            k, beta = own.stop, np.ascontiguousarray(coef.T, float)
            if not len(supports):
                continue
            one = Contrast(rows, background, contrast.players, np.ascontiguousarray(contrast.weights[:, :, own]))
            added = np.zeros((*out.shape[:2], len(coef)))
            if self.code == LINEAR:
                plain = np.zeros(rows.shape[1], rows.dtype), np.zeros(0, rows.dtype), np.ones(rows.shape[1], rows.dtype)
                contribute_columns(*one, *plain, supports.T.astype(float) @ beta, added)
            else:
                scaled, points = one._replace(rows=factor * rows, background=factor * background), factor * supports.T
                contribute_kernels(scaled, self.code, np.ascontiguousarray(points), beta, added)
            out[:, :, own] += added


@compiled
def contribute_products(
    code: int, U: Array, V: Array, starts: Array, landmarks: Array, beta: Array, weights: Array, rule: Rule, out: Array
) -> None:
    """Add those of all pairs of rows; ``starts``: the first column of each player, and the end."""
    kind, n_players = U.dtype, len(starts) - 1
    others, a = np.empty((len(V), n_players, BLOCK), kind), np.empty((n_players, BLOCK), kind)
    steps, sums = np.empty((n_players, BLOCK), kind), np.empty((n_players, BLOCK), kind)
    now = np.empty((n_players, BLOCK), kind)
    coef = np.zeros((beta.shape[1], BLOCK))
    for first in range(0, landmarks.shape[1], BLOCK):
        n = min(BLOCK, landmarks.shape[1] - first)
        points = np.zeros((landmarks.shape[0], BLOCK), kind)
        points[:, :n] = landmarks[:, first : first + n]
        for k in range(beta.shape[1]):
            coef[k, :] = 0.0
            coef[k, :n] = beta[first : first + n, k]
        for b in range(len(V)):
            fill_factors(code, V[b], starts, points, others[b])
        for i in range(len(U)):
            fill_factors(code, U[i], starts, points, a)
            for b in range(len(V)):
                integrate(a, others[b], rule, steps, now, sums)
                for p in range(n_players):
                    for k in range(beta.shape[1]):
                        total = 0.0
                        for j in range(BLOCK):
                            total += coef[k, j] * steps[p, j] * sums[p, j]
                        out[i, p, k] += weights[i, b, k] * total


@compiled
def fill_factors(code: int, u: Array, starts: Array, points: Array, out: Array) -> None:
    """Fill ``out`` (players, block) with the factors of a row."""
    one, tiny = u.dtype.type(1), u.dtype.type(TINY)
    for p in range(len(starts) - 1):
        own = out[p]
        own[:] = 1.0 if code == CAUCHY else 0.0
        for c in range(starts[p], starts[p + 1]):
            x, point = u[c], points[c]
            for j in range(BLOCK):
                away = x - point[j]
                if code == CAUCHY:
                    own[j] *= one + away * away
                elif code == LAPLACE:
                    own[j] += abs(away)
                else:
                    own[j] += away * away
        for j in range(BLOCK):
            own[j] = max(tiny, one / own[j] if code == CAUCHY else exp_minus(own[j]))


@compiled
def integrate(a: Array, b: Array, rule: Rule, steps: Array, now: Array, sums: Array) -> None:
    """Fill ``steps`` with a - b, and ``sums`` with the integrals of the products of all other factors.

    The product of the others is that of all, divided by the factor. A factor that is nearly 0 at all nodes is harmless:
    so is its step.
    """
    sizes, limits, nodes, weights = rule
    change, product = np.zeros(BLOCK, a.dtype), np.empty(BLOCK, a.dtype)
    for p in range(a.shape[0]):
        for j in range(BLOCK):
            steps[p, j] = a[p, j] - b[p, j]
            sums[p, j] = 0.0
            change[j] += abs(steps[p, j]) / (a[p, j] + b[p, j])
    largest, chosen = change.max(), 0
    while limits[chosen] < largest:
        chosen += 1
    for q in range(sizes[chosen]):
        t, share = nodes[chosen, q], weights[chosen, q]
        product[:] = share
        for p in range(a.shape[0]):
            for j in range(BLOCK):
                now[p, j] = b[p, j] + t * steps[p, j]
                product[j] *= now[p, j]
        for p in range(a.shape[0]):
            for j in range(BLOCK):
                sums[p, j] += product[j] / now[p, j]
