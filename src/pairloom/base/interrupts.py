"""Signals while a model learns: their handlers run between pieces of the work, never in the middle of one.

Python runs the handler of a signal between any two instructions of the main thread, and most handlers raise: that of
Ctrl-C raises KeyboardInterrupt. Half of a row would then be learned.
"""

import signal
from collections.abc import Iterator
from threading import current_thread, main_thread
from time import perf_counter
from types import FrameType
from typing import Any, Self

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGALRM") if hasattr(signal, name)]

SHORT, LONG = 0.05, 0.2
"""Seconds: pieces that take less become longer, those that take more shorter."""

ROWS = 256
"""Of the first piece. Pieces end at multiples of it, where blocks of rows end as well."""


class Unbroken:
    """A context in which the handlers of signals wait for the end of a piece of work.

    Only handlers written in Python wait, and only in the main thread: no others can raise. One that does not raise
    changes nothing; the work goes on.

    >>> rows = []
    >>> with Unbroken() as work:
    ...     for piece in work.pieces(0, 600):
    ...         rows.append((piece.start, piece.stop))
    >>> rows[0], rows[-1][1]
    ((0, 256), 600)
    """

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._caught: list[tuple[int, FrameType | None]] = []

    def __enter__(self) -> Self:
        self._hold()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._release()
        finally:
            self._handle()

    def pieces(self, start: int, n: int) -> Iterator[slice]:
        """Slices of ``n`` rows that come after row ``start``, each of them about a tenth of a second long.

        Handlers that wait run after each.
        """
        at, size = 0, ROWS
        while at < n:
            end = n if n - at <= size else at + size - (start + at) % min(size, ROWS)
            began = perf_counter()
            yield slice(at, end)
            seconds = perf_counter() - began
            at, size = end, 2 * size if seconds < SHORT else max(1, size // 2) if seconds > LONG else size
            if self._caught and at < n:
                self._release()
                self._handle()
                self._hold()

    def _hold(self) -> None:
        if current_thread() is not main_thread():
            return
        try:
            for number in SIGNALS:
                handler = signal.getsignal(number)
                if callable(handler):
                    self._before[number] = handler
                    signal.signal(number, self._catch)
        except BaseException:  # of a signal that was not held yet
            self._release()
            raise

    def _release(self) -> None:
        held, self._before = self._before, {}
        try:
            for number, handler in held.items():
                signal.signal(number, handler)
        except BaseException:  # of a signal that is held no longer: nor may the others be
            for number, handler in held.items():
                signal.signal(number, handler)
            raise

    def _handle(self) -> None:
        while self._caught:
            number, frame = self._caught.pop(0)
            handler = signal.getsignal(number)
            if callable(handler):
                handler(number, frame)
            else:
                signal.raise_signal(number)

    def _catch(self, number: int, frame: FrameType | None) -> None:
        self._caught.append((number, frame))
