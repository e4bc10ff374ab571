"""Rare fraud and real streams in their own order: AUCClassifier, and batch models that are retrained.

PAIRLOOM_DATA=folder python benchmarks/payments.py [--seeds N ...] [--streams NAME ...] [--toy]

Streams: simulated payments without a change, with a sudden one at row 40,000, and with a slow one from row 20,000 to
40,000 (60,000 rows for each seed, 0.7 % fraud, with heavy-tailed amounts, text, a date, missing values, an id and free
text; the generator is streams/payments.py beside PAIRLOOM_DATA); elec and weather. Each block of 500 rows is scored,
then learned. LightGBM (300 trees of 7 leaves, rate 0.05) and logistic regression (one-hot, standardised numbers) are
trained at every 5,000th row, with the hour and the weekday instead of the date, and without the id and the free text.

Window AUC: mean over windows (5,000 rows of payments, 1,000 of the others) after row 5,000, and over seeds. "behind":
how far it is below that of AUCClassifier on the same streams. Alerts: of `model.alert_budget(rate=0.01)`, in the
windows of 5,000 rows with the fewest and the most; 50 are requested. "truth": the probabilities that the labels were
drawn with.
"""

import os
import runpy
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from common.script import make_parser, make_table, require_data
from contest.tables import read_table
from mixed.contenders import CONTENDERS, Run, Size, Stream, timed
from pairloom.data import fraud_like

CHANGES: dict[str, float | None] = {"none": None, "sudden": 2 / 3, "slow": 1 / 3}
"""Where in the stream the change begins."""

TABLES = ("elec", "weather")


def streams(name: str, seeds: list[int]) -> Iterator[Stream]:
    """Yield the payments of each seed, or the one table."""
    if name in TABLES:
        frame, y = read_table(name)
        yield Stream(name, frame, y, window=1_000)
        return
    generator = runpy.run_path(str(Path(os.environ["PAIRLOOM_DATA"]).parent / "streams" / "payments.py"))["payments"]
    for seed in seeds:
        frame, y, probability = generator(seed, change=None if name == "none" else name)
        part = CHANGES[name]
        yield Stream(name, frame, y, 5_000, probability, None if part is None else round(part * len(y)))


def toy() -> Iterator[Stream]:
    columns, y = fraud_like(600, positive=0.3)
    yield Stream("toy", pd.DataFrame(columns), y, 200, y.astype(float), 400)


def area(run: Run, stream: Stream, size: Size) -> float:
    """Return the mean AUC of the windows after the first training."""
    starts = range(size.every, len(stream.y) - stream.window + 1, stream.window)
    cuts = [slice(start, start + stream.window) for start in starts]
    return float(np.mean([roc_auc_score(stream.y[cut], run.scores[cut]) for cut in cuts]))


def alerts(runs: list[Run], size: Size) -> str:
    """Return the fewest and the most alerts in a window; the last one may be cut short and does not count."""
    if runs[0].flags is None:
        return ""
    each = [run.flags[: len(run.flags) // size.every * size.every].reshape(-1, size.every) for run in runs]
    counts = np.concatenate([windows.sum(axis=1) for windows in each])
    return f"{counts.min()} to {counts.max()}"


def found(runs: list[Run], seen: list[Stream]) -> tuple[str, str]:
    """Return the median number of positives from the change to the first alarm after it, and all other alarms."""
    if runs[0].flags is None:
        return "", ""
    until, others = [], 0
    for run, stream in zip(runs, seen, strict=True):
        change = len(stream.y) if stream.change is None else stream.change
        after = [row for row in run.alarms if row > change]
        until.append(stream.y[change : after[0]].sum() if after else np.inf)
        others += sum(row <= change for row in run.alarms)
    missed = np.isinf(until).sum()
    if all(stream.change is None for stream in seen):
        return "", str(others)
    never = f" (never in {missed})" if missed else ""
    return f"{np.median(until):.0f}{never}" if missed < len(until) else "never", str(others)


def table_of(name: str, seen: list[Stream], size: Size) -> Table:
    """Run all contenders on the streams of one kind."""
    headings = ["window AUC", "s.e.", "behind", "s.e.", "alerts", "positives to alarm", "other alarms", "µs per row"]
    rows = f"{len(seen[0].y):,} rows"
    kind = f"{name}, {rows}" if name in TABLES else f"payments, change: {name}, {rows}, {len(seen)} seeds"
    table, base = make_table(kind, ["system"], headings), np.zeros(0)
    for system, contender in CONTENDERS.items():
        if system == "truth" and seen[0].probability is None:
            continue
        runs = [timed(contender, stream, size) for stream in seen]
        areas = np.array([area(run, stream, size) for run, stream in zip(runs, seen, strict=True)])
        base = base if len(base) else areas
        behind = "" if system == "AUCClassifier" else f"{(base - areas).mean():+.4f}"
        micros = np.median([run.micros for run in runs])  # the first run may compile
        table.add_row(
            system, f"{areas.mean():.4f}", error(areas), behind, error(base - areas) if behind else "",
            alerts(runs, size), *found(runs, seen), f"{micros:,.0f}" if micros > 1 else "",
        )  # fmt: skip
    return table


def error(values: np.ndarray) -> str:
    """Return the standard error of the mean; nothing for one value."""
    return f"{values.std(ddof=1) / len(values) ** 0.5:.4f}" if len(values) > 1 else ""


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(10, 20)), help="default: 10 to 19")
    names = [*CHANGES, *TABLES]
    parser.add_argument("--streams", nargs="+", choices=names, default=names, help="default: all")
    options = parser.parse_args()
    console = Console(width=140)
    with threadpool_limits(1):
        if options.toy:
            return console.print(table_of("toy", list(toy()), Size(20, 200, 400)))
        require_data("data sets, next to the folder streams")
        for name in options.streams:
            console.print(table_of(name, list(streams(name, options.seeds)), Size()))
    return None


if __name__ == "__main__":
    main()
