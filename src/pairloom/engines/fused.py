"""The sequential engine: rows mapped in blocks with BLAS, memory planned and model learned in compiled loops.

The same iterates as ``reference``, in the learner's own dtype. Nothing depends on how rows are cut into blocks, to
the bit.
"""

from typing import Any

import numpy as np

from pairloom.base.batch import Batch
from pairloom.base.compiled import compiled, dot, move
from pairloom.base.typing import Array
from pairloom.engines.arguments import (
    Buffer,
    Examples,
    Objective,
    Partners,
    Row,
    Steps,
    buffer_of,
    examples_of,
    objective_of,
    steps_of,
)
from pairloom.engines.base import Parts, plan_batch
from pairloom.engines.coordinates import Adaptive, adaptive_steps, differences, step_coordinates
from pairloom.engines.pair_kernels import combine, find_partners, losses_of, write_slot
from pairloom.engines.reference import FAR, HEAVY, LONGEST, PARTS, STABLE
from pairloom.engines.state import CUT, LONG, LOSS, PAIRS, SKIPPED, STEPS, WORST, State
from pairloom.losses import with_loss
from pairloom.memory import Plan
from pairloom.pairs import pair_sign

SKIP, SPLIT = 0.0, -2.0
"""In place of a step's length."""

BLOCK_BYTES = 1 << 20
"""Mapped rows are worked on in blocks of about this size, so that they stay in the cache."""


double, any_part = False, False


def takes(learner: Parts, state: State, batch: Batch) -> bool:
    """All rows."""
    return True


def run(learner: Parts, state: State, batch: Batch) -> Array:
    """Learn the rows in order; return each row's scores by the models before they learned the row."""
    rows = max(8, BLOCK_BYTES // max(state.w[0].nbytes, 8 * learner.memory.draws))
    if len(batch) <= rows:
        return run_block(learner, state, batch)
    starts = range(0, len(batch), rows)
    return np.concatenate([run_block(learner, state, batch[start : start + rows]) for start in starts])


def run_block(learner: Parts, state: State, batch: Batch) -> Array:
    """``run`` for rows that are mapped together."""
    memory = learner.memory
    Z = learner.features.apply(state.phi, batch.X)
    U = Z if memory.space == "features" else learner.features.inputs(state.phi, batch.X)
    return learn_block(learner, state, Z, batch, plan_batch(memory, state, batch, U))


def learn_block(learner: Parts, state: State, Z: Array, batch: Batch, plan: Plan) -> Array:
    """``run`` for mapped rows whose memory events are planned."""
    n, slots = len(batch), state.memory.slots
    t = state.ages(n)
    scores = np.empty((n, len(state.w)))
    with_loss(learn, learner.pair_loss)(
        examples_of(learner, state, Z, batch), objective_of(learner), steps_of(learner, t, batch.weight),
        tuple(plan), buffer_of(slots, slots.points), state.w, state.w_bar, state.tally, scores,
        adaptive_steps(learner, state.squares),
    )  # fmt: skip
    state.t += n
    return scores


@compiled
def learn(
    examples_: Any, objective_: Any, steps_: Any, plan_: Any, buffer_: Any,
    w: Array, w_bar: Array, tally: Array, scores: Array, adaptive: Adaptive | None,
) -> None:  # fmt: skip
    """``reference.step`` over the rows of a block, with the memory's events already planned.

    ``adaptive`` is None but for steps per coordinate: what is asked about it is settled when the loop is compiled.
    """
    examples, objective, buffer = Examples(*examples_), Objective(*objective_), Buffer(*buffer_)
    steps, plan = Steps(*steps_), Plan(*plan_)
    y, query, mass = examples.y, examples.query, buffer.mass
    slot, p, q = np.empty(mass.shape[0], np.int64), np.empty(mass.shape[0]), np.empty(mass.shape[0])
    v = np.empty_like(w[0])
    for i in range(y.shape[0]):
        z = examples.Z[i]
        for k in range(objective.targets.shape[0]):
            s = dot(w[k], z)
            scores[i, k] = dot(w_bar[k], z) if steps.averaging else s
            row = Row(z, y[i], examples.weight[i], objective.targets[k])
            count = find_partners(
                objective.pairs, row.target, objective.by_class, objective.joint, examples.gain[i, k],
                y[i], query[i], buffer.labels, buffer.queries, mass, slot, p,
            )  # fmt: skip
            if count >= 0:
                partners = Partners(slot[:count], p, q)
                if adaptive is not None:
                    adapt(w[k], s, v, row, objective, k, adaptive, steps.bound, buffer, partners, tally)
                elif steps.sequential:
                    sweep(w[k], row, objective, steps.table[:, i], steps.bound, buffer, partners, tally)
                else:
                    descend(w[k], s, v, row, objective, steps.table[:, i], steps.bound, buffer, partners, tally)
            if steps.averaging:
                move(w_bar[k], w[k], steps.rho[i])
        for e in range(plan.start[i], plan.start[i + 1]):
            write_slot(
                plan.slot[e], z, y[i], query[i], plan.blend[e], plan.mass[e],
                buffer.points, buffer.labels, buffer.queries, mass,
            )  # fmt: skip


@compiled
def descend(
    w: Array, s: float, v: Array, row: Row, objective: Objective, steps: Array, bound: float,
    buffer: Buffer, partners: Partners, tally: Array,
) -> None:  # fmt: skip
    """``reference.descend``."""
    weight = row.weight
    keep, rate, threshold = steps[0], steps[1], steps[2]
    parts, part, counts = 1, 0, tally
    while part < parts:
        g = losses_of(w, s, row, objective, buffer, partners)
        combine(v, row.z, buffer.points, partners.slot, partners.q)
        squared_norm = float(dot(v, v))
        length = safe_length(g, squared_norm, keep, rate, objective.smooth, parts == 1 and weight > 1, counts)
        if length == SKIP:
            return
        if length == SPLIT:
            parts = int(min(np.ceil(weight), PARTS))
            keep, rate, threshold = steps[3], steps[4], steps[5]
            counts = np.zeros_like(tally) if parts == PARTS else tally
            continue
        apply_step(w, v, keep, length, threshold, bound)
        part += 1
        if part < parts:
            s = dot(w, row.z)
        if part == 1:
            count_step(tally, weight, partners, g)


@compiled
def sweep(
    w: Array, row: Row, objective: Objective, steps: Array, bound: float,
    buffer: Buffer, partners: Partners, tally: Array,
) -> None:  # fmt: skip
    """``reference.sweep``."""
    kind = w.dtype.type
    z, p = row.z, partners.p
    keep = kind(max(0.0, steps[0]))
    if keep != 1:
        for c in range(w.shape[0]):
            w[c] *= keep
    g = 0.0
    for k in range(partners.slot.shape[0]):
        j = partners.slot[k]
        point = buffer.points[j]
        a = pair_sign(objective.pairs, row.y, buffer.labels[j], row.target)
        along, square = kind(0), kind(0)
        for c in range(w.shape[0]):
            d = z[c] - point[c]
            along += w[c] * d
            square += d * d
        gap = 1.0 - a * along
        tau = aggressive_step(gap, float(square), steps[1] * p[k], tally)
        g += p[k] * max(0.0, gap)
        if tau > 0:
            by = kind(a * tau)
            for c in range(w.shape[0]):
                w[c] += by * (z[c] - point[c])
    limit(w, steps[2], bound)
    count_step(tally, row.weight, partners, g)


@compiled
def adapt(
    w: Array, s: float, v: Array, row: Row, objective: Objective, k: int, adaptive: Adaptive, bound: float,
    buffer: Buffer, partners: Partners, tally: Array,
) -> None:  # fmt: skip
    """``reference.adapt``."""
    g = losses_of(w, s, row, objective, buffer, partners)
    differences(v, row.z, buffer.points, partners.slot, partners.q)
    times = min(row.weight, HEAVY)
    if not is_safe(1.0, g + times * times * dot(v, v)):
        tally[SKIPPED] += 1
        return
    step_coordinates(w, v, times, k, adaptive)
    limit(w, 0.0, bound)
    count_step(tally, row.weight, partners, g)


@compiled
def count_step(tally: Array, weight: float, partners: Partners, g: float) -> None:
    """One more step, of so much loss."""
    tally[STEPS] += weight
    tally[PAIRS] += partners.slot.shape[0]
    tally[LOSS] += weight * g


@compiled
def aggressive_step(gap: float, squared_norm: float, longest: float, tally: Array) -> float:
    """tau of one pair; 0 if it has no loss or cannot move w, or if the step overflows."""
    if gap <= 0 or squared_norm == 0:
        return 0.0
    tau = min(longest, gap / squared_norm)
    if not is_safe(tau, squared_norm):
        tally[SKIPPED] += 1
        return 0.0
    return tau


@compiled
def safe_length(
    g: float, squared_norm: float, keep: float, rate: float, smooth: bool, may_split: bool, tally: Array
) -> float:  # fmt: skip
    """The length of a step, cut where it would be unstable; SKIP if it overflows, SPLIT if its weight is too large."""
    curvature = squared_norm / (2.0 * g) if smooth and g > 0 else 0.0
    if may_split and (rate * curvature > STABLE or keep <= 0) and is_safe(rate, g + squared_norm):
        return SPLIT
    return guard(rate, curvature, g + squared_norm, tally)


@compiled
def is_safe(rate: float, size: float) -> bool:
    """``reference.is_safe``."""
    # Not np.isfinite: where sums may be reordered, Numba's version of it lets infinity pass.
    return size < np.inf and rate * rate * size < LONGEST


@compiled
def guard(rate: float, curvature: float, size: float, tally: Array) -> float:
    """``reference.guard``."""
    if not is_safe(rate, size):
        tally[SKIPPED] += 1
        return SKIP
    instability = rate * curvature
    tally[WORST] = max(tally[WORST], instability)
    if curvature == 0 and rate * rate * size > FAR:
        tally[LONG] += 1
    if instability > STABLE:
        tally[CUT] += 1
        return rate / (instability - 1.0)
    return rate


@compiled
def apply_step(w: Array, v: Array, keep: float, rate: float, threshold: float, bound: float) -> None:
    """w <- project(soft(keep w - rate v, threshold))."""
    kind = w.dtype.type
    a, c = kind(keep), kind(rate)
    for i in range(w.shape[0]):
        w[i] = a * w[i] - c * v[i]
    limit(w, threshold, bound)


@compiled
def limit(w: Array, threshold: float, bound: float) -> None:
    """``reference.limited``."""
    kind = w.dtype.type
    if threshold > 0:
        s = kind(threshold)
        for i in range(w.shape[0]):
            w[i] = np.sign(w[i]) * max(kind(0), abs(w[i]) - s)
    if bound < np.inf:
        norm = np.sqrt(float(dot(w, w)))
        if norm > bound:
            a = kind(bound / norm)
            for i in range(w.shape[0]):
                w[i] *= a
