"""Simulated payments with rare fraud, block by block: AUCClassifier on raw data frames, and LightGBM, retrained.

PAIRLOOM_DATA=folder python benchmarks/payments.py [--seeds N ...] [--change none|sudden|slow] [--toy]

60,000 rows for each seed, 0.7 % fraud, with heavy-tailed amounts, text, a date, missing values, an id and free text;
the generator is streams/payments.py beside PAIRLOOM_DATA. Each block of 500 rows is scored, then learned. LightGBM (300
trees of 7 leaves, rate 0.05) is trained on all rows so far at every 5,000th row, with the hour and the weekday instead
of the date, and without the id and the text. AUC: mean over windows of 5,000 rows after the first, and of all their
rows together. "truth" is the AUC of the probabilities that the labels were drawn with.
"""

import os
import runpy
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from common.script import make_parser, make_table, require_data
from pairloom import AUCClassifier
from pairloom.data import fraud_like

Stream = tuple[pd.DataFrame, np.ndarray, np.ndarray]
UNUSED = ["payment_id", "note"]


def streams(seeds: list[int], change: str, *, toy: bool) -> Iterator[Stream]:
    """Yield rows, labels and true probabilities of each stream."""
    if toy:
        columns, y = fraud_like(600, positive=0.3)
        yield pd.DataFrame(columns), y, y.astype(float)
        return
    generator = runpy.run_path(str(Path(os.environ["PAIRLOOM_DATA"]).parent / "streams" / "payments.py"))["payments"]
    for seed in seeds:
        yield generator(seed, change=None if change == "none" else change)


def ours(frame: pd.DataFrame, y: np.ndarray, window: int) -> np.ndarray:
    """Return the scores of AUCClassifier, block by block."""
    model, scores, block = AUCClassifier(random_state=0), np.zeros(len(y)), window // 10
    for start in range(0, len(y), block):
        rows = slice(start, start + block)
        if start:
            scores[rows] = model.score_many(frame[rows])
        model.partial_fit(frame[rows], y[rows], classes=[0, 1])
    return scores


def retrained(frame: pd.DataFrame, y: np.ndarray, window: int) -> np.ndarray:
    """Return the scores of LightGBM, trained again on all rows so far at the end of each window."""
    from lightgbm import LGBMClassifier

    (date,) = frame.select_dtypes("datetime").columns
    when = frame[date].dt
    made = frame.drop(columns=[date, *(name for name in UNUSED if name in frame)])
    made = made.assign(hour=when.hour + when.minute / 60, weekday=when.day_of_week)
    text = made.select_dtypes(exclude="number").columns
    made = made.astype(dict.fromkeys(text, "category"))
    scores = np.zeros(len(y))
    for start in range(window, len(y), window):
        model = LGBMClassifier(n_estimators=300, num_leaves=7, learning_rate=0.05, n_jobs=1, verbose=-1)
        model.fit(made[:start], y[:start])
        scores[start : start + window] = model.predict_proba(made[start : start + window])[:, 1]
    return scores


def known(probability: np.ndarray, frame: pd.DataFrame, y: np.ndarray, window: int) -> np.ndarray:
    """Return the true probabilities."""
    return probability


def areas(scores: np.ndarray, y: np.ndarray, window: int) -> tuple[float, float]:
    """Return the mean AUC of the windows after the first, and the AUC of all their rows."""
    cuts = [slice(start, start + window) for start in range(window, len(y), window)]
    each = [roc_auc_score(y[cut], scores[cut]) for cut in cuts]
    return float(np.mean(each)), float(roc_auc_score(y[window:], scores[window:]))


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(10, 20)), help="default: 10 to 19")
    parser.add_argument("--change", choices=["none", "sudden", "slow"], default="none", help="of the generator")
    options = parser.parse_args()
    if not options.toy:
        require_data("data sets, next to the folder streams")
    window = 200 if options.toy else 5_000
    found: dict[str, list[Any]] = {}
    with threadpool_limits(1):
        for frame, y, probability in streams(options.seeds, options.change, toy=options.toy):
            contestants = {
                "AUCClassifier": ours,
                "LightGBM, retrained": retrained,
                "truth": partial(known, probability),
            }
            for name, score in contestants.items():
                began = time.process_time()
                scores = score(frame, y, window)
                spent = 1e6 * (time.process_time() - began) / len(y)
                found.setdefault(name, []).append((*areas(scores, y, window), spent))
    table = make_table(f"payments, change={options.change}", ["system"], ["window AUC", "s.e.", "AUC", "µs per row"])
    for name, rows in found.items():
        window_auc, auc, micros = np.mean(rows, axis=0)
        error = np.std([row[0] for row in rows], ddof=min(1, len(rows) - 1)) / len(rows) ** 0.5
        table.add_row(name, f"{window_auc:.4f}", f"{error:.4f}", f"{auc:.4f}", f"{micros:,.0f}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
