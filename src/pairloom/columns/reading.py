"""Values of rows as the kinds of their columns want them, or an error that names row and column. Changes nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pairloom.base.exact import FIRST_YEAR, LAST_YEAR
from pairloom.base.refusal import Refusal, shown
from pairloom.base.typing import Array
from pairloom.base.validation import LARGEST, is_missing, too_large, values_by_name
from pairloom.columns.frames import Table
from pairloom.columns.kinds import Kind, OnText
from pairloom.columns.loops import CATEGORY, DATE, DROP, NUMBER, OPEN
from pairloom.columns.state import KINDS, ColumnsState
from pairloom.columns.values import LONGEST, category_of, days_of, kind_of, number_of

WORDS = {NUMBER: "numbers", DATE: "dates", CATEGORY: "categories"}


@dataclass(slots=True)
class Values:
    """Valid values, and the kinds that columns have when these are learned; None: those that they have.

    ``columns``: an array of float64 or a list of categories each (None: missing); of ``one`` row, its values.
    ``since``: of columns whose kind was open, the row from which on it is known.
    """

    kinds: Any
    columns: list[Any]
    n: int = 1
    one: bool = True
    since: dict[int, int] = field(default_factory=dict)

    def __getitem__(self, rows: slice) -> "Values":
        """Some of many rows, those before them being learned."""
        kinds = self.kinds.copy()
        kinds[[j for j, row in self.since.items() if row >= rows.stop]] = OPEN
        return Values(kinds, [column[rows] for column in self.columns], rows.stop - rows.start, one=False)


def read_table(state: ColumnsState, table: Table, on_text: OnText, dtype: str) -> Values:
    """The values of many rows."""
    kinds, columns, since = state.kinds.copy(), [], {}
    for j, (name, column, declared) in enumerate(zip(table.names, table.columns, table.declared, strict=True)):
        if kinds[j] == OPEN:
            kinds[j], since[j] = (KINDS[declared], 0) if declared else _first_kind(column, name)
        columns.append(_column(name, int(kinds[j]), column, on_text, dtype))
    return Values(kinds, columns, len(table), one=False, since=since)


def read_row(state: ColumnsState, x: Any, on_text: OnText, dtype: str) -> Values:
    """The values of one row: a mapping from names, or a sequence in the order of the columns."""
    names, kinds, largest = state.names, state.plain_kinds, LARGEST[dtype]
    given = values_by_name(x, names) if type(x) is dict or isinstance(x, Mapping) else list(x)
    if len(given) != len(names):
        raise ValueError(f"expected one row of {len(names)} values, got {len(given)}")
    told: dict[int, int] = {}
    for j, (value, kind) in enumerate(zip(given, kinds, strict=True)):
        # What is plainly right is the common case, and costs least.
        plain = type(value)
        if kind == NUMBER and (plain is float or plain is int or plain is bool):
            if not -largest <= value <= largest and value == value:
                raise _beyond(number_of(value), names[j], 0, dtype)
        elif kind != CATEGORY or plain is not str or not 0 < len(value) <= LONGEST:
            now, given[j] = _value(names[j], kind, value, on_text, dtype)
            if now != kind:
                told[j] = now
    return Values([told.get(j, kind) for j, kind in enumerate(kinds)] if told else None, given)


def told_by(value: Any, name: str, row: int) -> Kind:
    """The kind that the first value of a column speaks for."""
    kind = kind_of(value)
    if kind is None:
        raise Refusal(
            f"column {name!r} holds a {type(value).__name__}", row=row,
            then=", which is none of numbers, text and dates", python=f': leave it out, columns={{{name!r}: "drop"}}',
            command=f": fit with --set columns.{name}=drop",
        )  # fmt: skip
    return kind


def is_gap(value: Any) -> bool:
    """Whether a value is missing: None, NaN, NaT, NA, or an empty text."""
    return not value if isinstance(value, (str, bytes)) else is_missing(value)


def _first_kind(column: Array, name: str) -> tuple[int, int]:
    """The kind of a column, and the first row that has a value."""
    for row, value in enumerate(column.tolist()):
        if not is_gap(value):
            return KINDS[told_by(value, name, row)], row
    return OPEN, len(column)


def _column(name: str, kind: int, column: Array, on_text: OnText, dtype: str) -> Any:
    """The valid values of one column."""
    if kind in (DROP, OPEN):
        return np.full(len(column), np.nan)
    if kind == CATEGORY:
        return [
            value if type(value) is str and 0 < len(value) <= LONGEST else _category(name, value, row)
            for row, value in enumerate(column.tolist())
        ]
    if column.dtype == object:
        made = [_number(name, kind, value, row, on_text) for row, value in enumerate(column.tolist())]
        column = np.array(made, dtype=float)
    with np.errstate(invalid="ignore"):
        bad = np.flatnonzero(np.abs(column) > LARGEST[dtype])
    if bad.size and kind == DATE and on_text == "missing":
        return np.where(np.isinf(column), np.nan, column)
    if bad.size:
        value = float(column[bad[0]])
        raise _no_date(name, int(bad[0])) if kind == DATE else _beyond(value, name, int(bad[0]), dtype)
    return column


def _value(name: str, kind: int, value: Any, on_text: OnText, dtype: str) -> tuple[int, Any]:
    """One value that is not plainly of its kind, and the kind."""
    if kind == DROP or is_gap(value):
        return kind, None if kind == CATEGORY else np.nan
    if kind == OPEN:
        kind = KINDS[told_by(value, name, 0)]
    if kind == CATEGORY:
        return kind, _category(name, value, 0)
    made = _number(name, kind, value, 0, on_text)
    if abs(made) > LARGEST[dtype]:
        if kind == NUMBER:
            raise _beyond(made, name, 0, dtype)
        if on_text == "raise":
            raise _no_date(name, 0)
        made = np.nan
    return kind, made


def _category(name: str, value: Any, row: int) -> str | None:
    """The name of a category; None if it is missing."""
    if is_gap(value):
        return None
    try:
        return category_of(value)
    except ValueError:
        raise Refusal(
            f"column {name!r} is one of categories, but holds {shown(value)}", row=row,
            python=f': correct it, or leave the column out, columns={{{name!r}: "drop"}}',
            command=f": correct it, or fit with --set columns.{name}=drop",
        ) from None  # fmt: skip


def _number(name: str, kind: int, value: Any, row: int, on_text: OnText) -> float:
    """A number, or a date as days; NaN if it is missing."""
    if is_gap(value):
        return np.nan
    try:
        return number_of(value) if kind == NUMBER else days_of(value)
    except ValueError:
        if on_text == "missing":
            return np.nan
    raise Refusal(
        f"column {name!r} is one of {WORDS[kind]}, but holds {shown(value)}", row=row,
        python=": correct it, or say before the first row that it is of another kind, "
        f'columns={{{name!r}: "category"}}, or that such values are missing, columns=Columns(on_text="missing")',
        command=f": correct it, or fit with --set columns.{name}=category or --set columns.on_text=missing",
    )  # fmt: skip


def _beyond(value: float, name: str, row: int, dtype: str) -> ValueError:
    if np.isinf(value):
        return Refusal(f"column {name!r} holds infinity", row=row)
    return too_large(f"column {name!r} holds {value:g}", row, "", dtype)


def _no_date(name: str, row: int) -> ValueError:
    return Refusal(f"column {name!r} holds a date outside the years {FIRST_YEAR} to {LAST_YEAR}", row=row)
