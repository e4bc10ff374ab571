"""Compiled parts of a step on CSR rows: the lazy form of a model, gradients, and updates.

    w = sigma w_hat,    w_bar = a w_hat + b u_hat

A step scales sigma, and changes the entries of w_hat and u_hat where the gradient has entries. All arithmetic is in
float64. ``center`` is the point m that scaling subtracts from every row, or empty: scores are <w, z - m>, with
mu = <w_hat, m> and nu = <u_hat, m> updated at each step; m cancels in pairs. Steps per coordinate do not shrink columns
in which the gradient is 0: sigma stays 1 unless there is a ball.
"""

from typing import NamedTuple

import numpy as np

from pairloom.base.compiled import compiled, copy_to, dot
from pairloom.base.csr import MIN_SCALE
from pairloom.base.typing import Array
from pairloom.engines.arguments import Adaptive, Objective, Partners, Row
from pairloom.engines.fused_steps import moved_coordinate
from pairloom.losses import loss_slope, loss_value
from pairloom.pairs import pair_offset, pair_sign
from pairloom.steps.schedules import MIN_SQUARE

SIGMA, A, B, SQUARE, MU, NU = range(6)
"""Factors of a model; SQUARE is ||w||^2, up to date only if w is bounded."""

MAX_CANCELLATION = 16.0
"""The factors are folded in if a / sigma exceeds this: a w_hat and b u_hat would cancel."""

MAX_SHRINKAGE = 1e4
"""The same limit within the substeps of a row, before w is averaged."""


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


class Workspace(NamedTuple):
    """Work arrays for a gradient: its entries ``v`` in the columns ``touched``.

    ``scratch`` and ``row`` have all columns and are zero between two gradients; ``seen`` has one more entry. ``row``
    and ``seen`` are for steps per coordinate, and empty otherwise.
    """

    scratch: Array
    touched: Array
    v: Array
    row: Array
    seen: Array


@compiled
def make_workspace(d: int, adaptive: Adaptive | None) -> Workspace:
    """Return work arrays for gradients with d columns."""
    more = d if adaptive is not None else 0
    return Workspace(np.zeros(d), np.empty(d, np.int64), np.empty(d), np.zeros(more), np.zeros(more + 1, np.int64))


@compiled
def gather(a: Array, cols: Array, vals: Array) -> float:
    """Return <a, row>."""
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
    """Update a <- a + factor row."""
    for e in range(cols.shape[0]):
        a[cols[e]] += factor * vals[e]


@compiled
def row_losses(
    model: Lazy, s: float, row: Row, objective: Objective, points: Lists, labels: Array, partners: Partners
) -> float:  # fmt: skip
    """Do the same as ``fused_steps.losses_of`` on CSR rows; s is <w_hat, z>."""
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
def combine_rows(work: Workspace, z: Entries, points: Lists, partners: Partners) -> int:
    """Compute v <- sum_k q_k (B_k - z); return the number of its entries."""
    columns, values, counts = points.columns, points.values, points.counts
    scratch, touched, v, slot, q = work.scratch, work.touched, work.v, partners.slot, partners.q
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
def combine_row_differences(work: Workspace, z: Entries, points: Lists, partners: Partners) -> int:
    """Do the same as ``fused_steps.combine_differences`` on CSR rows; return the number of entries of v."""
    columns, values, counts = points.columns, points.values, points.counts
    scratch, touched, v, row = work.scratch, work.touched, work.v, work.row
    cols, vals, slot, q = z.cols, z.vals, partners.slot, partners.q
    n = 0
    for e in range(cols.shape[0]):
        row[cols[e]] = vals[e]
    for k in range(slot.shape[0]):
        if q[k] != 0:
            j = slot[k]
            add_difference(scratch, q[k], columns[j, : counts[j]], values[j, : counts[j]], cols, row, work.seen)
    for e in range(cols.shape[0]):
        row[cols[e]] = 0.0
    for k in range(slot.shape[0]):
        if q[k] != 0:
            n = collect(scratch, touched, v, n, columns[slot[k], : counts[slot[k]]])
    return collect(scratch, touched, v, n, cols)


@compiled
def add_difference(
    a: Array, factor: float, cols: Array, vals: Array, row_cols: Array, row: Array, seen: Array
) -> None:  # fmt: skip
    """Update a <- a + factor (point - row).

    The last entry of ``seen`` counts points; the others hold the number of the last point with an entry in that column.
    """
    stamp = seen[seen.shape[0] - 1] + 1
    seen[seen.shape[0] - 1] = stamp
    for e in range(cols.shape[0]):
        c = cols[e]
        a[c] += factor * (vals[e] - row[c])
        seen[c] = stamp
    for e in range(row_cols.shape[0]):
        c = row_cols[e]
        if seen[c] != stamp:
            a[c] -= factor * row[c]


@compiled
def collect(scratch: Array, touched: Array, v: Array, n: int, cols: Array) -> int:
    """Move the entries of ``scratch`` in some columns to the end of v; return the length of v."""
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
    """Do the same as ``fused_steps.apply_step`` on CSR rows; w_bar does not change."""
    move_rows(w, u, f, center, touched, v, squared_norm, keep, rate, bound < np.inf)
    threshold_and_project_rows(w, u, f, center, threshold, bound)


@compiled
def move_rows(
    w: Array, u: Array, f: Array, center: Array, touched: Array, v: Array, squared_norm: float,
    keep: float, rate: float, bounded: bool,
) -> None:  # fmt: skip
    """Update w <- keep w - rate v."""
    if bounded:
        along = f[SIGMA] * gather(w, touched, v)
        f[SQUARE] = keep * keep * f[SQUARE] - 2.0 * keep * rate * along + rate * rate * squared_norm
    f[SIGMA] *= keep
    # The substeps of a heavy row shrink w many times before w is averaged.
    if not abs(f[SIGMA]) > MIN_SCALE or abs(f[A]) > MAX_SHRINKAGE * abs(f[SIGMA]):
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
def step_entries(
    w: Array, u: Array, f: Array, center: Array, touched: Array, v: Array, weight: float, k: int, adaptive: Adaptive
) -> None:
    """Do the same as ``fused_steps.step_coordinates`` on CSR rows; w_bar does not change."""
    squares, eta, alpha, l1, proximal = adaptive
    if not abs(f[SIGMA]) > MIN_SCALE or abs(f[A]) > MAX_SHRINKAGE * abs(f[SIGMA]):
        fold(w, u, f)
    sigma, back = f[SIGMA], f[A] / f[B]
    for e in range(touched.shape[0]):
        c, x = touched[e], weight * v[e]
        if x * x > MIN_SQUARE:
            squares[k, c] += x * x
            old = sigma * w[c]
            new = moved_coordinate(old, x, squares[k, c], eta, alpha, l1, proximal)
            by = new / sigma - w[c]
            w[c] = new / sigma
            f[SQUARE] += new * new - old * old
            if u.shape[0] > 0:
                u[c] -= back * by
            if center.shape[0] > 0:
                f[MU] += by * center[c]
                f[NU] -= back * by * center[c]


@compiled
def threshold_and_project_rows(w: Array, u: Array, f: Array, center: Array, threshold: float, bound: float) -> None:
    """Do the same as ``fused_steps.threshold_and_project`` on CSR rows."""
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
def average_rows(w: Array, u: Array, f: Array, rho: float) -> None:
    """Update w_bar <- w_bar + rho (w - w_bar)."""
    f[A] = (1.0 - rho) * f[A] + rho * f[SIGMA]
    f[B] *= 1.0 - rho
    if not (abs(f[A]) <= MAX_CANCELLATION * abs(f[SIGMA]) and f[B] > MIN_SCALE):
        fold(w, u, f)


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
    """Update entries, sorted by column, in place: row <- row + step (z - row); return the new length of row.

    The loop runs backwards, since the union of columns is never shorter than the row.
    """
    length = len(cols)
    if step == 1:
        copy_to(columns, cols)
        copy_to(values, vals)
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
