"""Strata of CSR points: a row costs its stored entries for each stratum, not all columns.

A centre moves by multiplying all of it and adding the row; here the factor is kept apart.
"""

from typing import Any, NamedTuple

import numpy as np

from pairloom.base.compiled import compiled
from pairloom.base.csr import FOLD
from pairloom.base.tree import Rounded, node
from pairloom.base.typing import Array
from pairloom.memory.base import Plan


@node
class LazyCenters:
    """c_j = factor_j c_hat[:, j], with ``squares`` ||c_j||^2; ``stale``: strata whose dense centres are out of date."""

    c_hat: Array
    factors: Array
    squares: Array
    stale: Array

    @classmethod
    def of(cls, centers: Rounded, used: Array, center: Array) -> "LazyCenters":
        """The form of the centres in use, which lack ``center``, the point by which dense rows are centred."""
        c_hat = np.zeros(centers.shape[::-1])
        cap = len(centers) // len(used)
        for j in (g * cap + k for g in range(len(used)) for k in range(used[g])):
            c_hat[:, j] = centers[j] + center if center.size else centers[j]
        squares = np.square(c_hat).sum(axis=0)
        return cls(c_hat, np.ones(len(centers)), squares, np.zeros(len(centers), bool))


class ClusterRule(NamedTuple):
    """How rows join strata: one clustering for all or not, representative, step of a centre (0: the mean), radius.

    ``tie``: distances that differ by less count as equal. ``spare``: below this share of a row's weight a stratum is
    given up.
    """

    joint: bool
    representative: int
    constant_step: float
    eps: float
    tie: float
    spare: float


@compiled
def center_step(constant_step: float, weight: float, share: float) -> tuple[float, float]:
    """How far a centre moves, and what a unit of squared distance adds to the scatter; constant_step 0 is the mean."""
    if constant_step == 0:
        return share, weight * (1.0 - share)
    step = 1.0 - (1.0 - constant_step) ** weight
    return step, (1.0 - constant_step) / (constant_step * (2.0 - constant_step)) * step * (2.0 - step)


@compiled
def find_room(mass: Array, used: int, limit: float) -> int:
    """``Strata._room`` among the strata of a clustering; -1 if there is none. ``limit``: what is next to nothing."""
    if used < mass.shape[0]:
        return used
    lightest = int(np.argmin(mass))
    return lightest if mass[lightest] < limit else -1


@compiled
def plan_rows(
    rows: Any, y: Array, weight: Array, draws: Array, rule_: Any, strata: Any, centers: Any, plan_: Any
) -> None:  # fmt: skip
    """``plan_strata`` for CSR rows: their data, indices and indptr; ``centers``: the fields of ``LazyCenters``."""
    rule, plan = ClusterRule(*rule_), Plan(*plan_)
    (data, indices, indptr), (scatter, used, mass), (c_hat, factors, squares, stale) = rows, strata, centers
    cap = factors.shape[0] // used.shape[0]
    products = np.empty(cap)
    for i in range(y.shape[0]):
        cols, vals = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
        g = 0 if rule.joint else int(y[i])
        first = g * cap
        square = 0.0
        for e in range(vals.shape[0]):
            square += float(vals[e]) * float(vals[e])
        tol = rule.tie * (1.0 + square) / 2.0
        near, distance = nearest_row(cols, vals, square, c_hat, factors, squares, first, used[g], tol, products)
        j = first + near
        far = used[g] == 0 or rule.eps < 0 or distance - tol > rule.eps
        place = find_room(mass[first : first + cap], used[g], rule.spare * weight[i]) if far else -1
        if place >= 0:
            j = first + place
            if place < used[g]:
                c_hat[:, j] = 0.0
                factors[j] = 1.0
            used[g] = max(used[g], place + 1)
            mass[j] = weight[i]
            scatter[j] = 0.0
            plan.blend[i] = 1.0
            squares[j] = square
            for e in range(cols.shape[0]):
                c_hat[cols[e], j] = vals[e]
        else:
            mass[j] += weight[i]
            share = weight[i] / mass[j]
            step, spread = center_step(rule.constant_step, weight[i], share)
            scatter[j] += spread * distance
            move_center(c_hat, factors, squares, j, cols, vals, square, products[near], step)
            if rule.representative == 0:
                plan.blend[i] = 1.0
            elif rule.representative == 1:
                plan.blend[i] = 1.0 if draws[i, 0] < share else 0.0
            else:
                plan.blend[i] = step
        stale[j] = True
        plan.slot[i] = j
        plan.mass[i] = mass[j]


@compiled
def nearest_row(
    cols: Array, vals: Array, square: float, c_hat: Array, factors: Array, squares: Array,
    first: int, count: int, tol: float, products: Array,
) -> tuple[int, float]:  # fmt: skip
    """``nearest`` by ||u||^2 - 2 <u, c_j> + ||c_j||^2; fills ``products`` <u, c_j>."""
    products[:count] = 0.0
    for e in range(cols.shape[0]):
        x, row = float(vals[e]), c_hat[cols[e], first : first + count]
        for j in range(count):
            products[j] += x * row[j]
    smallest = np.inf
    for j in range(count):
        products[j] *= factors[first + j]
        smallest = min(smallest, square - 2.0 * products[j] + squares[first + j])
    for j in range(count):
        distance = square - 2.0 * products[j] + squares[first + j]
        if distance <= smallest + tol:
            return j, max(0.0, distance)
    return 0, np.inf


@compiled
def move_center(
    c_hat: Array, factors: Array, squares: Array, j: int, cols: Array, vals: Array, square: float, product: float,
    step: float,
) -> None:  # fmt: skip
    """c_j <- c_j + step (u - c_j), with ||u||^2 and <u, c_j> given; a step of 1 passes over all columns."""
    stay = 1.0 - step
    squares[j] = max(0.0, stay * stay * squares[j] + 2.0 * step * stay * product + step * step * square)
    factors[j] *= stay
    if factors[j] < FOLD:
        for c in range(c_hat.shape[0]):
            c_hat[c, j] *= factors[j]
        factors[j] = 1.0
    by = step / factors[j]
    for e in range(cols.shape[0]):
        c_hat[cols[e], j] += by * vals[e]


@compiled
def write_centers(centers: Array, center: Array, c_hat: Array, factors: Array, stale: Array) -> None:
    """The dense centres that are out of date, less the point m that dense rows are centred by."""
    js = np.flatnonzero(stale)
    for c in range(c_hat.shape[0]):
        m = center[c] if center.shape[0] > 0 else 0.0
        for j in js:
            centers[j, c] = factors[j] * c_hat[c, j] - m
    stale[:] = False
