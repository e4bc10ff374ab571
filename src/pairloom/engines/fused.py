"""The fused engine: BLAS maps rows in blocks, and compiled loops plan the memory and learn the model.

It computes the iterates of ``reference`` in the learner's dtype. Results are bitwise identical for any split of the
rows into blocks.
"""

from typing import Any

import numpy as np

from pairloom.base.batch import Batch
from pairloom.base.compiled import compiled, dot, move
from pairloom.base.typing import Array
from pairloom.engines.arguments import (
    Adaptive,
    Buffer,
    Examples,
    Objective,
    Partners,
    Row,
    Steps,
    adaptive_steps,
    buffer_of,
    examples_of,
    objective_of,
    steps_of,
)
from pairloom.engines.base import Parts, cache_blocks, plan_batch
from pairloom.engines.fused_steps import (
    SKIP,
    SPLIT,
    aggressive_step,
    apply_step,
    combine,
    combine_differences,
    count_step,
    find_partners,
    is_safe,
    losses_of,
    safe_length,
    step_coordinates,
    threshold_and_project,
    write_slot,
)
from pairloom.engines.reference import MAX_SUBSTEPS, MAX_WEIGHT
from pairloom.engines.state import SKIPPED, State
from pairloom.losses import with_loss
from pairloom.memory import Plan
from pairloom.pairs import pair_sign

double, any_part = False, False


def takes(learner: Parts, state: State, batch: Batch) -> bool:
    """Return True: this engine supports all rows."""
    return True


def run(learner: Parts, state: State, batch: Batch) -> Array:
    """Learn rows in order; return each row's scores before it was learned."""
    blocks = cache_blocks(len(batch), max(state.w[0].nbytes, 8 * learner.memory.draws))
    if len(blocks) == 1:
        return run_block(learner, state, batch)
    return np.concatenate([run_block(learner, state, batch[rows]) for rows in blocks])


def run_block(learner: Parts, state: State, batch: Batch) -> Array:
    """Learn rows that are mapped together."""
    memory = learner.memory
    Z = learner.features.apply(state.phi, batch.X)
    U = Z if memory.space == "features" else learner.features.inputs(state.phi, batch.X)
    return learn_block(learner, state, Z, batch, plan_batch(memory, state, batch, U))


def learn_block(learner: Parts, state: State, Z: Array, batch: Batch, plan: Plan) -> Array:
    """Learn mapped rows whose memory events are planned."""
    n, slots = len(batch), state.memory.slots
    scores = np.empty((n, len(state.w)))
    with_loss(learn, learner.pair_loss)(
        examples_of(learner, state, Z, batch), objective_of(learner), steps_of(learner, state, batch.weight),
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
    """Apply ``reference.step`` to the rows of a block, with the memory's events already planned.

    ``adaptive`` is None unless steps are per coordinate; the branch is resolved when the loop is compiled.
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
    """Compiled ``reference.descend``."""
    weight = row.weight
    keep, rate, threshold = steps[0], steps[1], steps[2]
    substeps, done, counts = 1, 0, tally
    while done < substeps:
        g = losses_of(w, s, row, objective, buffer, partners)
        combine(v, row.z, buffer.points, partners.slot, partners.q)
        squared_norm = float(dot(v, v))
        length = safe_length(g, squared_norm, keep, rate, objective.smooth, substeps == 1 and weight > 1, counts)
        if length == SKIP:
            return
        if length == SPLIT:
            substeps = int(min(np.ceil(weight), MAX_SUBSTEPS))
            keep, rate, threshold = steps[3], steps[4], steps[5]
            counts = np.zeros_like(tally) if substeps == MAX_SUBSTEPS else tally
            continue
        apply_step(w, v, keep, length, threshold, bound)
        done += 1
        if done < substeps:
            s = dot(w, row.z)
        if done == 1:
            count_step(tally, weight, partners, g)


@compiled
def sweep(
    w: Array, row: Row, objective: Objective, steps: Array, bound: float,
    buffer: Buffer, partners: Partners, tally: Array,
) -> None:  # fmt: skip
    """Compiled ``reference.sweep``."""
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
    threshold_and_project(w, steps[2], bound)
    count_step(tally, row.weight, partners, g)


@compiled
def adapt(
    w: Array, s: float, v: Array, row: Row, objective: Objective, k: int, adaptive: Adaptive, bound: float,
    buffer: Buffer, partners: Partners, tally: Array,
) -> None:  # fmt: skip
    """Compiled ``reference.adapt``."""
    g = losses_of(w, s, row, objective, buffer, partners)
    combine_differences(v, row.z, buffer.points, partners.slot, partners.q)
    times = min(row.weight, MAX_WEIGHT)
    if not is_safe(1.0, g + times * times * dot(v, v)):
        tally[SKIPPED] += 1
        return
    step_coordinates(w, v, times, k, adaptive)
    threshold_and_project(w, 0.0, bound)
    count_step(tally, row.weight, partners, g)
