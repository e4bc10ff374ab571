"""The specification in code: one example at a time, NumPy, float64, no tricks.

    z = phi(x_t)
    delta_j = <w, z> - <w, B_j>,  m_j = a_j delta_j + b_j,  p_j = mass_j / total     for the partners j of y_t
    g = sum_j p_j l(m_j)
    v = sum_j p_j a_j l'(m_j) (z - B_j)
    w <- keep w - rate v, then the penalty's threshold and ball (``sweep``: pair by pair; ``adapt``: by coordinates)
    the memory observes (z, y_t)

Every other engine is tested against this one. Do not make it fast.
"""

from math import ceil

import numpy as np

from pairloom.base.batch import Batch
from pairloom.base.csr import is_sparse
from pairloom.base.typing import Array
from pairloom.engines.base import Parts
from pairloom.engines.state import CUT, LONG, LOSS, PAIRS, SKIPPED, STEPS, WORST, State
from pairloom.features.base import dense_features
from pairloom.memory import Example, Memory, Slots
from pairloom.pairs import Pairs
from pairloom.steps.schedules import MIN_SQUARE, averaging_rate

MAX_INSTABILITY = 2.0
"""A step on a smooth loss increases the loss if rate * curvature is larger than this."""

MAX_SUBSTEPS = 100
"""Maximum number of equal substeps into which the step of a heavy row is split."""

MAX_WEIGHT = 1e6
"""Maximum weight of a row in its step; in the memory it has its full weight."""

LONG_STEP_SQUARED = 1e8
"""Squared length of a step on a non-smooth loss that causes a warning: the target margins are 1."""

MAX_STEP_SQUARED = 1e30
"""Steps with a larger squared length are skipped: squaring their entries would overflow float32."""


double, any_part = True, True


def takes(learner: Parts, state: State, batch: Batch) -> bool:
    """Return True: this engine supports all rows."""
    return True


def run(learner: Parts, state: State, batch: Batch) -> Array:
    """Learn rows in order; return each row's scores before it was learned."""
    return np.array([step(learner, state, batch[i : i + 1]) for i in range(len(batch))])


def step(learner: Parts, state: State, row: Batch) -> Array:
    """Learn one row; return its scores."""
    state.t += 1
    x = row.X.toarray() if is_sparse(row.X) else row.X
    z = dense_features(learner.features, state.phi, x)[0]
    u = z if learner.memory.space == "features" else learner.features.inputs(state.phi, x)[0]
    draws = state.rng.random(learner.memory.draws)
    example = Example(z, u, float(row.y[0]), float(row.weight[0]), int(row.query[0]), draws, x[0])
    scores = (state.w if learner.average == "last" else state.w_bar) @ z

    learn = sweep if learner.step.sequential else adapt if learner.step.per_coordinate else descend
    for k in range(len(state.w)):
        partners, p = partners_of(learner, state, k, example)
        if p is not None:
            learn(learner, state, k, example, partners, p)
    rho = averaging_rate(learner.average, np.asarray(state.counted))
    state.w_bar += rho * (state.w - state.w_bar)

    learner.memory.observe(state.memory, example)
    if learner.memory.weighting == "sum":
        for k, target in enumerate(learner.pairs.targets):
            state.totals[k, int(example.y == target)] += example.weight
    return np.asarray(scores)


def partners_of(learner: Parts, state: State, k: int, example: Example) -> tuple[Array, Array | None]:
    """Return the partners of an example for model k, and their weights; None if it takes no step."""
    target = learner.pairs.targets[k]
    partners, p = find_partners(learner.memory, learner.pairs, state.memory.slots, example, target)
    if p is not None and learner.memory.weighting == "sum":
        p = p * state.totals[k, int(example.y != target)]
    return partners, p


def descend(learner: Parts, state: State, k: int, example: Example, partners: Array, weights: Array) -> None:
    """Take one gradient step of model k on the weighted pair loss of the newest example."""
    eta = learner.step.at(np.asarray(state.counted)) * min(example.weight, MAX_WEIGHT)
    loss, substeps, done = learner.pair_loss, 1, 0
    while done < substeps:
        g, v = gradient(learner, state.memory.slots, state.w[k], k, example, partners, weights)
        keep, rate, threshold = map(float, learner.penalty.at(eta / substeps))
        squared_norm = float(v @ v)
        # ||v||^2 / (2 g) is a lower bound on the curvature along v, exact for one pair and the square loss.
        smooth = g > 0 and np.isfinite(loss.smoothness)
        curvature = squared_norm / (2.0 * g) if smooth else 0.0
        unstable = rate * curvature > MAX_INSTABILITY or keep <= 0
        if substeps == 1 and example.weight > 1 and unstable and is_safe(rate, g + squared_norm):
            substeps = min(ceil(example.weight), MAX_SUBSTEPS)
            continue
        # If a row is so heavy that even its substeps are cut, eta is not the cause: do not count it.
        tally = np.zeros_like(state.tally) if substeps == MAX_SUBSTEPS else state.tally
        rate = guard(rate, curvature, g + squared_norm, tally)
        if rate == 0:
            return
        keep = max(0.0, keep) if substeps == MAX_SUBSTEPS else keep
        state.w[k] = threshold_and_project(keep * state.w[k] - rate * v, threshold, learner.penalty.bound)
        done += 1
        if done == 1:
            count_step(state.tally, example.weight, len(partners), g)


def sweep(learner: Parts, state: State, k: int, example: Example, partners: Array, p: Array) -> None:
    """Take a passive-aggressive step of model k for each pair of the newest example, in the order of the slots."""
    slots, g = state.memory.slots, 0.0
    eta = learner.step.at(np.asarray(state.counted)) * min(example.weight, MAX_WEIGHT)
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
    state.w[k] = threshold_and_project(w, threshold, learner.penalty.bound)
    count_step(state.tally, example.weight, len(partners), g)


def adapt(learner: Parts, state: State, k: int, example: Example, partners: Array, weights: Array) -> None:
    """Take a step of model k with one step size per nonzero coordinate of the newest example's gradient."""
    assert state.squares is not None
    g, q = slopes(learner, state.memory.slots, state.w[k], k, example, partners, weights)
    # Differences first: where all points equal z, the gradient is exactly 0, without rounding error.
    v = min(example.weight, MAX_WEIGHT) * (q @ (example.z - state.memory.slots.points[partners]))
    if not is_safe(1.0, g + float(v @ v)):
        state.tally[SKIPPED] += 1
        return
    c = np.flatnonzero(v * v > MIN_SQUARE)
    w, squares = state.w[k].copy(), state.squares[k]
    squares[c] += v[c] * v[c]
    keep, rate, threshold = learner.penalty.at(learner.step.lengths(squares[c]))
    u = np.maximum(0.0, keep) * w[c] - rate * v[c]
    w[c] = np.sign(u) * np.maximum(0.0, np.abs(u) - threshold)
    state.w[k] = threshold_and_project(w, 0.0, learner.penalty.bound)
    count_step(state.tally, example.weight, len(partners), g)


def count_step(tally: Array, weight: float, n_pairs: float, g: float) -> None:
    """Count a step for a row of this weight with loss g."""
    tally[STEPS] += weight
    tally[PAIRS] += n_pairs
    tally[LOSS] += weight * g


def threshold_and_project(w: Array, threshold: float, bound: float) -> Array:
    """Apply the penalty's soft threshold, then project onto its ball."""
    w = np.sign(w) * np.maximum(0.0, np.abs(w) - threshold)
    norm = np.sqrt(w @ w)
    return w if norm <= bound else np.asarray(w * (bound / norm))


def is_safe(rate: float, size: float) -> bool:
    """Return whether a step cannot overflow; ``size`` is the gradient's squared norm, or an upper bound."""
    return size < np.inf and rate * rate * size < MAX_STEP_SQUARED


def guard(rate: float, curvature: float, size: float, tally: Array) -> float:
    """Return the length of a step, cut where it would be unstable; 0 if the step would overflow and is skipped."""
    if not is_safe(rate, size):
        tally[SKIPPED] += 1
        return 0.0
    instability = rate * curvature
    tally[WORST] = max(tally[WORST], instability)
    tally[LONG] += curvature == 0 and rate * rate * size > LONG_STEP_SQUARED
    if instability > MAX_INSTABILITY:
        # Continuous in the step, with limit 1 / curvature: such a step never moves away from a model that ranks these
        # pairs without loss.
        tally[CUT] += 1
        rate /= instability - 1.0
    return rate


def find_partners(
    memory: Memory, pairs: Pairs, slots: Slots, example: Example, target: float
) -> tuple[Array, Array | None]:
    """Return the slots paired with an example and their weights p_j; None if it takes no step."""
    sign = pairs.sign(example.y, slots.labels, target)
    partners = np.flatnonzero((slots.mass > 0) & (sign != 0) & (slots.queries == example.query))
    mass = slots.mass[partners]
    total = slots.mass.sum() if memory.weighting == "history" else mass.sum()
    # If classes share slots, a row without a partner still shrinks the weights.
    if total == 0 or (len(partners) == 0 and not memory.joint):
        return partners, None
    return partners, mass / total


def gradient(
    learner: Parts, slots: Slots, w: Array, k: int, example: Example, partners: Array, p: Array
) -> tuple[float, Array]:
    """Return the loss g and the gradient v of an example against its partners."""
    g, q = slopes(learner, slots, w, k, example, partners, p)
    return g, q.sum() * example.z - q @ slots.points[partners]


def slopes(
    learner: Parts, slots: Slots, w: Array, k: int, example: Example, partners: Array, p: Array
) -> tuple[float, Array]:
    """Return the loss g of an example against its partners, and q_j = p_j a_j l'(m_j)."""
    B, labels = slots.points[partners], slots.labels[partners]
    target = learner.pairs.targets[k]
    a = learner.pairs.sign(example.y, labels, target)
    margin = a * (w @ example.z - B @ w) + learner.pairs.offset(example.y, labels, target)
    g = float(p @ learner.pair_loss.value(margin))
    return g, p * a * learner.pair_loss.derivative(margin)
