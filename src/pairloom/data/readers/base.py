"""Base classes of all readers: chunks of rows, and the rows of a chunk that cannot be parsed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from pairloom.base.typing import Array
from pairloom.columns.kinds import Kinds

PARSE_ERRORS = (ValueError, OverflowError, NotImplementedError)
"""Exceptions of a malformed row; the last two come from conversions of pyarrow and NumPy."""

RowErrors = dict[int, str]
"""Error messages by row number within the chunk."""


class RawRows(Protocol):
    """Rows of a chunk before parsing."""

    def line_of(self, i: int) -> int:
        """Return the line number (from 1) on which row i begins; for Parquet, the row number."""

    def record(self, i: int) -> bytes:
        """Return row i as it is in the file."""

    def feed(self, digest: Any, low: int, high: int) -> None:
        """Update a digest with rows ``low`` to ``high`` (exclusive)."""


@dataclass(frozen=True)
class ValidRows:
    """Rows of a chunk that can be parsed, and the errors of the others.

    ``table``: a table of named columns, or for LIBSVM a pair of features and labels; None without valid rows.
    ``rows``: row numbers within the chunk.
    """

    table: Any
    rows: Array
    errors: RowErrors


class Chunk(Protocol):
    """Consecutive rows of a source. Formats with named columns have ``table``; LIBSVM has ``rows``.

    ``header``: the first line of a file with some of these rows. ``columns``: bytes that identify the column names
    and their order, where the rows do not.
    """

    name: str
    header: bytes

    @property
    def columns(self) -> bytes: ...

    @property
    def records(self) -> RawRows: ...

    def __len__(self) -> int: ...

    def infer(self, names: list[str]) -> Kinds:
        """Infer the kinds of columns from all rows of the chunk."""

    def table(self, low: int, high: int, kinds: Kinds) -> Any:
        """Return rows ``low`` to ``high`` (exclusive) as a pyarrow table; raise ValueError if one is malformed."""

    def valid_table(self, low: int, high: int, kinds: Kinds) -> ValidRows:
        """Return the rows that can be parsed, and the errors of the others."""

    def rows(self, low: int, high: int, width: int) -> tuple[Any, Array]:
        """Return features (array or CSR) and labels of LIBSVM rows; raise ValueError if one is malformed."""

    def valid_rows(self, low: int, high: int, width: int) -> ValidRows:
        """Return the LIBSVM rows that can be parsed, and the errors of the others."""


def bisect_rows(
    low: int, high: int, attempt: Callable[[int, int], object], on_error: Callable[[int, ValueError], None]
) -> None:
    """Try all rows at once; if that raises ValueError, which must change nothing, try each half.

    Rows are tried in order: those before a malformed row are done when it is reported. With b malformed rows of n,
    this takes about 2 b log2(n / b) more attempts.

    >>> def attempt(low, high):
    ...     if low <= 5 < high:
    ...         raise ValueError("five")
    ...     print("rows", low, "to", high)
    >>> bisect_rows(0, 8, attempt, lambda row, error: print(error, "is row", row))
    rows 0 to 4
    rows 4 to 5
    five is row 5
    rows 6 to 8
    """
    if low >= high:
        return
    try:
        attempt(low, high)
        return
    except PARSE_ERRORS as error:
        if high - low == 1:
            on_error(low, error if isinstance(error, ValueError) else ValueError(str(error)))
            return
    middle = (low + high) // 2
    bisect_rows(low, middle, attempt, on_error)
    bisect_rows(middle, high, attempt, on_error)


def errors_by_bisection(low: int, high: int, attempt: Callable[[int, int], object]) -> RowErrors:
    """Return the errors of rows, found by bisection, where there is no faster way."""
    errors: RowErrors = {}
    bisect_rows(low, high, attempt, lambda row, error: errors.update({row: str(error)}))
    return errors


def rows_without(errors: RowErrors, low: int, high: int) -> Array:
    """Return the rows from ``low`` to ``high`` (exclusive) without an error."""
    valid = np.ones(high - low, dtype=bool)
    valid[[row - low for row in errors]] = False
    return np.flatnonzero(valid) + low
