"""Compiled loops over CSR rows: a block of rows, and the three kinds of steps."""

from typing import Any

import numpy as np

from pairloom.base.compiled import compiled
from pairloom.base.typing import Array
from pairloom.engines.arguments import Buffer, Examples, Objective, Partners, Row, Steps
from pairloom.engines.coordinates import Adaptive
from pairloom.engines.fused import SKIP, SPLIT, aggressive_step, count_step, is_safe, safe_length
from pairloom.engines.pair_kernels import find_partners
from pairloom.engines.reference import HEAVY, PARTS
from pairloom.engines.sparse_coordinates import combine_differences, step_entries
from pairloom.engines.sparse_kernels import (
    MU,
    NU,
    SIGMA,
    A,
    B,
    Entries,
    Lazy,
    Lists,
    Room,
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
from pairloom.engines.state import SKIPPED
from pairloom.memory import Plan
from pairloom.pairs import pair_sign


@compiled
def learn_rows(
    examples_: Any, objective_: Any, steps_: Any, plan_: Any, buffer_: Any, models: Any, center: Array,
    tally: Array, scores: Array, adaptive: Adaptive | None,
) -> None:  # fmt: skip
    """``fused.learn`` for CSR rows. ``models``: w_hat, u_hat and the factors of each."""
    examples, objective, buffer = Examples(*examples_), Objective(*objective_), Buffer(*buffer_)
    steps, plan, points = Steps(*steps_), Plan(*plan_), Lists(*buffer_[0])
    (data, indices, indptr), (w_hat, u_hat, factors) = examples.Z, models
    y, query, labels, queries, mass = examples.y, examples.query, buffer.labels, buffer.queries, buffer.mass
    slot, p, q = np.empty(mass.shape[0], np.int64), np.empty(mass.shape[0]), np.empty(mass.shape[0])
    room = make_room(w_hat.shape[1], adaptive)
    for i in range(y.shape[0]):
        z = Entries(indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]])
        for k in range(objective.targets.shape[0]):
            model = Lazy(w_hat[k], u_hat[k], factors[k], center)
            f = model.f
            s = gather(model.w, z.cols, z.vals)
            scores[i, k] = f[SIGMA] * (s - f[MU])
            if steps.averaging:
                scores[i, k] = f[A] * (s - f[MU]) + f[B] * (gather(model.u, z.cols, z.vals) - f[NU])
            row = Row(z, y[i], examples.weight[i], objective.targets[k])
            count = find_partners(
                objective.pairs, row.target, objective.by_class, objective.joint, examples.gain[i, k],
                y[i], query[i], labels, queries, mass, slot, p,
            )  # fmt: skip
            if count >= 0:
                partners, table = Partners(slot[:count], p, q), steps.table[:, i]
                if adaptive is not None:
                    adapt_rows(
                        model, s, row, objective, k, adaptive, steps.bound, points, labels, partners, room, tally
                    )  # fmt: skip
                elif steps.sequential:
                    sweep_rows(model, row, objective, table, steps.bound, points, labels, partners, room, tally)
                else:
                    descend_rows(model, s, row, objective, table, steps.bound, points, labels, partners, room, tally)
            if steps.averaging:
                average_rows(model.w, model.u, f, steps.rho[i])
        for e in range(plan.start[i], plan.start[i + 1]):
            j = plan.slot[e]
            if plan.blend[e] > 0:
                points.counts[j] = blend_rows(
                    points.columns[j], points.values[j], points.counts[j], z.cols, z.vals, plan.blend[e]
                )  # fmt: skip
                points.stale[j] = True
                labels[j] = y[i]
                queries[j] = query[i]
            mass[j] = plan.mass[e]


@compiled
def make_room(d: int, adaptive: Adaptive | None) -> Room:
    """Room for gradients with d columns."""
    more = d if adaptive is not None else 0
    return Room(np.zeros(d), np.empty(d, np.int64), np.empty(d), np.zeros(more), np.zeros(more + 1, np.int64))


@compiled
def descend_rows(
    model: Lazy, s: float, row: Row, objective: Objective, steps: Array, bound: float,
    points: Lists, labels: Array, partners: Partners, room: Room, tally: Array,
) -> None:  # fmt: skip
    """``fused.descend``; s is <w_hat, z>."""
    weight, touched, v = row.weight, room.touched, room.v
    keep, rate, threshold = steps[0], steps[1], steps[2]
    parts, part, counting = 1, 0, tally
    while part < parts:
        g = row_losses(model, s, row, objective, points, labels, partners)
        n = combine_rows(room, row.z, points, partners)
        squared_norm = square_of(v[:n])
        length = safe_length(g, squared_norm, keep, rate, objective.smooth, parts == 1 and weight > 1, counting)
        if length == SKIP:
            return
        if length == SPLIT:
            parts = int(min(np.ceil(weight), PARTS))
            keep, rate, threshold = steps[3], steps[4], steps[5]
            counting = np.zeros_like(tally) if parts == PARTS else tally
            continue
        step_rows(
            model.w, model.u, model.f, model.center, touched[:n], v[:n], squared_norm, keep, length, threshold, bound
        )  # fmt: skip
        part += 1
        if part < parts:
            s = gather(model.w, row.z.cols, row.z.vals)
        if part == 1:
            count_step(tally, weight, partners, g)


@compiled
def sweep_rows(
    model: Lazy, row: Row, objective: Objective, steps: Array, bound: float,
    points: Lists, labels: Array, partners: Partners, room: Room, tally: Array,
) -> None:  # fmt: skip
    """``fused.sweep``; v is a difference a_j (z - B_j)."""
    w, u, f, center, touched, v = model.w, model.u, model.f, model.center, room.touched, room.v
    slot, p, q, bounded = partners.slot, partners.p, partners.q, bound < np.inf
    move_rows(w, u, f, center, touched[:0], v[:0], 0.0, max(0.0, steps[0]), 0.0, bounded)
    g = 0.0
    for k in range(slot.shape[0]):
        q[0] = -pair_sign(objective.pairs, row.y, labels[slot[k]], row.target)
        n = combine_rows(room, row.z, points, Partners(slot[k : k + 1], p, q))
        square = 0.0
        for e in range(n):
            square += v[e] * v[e]
        gap = 1.0 - f[SIGMA] * gather(w, touched[:n], v[:n])
        tau = aggressive_step(gap, square, steps[1] * p[k], tally)
        g += p[k] * max(0.0, gap)
        if tau > 0:
            move_rows(w, u, f, center, touched[:n], v[:n], square, 1.0, -tau, bounded)
    limit_rows(w, u, f, center, steps[2], bound)
    count_step(tally, row.weight, partners, g)


@compiled
def adapt_rows(
    model: Lazy, s: float, row: Row, objective: Objective, k: int, adaptive: Adaptive, bound: float,
    points: Lists, labels: Array, partners: Partners, room: Room, tally: Array,
) -> None:  # fmt: skip
    """``fused.adapt``; s is <w_hat, z>."""
    w, u, f, center, v = model.w, model.u, model.f, model.center, room.v
    g = row_losses(model, s, row, objective, points, labels, partners)
    n = combine_differences(room, row.z, points, partners)
    times = min(row.weight, HEAVY)
    if not is_safe(1.0, g + times * times * square_of(v[:n])):
        tally[SKIPPED] += 1
        return
    step_entries(w, u, f, center, room.touched[:n], v[:n], times, k, adaptive)
    limit_rows(w, u, f, center, 0.0, bound)
    count_step(tally, row.weight, partners, g)
