"""The contenders of `benchmarks/payments.py`: each scores the rows of a stream before it learns them."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from contest.tables import one_hot
from pairloom import AUCClassifier

UNUSED = ["payment_id", "note"]
"""Columns that the other systems cannot use as they are."""


@dataclass(frozen=True)
class Stream:
    """Rows and labels in order; ``probability``: with which the labels were drawn; ``change``: row of a change."""

    name: str
    frame: pd.DataFrame
    y: np.ndarray
    window: int
    probability: np.ndarray | None = None
    change: int | None = None


@dataclass(frozen=True)
class Size:
    """Rows of a block that is scored and then learned, and between two trainings; ``last``: newest rows for one."""

    block: int = 500
    every: int = 5_000
    last: int = 10_000


@dataclass(frozen=True)
class Run:
    """Scores on arrival; alerts and alarms where the system has them."""

    scores: np.ndarray
    micros: float = 0.0
    flags: np.ndarray | None = None
    alarms: list[int] = field(default_factory=list)


def ours(stream: Stream, size: Size) -> Run:
    """AUCClassifier on the raw frame, with an alert budget of 1 %."""
    n = len(stream.y)
    model, scores, flags = AUCClassifier(random_state=0), np.zeros(n), np.zeros(n, bool)
    for start in range(0, n, size.block):
        rows = slice(start, start + size.block)
        if start:
            scores[rows] = model.score_many(stream.frame[rows])
            flags[rows] = model.alert_budget(rate=0.01)(scores[rows])
        model.partial_fit(stream.frame[rows], stream.y[rows], classes=[0, 1])
    return Run(scores, flags=flags, alarms=model.changes_)


def retrained(make: Callable[[], Any], prepare: Callable[[pd.DataFrame], pd.DataFrame], short: bool) -> Any:
    """Return a contender that is trained again now and then, on all rows so far or (``short``) on the last ones."""

    def run(stream: Stream, size: Size) -> Run:
        frame, scores = prepare(stream.frame), np.zeros(len(stream.y))
        for now in range(size.every, len(stream.y), size.every):
            past, new = slice(max(0, now - size.last) if short else 0, now), slice(now, now + size.every)
            scores[new] = make().fit(frame[past], stream.y[past]).predict_proba(frame[new])[:, 1]
        return Run(scores)

    return run


def boosting() -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_estimators=300, num_leaves=7, learning_rate=0.05, n_jobs=1, verbose=-1)


def logistic() -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    return make_pipeline(one_hot(), LogisticRegression(max_iter=1000))


def by_hand(frame: pd.DataFrame) -> pd.DataFrame:
    """Replace dates by the hour and the weekday, and leave out ids and free text."""
    made = frame.drop(columns=[name for name in UNUSED if name in frame])
    for name in made.select_dtypes("datetime").columns:
        when = made.pop(name).dt
        made = made.assign(hour=when.hour + when.minute / 60, weekday=when.day_of_week)
    return made


def with_categories(frame: pd.DataFrame) -> pd.DataFrame:
    made = by_hand(frame)
    return made.astype(dict.fromkeys(made.select_dtypes(exclude="number").columns, "category"))


def truth(stream: Stream, size: Size) -> Run:
    """The probabilities that the labels were drawn with."""
    assert stream.probability is not None
    return Run(stream.probability)


CONTENDERS: dict[str, Callable[[Stream, Size], Run]] = {
    "AUCClassifier": ours,
    "LightGBM, all rows": retrained(boosting, with_categories, short=False),
    "LightGBM, last 10,000": retrained(boosting, with_categories, short=True),
    "logistic regression": retrained(logistic, by_hand, short=False),
    "truth": truth,
}


def timed(contender: Callable[[Stream, Size], Run], stream: Stream, size: Size) -> Run:
    """Run a contender, with its CPU microseconds per row."""
    began = time.process_time()
    run = contender(stream, size)
    return Run(run.scores, 1e6 * (time.process_time() - began) / len(stream.y), run.flags, run.alarms)
