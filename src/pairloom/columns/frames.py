"""Frames of pandas, polars and pyarrow as tables of columns, whose values are not validated yet."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from pairloom.base.errors import InvalidDataError
from pairloom.base.typing import Array
from pairloom.base.validation import column_names, is_missing
from pairloom.columns.kinds import Kind, kind_of_dtype
from pairloom.columns.values import days_in, days_of


@dataclass(frozen=True)
class Table:
    """Named columns of ``n`` rows.

    A column is an array of float64 (numbers, and dates as days since 1970; NaN is missing) or of objects, which keeps
    categories exact. ``declared``: kinds by data type; None for objects, which may be of any kind, and for text, which
    may be dates.
    """

    names: list[str]
    declared: list[Kind | None]
    columns: list[Array]
    n: int

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return self.n, len(self.names)

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, keep: Array) -> "Table":
        n = int(keep.sum()) if keep.dtype == bool else len(keep)
        return Table(self.names, self.declared, [column[keep] for column in self.columns], n)


def is_named(X: Any) -> bool:
    """Return whether rows are a dense frame whose columns are named by strings."""
    names = column_names(X)
    if names is None or len(names) == 0 or not all(isinstance(name, str) for name in names):
        return False
    return not any(str(dtype).startswith("Sparse") for dtype in getattr(X, "dtypes", ()))


def table_of(X: Any, known: Mapping[str, str] | None = None) -> Table:
    """Return the columns of a frame; ValueError if a column that is not dropped has an unsupported type.

    ``known``: kinds that are set by the user or learned.
    """
    names, known = list(column_names(X)), known or {}
    if len(set(names)) < len(names):
        repeated = next(name for k, name in enumerate(names) if name in names[:k])
        raise ValueError(f"the columns of X must have different names; {repeated!r} occurs twice")
    try:
        frame = nw.from_native(X, eager_only=True)
    except TypeError:
        raise ValueError(f"X must be an eager frame; got a {type(X).__name__}: collect it first") from None
    made = [_column(name, frame[name], known.get(name)) for name in names]
    return Table(names, [kind for kind, _ in made], [values for _, values in made], len(frame))


def one_column(X: Any, name: str) -> tuple[Kind | None, Array]:
    """Return the kind of a column of a frame by its type, and its values, as in a table."""
    return _column(name, nw.from_native(X, eager_only=True)[name], None)


def _column(name: str, series: Any, known: str | None) -> tuple[Kind | None, Array]:
    """Return the kind of a column by its type, and its values; these are objects if its known kind is different."""
    if known == "drop":
        return "drop", np.full(len(series), np.nan)
    dtype, native = series.dtype, series.to_native()
    # For pandas' objects, narwhals would guess a type from the values.
    if dtype in (nw.Unknown, nw.Object) or str(getattr(native, "dtype", "")) == "object":
        return None, _objects(series)
    kind = "category" if dtype == nw.Time and known == "category" else kind_of_dtype(dtype)
    if kind == "date":
        moments = _moments(series)
        return kind, _as_objects(list(moments)) if known in ("category", "number") else _days(moments)
    if kind == "number":
        exact = known in ("category", "date") or dtype.is_decimal()
        return kind, _objects(series) if exact else _numbers(series)
    if kind == "category":
        return None if isinstance(dtype, nw.String) else kind, _objects(series)
    own = getattr(native, "dtype", getattr(native, "type", dtype))
    raise InvalidDataError(
        f"column {name!r} has the type {own}; expected numbers, bool, text, category or dates",
        python=f': convert it, or leave it out, columns={{{name!r}: "drop"}}',
        command=f": convert it, or fit with --set columns.{name}=drop",
    )


def _numbers(series: Any) -> Array:
    """Return numbers as float64, NaN where they are missing; integers beyond 2^53 are rounded."""
    if series.dtype == nw.Boolean or series.dtype == nw.Int128:  # NumPy would convert these to objects, or reject them
        series = series.cast(nw.Float64)
    with np.errstate(over="ignore"):
        return np.asarray(series.to_numpy(), dtype=float)


def _objects(series: Any) -> Array:
    """Return values as Python objects, None where they are missing."""
    return _as_objects([None if type(value) is not str and is_missing(value) else value for value in series.to_list()])


def _as_objects(values: list[Any]) -> Array:
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


def _moments(series: Any) -> Array:
    """Return dates and times in UTC, as ``datetime64`` of the column's unit, or as objects if it has none."""
    if isinstance(series.dtype, nw.Datetime) and series.dtype.time_zone is not None:
        series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return np.asarray(series.to_numpy())


def _days(moments: Array) -> Array:
    if moments.dtype != object:
        return np.asarray(days_in(moments))
    return np.array([np.nan if is_missing(value) else days_of(value) for value in moments.tolist()], dtype=float)
