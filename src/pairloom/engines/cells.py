"""Steps per coordinate over a map of cells, such as a forest: m lookups for an example and for each partner.

phi(x) has the same value in m of its D coordinates and is 0 elsewhere, so that a point is a list of m cells, and the
gradient of an example against P partners has at most (P + 1) m nonzero entries. The iterates are those of
``reference``. Several models with different step sizes may learn side by side: ``w`` and ``squares`` are (targets, D,
models), and they share each lookup.

Cost: about 3 (P + 1) m lookups per example. No operation is O(D).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from pairloom.base.batch import Batch
from pairloom.base.compiled import compiled, copy_to
from pairloom.base.csr import CSRRows
from pairloom.base.typing import Array
from pairloom.engines.arguments import (
    Buffer,
    Examples,
    Objective,
    Partners,
    Row,
    buffer_of,
    examples_of,
    objective_of,
)
from pairloom.engines.base import Parts
from pairloom.engines.fused_steps import find_partners
from pairloom.engines.reference import MAX_STEP_SQUARED, MAX_WEIGHT
from pairloom.engines.sparse import plan_rows
from pairloom.engines.state import LOSS, PAIRS, SKIPPED, STEPS, State
from pairloom.losses import loss_slope, loss_value, with_loss
from pairloom.memory import Plan
from pairloom.pairs import pair_offset, pair_sign
from pairloom.steps.penalties import shrink
from pairloom.steps.schedules import MIN_SQUARE

double, any_part = False, False

BLOCK_ROWS = 512
"""Rows whose cells are looked up together."""


class SideSteps(NamedTuple):
    """Steps of models side by side, in their dtype: etas, and the penalty: alpha, l1, proximal or not."""

    etas: Array
    alpha: float
    l1: float
    proximal: bool


def takes(learner: Parts, state: State | None = None, batch: Batch | None = None) -> bool:
    """Return True for steps per coordinate over cells, without average or ball, and with a memory that keeps rows."""
    if learner.features.sparse is None:
        return False
    plain = learner.average == "last" and learner.penalty.bound == np.inf and not learner.memory.blends
    return learner.step.per_coordinate and plain


def run(learner: Parts, state: State, batch: Batch) -> Array:
    """Learn rows in order; return each row's scores before it was learned."""
    assert state.squares is not None
    shape = (len(state.w), -1, 1)
    models = np.array([learner.step.eta]), state.w.reshape(shape), state.squares.reshape(shape), state.tally[:, None]
    return learn(learner, state, batch, *models)[:, :, 0]


class Path(Protocol):
    """Several models that differ in their step size."""

    @property
    def learner(self) -> Parts: ...
    @property
    def etas(self) -> Sequence[float]: ...


@dataclass(frozen=True)
class PathEngine:
    """The engine for the models of a ``Path``; in the scores of a row, all targets of a model are adjacent."""

    double: ClassVar[bool] = False
    any_part: ClassVar[bool] = False

    def takes(self, path: Path, state: State | None = None, batch: Batch | None = None) -> bool:
        return takes(path.learner)

    def run(self, path: Path, state: State, batch: Batch) -> Array:
        assert state.squares is not None
        return by_model(learn(path.learner, state, batch, np.array(path.etas), state.w, state.squares, state.tally))


def by_model(scores: Array) -> Array:
    """Reshape scores (rows, targets, models) so that all targets of a model are adjacent."""
    return scores.transpose(0, 2, 1).reshape(len(scores), scores.shape[1] * scores.shape[2])


def learn(learner: Parts, state: State, batch: Batch, etas: Array, w: Array, squares: Array, tally: Array) -> Array:
    """Learn rows block by block; return scores (rows, targets, models)."""
    result = np.empty((len(batch), len(w), len(etas)))
    for start in range(0, len(batch), BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        result[rows] = learn_block(learner, state, batch[rows], etas, w, squares, tally)
    return result


def learn_block(
    learner: Parts, state: State, batch: Batch, etas: Array, w: Array, squares: Array, tally: Array
) -> Array:
    """Learn rows whose cells are looked up together; return scores (rows, targets, models)."""
    assert learner.features.sparse is not None
    cells = learner.features.sparse.cells(state.phi, batch.X)
    points = cells if learner.memory.csr is None else CSRRows.of_cells(cells, w.dtype)
    plan = plan_rows(learner, state, batch, points)
    numbers, kind = learner.penalty.numbers, w.dtype.type
    assert numbers is not None
    scores, value = np.empty((len(batch), len(w), len(etas))), kind(1.0 / np.sqrt(cells.shape[1]))
    with_loss(learn_cells, learner.pair_loss)(
        examples_of(learner, state, cells, batch), objective_of(learner),
        (etas.astype(w.dtype), kind(numbers.alpha), kind(numbers.l1), bool(numbers.proximal)),
        tuple(plan), buffer_of(state.memory.slots, state.cells), value, w, squares, tally, scores,
    )  # fmt: skip
    state.t += len(batch)
    return scores


def score(cells: Array, w: Array) -> Array:
    """Return <w, phi> of rows, given by their cells, for each model: (rows, targets, models)."""
    scores = np.empty((len(cells), len(w), w.shape[2]))
    score_cells(cells, w, w.dtype.type(1.0 / np.sqrt(cells.shape[1])), scores)
    return scores


@compiled
def score_cells(cells: Array, w: Array, value: float, scores: Array) -> None:
    """Fill ``scores``."""
    s = np.empty(w.shape[2], w.dtype)
    for i in range(cells.shape[0]):
        for k in range(w.shape[0]):
            sum_weights(w[k], cells[i], value, s)
            copy_to(scores[i, k], s)


@compiled
def learn_cells(
    examples_: Any, objective_: Any, steps_: Any, plan_: Any, buffer_: Any, value: float,
    w: Array, squares: Array, tally: Array, scores: Array,
) -> None:  # fmt: skip
    """Apply ``reference.adapt`` to rows of cells, for models side by side, one for each eta."""
    examples, objective, buffer = Examples(*examples_), Objective(*objective_), Buffer(*buffer_)
    steps, plan = SideSteps(*steps_), Plan(*plan_)
    y, query, labels, queries, mass = examples.y, examples.query, buffer.labels, buffer.queries, buffer.mass
    n_slots, n = mass.shape[0], steps.etas.shape[0]
    slot, p = np.empty(n_slots, np.int64), np.empty(n_slots)
    s, g, q = np.empty(n, w.dtype), np.empty(n), np.empty((n_slots + 1, n), w.dtype)
    found, sums = np.empty(n_slots + 1, np.int64), np.empty((n_slots + 1, n), w.dtype)
    for i in range(y.shape[0]):
        z = examples.Z[i]
        for k in range(objective.targets.shape[0]):
            sum_weights(w[k], z, value, s)
            copy_to(scores[i, k], s)
            row = Row(z, y[i], examples.weight[i], objective.targets[k])
            count = find_partners(
                objective.pairs, row.target, objective.by_class, objective.joint, examples.gain[i, k],
                y[i], query[i], labels, queries, mass, slot, p,
            )  # fmt: skip
            if count >= 0:
                pair_slopes(w[k], s, row, value, objective, buffer, Partners(slot[:count], p, q), g)
                count_steps(g, q[:count], row.weight, tally)
                active = move_active_first(slot[:count], q)
                for c in range(z.shape[0] if active > 0 else 0):
                    distinct = gather_gradient(c, z, buffer.points, slot[:active], q, found, sums)
                    for e in range(distinct):
                        step_cell(w[k, found[e]], squares[k, found[e]], sums[e], steps)
        for e in range(plan.start[i], plan.start[i + 1]):
            j = plan.slot[e]
            if plan.blend[e] > 0:
                copy_to(buffer.points[j], z)
                labels[j] = y[i]
                queries[j] = query[i]
            mass[j] = plan.mass[e]


@compiled
def sum_weights(w: Array, cells: Array, value: float, s: Array) -> None:
    """Fill s with <w, phi> of each model."""
    for r in range(s.shape[0]):
        s[r] = 0.0
    for c in range(cells.shape[0]):
        row = w[cells[c]]
        for r in range(s.shape[0]):
            s[r] += row[r]
    for r in range(s.shape[0]):
        s[r] *= value


@compiled
def pair_slopes(
    w: Array, s: Array, row: Row, value: float, objective: Objective, buffer: Buffer, partners: Partners, g: Array
) -> None:  # fmt: skip
    """Fill g of each model and q_j, the gradient in a cell that only partner j is in; it is -q_j if only z is in it."""
    slot, p, q, loss, pairs = partners.slot, partners.p, partners.q, objective.loss, objective.pairs
    n, last, times = s.shape[0], q.shape[0] - 1, min(row.weight, MAX_WEIGHT)
    for r in range(n):
        g[r] = 0.0
    for j in range(slot.shape[0]):
        label = buffer.labels[slot[j]]
        a, b = pair_sign(pairs, row.y, label, row.target), pair_offset(pairs, row.y, label, row.target)
        sum_weights(w, buffer.points[slot[j]], value, q[last])
        for r in range(n):
            margin = a * (s[r] - q[last, r]) + b
            g[r] += p[j] * loss_value(loss, margin)
            q[j, r] = -times * value * p[j] * a * loss_slope(loss, margin)


@compiled
def count_steps(g: Array, q: Array, weight: float, tally: Array) -> None:
    """Count the steps, and skip those that would overflow."""
    for r in range(g.shape[0]):
        size = 0.0
        for j in range(q.shape[0]):
            size += abs(q[j, r])
        if g[r] + size * size < MAX_STEP_SQUARED:
            tally[STEPS, r] += weight
            tally[PAIRS, r] += q.shape[0]
            tally[LOSS, r] += weight * g[r]
        else:
            tally[SKIPPED, r] += 1
            for j in range(q.shape[0]):
                q[j, r] = 0.0


@compiled
def move_active_first(partners: Array, q: Array) -> int:
    """Move the partners with a nonzero gradient to the front; return their number."""
    active = 0
    for j in range(partners.shape[0]):
        largest = q[j, 0] * 0
        for r in range(q.shape[1]):
            largest = max(largest, abs(q[j, r]))
        if largest > 0:
            partners[active] = partners[j]
            for r in range(q.shape[1]):
                q[active, r] = q[j, r]
            active += 1
    return active


@compiled
def gather_gradient(c: int, z: Array, points: Array, partners: Array, q: Array, found: Array, sums: Array) -> int:
    """Fill ``sums`` with the gradient in the c-th cells of z and its partners (``found``); return their number.

    The cell of z comes first. Partners in that cell contribute exactly 0.
    """
    n = sums.shape[1]
    found[0] = z[c]
    for r in range(n):
        sums[0, r] = 0.0
    distinct = 1
    for j in range(partners.shape[0]):
        cell = points[partners[j], c]
        if cell != z[c]:
            at = distinct
            for e in range(1, distinct):
                if found[e] == cell:
                    at = e
            if at == distinct:
                distinct += 1
                found[at] = cell
                for r in range(n):
                    sums[at, r] = 0.0
            for r in range(n):
                sums[0, r] -= q[j, r]
                sums[at, r] += q[j, r]
    return distinct if distinct > 1 else 0


@compiled
def step_cell(w: Array, squares: Array, v: Array, steps: SideSteps) -> None:
    """Do the same as ``fused_steps.moved_coordinate`` for models side by side, in their dtype, without a branch."""
    etas, alpha, l1, proximal = steps.etas, steps.alpha, steps.l1, steps.proximal
    kind = w.dtype.type
    zero, one, small = kind(0), kind(1), kind(MIN_SQUARE)
    if alpha == 0 and l1 == 0:
        for r in range(v.shape[0]):
            x = v[r] if v[r] * v[r] > small else zero
            square = squares[r] + x * x
            squares[r] = square
            w[r] -= etas[r] * x / np.sqrt(square if square > zero else one)
        return
    for r in range(v.shape[0]):
        x = v[r] if v[r] * v[r] > small else zero
        square = squares[r] + x * x
        squares[r] = square
        keep, rate, threshold = shrink(etas[r] / np.sqrt(square if square > zero else one), alpha, l1, proximal)
        u = keep * w[r] - rate * x
        u = np.sign(u) * max(0.0, abs(u) - threshold)
        w[r] = u if x != 0 else w[r]
