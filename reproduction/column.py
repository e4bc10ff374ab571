"""A column of the AUC table: a system, its grid, the scaling of its rows, and the number of rows it learns."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

from pairloom.theory import features_needed
from reproduction.cells import Settings
from reproduction.problems import Protocol, Shape, View

Make = Callable[[Shape, Settings, int], Any]
"""An unfitted estimator or model, from the shape of a training part, settings and a seed."""


def n_features_of(shape: Shape) -> int:
    """Return the paper's number of random features, sqrt(T) ln T for T training rows, rounded up."""
    return features_needed(shape.n_rows)


def unit_width(shape: Shape) -> float:
    """Return 1 / (2 d), the paper's width; for rows of norm 1, 1 / (4 median squared distance)."""
    return 1 / 8 if shape.sparse else 1 / (2 * shape.n_features)


def combined(**values: Any) -> list[Settings]:
    """Return all combinations."""
    return [dict(zip(values, choice, strict=True)) for choice in product(*values.values())]


def _nothing(shape: Shape, protocol: Protocol) -> list[Settings]:
    return []


def _all_rows(shape: Shape) -> None:
    return None


def _never(shape: Shape) -> bool:
    return False


def _takes_part(shape: Shape) -> str:
    return ""


def linear_micros(shape: Shape) -> float:
    """Return the time of a few products with a row."""
    return 1.0 + shape.n_features * (1e-3 if shape.sparse else 6e-3)


@dataclass(frozen=True)
class Column:
    """A system in the table.

    Parameters
    ----------
    make : an unfitted estimator or model
    grid : the settings to choose from; an empty list if there is nothing to tune
    view : the scaling of the rows
    most : maximum number of rows to learn, besides the time limit of the protocol
    limited : whether the time limit applies: for systems whose cost of a row is far above that of FPOGD
    slow : whether it is tuned on few rows
    left_out : the reason why it is skipped on a data set, or ""
    micros : estimated time per row
    one_pass : whether settings that differ only in steps and penalties are learned in one pass
    seeded : whether another seed gives another model
    """

    name: str
    make: Make
    grid: Callable[[Shape, Protocol], list[Settings]] = _nothing
    view: View = "scaled"
    most: Callable[[Shape], int | None] = _all_rows
    limited: bool = False
    slow: Callable[[Shape], bool] = _never
    left_out: Callable[[Shape], str] = _takes_part
    micros: Callable[[Shape], float] = linear_micros
    one_pass: bool = False
    seeded: bool = True

    def n_learned(self, shape: Shape, protocol: Protocol) -> int:
        """Return the number of training rows to learn."""
        time = int(1e6 * protocol.most_seconds / self.micros(shape)) if self.limited else shape.n_rows
        return min(shape.n_rows, time, self.most(shape) or shape.n_rows)

    def n_tuned(self, shape: Shape, protocol: Protocol) -> int:
        """Return the number of training rows for selecting settings."""
        return min(shape.n_rows, protocol.slow_selection_rows if self.slow(shape) else protocol.selection_rows)


def of(kind: Callable[..., Any], **fixed: Any) -> Make:
    """Return a function that creates an estimator from fixed parameters, settings and a seed."""

    def make(shape: Shape, settings: Settings, seed: int) -> Any:
        return kind(random_state=seed, **{**fixed, **settings})

    return make


def own_column(name: str, grid: dict[str, list[Any]]) -> Column:
    """Return the column of a class named ``module:Class``, with a grid of its parameters.

    Raise ValueError if it cannot be imported. ``random_state`` is set if the class has it; rows are scaled to [-1, 1].
    """
    module, _, kind = name.partition(":")
    try:
        made = getattr(importlib.import_module(module), kind)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{name!r} is not MODULE:CLASS of a class that can be imported: {error}") from error
    seeded = hasattr(made, "get_params") and "random_state" in made().get_params()

    def make(shape: Shape, settings: Settings, seed: int) -> Any:
        return made(**({"random_state": seed} if seeded else {}), **settings)

    settings = combined(**grid) if grid else []
    return Column(name, make, lambda shape, protocol: settings, seeded=seeded)
