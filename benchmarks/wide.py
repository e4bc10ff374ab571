"""Cost of AUCClassifier on wide rows, on text, and on the first rows of a stream.

PAIRLOOM_DATA=folder python benchmarks/wide.py [--data NAME ...] [--toy]

One core, CPU time, compiled code loaded. Four fifths of the shuffled rows are learned in stretches of 512, the others
are scored. The limit is the nominal one of the default budget. "binary" is simulated: 3,279 rows of 1,555 rare
indicators, as in Internet advertisements. Beside it RBFSampler(1024) and SGDClassifier, in the same stretches.
"""

import argparse
import lzma
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.datasets import load_svmlight_file
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from threadpoolctl import threadpool_limits

from common.script import make_parser, make_table, require_data
from common.yardstick import BATCH, seconds
from contest.datasets import DATASETS
from pairloom import AUCClassifier
from pairloom.race import Budget

STRETCHES = (512, 1_024, 2_048, 4_096)
"""Ends of the stretches that are shown; the rest is one stretch."""

NAMES = ("diabetes", "german", "usps", "mnist", "binary", "text")


def indicators(n: int = 3_279, d: int = 1_555) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of rare indicators, about 10 of them 1, which depend on a hidden topic; 14 % positives."""
    rng = np.random.default_rng(0)
    share = rng.permutation(np.clip(0.5 * (2.0 + np.arange(d)) ** -0.9, 0.002, 0.3))
    topic, usual = rng.integers(0, 40, n), rng.random((40, d)) < 0.05
    X = rng.random((n, d)) < np.clip(share * (1 + 6 * usual[topic]), 0, 0.8)
    score = X @ (2.0 * rng.normal(size=d) * (rng.random(d) < 0.3)) + 1.5 * rng.normal(size=40)[topic]
    return X.astype(np.float32), (score > np.quantile(score, 0.86)).astype(int)


def read(name: str) -> tuple[Any, np.ndarray]:
    """Return shuffled rows, dense or CSR, and labels."""
    if name == "binary":
        return indicators()
    if name != "text":
        return next(one for one in DATASETS if one.name == name).read()
    with lzma.open(Path(os.environ["PAIRLOOM_DATA"]) / "reuters.moneyfx.train.xz") as stream:
        X, y = load_svmlight_file(stream, n_features=8_315, zero_based=False)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], (y[order] > 0).astype(int)


def peer(X: Any) -> tuple[Any, Any]:
    """Return ``partial_fit`` and scores of scaling, RBFSampler and SGDClassifier."""
    scaler = (StandardScaler() if isinstance(X, np.ndarray) else MaxAbsScaler()).fit(X)
    sampler = RBFSampler(n_components=1024, gamma=0.5 / X.shape[1], random_state=0).fit(X[:1])
    model = SGDClassifier(loss="log_loss", random_state=0)

    def mapped(part: Any) -> np.ndarray:
        return sampler.transform(scaler.transform(part))

    return (
        lambda part, y: model.partial_fit(mapped(part), y, classes=[0, 1]),
        lambda part: model.decision_function(mapped(part)),
    )


def line(name: str, X: Any, y: np.ndarray) -> list[str]:
    """Measure a data set."""
    cut = 4 * X.shape[0] // 5
    AUCClassifier(random_state=0).fit(X[: min(cut, 2_200)], y[: min(cut, 2_200)])  # loads compiled code
    model, micros, spent = AUCClassifier(random_state=0), [], 0.0
    for start, end in zip((0, *STRETCHES), (*STRETCHES, cut), strict=True):
        rows = slice(start, min(end, cut))
        took = seconds(model.partial_fit, X[rows], y[rows]) if start < cut else 0.0
        spent += took
        micros.append(f"{took / (rows.stop - start) * 1e6:,.0f}" if start < cut else "")
    learn, score = peer(X[:cut])
    theirs = seconds(learn, X[:cut], y[:cut])
    aucs = [roc_auc_score(y[cut:], f(X[cut:])) for f in (model.decision_function, score)]
    return [
        name, f"{cut:,}", f"{X.shape[1]:,}", f"{Budget().limit(X.shape[1]):.0f}", *micros, f"{spent / cut * 1e6:,.0f}",
        f"{spent:.3f}", f"{aucs[0]:.4f}", f"{theirs / cut * 1e6:,.0f}", f"{aucs[1]:.4f}",
    ]  # fmt: skip


def small_data() -> list[tuple[str, Any, np.ndarray]]:
    """Return small data, dense and of rare indicators."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 4))
    return [("toy", X, (np.square(X).sum(axis=1) > 4).astype(int)), ("toy, binary", *indicators(400, 80))]


def arguments() -> argparse.Namespace:
    parser = make_parser(__doc__)
    parser.add_argument("--data", nargs="+", choices=NAMES, default=NAMES, metavar="NAME", help=", ".join(NAMES))
    return parser.parse_args()


def table_of(names: Sequence[str], toy: bool) -> Table:
    """Measure data sets, or small data."""
    shown = ["rows", "columns", "limit", f"to {STRETCHES[0]}", *(f"to {end:,}" for end in STRETCHES[1:]), "later"]
    table = make_table(
        f"AUCClassifier, microseconds per row in stretches of {BATCH} rows", ["data"],
        [*shown, "all", "seconds", "AUC", "RBFSampler + SGD", "its AUC"],
    )  # fmt: skip
    with threadpool_limits(1):
        for one in track(small_data() if toy else names, "data", console=Console(stderr=True)):
            table.add_row(*(line(*one) if toy else line(one, *read(one))))
    return table


def main() -> None:
    options = arguments()
    if not options.toy:
        require_data()
    Console(width=180).print(table_of(options.data, options.toy))


if __name__ == "__main__":
    main()
