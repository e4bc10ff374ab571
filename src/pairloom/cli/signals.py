"""Ctrl-C and SIGTERM end a stream, not a chunk."""

import signal
from types import FrameType, TracebackType
from typing import Any, Self

from pairloom.cli.ending import INTERRUPTED, TERMINATED
from pairloom.data.readers import Gate

CODES = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED}


class _Woken(Exception):
    """A read that waited, and is not to wait any longer."""


class Stop(Gate):
    """A gate that a signal closes: the rows that have come are still learned. A second signal ends the process.

    ``code``: the exit code, once it was closed by a signal.
    """

    def __init__(self) -> None:
        self.code: int | None = None
        self.waiting = False

    def __enter__(self) -> Self:
        self.before = {number: signal.signal(number, self._close) for number in CODES}
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def read(self, stream: Any) -> bytes:
        self.waiting = True
        try:
            return super().read(stream)
        except _Woken:
            return b""
        finally:
            self.waiting = False

    def _close(self, number: int, frame: FrameType | None) -> None:
        self.closed, self.code = True, CODES[signal.Signals(number)]
        signal.signal(number, signal.SIG_DFL)
        if self.waiting:
            self.waiting = False
            raise _Woken
