"""Every online system: speed and peak memory as ratios to FourierSGD, and AUC on a9a with tuned steps.

PAIRLOOM_DATA=folder python benchmarks/systems.py [--toy]

Speed: one core, 123 columns, float32, batches of 512. Peak: largest allocation while learning, without the rows.
AUC: one pass over each of five 80/20 splits; the step is the best of a grid on the last fifth of the training rows of
the first split.
"""

import tracemalloc
import warnings
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from common.script import has_data, make_parser, make_table
from pairloom.cli.systems import BATCH_ROWS, System, all_systems, batches, stream
from pairloom.data import load_dataset
from pairloom.stream import StabilityWarning
from pairloom.systems import OAM, OGD, OLP, OPAUC, SOLAM, SPAM, AllPairs, ExactAUC, FourierSGD

STEPS = [10.0**-k for k in np.arange(0.0, 4.1, 0.5)]


@dataclass(frozen=True)
class Task:
    """A system, its tuned parameter and its target AUC."""

    make: Any
    target: float | None
    fixed: dict[str, Any] = field(default_factory=dict)
    tuned: str = "eta"
    grid: list[float] = field(default_factory=lambda: STEPS)


TASKS = {
    "ExactAUC": Task(ExactAUC, 0.899, tuned="alpha", grid=[1e-4, 1e-3, 1e-2]),
    "OPAUC": Task(OPAUC, 0.895, {"average": "poly"}),
    "OPAUC, rank 50": Task(OPAUC, None, {"rank": 50, "average": "poly"}),
    "SPAM-L2": Task(SPAM, 0.890),
    "SPAM-NET": Task(SPAM, 0.890, {"l1": 1e-5}),
    "SOLAM": Task(SOLAM, 0.880, {"radius": 1.0}),
    "OGD, previous": Task(OGD, 0.885),
    "OGD, opposite": Task(OGD, 0.885, {"partner": "opposite"}),
    "OLP": Task(OLP, 0.885),
    "OAM, sequential": Task(OAM, 0.885, {"average": "mean"}, "C", [10.0**-k for k in range(0, 11)]),
    "OAM, gradient": Task(OAM, 0.885, {"update": "gradient", "average": "mean"}, "C", [10.0**-k for k in range(0, 11)]),
    "AllPairs": Task(AllPairs, None),
    "FourierSGD, linear": Task(FourierSGD, None, {"kernel": "linear"}),
}


def run(line: System, n: int) -> tuple[float, int]:
    """Return the examples per second and the peak in bytes."""
    X, y = stream(n)
    model = line.model
    for rows, labels in batches(
        X[: 4 * BATCH_ROWS], y[: 4 * BATCH_ROWS]
    ):  # compiles, and fixes data-dependent settings
        model.partial_fit(rows, labels, classes=[-1, 1])
    began, seen = perf_counter(), 0
    for rows, labels in batches(X, y):
        model.partial_fit(rows, labels)
        seen += len(labels)
        if perf_counter() - began > 3:
            break
    speed = seen / (perf_counter() - began)
    tracemalloc.start()
    model.fit(X[: 4 * BATCH_ROWS], y[: 4 * BATCH_ROWS])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return speed, peak


def speeds(n: int) -> Table:
    title = f"{n:,} rows of 123 columns, one core; ratios to FourierSGD"
    made = make_table(title, ["system"], ["cost", "examples/s", "ratio", "peak bytes", "ratio"])
    online = [
        line for line in all_systems() if line.model.card.scheme == "online" and line.model.card.memory == "bounded"
    ]
    measured = {line.name: (line, *run(line, n)) for line in track(online, description="speed", transient=True)}
    _, base, base_peak = measured["FourierSGD"]
    for name, (line, speed, peak) in measured.items():
        made.add_row(
            name, f"O({line.model.card.time})", f"{speed:,.0f}", f"{speed / base:.2f}", f"{peak:,}",
            f"{peak / base_peak:.2f}",
        )  # fmt: skip
    return made


def read(toy: bool) -> tuple[np.ndarray, np.ndarray] | None:
    if toy:
        X, y = load_breast_cancer(return_X_y=True)
        return ((X - X.mean(axis=0)) / X.std(axis=0) / 5).astype(np.float32), y
    if not has_data():
        return None
    data = load_dataset("a9a")
    return data.X.astype(np.float32), data.y


def auc(task: Task, value: float, train: tuple[Any, Any], test: tuple[Any, Any]) -> float:
    model = task.make(**task.fixed, **{task.tuned: value}, random_state=0).fit(*train)
    return float(roc_auc_score(test[1] == model.classes_[1], model.decision_function(test[0])))


def accuracies(X: np.ndarray, y: np.ndarray, n_splits: int, n_values: int | None = None) -> Table:
    title = "AUC after one pass: mean over five splits, standard error"
    made = make_table(title, ["system"], ["tuned", "AUC", "s.e.", "target"])
    splits = list(KFold(n_splits, shuffle=True, random_state=0).split(X))
    for name, task in track(TASKS.items(), description="AUC", transient=True):
        train = splits[0][0]
        cut = len(train) * 4 // 5
        a, b = train[:cut], train[cut:]
        best = max(task.grid[:n_values], key=lambda value, t=task, a=a, b=b: auc(t, value, (X[a], y[a]), (X[b], y[b])))
        found = [auc(task, best, (X[a], y[a]), (X[b], y[b])) for a, b in splits]
        error = np.std(found, ddof=1) / np.sqrt(len(found))
        target = "" if task.target is None else f"{task.target}"
        made.add_row(name, f"{task.tuned} = {best:.2g}", f"{np.mean(found):.4f}", f"{error:.4f}", target)
    return made


def main() -> None:
    toy = make_parser(__doc__).parse_args().toy
    console = Console(width=110)
    warnings.simplefilter("ignore", StabilityWarning)  # grids include steps that are too long
    with threadpool_limits(1):
        console.print(speeds(4 * BATCH_ROWS if toy else 200 * BATCH_ROWS))
        data = read(toy)
        if data is None:
            console.print("PAIRLOOM_DATA is not set: no AUC on a9a")
        else:
            console.print(accuracies(*data, *((2, 2) if toy else (5,))))


if __name__ == "__main__":
    main()
