"""Rows that are validated but not yet learned: numbers, or mixed columns with their encoder."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from pairloom.base.csr import is_sparse
from pairloom.base.typing import Array
from pairloom.base.validation import named_row
from pairloom.columns.encoder import Encoder, Keep
from pairloom.columns.frames import Table, is_named, table_of
from pairloom.columns.kinds import ColumnsLike, columns_of
from pairloom.columns.reading import Values
from pairloom.columns.state import Layouts
from pairloom.columns.windows import ColumnWindows


@dataclass(frozen=True)
class Incoming:
    """Rows of numbers, dense or CSR, or rows of named columns with their encoder.

    ``rows``: numbers, a :class:`Table`, or the ``Values`` of a table after ``read``. ``time``: the time of each row, if
    there is a time column.
    """

    rows: Any
    dtype: str
    encoder: Encoder | None = None
    time: Array | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows, and of features of a row."""
        n = self.rows.n if isinstance(self.rows, Values) else self.rows.shape[0]
        return n, self.rows.shape[1] if self.encoder is None else self.encoder.width

    @property
    def n_columns(self) -> int:
        """Number of columns, before they are encoded."""
        return self.shape[1] if self.encoder is None else len(self.encoder.state.names)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, keep: Array | slice) -> Self:
        """Return some of the rows, by a mask or by numbers; after ``read``, by a slice."""
        return replace(self, rows=self.rows[keep], time=None if self.time is None else self.time[keep])

    def read(self, columns: ColumnsLike, layouts: Layouts) -> "Incoming":
        """Return the rows with valid values, or raise ValueError; the first table of a stream makes an encoder."""
        if not isinstance(self.rows, Table):
            return self
        encoder = self.encoder or Encoder.of_table(columns_of(columns), self.rows, layouts)
        return replace(self, rows=encoder.read(self.rows, self.dtype), encoder=encoder)

    def numbers(self, weight: Array, windows: ColumnWindows | None = None, keep: Keep | None = None) -> Any:
        """Return the rows as the model learns them; the encoder learns them too, and ``windows`` of their columns.

        ``keep`` is called with the rows before they are encoded (:meth:`Encoder.learn`).
        """
        if self.encoder is not None:
            return self.encoder.learn(self.rows, weight, self.dtype, windows, keep)
        if windows is not None:
            windows.add(self.rows.toarray() if is_sparse(self.rows) else self.rows)
        if keep is not None:
            keep(self.rows)
        return self.rows


def first_row(x: Any, dtype: str, columns: ColumnsLike, layouts: Layouts) -> Incoming | None:
    """Return the first row of a stream, if it has named columns; otherwise None."""
    x = named_row(x)
    if not isinstance(x, Mapping):
        check_unpinned(columns)
        return None
    encoder = Encoder.of_row(columns_of(columns), x, layouts)
    return Incoming(encoder.read(x, dtype), dtype, encoder)


def one_row(encoder: Encoder, x: Any) -> Any:
    """Return a row in the form that encoders accept: a mapping from names, or a list of values in order."""
    if type(x) is dict:
        return x
    x = named_row(x)
    if isinstance(x, Mapping):
        return x
    if np.ndim(x) != 1:
        raise ValueError(f"expected one row of {len(encoder.state.names)} values, got shape {np.shape(x)}")
    return x.tolist() if isinstance(x, np.ndarray) else list(x)


def named_columns(X: Any, columns: ColumnsLike, encoder: Encoder | None) -> Table | None:
    """Return the columns of a frame, if they have names; ``encoder``: that of earlier rows, None for the first rows."""
    first = X[0] if isinstance(X, (list, tuple)) and len(X) else X
    if isinstance(first, Mapping) and not is_sparse(X):  # a DOK matrix is a mapping
        raise ValueError("X must be a data frame or an array: turn mappings into a frame, pandas.DataFrame(X)")
    if not is_named(X):
        return None
    table = table_of(X, dict(columns_of(columns).kinds) if encoder is None else encoder.state.kind_names)
    if len(table) == 0:
        raise ValueError(f"Found array with 0 sample(s) (shape={table.shape}) while a minimum of 1 is required.")
    return table


def table_by_position(encoder: Encoder, rows: Array) -> Table:
    """Return rows of numbers without names as a table, for a model whose named columns are all numbers."""
    check_plain(encoder)
    names = encoder.state.names
    return Table(names, ["number"] * len(names), list(rows.astype(float).T), len(rows))


def check_plain(encoder: Encoder) -> None:
    """Raise ValueError unless rows without names are unambiguous."""
    if not encoder.is_plain:
        raise ValueError(
            f"this model learned named columns of several kinds, {encoder.state.names}: pass a data frame or mappings "
            "with these columns, not an array"
        )


def check_unpinned(columns: ColumnsLike) -> None:
    """Raise ValueError if ``columns=`` sets kinds, for rows without names."""
    if dict(columns_of(columns).kinds):
        raise ValueError("columns= names columns, but X has no names: pass a data frame, or mappings from names")
