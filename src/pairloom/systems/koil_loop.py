"""The compiled loop of KOIL: ``Budgeted.step_row`` with f at the supports updated in place."""

from typing import Any, NamedTuple

import numpy as np

from pairloom.base.compiled import compiled, copy_to, dot
from pairloom.base.typing import Array
from pairloom.engines.fused_steps import SKIP, guard
from pairloom.engines.state import LOSS, PAIRS, STEPS
from pairloom.features.compiled_kernels import kernel_row, kernel_with_itself
from pairloom.losses import loss_slope, loss_value
from pairloom.models.expansion import KernelBlock


class Rule(NamedTuple):
    """Codes of kernel and loss, and the parameters of ``Budgeted``."""

    kernel: int
    gamma: float
    loss: int
    smooth: bool
    C: float
    n_neighbors: int
    violators: bool
    fifo: bool
    plus_plus: bool


class Supports(NamedTuple):
    """The fields of ``Buffers``."""

    x: Array
    coef: Array
    stored: Array
    seen: Array
    gram: Array
    values: Array


@compiled
def learn(block_: Any, rule_: Any, supports_: Any, tally: Array) -> None:
    """Run ``Budgeted.step_row`` over a block of rows and fill their scores; named tuples arrive as plain tuples."""
    block, rule, supports = KernelBlock(*block_), Rule(*rule_), Supports(*supports_)
    X, y, weight, eta = block.X, block.y, block.weight, block.eta
    kernel, loss, n_neighbors = rule.kernel, rule.loss, rule.n_neighbors
    coef, stored, seen, gram, values = supports.coef, supports.stored, supports.seen, supports.gram, supports.values
    size = coef.shape[1] // 2
    near = np.empty(2 * size, X.dtype)
    chosen, slopes = np.empty(n_neighbors, np.int64), np.empty(n_neighbors)
    for i in range(X.shape[0]):
        x, square = X[i], kernel_with_itself(kernel, X[i])
        for k in range(coef.shape[0]):
            sign, own = y[i, k], 1 if y[i, k] > 0 else 0
            seen[k, own] += weight[i]
            f = evaluate_at(kernel, rule.gamma, x, supports.x[k], stored[k], size, coef[k], near)
            block.scores[i, k] = f
            partners = min(stored[k, 1 - own], size)
            first = (1 - own) * size
            count = choose(sign, f, values[k], near, first, first + partners, rule.violators, chosen)
            g = fill_slopes(loss, sign, f, values[k], chosen[:count], slopes)
            rate = safe_rate(eta[i] * rule.C, square, near, gram[k], chosen[:count], slopes, g, rule.smooth, tally)
            if rate == SKIP:
                continue
            if partners:
                mean = mean_loss(loss, sign, f, values[k, first : first + partners])
                tally[STEPS] += weight[i]
                tally[PAIRS] += count
                tally[LOSS] += weight[i] * mean
            forced = partners == 0 or (stored[k, own] == 0 and count == 0)
            alpha = descend(rate * sign, max(0.0, 1.0 - eta[i]), chosen[:count], slopes, coef[k], gram[k], values[k])
            alpha = rate * sign if forced else alpha
            if alpha != 0:
                full, place = stored[k, own] >= size, stored[k, own] % size
                if full and not rule.fifo:
                    place = int(min(block.draws[i, k] * max(seen[k, own] / weight[i], size), size))
                store(
                    x, square, alpha, own * size, place, full and rule.plus_plus, near,
                    supports.x[k], coef[k], gram[k], values[k],
                )  # fmt: skip
                stored[k, own] += 1 if place < size else 0


@compiled
def evaluate_at(
    kernel: int, gamma: float, x: Array, supports: Array, stored: Array, size: int, coef: Array, near: Array
) -> float:  # fmt: skip
    """Return f(x) and fill ``near``, its kernels with the supports; unused slots have kernel and coefficient 0."""
    near[:] = 0
    for side in range(2):
        a, b = side * size, side * size + min(stored[side], size)
        kernel_row(kernel, gamma, x, supports[a:b], near[a:b])
    return dot(coef, near)


@compiled
def choose(
    sign: float, f: float, values: Array, near: Array, first: int, end: int, violators: bool, chosen: Array
) -> int:  # fmt: skip
    """Fill ``chosen`` with the nearest violators, nearest first, and return their number; ties go to the lower slot."""
    count = 0
    for j in range(first, end):
        if violators and not sign * (f - values[j]) < 1:
            continue
        if count == chosen.shape[0]:
            if not near[j] > near[chosen[count - 1]]:
                continue
            count -= 1
        at = count
        while at > 0 and near[j] > near[chosen[at - 1]]:
            chosen[at] = chosen[at - 1]
            at -= 1
        chosen[at] = j
        count += 1
    left = 0
    for c in range(count):
        if sign * (f - values[chosen[c]]) < 1:
            chosen[left] = chosen[c]
            left += 1
    return left


@compiled
def fill_slopes(loss: int, sign: float, f: float, values: Array, chosen: Array, slopes: Array) -> float:
    """Return the sum of the losses of the chosen pairs, and fill ``slopes`` with l'(m)."""
    g = 0.0
    for c in range(chosen.shape[0]):
        margin = sign * (f - values[chosen[c]])
        g += loss_value(loss, margin)
        slopes[c] = loss_slope(loss, margin)
    return g


@compiled
def mean_loss(loss: int, sign: float, f: float, values: Array) -> float:
    """Return the mean loss of x_t against all its partners."""
    total = 0.0
    for j in range(values.shape[0]):
        total += loss_value(loss, sign * (f - values[j]))
    return total / len(values)


@compiled
def safe_rate(
    rate: float, square: float, near: Array, gram: Array, chosen: Array, slopes: Array, g: float, smooth: bool,
    tally: Array,
) -> float:  # fmt: skip
    """Compute ``Budgeted._rate``."""
    total: float = slopes[: chosen.shape[0]].sum()
    squared_norm: float = total * total * square if chosen.shape[0] else square
    for c in range(chosen.shape[0]):
        across = -2.0 * total * near[chosen[c]]
        for e in range(chosen.shape[0]):
            across += slopes[e] * gram[chosen[c], chosen[e]]
        squared_norm += slopes[c] * across
    curvature = squared_norm / (2.0 * g) if smooth and g > 0 else 0.0
    return guard(rate, curvature, g + squared_norm, tally)


@compiled
def descend(
    step: float, keep: float, chosen: Array, slopes: Array, coef: Array, gram: Array, values: Array
) -> float:  # fmt: skip
    """Shrink f, step along the chosen supports, and return the coefficient of x_t."""
    for j in range(coef.shape[0]):
        coef[j] *= keep
        values[j] *= keep
    alpha = 0.0
    for c in range(chosen.shape[0]):
        alpha -= step * slopes[c]
        add_term(coef, values, gram, chosen[c], step * slopes[c])
    return alpha


@compiled
def add_term(coef: Array, values: Array, gram: Array, slot: int, change: float) -> None:
    """Change a coefficient and update f at all supports."""
    coef[slot] += change
    for j in range(values.shape[0]):
        values[j] += change * gram[slot, j]


@compiled
def store(
    x: Array, square: float, alpha: float, first: int, place: int, inherits: bool, near: Array,
    supports: Array, coef: Array, gram: Array, values: Array,
) -> None:  # fmt: skip
    """Do the same as ``Budgeted._store``: store x_t in a slot from ``first``; drop it if the slot is out of range."""
    size = coef.shape[0] // 2
    slot, end = first + place, first + size
    if place >= size:
        if inherits:
            add_term(coef, values, gram, first + int(np.argmax(near[first:end])), alpha)
        return
    lost = coef[slot]
    add_term(coef, values, gram, slot, -lost)
    coef[slot] = 0.0
    kernels = gram[slot, first:end].copy()
    copy_to(supports[slot], x)
    copy_to(gram[slot], near)
    copy_to(gram[:, slot], near)
    gram[slot, slot] = square
    values[slot] = dot(coef, near)
    add_term(coef, values, gram, slot, alpha)
    if inherits:
        kernels[place] = near[slot]
        add_term(coef, values, gram, first + int(np.argmax(kernels)), lost)
