"""Whether scores given at different times can be compared: log-odds and raw scores where the base rate moves.

PAIRLOOM_DATA=folder python benchmarks/scores_over_time.py [--toy]

AUCClassifier on tables in their own order: bank without ``duration``, elec and weather. Each block of 500 rows is
scored, then learned. "log-odds" are what ``score_many`` returns; "one slope" the same, but with one slope for the
newest 4,096 scores instead of that inside windows; "raw scores" those of the mixture. AUC of the rows after the first
5,000: mean of windows of 5,000 rows, inside which scores are given close together, and of all these rows, which
compares scores over the whole stream.
"""

from unittest.mock import patch

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from scipy.special import expit
from sklearn.metrics import log_loss, roc_auc_score
from threadpoolctl import threadpool_limits

from common.script import make_parser, make_table, require_data
from contest.tables import made_table, read_table
from pairloom import AUCClassifier
from pairloom.stream import calibration

KINDS = ("log-odds", "log-odds, one slope", "raw scores")
PARTS = 15


def scores_along(frame: pd.DataFrame, y: np.ndarray, block: int) -> tuple[np.ndarray, np.ndarray]:
    """Return log-odds and raw scores of each row before it was learned; 0 in the first block."""
    model, odds, raw = AUCClassifier(random_state=0), np.zeros(len(y)), np.zeros(len(y))
    for start in range(0, len(y), block):
        rows = slice(start, start + block)
        if start:
            (a, b), sign = model.calibration_[0], model._labels.sign
            odds[rows] = model.score_many(frame[rows])
            raw[rows] = (odds[rows] - sign * b) / a
        model.partial_fit(frame[rows], y[rows], classes=[0, 1])
    return odds, raw


def scores_of_each_kind(frame: pd.DataFrame, y: np.ndarray, block: int) -> np.ndarray:
    """Return scores (rows, kinds); the calibration changes no model, so that both have the same raw scores."""
    odds, raw = scores_along(frame, y, block)
    with patch.object(calibration, "windows_of", lambda positive: np.zeros(1, np.int64)):
        return np.column_stack([odds, scores_along(frame, y, block)[0], raw])


def mean_window_auc(y: np.ndarray, scores: np.ndarray, window: int) -> float:
    starts = range(0, len(y) - window + 1, window)
    return float(np.mean([roc_auc_score(y[at : at + window], scores[at : at + window]) for at in starts]))


def table_of_windows(name: str, y: np.ndarray, scores: np.ndarray) -> Table:
    """Tabulate AUC in a fifteenth of the rows each."""
    size = len(y) // PARTS
    table = make_table(f"{name}: AUC of windows of {size:,} rows", ["rows"], ["positives", *KINDS])
    for at in range(size, PARTS * size, size):
        rows = slice(at, at + size)
        areas = (roc_auc_score(y[rows], scores[rows, k]) for k in range(len(KINDS)))
        table.add_row(f"{at:,} to {at + size:,}", f"{y[rows].mean():.1%}", *(f"{area:.3f}" for area in areas))
    return table


def main() -> None:
    toy = make_parser(__doc__).parse_args().toy
    if not toy:
        require_data("tables/*.csv.xz")
    block, window, console = (50, 60, Console(width=120)) if toy else (500, 5_000, Console(width=120))
    table = make_table(
        "Scores over time", ["stream", "scores"], ["mean window AUC", "AUC of all rows", "log-loss"]
    )  # fmt: skip
    windows = []
    with threadpool_limits(1):
        for name in ("toy",) if toy else ("bank", "elec", "weather"):
            frame, y = made_table() if toy else read_table(name)
            scores = scores_of_each_kind(frame.drop(columns="duration", errors="ignore"), y, block)
            late, found = y[window:], scores[window:]
            for k, kind in enumerate(KINDS):
                areas = mean_window_auc(late, found[:, k], window), roc_auc_score(late, found[:, k])
                loss = f"{log_loss(late, expit(found[:, k])):.4f}" if kind != "raw scores" else ""
                table.add_row("" if k else name, kind, *(f"{area:.4f}" for area in areas), loss)
            windows.append(table_of_windows(name, y, scores))
    console.print(table)
    console.print(windows[0])


if __name__ == "__main__":
    main()
