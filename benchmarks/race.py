"""What AUCClassifier costs: along the stream, candidate by candidate, and what larger budgets gain.

PAIRLOOM_DATA=folder python benchmarks/race.py [--toy] [--figure]

covtype, columns in float32, one core, processor time, everything in one run. Beside it scikit-learn's RBFSampler and
SGDClassifier, in batches of 512, on standardised rows. --figure draws the standings into docs/race.png.
"""

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from contest.datasets import DATASETS
from pairloom import AUCClassifier, Forest, OppositeClass, StabilityWarning, Stream
from pairloom.race import Budget, Candidate, Portfolio

BATCH, WARM = 512, 2048
"""Rows of a call, and those by which the rules of a candidate alone are fixed."""

PHASES = (0, 512, 2_048, 4_096, 16_384, 20_000)
"""Rows at which something changes, and one after which nothing does."""

BUDGETS = ((20.0, 1024), (50.0, 1024), (100.0, 1024), (400.0, 2048))
"""Nominal microseconds and the most landmarks of the portfolio."""

Learn = Callable[[np.ndarray, np.ndarray], object]


def rows(toy: bool) -> tuple[np.ndarray, np.ndarray]:
    if toy:
        X = np.random.default_rng(0).normal(size=(4_000, 5))
        y = (np.square(X[:, :2]).sum(axis=1) > 4).astype(int)
    else:
        X, y = next(data for data in DATASETS if data.name == "covtype").read()
    return X.astype(np.float32), y


def seconds(learn: Learn, X: np.ndarray, y: np.ndarray) -> float:
    """Processor time to learn rows in batches."""
    start = time.process_time()
    for at in range(0, len(y), BATCH):
        learn(X[at : at + BATCH], y[at : at + BATCH])
    return time.process_time() - start


def scikit_learn(n_components: int, X: np.ndarray) -> tuple[Learn, Callable[[np.ndarray], np.ndarray]]:
    scaler = StandardScaler().fit(X[:20_000])
    sampler = RBFSampler(n_components=n_components, gamma=0.5 / X.shape[1], random_state=0).fit(X[:1])
    model = SGDClassifier(loss="log_loss", random_state=0)

    def mapped(part: np.ndarray) -> np.ndarray:
        return sampler.transform(scaler.transform(part))

    return (
        lambda part, y: model.partial_fit(mapped(part), y, classes=[0, 1]),
        lambda part: np.concatenate([model.decision_function(mapped(p)) for p in np.array_split(part, 100)]),
    )


def along_the_stream(X: np.ndarray, y: np.ndarray, split: int, size: int | None, figure: Path | None = None) -> Table:
    """Microseconds per row of each phase, and over all rows."""
    table = Table(title="microseconds per row, and how many times those of RBFSampler(1024) + SGD")
    for column in ("rows", "AUCClassifier", "RBFSampler(1024) + SGD", "ratio"):
        table.add_column(column, justify="right")
    model = AUCClassifier(random_state=0, n_components=size)
    if split > PHASES[-1]:
        AUCClassifier(random_state=0).fit(X[:20_000], y[:20_000])  # compiles
    learn, score = scikit_learn(1024, X)
    theirs = seconds(learn, X[:split], y[:split])
    base, total = theirs / split, 0.0
    phases = [row for row in PHASES if row < split]
    for start, end in zip(phases, (*phases[1:], split), strict=True):
        took = seconds(model.partial_fit, X[start:end], y[start:end])
        total += took
        micros = took / (end - start) * 1e6
        table.add_row(f"{start:,} to {end:,}", f"{micros:.1f}", f"{base * 1e6:.1f}", f"{micros / base / 1e6:.2f}")
    table.add_section()
    table.add_row("all", f"{total / split * 1e6:.1f}", f"{base * 1e6:.1f}", f"{total / theirs:.2f}")
    aucs = [roc_auc_score(y[split:], f(X[split:])) for f in (model.decision_function, score)]
    table.add_row("test AUC", *(f"{auc:.4f}" for auc in aucs), "")
    if figure is not None:
        model.plot_race()[0].figure.savefig(figure, dpi=150)
    table.caption = "in the end: " + "; ".join(model.mixture_)
    return table


def all_of(portfolio: Portfolio, d: int) -> list[Candidate]:
    """The candidates, and those with the larger maps to which they may go on."""
    small = portfolio.candidates(d)
    large = [replace(one, features=one.large) for one in small if one.large is not None]
    return [*small, *(replace(one, name=f"{one.name}, {one.features.n_outputs(d):,}") for one in large)]


def candidates(X: np.ndarray, y: np.ndarray, n: int, portfolio: Portfolio) -> Iterator[list[str]]:
    """Each candidate alone, with its best step or penalty: cost and gain."""
    d, signs = X.shape[1], np.where(y, 1, -1)
    for candidate in all_of(portfolio, d):
        stream = Stream(candidate.model(OppositeClass(), dtype="float32", seed=0))
        if candidate.refits:
            stream.start_with(stream.check(X[:WARM], signs[:WARM]))
        many = seconds(stream.partial_fit, X[:n], signs[:n])
        aucs = [roc_auc_score(y[n:], scores) for scores in stream.score(X[n:]).T]
        one = stream.only(int(np.argmax(aucs)))
        alone = seconds(one.partial_fit, X[:n], signs[:n])
        yield [
            candidate.name, f"{candidate.features.n_outputs(d):,}", str(len(aucs)), f"{max(aucs):.4f}",
            f"{many / n * 1e6:.1f}", f"{alone / n * 1e6:.1f}", f"{candidate.microseconds(d):.1f}",
            f"{candidate.nbytes(d, 2) / 1e6:.1f}",
        ]  # fmt: skip


def budgets(X: np.ndarray, y: np.ndarray, split: int) -> Iterator[list[str]]:
    """What a larger race gains."""
    for limit, size in BUDGETS:
        portfolio = Portfolio(large_landmarks=size)
        model = AUCClassifier(budget=Budget(microseconds=limit), portfolio=portfolio, random_state=0)
        model.partial_fit(X[:20_000], y[:20_000])
        took = seconds(model.partial_fit, X[20_000:split], y[20_000:split])
        auc = roc_auc_score(y[split:], model.decision_function(X[split:]))
        race: Any = model.stream_.model
        spent = sum(one.candidate.microseconds(X.shape[1]) for one in race.running(model.stream_.learned))
        yield [
            f"{limit:g}", f"{size:,}", f"{spent:.1f}", f"{took / (split - 20_000) * 1e6:.1f}", f"{auc:.4f}",
            f"{model.nbytes_ / 1e6:.1f}", "; ".join(model.mixture_),
        ]  # fmt: skip


def tabulate(title: str, columns: tuple[str, ...], lines: Iterator[list[str]], total: int) -> Table:
    table = Table(title=title)
    for k, column in enumerate(columns):
        table.add_column(column, justify="left" if k == 0 else "right")
    for line in track(lines, description=title.split(":")[0], total=total, console=Console(stderr=True)):
        table.add_row(*line)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--toy", action="store_true", help="a small run on made-up rows")
    parser.add_argument("--figure", action="store_true", help="draw docs/race.png")
    arguments = parser.parse_args()
    toy, figure = arguments.toy, Path("docs/race.png") if arguments.figure else None
    if not toy and "PAIRLOOM_DATA" not in os.environ:
        sys.exit("set PAIRLOOM_DATA to the folder with covtype.binary.xz")
    console = Console(width=150)
    X, y = rows(toy)
    forest = Forest(8, max_leaves=16, growth="renewed")
    small = Portfolio(forests=(forest,), kernels=(("wide", 1.0),), n_landmarks=16, large_landmarks=32)
    warnings.simplefilter("ignore", StabilityWarning)  # of a candidate's steps some are too long on purpose
    with threadpool_limits(1):
        split, size = (3_000, 64) if toy else (int(0.8 * len(y)), None)
        console.print(along_the_stream(X, y, split, size, figure))
        n, portfolio = (1_000, small) if toy else (20_000, Portfolio())
        names = ("candidate", "D", "models", "AUC", "all models, us", "one, us", "nominal, us", "MB")
        lines = candidates(X[: 2 * n], y[: 2 * n], n, portfolio)
        total = len(all_of(portfolio, X.shape[1]))
        console.print(tabulate(f"candidates: {n:,} rows, AUC on {n:,} more", names, lines, total))
        if not toy:
            names = ("budget, us", "landmarks", "nominal, us", "us after row 20,000", "test AUC", "MB", "mixture")
            console.print(tabulate("budgets", names, budgets(X, y, split), len(BUDGETS)))


if __name__ == "__main__":
    main()
