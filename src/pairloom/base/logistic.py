"""Logistic regression on one variable, compiled."""

import numpy as np

from pairloom.base.compiled import compiled, exp_minus, log_one_plus
from pairloom.base.typing import Array

NEWTON_STEPS, HALVINGS = 50, 12

MIN_GAIN = 1e-12
"""Expected gain of a further step, per row, at which the fit is final."""


@compiled
def fit_logistic(
    x: Array, target: Array, weight: Array, starts: Array, a: float, b: float, slope_is_free: bool
) -> tuple[float, float]:  # fmt: skip
    """Minimise the cross-entropy of sigmoid(a x + b), with one b for each window, by Newton's method with halved steps.

    ``starts``: the first row of each window. Return a and the first b.
    """
    m, n = starts.shape[0], x.shape[0]
    each, trial = np.empty(m), np.empty(m)
    sums, new_sums = np.empty((m, 6)), np.empty((m, 6))
    for k in range(m):
        each[k] = b
        add_up(x, target, weight, starts[k], starts[k + 1] if k + 1 < m else n, a, b, sums[k])
    for _ in range(NEWTON_STEPS):
        value = g_a = h_aa = known = cross = gain = 0.0
        flat = False
        for k in range(m):
            value += sums[k, 0]
            g_a += sums[k, 1] if slope_is_free else 0.0
            h_aa += sums[k, 3]
            h_ab = sums[k, 4] if slope_is_free else 0.0
            flat = flat or not sums[k, 5] > 0
            known += h_ab * (h_ab / sums[k, 5])
            cross += h_ab * (sums[k, 2] / sums[k, 5])
        if flat or not h_aa - known > 0:
            break
        d_a = (g_a - cross) / (h_aa - known)
        gain = d_a * g_a
        for k in range(m):
            h_ab = sums[k, 4] if slope_is_free else 0.0
            trial[k] = (sums[k, 2] - h_ab * d_a) / sums[k, 5]
            gain += trial[k] * sums[k, 2]
        if gain < MIN_GAIN * n:
            break
        length, better = 1.0, False
        for _ in range(HALVINGS):
            new_value = 0.0
            for k in range(m):
                end = starts[k + 1] if k + 1 < m else n
                add_up(x, target, weight, starts[k], end, a - length * d_a, each[k] - length * trial[k], new_sums[k])
                new_value += new_sums[k, 0]
            better = new_value < value
            if better:
                break
            length *= 0.5
        if not better:
            break
        a -= length * d_a
        for k in range(m):
            each[k] -= length * trial[k]
        sums, new_sums = new_sums, sums
    return a, each[0]


@compiled
def cross_entropy(x: Array, target: Array, weight: Array, a: float, b: float) -> float:
    """Return the cross-entropy of sigmoid(a x + b)."""
    sums = np.empty(6)
    add_up(x, target, weight, 0, x.shape[0], a, b, sums)
    return float(sums[0])


@compiled
def add_up(
    x: Array, target: Array, weight: Array, start: int, end: int, a: float, b: float, sums: Array
) -> None:  # fmt: skip
    """Compute the cross-entropy of some rows, and its derivatives by (a, b): the gradient, then aa, ab, bb."""
    value = g_a = g_b = h_aa = h_ab = h_bb = 0.0
    for i in range(start, end):
        f = a * x[i] + b
        e = exp_minus(abs(f))
        value += weight[i] * (max(f, 0.0) - target[i] * f + log_one_plus(e))
        share = 1.0 / (1.0 + e)
        gap = weight[i] * ((1.0 if f > 0 else e) * share - target[i])
        curvature = weight[i] * (e * share * share)
        g_a += gap * x[i]
        g_b += gap
        h_aa += curvature * x[i] * x[i]
        h_ab += curvature * x[i]
        h_bb += curvature
    sums[0], sums[1], sums[2], sums[3], sums[4], sums[5] = value, g_a, g_b, h_aa, h_ab, h_bb
