"""What can be said of the columns: names of their numbers, and those that are of no use."""

from dataclasses import dataclass
from typing import Self

from pairloom.columns.encoder import Encoder
from pairloom.columns.kinds import Columns
from pairloom.columns.loops import AGAIN, CATEGORY, COUNT, DATE, DROP, HIGH, LOW, NUMBER, ORDER, WHOLE
from pairloom.columns.state import MARKED, ColumnsState

ENOUGH = 256
"""Rows after which a column may be said to look like an id."""

DATE_PARTS = ("age", "day_sin", "day_cos", "week_sin", "week_cos", "year_sin", "year_cos", "missing")


@dataclass(frozen=True)
class ColumnReport:
    """What is known of the columns of a stream.

    ``kinds``: by name; "open" if nothing but missing values came. ``categories``: those that have a number of their
    own. ``constant``: columns that had one value only so far, or none. ``id_like``: those that look like ids; neither
    is of any use, and columns={name: "drop"} leaves a column out.
    """

    kinds: dict[str, str]
    categories: dict[str, list[str]]
    constant: list[str]
    id_like: list[str]

    @classmethod
    def of(cls, encoder: Encoder) -> Self:
        """What an encoder knows."""
        state = encoder.state
        return cls(
            encoder.kinds,
            {name: list(known) for name, known in zip(state.names, state.categories, strict=True) if known},
            constant(state), id_like(state),
        )  # fmt: skip


def names_out(part: Columns, state: ColumnsState) -> list[str]:
    """The names of a row's numbers."""
    made: list[str] = []
    ends = [*state.starts[1:].tolist(), state.width]
    for j, (name, end) in enumerate(zip(state.names, ends, strict=True)):
        size = end - len(made)
        own = _names(part, name, int(state.kinds[j]), state.categories[j], state.layout == MARKED)
        made += [*own, *(f"{name}_{k}" for k in range(len(own), size))][:size]
    return made


def _names(part: Columns, name: str, kind: int, categories: list[str], marked: bool) -> list[str]:
    if kind == NUMBER:
        return [name, f"{name}_missing"]
    if kind == DATE:
        return [f"{name}_{part}" for part in DATE_PARTS]
    if kind != CATEGORY or not marked:
        return [name]
    own = [f"{name}={category}" for category in categories]
    free = [f"{name}_free{k}" for k in range(len(categories), part.max_categories)]
    return [f"{name}_missing", *own, *free, *(f"{name}_hashed{k}" for k in range(part.n_hashed))]


def constant(state: ColumnsState) -> list[str]:
    """Columns that had one value only so far, or none."""
    one = (state.statistics[COUNT] == 0) | (state.statistics[LOW] == state.statistics[HIGH])
    return [name for name, same, kind in zip(state.names, one, state.kinds, strict=True) if same and kind != DROP]


def id_like(state: ColumnsState) -> list[str]:
    """Columns that look like ids after 256 rows: categories of which none came again, whole numbers that always rise.

    Of categories, those are watched that have a number of their own.
    """
    found = []
    for j, (name, kind) in enumerate(zip(state.names, state.kinds, strict=True)):
        own = state.statistics[:, j]
        alone = kind == CATEGORY and own[AGAIN] == 0
        rises = kind == NUMBER and own[WHOLE] == 1 and own[ORDER] != 0
        if own[COUNT] >= ENOUGH and (alone or rises):
            found.append(name)
    return found
