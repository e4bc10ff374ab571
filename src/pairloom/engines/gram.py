"""The engine for few slots: w as a combination of their points, so that a row needs only its products with them.

    w = factor (base + sum_j coef_j B_j),        F_j = <w, B_j>,        Gram matrix <B_i, B_j>

are kept for all slots j. A row z needs h_j = <z, B_j> and <base, z>. Its gradient is v = sum_k q_k B_k - Q z, with Q
the sum of the q_k over its partners k, so that all else follows from numbers:

    <v, B_j> = sum_k q_k <B_k, B_j> - Q h_j,        <v, z> = sum_k q_k h_k - Q ||z||^2

A point that is overwritten is first added to ``base`` with its coefficient, and the row that replaces it takes over the
coefficient of z. Every ``FOLD_ROWS`` rows, counted from the start of the stream, everything is added to ``base``, and
the F_j are computed from the vectors, so that rounding errors do not accumulate.

Cost per row, with S slots of which s are partners: 2 S D flops, which four rows share a read of the points for, plus
2 S s. The engine ``fused`` needs 4 s D flops and reads the partners twice, but makes no other demands on the parts.
Results are bitwise identical for any split of the rows into blocks.
"""

from typing import Any, NamedTuple

import numpy as np

from pairloom.base.batch import Batch
from pairloom.base.compiled import add_rows, compiled, dot
from pairloom.base.products import ROWS, products
from pairloom.base.typing import Array
from pairloom.engines.arguments import (
    Buffer,
    Examples,
    Objective,
    Partners,
    Row,
    buffer_of,
    examples_of,
    step_table,
)
from pairloom.engines.base import Parts, cache_blocks, plan_batch
from pairloom.engines.fused_steps import SKIP, SPLIT, count_step, find_partners, safe_length
from pairloom.engines.reference import MAX_SUBSTEPS
from pairloom.engines.state import CUT, LONG, SKIPPED, WORST, Combination, State
from pairloom.losses import loss_slope, loss_value, with_loss
from pairloom.memory import Plan
from pairloom.pairs import pair_offset, pair_sign

double, any_part = False, False

FOLD_ROWS = 64
"""Rows after which all coefficients are added to ``base``."""

MIN_FACTOR = 1e-6
"""Smallest factor of w, whose inverse multiplies the coefficients."""

MAX_SLOTS = 256


class Own(NamedTuple):
    """The arrays of a ``Combination``, and work arrays (slots,): <z, B_j> and <v, B_j>."""

    base: Array
    coef: Array
    factor: Array
    scores: Array
    gram: Array
    h: Array
    f: Array


def takes(learner: Parts, state: State, batch: Batch) -> bool:
    """Return whether the model ``can_combine``."""
    return state.combination is not None or can_combine(learner, state)


def can_combine(learner: Parts, state: State) -> bool:
    """Return True for steps that only shrink w and move it along v, few slots that hold rows, and without averages."""
    steps = not (learner.step.sequential or learner.step.per_coordinate) and learner.average == "last"
    shrinks = learner.penalty.only_shrinks and learner.penalty.bound == np.inf
    slots, memory, features = len(state.memory.slots.mass), learner.memory, learner.features
    few = memory.limited is None and not memory.blends and slots <= min(MAX_SLOTS, state.w.shape[1] // 2)
    return steps and shrinks and few and features.sparse is None and features.growing is None


def run(learner: Parts, state: State, batch: Batch) -> Array:
    """Learn rows in order; return each row's scores before it was learned."""
    if len(batch) <= ROWS:
        return run_block(learner, state, batch)
    blocks = cache_blocks(len(batch), max(state.w[0].nbytes, 8 * learner.memory.draws))
    return np.concatenate([run_block(learner, state, batch[rows]) for rows in blocks])


def run_block(learner: Parts, state: State, batch: Batch) -> Array:
    """Learn rows that are mapped together."""
    slots = state.memory.slots
    if state.combination is None:
        state.combination = start(state.w, slots.points)
    own = state.combination
    Z = learner.features.apply(state.phi, batch.X)
    U = Z if learner.memory.space == "features" else learner.features.inputs(state.phi, batch.X)
    plan, n = plan_batch(learner.memory, state, batch, U), len(batch)
    scores = np.empty((n, len(state.w)))
    with_loss(learn, learner.pair_loss)(
        examples_of(learner, state, Z, batch), learner.objective, step_table(learner, state, batch.weight),
        tuple(plan), buffer_of(slots, slots.points), (own.base, own.coef, own.factor, own.scores, own.gram),
        state.t, state.w, state.tally, scores,
    )  # fmt: skip
    state.t += n
    return scores


def start(w: Array, points: Array) -> Combination:
    """Return w as a combination in which all coefficients are 0."""
    shape = len(w), len(points)
    return Combination(w.copy(), np.zeros(shape), np.ones(len(w)), (w @ points.T).astype(float), points @ points.T)


@compiled
def learn(
    examples_: Any, objective_: Any, steps: Array, plan_: Any, buffer_: Any, combination: Any, t: int, w: Array,
    tally: Array, scores: Array,
) -> None:  # fmt: skip
    """Apply ``reference.step`` to the rows of a block after row t, with the memory's events already planned."""
    examples, objective, buffer, plan = Examples(*examples_), Objective(*objective_), Buffer(*buffer_), Plan(*plan_)
    base, coef, factor, F, gram = combination
    Z, y, query, points, mass = examples.Z, examples.y, examples.query, buffer.points, buffer.mass
    n, S = Z.shape[0], mass.shape[0]
    chosen, p, q, f = np.empty(S, np.int64), np.empty(S), np.empty(S), np.empty(S)
    order, every, changed, is_new = np.arange(n), np.arange(S), np.empty(S, np.int64), np.zeros(S, np.bool_)
    block, fresh, h = np.empty((ROWS, S), Z.dtype), np.empty((ROWS, S), Z.dtype), np.empty(S)
    own, new, n_changed = np.empty(F.shape[0]), np.empty(F.shape[0]), 0
    for i in range(n):
        z, first = Z[i], i % ROWS == 0
        # The only call, so that a product does not depend on whether a row is the first of four.
        products(
            Z, order, i, n - 1 if first else i, points, every if first else changed, S if first else n_changed,
            block if first else fresh,
        )  # fmt: skip
        for j in range(S):
            h[j] = block[i % ROWS, j]
            is_new[j] = is_new[j] and not first
        n_changed = 0 if first else n_changed
        for e in range(n_changed):
            h[changed[e]] = fresh[0, changed[e]]
        square = float(dot(z, z))
        if (t + i) % FOLD_ROWS == 0:
            for k in range(F.shape[0]):
                fold(base, coef, factor, k, points)
                for j in range(S):
                    F[k, j] = float(dot(base[k], points[j]))
        for k in range(F.shape[0]):
            s = float(dot(base[k], z))
            for j in range(S):
                s += coef[k, j] * h[j]
            scores[i, k] = factor[k] * s
            row = Row(z, y[i], examples.weight[i], objective.targets[k])
            count = find_partners(
                objective.pairs, row.target, objective.by_class, objective.joint, examples.gain[i, k],
                y[i], query[i], buffer.labels, buffer.queries, mass, chosen, p,
            )  # fmt: skip
            new[k], own[k] = scores[i, k], 0.0
            if count >= 0:
                new[k], own[k] = descend(
                    i, k, scores[i, k], square, row, objective, steps, Partners(chosen[:count], p, q),
                    Own(base, coef, factor, F, gram, h, f), buffer, tally,
                )  # fmt: skip
        for e in range(plan.start[i], plan.start[i + 1]):
            j = plan.slot[e]
            mass[j] = plan.mass[e]
            if plan.blend[e] > 0:
                for k in range(F.shape[0]):
                    add(base, k, coef[k, j], points[j])
                    coef[k, j], own[k], F[k, j] = own[k], 0.0, new[k]
                if not is_new[j]:
                    changed[n_changed] = j
                    n_changed += 1
                h[j], is_new[j] = square, True
                for c in range(S):
                    gram[j, c] = gram[c, j] = h[c]
                buffer.labels[j], buffer.queries[j] = y[i], query[i]
                for c in range(z.shape[0]):
                    points[j, c] = z[c]
        for k in range(F.shape[0]):
            add(base, k, own[k], z)
    for k in range(F.shape[0]):
        for c in range(w.shape[1]):
            w[k, c] = base[k, c]
        add_rows(w[k], points, every, coef[k])
        for c in range(w.shape[1]):
            w[k, c] *= w.dtype.type(factor[k])


@compiled
def descend(
    i: int, k: int, s: float, square: float, row: Row, objective: Objective, steps: Array, partners: Partners,
    arrays: Own, buffer: Buffer, tally: Array,
) -> tuple[float, float]:  # fmt: skip
    """Compiled ``reference.descend``; return <w, z> after the step, and the coefficient of z."""
    chosen, q, weight = partners.slot, partners.q, row.weight
    base, coef, factor, F, gram, h, f = arrays
    keep, rate, own = steps[0, i], steps[1, i], 0.0
    substeps, done = 1, 0
    while done < substeps:
        g = losses(s, F, k, row, objective, buffer, partners)
        total = along = size = 0.0
        for e in range(chosen.shape[0]):
            total += q[e]
            along += q[e] * h[chosen[e]]
        along -= total * square
        for j in range(f.shape[0]):
            f[j] = -total * h[j]
        add_rows(f, gram, chosen, q)
        for e in range(chosen.shape[0]):
            size += q[e] * f[chosen[e]]
        size = max(0.0, size - total * along)
        before = tally[WORST], tally[CUT], tally[SKIPPED], tally[LONG]
        length = safe_length(g, size, keep, rate, objective.smooth, substeps == 1 and weight > 1, tally)
        if substeps == MAX_SUBSTEPS:  # as in the specification, not counted
            tally[WORST], tally[CUT], tally[SKIPPED], tally[LONG] = before
        if length == SKIP:
            substeps = done
        elif length == SPLIT:
            substeps = int(min(np.ceil(weight), MAX_SUBSTEPS))
            keep, rate = steps[3, i], steps[4, i]
        else:
            if keep * factor[k] < MIN_FACTOR:
                add(base, k, own, row.z)
                fold(base, coef, factor, k, buffer.points)
                own = 0.0
                for c in range(base.shape[1]):
                    base[k, c] *= base.dtype.type(keep)
            else:
                factor[k] *= keep
            for j in range(f.shape[0]):
                F[k, j] = keep * F[k, j] - length * f[j]
            for e in range(chosen.shape[0]):
                coef[k, chosen[e]] -= length * q[e] / factor[k]
            own += length * total / factor[k]
            s = keep * s - length * along
            done += 1
            if done == 1:
                count_step(tally, weight, partners, g)
    return s, own


@compiled
def losses(
    s: float, F: Array, k: int, row: Row, objective: Objective, buffer: Buffer, partners: Partners
) -> float:  # fmt: skip
    """Return g = sum_k p_k l(m_k), and fill q_k = -p_k a_k l'(m_k), from the scores F of the slots."""
    g = 0.0
    for e in range(partners.slot.shape[0]):
        j, p = partners.slot[e], partners.p[e]
        a = pair_sign(objective.pairs, row.y, buffer.labels[j], row.target)
        margin = a * (s - F[k, j]) + pair_offset(objective.pairs, row.y, buffer.labels[j], row.target)
        g += p * loss_value(objective.loss, margin)
        partners.q[e] = -p * a * loss_slope(objective.loss, margin)
    return g


@compiled
def add(base: Array, k: int, coef: float, point: Array) -> None:
    """base_k <- base_k + coef point."""
    if coef != 0:
        a = base.dtype.type(coef)
        for c in range(base.shape[1]):
            base[k, c] += a * point[c]


@compiled
def fold(base: Array, coef: Array, factor: Array, k: int, points: Array) -> None:
    """Add the points to ``base`` with their coefficients, which become 0, and make the factor 1."""
    a = base.dtype.type(factor[k])
    for j in range(coef.shape[1]):
        add(base, k, coef[k, j], points[j])
        coef[k, j] = 0.0
    for c in range(base.shape[1]):
        base[k, c] *= a
    factor[k] = 1.0
