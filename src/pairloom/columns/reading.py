"""Validation of mixed rows by the kinds of their columns: valid values, or an error with row and column."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pairloom.base.errors import InvalidDataError, short_repr
from pairloom.base.typing import Array
from pairloom.base.validation import MAX_VALUE, too_large, values_by_name
from pairloom.columns.frames import Table
from pairloom.columns.inference import infer_kind
from pairloom.columns.kinds import OnText
from pairloom.columns.loops import CATEGORY, DATE, DROP, NUMBER, OPEN
from pairloom.columns.state import KIND_CODES, ColumnsState
from pairloom.columns.values import (
    FIRST_YEAR,
    LAST_YEAR,
    MAX_CATEGORY_LENGTH,
    category_of,
    days_of,
    is_blank,
    number_of,
)

PLURALS = {NUMBER: "numbers", DATE: "dates"}

MALFORMED = np.inf
"""In place of a value that is not of the kind of its column, until it is counted and becomes missing."""

NO_ROWS, FIRST_ROW = np.zeros(0, np.int64), np.zeros(1, np.int64)


@dataclass(slots=True)
class Values:
    """Valid values, and the kinds that the columns have after these rows; None: the kinds do not change.

    ``columns``: for each column an array of float64 or a list of categories (None: missing); for ``one`` row, its
    values. ``since``: for columns whose kind was open, the first row with a value. ``malformed``: for columns with
    malformed values, which are now missing, their rows.
    """

    kinds: Any
    columns: list[Any]
    n: int = 1
    one: bool = True
    since: dict[int, int] = field(default_factory=dict)
    malformed: dict[int, Array] = field(default_factory=dict)

    def __getitem__(self, rows: slice) -> "Values":
        """Return a slice of the rows; earlier rows are already learned."""
        kinds = self.kinds.copy()
        kinds[[j for j, row in self.since.items() if row >= rows.stop]] = OPEN
        columns = [column[rows] for column in self.columns]
        malformed = {j: own[(own >= rows.start) & (own < rows.stop)] for j, own in self.malformed.items()}
        return Values(kinds, columns, rows.stop - rows.start, one=False, malformed=malformed)


def read_table(state: ColumnsState, table: Table, on_text: OnText, dtype: str) -> Values:
    """Return the valid values of many rows."""
    kinds, columns, since, malformed = state.kinds.copy(), [], {}, {}
    for j, (name, column, declared) in enumerate(zip(table.names, table.columns, table.declared, strict=True)):
        if kinds[j] == OPEN:
            kinds[j], since[j] = (KIND_CODES[declared], 0) if declared else _first_kind(column, name)
        values, bad = _column(name, int(kinds[j]), column, on_text, dtype)
        columns.append(values)
        if len(bad):
            malformed[j] = bad
    return Values(kinds, columns, len(table), one=False, since=since, malformed=malformed)


def read_row(state: ColumnsState, x: Any, on_text: OnText, dtype: str) -> Values:
    """Return the valid values of one row: a mapping from names, or a sequence in the order of the columns."""
    names, kinds, largest = state.names, state.plain_kinds, MAX_VALUE[dtype]
    given = values_by_name(x, names) if type(x) is dict or isinstance(x, Mapping) else list(x)
    if len(given) != len(names):
        raise ValueError(f"expected one row of {len(names)} values, got {len(given)}")
    inferred: dict[int, int] = {}
    malformed: dict[int, Array] = {}
    for j, (value, kind) in enumerate(zip(given, kinds, strict=True)):
        # Fast path: plain Python values of the right kind.
        plain = type(value)
        if kind == NUMBER and (plain is float or plain is int or plain is bool):
            if -largest <= value <= largest or value != value:
                continue
        elif kind == CATEGORY and plain is str and 0 < len(value) <= MAX_CATEGORY_LENGTH:
            continue
        now, made = _value(names[j], kind, value, on_text, dtype)
        if now != kind:
            inferred[j] = now
        if made == MALFORMED:
            made, malformed[j] = np.nan, FIRST_ROW
        given[j] = made
    kinds_after = [inferred.get(j, kind) for j, kind in enumerate(kinds)] if inferred else None
    return Values(kinds_after, given, malformed=malformed)


def _first_kind(column: Array, name: str) -> tuple[int, int]:
    """Return the kind of a column, and the first row with a value."""
    values = column.tolist()
    first = next((row for row, value in enumerate(values) if not is_blank(value)), len(values))
    return KIND_CODES[infer_kind(values, name)], first


def _column(name: str, kind: int, column: Array, on_text: OnText, dtype: str) -> tuple[Any, Array]:
    """Return the valid values of a column, and the rows of malformed values, which are missing."""
    if kind in (DROP, OPEN):
        return np.full(len(column), np.nan), NO_ROWS
    if kind == CATEGORY:
        return [
            value if type(value) is str and 0 < len(value) <= MAX_CATEGORY_LENGTH else _category(name, value, row)
            for row, value in enumerate(column.tolist())
        ], NO_ROWS
    if column.dtype == object:
        made = [_number(name, kind, value, row, on_text) for row, value in enumerate(column.tolist())]
        column = np.array(made, dtype=float)
    with np.errstate(invalid="ignore"):
        bad = np.flatnonzero(np.abs(column) > MAX_VALUE[dtype])
    if bad.size and on_text == "raise":
        raise _out_of_range(name, kind, float(column[bad[0]]), int(bad[0]), dtype)
    if bad.size:
        column = column.copy()
        column[bad] = np.nan
    return column, bad


def _value(name: str, kind: int, value: Any, on_text: OnText, dtype: str) -> tuple[int, Any]:
    """Return the kind of a column after one value, and the valid value or ``MALFORMED``."""
    if kind == DROP or is_blank(value):
        return kind, None if kind == CATEGORY else np.nan
    if kind == OPEN:
        kind = KIND_CODES[infer_kind([value], name)]
    if kind == CATEGORY:
        return kind, _category(name, value, 0)
    made = _number(name, kind, value, 0, on_text)
    if abs(made) > MAX_VALUE[dtype]:
        if on_text == "raise":
            raise _out_of_range(name, kind, made, 0, dtype)
        made = MALFORMED
    return kind, made


def _category(name: str, value: Any, row: int) -> str | None:
    """Return the name of a category; None if it is missing."""
    if is_blank(value):
        return None
    try:
        return category_of(value)
    except ValueError:
        raise InvalidDataError(
            f"column {name!r} must contain categories, but contains {short_repr(value)}", row=row,
            python=f': correct it, or leave the column out, columns={{{name!r}: "drop"}}',
            command=f": correct it, or fit with --set columns.{name}=drop",
        ) from None  # fmt: skip


def _number(name: str, kind: int, value: Any, row: int, on_text: OnText) -> float:
    """Return a number, or a date as days; NaN if it is missing, infinity if it is ``MALFORMED``."""
    if is_blank(value):
        return np.nan
    try:
        return number_of(value) if kind == NUMBER else days_of(value)
    except ValueError:
        if on_text == "missing":
            return MALFORMED
    raise InvalidDataError(
        f"column {name!r} must contain {PLURALS[kind]}, but contains {short_repr(value)}", row=row,
        python=": correct it, or before the first row set another kind, "
        f'columns={{{name!r}: "category"}}, or treat such values as missing, columns=Columns(on_text="missing")',
        command=f": correct it, use --on-bad-row skip or missing, or fit with --set columns.{name}=category",
    )  # fmt: skip


def _out_of_range(name: str, kind: int, value: float, row: int, dtype: str) -> InvalidDataError:
    """Return the error for an infinite or too large number, or for a date outside the supported years."""
    if kind == DATE:
        years = f"{FIRST_YEAR} to {LAST_YEAR}"
        return InvalidDataError(f"column {name!r} contains a date outside the years {years}", row=row)
    if np.isinf(value):
        return InvalidDataError(f"column {name!r} contains infinity", row=row)
    return too_large(f"column {name!r} contains {value:g}", row, "", dtype)
