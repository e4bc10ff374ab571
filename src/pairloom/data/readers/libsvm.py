"""LIBSVM: each line has a label, then `column:value` for each nonzero value."""

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from pairloom.base.typing import Array
from pairloom.columns.kinds import Kinds
from pairloom.data.readers.base import RowErrors, ValidRows, errors_by_bisection, rows_without
from pairloom.data.readers.opening import DAMAGED, FileError, Gate, is_regular, open_input
from pairloom.data.readers.records import Records, RecordSplitter, line_ends

UNDERSCORE = re.compile(rb"^[^#\n]*_", re.M)
"""An underscore outside comments: Python would accept it within numbers."""

MAX_DENSE_COLUMNS = 1024
"""With more columns, rows are CSR."""

MAX_INFERRED_COLUMNS = 1 << 24
"""Higher columns are treated as typos unless ``width`` is given: they would need too much memory."""

NUMBER = rb"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
VALID_ROW = re.compile(rb"%s((?: \d+:%s)*)[ \t]*(?:#.*)?\r?\n?" % (NUMBER, NUMBER))
"""A row in its usual form; it is valid if its columns are increasing."""


class LibsvmReader:
    """A LIBSVM file: columns are numbered from 1 and have no names.

    ``width``: the number of columns. None: the highest column of a file, which is scanned first; for a pipe, the
    highest of the first chunk.
    """

    names: list[str] | None = None

    def __init__(self, name: str, path: str, stream: Any, gate: Gate, chunk_rows: int, width: int | None) -> None:
        self.name, self.chunk_rows = name, chunk_rows
        self.splitter = RecordSplitter(name, stream, line_ends, gate, comment=b"#")
        self.first = self.splitter.next_chunk(chunk_rows)
        if width is None and self.first is not None:
            width = _scan_width(path) if is_regular(path) else _width_of(self.first)
        self.width = width or 1

    def chunks(self) -> Iterator["LibsvmChunk"]:
        if self.first is not None:
            for records in chain([self.first], self.splitter.chunks(self.chunk_rows)):
                yield LibsvmChunk(self.name, records, self.width)


def last_column(line: bytes) -> int:
    """Return the last column of a line, which is the highest; 1 if it has none.

    >>> last_column(b"-1 3:0.5 17:2 # a comment")
    17
    """
    column, colon, _ = line.partition(b"#")[0].rstrip().rpartition(b" ")[2].partition(b":")
    return int(column[:20]) if colon and column.isdigit() else 1


def _width_of(records: Records) -> int:
    found = (last_column(records.record(i)) for i in range(len(records)))
    return max((column for column in found if column <= MAX_INFERRED_COLUMNS), default=1)


def _scan_width(path: str) -> int:
    """Return the highest column index in a file."""
    try:
        with open_input(path, Gate()) as stream:
            return max(map(_width_of, RecordSplitter(path, stream, line_ends, Gate(), b"#").chunks(10_000)), default=1)
    except (FileError, *DAMAGED):  # reported with its position when the rows are read
        return 1


@dataclass(frozen=True)
class LibsvmChunk:
    """Consecutive rows."""

    name: str
    records: Records
    width: int
    header: ClassVar[bytes] = b""
    columns: ClassVar[bytes] = b""

    def __len__(self) -> int:
        return len(self.records)

    def infer(self, names: list[str]) -> Kinds:
        """Return nothing: all columns are numbers."""
        return {}

    def rows(self, low: int, high: int, width: int) -> tuple[Any, Array]:
        from sklearn.datasets import load_svmlight_file

        lines = self.records.span(low, high)
        if UNDERSCORE.search(lines):
            raise ValueError("invalid LIBSVM row: underscore in a number")
        try:
            X, y = load_svmlight_file(io.BytesIO(lines), n_features=width, zero_based=False)
        except (ValueError, OverflowError) as error:
            column = last_column(lines)
            if high - low == 1 and column > width:
                hint = "set --width at the start"
                if column > MAX_INFERRED_COLUMNS:
                    hint += f"; without it, columns above {MAX_INFERRED_COLUMNS:,} are errors"
                raise ValueError(f"column {column} exceeds the {width} columns of the model: {hint}") from None
            raise ValueError(f"invalid LIBSVM row: {error}") from None
        if len(y) != high - low:
            raise ValueError("invalid LIBSVM row")
        if (np.abs(y) >= 2**53).any():
            raise ValueError("invalid LIBSVM row: labels of 2^53 or more are not exact")
        return (X.toarray() if width <= MAX_DENSE_COLUMNS else X), y

    def valid_rows(self, low: int, high: int, width: int) -> ValidRows:
        errors: RowErrors = {}
        for i in range(low, high):
            if not _is_valid(self.records.record(i), width):
                errors |= errors_by_bisection(i, i + 1, lambda a, b: self.rows(a, b, width))
        kept = rows_without(errors, low, high)
        if not len(kept):
            return ValidRows(None, kept, errors)
        lines = [self.records.record(i) for i in kept.tolist()]
        ends = np.cumsum([len(line) for line in lines])
        records = Records(b"".join(lines), np.append(0, ends[:-1]), ends, self.records.line)
        return ValidRows(replace(self, records=records).rows(0, len(kept), width), kept, errors)


def _is_valid(line: bytes, width: int) -> bool:
    """Return whether a line is certainly a valid row; other lines must be parsed."""
    match = VALID_ROW.fullmatch(line)
    if match is None:
        return False
    columns = [int(pair.partition(b":")[0][:20]) for pair in match[1].split()]
    return all(map(int.__lt__, [0, *columns], [*columns, width + 1]))
