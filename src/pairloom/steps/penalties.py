"""Penalties Omega."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from pairloom.base.checks import check_choice, check_number
from pairloom.base.compiled import compiled
from pairloom.base.typing import Array
from pairloom.steps.schedules import constant_like

L2Form = Literal["explicit", "proximal"]


class Numbers(NamedTuple):
    """The parameters of ``shrink``."""

    alpha: float
    l1: float
    proximal: bool


@dataclass(frozen=True)
class Penalty(ABC):
    """A penalty Omega, which shrinks or bounds w in each step.

    w <- project(soft(keep * w - rate * gradient, threshold)), where soft(u, s) = sign(u) max(0, |u| - s) and the
    projection is onto the ball ||w|| <= bound.
    """

    only_shrinks: ClassVar[bool] = False
    """Whether a step is only w <- keep * w - rate * gradient."""

    @property
    def bound(self) -> float:
        """Largest norm of w."""
        return np.inf

    @property
    def numbers(self) -> Numbers | None:
        """Parameters for which ``shrink`` equals ``at``; None: steps per coordinate have no compiled form."""
        return None

    @abstractmethod
    def at(self, eta: Array) -> tuple[Array, Array, Array]:
        """Return (keep, rate, threshold) for steps ``eta``."""

    # Not abstract: most penalties support any step size.
    def check(self, eta: float) -> None:  # noqa: B027
        """Raise ValueError unless steps up to ``eta`` are possible."""


@dataclass(frozen=True)
class L2(Penalty):
    """(alpha / 2) ||w||^2.

    ``explicit``: keep = 1 - eta alpha, rate = eta, which needs eta alpha < 1.
    ``proximal``: keep = 1 / (1 + eta alpha), rate = eta keep.

    >>> L2(0.5).at(np.array([0.1]))[0]
    array([0.95])
    """

    only_shrinks = True

    alpha: float = 0.0
    form: L2Form = "explicit"

    def __post_init__(self) -> None:
        check_number("alpha", self.alpha, 0)
        check_choice("l2", self.form, L2Form)

    @property
    def numbers(self) -> Numbers | None:
        # A subclass may override ``at``.
        return Numbers(self.alpha, 0.0, self.form == "proximal") if type(self).at is L2.at else None

    def at(self, eta: Array) -> tuple[Array, Array, Array]:
        if self.form == "explicit":
            return 1.0 - eta * self.alpha, eta, constant_like(eta, 0.0)
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

    @property
    def numbers(self) -> Numbers | None:
        return Numbers(self.alpha, self.l1, True) if type(self).at is ElasticNet.at else None

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

    @property
    def numbers(self) -> Numbers | None:
        return Numbers(0.0, 0.0, False) if type(self).at is Ball.at else None

    def at(self, eta: Array) -> tuple[Array, Array, Array]:
        return constant_like(eta, 1.0), eta, constant_like(eta, 0.0)


@compiled
def shrink(eta: float, alpha: float, l1: float, proximal: bool) -> tuple[float, float, float]:
    """Return ``Penalty.at`` for one step and the penalty's ``numbers``; keep is at least 0 for any step size."""
    if proximal:
        keep = 1.0 / (1.0 + eta * alpha)
        return keep, eta * keep, eta * l1 * keep
    return max(0.0, 1.0 - eta * alpha), eta, eta * l1


def l2_or_ball(alpha: float, radius: float | None) -> Penalty:
    """Return the penalty of a system that either shrinks w or keeps it in a ball.

    >>> l2_or_ball(0.1, None), l2_or_ball(0.0, 2.0)
    (L2(alpha=0.1, form='explicit'), Ball(radius=2.0))
    """
    if radius is None:
        return L2(alpha)
    if alpha != 0:
        raise ValueError(f"alpha shrinks w and radius bounds it: set one of them; got alpha={alpha}, radius={radius}")
    return Ball(radius)
