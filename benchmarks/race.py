"""Cost of AUCClassifier along the stream and by candidate, and the gain of larger budgets.

PAIRLOOM_DATA=folder python benchmarks/race.py [--toy] [--figure]

covtype, float32, one core, CPU time, everything in one run, compared with scikit-learn's RBFSampler and SGDClassifier
in batches of 512 on standardised rows. --figure draws docs/race.png.
"""

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

from common.script import DOCS, make_parser, make_table, require_data
from common.yardstick import Learn, seconds
from contest.datasets import DATASETS
from pairloom import AUCClassifier, Stream
from pairloom.features import Forest
from pairloom.pairs import OppositeClass
from pairloom.race import Budget, Candidate, Portfolio
from pairloom.stream import StabilityWarning

WARM_ROWS = 2048
"""Rows from which the data-dependent settings of a single candidate are fixed."""

PHASES = (0, 512, 2_048, 4_096, 16_384, 20_000)
"""Rows at which the cost changes, and one after which it does not."""

BUDGETS = ((20.0, 1024), (50.0, 1024), (100.0, 1024), (400.0, 2048))
"""Nominal microseconds, and the number of landmarks of the enlarged kernel."""


def rows(toy: bool) -> tuple[np.ndarray, np.ndarray]:
    if toy:
        X = np.random.default_rng(0).normal(size=(4_000, 5))
        y = (np.square(X[:, :2]).sum(axis=1) > 4).astype(int)
    else:
        X, y = next(data for data in DATASETS if data.name == "covtype").read()
    return X.astype(np.float32), y


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
    """Measure the microseconds per row of each phase, and over all rows."""
    title = "microseconds per row, and the ratio to RBFSampler(1024) + SGD"
    table = make_table(title, [], ["rows", "AUCClassifier", "RBFSampler(1024) + SGD", "ratio"])
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
    table.caption = "mixture at the end: " + "; ".join(model.mixture_)
    return table


def all_of(portfolio: Portfolio, d: int) -> list[Candidate]:
    """Return the candidates, and their enlarged versions."""
    small = portfolio.candidates(d)
    large = [replace(one, features=one.large) for one in small if one.large is not None]
    return [*small, *(replace(one, name=f"{one.name}, {one.features.n_outputs(d):,}") for one in large)]


def candidates(X: np.ndarray, y: np.ndarray, n: int, portfolio: Portfolio) -> Iterator[list[str]]:
    """Measure each candidate alone, and its best step size or penalty."""
    d, signs = X.shape[1], np.where(y, 1, -1)
    for candidate in all_of(portfolio, d):
        stream = Stream(candidate.model(OppositeClass(), dtype="float32", seed=0))
        if candidate.refits:
            stream.start_with(stream.check(X[:WARM_ROWS], signs[:WARM_ROWS]))
        many = seconds(stream.partial_fit, X[:n], signs[:n])
        aucs = [roc_auc_score(y[n:], scores) for scores in stream.score(X[n:]).reshape(len(X) - n, -1).T]
        one = stream.only(int(np.argmax(aucs)))
        alone = seconds(one.partial_fit, X[:n], signs[:n])
        yield [
            candidate.name, f"{candidate.features.n_outputs(d):,}", str(len(aucs)), f"{max(aucs):.4f}",
            f"{many / n * 1e6:.1f}", f"{alone / n * 1e6:.1f}", f"{candidate.microseconds(d):.1f}",
            f"{candidate.nbytes(d, 2) / 1e6:.1f}",
        ]  # fmt: skip


def budgets(X: np.ndarray, y: np.ndarray, split: int) -> Iterator[list[str]]:
    """Measure races with different budgets."""
    for limit, size in BUDGETS:
        portfolio = Portfolio(large_landmarks=size)
        model = AUCClassifier(budget=Budget(microseconds=limit), portfolio=portfolio, random_state=0)
        model.partial_fit(X[:20_000], y[:20_000])
        took = seconds(model.partial_fit, X[20_000:split], y[20_000:split])
        auc = roc_auc_score(y[split:], model.decision_function(X[split:]))
        race: Any = model.stream_.model
        spent = sum(one.candidate.microseconds(X.shape[1]) for one in race.entrants(model.stream_.learned))
        yield [
            f"{limit:g}", f"{size:,}", f"{spent:.1f}", f"{took / (split - 20_000) * 1e6:.1f}", f"{auc:.4f}",
            f"{model.nbytes_ / 1e6:.1f}", "; ".join(model.mixture_),
        ]  # fmt: skip


def tabulate(title: str, columns: tuple[str, ...], lines: Iterator[list[str]], total: int) -> Table:
    table = make_table(title, columns[:1], columns[1:])
    for line in track(lines, description=title.split(":")[0], total=total, console=Console(stderr=True)):
        table.add_row(*line)
    return table


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--figure", action="store_true", help="draw docs/race.png")
    arguments = parser.parse_args()
    toy, figure = arguments.toy, DOCS / "race.png" if arguments.figure else None
    if not toy:
        require_data("covtype.binary.xz")
    console = Console(width=150)
    X, y = rows(toy)
    forest = Forest(8, max_leaves=16, growth="renewed")
    small = Portfolio(forests=(forest,), kernels=(("wide", 1.0),), n_landmarks=16, large_landmarks=32)
    warnings.simplefilter("ignore", StabilityWarning)  # some step sizes of a candidate are too long
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
