"""eta: how long a step is, a function of the row number t = 1, 2, ... (and, for some, of the gradients so far)."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pairloom.base.checks import check_count, check_number
from pairloom.base.typing import Array
from pairloom.steps.averaging import constant


@dataclass(frozen=True)
class Schedule(ABC):
    """Step sizes eta_t. t counts every example received, also those without a partner."""

    name: ClassVar[str]
    sequential: ClassVar[bool] = False
    """Whether w moves after each partner of an example, and not once for all of them."""
    steady: ClassVar[bool] = False
    """Whether eta_t is the same for all t."""
    per_coordinate: ClassVar[bool] = False
    """Whether each coordinate has a step of its own, ``lengths``."""

    eta: float

    def __post_init__(self) -> None:
        check_number("eta", self.eta, 0, open_low=True)

    @abstractmethod
    def at(self, t: Array) -> Array:
        """eta_t."""

    def lengths(self, squares: Array) -> Array:
        """eta_c of coordinates whose squared gradients add up to ``squares``, where steps are ``per_coordinate``."""
        raise NotImplementedError(f"{type(self).__name__} has one step for all coordinates")


@dataclass(frozen=True)
class Constant(Schedule):
    """eta_t = eta."""

    name = "constant"
    steady = True

    def at(self, t: Array) -> Array:
        return constant(t, self.eta)


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


@dataclass(frozen=True)
class Horizon(Schedule):
    """eta_t = eta / sqrt(T), constant, for a stream whose length T is known."""

    name = "horizon"
    steady = True

    horizon: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("horizon, the expected length of the stream,", self.horizon)

    def at(self, t: Array) -> Array:
        return constant(t, self.eta / np.sqrt(self.horizon))


@dataclass(frozen=True)
class PassiveAggressive(Constant):
    """As far as a pair's hinge loss needs, at most eta p_j; the partners of an example one after the other.

    With u = a_j (z - B_j), in the order of the slots: w <- w + tau u, tau = min(eta p_j, max(0, 1 - <w, u>) / ||u||^2).
    Where tau is not cut the pair has no loss right after. The penalty shrinks w before the first pair; its threshold
    and ball come after the last.

    Reference: Crammer et al., Online Passive-Aggressive Algorithms, JMLR 2006, with eta = C.
    """

    name = "passive-aggressive"
    sequential = True
