"""Every online system on one stream: speed and peak memory as ratios to FourierSGD; then AUC on a9a, with tuned steps.

PAIRLOOM_DATA=folder python benchmarks/systems.py [--toy]

Speed: one core, 123 columns, float32, batches of 512. Peak: largest allocation while learning, besides the rows.
AUC: one pass over each of five 80/20 splits; the step is the best of a grid on the last fifth of the training rows of
the first split, and learning starts anew.
"""

import argparse
import os
import tracemalloc
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

from pairloom import StabilityWarning
from pairloom.data import load_dataset
from pairloom.experiments.systems import BATCH, Line, batches, lines, stream
from pairloom.systems import OAM, OGD, OLP, OPAUC, SOLAM, SPAM, AllPairs, ExactAUC, FourierSGD

STEPS = [10.0**-k for k in np.arange(0.0, 4.1, 0.5)]


@dataclass(frozen=True)
class Task:
    """A system, the parameter that is tuned, and the AUC it should reach."""

    make: Any
    bar: float | None
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


def run(line: Line, n: int) -> tuple[float, int]:
    """Examples per second, and peak bytes."""
    X, y = stream(n)
    model = line.model
    for rows, labels in batches(X[: 4 * BATCH], y[: 4 * BATCH]):  # compiles, settles rules on data
        model.partial_fit(rows, labels, classes=[-1, 1])
    began, seen = perf_counter(), 0
    for rows, labels in batches(X, y):
        model.partial_fit(rows, labels)
        seen += len(labels)
        if perf_counter() - began > 3:
            break
    speed = seen / (perf_counter() - began)
    tracemalloc.start()
    model.fit(X[: 4 * BATCH], y[: 4 * BATCH])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return speed, peak


def speeds(n: int) -> Table:
    made = Table(title=f"{n:,} rows of 123 columns, one core; ratios to FourierSGD")
    made.add_column("system")
    for heading in ("cost", "examples/s", "ratio", "peak bytes", "ratio"):
        made.add_column(heading, justify="right")
    online = [line for line in lines() if line.model.card.scheme == "online" and line.model.card.memory == "bounded"]
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
    if "PAIRLOOM_DATA" not in os.environ:
        return None
    data = load_dataset("a9a")
    return data.X.astype(np.float32), data.y


def auc(task: Task, value: float, train: tuple[Any, Any], test: tuple[Any, Any]) -> float:
    model = task.make(**task.fixed, **{task.tuned: value}, random_state=0).fit(*train)
    return float(roc_auc_score(test[1] == model.classes_[1], model.decision_function(test[0])))


def accuracies(X: np.ndarray, y: np.ndarray, n_splits: int, n_values: int | None = None) -> Table:
    made = Table(title="AUC after one pass: mean over five splits, standard error")
    made.add_column("system")
    for heading in ("tuned", "AUC", "s.e.", "bar"):
        made.add_column(heading, justify="right")
    splits = list(KFold(n_splits, shuffle=True, random_state=0).split(X))
    for name, task in track(TASKS.items(), description="AUC", transient=True):
        train = splits[0][0]
        cut = len(train) * 4 // 5
        a, b = train[:cut], train[cut:]
        best = max(task.grid[:n_values], key=lambda value, t=task, a=a, b=b: auc(t, value, (X[a], y[a]), (X[b], y[b])))
        found = [auc(task, best, (X[a], y[a]), (X[b], y[b])) for a, b in splits]
        error = np.std(found, ddof=1) / np.sqrt(len(found))
        bar = "" if task.bar is None else f"{task.bar}"
        made.add_row(name, f"{task.tuned} = {best:.2g}", f"{np.mean(found):.4f}", f"{error:.4f}", bar)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--toy", action="store_true", help="a small run that only shows that the benchmark works")
    toy = parser.parse_args().toy
    console = Console(width=110)
    import warnings

    warnings.simplefilter("ignore", StabilityWarning)  # grids hold steps that are too long, on purpose
    with threadpool_limits(1):
        console.print(speeds(4 * BATCH if toy else 200 * BATCH))
        data = read(toy)
        if data is None:
            console.print("PAIRLOOM_DATA is not set: no AUC on a9a")
        else:
            console.print(accuracies(*data, *((2, 2) if toy else (5,))))


if __name__ == "__main__":
    main()
