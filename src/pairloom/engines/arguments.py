"""Grouped arguments of compiled loops.

Python passes each group as a plain tuple, and the compiled loop converts it to a named tuple. Numba unpacks named
tuples much more slowly, which matters when rows are learned one at a time.
"""

from typing import Any, NamedTuple

import numpy as np

from pairloom.base.batch import Batch
from pairloom.base.typing import Array
from pairloom.engines.base import Parts
from pairloom.engines.reference import MAX_SUBSTEPS, MAX_WEIGHT
from pairloom.engines.state import State
from pairloom.memory import Slots
from pairloom.steps.schedules import averaging_rate

Adaptive = tuple[Any, float, float, float, bool]
"""Steps per coordinate: sums of squared gradients (models, D), eta, and the penalty: alpha, l1, proximal or not."""


class Examples(NamedTuple):
    """The rows of a block: phi(x) in the format of the loop, labels, weights and queries.

    ``gain`` (rows, models): the sum of the weights of a row's pairs.
    """

    Z: Any
    y: Array
    weight: Array
    query: Array
    gain: Array


class Objective(NamedTuple):
    """Codes of the loss and the pairs, the ``targets`` of the models, and the weighting of partners."""

    loss: int
    smooth: bool
    pairs: int
    targets: Array
    by_class: bool
    joint: bool


class Buffer(NamedTuple):
    """The arrays of ``Slots``, with points in the format of the loop."""

    points: Any
    labels: Array
    queries: Array
    mass: Array


class Steps(NamedTuple):
    """Steps of the rows of a block: ``step_table``, the ball, whether to step pair by pair, and averaging rates."""

    table: Array
    bound: float
    sequential: bool
    rho: Array
    averaging: bool


class Row(NamedTuple):
    """One row, with the ``target`` of one model."""

    z: Any
    y: float
    weight: float
    target: float


class Partners(NamedTuple):
    """The slots that a row is paired with, their weights p_j, and a buffer for q_j = -p_j a_j l'(m_j)."""

    slot: Array
    p: Array
    q: Array


def examples_of(learner: Parts, state: State, Z: Any, batch: Batch) -> tuple[Any, ...]:
    """Return ``Examples`` as a plain tuple; update the totals of the state if ``pair_gains`` needs them."""
    return Z, batch.y, batch.weight, batch.query, pair_gains(learner, state, batch)


def objective_of(learner: Parts) -> tuple[Any, ...]:
    """Return ``Objective`` as a plain tuple."""
    loss, pairs, memory = learner.pair_loss, learner.pairs, learner.memory
    smooth = bool(loss.smoothness < np.inf)
    return loss.code, smooth, pairs.code, pairs.targets, memory.weighting != "history", memory.joint


def buffer_of(slots: Slots, points: Any) -> tuple[Any, ...]:
    """Return ``Buffer`` as a plain tuple."""
    return points, slots.labels, slots.queries, slots.mass


def steps_of(learner: Parts, state: State, weight: Array) -> tuple[Any, ...]:
    """Return ``Steps`` as a plain tuple."""
    averaging, t = learner.average != "last", state.ages(len(weight))
    table, rho = step_table(learner, state, weight), averaging_rate(learner.average, t)
    return table, learner.penalty.bound, learner.step.sequential, rho, averaging


def adaptive_steps(learner: Parts, squares: Array | None) -> Adaptive | None:
    """Return the ``Adaptive`` arguments of a learner; None unless its steps are per coordinate."""
    if squares is None:
        return None
    numbers = learner.penalty.numbers
    assert numbers is not None
    return squares, float(learner.step.eta), float(numbers.alpha), float(numbers.l1), bool(numbers.proximal)


def pair_gains(learner: Parts, state: State, batch: Batch) -> Array:
    """Return the sum of each row's pair weights, per model: 1, or the weight of the earlier rows of the other class."""
    n, k = len(batch), len(state.w)
    if learner.memory.weighting != "sum":
        gains = np.empty((n, k))
        gains.fill(1.0)
        return gains
    own = batch.y[:, None] == learner.pairs.targets
    totals = np.empty((n + 1, k, 2))
    totals[0], totals[1:, :, 0], totals[1:, :, 1] = state.totals, ~own, own
    totals[1:] *= batch.weight[:, None, None]
    np.cumsum(totals, axis=0, out=totals)  # in order, so that the split into blocks does not matter
    state.totals = totals[-1].copy()
    return np.where(own, totals[:-1, :, 0], totals[:-1, :, 1])


def step_table(learner: Parts, state: State, weight: Array) -> Array:
    """Return (keep, rate, threshold) of each full step, then of one substep of a heavy row; do not change it."""
    if len(weight) == 1 and weight[0] == 1 and learner.steady_step is not None:
        return learner.steady_step
    eta = learner.step.at(state.ages(len(weight))) * np.minimum(weight, MAX_WEIGHT)
    table = np.empty((6, len(weight)))
    table[0], table[1], table[2] = learner.penalty.at(eta)
    if weight.max() > 1:
        substeps = np.minimum(np.ceil(weight), MAX_SUBSTEPS)
        table[3], table[4], table[5] = learner.penalty.at(eta / substeps)
        table[3, substeps == MAX_SUBSTEPS] = np.maximum(0.0, table[3, substeps == MAX_SUBSTEPS])
    return table
