"""Shards on Dask: time with 1 and 2 workers, AUC by shards and rounds, bytes sent, and LightGBM on the same cluster.

python benchmarks/scale.py [--toy] [--rows 5000000] [--system FPOGD]

Rows of covtype are repeated, with a little noise in every column, and written as Parquet files; then workers of one
core each learn them. The speed-up is a ratio of two runs on this machine; with two cores, workers, scheduler and client
share them. The AUC is that of held-out rows, relative to one pass in one process.
"""

import pickle
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from dask import delayed
from distributed import Client, LocalCluster
from rich.console import Console
from sklearn.metrics import roc_auc_score

from common.script import make_parser, make_table, require_data
from pairloom import AUCClassifier, systems
from pairloom import dask as on_dask
from pairloom.data import load_dataset

HELD_OUT = 20_000


def stream(rows: int, toy: bool) -> tuple[Any, Any]:
    """Return repeated rows of covtype, or a synthetic stream."""
    rng = np.random.default_rng(0)
    if toy:
        X = rng.normal(size=(rows, 6)).astype(np.float32)
        return X, (np.square(X).sum(axis=1) + rng.normal(size=rows) > 8).astype(int)
    data = load_dataset("covtype")
    order = np.concatenate([rng.permutation(len(data.y)) for _ in range(-(-rows // len(data.y)))])[:rows]
    X = np.asarray(data.X, np.float32)
    noise = 1e-3 * X.std(axis=0)
    return X[order] + noise * rng.normal(size=(rows, X.shape[1])).astype(np.float32), (data.y[order] > 0).astype(int)


def write(folder: Path, X: Any, y: Any, files: int) -> list[Path]:
    """Write Parquet files, and return their paths."""
    paths = []
    for k in range(files):
        own = slice(k * len(y) // files, (k + 1) * len(y) // files)
        frame = pd.DataFrame(X[own], columns=[f"c{j}" for j in range(X.shape[1])]).assign(label=y[own])
        paths.append(folder / f"part{k:03}.parquet")
        frame.to_parquet(paths[-1])
    return paths


def features(path: Path) -> Any:
    """Return the features of a file."""
    return pd.read_parquet(path).drop(columns="label").to_numpy(np.float32)


def labels(path: Path) -> Any:
    """Return the labels of a file."""
    return pd.read_parquet(path, columns=["label"])["label"].to_numpy()


def learned(model: Any, paths: list[Path]) -> tuple[Any, float]:
    """Return a fitted local model, and the seconds it took."""
    began = perf_counter()
    model.fit([delayed(features)(path) for path in paths], [delayed(labels)(path) for path in paths])
    return model.to_local(), perf_counter() - began


def lightgbm_on(client: Any, paths: list[Path], width: int, X: Any, y: Any) -> tuple[float, float]:
    """Return the AUC of LightGBM's Dask interface, and the seconds it took."""
    sys.modules["sparse"] = None  # type: ignore[assignment]  # not benchmarks/sparse.py, which Dask would find
    import dask.array as da
    from lightgbm import DaskLGBMClassifier

    sizes = [len(labels(path)) for path in paths]
    rows = [da.from_delayed(delayed(features)(p), (n, width), np.float32) for p, n in zip(paths, sizes, strict=True)]
    codes = [da.from_delayed(delayed(labels)(p), (n,), np.int64) for p, n in zip(paths, sizes, strict=True)]
    began = perf_counter()
    model = DaskLGBMClassifier(client=client, random_state=0, verbose=-1)
    model.fit(da.concatenate(rows), da.concatenate(codes))
    seconds = perf_counter() - began
    return float(roc_auc_score(y, model.to_local().predict_proba(X)[:, 1])), seconds


def cases_of(toy: bool, workers: int) -> list[tuple[int, int]]:
    """Return shards and rounds of the runs."""
    if toy:
        return [(2, 2), (4, 1)]
    return [(16, 3)] + ([(k, r) for k in (1, 2, 8, 64) for r in (1, 3, 10)] if workers == 2 else [])


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--system", default="AUCClassifier", choices=["AUCClassifier", "FPOGD", "ExactAUC"])
    options = parser.parse_args()
    if not options.toy:
        require_data()
    rows, files, held = (6_000, 4, 1_000) if options.toy else (options.rows, 64, HELD_OUT)
    system = "FPOGD" if options.toy else options.system
    params = {"random_state": 0} | ({"scale": "standard"} if system == "FPOGD" else {})
    X, y = stream(rows + held, options.toy)
    Xt, yt, X, y = X[:held], y[:held], X[held:], y[held:]
    numbers = ["seconds", "rows/s", "AUC", "to one pass", "MB per shard and round"]
    table = make_table(f"{system}, {rows:,} rows, {files} files", ["run"], numbers)
    best = 0.0

    def add(name: str, seconds: float, area: float, sent: str = "") -> None:
        table.add_row(name, f"{seconds:.0f}", f"{rows / seconds:,.0f}", f"{area:.4f}", f"{area - best:+.4f}", sent)

    began = perf_counter()
    kind = AUCClassifier if system == "AUCClassifier" else getattr(systems, system)
    one = kind(**params).fit(X, y)
    seconds, best = perf_counter() - began, roc_auc_score(yt, one.decision_function(Xt))
    add("one pass, one process", seconds, best)
    with tempfile.TemporaryDirectory() as folder:
        paths = write(Path(folder), X, y, files)
        for workers in (1, 2):
            made = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
            with LocalCluster(**made) as cluster, Client(cluster) as client:
                for shards, rounds in cases_of(options.toy, workers):
                    model = getattr(on_dask, system)(rounds=rounds, shards=shards, client=client, **params)
                    local, seconds = learned(model, paths)
                    name = f"{workers} workers, {shards} shards, {rounds} rounds"
                    sent = f"{2 * len(pickle.dumps(local)) / 1e6:.1f}"  # the base to a shard, and the part back
                    add(name, seconds, roc_auc_score(yt, local.decision_function(Xt)), sent)
                if not options.toy:
                    area, seconds = lightgbm_on(client, paths, X.shape[1], Xt, yt)
                    add(f"LightGBM, {workers} workers", seconds, area)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
