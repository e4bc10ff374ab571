"""eta, Omega: how long a step is, how the weights shrink, and which iterate is the model.

All three are functions of the row number t = 1, 2, ... alone, so every engine computes them for a whole block at
once, with NumPy, in float64.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from pairloom.checks import check_choice, check_count, check_number
from pairloom.typing import Array

Form = Literal["explicit", "proximal"]
Average = Literal["last", "mean", "poly"]
Simple = Literal["constant", "sqrt", "poly"]
"""Schedules that know the row number alone."""


@dataclass(frozen=True)
class Schedule(ABC):
    """Step sizes eta_t. t counts every example received, also those without a partner."""

    name: ClassVar[str]
    sequential: ClassVar[bool] = False
    """Whether w moves after each partner of an example, and not once for all of them."""
    steady: ClassVar[bool] = False
    """Whether eta_t is the same for all t."""

    eta: float

    def __post_init__(self) -> None:
        check_number("eta", self.eta, 0, open_low=True)

    @abstractmethod
    def at(self, t: Array) -> Array:
        """eta_t."""


def constant(like: Array, value: float) -> Array:
    """An array of one value, as long as ``like``; np.full costs three times as much for one row."""
    made: Array = np.empty(like.shape)
    made.fill(value)
    return made


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


SCHEDULES: dict[str, type[Schedule]] = {s.name: s for s in (Constant, Sqrt, Polynomial, Horizon)}


def schedule_named(name: str, eta: float, horizon: int | None = None) -> Schedule:
    """The schedule that a system's parameters describe.

    >>> schedule_named("sqrt", 0.5)
    Sqrt(eta=0.5)
    """
    check_choice("schedule", name, SCHEDULES)
    if horizon is not None:
        check_count("horizon, if not None,", horizon)
    return Horizon(eta, 0 if horizon is None else horizon) if name == Horizon.name else SCHEDULES[name](eta)


def simple_schedule(name: str, eta: float) -> Schedule:
    """``schedule_named`` for a system that does not ask how long the stream is."""
    check_choice("schedule", name, Simple)
    return SCHEDULES[name](eta)


@dataclass(frozen=True)
class Penalty(ABC):
    """Omega: what a step does to w besides following the gradient.

    w <- project(soft(keep * w - rate * gradient, threshold)), where soft(u, s) = sign(u) max(0, |u| - s) and the
    projection is onto the ball ||w|| <= bound.
    """

    @property
    def bound(self) -> float:
        """Largest norm of w."""
        return np.inf

    @abstractmethod
    def at(self, eta: Array) -> tuple[Array, Array, Array]:
        """(keep, rate, threshold) for steps ``eta``."""

    # Not abstract: most penalties take any step.
    def check(self, eta: float) -> None:  # noqa: B027
        """Raise unless steps up to ``eta`` are possible."""


@dataclass(frozen=True)
class L2(Penalty):
    """(alpha / 2) ||w||^2.

    ``explicit``: keep = 1 - eta alpha, rate = eta, which needs eta alpha < 1.
    ``proximal``: keep = 1 / (1 + eta alpha), rate = eta keep.

    >>> L2(0.5).at(np.array([0.1]))[0]
    array([0.95])
    """

    alpha: float = 0.0
    form: Form = "explicit"

    def __post_init__(self) -> None:
        check_number("alpha", self.alpha, 0)
        check_choice("l2", self.form, Form)

    def at(self, eta: Array) -> tuple[Array, Array, Array]:
        if self.form == "explicit":
            return 1.0 - eta * self.alpha, eta, constant(eta, 0.0)
        return ElasticNet(self.alpha).at(eta)

    def check(self, eta: float) -> None:
        if self.form == "explicit" and eta * self.alpha >= 1:
            raise ValueError(
                f"an explicit L2 step needs eta * alpha < 1, got {eta * self.alpha:g}: "
                "lower eta or alpha, or use l2='proximal'"
            )


@dataclass(frozen=True)
class ElasticNet(Penalty):
    """(alpha / 2) ||w||^2 + l1 ||w||_1, by its proximal step: exact zeros in w.

    >>> ElasticNet(0.0, l1=1.0).at(np.array([0.1]))[2]
    array([0.1])
    """

    alpha: float = 0.0
    l1: float = 0.0

    def __post_init__(self) -> None:
        check_number("alpha", self.alpha, 0)
        check_number("l1", self.l1, 0)

    def at(self, eta: Array) -> tuple[Array, Array, Array]:
        keep = 1.0 / (1.0 + eta * self.alpha)
        return keep, eta * keep, eta * self.l1 * keep


@dataclass(frozen=True)
class Ball(Penalty):
    """The constraint ||w|| <= radius: after each step w <- w min(1, radius / ||w||)."""

    radius: float = 1.0

    def __post_init__(self) -> None:
        check_number("radius", self.radius, 0, open_low=True)

    @property
    def bound(self) -> float:
        return self.radius

    def at(self, eta: Array) -> tuple[Array, Array, Array]:
        return constant(eta, 1.0), eta, constant(eta, 0.0)


def l2_or_ball(alpha: float, radius: float | None) -> Penalty:
    """The penalty of a system that shrinks w or keeps it in a ball.

    >>> l2_or_ball(0.1, None), l2_or_ball(0.0, 2.0)
    (L2(alpha=0.1, form='explicit'), Ball(radius=2.0))
    """
    if radius is None:
        return L2(alpha)
    if alpha != 0:
        raise ValueError(f"alpha shrinks w and radius bounds it: set one of them; got alpha={alpha}, radius={radius}")
    return Ball(radius)


def averaging_rate(average: Average, t: Array) -> Array:
    """rho_t of the output iterate w_bar <- w_bar + rho_t (w_t - w_bar).

    ``mean`` is the plain average; ``poly`` forgets the start (weights grow like t^3); ``last`` is w_t itself.
    """
    if average == "mean":
        return 1.0 / np.asarray(t, dtype=float)
    if average == "poly":
        return 4.0 / (np.asarray(t, dtype=float) + 3.0)
    return constant(t, 1.0)
