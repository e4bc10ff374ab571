"""BLAS on one thread while learning or scoring: small products gain nothing from more and lose much on a busy machine.

The number of threads is the process's, not a thread's. So it is counted who is inside: the first to come in sets it to
one, the last to go out sets it back.
"""

import os
import sys
from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import Any, ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
T = TypeVar("T")


class OneThread:
    """A context in which BLAS has one thread; threads may be in it at the same time, and in it twice."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._libraries: list[Any] = []
        self._with_scipy: bool | None = None
        self._before: list[int] = []

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._look()
                self._before = [library.get_num_threads() for library in self._libraries]
                for library in self._libraries:
                    set_threads(library, 1)
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                for library, threads in zip(self._libraries, self._before, strict=True):
                    set_threads(library, threads)

    def forget(self) -> None:
        """Nobody is inside."""
        self._lock, self._inside = Lock(), 0

    def _look(self) -> None:
        """Find the libraries, which takes milliseconds: once, and again when SciPy has brought its own."""
        with_scipy = "scipy.linalg" in sys.modules
        if with_scipy != self._with_scipy:
            self._with_scipy = with_scipy
            self._libraries = ThreadpoolController().select(user_api="blas").lib_controllers


def set_threads(library: Any, threads: int) -> None:
    """Set the threads of a library, whichever thread did so last.

    threadpoolctl lets one thread at a time do this, until it has cleared the way. Here the last to go out need not be
    the first that came in; and whoever had set a limit before can lift it afterwards.
    """
    clear = getattr(library, "clear_controlling_thread", lambda force: None)
    clear(force=True)
    library.set_num_threads(threads)
    clear(force=True)


ONE_THREAD = OneThread()

if hasattr(os, "register_at_fork"):
    # A child has none of its parent's threads: whoever was inside, or held the lock, is not there.
    os.register_at_fork(after_in_child=ONE_THREAD.forget)


def on_one_thread(function: Callable[P, T]) -> Callable[P, T]:
    """A function during which BLAS has one thread."""

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> T:
        with ONE_THREAD:
            return function(*args, **kwargs)

    return limited
