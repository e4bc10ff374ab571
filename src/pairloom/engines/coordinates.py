"""Steps per coordinate (``AdaGrad``) in compiled loops: what dense and CSR rows share, and the dense half."""

from typing import Any

import numpy as np

from pairloom.base.compiled import compiled
from pairloom.base.typing import Array
from pairloom.engines.base import Parts
from pairloom.steps.adagrad import SMALL
from pairloom.steps.penalties import shrink

Adaptive = tuple[Any, float, float, float, bool]
"""What a loop is told: sums of squared gradients (models, D), eta, and the penalty's alpha, l1 and whether proximal."""


def adaptive_steps(learner: Parts, squares: Array | None) -> Adaptive | None:
    """What the loops of a learner are told; None unless its steps are per coordinate."""
    if squares is None:
        return None
    numbers = learner.penalty.numbers
    assert numbers is not None
    return squares, float(learner.step.eta), float(numbers.alpha), float(numbers.l1), bool(numbers.proximal)


@compiled
def moved(w: float, v: float, square: float, eta: float, alpha: float, l1: float, proximal: bool) -> float:
    """w_c after a step against v_c, where its squared gradients add up to ``square``."""
    keep, rate, threshold = shrink(eta / np.sqrt(square), alpha, l1, proximal)
    u = keep * w - rate * v
    return np.sign(u) * max(0.0, abs(u) - threshold)  # type: ignore[no-any-return]


@compiled
def step_coordinates(w: Array, v: Array, weight: float, k: int, adaptive: Adaptive) -> None:
    """The step of model k against ``weight`` v, in float64 whatever the dtype of the arrays."""
    squares, eta, alpha, l1, proximal = adaptive
    for c in range(w.shape[0]):
        x = weight * v[c]
        if x * x > SMALL:
            square = squares[k, c] + x * x
            squares[k, c] = square
            w[c] = moved(w[c], x, square, eta, alpha, l1, proximal)


@compiled
def differences(v: Array, z: Array, points: Array, chosen: Array, factors: Array) -> None:
    """v <- sum_k factors_k (points[chosen_k] - z), exactly 0 where the points agree with z; four at a time."""
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
