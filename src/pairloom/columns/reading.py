"""Validation of mixed rows by the kinds of their columns: valid values, or an error with row and column."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pairloom.base.errors import InvalidDataError, short_repr
from pairloom.base.typing import Array
from pairloom.base.validation import MAX_VALUE, too_large
from pairloom.columns.frames import Table
from pairloom.columns.inference import infer_kind
from pairloom.columns.kinds import Columns, OnText
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

MAX_NAMED = 5
"""Names in an error message."""

NO_ROWS, FIRST_ROW = np.zeros(0, np.int64), np.zeros(1, np.int64)


@dataclass(slots=True)
class Values:
    """Valid values, and the kinds that the columns have after these rows; None: the kinds do not change.

    ``columns``: for each column an array of float64 or a list of categories (None: missing); for ``one`` row, its
    values. ``since``: for columns whose kind was open, the first row with a value. ``malformed``: for columns with
    malformed values, which are now missing, their rows. ``arrived``: new names that take a spare column, with kind and
    value; ``ignored``: other new names with a value.
    """

    kinds: Any
    columns: list[Any]
    n: int = 1
    one: bool = True
    since: dict[int, int] = field(default_factory=dict)
    malformed: dict[int, Array] = field(default_factory=dict)
    arrived: list[tuple[str, int, Any]] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)

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


def read_row(state: ColumnsState, x: Any, part: Columns, dtype: str) -> Values:
    """Return the valid values of one row: a mapping from names, or a sequence in the order of the columns.

    A name that is absent from a mapping has a missing value.
    """
    on_text = part.on_text
    new: list[str] = []
    names, kinds, largest = state.names, state.plain_kinds, MAX_VALUE[dtype]
    if type(x) is dict or isinstance(x, Mapping):
        given, new = _by_name(state, x)
    else:
        given = list(x)
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
    values = Values(kinds_after, given, malformed=malformed)
    if new:
        _read_new(values, state.n_free, [(name, x[name]) for name in new], part, dtype)
    return values


def _by_name(state: ColumnsState, x: Mapping[Any, Any]) -> tuple[list[Any], list[str]]:
    """Return the values of a mapping in the order of the columns, None where a name is absent, and its new names."""
    try:
        values = [x[name] for name in state.names]
        if len(x) == len(values):
            return values, []
    except KeyError:
        values = [x.get(name) for name in state.names]
    new = [name for name in x if name not in state.known]
    if new and state.reserve is None:
        raise ValueError(
            f"the row has the unknown columns {new[:MAX_NAMED]}; those of the model are {state.names}: leave them out, "
            "or before the first row reserve space for new names, columns=Columns(reserve=32)"
        )
    if not all(isinstance(name, str) for name in new):
        raise ValueError(f"the column names of a row given as a mapping must be strings, got {new[:MAX_NAMED]}")
    return values, sorted(new)  # the order of a mapping does not matter


def _read_new(values: Values, n_free: int, new: list[tuple[str, Any]], part: Columns, dtype: str) -> None:
    """Read the values of new names; a missing value takes no column."""
    pinned = dict(part.kinds)
    for name, value in new:
        if is_blank(value) or pinned.get(name) == "drop":
            continue
        if len(values.arrived) == n_free:
            values.ignored.append(name)
            continue
        kind = KIND_CODES[pinned[name] if name in pinned else infer_kind([value], name)]
        made = _value(name, kind, value, part.on_text, dtype)[1]
        if made != MALFORMED:
            values.arrived.append((name, kind, made))


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
