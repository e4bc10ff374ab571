"""Independent tasks on several threads: compiled code and BLAS release the interpreter lock.

Results never depend on the number of threads.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from numbers import Integral
from typing import TypeVar

T = TypeVar("T")

POOL: ContextVar[ThreadPoolExecutor | None] = ContextVar("POOL", default=None)
"""The threads for ``run_all``; None: tasks run one after the other."""


@contextmanager
def several_threads(n_jobs: int | None) -> Iterator[None]:
    """Use ``n_jobs`` threads in ``run_all`` inside the block, counted as joblib counts: -1 is one per core."""
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(f"n_jobs must be a number of threads, -1 for one per core, or None; got {n_jobs!r}")
    if n_jobs == 1:
        yield
        return
    from joblib import effective_n_jobs

    n_threads = effective_n_jobs(n_jobs)
    if n_threads == 1:
        yield
        return
    with ThreadPoolExecutor(n_threads, "pairloom") as pool:
        token = POOL.set(pool)
        try:
            yield
        finally:
            POOL.reset(token)


def run_all(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """Return the results of independent tasks; the first task that fails raises its exception."""
    pool = POOL.get()
    if pool is None or len(tasks) < 2:
        return [task() for task in tasks]
    # A thread of its own has no context: without this one it would not know what np.errstate was set to.
    waiting = [pool.submit(copy_context().run, _alone, task) for task in tasks]
    return [one.result() for one in waiting]


def _alone(task: Callable[[], T]) -> T:
    """Run a task whose own tasks run one after the other: a pool that waits for itself would never end."""
    POOL.set(None)
    return task()
