"""What the compiled loops of the engines are given, in groups.

From Python the groups come as plain tuples, in the order of their fields, and are named inside the loop: Numba takes
much longer over named ones, which shows where rows are learned one by one.
"""

from typing import Any, NamedTuple

import numpy as np

from pairloom.base.batch import Batch
from pairloom.base.typing import Array
from pairloom.engines.base import Parts
from pairloom.engines.reference import HEAVY, PARTS
from pairloom.engines.state import State
from pairloom.memory import Slots
from pairloom.steps import averaging_rate, constant


class Examples(NamedTuple):
    """The rows of a block: phi(x) as the loop takes it, labels, weights, queries, and ``gain`` (rows, models).

    ``gain``: what the weights of a row's pairs add up to.
    """

    Z: Any
    y: Array
    weight: Array
    query: Array
    gain: Array


class Objective(NamedTuple):
    """Loss and pairs by their codes, the ``targets`` of the models, and how partners are weighted."""

    loss: int
    smooth: bool
    pairs: int
    targets: Array
    by_class: bool
    joint: bool


class Buffer(NamedTuple):
    """``Slots``, their points as the loop takes them."""

    points: Any
    labels: Array
    queries: Array
    mass: Array


class Steps(NamedTuple):
    """How the rows of a block move w: ``step_table``, ball, one pair after the other or not; averaging rates."""

    table: Array
    bound: float
    sequential: bool
    rho: Array
    averaging: bool


class Row(NamedTuple):
    """One row as one model sees it; ``target`` is the model's."""

    z: Any
    y: float
    weight: float
    target: float


class Partners(NamedTuple):
    """The slots that a row is paired with, their weights p_j, and room for q_j = -p_j a_j l'(m_j)."""

    slot: Array
    p: Array
    q: Array


def examples_of(learner: Parts, state: State, Z: Any, batch: Batch) -> tuple[Any, ...]:
    """``Examples`` as a plain tuple; the state counts their weight where ``gains`` depend on it."""
    return Z, batch.y, batch.weight, batch.query, gains(learner, state, batch)


def objective_of(learner: Parts) -> tuple[Any, ...]:
    """``Objective`` as a plain tuple."""
    loss, pairs, memory = learner.pair_loss, learner.pairs, learner.memory
    smooth = bool(loss.smoothness < np.inf)
    return loss.code, smooth, pairs.code, pairs.targets, memory.weighting != "history", memory.joint


def buffer_of(slots: Slots, points: Any) -> tuple[Any, ...]:
    """``Buffer`` as a plain tuple."""
    return points, slots.labels, slots.queries, slots.mass


def steps_of(learner: Parts, t: Array, weight: Array) -> tuple[Any, ...]:
    """``Steps`` as a plain tuple."""
    averaging = learner.average != "last"
    table, rho = step_table(learner, t, weight), averaging_rate(learner.average, t)
    return table, learner.penalty.bound, learner.step.sequential, rho, averaging


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
