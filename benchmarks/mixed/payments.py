"""The fraud-like stream, block by block: each block is scored, then learned."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from rich.table import Table
from sklearn.metrics import roc_auc_score

from changes.recovery import scores_along
from common.script import make_table
from mixed.speed import dicts
from pairloom import AUCClassifier
from pairloom.data import fraud_like

TEXTS = ["channel", "country", "merchant", "device"]


@dataclass(frozen=True)
class Size:
    """``rows`` of the stream, of a ``block``, of a window of AUC (``every``), and the maximum for ARF (``slow_rows``).

    ``positive``: the share of fraud.
    """

    rows: int = 100_000
    block: int = 1_000
    every: int = 10_000
    slow_rows: int = 20_000
    positive: float = 0.01


class Ours:
    """AUCClassifier on raw data frames."""

    def __init__(self, size: Size) -> None:
        self.model: Any = AUCClassifier(random_state=0)

    def score(self, frame: pd.DataFrame) -> np.ndarray:
        return np.asarray(self.model.decision_function(frame))

    def learn(self, frame: pd.DataFrame, y: np.ndarray) -> None:
        self.model.partial_fit(frame, y, classes=[0, 1])


class River:
    """A river model on mappings, with the hour and the weekday instead of the date."""

    def __init__(self, model: Any, whole: bool) -> None:
        self.model, self.whole = model, whole

    def rows(self, frame: pd.DataFrame) -> list[dict[str, Any]]:
        """Return rows as mappings: for trees without missing values, for others with None and "missing"."""
        rows = dicts(by_hand(frame))
        if not self.whole:
            return [{name: value for name, value in row.items() if value is not None} for row in rows]
        return [row | {name: row[name] or "missing" for name in TEXTS} for row in rows]

    def score(self, frame: pd.DataFrame) -> np.ndarray:
        return np.array([self.model.predict_proba_one(row).get(1, 0.0) for row in self.rows(frame)])

    def learn(self, frame: pd.DataFrame, y: np.ndarray) -> None:
        for row, label in zip(self.rows(frame), y.tolist(), strict=True):
            self.model.learn_one(row, label)


class Retrained:
    """LightGBM with categorical columns, retrained on all rows so far or on the ``last`` ones."""

    def __init__(self, size: Size, last: int | None = None) -> None:
        self.every, self.last, self.n_seen, self.model = size.every, last, 0, None
        self.frames: list[pd.DataFrame] = []
        self.labels: list[np.ndarray] = []
        self.types: dict[str, Any] = {}

    def score(self, frame: pd.DataFrame) -> np.ndarray:
        if self.model is None:
            return np.zeros(len(frame))
        return np.asarray(self.model.predict_proba(by_hand(frame).astype(self.types))[:, 1])

    def learn(self, frame: pd.DataFrame, y: np.ndarray) -> None:
        from lightgbm import LGBMClassifier

        self.frames.append(by_hand(frame))
        self.labels.append(y)
        self.n_seen += len(y)
        if self.n_seen % self.every == 0:
            start = 0 if self.last is None else -self.last
            whole, labels = pd.concat(self.frames)[start:], np.concatenate(self.labels)[start:]
            self.frames, self.labels = [whole], [labels]
            self.types = {name: pd.CategoricalDtype(sorted(whole[name].dropna().unique())) for name in TEXTS}
            made = LGBMClassifier(n_estimators=100, num_leaves=15, min_child_samples=50, n_jobs=1, verbose=-1)
            self.model = made.fit(whole.astype(self.types), labels)


def by_hand(frame: pd.DataFrame) -> pd.DataFrame:
    """Replace the date by the hour and the weekday."""
    time = frame["time"].dt
    return frame.drop(columns="time").assign(hour=time.hour + time.minute / 60, weekday=time.weekday)


def river_forest(size: Size) -> River:
    from river.forest import ARFClassifier

    return River(ARFClassifier(seed=0), whole=False)


def river_logistic(size: Size) -> River:
    from river import compose, linear_model, preprocessing, stats

    numbers = [name for name in by_hand(pd.DataFrame(fraud_like(2)[0])) if name not in TEXTS]
    filled = compose.Select(*numbers) | preprocessing.StatImputer(*((name, stats.Mean()) for name in numbers))
    union = (filled | preprocessing.StandardScaler()) + (compose.Select(*TEXTS) | preprocessing.OneHotEncoder())
    return River(union | linear_model.LogisticRegression(), whole=True)


CONTESTANTS: dict[str, Callable[[Size], Any]] = {
    "AUCClassifier, raw frames": Ours,
    "LightGBM, retrained": Retrained,
    "river logistic": river_logistic,
    "river ARF": river_forest,
}


def windows(scores: np.ndarray, y: np.ndarray, size: Size) -> np.ndarray:
    """Return the AUC of each window after the first, in which LightGBM is not trained yet."""
    cuts = range(size.every, len(scores), size.every)
    return np.array([roc_auc_score(y[at : at + size.every], scores[at : at + size.every]) for at in cuts])


def table_of_payments(size: Size, drift: float) -> Table:
    columns, y = fraud_like(size.rows, positive=size.positive, drift=drift)
    frame, ours, base = pd.DataFrame(columns), np.zeros(0), 0.0
    title = f"fraud_like({size.rows:,}, drift={drift:g}), blocks of {size.block:,}: score, then learn"
    headings = ["rows", "mean window AUC", "ours, same rows", "last window", "CPU s", "µs per row", "times ours"]
    table = make_table(title, ["system"], headings)
    for name, make in CONTESTANTS.items():
        n = min(size.rows, size.slow_rows) if name == "river ARF" else size.rows
        scores, spent = scores_along(make(size), frame[:n], y[:n], size.block)
        aucs, micros = windows(scores, y[:n], size), 1e6 * spent / n
        if not len(ours):
            ours, base = aucs, micros
        cells = [aucs.mean(), ours[: len(aucs)].mean(), aucs[-1]]
        table.add_row(name, f"{n:,}", *(f"{auc:.4f}" for auc in cells), f"{spent:,.1f}", f"{micros:,.0f}",
                      f"{micros / base:.2f}")  # fmt: skip
    table.caption = (
        f"windows of {size.every:,} rows after the first; LightGBM is retrained on all rows so far at the end of "
        f"each; river ARF is slow and learns the first {min(size.rows, size.slow_rows):,} rows only"
    )
    return table
