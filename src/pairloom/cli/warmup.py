"""`pairloom warmup`: compile what most models need, so that the first ones on this machine need not wait."""

from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console

from pairloom.base.extras import import_extra
from pairloom.base.machine_code import FOLDER, logger
from pairloom.data import payments
from pairloom.estimators import AUCClassifier, BoostingClassifier
from pairloom.systems import FPOGD, ExactAUC

ROWS, SINGLE = 6_000, 20
"""Rows of the streams, and how many rows of each are scored and learned one by one."""


def numbers() -> tuple[Any, Any]:
    """Return an array and labels."""
    X = np.random.default_rng(0).normal(size=(ROWS, 8))
    return X, np.square(X[:, :3]).sum(axis=1) > 6


def columns() -> tuple[Any, Any]:
    """Return numbers, text, dates and missing values, and labels."""
    made, y = payments(ROWS, positive=0.05, change=0.6)
    return import_extra("pyarrow", "io", "The command warmup").table(made), y


def learn(model: Any, X: Any, y: Any) -> None:
    """Learn and score rows in all ways: a whole stream, chunks, single rows."""
    model.fit(X, y).predict_proba(X)
    for part in (slice(0, ROWS // 2), slice(ROWS // 2, ROWS)):
        model.partial_fit(X[part], y[part])
    for row, label in zip(X[:SINGLE] if isinstance(X, np.ndarray) else X[:SINGLE].to_pylist(), y, strict=False):
        model.score_one(row)
        model.learn_one(row, label)
    if hasattr(model, "frozen"):
        model.frozen().score_many(X)


STEPS: dict[str, Callable[[], None]] = {
    "AUCClassifier": lambda: learn(AUCClassifier(random_state=0), *numbers()),
    "AUCClassifier, mixed columns": lambda: learn(AUCClassifier(random_state=0), *columns()),
    "FPOGD": lambda: learn(FPOGD(random_state=0), *numbers()),
    "FPOGD, mixed columns": lambda: learn(
        FPOGD(scale="standard", gamma="median", drift="auto", random_state=0), *columns()
    ),
    "BoostingClassifier, mixed columns": lambda: learn(BoostingClassifier(drift="auto", random_state=0), *columns()),
    "ExactAUC, mixed columns": lambda: learn(ExactAUC(scale="standard", drift="auto", random_state=0), *columns()),
}


def run() -> None:
    """Learn small streams, and say where the machine code is; raise OSError if it cannot be kept."""
    if FOLDER is None:
        raise OSError("no folder for machine code is writable: set the environment variable NUMBA_CACHE_DIR to one")
    logger.disabled = True  # it would recommend this command
    console = Console(highlight=False)
    for name, step in STEPS.items():
        start = perf_counter()
        with console.status(f"Compiling for {name}"):
            step()
        console.print(f"{name}: {perf_counter() - start:.1f} s")
    console.print(f"Machine code: {FOLDER} ({size_of(FOLDER) / 1e6:.1f} MB)", soft_wrap=True)


def size_of(folder: Path) -> int:
    """Return the bytes of the files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
