"""A sum of kernels at few rows, chosen one by one: the mathematics of SparseKernelAUC.

    E(beta) = (alpha / 2) beta' K_JJ beta + L(o),    o = beta K_J,    K_J = (k(x_j, x_i)), j in J, all rows i

with L the squared hinge loss over all pairs (:class:`~pairloom.metrics.pair_sums.PairSums`). Kernel values are (m, n):
a row for each of m basis functions.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from pairloom.base.typing import Array
from pairloom.metrics.pair_sums import PairSums

Columns = Callable[[Array], Array]
"""Kernel values (m, n) between m of the rows, named by their numbers, and all rows."""

JITTER = 1e-10
"""What is added to a singular matrix at first, relative to its diagonal."""

CONVERGED = 1e-10
"""A Newton step that would gain less than this part of E is not taken."""

TIE = 1e-12
"""Candidates whose gains differ by less than this part of E are equally good: the first of them is taken."""

NEWTON_STEPS = 50
HALVINGS = [0.5**k for k in range(20)]
SUFFICIENT = 1e-4
"""Least part of the linear gain that a shortened step must bring."""


@dataclass(frozen=True)
class Basis:
    """Rows J (m,), their coefficients beta (m,), and the scores o (n,) of all rows."""

    rows: Array
    beta: Array
    o: Array

    @property
    def squared_norm(self) -> float:
        """beta' K_JJ beta: f at the basis, times beta."""
        return float(self.beta @ self.o[self.rows])


def objective(sums: PairSums, alpha: float, basis: Basis) -> float:
    """E."""
    return 0.5 * alpha * basis.squared_norm + sums.value(basis.o)


def grow(
    columns: Columns, sums: PairSums, alpha: float, max_support: int, n_candidates: int, tol: float,
    rng: np.random.Generator,
) -> Basis:  # fmt: skip
    """Choose up to ``max_support`` rows, each the best of ``n_candidates`` random ones.

    All coefficients are optimised anew at every power of two and at the end; if a choice gains less than ``tol`` E, at
    once, and if it still does there is no further choice.
    """
    n = len(sums.weight)
    most = min(max_support, n)
    K, basis, settled = np.empty((most, n)), Basis(np.empty(0, np.int64), np.empty(0), np.zeros(n)), True
    while (m := len(basis.rows)) < most:
        free = np.setdiff1d(np.arange(n), basis.rows)
        pool = rng.choice(free, min(n_candidates, len(free)), replace=False)
        values = columns(pool)
        steps, gains = candidate_gains(sums, alpha, basis, pool, values)
        value = objective(sums, alpha, basis)
        best = int(np.argmax(gains >= gains.max() - TIE * value))
        if not gains[best] > tol * value:
            if settled:
                break
            basis, settled = optimise(sums, alpha, basis, K[:m]), True
            continue
        K[m] = values[best]
        basis = Basis(
            np.append(basis.rows, pool[best]), np.append(basis.beta, steps[best]), basis.o + steps[best] * K[m]
        )
        settled = (m + 1) & m == 0
        if settled:
            basis = optimise(sums, alpha, basis, K[: m + 1])
    return basis if settled else optimise(sums, alpha, basis, K[: len(basis.rows)])


def candidate_gains(sums: PairSums, alpha: float, basis: Basis, pool: Array, values: Array) -> tuple[Array, Array]:
    """For each candidate: one Newton step of its coefficient from 0, the others fixed; and by how much E falls.

    The penalty changes by alpha (b f(x_c) + b^2 k(x_c, x_c) / 2).
    """
    at, own = basis.o[pool], values[np.arange(len(pool)), pool]
    slope = values @ sums.gradient(basis.o) + alpha * at
    curvature = np.einsum("mn,mn->m", values, sums.bend(basis.o, values)) + alpha * own
    steps = np.divide(-slope, curvature, out=np.zeros(len(pool)), where=curvature > 0)
    losses = np.array([sums.value(basis.o + b * u) for b, u in zip(steps, values, strict=True)])
    return steps, sums.value(basis.o) - losses - alpha * steps * (at + 0.5 * steps * own)


def optimise(sums: PairSums, alpha: float, basis: Basis, K: Array) -> Basis:
    """The best coefficients of these rows, by Newton's method with halved steps; E falls with every step."""
    rows = basis.rows
    value = objective(sums, alpha, basis)
    for _ in range(NEWTON_STEPS):
        gradient = K @ sums.gradient(basis.o) + alpha * basis.o[rows]
        hessian = K @ sums.bend(basis.o, K).T + alpha * K[:, rows]
        direction = -solve(hessian, gradient)
        gain = -float(gradient @ direction)
        if not gain > CONVERGED * value:
            break
        for length in HALVINGS:
            beta = basis.beta + length * direction
            trial = Basis(rows, beta, beta @ K)
            found = objective(sums, alpha, trial)
            if found < value - SUFFICIENT * length * gain:
                break
        else:
            break
        basis, value = trial, found
    return basis


def solve(A: Array, b: Array) -> Array:
    """A^-1 b for a positive semidefinite A, with as much added to its diagonal as it takes."""
    jitter = 0.0
    scale = float(np.trace(A)) / len(A)
    while True:
        try:
            return np.asarray(cho_solve(cho_factor(A + jitter * scale * np.eye(len(A))), b))
        except LinAlgError:
            jitter = max(JITTER, 10.0 * jitter)
