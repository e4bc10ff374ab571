"""Lines of a pipe, each as soon as it is there, in bounded memory."""

from collections.abc import Iterator
from typing import Any

from pairloom.data.readers import Gate

LONGEST = 1 << 23
"""Bytes of a line. A longer one is thrown away up to its end, and known by its number alone."""


def lines_of(stream: Any, gate: Gate) -> Iterator[tuple[int, bytes | None]]:
    """Numbers, from 1 on, and lines; None in place of one that is too long. Blank lines are left out.

    A line that is not whole when the gate closes is left out too.
    """
    number, rest, long = 1, b"", False
    while block := gate.read(stream):
        *whole, last = block.split(b"\n")
        for line in whole:
            line, rest = rest + line, b""
            if long or len(line) > LONGEST:
                yield number, None
            elif line.strip():
                yield number, line
            number, long = number + 1, False
            if gate.closed:
                return
        rest += last
        if len(rest) > LONGEST:
            rest, long = b"", True
    if not gate.closed and (long or rest.strip()):
        yield number, None if long else rest
