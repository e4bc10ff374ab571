"""From scores to log-odds: pairwise scores have no natural zero."""

import numpy as np

from pairloom.typing import Array

FLATTEST = 1e-3
"""Least slope per standard deviation of the scores: a score that predicts nothing still keeps its order."""

NEWTON_STEPS = 50
HALVINGS = [0.5**k for k in range(12)]


def next_calibration_row(t: int) -> int:
    """The first row after row t at which the calibration is fitted anew.

    These rows are a sixteenth of the stream so far apart, at most 1,024: a rule on the row number alone, so
    that it does not matter how the stream was cut into calls. Powers of two, at which rules on data are fixed,
    are among them.

    >>> next_calibration_row(3), next_calibration_row(64), next_calibration_row(1_000_000)
    (4, 68, 1000448)
    """
    apart = min(1024, max(1, 1 << ((t + 1).bit_length() - 5))) if t >= 16 else 1
    return apart * -(-(t + 1) // apart)


def platt(scores: Array, labels: Array) -> tuple[float, float]:
    """(a, b), a > 0, such that a s + b is the log-odds of label +1.

    Maximum likelihood with Platt's smoothed targets, (N+ + 1) / (N+ + 2) and 1 / (N- + 2), so that
    separable scores and single-class data give finite numbers.

    Reference: Lin, Lin and Weng, A note on Platt's probabilistic outputs for support vector machines, 2007.

    >>> platt(np.array([0.0, 0.0]), np.array([-1.0, 1.0]))
    (1.0, 0.0)
    """
    positive = labels > 0
    n_pos = int(positive.sum())
    target = np.where(positive, (n_pos + 1.0) / (n_pos + 2.0), 1.0 / (len(labels) - n_pos + 2.0))
    share = target.mean()
    prior = float(np.log(share / (1.0 - share)))
    center, spread = float(scores.mean()), float(scores.std())
    if not spread > 0:
        return 1.0, prior - center
    x = (scores - center) / spread
    a, b = _newton(x, target, 0.0, prior, slope_is_free=True)
    if a < FLATTEST:
        a, b = _newton(x, target, FLATTEST, prior, slope_is_free=False)
    return a / spread, b - a * center / spread


def _newton(x: Array, target: Array, a: float, b: float, *, slope_is_free: bool) -> tuple[float, float]:
    """Minimise the cross-entropy of sigmoid(a x + b) by Newton's method with halved steps."""
    value, p = _cross_entropy(a * x + b, target)
    for _ in range(NEWTON_STEPS):
        gap, weight = p - target, p * (1.0 - p)
        weighted = weight * x
        g_a, g_b = float(gap @ x) * slope_is_free, float(gap.sum())
        h_aa, h_ab, h_bb = float(weighted @ x), float(weighted.sum()) * slope_is_free, float(weight.sum())
        det = h_aa * h_bb - h_ab * h_ab
        if not det > 0:
            break
        d_a, d_b = (h_bb * g_a - h_ab * g_b) / det, (h_aa * g_b - h_ab * g_a) / det
        if d_a * g_a + d_b * g_b < 1e-12 * len(x):  # what a further step could gain
            break
        for length in HALVINGS:
            trial, p = _cross_entropy((a - length * d_a) * x + (b - length * d_b), target)
            if trial < value:
                break
        a, b, value = a - length * d_a, b - length * d_b, trial
    return a, b


def _cross_entropy(f: Array, target: Array) -> tuple[float, Array]:
    """The cross-entropy of sigmoid(f), and sigmoid(f); nothing overflows."""
    e = np.exp(-np.abs(f))
    positive = f > 0
    value = np.maximum(f, 0.0) - target * f + np.log(1.0 + e)
    return float(value.sum()), np.where(positive, 1.0, e) / (1.0 + e)
