"""Slow changes: the fraud-like stream, in which kinds of fraud come and go."""

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
from common.script import make_table
from mixed.payments import Retrained, Size, river_forest, river_logistic
from pairloom.data import fraud_like
from pairloom.race import Budget

HALF_LIFE = 50_000
QUICK = Budget(microseconds=100.0)
LAST = 60_000
"""Rows on which LightGBM is retrained; results are for the last 50,000 rows of the stream."""


@dataclass(frozen=True)
class Along:
    """One system on one stream: AUC of consecutive windows, their late mean, pooled AUC of the last rows, seconds."""

    windows: np.ndarray
    late: float
    pooled: float
    seconds: float


Found = dict[str, list[Along]]
"""By system, one for each seed."""


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
    title = f"fraud_like({size.rows:,}, drift=1.0), blocks of {size.block:,}: score, then learn"
    areas = [*(f"seed {seed}" for seed in seeds), "mean", f"last {late} pooled", "all windows"]
    table = make_table(title, ["system"], [*areas, "CPU s", "µs per row"])
    for name, runs in found.items():
        aucs = [*(run.late for run in runs), np.mean([run.late for run in runs]),
                np.mean([run.pooled for run in runs]), np.mean([run.windows[1:].mean() for run in runs])]  # fmt: skip
        seconds = np.mean([run.seconds for run in runs])
        table.add_row(name, *(f"{auc:.4f}" for auc in aucs), f"{seconds:,.1f}", f"{1e6 * seconds / size.rows:,.0f}")
    table.caption = (
        f"by seed: mean AUC of the windows of {size.every:,} rows in the last {late}; all windows: except the first; "
        f"LightGBM is retrained every {size.every:,} rows"
    )
    return table
