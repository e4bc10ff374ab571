"""The compiled loop of OPERA.

    v = sum_i p_i a_i l'_i (k(x, .) - k(x_i, .)),    f <- f - eta v

f is kept up at all rows so far, so that no score is ever computed twice.
"""

from typing import Any, NamedTuple

import numpy as np

from pairloom.base.compiled import add_rows, compiled, dot
from pairloom.base.typing import Array
from pairloom.engines.fused import SKIP, safe_length
from pairloom.engines.state import LOSS, PAIRS, STEPS
from pairloom.features.exact import kernel_row, kernel_with_itself
from pairloom.losses import loss_slope, loss_value
from pairloom.models.expansion import KernelBlock


class Rule(NamedTuple):
    """Kernel and loss by their codes, and the parameters of ``PairExpansion``."""

    kernel: int
    gamma: float
    all_pairs: bool
    loss: int
    smooth: bool
    factor: float


class Past(NamedTuple):
    """All rows so far: points, kernels between them, labels, weights; the coefficients of f, f at each, how many."""

    points: Array
    gram: Array
    labels: Array
    mass: Array
    coef: Array
    f: Array
    used: Array


@compiled
def learn(block_: Any, rule_: Any, past_: Any, tally: Array) -> None:
    """``PairExpansion.step_row`` over the rows of a block; the groups come as plain tuples."""
    block, rule, past = KernelBlock(*block_), Rule(*rule_), Past(*past_)
    X, y, weight, scores = block.X, block.y, block.weight, block.scores
    points, gram, labels, mass, coef, f, used = past
    room = mass.shape[0]
    values, partners = np.empty(room, X.dtype), np.empty(room, np.int64)
    q, change = np.empty(room), np.empty(room)
    for i in range(X.shape[0]):
        n = used[0]
        own = kernel_with_itself(rule.kernel, X[i])
        kernel_row(rule.kernel, rule.gamma, X[i], points[:n], values[:n])
        total = 0.0
        for j in range(n):
            total += mass[j]
        for k in range(y.shape[1]):
            s = dot(coef[k, :n], values[:n]) if n > 0 else 0.0
            scores[i, k] = s
            f[k, n] = s
            count, g, psi = pair_slopes(
                rule.all_pairs, rule.loss, rule.factor, y[i, k], s, labels[:n, k], mass, total, f[k], partners, q
            )  # fmt: skip
            if count == 0:
                continue
            # change_j = <v, k(x_j, .)> at all rows before this one, along = the same at this one.
            change[:n] = 0.0
            add_rows(change[:n], gram, partners[:count], q)
            squared_norm, along = 0.0, psi * own
            for j in range(n):
                change[j] += psi * values[j]
            for e in range(count):
                squared_norm += q[e] * change[partners[e]]
                along += q[e] * values[partners[e]]
            squared_norm += psi * along
            rate = safe_length(g, squared_norm, 1.0, block.eta[i], rule.smooth, False, tally)
            if rate == SKIP:
                continue
            for e in range(count):
                coef[k, partners[e]] -= rate * q[e]
            for j in range(n):
                f[k, j] -= rate * change[j]
            coef[k, n] = -rate * psi
            f[k, n] = s - rate * along
            tally[STEPS] += weight[i]
            tally[PAIRS] += count
            tally[LOSS] += weight[i] * g
        points[n], gram[n, :n], gram[:n, n], gram[n, n] = X[i], values[:n], values[:n], own
        labels[n], mass[n] = y[i], weight[i]
        used[0] += 1


@compiled
def pair_slopes(
    all_pairs: bool, loss: int, factor: float, y: float, s: float, labels: Array, mass: Array, total: float,
    f: Array, partners: Array, q: Array,
) -> tuple[int, float, float]:  # fmt: skip
    """Number of ``partners``, loss g, and psi = sum_i p_i a_i l'_i; fills q_i = -p_i a_i l'_i."""
    count, g, psi = 0, 0.0, 0.0
    for j in range(labels.shape[0]):
        a = 1.0 if all_pairs else (y - labels[j]) / 2.0
        if a != 0:
            margin = a * (s - f[j]) + (1.0 - (y - labels[j]) if all_pairs else 0.0)
            p = factor * mass[j] / total
            g += p * loss_value(loss, margin)
            partners[count], q[count] = j, -p * a * loss_slope(loss, margin)
            psi -= q[count]
            count += 1
    return count, g, psi
