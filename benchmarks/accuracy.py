"""AUC of FPOGD on real data: one pass, one shuffled 80/20 split, averaged output, 16 strata per class, width 1/median.

PAIRLOOM_DATA=folder python benchmarks/accuracy.py [--toy]

The step is the best of a grid on the last fifth of the training part; the model is then learned anew on all of it.
"""

import argparse
import lzma
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.datasets import load_breast_cancer, load_svmlight_file
from sklearn.metrics import roc_auc_score

from pairloom.systems import FPOGD

ETAS = {"square": [2.0**-k for k in range(1, 7)], "logistic": [2.0**-k for k in range(-2, 5)]}


@dataclass(frozen=True)
class Task:
    """One row of the table: a data set, D, and the AUC it should reach."""

    name: str
    files: tuple[str, ...]
    n_features: int
    cut: float
    n_components: int
    loss: str
    bar: float


TASKS = [
    Task("ijcnn1.train", ("ijcnn1.train.xz",), 22, 0, 1024, "square", 0.985),
    Task("usps, 0-4 against 5-9", ("usps.train.xz", "usps.test.xz"), 256, 5.5, 1024, "square", 0.985),
    Task("usps, 0-4 against 5-9", ("usps.train.xz", "usps.test.xz"), 256, 5.5, 2048, "square", 0.991),
    Task("a9a", ("a9a.xz",), 123, 0, 1024, "square", 0.895),
    Task("a9a", ("a9a.xz",), 123, 0, 1024, "logistic", 0.897),
]
TOY = [Task("breast cancer", (), 30, 0.5, 64, "square", 0.95)]


def read(task: Task) -> tuple[np.ndarray, np.ndarray]:
    """Shuffled rows and labels."""
    if not task.files:
        X, y = load_breast_cancer(return_X_y=True)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    else:
        folder = Path(os.environ["PAIRLOOM_DATA"])
        parts = []
        for file in task.files:
            with lzma.open(folder / file) as stream:
                parts.append(load_svmlight_file(stream, n_features=task.n_features, zero_based=False))
        X = np.vstack([part[0].toarray() for part in parts])
        y = np.concatenate([part[1] for part in parts])
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], (y > task.cut)[order]


def auc(task: Task, eta: float, X: np.ndarray, y: np.ndarray, split: int) -> float:
    """Learn the first rows, score the rest."""
    model = FPOGD(
        gamma="median", n_components=task.n_components, loss=task.loss, eta=eta, average="poly", random_state=0
    )
    model.fit(X[:split], y[:split])
    return float(roc_auc_score(y[split:], model.decision_function(X[split:])))


def row(task: Task) -> list[str]:
    X, y = read(task)
    n = int(0.8 * len(y))
    eta = max(ETAS[task.loss], key=lambda eta: auc(task, eta, X[:n], y[:n], int(0.8 * n)))
    start = time.perf_counter()
    reached = auc(task, eta, X, y, n)
    seconds = time.perf_counter() - start
    verdict = "yes" if reached >= task.bar else "NO"
    return [
        task.name, f"{len(y):,}", str(task.n_components), task.loss, f"{eta:g}",
        f"{reached:.4f}", f"{task.bar:.3f}", verdict, f"{seconds:.2f}",
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--toy", action="store_true", help="a small run on embedded data")
    toy = parser.parse_args().toy
    if not toy and "PAIRLOOM_DATA" not in os.environ:
        sys.exit("set PAIRLOOM_DATA to the folder with the LIBSVM files (a9a.xz, ijcnn1.train.xz, usps.train.xz, ...)")
    table = Table(title="FPOGD: one pass, 80/20, averaged, 16 strata per class, width 1/median, float32")
    for column in ("data", "rows", "D", "loss", "step", "test AUC", "bar", "reached", "seconds, fit + score"):
        table.add_column(column, justify="left" if column == "data" else "right")
    for task in track(TOY if toy else TASKS, description="data sets", console=Console(stderr=True)):
        table.add_row(*row(task))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
