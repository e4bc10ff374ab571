"""Limit BLAS to one thread while learning or scoring: more do not help small products, and slow down a busy machine.

The number of BLAS threads belongs to the process, not to a Python thread. The first thread to enter therefore sets it
to one, and the last to leave restores it.
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
    """A context manager in which BLAS uses one thread; it may be entered by several threads, and several times."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._libraries: list[Any] = []
        self._with_scipy: bool | None = None
        self._before: list[int] = []

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._find_libraries()
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

    def reset(self) -> None:
        """Start over in a forked child, which has none of the threads of its parent, nor their locks."""
        self._lock, self._inside = Lock(), 0

    def _find_libraries(self) -> None:
        """Find the libraries once, since this takes milliseconds, and again after SciPy has loaded its own."""
        with_scipy = "scipy.linalg" in sys.modules
        if with_scipy != self._with_scipy:
            self._with_scipy = with_scipy
            self._libraries = ThreadpoolController().select(user_api="blas").lib_controllers


def set_threads(library: Any, threads: int) -> None:
    """Set the number of threads of a library, regardless of which Python thread did so last.

    threadpoolctl lets only the thread that set a limit change it until it is cleared. Here the last thread to leave
    need not be the first that entered, and limits that others have set must remain changeable.
    """
    clear = getattr(library, "clear_controlling_thread", lambda force: None)
    clear(force=True)
    library.set_num_threads(threads)
    clear(force=True)


ONE_THREAD = OneThread()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=ONE_THREAD.reset)


def on_one_thread(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function so that BLAS uses one thread while it runs."""

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> T:
        with ONE_THREAD:
            return function(*args, **kwargs)

    return limited
