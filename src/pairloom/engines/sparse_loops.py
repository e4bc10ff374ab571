"""Compiled loops over CSR rows: a block of rows, the three kinds of steps, dense points, and scores."""

from typing import Any

import numpy as np

from pairloom.base.compiled import compiled
from pairloom.base.typing import Array
from pairloom.engines.arguments import Adaptive, Buffer, Examples, Objective, Partners, Row, Steps
from pairloom.engines.fused_steps import (
    SKIP,
    SPLIT,
    aggressive_step,
    count_step,
    find_partners,
    is_safe,
    safe_length,
)
from pairloom.engines.reference import MAX_SUBSTEPS, MAX_WEIGHT
from pairloom.engines.sparse_steps import (
    MU,
    NU,
    SIGMA,
    A,
    B,
    Entries,
    Lazy,
    Lists,
    Workspace,
    average_rows,
    blend_rows,
    combine_row_differences,
    combine_rows,
    gather,
    make_workspace,
    move_rows,
    row_losses,
    square_of,
    step_entries,
    step_rows,
    threshold_and_project_rows,
)
from pairloom.engines.state import SKIPPED
from pairloom.memory import Plan
from pairloom.pairs import pair_sign


@compiled
def learn_rows(
    examples_: Any, objective_: Any, steps_: Any, plan_: Any, buffer_: Any, models: Any, center: Array,
    tally: Array, scores: Array, adaptive: Adaptive | None,
) -> None:  # fmt: skip
    """Do the same as ``fused.learn`` for CSR rows; ``models``: w_hat, u_hat and factors of all models."""
    examples, objective, buffer = Examples(*examples_), Objective(*objective_), Buffer(*buffer_)
    steps, plan, points = Steps(*steps_), Plan(*plan_), Lists(*buffer_[0])
    (data, indices, indptr), (w_hat, u_hat, factors) = examples.Z, models
    y, query, labels, queries, mass = examples.y, examples.query, buffer.labels, buffer.queries, buffer.mass
    slot, p, q = np.empty(mass.shape[0], np.int64), np.empty(mass.shape[0]), np.empty(mass.shape[0])
    work = make_workspace(w_hat.shape[1], adaptive)
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
                        model, s, row, objective, k, adaptive, steps.bound, points, labels, partners, work, tally
                    )  # fmt: skip
                elif steps.sequential:
                    sweep_rows(model, row, objective, table, steps.bound, points, labels, partners, work, tally)
                else:
                    descend_rows(model, s, row, objective, table, steps.bound, points, labels, partners, work, tally)
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
def descend_rows(
    model: Lazy, s: float, row: Row, objective: Objective, steps: Array, bound: float,
    points: Lists, labels: Array, partners: Partners, work: Workspace, tally: Array,
) -> None:  # fmt: skip
    """Do the same as ``fused.descend`` for CSR rows; s is <w_hat, z>."""
    weight, touched, v = row.weight, work.touched, work.v
    keep, rate, threshold = steps[0], steps[1], steps[2]
    substeps, done, counting = 1, 0, tally
    while done < substeps:
        g = row_losses(model, s, row, objective, points, labels, partners)
        n = combine_rows(work, row.z, points, partners)
        squared_norm = square_of(v[:n])
        length = safe_length(g, squared_norm, keep, rate, objective.smooth, substeps == 1 and weight > 1, counting)
        if length == SKIP:
            return
        if length == SPLIT:
            substeps = int(min(np.ceil(weight), MAX_SUBSTEPS))
            keep, rate, threshold = steps[3], steps[4], steps[5]
            counting = np.zeros_like(tally) if substeps == MAX_SUBSTEPS else tally
            continue
        step_rows(
            model.w, model.u, model.f, model.center, touched[:n], v[:n], squared_norm, keep, length, threshold, bound
        )  # fmt: skip
        done += 1
        if done < substeps:
            s = gather(model.w, row.z.cols, row.z.vals)
        if done == 1:
            count_step(tally, weight, partners, g)


@compiled
def sweep_rows(
    model: Lazy, row: Row, objective: Objective, steps: Array, bound: float,
    points: Lists, labels: Array, partners: Partners, work: Workspace, tally: Array,
) -> None:  # fmt: skip
    """Do the same as ``fused.sweep`` for CSR rows; v is a difference a_j (z - B_j)."""
    w, u, f, center, touched, v = model.w, model.u, model.f, model.center, work.touched, work.v
    slot, p, q, bounded = partners.slot, partners.p, partners.q, bound < np.inf
    move_rows(w, u, f, center, touched[:0], v[:0], 0.0, max(0.0, steps[0]), 0.0, bounded)
    g = 0.0
    for k in range(slot.shape[0]):
        q[0] = -pair_sign(objective.pairs, row.y, labels[slot[k]], row.target)
        n = combine_rows(work, row.z, points, Partners(slot[k : k + 1], p, q))
        square = 0.0
        for e in range(n):
            square += v[e] * v[e]
        gap = 1.0 - f[SIGMA] * gather(w, touched[:n], v[:n])
        tau = aggressive_step(gap, square, steps[1] * p[k], tally)
        g += p[k] * max(0.0, gap)
        if tau > 0:
            move_rows(w, u, f, center, touched[:n], v[:n], square, 1.0, -tau, bounded)
    threshold_and_project_rows(w, u, f, center, steps[2], bound)
    count_step(tally, row.weight, partners, g)


@compiled
def adapt_rows(
    model: Lazy, s: float, row: Row, objective: Objective, k: int, adaptive: Adaptive, bound: float,
    points: Lists, labels: Array, partners: Partners, work: Workspace, tally: Array,
) -> None:  # fmt: skip
    """Do the same as ``fused.adapt`` for CSR rows; s is <w_hat, z>."""
    w, u, f, center, v = model.w, model.u, model.f, model.center, work.v
    g = row_losses(model, s, row, objective, points, labels, partners)
    n = combine_row_differences(work, row.z, points, partners)
    times = min(row.weight, MAX_WEIGHT)
    if not is_safe(1.0, g + times * times * square_of(v[:n])):
        tally[SKIPPED] += 1
        return
    step_entries(w, u, f, center, work.touched[:n], v[:n], times, k, adaptive)
    threshold_and_project_rows(w, u, f, center, 0.0, bound)
    count_step(tally, row.weight, partners, g)


@compiled
def write_points(points: Array, center: Array, columns: Array, values: Array, counts: Array, stale: Array) -> None:
    """Write the dense points of stale slots, minus m."""
    for j in np.flatnonzero(stale):
        if center.shape[0] > 0:
            for c in range(points.shape[1]):
                points[j, c] = -center[c]
        else:
            points[j, :] = 0.0
        for e in range(counts[j]):
            points[j, columns[j, e]] += values[j, e]
    stale[:] = False


@compiled
def score_rows(data: Array, indices: Array, indptr: Array, w: Array, scores: Array) -> None:
    """Fill ``scores`` with <w, z> of each row."""
    for i in range(scores.shape[0]):
        total = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            total += float(w[indices[e]]) * float(data[e])
        scores[i] = total
