"""Compiled loops over CSR rows: a block of rows, and the three kinds of steps."""

import numpy as np

from pairloom.base.compiled import compiled
from pairloom.base.typing import Array
from pairloom.engines.coordinates import Adaptive
from pairloom.engines.fused import SKIP, SPLIT, aggressive_step, is_safe, safe_length
from pairloom.engines.pair_kernels import find_partners
from pairloom.engines.reference import HEAVY, PARTS
from pairloom.engines.sparse_coordinates import combine_differences, step_entries
from pairloom.engines.sparse_kernels import (
    MU,
    NU,
    SIGMA,
    A,
    B,
    average_rows,
    blend_rows,
    combine_rows,
    gather,
    limit_rows,
    move_rows,
    row_losses,
    square_of,
    step_rows,
)
from pairloom.engines.state import LOSS, PAIRS, SKIPPED, STEPS
from pairloom.pairs import pair_sign


@compiled
def learn_rows(
    data: Array, indices: Array, indptr: Array, y: Array, weight: Array, query: Array, steps: Array, bound: float,
    rho: Array, averaging: bool, loss: int, smooth: bool, sequential: bool,
    pairs: int, models: Array, by_class: bool, joint: bool, gain: Array,
    start: Array, slot: Array, blend: Array, new_mass: Array, center: Array,
    w_hat: Array, u_hat: Array, factors: Array, columns: Array, values: Array, counts: Array, stale: Array,
    labels: Array, queries: Array, mass: Array, tally: Array, scores: Array, adaptive: Adaptive | None,
) -> None:  # fmt: skip
    """``fused.learn`` for CSR rows."""
    d = w_hat.shape[1]
    partners = np.empty(mass.shape[0], np.int64)
    p, q = np.empty(mass.shape[0]), np.empty(mass.shape[0])
    scratch, touched, v = np.zeros(d), np.empty(d, np.int64), np.empty(d)
    if adaptive is not None:
        row, seen = np.zeros(d), np.zeros(d + 1, np.int64)
    for i in range(y.shape[0]):
        cols, vals = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
        for k in range(models.shape[0]):
            w, u, f = w_hat[k], u_hat[k], factors[k]
            s = gather(w, cols, vals)
            scores[i, k] = f[SIGMA] * (s - f[MU])
            if averaging:
                scores[i, k] = f[A] * (s - f[MU]) + f[B] * (gather(u, cols, vals) - f[NU])
            count = find_partners(
                pairs, models[k], by_class, joint, gain[i, k], y[i], query[i], labels, queries, mass, partners, p
            )  # fmt: skip
            if adaptive is not None:
                if count >= 0:
                    adapt_rows(
                        w, u, f, center, s, cols, vals, y[i], weight[i], k, adaptive, bound, loss, pairs, models[k],
                        columns, values, counts, labels, partners[:count], p, q, scratch, row, seen, touched, v, tally,
                    )  # fmt: skip
            elif count >= 0 and sequential:
                sweep_rows(
                    w, u, f, center, cols, vals, y[i], weight[i], steps[:, i], bound, pairs, models[k],
                    columns, values, counts, labels, partners[:count], p, q, scratch, touched, v, tally,
                )  # fmt: skip
            elif count >= 0:
                descend_rows(
                    w, u, f, center, s, cols, vals, y[i], weight[i], steps[:, i], bound, loss, smooth, pairs,
                    models[k], columns, values, counts, labels, partners[:count], p, q, scratch, touched, v, tally,
                )  # fmt: skip
            if averaging:
                average_rows(w, u, f, rho[i])
        for e in range(start[i], start[i + 1]):
            j = slot[e]
            if blend[e] > 0:
                counts[j] = blend_rows(columns[j], values[j], counts[j], cols, vals, blend[e])
                stale[j] = True
                labels[j] = y[i]
                queries[j] = query[i]
            mass[j] = new_mass[e]


@compiled
def descend_rows(
    w: Array, u: Array, f: Array, center: Array, s: float, cols: Array, vals: Array, y: float, weight: float,
    steps: Array, bound: float, loss: int, smooth: bool, pairs: int, model: float,
    columns: Array, values: Array, counts: Array, labels: Array, partners: Array, p: Array, q: Array,
    scratch: Array, touched: Array, v: Array, tally: Array,
) -> None:  # fmt: skip
    """``fused.descend``; s is <w_hat, z>. The gradient has the entries v in the columns ``touched``."""
    keep, rate, threshold = steps[0], steps[1], steps[2]
    parts, part, counting = 1, 0, tally
    while part < parts:
        g = row_losses(loss, pairs, model, y, f[SIGMA], s, w, columns, values, counts, labels, partners, p, q)
        n = combine_rows(scratch, touched, v, cols, vals, columns, values, counts, partners, q)
        squared_norm = square_of(v[:n])
        length = safe_length(g, squared_norm, keep, rate, smooth, parts == 1 and weight > 1, counting)
        if length == SKIP:
            return
        if length == SPLIT:
            parts = int(min(np.ceil(weight), PARTS))
            keep, rate, threshold = steps[3], steps[4], steps[5]
            counting = np.zeros_like(tally) if parts == PARTS else tally
            continue
        step_rows(w, u, f, center, touched[:n], v[:n], squared_norm, keep, length, threshold, bound)
        part += 1
        if part < parts:
            s = gather(w, cols, vals)
        if part == 1:
            tally[STEPS] += weight
            tally[PAIRS] += partners.shape[0]
            tally[LOSS] += weight * g


@compiled
def sweep_rows(
    w: Array, u: Array, f: Array, center: Array, cols: Array, vals: Array, y: float, weight: float,
    steps: Array, bound: float, pairs: int, model: float,
    columns: Array, values: Array, counts: Array, labels: Array, partners: Array, p: Array, q: Array,
    scratch: Array, touched: Array, v: Array, tally: Array,
) -> None:  # fmt: skip
    """``fused.sweep``; each difference a_j (z - B_j) has the entries v in the columns ``touched``."""
    bounded = bound < np.inf
    move_rows(w, u, f, center, touched[:0], v[:0], 0.0, max(0.0, steps[0]), 0.0, bounded)
    g = 0.0
    for k in range(partners.shape[0]):
        q[0] = -pair_sign(pairs, y, labels[partners[k]], model)
        n = combine_rows(scratch, touched, v, cols, vals, columns, values, counts, partners[k : k + 1], q)
        square = 0.0
        for e in range(n):
            square += v[e] * v[e]
        gap = 1.0 - f[SIGMA] * gather(w, touched[:n], v[:n])
        tau = aggressive_step(gap, square, steps[1] * p[k], tally)
        g += p[k] * max(0.0, gap)
        if tau > 0:
            move_rows(w, u, f, center, touched[:n], v[:n], square, 1.0, -tau, bounded)
    limit_rows(w, u, f, center, steps[2], bound)
    tally[STEPS] += weight
    tally[PAIRS] += partners.shape[0]
    tally[LOSS] += weight * g


@compiled
def adapt_rows(
    w: Array, u: Array, f: Array, center: Array, s: float, cols: Array, vals: Array, y: float, weight: float,
    k: int, adaptive: Adaptive, bound: float, loss: int, pairs: int, model: float,
    columns: Array, values: Array, counts: Array, labels: Array, partners: Array, p: Array, q: Array,
    scratch: Array, row: Array, seen: Array, touched: Array, v: Array, tally: Array,
) -> None:  # fmt: skip
    """``fused.adapt``; s is <w_hat, z>. The gradient has the entries v in the columns ``touched``."""
    g = row_losses(loss, pairs, model, y, f[SIGMA], s, w, columns, values, counts, labels, partners, p, q)
    n = combine_differences(scratch, row, seen, touched, v, cols, vals, columns, values, counts, partners, q)
    times = min(weight, HEAVY)
    if not is_safe(1.0, g + times * times * square_of(v[:n])):
        tally[SKIPPED] += 1
        return
    step_entries(w, u, f, center, touched[:n], v[:n], times, k, adaptive)
    limit_rows(w, u, f, center, 0.0, bound)
    tally[STEPS] += weight
    tally[PAIRS] += partners.shape[0]
    tally[LOSS] += weight * g
