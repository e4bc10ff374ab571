"""Systems on exact kernels: AUC and time on real data, one shuffled 80/20 split, one core.

PAIRLOOM_DATA=folder python benchmarks/kernel_systems.py [--toy]

Settings are the best of a small grid on the last fifth of the training part; models are then trained on all of it.
The speed of KOIL is that of 100 + 100 supports and 22 columns, in batches of 512.
"""

from dataclasses import dataclass, field
from itertools import product
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from common.script import has_data, make_parser, make_table
from common.yardstick import BATCH, stream
from pairloom.data import load_dataset
from pairloom.systems import KOIL, OPERA, ProjectronPP, SparseKernelAUC


@dataclass(frozen=True)
class Task:
    """A system on a data set, its tuned parameters and its target AUC; ``rows``: training rows, if not all."""

    name: str
    data: str
    make: Any
    grid: dict[str, list[Any]]
    fixed: dict[str, Any] = field(default_factory=dict)
    target: float | None = None
    rows: int | None = None


KOIL_GRID = {"gamma": [0.25, 1.0], "C": [32.0, 512.0], "eta": [2.0**-12, 2.0**-8]}
TASKS = [
    Task("KOIL-RS++", "ijcnn1", KOIL, KOIL_GRID, {}, 0.91),
    Task("KOIL-FIFO++", "ijcnn1", KOIL, KOIL_GRID, {"policy": "fifo"}),
    Task("ProjectronPP", "ijcnn1", ProjectronPP, {"gamma": [0.25, 1.0]}),
    Task("SparseKernelAUC", "usps", SparseKernelAUC, {"gamma": ["paper", "median"]}, {}, 0.97),
    Task("OPERA", "usps", OPERA, {"eta": [0.5, 2.0]}, {"gamma": "median"}, None, 4000),
]


def read(name: str, toy: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return shuffled rows, and labels -1 and 1."""
    if toy:
        X, y = load_breast_cancer(return_X_y=True)
        X, y = (X - X.mean(axis=0)) / X.std(axis=0), y
    else:
        data = load_dataset(name)
        X, y = data.X, data.y
    order = np.random.default_rng(0).permutation(len(y))
    return np.asarray(X[order], dtype=np.float32), np.where(y[order] > 0, 1, -1)


def auc(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    return float(roc_auc_score(y, model.decision_function(X)))


def run(task: Task, toy: bool) -> list[str]:
    X, y = read(task.data, toy)
    cut = len(y) * 4 // 5
    train = slice(0, min(cut, task.rows or cut))
    first, last = slice(0, train.stop * 4 // 5), slice(train.stop * 4 // 5, train.stop)

    def fitted(values: tuple[Any, ...], rows: slice, seed: int = 0) -> Any:
        settings = {**task.fixed, **dict(zip(task.grid, values, strict=True))}
        return task.make(**settings, random_state=seed).fit(X[rows], y[rows])

    best = max(product(*task.grid.values()), key=lambda values: auc(fitted(values, first), X[last], y[last]))
    began = perf_counter()
    model = fitted(best, train)
    seconds = perf_counter() - began
    aucs = [auc(model, X[cut:], y[cut:])] + [auc(fitted(best, train, seed), X[cut:], y[cut:]) for seed in (1, 2)]
    settings = ", ".join(f"{key} = {value:.3g}" if value == value and not isinstance(value, str) else f"{key} = {value}"
                         for key, value in zip(task.grid, best, strict=True))  # fmt: skip
    target = "" if task.target is None else f"{task.target}"
    spread = f"{min(aucs):.4f} to {max(aucs):.4f}"
    return [
        task.name,
        task.data,
        f"{train.stop:,}",
        settings,
        spread,
        target,
        f"{seconds:.1f}",
        f"{train.stop / seconds:,.0f}",
    ]


def accuracies(tasks: list[Task], toy: bool) -> Table:
    text, numbers = ["system", "data", "rows", "settings"], ["test AUC", "target", "seconds", "rows/s"]
    made = make_table("Three seeds, one split", text, numbers)
    for task in track(tasks, description="AUC", transient=True):
        made.add_row(*run(task, toy))
    return made


def koil_speed(n: int) -> str:
    X, y = stream(n)
    model = KOIL(random_state=0).fit(X[:1024], y[:1024])
    began = perf_counter()
    for start in range(0, n, BATCH):
        model.partial_fit(X[start : start + BATCH], y[start : start + BATCH])
    return f"KOIL, 100 + 100 supports, 22 columns: {n / (perf_counter() - began):,.0f} examples per second"


def sparse_kernel_seconds(n: int) -> str:
    X, y = stream(n, 50)
    SparseKernelAUC(random_state=0, max_support=5).fit(X[:500], y[:500])
    began = perf_counter()
    SparseKernelAUC(random_state=0, tol=0.0).fit(X, y)
    return f"SparseKernelAUC, {n:,} rows, 50 columns, 200 supports: {perf_counter() - began:.1f} seconds"


def main() -> None:
    toy = make_parser(__doc__).parse_args().toy
    console = Console(width=130)
    with threadpool_limits(1):
        console.print(koil_speed(2048 if toy else 102_400))
        console.print(sparse_kernel_seconds(600 if toy else 10_000))
        if toy or has_data():
            console.print(accuracies(TASKS, toy))
        else:
            console.print("PAIRLOOM_DATA is not set: no AUC on real data")


if __name__ == "__main__":
    main()
