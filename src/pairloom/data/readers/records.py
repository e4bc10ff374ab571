"""Split bytes into records: lines, or rows of a CSV whose quoted values may span lines."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pairloom.base.typing import Array
from pairloom.data.readers.opening import DAMAGED, FileError, Gate

MAX_CHUNK_BYTES = 1 << 23
"""A chunk ends with the record that reaches this size, or with the requested number of records."""

MAX_RECORD_BYTES = 1 << 26
"""Maximum size of a record. A longer one is usually a quote that is never closed."""

FindEnds = Callable[[bytes, int], Array]


def line_ends(data: bytes, start: int) -> Array:
    """Return the ends of the complete lines of ``data`` from ``start`` on."""
    return np.flatnonzero(np.frombuffer(data, np.uint8, offset=start) == 10) + start + 1


def row_ends(delimiter: str) -> FindEnds:
    """Return ``line_ends`` for rows with quoted values: newlines within quotes do not end a row."""
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
    """Consecutive records of one source: record i is ``raw[starts[i]:ends[i]]``.

    ``line``: the line number at which ``raw`` begins. ``open_quote``: the last record ends within quotes.
    """

    raw: bytes
    starts: Array
    ends: Array
    line: int
    open_quote: bool = False

    def __len__(self) -> int:
        return len(self.starts)

    def record(self, i: int) -> bytes:
        """Return record i with its line end."""
        return self.raw[self.starts[i] : self.ends[i]]

    def span(self, low: int, high: int) -> bytes:
        """Return records ``low`` to ``high`` (exclusive), with blank lines between them."""
        return self.raw[self.starts[low] : self.ends[high - 1]]

    def line_of(self, i: int) -> int:
        """Return the line number (from 1) at which record i begins."""
        return self.line + count_lines(self.raw[: self.starts[i]])

    def feed(self, digest: Any, low: int, high: int) -> None:
        """Update a digest with the bytes of records only, so that it does not depend on the chunks."""
        if low < high and bool((self.ends[low : high - 1] == self.starts[low + 1 : high]).all()):
            digest.update(self.span(low, high))
        else:
            for i in range(low, high):
                digest.update(self.record(i))


def count_lines(raw: bytes) -> int:
    r"""Return the number of line ends: \n, \r\n or \r.

    >>> count_lines(b"a" + bytes([10]) + b"b" + bytes([13, 10]) + b"c" + bytes([13]))
    3
    """
    returns = raw.count(b"\r")
    return raw.count(b"\n") + (returns and returns - raw.count(b"\r\n"))


class RecordSplitter:
    """Splitter of a stream of bytes into chunks of ``Records``, independent of the blocks in which bytes arrive.

    Parameters
    ----------
    name : the source, for messages.
    stream : bytes.
    find_ends : returns the ends of records.
    gate : reads the bytes.
    comment : records that begin with it are skipped, as are blank lines.
    """

    def __init__(self, name: str, stream: Any, find_ends: FindEnds, gate: Gate, comment: bytes = b"\n") -> None:
        self.name, self.stream, self.find_ends, self.gate, self.comment = name, stream, find_ends, gate, comment
        self.data, self.line, self.scanned, self.open_quote = b"", 1, 0, False
        self.starts, self.ends = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.error: FileError | None = None
        self.at_end = False

    def chunks(self, n_rows: int) -> Iterator[Records]:
        """Yield the remaining records, at most ``n_rows`` at a time."""
        while (chunk := self.next_chunk(n_rows)) is not None:
            yield chunk

    def next_chunk(self, n_rows: int) -> Records | None:
        """Return the next records; at the end None, or raise the error that ended the stream."""
        while (n := self._chunk_size(n_rows)) is None:
            self._read()
        if n:
            return self._split(n)
        if self.error is not None:
            raise self.error
        return None

    def _chunk_size(self, n_rows: int) -> int | None:
        """Return the number of records of the next chunk; None if this depends on bytes that have not been read."""
        known = len(self.ends)
        origin = int(self.starts[0]) if known else 0
        full = int(np.searchsorted(self.ends, origin + MAX_CHUNK_BYTES)) + 1
        n = min(n_rows, full, known)
        return n if n == n_rows or full <= known or self.at_end else None

    def _read(self) -> None:
        try:
            block = self.gate.read(self.stream)
        except DAMAGED as error:
            self.error = FileError(f"{self.name}: the file is damaged or truncated: {error}")
            block = b""
        self.data += block
        if block:
            self._add(self.find_ends(self.data, self.scanned))
            if len(self.data) - self.scanned <= MAX_RECORD_BYTES:
                return
            line = self.line + count_lines(self.data[: self.scanned])
            self.error = FileError(
                f"{self.name}:{line}: the row is longer than {MAX_RECORD_BYTES >> 20} MB; check for a missing quote"
            )
        self.at_end = True
        if self.error is None and not self.gate.closed and self.scanned < len(self.data):
            self.data += b"\n"
            self._add(self.find_ends(self.data, self.scanned))
            self.open_quote = self.scanned < len(self.data)
            self._add(np.array([len(self.data)] if self.open_quote else [], np.int64))

    def _add(self, ends: Array) -> None:
        """Add records by their ends, without blank lines and comments."""
        if len(ends) == 0:
            return
        starts = np.append(self.scanned, ends[:-1])
        self.scanned = int(ends[-1])
        first = np.frombuffer(self.data, np.uint8)[starts]
        kept = (first != 10) & (first != 13) & (first != self.comment[0])
        self.starts, self.ends = np.append(self.starts, starts[kept]), np.append(self.ends, ends[kept])

    def _split(self, n: int) -> Records:
        """Split off the first n records."""
        end = int(self.ends[n - 1])
        open_quote = self.open_quote and n == len(self.ends)
        records = Records(self.data[:end], self.starts[:n], self.ends[:n], self.line, open_quote)
        self.line += count_lines(records.raw)
        self.data, self.scanned = self.data[end:], self.scanned - end
        self.starts, self.ends = self.starts[n:] - end, self.ends[n:] - end
        return records
