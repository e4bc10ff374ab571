"""covtype in file order, in which one forest area follows the other."""

from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from changes.learners import OURS, Estimator, Learner
from changes.recovery import scores_along, window_aucs
from common.script import make_table
from contest.datasets import DATASETS

BOOTSTRAPS = 10_000


@dataclass(frozen=True)
class Walk:
    """Rows of a block that is scored and then learned, rows of a window, and windows that are resampled together."""

    rows: int | None = None
    block: int = 1_000
    window: int = 5_000
    together: int = 8


def covtype() -> tuple[np.ndarray, np.ndarray]:
    """Return all rows in the order of the UCI file; positive is cover type 2."""
    data = next(data for data in DATASETS if data.name == "covtype")
    X, y = data.in_order()
    return X.astype(np.float32), (y > data.cut).astype(int)


def interval(differences: np.ndarray, together: int, seed: int = 0) -> tuple[float, float]:
    """Return a 95 % interval of the mean of a correlated series by the circular block bootstrap."""
    n, rng = len(differences), np.random.default_rng(seed)
    starts = rng.integers(0, n, (BOOTSTRAPS, -(-n // together), 1))
    drawn = ((starts + np.arange(together)) % n).reshape(BOOTSTRAPS, -1)[:, :n]
    low, high = np.quantile(differences[drawn].mean(axis=1), (0.025, 0.975))
    return float(low), float(high)


def table_of_order(X: np.ndarray, y: np.ndarray, walk: Walk, learner: Learner = OURS) -> Table:
    """Compare each variant with the first, window by window."""
    title = f"covtype in file order: {len(y):,} rows, blocks of {walk.block:,}: score, then learn"
    table = make_table(title, ["learner"], ["mean window AUC", "gain", "95 % interval", "alarms", "CPU s"])
    base = None
    for how in track(learner.ways, "covtype in file order", console=Console(stderr=True)):
        model = Estimator(learner.make(**how), classes=(0, 1))
        scores, seconds = scores_along(model, X, y, walk.block)
        aucs, gain, sure = window_aucs(scores, y, walk.window, walk.window)[1:], "", ""
        if base is None:
            base = aucs
        else:
            gain = f"{(aucs - base).mean():+.4f}"
            sure = "{:+.4f} to {:+.4f}".format(*interval(aucs - base, walk.together))
        table.add_row(learner.title(how), f"{aucs.mean():.4f}", gain, sure, str(len(model.alarms)), f"{seconds:,.0f}")
    table.caption = (
        f"windows of {walk.window:,} rows after the first; the interval of the mean paired difference is by a "
        f"bootstrap of blocks of {walk.together} windows"
    )
    return table
