"""Compiled parts of a step on dense rows: partners, losses, gradients, the step length, and the update."""

import numpy as np

from pairloom.base.compiled import add_rows, compiled, copy_to, dot, dots, move
from pairloom.base.typing import Array
from pairloom.engines.arguments import Adaptive, Buffer, Objective, Partners, Row
from pairloom.engines.reference import LONG_STEP_SQUARED, MAX_INSTABILITY, MAX_STEP_SQUARED
from pairloom.engines.state import CUT, LONG, LOSS, PAIRS, SKIPPED, STEPS, WORST
from pairloom.losses import loss_slope, loss_value
from pairloom.pairs import pair_offset, pair_sign
from pairloom.steps.penalties import shrink
from pairloom.steps.schedules import MIN_SQUARE

SKIP, SPLIT = 0.0, -2.0
"""Returned instead of a step length."""


@compiled
def find_partners(
    pairs: int, model: float, by_class: bool, joint: bool, gain: float, y: float, query: int,
    labels: Array, queries: Array, mass: Array, partners: Array, p: Array,
) -> int:  # fmt: skip
    """Fill partners and p, and return the number of partners; -1 if the row takes no step."""
    count, paired, everything = 0, 0.0, 0.0
    for j in range(mass.shape[0]):
        if mass[j] > 0:
            everything += mass[j]
            if pair_sign(pairs, y, labels[j], model) != 0 and queries[j] == query:
                partners[count] = j
                p[count] = mass[j]
                paired += mass[j]
                count += 1
    total = paired if by_class else everything
    if total == 0 or (count == 0 and not joint):
        return -1
    for k in range(count):
        p[k] = gain * (p[k] / total)
    return count


@compiled
def write_slot(
    j: int, z: Array, y: float, query: int, blend: float, new_mass: float,
    points: Array, labels: Array, queries: Array, mass: Array,
) -> None:  # fmt: skip
    """Compiled ``Slots.write``."""
    if blend == 1:
        copy_to(points[j], z)
    elif blend > 0:
        move(points[j], z, blend)
    if blend > 0:
        labels[j] = y
        queries[j] = query
    mass[j] = new_mass


@compiled
def losses_of(w: Array, s: float, row: Row, objective: Objective, buffer: Buffer, partners: Partners) -> float:
    """Return g = sum_j p_j l(m_j), and fill q_j = -p_j a_j l'(m_j)."""
    slot, p, q = partners.slot, partners.p, partners.q
    loss, pairs, model = objective.loss, objective.pairs, row.target
    dots(w, buffer.points, slot, q)
    g = 0.0
    for k in range(slot.shape[0]):
        label = buffer.labels[slot[k]]
        a = pair_sign(pairs, row.y, label, model)
        margin = a * (s - q[k]) + pair_offset(pairs, row.y, label, model)
        g += p[k] * loss_value(loss, margin)
        q[k] = -p[k] * a * loss_slope(loss, margin)
    return g


@compiled
def combine(v: Array, z: Array, points: Array, partners: Array, q: Array) -> None:
    """Compute v <- sum_k q_k (B_k - z)."""
    psi = 0.0
    for k in range(partners.shape[0]):
        psi -= q[k]
    psi = v.dtype.type(psi)
    for c in range(v.shape[0]):
        v[c] = psi * z[c]
    add_rows(v, points, partners, q)


@compiled
def combine_differences(v: Array, z: Array, points: Array, chosen: Array, factors: Array) -> None:
    """Compute v <- sum_k factors_k (points[chosen_k] - z), four at a time; exactly 0 where the points equal z."""
    kind = v.dtype.type
    n = chosen.shape[0]
    for c in range(v.shape[0]):
        v[c] = kind(0)
    for k in range(0, n - 3, 4):
        r0, r1, r2, r3 = points[chosen[k]], points[chosen[k + 1]], points[chosen[k + 2]], points[chosen[k + 3]]
        f0, f1, f2, f3 = kind(factors[k]), kind(factors[k + 1]), kind(factors[k + 2]), kind(factors[k + 3])
        for c in range(v.shape[0]):
            x = z[c]
            v[c] += f0 * (r0[c] - x) + f1 * (r1[c] - x) + f2 * (r2[c] - x) + f3 * (r3[c] - x)
    for k in range(n - n % 4, n):
        row, f = points[chosen[k]], kind(factors[k])
        for c in range(v.shape[0]):
            v[c] += f * (row[c] - z[c])


@compiled
def safe_length(
    g: float, squared_norm: float, keep: float, rate: float, smooth: bool, may_split: bool, tally: Array
) -> float:  # fmt: skip
    """Return the length of a step, cut where it would be unstable; SKIP if it overflows, SPLIT if it needs substeps."""
    curvature = squared_norm / (2.0 * g) if smooth and g > 0 else 0.0
    if may_split and (rate * curvature > MAX_INSTABILITY or keep <= 0) and is_safe(rate, g + squared_norm):
        return SPLIT
    return guard(rate, curvature, g + squared_norm, tally)


@compiled
def guard(rate: float, curvature: float, size: float, tally: Array) -> float:
    """Compiled ``reference.guard``."""
    if not is_safe(rate, size):
        tally[SKIPPED] += 1
        return SKIP
    instability = rate * curvature
    tally[WORST] = max(tally[WORST], instability)
    if curvature == 0 and rate * rate * size > LONG_STEP_SQUARED:
        tally[LONG] += 1
    if instability > MAX_INSTABILITY:
        tally[CUT] += 1
        return rate / (instability - 1.0)
    return rate


@compiled
def is_safe(rate: float, size: float) -> bool:
    """Compiled ``reference.is_safe``."""
    # Not np.isfinite: with reordered sums, Numba's version is true for infinity.
    return size < np.inf and rate * rate * size < MAX_STEP_SQUARED


@compiled
def aggressive_step(gap: float, squared_norm: float, longest: float, tally: Array) -> float:
    """Return the step size tau of one pair; 0 if it has no loss, cannot change w, or would overflow."""
    if gap <= 0 or squared_norm == 0:
        return 0.0
    tau = min(longest, gap / squared_norm)
    if not is_safe(tau, squared_norm):
        tally[SKIPPED] += 1
        return 0.0
    return tau


@compiled
def count_step(tally: Array, weight: float, partners: Partners, g: float) -> None:
    """Count a step for a row of this weight with loss g."""
    tally[STEPS] += weight
    tally[PAIRS] += partners.slot.shape[0]
    tally[LOSS] += weight * g


@compiled
def apply_step(w: Array, v: Array, keep: float, rate: float, threshold: float, bound: float) -> None:
    """Update w <- project(soft(keep w - rate v, threshold))."""
    kind = w.dtype.type
    a, c = kind(keep), kind(rate)
    for i in range(w.shape[0]):
        w[i] = a * w[i] - c * v[i]
    threshold_and_project(w, threshold, bound)


@compiled
def threshold_and_project(w: Array, threshold: float, bound: float) -> None:
    """Compiled ``reference.threshold_and_project``."""
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


@compiled
def step_coordinates(w: Array, v: Array, weight: float, k: int, adaptive: Adaptive) -> None:
    """Update model k by the gradient ``weight`` v, in float64 regardless of the dtype of the arrays."""
    squares, eta, alpha, l1, proximal = adaptive
    for c in range(w.shape[0]):
        x = weight * v[c]
        if x * x > MIN_SQUARE:
            square = squares[k, c] + x * x
            squares[k, c] = square
            w[c] = moved_coordinate(w[c], x, square, eta, alpha, l1, proximal)


@compiled
def moved_coordinate(w: float, v: float, square: float, eta: float, alpha: float, l1: float, proximal: bool) -> float:
    """Return w_c after a step along -v_c, given the sum of its squared gradients."""
    keep, rate, threshold = shrink(eta / np.sqrt(square), alpha, l1, proximal)
    u = keep * w - rate * v
    return np.sign(u) * max(0.0, abs(u) - threshold)  # type: ignore[no-any-return]
