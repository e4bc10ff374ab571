"""LIBSVM: a label, then `column:value` of what is not 0, line by line."""

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from pairloom.base.typing import Array
from pairloom.data.readers.kinds import Kinds
from pairloom.data.readers.opening import BROKEN, Gate, InputError, is_regular, opened
from pairloom.data.readers.records import Cutter, Records, line_ends
from pairloom.data.readers.sifting import Faults, Sifted, faults_by_halves, others

UNDERSCORE = re.compile(rb"^[^#\n]*_", re.M)
"""In a row, not in a comment: Python's own numbers may have them."""

DENSE = 1024
"""Columns up to which rows are arrays; beyond, CSR."""

MOST = 1 << 24
"""The highest column that is believed where nobody says how many there are: one slip is not to ask for all memory."""

NUMBER = rb"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
PLAIN = re.compile(rb"%s((?: \d+:%s)*)[ \t]*(?:#.*)?\r?\n?" % (NUMBER, NUMBER))
"""A row that is surely one, if its columns rise."""


class LibsvmReader:
    """A LIBSVM file: columns have numbers, from 1 on, and no names.

    ``width``: how many there are. None: the highest of a file, which is looked through before; of a pipe, the highest
    of the first piece; in either case those up to ``MOST``.
    """

    names: list[str] | None = None

    def __init__(self, name: str, path: str, stream: Any, gate: Gate, most: int, width: int | None) -> None:
        self.name, self.most = name, most
        self.cutter = Cutter(name, stream, line_ends, gate, comment=b"#")
        self.first = self.cutter.piece(most)
        if width is None and self.first is not None:
            width = widest_in(path) if is_regular(path) else widest(self.first)
        self.width = width or 1

    def pieces(self) -> Iterator["LibsvmPiece"]:
        """The rows, piece by piece."""
        records = self.first
        while records is not None:
            yield LibsvmPiece(self.name, records, self.width)
            records = self.cutter.piece(self.most)


def highest(line: bytes) -> int:
    """The highest column of a line: the last one, since they rise; 1 if it has none.

    >>> highest(b"-1 3:0.5 17:2 # a comment")
    17
    """
    column, colon, _ = line.partition(b"#")[0].rstrip().rpartition(b" ")[2].partition(b":")
    return int(column[:20]) if colon and column.isdigit() else 1


def widest(records: Records) -> int:
    """The highest column of some rows, of those that are believed."""
    found = (highest(records.record(i)) for i in range(len(records)))
    return max((column for column in found if column <= MOST), default=1)


def widest_in(path: str) -> int:
    """The highest column of a file."""
    try:
        with opened(path, Gate()) as stream:
            return max(map(widest, Cutter(path, stream, line_ends, Gate(), b"#").pieces(10_000)), default=1)
    except (InputError, *BROKEN):  # whoever reads it will say so, where it is
        return 1


@dataclass(frozen=True)
class LibsvmPiece:
    """So many rows."""

    name: str
    records: Records
    width: int
    header: ClassVar[bytes] = b""
    columns: ClassVar[bytes] = b""

    def __len__(self) -> int:
        return len(self.records)

    def infer(self, names: list[str]) -> Kinds:
        """Nothing: all columns are numbers."""
        return {}

    def rows(self, low: int, high: int, width: int) -> tuple[Any, Array]:
        """Rows from ``low`` to before ``high``, an array or CSR, and their labels; ValueError if one cannot be read."""
        from sklearn.datasets import load_svmlight_file

        lines = self.records.span(low, high)
        if UNDERSCORE.search(lines):
            raise ValueError("no LIBSVM row: a number has no underscores")
        try:
            X, y = load_svmlight_file(io.BytesIO(lines), n_features=width, zero_based=False)
        except (ValueError, OverflowError) as error:
            beyond = highest(lines)
            if high - low == 1 and beyond > width:
                advice = "at the start, --width says how many"
                advice += f"; without it at most {MOST:,} are taken" if beyond > MOST else ""
                raise ValueError(f"column {beyond} is beyond the {width} that the model has; {advice}") from None
            raise ValueError(f"no LIBSVM row: {error}") from None
        if len(y) != high - low:
            raise ValueError("no LIBSVM row")
        if (np.abs(y) >= 2**53).any():
            raise ValueError("no LIBSVM row: a label of 2^53 or more cannot be distinguished from the next one")
        return (X.toarray() if width <= DENSE else X), y

    def sift_rows(self, low: int, high: int, width: int) -> Sifted:
        """The rows that can be read and their labels, and what is wrong with the others."""
        faults: Faults = {}
        for i in range(low, high):
            if not self._is_plain(self.records.record(i), width):
                faults |= faults_by_halves(i, i + 1, lambda a, b: self.rows(a, b, width))
        kept = others(low, high, faults)
        if not len(kept):
            return Sifted(None, kept, faults)
        lines = [self.records.record(i) for i in kept.tolist()]
        ends = np.cumsum([len(line) for line in lines])
        records = Records(b"".join(lines), np.append(0, ends[:-1]), ends, self.records.line)
        return Sifted(replace(self, records=records).rows(0, len(kept), width), kept, faults)

    @staticmethod
    def _is_plain(line: bytes, width: int) -> bool:
        """Whether a line is a row at first sight."""
        match = PLAIN.fullmatch(line)
        if match is None:
            return False
        columns = [int(pair.partition(b":")[0][:20]) for pair in match[1].split()]
        return all(map(int.__lt__, [0, *columns], [*columns, width + 1]))
