"""Draw docs/boosting.png: boosting in one pass along a stream, compared with LightGBM, and the losses that cut it.

PAIRLOOM_DATA=folder python docs/figures/boosting.py [FOLDER]
"""

import os
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier
from sklearn.metrics import roc_auc_score

matplotlib.use("Agg")

from matplotlib import pyplot

from pairloom import Stream
from pairloom.engines.boosting import BLOCK_TREES
from pairloom.models import Boosting

ROWS, TEST_ROWS, SHOWN = 22_000, 10_000, (722, 2040, 5767, 16308)
"""Rows learned, rows for the test, and the ends of the generations whose losses are shown."""


def adult() -> tuple[np.ndarray, np.ndarray]:
    """Return rows of adult in random order, with text as codes."""
    frame = pd.read_csv(Path(os.environ["PAIRLOOM_DATA"]) / "tables" / "adult.csv.xz")
    codes = frame.apply(lambda c: c if pd.api.types.is_numeric_dtype(c) else c.astype("category").cat.codes)
    order = np.random.default_rng(0).permutation(len(codes))
    return codes.to_numpy(np.float32)[order, :-1], codes.to_numpy()[order, -1].astype(int)


def main(folder: Path) -> None:
    """Learn, draw and save."""
    X, y = adult()
    test, truth = X[-TEST_ROWS:], y[-TEST_ROWS:]
    stream, curves, at = Stream(Boosting(seed=0)), {}, []
    areas = {"boosting in one pass": [], "LightGBM, 7 leaves, on the same rows": []}
    for end in [*np.unique(np.geomspace(100, ROWS, 40).astype(int)).tolist(), ROWS]:
        start = stream.n_seen
        for row in (*[r for r in SHOWN if start < r <= end], end):
            stream.partial_fit(X[stream.n_seen : row], y[stream.n_seen : row])
            if row in SHOWN:
                curves[row] = (stream.learned.curve, int(stream.learned.generations[-1].trees.grown[0]))
        at.append(end)
        batch = LGBMClassifier(n_estimators=300, num_leaves=7, learning_rate=0.05, verbose=-1, n_jobs=1)
        scores = stream.score(test), batch.fit(X[:end], y[:end]).predict_proba(test)[:, 1]
        for known, score in zip(areas.values(), scores, strict=True):
            known.append(roc_auc_score(truth, score))
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9.6, 3.8), layout="constrained")
    for (name, values), style in zip(areas.items(), ("-", "--"), strict=True):
        left.plot(at, values, style, label=name)
    left.set(xscale="log", xlabel="rows learned", ylabel="AUC on 10,000 other rows", ylim=(0.8, 0.93))
    left.legend(loc="lower right")
    for row, (curve, kept) in curves.items():
        loss = -np.cumsum(curve.drops[0] / np.maximum(curve.mass[0], 1e-300))
        loss = np.where(curve.mass[0] > 0, loss, np.nan)
        trees = BLOCK_TREES * np.arange(1, len(loss) + 1)
        line = right.plot(trees, loss, label=f"up to row {row:,}, {curve.max_leaves} leaves")[0]
        right.plot(kept, loss[kept // BLOCK_TREES - 1], "o", color=line.get_color())
    right.set(xlabel="trees", ylabel="change of the loss of arriving rows")
    right.legend()
    figure.savefig(folder / "boosting.png", dpi=100)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent)
