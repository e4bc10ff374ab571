"""Stop a command on Ctrl-C and SIGTERM after the rows that were read."""

import signal
from types import FrameType, TracebackType
from typing import Any, Self

from pairloom.cli.errors import EXIT_INTERRUPTED, EXIT_TERMINATED
from pairloom.data.readers.opening import Gate

EXIT_CODES = {signal.SIGINT: EXIT_INTERRUPTED, signal.SIGTERM: EXIT_TERMINATED}


class _ReadInterrupted(Exception):
    """A blocking read was interrupted by a signal."""


class SignalGate(Gate):
    """A gate that a signal closes: rows that were read are still processed. A second signal ends the process.

    ``exit_code``: that of the signal; None without one.
    """

    def __init__(self) -> None:
        self.exit_code: int | None = None
        self.waiting = False

    def __enter__(self) -> Self:
        self.handlers = {number: signal.signal(number, self._close) for number in EXIT_CODES}
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for number, handler in self.handlers.items():
            signal.signal(number, handler)

    def read(self, stream: Any) -> bytes:
        self.waiting = True
        try:
            return super().read(stream)
        except _ReadInterrupted:
            return b""
        finally:
            self.waiting = False

    def _close(self, number: int, frame: FrameType | None) -> None:
        self.closed, self.exit_code = True, EXIT_CODES[signal.Signals(number)]
        signal.signal(number, signal.SIG_DFL)
        if self.waiting:
            self.waiting = False
            raise _ReadInterrupted
