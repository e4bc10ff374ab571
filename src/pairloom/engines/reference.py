"""The specification in code: one example at a time, NumPy, float64, no tricks.

    z = phi(x_t)
    delta_j = <w, z> - <w, B_j>,  p_j = mass_j / total          for the partners j of y_t
    g = sum_j p_j l(a_j delta_j)
    v = sum_j p_j a_j l'(a_j delta_j) (z - B_j)
    w <- keep w - rate v
    the memory takes in (z, y_t)

Every other engine is tested against this one. Do not make it fast.
"""

from typing import TYPE_CHECKING

import numpy as np

from pairloom.losses import Loss
from pairloom.memory import Slots
from pairloom.pairs import Pairs
from pairloom.state import CUT, LOSS, PAIRS, SKIPPED, STEPS, WORST, State
from pairloom.steps import averaging_rate
from pairloom.typing import Array

if TYPE_CHECKING:
    from pairloom.learner import Learner

STABLE = 2.0
"""A step of a smooth loss raises the very loss it descends when rate * curvature passes 2."""

NEGLIGIBLE = 1e-10
"""Below this a loss may be rounding only, and says nothing about its curvature."""


def run(learner: "Learner", state: State, X: Array, y: Array) -> Array:
    """Learn the rows in order; return each row's score by the model before it learned the row."""
    scores = np.empty(len(y))
    for i in range(len(y)):
        scores[i] = step(learner, state, X[i], float(y[i]))
    return scores


def step(learner: "Learner", state: State, x: Array, y: float) -> float:
    """Learn one row."""
    state.t += 1
    z = learner.features.apply(state.phi, x[None, :])[0]
    u = z if learner.memory.space == "features" else learner.features.inputs(state.phi, x[None, :])[0]
    score = float((state.w if learner.average == "last" else state.w_bar) @ z)

    total = learner.memory.total(state.memory, y, state.t)
    if total > 0:
        descend(learner, state, z, y, total)

    rho = averaging_rate(learner.average, np.asarray(state.t))
    state.w_bar += rho * (state.w - state.w_bar)

    learner.memory.observe(state.memory, z, u, y, state.rng.random(learner.memory.draws))
    return score


def descend(learner: "Learner", state: State, z: Array, y: float, total: float) -> None:
    """One gradient step on the weighted pair loss of the newest example."""
    g, v, n_pairs = gradient(learner.loss, learner.pairs, state.w, z, y, state.memory.slots, total)
    keep, rate = map(float, learner.penalty.at(learner.step.at(np.asarray(state.t))))
    squared_norm = float(v @ v)
    if not np.isfinite(g + squared_norm):
        state.tally[SKIPPED] += 1
        return
    if g > NEGLIGIBLE and np.isfinite(learner.loss.smoothness):
        # ||v||^2 / (2 g) is a lower bound of the curvature along v, exact for one pair and the square loss.
        # At rate = 2 g / ||v||^2 a step never moves away from a model that ranks these pairs without loss.
        instability = rate * squared_norm / (2.0 * g)
        state.tally[WORST] = max(state.tally[WORST], instability)
        if instability > STABLE:
            state.tally[CUT] += 1
            rate = 2.0 * g / squared_norm
    state.w[:] = keep * state.w - rate * v
    state.tally[STEPS] += 1
    state.tally[PAIRS] += n_pairs
    state.tally[LOSS] += g


def gradient(
    loss: Loss, pairs: Pairs, w: Array, z: Array, y: float, slots: Slots, total: float
) -> tuple[float, Array, int]:
    """Loss g, gradient v and number of pairs of an example against the slots."""
    sign = pairs.sign(y, slots.labels)
    partners = np.flatnonzero((slots.mass > 0) & (sign != 0))
    B, a, p = slots.points[partners], sign[partners], slots.mass[partners] / total
    delta = w @ z - B @ w
    g = float(p @ loss.value(a * delta))
    q = p * a * loss.derivative(a * delta)
    return g, q.sum() * z - q @ B, len(partners)
