"""The step of AdaDSG on one pair, by specification and compiled."""

import numpy as np

from pairloom.base.compiled import compiled, dot
from pairloom.base.typing import Array
from pairloom.engines import reference
from pairloom.engines.fused import SKIP, apply_step, safe_length
from pairloom.engines.sparse_kernels import SIGMA, gather, square_of, step_rows
from pairloom.engines.state import LOSS, PAIRS, STEPS
from pairloom.losses import Loss, loss_slope, loss_value


def descend(w: Array, d: Array, loss: Loss, steps: Array, tally: Array) -> Array:
    """The specification: w after a step on the pair with difference d = z_i - z_j."""
    keep, rate, threshold = steps.tolist()
    margin = w @ d
    g, slope = float(loss.value(margin)), float(loss.derivative(margin))
    size = slope**2 * float(d @ d)
    curvature = size / (2.0 * g) if g > 0 and np.isfinite(loss.smoothness) else 0.0
    rate = reference.guard(rate, curvature, g + size, tally)
    if rate == 0:
        return w
    tally[[STEPS, PAIRS, LOSS]] += [1.0, 1.0, g]
    u = keep * w - rate * slope * d
    return np.asarray(np.sign(u) * np.maximum(0.0, np.abs(u) - threshold))


@compiled
def learn(D: Array, loss: int, smooth: bool, steps: Array, w: Array, tally: Array) -> None:
    """``descend`` for the rows of D."""
    for i in range(D.shape[0]):
        margin = dot(w, D[i])
        g, slope = loss_value(loss, margin), loss_slope(loss, margin)
        length = safe_length(g, slope * slope * float(dot(D[i], D[i])), steps[0], steps[1], smooth, False, tally)
        if length != SKIP:
            apply_step(w, D[i], steps[0], length * slope, steps[2], np.inf)
            tally[STEPS] += 1.0
            tally[PAIRS] += 1.0
            tally[LOSS] += g


@compiled
def learn_rows(
    data: Array, indices: Array, indptr: Array, loss: int, smooth: bool, steps: Array,
    w: Array, u: Array, f: Array, tally: Array,
) -> None:  # fmt: skip
    """``learn`` for CSR rows: w = sigma w_hat."""
    nowhere = np.empty(0)
    for i in range(indptr.shape[0] - 1):
        cols, vals = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
        margin, square = f[SIGMA] * gather(w, cols, vals), square_of(vals)
        g, slope = loss_value(loss, margin), loss_slope(loss, margin)
        length = safe_length(g, slope * slope * square, steps[0], steps[1], smooth, False, tally)
        if length != SKIP:
            step_rows(w, u, f, nowhere, cols, vals, square, steps[0], length * slope, steps[2], np.inf)
            tally[STEPS] += 1.0
            tally[PAIRS] += 1.0
            tally[LOSS] += g
