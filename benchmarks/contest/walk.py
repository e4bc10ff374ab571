"""A contestant along a stream: rows are scored, then learned."""

from collections.abc import Callable
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score


class Walk(NamedTuple):
    """Mean AUC and average precision of windows after the first, CPU seconds of learning and of scoring."""

    model: Any
    auc: float
    precision: float
    learning: float
    scoring: float


def walk(make: Callable[[], Any], one_pass: bool, X: Any, y: np.ndarray, window: int) -> Walk:
    """Score and then learn blocks of half a window.

    A model that needs all rows at once is fitted again at the end of each window, on all rows so far.
    """
    model, block, found = make(), window // 2, np.zeros(len(y))
    learning = scoring = 0.0
    for at in range(0, len(y), block):
        rows, began = slice(at, at + block), process_time()
        if at >= window:
            found[rows] = scores(model, X[rows])
        between = process_time()
        if one_pass:
            model.partial_fit(X[rows], y[rows], classes=[0, 1])
        elif (at + block) % window == 0:
            model = make().fit(X[: at + block], y[: at + block])
        learning, scoring = learning + process_time() - between, scoring + between - began
    parts = [slice(at, at + window) for at in range(window, len(y) - window + 1, window)]
    parts = [part for part in parts if 0 < y[part].sum() < window]
    aucs, precisions = ([of(y[part], found[part]) for part in parts] for of in (roc_auc_score, average_precision_score))
    return Walk(model, float(np.mean(aucs)), float(np.mean(precisions)), learning, scoring)


def scores(model: Any, X: Any) -> np.ndarray:
    """Return the scores by which the model ranks rows."""
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(X))
    return np.asarray(model.predict_proba(X)[:, 1])
