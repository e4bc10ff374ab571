"""Losses l of a pair, as functions of its margin m.

A pair with score difference delta and sign a has margin m = a * delta; it is in the right order if m > 0.
Each loss is written twice: as a NumPy class (the specification) and as one line of the compiled ``loss_value`` and
``loss_slope``. To add a loss, add both here; nothing else changes. ``loss_terms`` is for many margins at once, and may
have faster code for a loss. A third-party loss defines its compiled form in ``Loss.scalars``.
"""

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import exp, inf, log1p
from typing import Any, ClassVar, Literal

import numba
import numpy as np

from pairloom.base.compiled import compiled, exp_minus, log_one_plus, with_calls_replaced
from pairloom.base.typing import Array

__all__ = ["Hinge", "Logistic", "Loss", "Square", "SquaredHinge"]

LossName = Literal["square", "hinge", "squared_hinge", "logistic"]

Scalar = Callable[[float], float]


@dataclass(frozen=True)
class Loss(ABC):
    """A convex loss l(m) >= 0 of the margin.

    ``smoothness`` is the Lipschitz constant of l' (infinity if l has a kink).
    """

    name: ClassVar[str]
    code: ClassVar[int] = -1
    """Code in the compiled functions below; -1 for third-party losses."""
    smoothness: ClassVar[float]

    def scalars(self) -> tuple[Scalar, Scalar] | None:
        """Return scalar functions l(m) and l'(m) for Numba; None: only the reference engine supports the loss."""
        return None

    @property
    def is_compiled(self) -> bool:
        """Whether compiled engines support this loss."""
        return type(self) in BUILT_IN or self.scalars() is not None

    @abstractmethod
    def value(self, margin: Array) -> Array:
        """Return l(m)."""

    @abstractmethod
    def derivative(self, margin: Array) -> Array:
        """Return l'(m)."""


@dataclass(frozen=True)
class Square(Loss):
    """(1 - m)^2, the paper's loss.

    >>> float(Square().value(0.0)), float(Square().derivative(0.0))
    (1.0, -2.0)
    """

    name = "square"
    code = 0
    smoothness = 2.0

    def value(self, margin: Array) -> Array:
        return np.square(1.0 - margin)

    def derivative(self, margin: Array) -> Array:
        return np.asarray(-2.0 * (1.0 - margin))


@dataclass(frozen=True)
class Hinge(Loss):
    """max(0, 1 - m); at the kink m = 1 the derivative is 0."""

    name = "hinge"
    code = 1
    smoothness = inf

    def value(self, margin: Array) -> Array:
        return np.maximum(0.0, 1.0 - margin)

    def derivative(self, margin: Array) -> Array:
        return np.where(np.less(margin, 1.0), -1.0, 0.0)


@dataclass(frozen=True)
class SquaredHinge(Loss):
    """max(0, 1 - m)^2."""

    name = "squared_hinge"
    code = 2
    smoothness = 2.0

    def value(self, margin: Array) -> Array:
        return np.square(np.maximum(0.0, 1.0 - margin))

    def derivative(self, margin: Array) -> Array:
        return np.asarray(-2.0 * np.maximum(0.0, 1.0 - margin))


@dataclass(frozen=True)
class Logistic(Loss):
    """log(1 + exp(-m))."""

    name = "logistic"
    code = 3
    smoothness = 0.25

    def value(self, margin: Array) -> Array:
        return np.asarray(np.logaddexp(0.0, -np.asarray(margin)))

    def derivative(self, margin: Array) -> Array:
        # Only exp of negative numbers, so that no margin overflows.
        e = np.exp(-np.abs(margin))
        return np.where(np.greater(margin, 0.0), -e / (1.0 + e), -1.0 / (1.0 + e))


@dataclass(frozen=True)
class Residual(Loss):
    """m^2: the square loss of pairs whose margin is an error (``Pairs.exact``)."""

    name = "residual"
    code = 4
    smoothness = 2.0

    def value(self, margin: Array) -> Array:
        return np.square(margin)

    def derivative(self, margin: Array) -> Array:
        return np.asarray(2.0 * margin)


LOSSES: dict[str, Loss] = {loss.name: loss for loss in (Square(), Hinge(), SquaredHinge(), Logistic())}

BUILT_IN = frozenset({*map(type, LOSSES.values()), Residual})
"""Losses in the compiled functions; subclasses are excluded, because they may differ."""


def loss_key(loss: Loss) -> tuple[int, int, bytes]:
    """Return a key that distinguishes losses. Equality does not: a subclass that is not a dataclass inherits it."""
    if type(loss) in BUILT_IN:
        return loss.code, 0, b""
    return loss.code, id(type(loss)), pickle.dumps(sorted(vars(loss).items()))


COMPILED_FOR_LOSS: dict[Any, Any] = {}
"""Functions compiled for third-party losses, by function and loss."""


def with_loss(function: Any, loss: Loss) -> Any:
    """Return a compiled ``function`` that calls ``loss_value`` or ``loss_slope``, specialised for this loss."""
    if type(loss) in BUILT_IN:
        return function
    key = (function, *loss_key(loss))
    if key not in COMPILED_FOR_LOSS:
        scalars = loss.scalars()
        assert scalars is not None
        value, slope = map(numba.njit, scalars)
        outside = {loss_value: numba.njit(lambda code, m: value(m)), loss_slope: numba.njit(lambda code, m: slope(m))}
        COMPILED_FOR_LOSS[key] = with_calls_replaced(function, outside)
    return COMPILED_FOR_LOSS[key]


@compiled
def loss_value(code: int, m: float) -> float:
    """Return l(m) of the loss with this code."""
    if code == 0:
        return (1.0 - m) * (1.0 - m)
    if code == 1:
        return max(0.0, 1.0 - m)
    if code == 2:
        gap = max(0.0, 1.0 - m)
        return gap * gap
    if code == 4:
        return m * m
    return max(0.0, -m) + log1p(exp(-abs(m)))


@compiled
def loss_slope(code: int, m: float) -> float:
    """Return l'(m) of the loss with this code."""
    if code == 0:
        return -2.0 * (1.0 - m)
    if code == 1:
        return -1.0 if m < 1.0 else 0.0
    if code == 2:
        return -2.0 * max(0.0, 1.0 - m)
    if code == 4:
        return 2.0 * m
    e = exp(-abs(m))
    return -e / (1.0 + e) if m > 0.0 else -1.0 / (1.0 + e)


@compiled
def loss_terms(code: int, margin: Array, value: Array, slope: Array) -> None:
    """Compute l(m) and l'(m) of many margins, in their dtype; loops have no branch, so that they vectorise."""
    one, zero = margin.dtype.type(1), margin.dtype.type(0)
    n = margin.shape[0]
    if code == 0:
        for i in range(n):
            gap = one - margin[i]
            value[i], slope[i] = gap * gap, -(gap + gap)
    elif code == 1:
        for i in range(n):
            value[i], slope[i] = max(zero, one - margin[i]), -one if margin[i] < one else zero
    elif code == 2:
        for i in range(n):
            gap = max(zero, one - margin[i])
            value[i], slope[i] = gap * gap, -(gap + gap)
    elif code == 3:
        for i in range(n):
            slope[i] = exp_minus(abs(margin[i]))
        for i in range(n):
            value[i] = max(zero, -margin[i]) + log_one_plus(slope[i])
        for i in range(n):
            slope[i] = -(slope[i] if margin[i] > zero else one) / (one + slope[i])
    else:
        for i in range(n):
            value[i], slope[i] = loss_value(code, margin[i]), loss_slope(code, margin[i])
