"""Bytes cut into records: whole lines, or rows of a CSV whose quoted values may span lines."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pairloom.base.typing import Array
from pairloom.data.readers.opening import BROKEN, Gate, InputError

MOST_BYTES = 1 << 23
"""A piece of a stream ends with the record that reaches this, or with so many records as were asked for."""

LONGEST = 1 << 26
"""Bytes of a record. A longer one is most often a quote that is never closed."""

EndsOf = Callable[[bytes, int], Array]


def line_ends(data: bytes, start: int) -> Array:
    """Where the lines of ``data`` from ``start`` on end, those that are whole."""
    return np.flatnonzero(np.frombuffer(data, np.uint8, offset=start) == 10) + start + 1


def row_ends(delimiter: str) -> EndsOf:
    """``line_ends`` of rows with quoted values: a quote that opens a value hides newlines until it is closed."""
    plain = rf"[^{delimiter}\r\n]*+"
    value = rf'(?:"[^"]*+(?:""[^"]*+)*+"{plain}|(?!"){plain})'
    pattern = re.compile(rf"{value}(?:{delimiter}{value})*+(?:\r?\n|\r(?=[^\n]))".encode())

    def ends(data: bytes, start: int) -> Array:
        returns = data.count(b"\r", start)
        if data.find(b'"', start) < 0 and (returns == 0 or returns == data.count(b"\r\n", start)):
            return line_ends(data, start)
        found, at = [], start
        while (match := pattern.match(data, at)) and match.end() > at:
            at = match.end()
            found.append(at)
        return np.array(found, np.int64)

    return ends


@dataclass(frozen=True)
class Records:
    """So many records of one source, as they came: record i is ``raw[starts[i]:ends[i]]``.

    ``line``: the number of the line at which ``raw`` begins. ``open_end``: the last record ends within quotes.
    """

    raw: bytes
    starts: Array
    ends: Array
    line: int
    open_end: bool = False

    def __len__(self) -> int:
        return len(self.starts)

    def record(self, i: int) -> bytes:
        """One record, with the end of its line."""
        return self.raw[self.starts[i] : self.ends[i]]

    def span(self, low: int, high: int) -> bytes:
        """Records from ``low`` to before ``high``, with blank lines between them."""
        return self.raw[self.starts[low] : self.ends[high - 1]]

    def line_of(self, i: int) -> int:
        """The number of the line at which a record begins, from 1 on."""
        return self.line + count_lines(self.raw[: self.starts[i]])

    def feed(self, digest: Any, low: int, high: int) -> None:
        """Update a digest with records, each byte of them and nothing else: so cuts do not matter."""
        if low < high and bool((self.ends[low : high - 1] == self.starts[low + 1 : high]).all()):
            digest.update(self.span(low, high))
        else:
            for i in range(low, high):
                digest.update(self.record(i))


def count_lines(raw: bytes) -> int:
    """Ends of lines: of Unix, Windows and of old Macs.

    >>> count_lines(b"a" + bytes([10]) + b"b" + bytes([13, 10]) + b"c" + bytes([13]))
    3
    """
    returns = raw.count(b"\r")
    return raw.count(b"\n") + (returns and returns - raw.count(b"\r\n"))


class Cutter:
    """Cuts a stream of bytes into pieces of ``Records``, by the bytes alone: not by when they came.

    Parameters
    ----------
    name : the source, for messages.
    stream : bytes.
    ends_of : where records end.
    comment : records that begin so are none; blank lines never are.
    """

    def __init__(self, name: str, stream: Any, ends_of: EndsOf, gate: Gate, comment: bytes = b"\n") -> None:
        self.name, self.stream, self.ends_of, self.gate, self.comment = name, stream, ends_of, gate, comment
        self.data, self.line, self.scanned, self.open_end = b"", 1, 0, False
        self.starts, self.ends = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.error: InputError | None = None
        self.at_end = False

    def pieces(self, most: int) -> Iterator[Records]:
        """All that is left, in pieces of at most so many records."""
        while (piece := self.piece(most)) is not None:
            yield piece

    def piece(self, most: int) -> Records | None:
        """The next records; None at the end, or the error that ended the stream, after all that came before it."""
        while (n := self._complete(most)) is None:
            self._read()
        if n:
            return self._cut(n)
        if self.error is not None:
            raise self.error
        return None

    def _complete(self, most: int) -> int | None:
        """How many records the next piece has; None while it takes more bytes to tell."""
        known = len(self.ends)
        full = int(np.searchsorted(self.ends, self._origin() + MOST_BYTES)) + 1
        n = min(most, full, known)
        return n if n == most or full <= known or self.at_end else None

    def _origin(self) -> int:
        return int(self.starts[0]) if len(self.starts) else 0

    def _read(self) -> None:
        try:
            block = self.gate.read(self.stream)
        except BROKEN as error:
            self.error = InputError(f"{self.name}: the file is damaged or cut off: {error}")
            block = b""
        self.data += block
        if block:
            self._take(self.ends_of(self.data, self.scanned))
            if len(self.data) - self.scanned <= LONGEST:
                return
            line = self.line + count_lines(self.data[: self.scanned])
            self.error = InputError(
                f"{self.name}:{line}: a row of more than {LONGEST >> 20} MB: is a quote not closed?"
            )
        self.at_end = True
        if self.error is None and not self.gate.closed and self.scanned < len(self.data):
            self.data += b"\n"
            self._take(self.ends_of(self.data, self.scanned))
            self.open_end = self.scanned < len(self.data)
            self._take(np.array([len(self.data)] if self.open_end else [], np.int64))

    def _take(self, ends: Array) -> None:
        """Ends of more records; blank lines and comments are left out."""
        if len(ends) == 0:
            return
        starts = np.append(self.scanned, ends[:-1])
        self.scanned = int(ends[-1])
        bytes_ = np.frombuffer(self.data, np.uint8)
        first = bytes_[starts]
        kept = (first != 10) & (first != 13) & (first != self.comment[0])
        self.starts, self.ends = np.append(self.starts, starts[kept]), np.append(self.ends, ends[kept])

    def _cut(self, n: int) -> Records:
        end = int(self.ends[n - 1])
        last = self.open_end and n == len(self.ends)
        made = Records(self.data[:end], self.starts[:n], self.ends[:n], self.line, last)
        self.line += count_lines(made.raw)
        self.data, self.scanned = self.data[end:], self.scanned - end
        self.starts, self.ends = self.starts[n:] - end, self.ends[n:] - end
        return made
