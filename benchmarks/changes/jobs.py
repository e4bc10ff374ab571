"""Run many measurements, each on one core."""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import track
from threadpoolctl import threadpool_limits


def on_one_core(function: Callable[..., Any], *args: Any) -> Any:
    """Run a function without warnings and with one BLAS thread."""
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        return function(*args)


def done(function: Callable[..., Any], jobs: list[tuple[Any, ...]], cores: int, title: str) -> Iterator[Any]:
    """Yield ``function(*job)`` for each job, in order, with a progress bar."""
    found = Parallel(cores, return_as="generator")(delayed(on_one_core)(function, *job) for job in jobs)
    yield from track(found, title, total=len(jobs), console=Console(stderr=True))
