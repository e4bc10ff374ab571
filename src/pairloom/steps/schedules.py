"""Schedules of the step size eta, as functions of the row number t = 1, 2, ..., and averaging of iterates."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from pairloom.base.checks import check_choice, check_count, check_number
from pairloom.base.typing import Array

Average = Literal["last", "mean", "poly"]

SimpleSchedule = Literal["constant", "sqrt", "poly"]
"""Schedules that depend only on the row number."""

MIN_SQUARE = 1e-37
"""A coordinate whose square is below this is treated as 0: in float32 it would lose its digits."""


@dataclass(frozen=True)
class Schedule(ABC):
    """Step sizes eta_t; t counts all rows, including those without a partner."""

    name: ClassVar[str]
    sequential: ClassVar[bool] = False
    """Whether w is updated after each partner of an example, not once for all of them."""
    steady: ClassVar[bool] = False
    """Whether eta_t is the same for all t."""
    per_coordinate: ClassVar[bool] = False
    """Whether there is one step size per coordinate, ``lengths``."""

    eta: float

    def __post_init__(self) -> None:
        check_number("eta", self.eta, 0, open_low=True)

    @abstractmethod
    def at(self, t: Array) -> Array:
        """Return eta_t."""

    def lengths(self, squares: Array) -> Array:
        """Return eta_c for coordinates whose squared gradients sum to ``squares``, if ``per_coordinate``."""
        raise NotImplementedError(f"{type(self).__name__} has one step for all coordinates")


@dataclass(frozen=True)
class Constant(Schedule):
    """eta_t = eta."""

    name = "constant"
    steady = True

    def at(self, t: Array) -> Array:
        return constant_like(t, self.eta)


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
        return constant_like(t, self.eta / np.sqrt(self.horizon))


@dataclass(frozen=True)
class PassiveAggressive(Constant):
    """Step until a pair's hinge loss is 0, by at most eta p_j; the partners of an example are processed in order.

    With u = a_j (z - B_j), in the order of the slots: w <- w + tau u, tau = min(eta p_j, max(0, 1 - <w, u>) / ||u||^2).
    Unless tau is cut, the pair has no loss right after its step. The penalty shrinks w before the first pair; its
    threshold and ball are applied after the last pair.

    Reference: Crammer et al., Online Passive-Aggressive Algorithms, JMLR 2006, with eta = C.
    """

    name = "passive-aggressive"
    sequential = True


@dataclass(frozen=True)
class AdaGrad(Schedule):
    """One step size per coordinate, eta over the root of its squared gradients: large for rare columns.

    With v the gradient of the row's weighted pair loss, without the penalty, times the row's weight (at most 1e6), for
    each coordinate with v_c != 0 (|v_c| > 3e-19):

        G_c <- G_c + v_c^2,    eta_c = eta / sqrt(G_c),
        w_c <- soft(keep(eta_c) w_c - rate(eta_c) v_c, threshold(eta_c))

    with keep, rate and threshold of the penalty (keep is at least 0), then its ball, by the plain Euclidean projection.
    All other coordinates are unchanged: a penalty acts on a coordinate only when it is visited, so that the cost of a
    step on CSR rows is linear in the entries of the gradient, even with l1. Averages are of all coordinates, at every
    row.

    A gradient changes no coordinate by more than eta, regardless of the scale of the rows: no step is cut for being
    unstable, and no heavy row is split. A row whose loss or gradient is not finite, or so large that its square
    overflows float32, is skipped and counted. v is a sum of differences p_j a_j l'(m_j) (z - B_j), never a difference
    of sums: v_c / sqrt(G_c) would turn a rounding error in place of 0 into a full step. With a penalty that shrinks, a
    step is not continuous at v_c = 0: features that are equal in float32 but differ in float64 are shrunk only in
    float64.

    A coordinate that is pure rounding error takes steps as long as any other: prefer maps whose features have similar
    scales (``RandomFourier``, ``Forest``) to maps whose features become ever smaller (``Nystroem`` in float32).

    G is part of the state: one number per weight, of the model's dtype (float64 on CSR rows). In float32 a square below
    6e-8 G_c is lost, which happens after 10^7 rows or more. A step costs 10 D flops in addition to the gradient. If
    features grow, phi shrinks, and G is rescaled to the sum of squares that the new features would have had.

    Reference: Duchi, Hazan and Singer, Adaptive Subgradient Methods for Online Learning and Stochastic Optimization,
    JMLR 2011, with the composite mirror descent update of a diagonal matrix, and lazy regularisation.

    >>> AdaGrad(0.5).lengths(np.array([0.25, 4.0]))
    array([1.  , 0.25])
    """

    name = "adagrad"
    per_coordinate = True

    @property
    def is_compiled(self) -> bool:
        """Whether compiled engines support the schedule: not if a subclass overrides ``lengths``."""
        return type(self).lengths is AdaGrad.lengths

    def at(self, t: Array) -> Array:
        """Return eta, the largest change of a coordinate."""
        return constant_like(t, self.eta)

    def lengths(self, squares: Array) -> Array:
        return np.asarray(self.eta / np.sqrt(squares))


SCHEDULES: dict[str, type[Schedule]] = {s.name: s for s in (Constant, Sqrt, Polynomial, Horizon, AdaGrad)}


def schedule_named(name: str, eta: float, horizon: int | None = None) -> Schedule:
    """Return the schedule described by a system's parameters.

    >>> schedule_named("sqrt", 0.5)
    Sqrt(eta=0.5)
    """
    check_choice("schedule", name, SCHEDULES)
    if horizon is not None:
        check_count("horizon, if not None,", horizon)
    return Horizon(eta, 0 if horizon is None else horizon) if name == Horizon.name else SCHEDULES[name](eta)


def simple_schedule(name: str, eta: float) -> Schedule:
    """Return the schedule of a system without the parameter ``horizon``."""
    check_choice("schedule", name, SimpleSchedule)
    return SCHEDULES[name](eta)


def averaging_rate(average: Average, t: Array) -> Array:
    """Return rho_t of the output iterate w_bar <- w_bar + rho_t (w_t - w_bar).

    ``mean`` is the plain average; ``poly`` forgets the start (weights grow like t^3); ``last`` is w_t itself.
    """
    if average == "mean":
        return 1.0 / np.asarray(t, dtype=float)
    if average == "poly":
        return 4.0 / (np.asarray(t, dtype=float) + 3.0)
    return constant_like(t, 1.0)


def constant_like(like: Array, value: float) -> Array:
    """Return an array of one value with the shape of ``like``; np.full takes three times as long for one row."""
    made: Array = np.empty(like.shape)
    made.fill(value)
    return made
