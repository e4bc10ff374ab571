"""Signals while a model learns: handlers run between pieces of the work, never within one.

Python runs signal handlers between any two instructions of the main thread, and most raise an exception; the handler of
Ctrl-C raises KeyboardInterrupt. A row would then be learned only in part.
"""

import signal
from collections.abc import Iterator
from threading import current_thread, main_thread
from time import perf_counter
from types import FrameType
from typing import Any, Self

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGALRM") if hasattr(signal, name)]

MIN_PIECE_SECONDS, MAX_PIECE_SECONDS = 0.05, 0.2
"""The next piece is longer after one that took less, and shorter after one that took more."""

FIRST_PIECE_ROWS = 256
"""Pieces end at multiples of it, where blocks of rows end as well."""


class DeferredSignals:
    """A context manager that defers signal handlers to the end of a piece of work.

    Only handlers written in Python are deferred, and only in the main thread: no others can raise. After a handler that
    does not raise, the work continues.

    >>> rows = []
    >>> with DeferredSignals() as work:
    ...     for piece in work.pieces(0, 600):
    ...         rows.append((piece.start, piece.stop))
    >>> rows[0], rows[-1][1]
    ((0, 256), 600)
    """

    def __init__(self) -> None:
        self._handlers: dict[int, Any] = {}
        self._pending: list[tuple[int, FrameType | None]] = []

    def __enter__(self) -> Self:
        self._defer()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._restore()
        finally:
            self._run_pending()

    def pieces(self, start: int, n: int) -> Iterator[slice]:
        """Yield slices of the ``n`` rows after row ``start``, each about a tenth of a second long.

        Deferred handlers run after each slice.
        """
        at, size = 0, FIRST_PIECE_ROWS
        while at < n:
            end = n if n - at <= size else at + size - (start + at) % min(size, FIRST_PIECE_ROWS)
            began = perf_counter()
            yield slice(at, end)
            seconds, at = perf_counter() - began, end
            if seconds < MIN_PIECE_SECONDS:
                size *= 2
            elif seconds > MAX_PIECE_SECONDS:
                size = max(1, size // 2)
            if self._pending and at < n:
                self._restore()
                self._run_pending()
                self._defer()

    def _defer(self) -> None:
        if current_thread() is not main_thread():
            return
        try:
            for number in SIGNALS:
                handler = signal.getsignal(number)
                if callable(handler):
                    self._handlers[number] = handler
                    signal.signal(number, lambda *caught: self._pending.append(caught))
        except BaseException:  # raised by the handler of a signal that was not deferred yet
            self._restore()
            raise

    def _restore(self) -> None:
        handlers, self._handlers = self._handlers, {}
        try:
            for number, handler in handlers.items():
                signal.signal(number, handler)
        except BaseException:  # raised by a handler that was just restored: restore the others too
            for number, handler in handlers.items():
                signal.signal(number, handler)
            raise

    def _run_pending(self) -> None:
        while self._pending:
            number, frame = self._pending.pop(0)
            handler = signal.getsignal(number)
            if callable(handler):
                handler(number, frame)
            else:
                signal.raise_signal(number)
