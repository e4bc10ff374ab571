"""Times of rows, read from the time column before rows are encoded, as float64.

The model may learn from the time column as well.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pairloom.base.batch import TimeColumn
from pairloom.base.csr import is_sparse
from pairloom.base.errors import InvalidDataError, short_repr
from pairloom.base.typing import Array
from pairloom.base.validation import column_names, named_row
from pairloom.columns.frames import one_column
from pairloom.columns.values import days_of, is_blank, number_of

DAY_SECONDS = 86_400.0


def times_of_frame(time_column: TimeColumn, X: Any) -> Array:
    """Return the times of a frame with named columns."""
    names = list(column_names(X))
    if time_column.column not in names:
        raise _unknown_name(time_column, names)
    kind, values = one_column(X, str(time_column.column))
    if kind not in ("number", "date"):
        made = [_time(time_column, value, row) for row, value in enumerate(values.tolist())]
        return _checked(time_column, np.array(made, dtype=float))
    if (kind == "date") != time_column.dates:
        raise _other_kind(time_column, f"contains {kind}s")
    return _checked(time_column, DAY_SECONDS * values if time_column.dates else values)


def times_of_array(time_column: TimeColumn, X: Any, names: Sequence[str] | None) -> Array:
    """Return the times of valid rows without names; ``names``: those that the model has learned, if any."""
    position = _position(time_column, X.shape[1] if hasattr(X, "shape") else len(X[0]), names)
    if time_column.dates:
        raise _other_kind(time_column, "contains numbers, as all rows without names do")
    if is_sparse(X):
        return np.asarray(X.tocsr()[:, [position]].toarray(), dtype=float)[:, 0]
    return _checked(time_column, np.asarray(X)[:, position].astype(float))


def time_of_row(time_column: TimeColumn, x: Any, names: Sequence[str] | None) -> Array:
    """Return the time of one valid row, a mapping from names or a sequence, as an array of one number.

    >>> time_of_row(TimeColumn("when", dates=True), {"when": "1970-01-01T00:01", "x": 3.0}, None)
    array([60.])
    """
    x = named_row(x)
    if isinstance(x, Mapping):
        if time_column.column not in x:
            raise _unknown_name(time_column, list(x))
        value = x[time_column.column]
    else:
        value = x[_position(time_column, len(x), names)]
    return _checked(time_column, np.array([_time(time_column, value, 0)]))


def _checked(time_column: TimeColumn, times: Array) -> Array:
    """Return times, or raise ValueError with the first row whose time is missing or infinite."""
    bad = np.flatnonzero(~np.isfinite(times))
    if bad.size:
        infinite = "is outside the years 1 to 9999" if time_column.dates else "is infinite"
        problem = "is missing" if np.isnan(times[bad[0]]) else infinite
        raise InvalidDataError(
            f"column {time_column.column!r} contains the time of rows, by half_life=, but {problem}", row=int(bad[0]),
            python=": fill it in, or leave the row out",
        )  # fmt: skip
    return times


def _time(time_column: TimeColumn, value: Any, row: int) -> float:
    """Return the time in a value; NaN if it is missing."""
    if is_blank(value):
        return np.nan
    try:
        return DAY_SECONDS * float(days_of(value)) if time_column.dates else number_of(value)
    except ValueError:
        raise _other_kind(time_column, f"contains {short_repr(value)}", row) from None


def _position(time_column: TimeColumn, n: int, names: Sequence[str] | None) -> int:
    column = time_column.column
    if isinstance(column, str):
        if names is None:
            raise ValueError(
                f"half_life= names the column {column!r}, but X has no names: pass a data frame or mappings, "
                f"or give the position of the column, as in half_life=({n - 1}, 3600.0)"
            )
        if column not in names:
            raise _unknown_name(time_column, list(names))
        return list(names).index(column)
    if column >= n:
        raise ValueError(f"half_life= names column {column}, but rows have {n}, from 0 to {n - 1}")
    return column


def _unknown_name(time_column: TimeColumn, names: list[Any]) -> ValueError:
    return ValueError(f"half_life= names the column {time_column.column!r}, but the columns are {names}")


def _other_kind(time_column: TimeColumn, found: str, row: int | None = None) -> InvalidDataError:
    column = time_column.column
    if time_column.dates:
        return InvalidDataError(
            f"half_life= is a duration in the column {column!r}, which must contain dates, but {found}", row=row,
            python=f": give it as a number in the units of that column, as in half_life=({column!r}, 3600.0)",
        )  # fmt: skip
    return InvalidDataError(
        f"half_life= is a number in the units of the column {column!r}, which must contain numbers, but {found}",
        row=row,
        python=f': for dates pass a duration, as in half_life=({column!r}, "7d")',
    )  # fmt: skip
