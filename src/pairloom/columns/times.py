"""Times of rows: when they were, by the column that tells it.

It is read from the rows as they were given, in float64, whether a model learns from the column too or not.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pairloom.base.refusal import Refusal, shown
from pairloom.base.times import TimeColumn
from pairloom.base.typing import Array
from pairloom.base.validation import column_names, named_row
from pairloom.columns.frames import one_column
from pairloom.columns.reading import is_gap
from pairloom.columns.values import days_of, number_of

DAY = 86_400.0
"""Seconds."""


def times_of_frame(clock: TimeColumn, X: Any) -> Array:
    """The times of a frame with named columns."""
    names = list(column_names(X))
    if clock.column not in names:
        raise _not_among(clock, names)
    kind, values = one_column(X, str(clock.column))
    if kind not in ("number", "date"):
        made = [_one(clock, value, row) for row, value in enumerate(values.tolist())]
        return _checked(clock, np.array(made, dtype=float))
    if (kind == "date") != clock.dates:
        raise _other_kind(clock, f"holds {kind}s")
    return _checked(clock, DAY * values if clock.dates else values)


def times_of_array(clock: TimeColumn, X: Any, names: Sequence[str] | None) -> Array:
    """The times of valid rows without names; ``names``: those that the model knows, if it knows any."""
    place = _place(clock, X.shape[1] if hasattr(X, "shape") else len(X[0]), names)
    if clock.dates:
        raise _other_kind(clock, "holds numbers, as all rows without names do")
    if hasattr(X, "tocsr"):
        return np.asarray(X.tocsr()[:, [place]].toarray(), dtype=float)[:, 0]
    return _checked(clock, np.asarray(X)[:, place].astype(float))


def time_of_row(clock: TimeColumn, x: Any, names: Sequence[str] | None) -> Array:
    """The time of one valid row, a mapping from names or a sequence: an array of one number.

    >>> time_of_row(TimeColumn("when", dates=True), {"when": "1970-01-01T00:01", "x": 3.0}, None)
    array([60.])
    """
    x = named_row(x)
    if isinstance(x, Mapping):
        if clock.column not in x:
            raise _not_among(clock, list(x))
        value = x[clock.column]
    else:
        value = x[_place(clock, len(x), names)]
    return _checked(clock, np.array([_one(clock, value, 0)]))


def _checked(clock: TimeColumn, times: Array) -> Array:
    """Times that are there, and finite; else ValueError naming the first row whose time is not."""
    bad = np.flatnonzero(~np.isfinite(times))
    if bad.size:
        odd = "is outside the years 1 to 9999" if clock.dates else "is infinite"
        what = "is missing" if np.isnan(times[bad[0]]) else odd
        raise Refusal(
            f"column {clock.column!r} tells the time of rows, by half_life=, but {what}", row=int(bad[0]),
            python=": fill it in, or leave the row out",
        )  # fmt: skip
    return times


def _one(clock: TimeColumn, value: Any, row: int) -> float:
    """A time; NaN if it is missing."""
    if is_gap(value):
        return np.nan
    try:
        return DAY * float(days_of(value)) if clock.dates else number_of(value)
    except ValueError:
        raise _other_kind(clock, f"holds {shown(value)}", row) from None


def _place(clock: TimeColumn, n: int, names: Sequence[str] | None) -> int:
    if isinstance(clock.column, str):
        if names is None:
            raise ValueError(
                f"half_life= names the column {clock.column!r}, but X has no names: pass a data frame or mappings, "
                f"or name the column by its place, as in half_life=({n - 1}, 3600.0)"
            )
        if clock.column not in names:
            raise _not_among(clock, list(names))
        return list(names).index(clock.column)
    if clock.column >= n:
        raise ValueError(f"half_life= names column {clock.column}, but rows have {n}, from 0 to {n - 1}")
    return clock.column


def _not_among(clock: TimeColumn, names: list[Any]) -> ValueError:
    return ValueError(f"half_life= names the column {clock.column!r}, which is none of the columns {names}")


def _other_kind(clock: TimeColumn, found: str, row: int | None = None) -> ValueError:
    if clock.dates:
        return Refusal(
            f"half_life= is a length of time by the column {clock.column!r}, which must hold dates, but {found}",
            row=row, python=": give it as a number in the units of that column, "
            f"as in half_life=({clock.column!r}, 3600.0)",
        )  # fmt: skip
    return Refusal(
        f"half_life= is a number in the units of the column {clock.column!r}, which must hold numbers, but {found}",
        row=row, python=f': for dates give a length of time, as in half_life=({clock.column!r}, "7d")',
    )  # fmt: skip
