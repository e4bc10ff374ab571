"""A world that moves slowly: the fraud-like stream, whose kinds of fraud fade in and out."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from rich.table import Table
from sklearn.metrics import roc_auc_score

from changes.jobs import done
from changes.learners import OURS, Estimator
from changes.recovery import scores_along, window_aucs
from mixed.payments import Retrained, Size, river_forest, river_logistic
from pairloom.data import fraud_like
from pairloom.race import Budget

HALF_LIFE = 50_000
QUICK = Budget(microseconds=100.0)
LAST = 60_000
"""Rows on which LightGBM is trained anew; the last 50,000 of the stream are what counts."""


@dataclass(frozen=True)
class Along:
    """One system on one stream: AUC of windows, one after the other, that of the last rows pooled, seconds."""

    windows: np.ndarray
    late: float
    pooled: float
    seconds: float


Found = dict[str, list[Along]]
"""By system, one of each seed."""


def systems(size: Size, forest: bool) -> dict[str, Callable[[], Any]]:
    ways: tuple[dict[str, Any], ...] = ({"drift": "auto"}, {"half_life": HALF_LIFE}, {"budget": QUICK})
    found: dict[str, Callable[[], Any]] = {OURS.title(how): partial(ours, how) for how in ways}
    found["LightGBM, last 60,000 rows"] = partial(Retrained, size, last=LAST)
    found["river logistic"] = partial(river_logistic, size)
    if forest:
        found["river ARF, its own detectors"] = partial(river_forest, size)
    return found


def ours(how: dict[str, Any]) -> Estimator:
    return Estimator(OURS.make(**how), classes=(0, 1))


def measure(seeds: list[int], size: Size, forest: bool, cores: int = 1) -> Found:
    jobs = [(seed, name, size) for name in reversed(systems(size, forest)) for seed in seeds]
    found: Found = {name: [] for name in systems(size, forest)}
    for (_, name, _), run in zip(jobs, done(one, jobs, cores, "slow change"), strict=True):
        found[name].append(run)
    return found


def one(seed: int, name: str, size: Size) -> Along:
    columns, y = fraud_like(size.rows, seed=seed, positive=size.positive, drift=1.0)
    model = systems(size, forest=True)[name]()
    scores, seconds = scores_along(model, pd.DataFrame(columns), y, size.block)
    windows, late = window_aucs(scores, y, size.every, size.every), size.rows // 4
    mean = windows[-(late // size.every) :].mean()
    return Along(windows, mean, roc_auc_score(y[-late:], scores[-late:]), seconds)


def table_of_payments(found: Found, seeds: list[int], size: Size) -> Table:
    late = f"{size.rows // 4:,}"
    table = Table(title=f"fraud_like({size.rows:,}, drift=1.0), blocks of {size.block:,}: score, then learn")
    headings = ("system", *(f"seed {seed}" for seed in seeds), "mean", f"last {late} pooled", "all windows",
                "CPU s", "µs per row")  # fmt: skip
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "system" else "right")
    for name, runs in found.items():
        aucs = [*(run.late for run in runs), np.mean([run.late for run in runs]),
                np.mean([run.pooled for run in runs]), np.mean([run.windows[1:].mean() for run in runs])]  # fmt: skip
        seconds = np.mean([run.seconds for run in runs])
        table.add_row(name, *(f"{auc:.4f}" for auc in aucs), f"{seconds:,.1f}", f"{1e6 * seconds / size.rows:,.0f}")
    table.caption = (
        f"by seed: mean AUC of the windows of {size.every:,} rows in the last {late}; all windows: but for the first; "
        f"LightGBM is trained anew every {size.every:,} rows"
    )
    return table
