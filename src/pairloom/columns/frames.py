"""Frames of pandas, polars and pyarrow, column by column: declared kinds, and values that are not looked at yet."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from pairloom.base.typing import Array
from pairloom.base.validation import column_names, is_missing
from pairloom.columns.kinds import Kind
from pairloom.columns.values import MICROSECONDS

CATEGORIES = (nw.String, nw.Categorical, nw.Enum, nw.Binary)


@dataclass(frozen=True)
class Table:
    """Named columns of ``n`` rows, as the frame has them.

    A column is an array of float64 (numbers, and dates as days since 1970; NaN is missing) or of objects. ``declared``:
    the kind that its type says; None if it holds any objects.
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


def table_of(X: Any, dropped: Collection[str] = ()) -> Table:
    """The columns of a frame; ValueError naming the first that is neither numbers, text nor dates, nor dropped."""
    names = list(column_names(X))
    if len(set(names)) < len(names):
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        raise ValueError(f"the columns of X must have different names; {twice!r} is there twice")
    try:
        frame = nw.from_native(X, eager_only=True)
    except TypeError:
        raise ValueError(f"X must be a frame that has its rows; got a {type(X).__name__}: collect it first") from None
    nothing = np.full(len(frame), np.nan)
    made = [("drop", nothing) if name in dropped else _column(name, frame[name]) for name in names]
    return Table(names, [kind for kind, _ in made], [values for _, values in made], len(frame))


def one_column(X: Any, name: str) -> tuple[Kind | None, Array]:
    """A column of a frame, and the kind that its type says, as in a table."""
    return _column(name, nw.from_native(X, eager_only=True)[name])


def _column(name: str, series: Any) -> tuple[Kind | None, Array]:
    dtype = series.dtype
    # Of pandas' objects, narwhals says what those that are here happen to be. Nothing but gaps is of no type.
    if str(getattr(series.to_native(), "dtype", "")) == "object" or (dtype == nw.Unknown and series.is_null().all()):
        return None, _objects(series)
    if dtype.is_numeric() or dtype == nw.Boolean:
        with np.errstate(over="ignore"):
            whole = series if dtype == nw.Float64 else series.cast(nw.Float64)
            return "number", np.asarray(whole.to_numpy(), dtype=float)
    if isinstance(dtype, (nw.Datetime, nw.Date)):
        return "date", _days(series)
    if isinstance(dtype, CATEGORIES):
        return "category", _objects(series)
    if dtype == nw.Object:  # of polars
        return None, _objects(series)
    own = getattr(series.to_native(), "dtype", dtype)
    raise ValueError(
        f"column {name!r} has the type {own}, which is none of numbers, bool, text, category or dates: turn it into "
        f'one of these, or leave it out, columns={{{name!r}: "drop"}}'
    )


def _objects(series: Any) -> Array:
    """Values as Python has them, None where they are missing."""
    made = np.empty(len(series), dtype=object)
    made[:] = [None if type(value) is not str and is_missing(value) else value for value in series.to_list()]
    return made


def _days(series: Any) -> Array:
    """Days since 1970, in UTC."""
    if isinstance(series.dtype, nw.Datetime) and series.dtype.time_zone is not None:
        series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    times = series.cast(nw.Datetime("us")).to_numpy().astype("datetime64[us]")
    return np.where(np.isnat(times), np.nan, times.astype(np.int64) / MICROSECONDS)
