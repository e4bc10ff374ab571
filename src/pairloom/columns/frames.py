"""Frames of pandas, polars and pyarrow, column by column: declared kinds, and values that are not looked at yet."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from pairloom.base.refusal import Refusal
from pairloom.base.typing import Array
from pairloom.base.validation import column_names, is_missing
from pairloom.columns.kinds import Kind
from pairloom.columns.values import days_in, days_of

CATEGORIES = (nw.String, nw.Categorical, nw.Enum, nw.Binary)


@dataclass(frozen=True)
class Table:
    """Named columns of ``n`` rows, as the frame has them.

    A column is an array of float64 (numbers, and dates as days since 1970; NaN is missing) or of objects: all that is
    to be a category, so that it stays exact. ``declared``: the kind that its type says; None if it says none.
    """

    names: list[str]
    declared: list[Kind | None]
    columns: list[Array]
    n: int

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.n, len(self.names)

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, keep: Array) -> "Table":
        """The rows of a mask."""
        return Table(self.names, self.declared, [column[keep] for column in self.columns], int(keep.sum()))


def is_named(X: Any) -> bool:
    """Whether rows are a dense frame whose columns have names."""
    names = column_names(X)
    if names is None or len(names) == 0 or not all(isinstance(name, str) for name in names):
        return False
    return not any(str(dtype).startswith("Sparse") for dtype in getattr(X, "dtypes", ()))


def table_of(X: Any, known: Mapping[str, str] | None = None) -> Table:
    """The columns of a frame; ValueError naming the first that is neither numbers, text nor dates, nor dropped.

    ``known``: kinds of columns that are pinned or learned.
    """
    names, known = list(column_names(X)), known or {}
    if len(set(names)) < len(names):
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        raise ValueError(f"the columns of X must have different names; {twice!r} is there twice")
    try:
        frame = nw.from_native(X, eager_only=True)
    except TypeError:
        raise ValueError(f"X must be a frame that has its rows; got a {type(X).__name__}: collect it first") from None
    made = [_column(name, frame[name], known.get(name)) for name in names]
    return Table(names, [kind for kind, _ in made], [values for _, values in made], len(frame))


def one_column(X: Any, name: str) -> tuple[Kind | None, Array]:
    """A column of a frame, and the kind that its type says, as in a table."""
    return _column(name, nw.from_native(X, eager_only=True)[name], None)


def _column(name: str, series: Any, known: str | None) -> tuple[Kind | None, Array]:
    """The kind that the type of a column says, and its values; as objects, if it is known to be of another kind."""
    dtype = series.dtype
    if known == "drop":
        return "drop", np.full(len(series), np.nan)
    # Of pandas' objects, narwhals says what those that are here happen to be.
    if dtype in (nw.Unknown, nw.Object) or str(getattr(series.to_native(), "dtype", "")) == "object":
        return None, _objects(series)
    if isinstance(dtype, (nw.Datetime, nw.Date)):
        moments = _moments(series)
        return "date", _as_objects(list(moments)) if known in ("category", "number") else _days(moments)
    if dtype.is_numeric() or dtype == nw.Boolean:
        exact = known in ("category", "date") or dtype.is_decimal()
        return "number", _objects(series) if exact else _numbers(series)
    if isinstance(dtype, CATEGORIES) or (dtype == nw.Time and known == "category"):
        return "category", _objects(series)
    own = getattr(series.to_native(), "dtype", getattr(series.to_native(), "type", dtype))
    raise Refusal(
        f"column {name!r} has the type {own}, which is none of numbers, bool, text, category or dates",
        python=f': turn it into one of these, or leave it out, columns={{{name!r}: "drop"}}',
        command=f": turn it into one of these, or fit with --set columns.{name}=drop",
    )


def _numbers(series: Any) -> Array:
    """As float64, NaN where they are missing; whole numbers beyond 2^53 become the nearest."""
    if series.dtype == nw.Boolean or series.dtype == nw.Int128:  # of which NumPy makes objects, or nothing
        series = series.cast(nw.Float64)
    with np.errstate(over="ignore"):
        return np.asarray(series.to_numpy(), dtype=float)


def _objects(series: Any) -> Array:
    """Values as Python has them, None where they are missing."""
    return _as_objects([None if type(value) is not str and is_missing(value) else value for value in series.to_list()])


def _as_objects(values: list[Any]) -> Array:
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


def _moments(series: Any) -> Array:
    """Moments in UTC, as ``datetime64`` of the column's own unit; as objects where NumPy is given nothing better."""
    if isinstance(series.dtype, nw.Datetime) and series.dtype.time_zone is not None:
        series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return np.asarray(series.to_numpy())


def _days(moments: Array) -> Array:
    """Days since 1970."""
    if moments.dtype != object:
        return np.asarray(days_in(moments))
    return np.array([np.nan if is_missing(value) else days_of(value) for value in moments.tolist()], dtype=float)
