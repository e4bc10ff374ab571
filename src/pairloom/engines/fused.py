"""The sequential engine: rows mapped in blocks with BLAS, memory planned and model learned in compiled loops.

The same iterates as ``reference``, in the learner's own dtype. Nothing depends on how rows are cut into blocks,
to the bit.
"""

from typing import TYPE_CHECKING

import numpy as np

from pairloom.compiled import add_rows, compiled, dot, dots, move
from pairloom.engines.reference import NEGLIGIBLE, STABLE
from pairloom.losses import loss_slope, loss_value
from pairloom.pairs import pair_sign
from pairloom.state import CUT, LOSS, PAIRS, SKIPPED, STEPS, WORST, State
from pairloom.steps import averaging_rate
from pairloom.typing import Array

if TYPE_CHECKING:
    from pairloom.learner import Learner

BLOCK_BYTES = 1 << 20
"""Mapped rows are worked on in blocks of about this size, so that they stay in the cache."""


def run(learner: "Learner", state: State, X: Array, y: Array) -> Array:
    """Learn the rows in order; return each row's score by the model before it learned the row."""
    rows = max(8, BLOCK_BYTES // state.w.nbytes)
    if len(y) <= rows:
        return run_block(learner, state, X, y)
    cuts = range(rows, len(y), rows)
    blocks = zip(np.split(X, cuts), np.split(y, cuts), strict=True)
    return np.concatenate([run_block(learner, state, *block) for block in blocks])


def run_block(learner: "Learner", state: State, X: Array, y: Array) -> Array:
    """``run`` for rows that are mapped together."""
    n = len(y)
    memory, slots = learner.memory, state.memory.slots
    t = np.arange(state.t + 1, state.t + n + 1)
    Z = learner.features.apply(state.phi, X)
    U = Z if memory.space == "features" else learner.features.inputs(state.phi, X)
    plan = memory.plan(state.memory, U, y, state.t + 1, state.rng.random((n, memory.draws)))
    keep, rate = learner.penalty.at(learner.step.at(t))
    averaging = learner.average != "last"
    scores = np.empty(n)
    learn(
        Z, y, keep, rate, averaging_rate(learner.average, t), averaging,
        learner.loss.code, bool(np.isfinite(learner.loss.smoothness)), learner.pairs.code,
        plan.total, plan.start, plan.slot, plan.blend, plan.mass,
        state.w, state.w_bar, slots.points, slots.labels, slots.mass, state.tally, scores,
    )  # fmt: skip
    state.t += n
    return scores


@compiled
def learn(
    Z: Array, y: Array, keep: Array, rate: Array, rho: Array, averaging: bool, loss: int, smooth: bool, pairs: int,
    total: Array, start: Array, slot: Array, blend: Array, new_mass: Array,
    w: Array, w_bar: Array, points: Array, labels: Array, mass: Array, tally: Array, scores: Array,
) -> None:  # fmt: skip
    """``reference.step`` over the rows of a block, with the memory's events already planned."""
    partners = np.empty(mass.shape[0], np.int64)
    q = np.empty(mass.shape[0])
    v = np.empty_like(w)
    for i in range(y.shape[0]):
        z = Z[i]
        s = dot(w, z)
        scores[i] = dot(w_bar, z) if averaging else s
        if total[i] > 0:
            count = 0
            for j in range(mass.shape[0]):
                if mass[j] > 0 and pair_sign(pairs, y[i], labels[j]) != 0:
                    partners[count] = j
                    count += 1
            g = pair_losses(loss, pairs, y[i], s, total[i], w, points, labels, mass, partners[:count], q)
            combine(v, z, points, partners[:count], q)
            descend(w, v, g, keep[i], rate[i], smooth, count, tally)
        if averaging:
            move(w_bar, w, rho[i])
        for e in range(start[i], start[i + 1]):
            j = slot[e]
            if blend[e] == 1:
                points[j] = z
            elif blend[e] > 0:
                move(points[j], z, blend[e])
            if blend[e] > 0:
                labels[j] = y[i]
            mass[j] = new_mass[e]


@compiled
def pair_losses(
    loss: int, pairs: int, y: float, s: float, total: float,
    w: Array, points: Array, labels: Array, mass: Array, partners: Array, q: Array,
) -> float:  # fmt: skip
    """sum_j p_j l(a_j delta_j); fills q_j = -p_j a_j l'(a_j delta_j)."""
    dots(w, points, partners, q)
    g = 0.0
    for k in range(partners.shape[0]):
        j = partners[k]
        a = pair_sign(pairs, y, labels[j])
        margin = a * (s - q[k])
        p = mass[j] / total
        g += p * loss_value(loss, margin)
        q[k] = -p * a * loss_slope(loss, margin)
    return g


@compiled
def combine(v: Array, z: Array, points: Array, partners: Array, q: Array) -> None:
    """v <- sum_k q_k (B_k - z)."""
    psi = 0.0
    for k in range(partners.shape[0]):
        psi -= q[k]
    psi = v.dtype.type(psi)
    for c in range(v.shape[0]):
        v[c] = psi * z[c]
    add_rows(v, points, partners, q)


@compiled
def descend(w: Array, v: Array, g: float, keep: float, rate: float, smooth: bool, count: int, tally: Array) -> None:
    """w <- keep w - rate v, cut where the step would be unstable: ``reference.descend``."""
    squared_norm = float(dot(v, v))
    # Not np.isfinite: where sums may be reordered, Numba's version of it lets infinity pass.
    if not g + squared_norm < np.inf:
        tally[SKIPPED] += 1
        return
    if g > NEGLIGIBLE and smooth:
        instability = rate * squared_norm / (2.0 * g)
        tally[WORST] = max(tally[WORST], instability)
        if instability > STABLE:
            tally[CUT] += 1
            rate = 2.0 * g / squared_norm
    keep = w.dtype.type(keep)
    rate = w.dtype.type(rate)
    for c in range(w.shape[0]):
        w[c] = keep * w[c] - rate * v[c]
    tally[STEPS] += 1
    tally[PAIRS] += count
    tally[LOSS] += g
