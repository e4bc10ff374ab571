"""The specification in code: one example at a time, NumPy, float64, no tricks.

    z = phi(x_t)
    delta_j = <w, z> - <w, B_j>,  m_j = a_j delta_j + b_j,  p_j = mass_j / total     for the partners j of y_t
    g = sum_j p_j l(m_j)
    v = sum_j p_j a_j l'(m_j) (z - B_j)
    w <- keep w - rate v, then the penalty's threshold and ball (``sweep``: pair by pair; ``adapt``: by coordinates)
    the memory takes in (z, y_t)

Every other engine is tested against this one. Do not make it fast.
"""

from math import ceil

import numpy as np

from pairloom.base.batch import Batch
from pairloom.base.csr import is_sparse
from pairloom.base.typing import Array
from pairloom.engines.base import Parts
from pairloom.engines.state import CUT, LONG, LOSS, PAIRS, SKIPPED, STEPS, WORST, State
from pairloom.memory import Example, Memory, Slots
from pairloom.pairs import Pairs
from pairloom.steps import averaging_rate
from pairloom.steps.adagrad import SMALL

STABLE = 2.0
"""A step of a smooth loss raises the very loss it descends when rate * curvature passes 2."""

PARTS = 100
"""Equal parts, at most, into which the step of a heavy row is split."""

HEAVY = 1e6
"""A row that weighs more steps as one of this weight, and counts in full in the memory."""

FAR = 1e8
"""The squared length of a step, of a loss with a kink, that is worth a warning: margins of 1 are asked for."""

LONGEST = 1e30
"""A step with a squared length beyond this overflows float32 when its numbers are squared: it is skipped."""


double, any_part = True, True


def takes(learner: Parts, state: State, batch: Batch) -> bool:
    """All rows."""
    return True


def run(learner: Parts, state: State, batch: Batch) -> Array:
    """Learn the rows in order; return each row's scores by the models before they learned the row."""
    return np.array([step(learner, state, batch[i : i + 1]) for i in range(len(batch))])


def step(learner: Parts, state: State, row: Batch) -> Array:
    """Learn one row."""
    state.t += 1
    x = row.X.toarray() if is_sparse(row.X) else row.X
    z = learner.features.dense(state.phi, x)[0]
    u = z if learner.memory.space == "features" else learner.features.inputs(state.phi, x)[0]
    draws = state.rng.random(learner.memory.draws)
    example = Example(z, u, float(row.y[0]), float(row.weight[0]), int(row.query[0]), draws, x[0])
    scores = (state.w if learner.average == "last" else state.w_bar) @ z

    for k in range(len(state.w)):
        learn_pairs(learner, state, k, example)
    rho = averaging_rate(learner.average, np.asarray(state.counted))
    state.w_bar += rho * (state.w - state.w_bar)

    learner.memory.observe(state.memory, example)
    if learner.memory.weighting == "sum":
        for k, model in enumerate(learner.pairs.targets):
            state.totals[k, int(example.y == model)] += example.weight
    return np.asarray(scores)


def learn_pairs(learner: Parts, state: State, k: int, example: Example) -> None:
    """What model k learns from the pairs of the newest example."""
    partners, p = partners_of(learner, state, k, example)
    if p is None:
        return
    learn = sweep if learner.step.sequential else adapt if learner.step.per_coordinate else descend
    learn(learner, state, k, example, partners, p)


def partners_of(learner: Parts, state: State, k: int, example: Example) -> tuple[Array, Array | None]:
    """``paired`` for model k; where weights are sums, with those sums."""
    model = learner.pairs.targets[k]
    partners, p = paired(learner.memory, learner.pairs, state.memory.slots, example, model)
    if p is not None and learner.memory.weighting == "sum":
        p = p * state.totals[k, int(example.y != model)]
    return partners, p


def descend(learner: Parts, state: State, k: int, example: Example, partners: Array, weights: Array) -> None:
    """One gradient step of model k on the weighted pair loss of the newest example."""
    eta = learner.step.at(np.asarray(state.counted)) * min(example.weight, HEAVY)
    loss, parts, part = learner.pair_loss, 1, 0
    while part < parts:
        g, v = gradient(learner, state.memory.slots, state.w[k], k, example, partners, weights)
        keep, rate, threshold = map(float, learner.penalty.at(eta / parts))
        squared_norm = float(v @ v)
        # ||v||^2 / (2 g) is a lower bound of the curvature along v, exact for one pair and the square loss.
        smooth = g > 0 and np.isfinite(loss.smoothness)
        curvature = squared_norm / (2.0 * g) if smooth else 0.0
        unstable = rate * curvature > STABLE or keep <= 0
        if parts == 1 and example.weight > 1 and unstable and is_safe(rate, g + squared_norm):
            parts = min(ceil(example.weight), PARTS)
            continue
        rate = guard(rate, curvature, g + squared_norm, counter(state.tally, parts))
        if rate == 0:
            return
        keep = max(0.0, keep) if parts == PARTS else keep
        state.w[k] = limited(keep * state.w[k] - rate * v, threshold, learner.penalty.bound)
        part += 1
        if part == 1:
            state.tally[STEPS] += example.weight
            state.tally[PAIRS] += len(partners)
            state.tally[LOSS] += example.weight * g


def sweep(learner: Parts, state: State, k: int, example: Example, partners: Array, p: Array) -> None:
    """A passive-aggressive step of model k for each pair of the newest example, in the order of the slots."""
    slots, g = state.memory.slots, 0.0
    eta = learner.step.at(np.asarray(state.counted)) * min(example.weight, HEAVY)
    keep, rate, threshold = map(float, learner.penalty.at(eta))
    w = max(0.0, keep) * state.w[k]
    signs = learner.pairs.sign(example.y, slots.labels[partners], learner.pairs.targets[k])
    for j, a, p_j in zip(partners, signs, p.tolist(), strict=True):
        u = a * (example.z - slots.points[j])
        squared_norm, gap = float(u @ u), 1.0 - float(w @ u)
        g += p_j * max(0.0, gap)
        if gap <= 0 or squared_norm == 0:
            continue
        tau = min(rate * p_j, gap / squared_norm)
        if is_safe(tau, squared_norm):
            w = w + tau * u
        else:
            state.tally[SKIPPED] += 1
    state.w[k] = limited(w, threshold, learner.penalty.bound)
    state.tally[STEPS] += example.weight
    state.tally[PAIRS] += len(partners)
    state.tally[LOSS] += example.weight * g


def adapt(learner: Parts, state: State, k: int, example: Example, partners: Array, weights: Array) -> None:
    """A step of model k with a length for each coordinate that the newest example's gradient has."""
    assert state.squares is not None
    g, q = slopes(learner, state.memory.slots, state.w[k], k, example, partners, weights)
    # Differences first: where all points agree with z there is no gradient, not even a rounding error.
    v = min(example.weight, HEAVY) * (q @ (example.z - state.memory.slots.points[partners]))
    if not is_safe(1.0, g + float(v @ v)):
        state.tally[SKIPPED] += 1
        return
    c = np.flatnonzero(v * v > SMALL)
    w, squares = state.w[k].copy(), state.squares[k]
    squares[c] += v[c] * v[c]
    keep, rate, threshold = learner.penalty.at(learner.step.lengths(squares[c]))
    u = np.maximum(0.0, keep) * w[c] - rate * v[c]
    w[c] = np.sign(u) * np.maximum(0.0, np.abs(u) - threshold)
    state.w[k] = limited(w, 0.0, learner.penalty.bound)
    state.tally[STEPS] += example.weight
    state.tally[PAIRS] += len(partners)
    state.tally[LOSS] += example.weight * g


def limited(w: Array, threshold: float, bound: float) -> Array:
    """The end of a step: the penalty's soft threshold and ball."""
    w = np.sign(w) * np.maximum(0.0, np.abs(w) - threshold)
    norm = np.sqrt(w @ w)
    return w if norm <= bound else np.asarray(w * (bound / norm))


def is_safe(rate: float, size: float) -> bool:
    """Whether a step overflows nowhere; ``size`` is the gradient's squared norm, or more."""
    return size < np.inf and rate * rate * size < LONGEST


def counter(tally: Array, parts: int) -> Array:
    """Where cut steps are counted: not in the tally where a row is so heavy that its parts are too long as well.

    That says nothing about eta, of which the warning speaks.
    """
    return np.zeros_like(tally) if parts == PARTS else tally


def guard(rate: float, curvature: float, size: float, tally: Array) -> float:
    """The length of a step, cut where it would be unstable; 0 if the step overflows and is to be skipped."""
    if not is_safe(rate, size):
        tally[SKIPPED] += 1
        return 0.0
    instability = rate * curvature
    tally[WORST] = max(tally[WORST], instability)
    tally[LONG] += curvature == 0 and rate * rate * size > FAR
    if instability > STABLE:
        # Continuous in the step, and towards 1 / curvature, with which a step never moves away from a model that
        # ranks these pairs without loss.
        tally[CUT] += 1
        rate /= instability - 1.0
    return rate


def paired(memory: Memory, pairs: Pairs, slots: Slots, example: Example, model: float) -> tuple[Array, Array | None]:
    """The slots that make pairs with an example, and their weights p_j; None where there is nothing to learn from."""
    sign = pairs.sign(example.y, slots.labels, model)
    partners = np.flatnonzero((slots.mass > 0) & (sign != 0) & (slots.queries == example.query))
    mass = slots.mass[partners]
    total = slots.mass.sum() if memory.weighting == "history" else mass.sum()
    # Where classes share slots, a row without a partner still shrinks the weights.
    if total == 0 or (len(partners) == 0 and not memory.joint):
        return partners, None
    return partners, mass / total


def gradient(
    learner: Parts, slots: Slots, w: Array, k: int, example: Example, partners: Array, p: Array
) -> tuple[float, Array]:
    """Loss g and gradient v of an example against its partners."""
    g, q = slopes(learner, slots, w, k, example, partners, p)
    return g, q.sum() * example.z - q @ slots.points[partners]


def slopes(
    learner: Parts, slots: Slots, w: Array, k: int, example: Example, partners: Array, p: Array
) -> tuple[float, Array]:
    """Loss g of an example against its partners, and q_j = p_j a_j l'(m_j)."""
    B, labels = slots.points[partners], slots.labels[partners]
    model = learner.pairs.targets[k]
    a = learner.pairs.sign(example.y, labels, model)
    margin = a * (w @ example.z - B @ w) + learner.pairs.offset(example.y, labels, model)
    g = float(p @ learner.pair_loss.value(margin))
    return g, p * a * learner.pair_loss.derivative(margin)
