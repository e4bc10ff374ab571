"""Changes of columns: false alarms on streams that do not change, rows to an alarm, cost, and the bank stream."""

import os
import time
from pathlib import Path

import numpy as np
import pandas as pd
from rich.table import Table

from common.script import make_table
from pairloom import AUCClassifier
from pairloom.columns.windows import BLOCK, ColumnWindows
from pairloom.data import fraud_like
from pairloom.race import Portfolio

N_NAMED, N_SHARED = 4096, 1024
"""Codes of a column of categories, as the encoder gives them."""

LEVELS = {"normal": 0.0, "AR(1), 0.9": 0.9, "AR(1), 0.99": 0.99, "AR(1), 0.999": 0.999}


def codes(values: np.ndarray) -> np.ndarray:
    """Return codes in the order of arrival; those from 4,096 are shared."""
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    found = np.argsort(np.argsort(first))[inverse]
    return np.where(found < N_NAMED, found, N_NAMED + found % N_SHARED).astype(float)


def still(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return independent rows of 20 columns and their kinds: heavy tails, ties, missing values, rare categories."""
    rng = np.random.default_rng(seed)
    gaps, rare = rng.normal(size=n), rng.normal(size=n)
    gaps[rng.random(n) < 0.5] = rare[rng.random(n) < 0.999] = np.nan
    numbers = [
        rng.normal(size=n), rng.standard_t(1.5, n), rng.standard_cauchy(n), rng.lognormal(0, 2, n), rng.pareto(0.5, n),
        rng.integers(0, 3, n), rng.poisson(0.2, n), rng.random(n) < 0.01, rng.normal(size=n).round(1), gaps, rare,
        np.where(rng.random(n) < 0.9, 0.0, rng.lognormal(0, 1, n)),
    ]  # fmt: skip
    categories = [
        rng.zipf(1.3, n), rng.zipf(2.0, n), rng.geometric(0.05, n), rng.integers(0, 4, n), rng.integers(0, 3_000, n),
        rng.integers(0, 1_000_000, n), np.arange(n), (rng.random(n) < 0.002) * rng.integers(1, 20, n),
    ]  # fmt: skip
    kinds = np.repeat([0, 1], [len(numbers), len(categories)])
    return np.column_stack([*numbers, *map(codes, categories)]).astype(float), kinds


def table_of_false_alarms(streams: int, rows: int, calls: int) -> Table:
    """Count alarms on streams that do not change, in comparisons along the stream and with ``calls`` later rows."""
    heads = ["streams", "rows of each", "comparisons", "alarms", "95 % bound of the rate"]
    table = make_table("no change, 20 columns: false alarms of any column", ["comparison"], heads)
    found = later = 0
    for seed in range(streams):
        X, kinds = still(seed, rows + 1_000 * calls)
        windows = ColumnWindows.empty(X.shape[1])
        windows.add(X[:rows], kinds, N_NAMED)
        found += len(np.unique(windows.found.places[:, 0]))
        for some in np.split(X[rows:], calls):
            later += bool(windows.compare_with(some, kinds, N_NAMED)[0].any())
    for name, n, alarms in (("every 512 rows", rows // BLOCK - 1, found), ("1,000 later rows", calls, later)):
        bound = f"{-np.log(0.05) / (n * streams):.1e}" if alarms == 0 else "-"
        table.add_row(name, str(streams), f"{rows:,}", f"{n * streams:,}", str(alarms), bound)
    return table


def table_of_dependence(streams: int, rows: int) -> Table:
    """Count alarms in rows that depend on each other, whose distribution does not change."""
    table = make_table(f"dependent rows, 20 columns of each kind, {rows:,} rows", ["column"], ["alarms per column"])
    for name, level in LEVELS.items():
        found = 0
        for seed in range(streams):
            noise = np.random.default_rng(seed).normal(size=(rows, 20))
            X = noise.copy()
            for t in range(1, rows if level else 0):
                X[t] = level * X[t - 1] + np.sqrt(1 - level**2) * noise[t]
            windows = ColumnWindows.empty(20)
            windows.add(X)
            found += windows.found.count
        table.add_row(name, f"{found / (20 * streams):.2f}")
    return table


def changed(name: str, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return rows of a normal column and one of ten categories after a change."""
    X, hit = X.copy(), rng.random(len(X))
    if name.startswith("mean"):
        X[:, 0] += float(name.split()[2])
    elif name.startswith("missing"):
        X[hit < float(name.split()[2]) / 100, 0] = np.nan
    elif name.startswith("new"):
        X[hit < float(name.split()[3]) / 100, 1] = 10.0
    else:
        X[hit < float(name.split()[4]) / 100, 0] = 20.0
    return X


CHANGES = (
    "mean by 0.3 deviations", "mean by 0.5 deviations", "mean by 1 deviation", "missing in 3 % of rows",
    "missing in 10 % of rows", "new category in 2 % of rows", "new category in 10 % of rows",
    "outside the range in 5 % of rows",
)  # fmt: skip


def table_of_delays(streams: int, before: int, after: int) -> Table:
    """Tabulate the rows from a change to its alarm; median over streams."""
    table = make_table(f"a change after {before:,} rows", ["change"], ["found", "median rows to the alarm", "largest"])
    for name in CHANGES:
        delays = []
        for seed in range(streams):
            rng = np.random.default_rng(seed)
            at, n = before + int(rng.integers(BLOCK)), before + after
            X = np.column_stack([rng.normal(size=n), codes(rng.integers(0, 10, n))])
            X[at:] = changed(name, X[at:], rng)
            windows = ColumnWindows.empty(2)
            windows.add(X, np.array([0, 1]))
            delays += [windows.found.places[0, 0] - at] if windows.found.count else []
        shown = (f"{np.median(delays):,.0f}", f"{max(delays):,}") if delays else ("", "")
        table.add_row(name, f"{len(delays)} of {streams}", *shown)
    return table


def table_of_cost(rows: int) -> Table:
    """Tabulate CPU time and memory by number of columns, in calls of 1,000 rows and of one."""
    table = make_table("cost", ["columns"], ["us per row", "us per row, one by one", "bytes per column"])
    for c in (1, 20, 200):
        X, took = np.random.default_rng(0).normal(size=(rows, c)), []
        for n in (1_000, 1):
            windows, began = ColumnWindows.empty(c), time.process_time()
            for start in range(0, rows, n):
                windows.add(X[start : start + n])
            took.append(1e6 * (time.process_time() - began) / rows)
        size = sum(one.nbytes for one in vars(windows).values() if isinstance(one, np.ndarray)) / c
        table.add_row(str(c), f"{took[0]:.2f}", f"{took[1]:.2f}", f"{size:,.0f}")
    return table


def table_of_bank(toy: bool) -> Table:
    """Tabulate the changes of each column of the bank stream in the order of the campaign."""
    if toy:
        columns, y = fraud_like(5_000, drift=3.0)
        frame = pd.DataFrame(columns)
    else:
        frame = pd.read_csv(Path(os.environ["PAIRLOOM_DATA"]) / "tables" / "bank.csv.xz")
        y = frame.pop("y")
    model = AUCClassifier(portfolio=Portfolio(forests=(), boosted=None, kernels=()), random_state=0)
    changes = model.fit(frame, y).column_changes_
    heads = ["changes", "first found", "largest PSI", "most new values", "range before", "range after the last"]
    table = make_table(f"the bank stream, {len(frame):,} rows", ["column"], heads)
    for name in sorted(frame, key=lambda name: -sum(one.column == name for one in changes)):
        own = [one for one in changes if one.column == name]
        if not own:
            table.add_row(name, "0")
            continue
        ranges = [own[0].ranges, own[-1].ranges]
        ends = [f"{pair[k][0]:.5g} to {pair[k][1]:.5g}" if pair else "" for pair, k in zip(ranges, (0, 1), strict=True)]
        new = f"{100 * max(one.new[1] for one in own):.0f} %"
        psi = f"{max(one.psi for one in own):.2f}"
        table.add_row(name, str(len(own)), f"{own[0].row:,}", psi, new, *ends)
    return table


def tables(toy: bool) -> list[Table]:
    """Return all tables."""
    streams = 2 if toy else 100
    return [
        table_of_false_alarms(streams, 6_000 if toy else 100_000, 5 if toy else 50),
        table_of_dependence(1 if toy else 5, 6_000 if toy else 100_000),
        table_of_delays(streams, 5_200 if toy else 12_288, 3_000 if toy else 12_288),
        table_of_cost(1_024 if toy else 102_400),
        table_of_bank(toy),
    ]
