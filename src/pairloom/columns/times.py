"""The column that tells the time of each row: when it was, not what it says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pairloom.base.typing import Array
from pairloom.base.validation import column_names, named_row
from pairloom.columns.frames import one_column
from pairloom.columns.reading import is_gap
from pairloom.columns.values import days_of, number_of

DAY = 86_400.0
"""Seconds."""


@dataclass(frozen=True)
class TimeColumn:
    """Which column tells the time, by its name, or by its place in rows without names.

    ``dates``: it holds dates, and times are seconds since 1970; else it holds numbers, which are the times. It is read
    from the rows as they were given, in float64, whether the model learns from the column too or not.

    >>> TimeColumn("when", dates=True).of_row({"when": "1970-01-01T00:01", "x": 3.0}, None)
    array([60.])
    """

    column: str | int
    dates: bool

    def of_frame(self, X: Any) -> Array:
        """The times of a frame with named columns."""
        names = list(column_names(X))
        if self.column not in names:
            raise self._not_among(names)
        kind, values = one_column(X, str(self.column))
        if kind not in ("number", "date"):
            made = [self._one(value, row) for row, value in enumerate(values.tolist())]
            return self._checked(np.array(made, dtype=float))
        if (kind == "date") != self.dates:
            raise self._other_kind(f"holds {kind}s")
        return self._checked(DAY * values if self.dates else values)

    def of_array(self, X: Any, names: Sequence[str] | None) -> Array:
        """The times of valid rows without names; ``names``: those that the model knows, if it knows any."""
        place = self._place(X.shape[1] if hasattr(X, "shape") else len(X[0]), names)
        if self.dates:
            raise self._other_kind("holds numbers, as all rows without names do")
        if hasattr(X, "tocsr"):
            return np.asarray(X.tocsr()[:, [place]].toarray(), dtype=float)[:, 0]
        return self._checked(np.asarray(X)[:, place].astype(float))

    def of_row(self, x: Any, names: Sequence[str] | None) -> Array:
        """The time of one valid row, a mapping from names or a sequence: an array of one number."""
        x = named_row(x)
        if isinstance(x, Mapping):
            if self.column not in x:
                raise self._not_among(list(x))
            value = x[self.column]
        else:
            value = x[self._place(len(x), names)]
        return self._checked(np.array([self._one(value, 0)]))

    def _checked(self, times: Array) -> Array:
        """Times that are there, and finite; else ValueError naming the first row whose time is not."""
        bad = np.flatnonzero(~np.isfinite(times))
        if bad.size:
            what = "is missing" if np.isnan(times[bad[0]]) else "is infinite"
            raise ValueError(
                f"column {self.column!r} tells the time of rows, by half_life=, but {what} at row {bad[0]}: fill it "
                "in, or leave the row out"
            )
        return times

    def _one(self, value: Any, row: int) -> float:
        """A time; NaN if it is missing."""
        if is_gap(value):
            return np.nan
        try:
            return DAY * float(days_of(value)) if self.dates else number_of(value)
        except ValueError:
            raise self._other_kind(f"holds {value!r:.60} at row {row}") from None

    def _place(self, n: int, names: Sequence[str] | None) -> int:
        if isinstance(self.column, str):
            if names is None:
                raise ValueError(
                    f"half_life= names the column {self.column!r}, but X has no names: pass a data frame or mappings, "
                    f"or name the column by its place, as in half_life=({n - 1}, 3600.0)"
                )
            if self.column not in names:
                raise self._not_among(list(names))
            return list(names).index(self.column)
        if self.column >= n:
            raise ValueError(f"half_life= names column {self.column}, but rows have {n}, from 0 to {n - 1}")
        return self.column

    def _not_among(self, names: list[Any]) -> ValueError:
        return ValueError(f"half_life= names the column {self.column!r}, which is none of the columns {names}")

    def _other_kind(self, found: str) -> ValueError:
        if self.dates:
            return ValueError(
                f"half_life= is a length of time by the column {self.column!r}, which must hold dates, but {found}: "
                f"give it as a number in the units of that column, as in half_life=({self.column!r}, 3600.0)"
            )
        return ValueError(
            f"half_life= is a number in the units of the column {self.column!r}, which must hold numbers, but {found}: "
            f'for dates give a length of time, as in half_life=({self.column!r}, "7d")'
        )
