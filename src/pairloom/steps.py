"""eta, Omega: how long a step is, how the weights shrink, and which iterate is the model.

All three are functions of the row number t = 1, 2, ... alone, so every engine computes them for a whole block at
once, with NumPy, in float64.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from pairloom.checks import check_choice, check_number
from pairloom.typing import Array

Form = Literal["explicit", "proximal"]
Average = Literal["last", "mean", "poly"]


@dataclass(frozen=True)
class Schedule(ABC):
    """Step sizes eta_t. t counts every example received, also those without a partner."""

    name: ClassVar[str]

    eta: float

    def __post_init__(self) -> None:
        check_number("eta", self.eta, 0, open_low=True)

    @abstractmethod
    def at(self, t: Array) -> Array:
        """eta_t."""


@dataclass(frozen=True)
class Constant(Schedule):
    """eta_t = eta."""

    name = "constant"

    def at(self, t: Array) -> Array:
        return np.full(np.shape(t), float(self.eta))


@dataclass(frozen=True)
class Sqrt(Schedule):
    """eta_t = eta / sqrt(t)."""

    name = "sqrt"

    def at(self, t: Array) -> Array:
        return self.eta / np.sqrt(t)


@dataclass(frozen=True)
class Polynomial(Schedule):
    """eta_t = eta t^-power, 0 < power <= 1."""

    name = "poly"

    power: float = 0.75

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("power", self.power, 0, 1, open_low=True)

    def at(self, t: Array) -> Array:
        return np.asarray(self.eta * np.power(np.asarray(t, dtype=float), -self.power))


SCHEDULES: dict[str, type[Schedule]] = {s.name: s for s in (Constant, Sqrt, Polynomial)}


@dataclass(frozen=True)
class L2:
    """(alpha / 2) ||w||^2, applied to each step w <- keep * w - rate * gradient.

    ``explicit``: keep = 1 - eta alpha, rate = eta, which needs eta alpha < 1.
    ``proximal``: keep = 1 / (1 + eta alpha), rate = eta keep.

    >>> L2(0.5).at(np.array([0.1]))
    (array([0.95]), array([0.1]))
    """

    alpha: float = 0.0
    form: Form = "explicit"

    def __post_init__(self) -> None:
        check_number("alpha", self.alpha, 0)
        check_choice("l2", self.form, Form)

    def at(self, eta: Array) -> tuple[Array, Array]:
        """(keep, rate) for steps ``eta``."""
        if self.form == "explicit":
            return 1.0 - eta * self.alpha, eta
        keep = 1.0 / (1.0 + eta * self.alpha)
        return keep, eta * keep


def averaging_rate(average: Average, t: Array) -> Array:
    """rho_t of the output iterate w_bar <- w_bar + rho_t (w_t - w_bar).

    ``mean`` is the plain average; ``poly`` forgets the start (weights grow like t^3); ``last`` is w_t itself.
    """
    if average == "mean":
        return 1.0 / np.asarray(t, dtype=float)
    if average == "poly":
        return 4.0 / (np.asarray(t, dtype=float) + 3.0)
    return np.ones(np.shape(t))
