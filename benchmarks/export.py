"""Size and speed of exported models in onnxruntime, next to `score_one` and `score_many`.

python benchmarks/export.py [--rows N] [--figure] [--toy]

Everything on one thread, in turns within one run: other load on the machine affects both sides. A race is exported and
timed in its frozen form. ``--figure`` draws docs/onnx.png.
"""

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime
import pandas as pd
from rich.console import Console
from threadpoolctl import threadpool_limits

from common.script import DOCS, make_parser, make_table
from common.yardstick import mixed_frame
from mixed.speed import dicts
from pairloom import AUCClassifier
from pairloom.estimators import BoostingClassifier
from pairloom.features import Forest
from pairloom.persist import export_onnx
from pairloom.systems import FPOGD, KOIL, OPAUC

COLUMNS, BATCH, ROUNDS = 22, 4096, 9
OURS, TYPES = "score_one, score_many", {"tensor(float)": np.float32, "tensor(double)": float}


@dataclass
class Result:
    """Size in MB, microseconds per row by caller, and the largest difference relative to the largest score."""

    megabytes: float
    one: dict[str, float]
    many: dict[str, float]
    difference: float


def models(seed: int = 0) -> dict[str, Any]:
    """Return the models of 22 numbers by name."""
    forest = Forest(100, max_leaves=4096, n_rows=16_384)
    return {
        "OPAUC, linear": OPAUC(scale="standard", random_state=seed),
        "FPOGD, 512 Fourier features": FPOGD(n_components=512, gamma="median", scale="standard", random_state=seed),
        "KOIL, kernels at 200 rows": KOIL(scale="standard", budget=100, random_state=seed),
        "BoostingClassifier": BoostingClassifier(random_state=seed),
        "FPOGD, forest of 100 trees": FPOGD(features=forest, eta=0.1, random_state=seed),
        "AUCClassifier": AUCClassifier(random_state=seed),
    }


def numbers(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of numbers with a non-linear rare class."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, COLUMNS)).astype(np.float32)
    return X, np.square(X[:, :5]).sum(axis=1) + 2 * X[:, 6] + rng.normal(size=n) > 9


def feeds_of(session: onnxruntime.InferenceSession, X: Any) -> dict[str, np.ndarray]:
    """Return the inputs of a session."""
    if isinstance(X, np.ndarray):
        return {"X": X}
    days = X.assign(time=(X["time"] - pd.Timestamp(0)) / pd.Timedelta(days=1))
    inputs = session.get_inputs()
    return {one.name: days[[one.name]].to_numpy(TYPES.get(one.type, object)) for one in inputs}


def medians(calls: dict[str, Callable[[int], object]], n: int) -> dict[str, float]:
    """Return the median microseconds of n calls of each, in turns."""
    taken = {name: np.empty(n) for name in calls}
    for i in range(n):
        for name, call in calls.items():
            start = time.perf_counter()
            call(i)
            taken[name][i] = time.perf_counter() - start
    return {name: 1e6 * float(np.median(one[n // 10 :])) for name, one in taken.items()}


def measure(model: Any, X: Any, ml_opsets: tuple[int, ...], folder: str, n: int) -> dict[int, Result]:
    """Export a model for each version of the tree operators, and compare it on rows."""
    options, sessions, sizes = onnxruntime.SessionOptions(), {}, {}
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    for ml in ml_opsets:
        path = f"{folder}/model.onnx"
        export_onnx(model, path, ml_opset=ml)
        sessions[ml], sizes[ml] = onnxruntime.InferenceSession(path, options), os.path.getsize(path) / 1e6
    feeds = {ml: feeds_of(session, X) for ml, session in sessions.items()}
    rows = X if isinstance(X, np.ndarray) else dicts(X)
    single = {ml: [{k: v[i : i + 1] for k, v in one.items()} for i in range(n)] for ml, one in feeds.items()}
    one: dict[str, Callable[[int], object]] = {OURS: lambda i: model.score_one(rows[i])}
    many: dict[str, Callable[[int], object]] = {OURS: lambda i: model.score_many(X)}
    for ml, session in sessions.items():
        one[str(ml)] = lambda i, ml=ml, session=session: session.run(["score"], single[ml][i])
        many[str(ml)] = lambda i, ml=ml, session=session: session.run(["score"], feeds[ml])
    of_one, of_many = medians(one, n), medians(many, ROUNDS)
    expected, found = model.score_many(X), {}
    for ml, session in sessions.items():
        difference = np.abs(session.run(["score"], feeds[ml])[0] - expected).max() / np.abs(expected).max()
        taken = (
            {name: times[key] for name, key in ((OURS, OURS), ("onnxruntime", str(ml)))} for times in (of_one, of_many)
        )
        first, second = taken
        found[ml] = Result(sizes[ml], first, {k: v / len(X) for k, v in second.items()}, float(difference))
    return found


def run(n_learn: int, n: int, batch: int) -> dict[str, dict[int, Result]]:
    """Measure all models."""
    (X, y), (frame, labels), results = numbers(n_learn + batch), mixed_frame(n_learn + batch, 10), {}
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
        for name, model in [*models().items(), ("AUCClassifier, 20 mixed columns", AUCClassifier(random_state=0))]:
            rows, own = (frame, labels) if "mixed" in name else (X, y)
            model.fit(rows[:n_learn], own[:n_learn])
            ready = model.frozen() if hasattr(model, "frozen") else model
            trees = not name.startswith(("OPAUC", "KOIL", "FPOGD, 512"))
            results[name] = measure(ready, rows[n_learn:], (5, 3) if trees else (5,), folder, n)
    return results


def draw(results: dict[str, dict[int, Result]]) -> None:
    """Draw docs/onnx.png: microseconds per row, single rows and batches."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), sharey=True, layout="constrained")
    at = np.arange(len(results))[::-1]
    for axis, field, title in zip(axes, ("one", "many"), ("one row per call", f"{BATCH:,} rows per call"), strict=True):
        for shift, name, color in ((0.2, OURS, "#999999"), (-0.2, "onnxruntime", "#1f77b4")):
            values = [getattr(found[5], field)[name] for found in results.values()]
            bars = axis.barh(at + shift, values, 0.38, label=name, color=color)
            axis.bar_label(bars, [f"{value:.3g}" for value in values], padding=3, fontsize=8)
        axis.set(title=title, xlabel="µs per row", yticks=at, yticklabels=list(results))
        axis.margins(x=0.14)
        axis.spines[["top", "right"]].set_visible(False)
    axes[1].legend(frameon=False, loc="upper right")
    figure.savefig(DOCS / "onnx.png", dpi=110)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--rows", type=int, default=20_000, help="rows learned")
    parser.add_argument("--figure", action="store_true", help="draw docs/onnx.png")
    options = parser.parse_args()
    results = run(400, 20, 64) if options.toy else run(options.rows, 1000, BATCH)
    headings = ["MB", "score_one, µs", "onnxruntime, µs", "score_many, µs", "onnxruntime, µs", "difference"]
    table = make_table("Exported models: per row, one row per call and batches", ["model", "ml_opset"], headings)
    for name, found in results.items():
        for ml, one in found.items():
            times = [*one.one.values(), *one.many.values()]
            cells = [f"{one.megabytes:.3g}", *(f"{value:.3g}" for value in times), f"{one.difference:.1g}"]
            table.add_row(name, str(ml) if len(found) > 1 else "", *cells)
    Console(width=130).print(table)
    if options.figure and not options.toy:
        draw(results)


if __name__ == "__main__":
    main()
