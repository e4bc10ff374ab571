"""Rows on their way to a model: checked, and not learned yet."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from pairloom.base.typing import Array
from pairloom.base.validation import named_row
from pairloom.columns.encoder import Encoder
from pairloom.columns.frames import Table, is_named, table_of
from pairloom.columns.kinds import ColumnsLike, columns_of
from pairloom.columns.reading import Values


@dataclass(frozen=True)
class Incoming:
    """Rows of numbers, dense or CSR, or of named columns, with the encoder that knows these.

    ``rows``: numbers, a :class:`Table`, or ``Values`` of it once it was read. ``time``: when each row was, if a column
    tells it.
    """

    rows: Any
    dtype: str
    encoder: Encoder | None = None
    time: Array | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows, and numbers of a row."""
        n = self.rows.n if isinstance(self.rows, Values) else self.rows.shape[0]
        return n, self.rows.shape[1] if self.encoder is None else self.encoder.width

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, keep: Array | slice) -> Self:
        """Some of the rows, by a mask; by a slice once they were read."""
        return replace(self, rows=self.rows[keep], time=None if self.time is None else self.time[keep])

    def read(self, columns: ColumnsLike, layout: int | None) -> "Incoming":
        """The same with valid values, or ValueError; a first table begins an encoder."""
        if not isinstance(self.rows, Table):
            return self
        encoder = self.encoder or Encoder.of_table(columns_of(columns), self.rows, layout)
        return Incoming(encoder.read(self.rows, self.dtype), self.dtype, encoder, self.time)

    def numbers(self, weight: Array) -> Any:
        """The rows as the model learns them; the encoder knows them from now on."""
        return self.rows if self.encoder is None else self.encoder.learn(self.rows, weight, self.dtype)


def first_row(x: Any, dtype: str, columns: ColumnsLike, layout: int | None) -> Incoming | None:
    """The first row of a stream, if it has named columns."""
    x = named_row(x)
    if not isinstance(x, Mapping):
        check_unpinned(columns)
        return None
    encoder = Encoder.of_row(columns_of(columns), x, layout)
    return Incoming(encoder.read(x, dtype), dtype, encoder)


def one_row(encoder: Encoder, x: Any) -> Any:
    """A row for an encoder: a mapping from names, or values in order."""
    if type(x) is dict:
        return x
    x = named_row(x)
    if isinstance(x, Mapping):
        return x
    if np.ndim(x) != 1:
        raise ValueError(f"expected one row of {len(encoder.state.names)} values, got shape {np.shape(x)}")
    return x.tolist() if isinstance(x, np.ndarray) else list(x)


def named_columns(X: Any, columns: ColumnsLike, encoder: Encoder | None) -> Table | None:
    """The columns of a frame, if they have names; ``encoder``: of the rows before, if there were any."""
    first = X[0] if isinstance(X, (list, tuple)) and len(X) else X
    if isinstance(first, Mapping) and not hasattr(X, "tocsr"):  # one kind of sparse rows is a mapping
        raise ValueError("X must be a data frame or an array: of mappings make one, pandas.DataFrame(X)")
    if not is_named(X):
        return None
    table = table_of(X, dict(columns_of(columns).kinds) if encoder is None else encoder.kinds)
    if len(table) == 0:
        raise ValueError(f"Found array with 0 sample(s) (shape={table.shape}) while a minimum of 1 is required.")
    return table


def by_place(encoder: Encoder, rows: Array) -> Table:
    """Rows of numbers without names, for a model that knows named columns, all of them numbers."""
    check_plain(encoder)
    names = encoder.state.names
    return Table(names, ["number"] * len(names), list(rows.astype(float).T), len(rows))


def check_plain(encoder: Encoder) -> None:
    """Raise unless rows without names can only mean one thing."""
    if not encoder.is_plain:
        raise ValueError(
            f"this model learned named columns of several kinds, {encoder.state.names}: pass a data frame or mappings "
            "with these columns, not an array"
        )


def check_unpinned(columns: ColumnsLike) -> None:
    """Raise if ``columns=`` names some where rows have no names."""
    if dict(columns_of(columns).kinds):
        raise ValueError("columns= names columns, but X has no names: pass a data frame, or mappings from names")
