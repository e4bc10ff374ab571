"""Schedules by name, as parameters of systems say them."""

from typing import Literal

from pairloom.base.checks import check_choice, check_count
from pairloom.steps.adagrad import AdaGrad
from pairloom.steps.schedules import Constant, Horizon, Polynomial, Schedule, Sqrt

Simple = Literal["constant", "sqrt", "poly"]
"""Schedules that know the row number alone."""

SCHEDULES: dict[str, type[Schedule]] = {s.name: s for s in (Constant, Sqrt, Polynomial, Horizon, AdaGrad)}


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
