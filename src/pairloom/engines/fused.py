"""The sequential engine: rows mapped in blocks with BLAS, memory planned and model learned in compiled loops.

The same iterates as ``reference``, in the learner's own dtype. Nothing depends on how rows are cut into blocks, to
the bit.
"""

import numpy as np

from pairloom.base.batch import Batch
from pairloom.base.compiled import compiled, dot, move
from pairloom.base.typing import Array
from pairloom.engines.base import Parts
from pairloom.engines.coordinates import Adaptive, adaptive_steps, differences, step_coordinates
from pairloom.engines.pair_kernels import combine, find_partners, pair_losses, write_slot
from pairloom.engines.reference import FAR, HEAVY, LONGEST, PARTS, STABLE
from pairloom.engines.state import CUT, LONG, LOSS, PAIRS, SKIPPED, STEPS, WORST, State
from pairloom.losses import with_loss
from pairloom.memory import Plan
from pairloom.pairs import pair_sign
from pairloom.steps import averaging_rate, constant

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
    plan = memory.plan(state.memory, U, batch.y, batch.weight, state.rng.random((len(batch), memory.draws)))
    state.memory.slots.keep_rows(plan, batch.X)
    return learn_block(learner, state, Z, batch, plan)


def learn_block(learner: Parts, state: State, Z: Array, batch: Batch, plan: Plan) -> Array:
    """``run`` for mapped rows whose memory events are planned."""
    n = len(batch)
    memory, pairs, slots = learner.memory, learner.pairs, state.memory.slots
    t = state.ages(n)
    scores = np.empty((n, len(state.w)))
    with_loss(learn, learner.pair_loss)(
        Z, batch.y, batch.weight, batch.query, step_table(learner, t, batch.weight), learner.penalty.bound,
        averaging_rate(learner.average, t), learner.average != "last",
        learner.pair_loss.code, bool(np.isfinite(learner.pair_loss.smoothness)),
        learner.step.sequential, pairs.code, pairs.targets, memory.weighting != "history", memory.joint,
        gains(learner, state, batch), plan.start, plan.slot, plan.blend, plan.mass,
        state.w, state.w_bar, slots.points, slots.labels, slots.queries, slots.mass, state.tally, scores,
        adaptive_steps(learner, state.squares),
    )  # fmt: skip
    state.t += n
    return scores


def gains(learner: Parts, state: State, batch: Batch) -> Array:
    """What each row's pair weights add up to, for each model: 1, or the weight of the rows before on its other side."""
    n, k = len(batch), len(state.w)
    if learner.memory.weighting != "sum":
        return constant(np.empty((n, k)), 1.0)
    own = batch.y[:, None] == learner.pairs.targets
    totals = np.empty((n + 1, k, 2))
    totals[0], totals[1:, :, 0], totals[1:, :, 1] = state.totals, ~own, own
    totals[1:] *= batch.weight[:, None, None]
    np.cumsum(totals, axis=0, out=totals)  # one after the other, so that the cut into blocks does not show
    state.totals = totals[-1].copy()
    return np.where(own, totals[:-1, :, 0], totals[:-1, :, 1])


def step_table(learner: Parts, t: Array, weight: Array) -> Array:
    """Rows (keep, rate, threshold) of the whole step, then of one of the parts into which a weight is split."""
    eta = learner.step.at(t) * np.minimum(weight, HEAVY)
    table = np.empty((6, len(t)))
    table[0], table[1], table[2] = learner.penalty.at(eta)
    if weight.max() > 1:
        parts = np.minimum(np.ceil(weight), PARTS)
        table[3], table[4], table[5] = learner.penalty.at(eta / parts)
        table[3, parts == PARTS] = np.maximum(0.0, table[3, parts == PARTS])
    return table


@compiled
def learn(
    Z: Array, y: Array, weight: Array, query: Array, steps: Array, bound: float, rho: Array, averaging: bool,
    loss: int, smooth: bool, sequential: bool, pairs: int, models: Array, by_class: bool, joint: bool,
    gain: Array, start: Array, slot: Array, blend: Array, new_mass: Array,
    w: Array, w_bar: Array, points: Array, labels: Array, queries: Array, mass: Array, tally: Array, scores: Array,
    adaptive: Adaptive | None,
) -> None:  # fmt: skip
    """``reference.step`` over the rows of a block, with the memory's events already planned.

    ``adaptive`` is None but for steps per coordinate: what is asked about it is settled when the loop is compiled.
    """
    partners = np.empty(mass.shape[0], np.int64)
    p, q = np.empty(mass.shape[0]), np.empty(mass.shape[0])
    v = np.empty_like(w[0])
    for i in range(y.shape[0]):
        z = Z[i]
        for k in range(models.shape[0]):
            s = dot(w[k], z)
            scores[i, k] = dot(w_bar[k], z) if averaging else s
            count = find_partners(
                pairs, models[k], by_class, joint, gain[i, k], y[i], query[i], labels, queries, mass, partners, p
            )  # fmt: skip
            if adaptive is not None:
                if count >= 0:
                    adapt(
                        w[k], s, v, z, y[i], weight[i], k, adaptive, bound, loss, pairs, models[k],
                        points, labels, partners[:count], p, q, tally,
                    )  # fmt: skip
            elif count >= 0 and sequential:
                sweep(
                    w[k], z, y[i], weight[i], steps[:, i], bound, pairs, models[k],
                    points, labels, partners[:count], p, tally,
                )  # fmt: skip
            elif count >= 0:
                descend(
                    w[k], s, v, z, y[i], weight[i], steps[:, i], bound, loss, smooth, pairs, models[k],
                    points, labels, partners[:count], p, q, tally,
                )  # fmt: skip
            if averaging:
                move(w_bar[k], w[k], rho[i])
        for e in range(start[i], start[i + 1]):
            write_slot(slot[e], z, y[i], query[i], blend[e], new_mass[e], points, labels, queries, mass)


@compiled
def descend(
    w: Array, s: float, v: Array, z: Array, y: float, weight: float, steps: Array, bound: float,
    loss: int, smooth: bool, pairs: int, model: float,
    points: Array, labels: Array, partners: Array, p: Array, q: Array, tally: Array,
) -> None:  # fmt: skip
    """``reference.descend``."""
    keep, rate, threshold = steps[0], steps[1], steps[2]
    parts, part, counts = 1, 0, tally
    while part < parts:
        g = pair_losses(loss, pairs, model, y, s, w, points, labels, partners, p, q)
        combine(v, z, points, partners, q)
        squared_norm = float(dot(v, v))
        length = safe_length(g, squared_norm, keep, rate, smooth, parts == 1 and weight > 1, counts)
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
            s = dot(w, z)
        if part == 1:
            tally[STEPS] += weight
            tally[PAIRS] += partners.shape[0]
            tally[LOSS] += weight * g


@compiled
def sweep(
    w: Array, z: Array, y: float, weight: float, steps: Array, bound: float, pairs: int, model: float,
    points: Array, labels: Array, partners: Array, p: Array, tally: Array,
) -> None:  # fmt: skip
    """``reference.sweep``."""
    kind = w.dtype.type
    keep = kind(max(0.0, steps[0]))
    if keep != 1:
        for c in range(w.shape[0]):
            w[c] *= keep
    g = 0.0
    for k in range(partners.shape[0]):
        point = points[partners[k]]
        a = pair_sign(pairs, y, labels[partners[k]], model)
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
    tally[STEPS] += weight
    tally[PAIRS] += partners.shape[0]
    tally[LOSS] += weight * g


@compiled
def adapt(
    w: Array, s: float, v: Array, z: Array, y: float, weight: float, k: int, adaptive: Adaptive, bound: float,
    loss: int, pairs: int, model: float,
    points: Array, labels: Array, partners: Array, p: Array, q: Array, tally: Array,
) -> None:  # fmt: skip
    """``reference.adapt``."""
    g = pair_losses(loss, pairs, model, y, s, w, points, labels, partners, p, q)
    differences(v, z, points, partners, q)
    times = min(weight, HEAVY)
    if not is_safe(1.0, g + times * times * dot(v, v)):
        tally[SKIPPED] += 1
        return
    step_coordinates(w, v, times, k, adaptive)
    limit(w, 0.0, bound)
    tally[STEPS] += weight
    tally[PAIRS] += partners.shape[0]
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
