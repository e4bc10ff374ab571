"""Compiled loops over CSR rows: the model's lazy form, and what a step does to it.

    w = sigma w_hat,    w_bar = a w_hat + b u_hat

A step scales sigma and changes the entries of w_hat and u_hat where the gradient has any. All is in float64. ``center``
is the point m that the scaling takes from every row, or empty: scores are <w, z - m>, with mu = <w_hat, m> and
nu = <u_hat, m> carried along; pairs do not see it.
"""

from typing import NamedTuple

import numpy as np

from pairloom.base.compiled import compiled, dot
from pairloom.base.csr import FOLD
from pairloom.base.typing import Array
from pairloom.engines.arguments import Objective, Partners, Row
from pairloom.losses import loss_slope, loss_value
from pairloom.pairs import pair_offset, pair_sign

SIGMA, A, B, SQUARE, MU, NU = range(6)
"""Factors of a model; SQUARE is ||w||^2, kept up only if w is bounded."""

CANCEL = 16.0
"""So is ``a``, once it is so many times sigma: a w_hat and b u_hat would cancel."""

SHRUNK = 1e4
"""The same, between two averages."""


class Entries(NamedTuple):
    """The stored entries of one row."""

    cols: Array
    vals: Array


class Lists(NamedTuple):
    """The points of the slots as lists of entries; fields as in ``LazyModel``."""

    columns: Array
    values: Array
    counts: Array
    stale: Array


class Lazy(NamedTuple):
    """The lazy form of one model: w_hat, u_hat, its factors, and the point m."""

    w: Array
    u: Array
    f: Array
    center: Array


class Room(NamedTuple):
    """Where a gradient is put together: its entries ``v`` in the columns ``touched``.

    ``scratch`` and ``row``, with room for all columns, are zero between two gradients; ``seen`` has one place more.
    ``row`` and ``seen`` are for steps per coordinate, and empty without these.
    """

    scratch: Array
    touched: Array
    v: Array
    row: Array
    seen: Array


@compiled
def average_rows(w: Array, u: Array, f: Array, rho: float) -> None:
    """w_bar <- w_bar + rho (w - w_bar)."""
    f[A] = (1.0 - rho) * f[A] + rho * f[SIGMA]
    f[B] *= 1.0 - rho
    if not (abs(f[A]) <= CANCEL * abs(f[SIGMA]) and f[B] > FOLD):
        fold(w, u, f)


@compiled
def gather(a: Array, cols: Array, vals: Array) -> float:
    """<a, row>."""
    total = 0.0
    for e in range(cols.shape[0]):
        total += a[cols[e]] * vals[e]
    return total


@compiled
def square_of(vals: Array) -> float:
    """||row||^2."""
    total = 0.0
    for e in range(vals.shape[0]):
        total += vals[e] * vals[e]
    return total


@compiled
def scatter(a: Array, cols: Array, vals: Array, factor: float) -> None:
    """a <- a + factor row."""
    for e in range(cols.shape[0]):
        a[cols[e]] += factor * vals[e]


@compiled
def row_losses(
    model: Lazy, s: float, row: Row, objective: Objective, points: Lists, labels: Array, partners: Partners
) -> float:  # fmt: skip
    """``pair_kernels.losses_of``; s is <w_hat, z>."""
    columns, values, counts = points.columns, points.values, points.counts
    loss, pairs, p, q = objective.loss, objective.pairs, partners.p, partners.q
    g, sigma = 0.0, model.f[SIGMA]
    for k in range(partners.slot.shape[0]):
        j = partners.slot[k]
        label = labels[j]
        a = pair_sign(pairs, row.y, label, row.target)
        delta = sigma * (s - gather(model.w, columns[j, : counts[j]], values[j, : counts[j]]))
        margin = a * delta + pair_offset(pairs, row.y, label, row.target)
        g += p[k] * loss_value(loss, margin)
        q[k] = -p[k] * a * loss_slope(loss, margin)
    return g


@compiled
def combine_rows(room: Room, z: Entries, points: Lists, partners: Partners) -> int:
    """``pair_kernels.combine``: v <- sum_k q_k (B_k - z); returns the number of its entries."""
    columns, values, counts = points.columns, points.values, points.counts
    scratch, touched, v, slot, q = room.scratch, room.touched, room.v, partners.slot, partners.q
    cols, vals = z.cols, z.vals
    psi = 0.0
    for k in range(slot.shape[0]):
        psi -= q[k]
    for e in range(cols.shape[0]):
        scratch[cols[e]] = psi * vals[e]
    for k in range(slot.shape[0]):
        j = slot[k]
        for e in range(counts[j] if q[k] != 0 else 0):
            scratch[columns[j, e]] += q[k] * values[j, e]
    n = collect(scratch, touched, v, 0, cols)
    for k in range(slot.shape[0]):
        if q[k] != 0:
            n = collect(scratch, touched, v, n, columns[slot[k], : counts[slot[k]]])
    return n


@compiled
def collect(scratch: Array, touched: Array, v: Array, n: int, cols: Array) -> int:
    """Move the entries of ``scratch`` in some columns to the end of v."""
    for e in range(cols.shape[0]):
        x = scratch[cols[e]]
        if x != 0:
            touched[n] = cols[e]
            v[n] = x
            n += 1
            scratch[cols[e]] = 0.0
    return n


@compiled
def step_rows(
    w: Array, u: Array, f: Array, center: Array, touched: Array, v: Array, squared_norm: float,
    keep: float, rate: float, threshold: float, bound: float,
) -> None:  # fmt: skip
    """``fused.apply_step``; w_bar stays where it is."""
    move_rows(w, u, f, center, touched, v, squared_norm, keep, rate, bound < np.inf)
    limit_rows(w, u, f, center, threshold, bound)


@compiled
def move_rows(
    w: Array, u: Array, f: Array, center: Array, touched: Array, v: Array, squared_norm: float,
    keep: float, rate: float, bounded: bool,
) -> None:  # fmt: skip
    """w <- keep w - rate v."""
    if bounded:
        along = f[SIGMA] * gather(w, touched, v)
        f[SQUARE] = keep * keep * f[SQUARE] - 2.0 * keep * rate * along + rate * rate * squared_norm
    f[SIGMA] *= keep
    # The parts of a heavy row shrink w many times before the next average.
    if not abs(f[SIGMA]) > FOLD or abs(f[A]) > SHRUNK * abs(f[SIGMA]):
        fold(w, u, f)
    by = -rate / f[SIGMA]
    back = -by * f[A] / f[B]
    scatter(w, touched, v, by)
    if u.shape[0] > 0:
        scatter(u, touched, v, back)
    if center.shape[0] > 0:
        shift = gather(center, touched, v)
        f[MU] += by * shift
        f[NU] += back * shift


@compiled
def limit_rows(w: Array, u: Array, f: Array, center: Array, threshold: float, bound: float) -> None:
    """``fused.limit``."""
    if threshold > 0:
        fold(w, u, f)
        for c in range(w.shape[0]):
            w[c] = np.sign(w[c]) * max(0.0, abs(w[c]) - threshold)
        f[SQUARE] = dot(w, w)
        f[MU] = dot(w, center) if center.shape[0] > 0 else 0.0
    if f[SQUARE] > bound * bound:
        f[SIGMA] *= bound / np.sqrt(f[SQUARE])
        f[SQUARE] = bound * bound


@compiled
def fold(w: Array, u: Array, f: Array) -> None:
    """Multiply the factors in: w_hat <- w, u_hat <- w_bar."""
    for c in range(u.shape[0]):
        u[c] = f[A] * w[c] + f[B] * u[c]
    for c in range(w.shape[0]):
        w[c] *= f[SIGMA]
    f[NU] = f[A] * f[MU] + f[B] * f[NU]
    f[MU] *= f[SIGMA]
    f[SIGMA], f[A], f[B] = 1.0, 0.0, 1.0


@compiled
def blend_rows(columns: Array, values: Array, count: int, cols: Array, vals: Array, step: float) -> int:
    """``Slots.write`` for lists of entries, ordered by column: row <- row + step (z - row); returns its new length.

    In place, from the back: the union is never shorter than the row.
    """
    length = len(cols)
    if step == 1:
        columns[:length], values[:length] = cols, vals
        return length
    i, e, common = 0, 0, 0
    while i < count and e < length:
        before, after = columns[i] <= cols[e], columns[i] >= cols[e]
        common += before and after
        i += before
        e += after
    total = count + length - common
    i, e = count - 1, length - 1
    for k in range(total - 1, -1, -1):
        old = e < 0 or (i >= 0 and columns[i] >= cols[e])
        new = e >= 0 and (i < 0 or cols[e] >= columns[i])
        column = columns[i] if old else cols[e]
        value = (1.0 - step) * values[i] if old else 0.0
        value += step * vals[e] if new else 0.0
        columns[k], values[k] = column, value
        i -= old
        e -= new
    return total
