"""Select the settings of a system by inner cross-validation, sharing passes if possible."""

import json
import warnings
from itertools import groupby
from time import process_time
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from pairloom import Grid, Stream
from pairloom.estimators import PairwiseClassifier
from pairloom.stream import StabilityWarning
from reproduction.cells import Array, Cell, Record, Settings, Task
from reproduction.columns import COLUMNS, Column
from reproduction.problems import Protocol, Shape, Split, shape_of, split_of

SHARED = ("alpha", "eta")
"""Settings in which the models of one pass may differ."""


def scores(model: Any, X: Any) -> Array:
    """Return the scores by which a fitted model ranks rows."""
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(X))
    return np.asarray(model.predict_proba(X)[:, 1])


def aucs(column: Column, shape: Shape, grid: list[Settings], split: Split, seed: int) -> list[float]:
    """Return the test AUC of each of the settings; 0 if the scores of a model are not finite."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StabilityWarning)  # some steps of the grid are too long
        if column.one_pass:
            return _side_by_side(column, shape, grid, split, seed)
        models = [column.make(shape, settings, seed) for settings in grid]
        return [_auc(split.y_test, _alone(model, split)) for model in models]


def _side_by_side(column: Column, shape: Shape, grid: list[Settings], split: Split, seed: int) -> list[float]:
    """Return test AUCs from one pass for all settings that differ only in step and penalty."""
    found: list[float] = []
    for _, group in groupby(grid, key=lambda one: [one[name] for name in one if name not in SHARED]):
        models = [column.make(shape, settings, seed) for settings in group]
        together = Stream(Grid(model.to_model() for model in models)).partial_fit(split.X, split.y)
        found += [_auc(split.y_test, one) for one in together.score(split.X_test).T]
    return found


def _alone(model: PairwiseClassifier, split: Split) -> Array:
    """Return the test scores of one model, without calibration, which does not change the ranking."""
    if model.needs_all_rows:
        return scores(model.fit(split.X, split.y), split.X_test)
    return Stream(model.to_model()).partial_fit(split.X, split.y).score(split.X_test)


def _auc(y: Array, given: Array) -> float:
    return float(roc_auc_score(y, given)) if np.isfinite(given).all() else 0.0


def best(column: Column, shape: Shape, split: Split, protocol: Protocol) -> Record:
    """Return the settings with the highest mean AUC over inner folds of the first rows of ``split``."""
    grid, began = column.grid(shape, protocol), process_time()
    rows = split.first(column.n_tuned(shape, protocol))
    inner = [part.seen_as(column.view) for part in rows.inner(protocol.selection_folds, protocol.seed)]
    mean = np.mean([aucs(column, shape, grid, part, protocol.seed) for part in inner], axis=0)
    return {
        "settings": json.dumps(grid[int(mean.argmax())]), "auc": float(mean.max()), "n_settings": len(grid),
        "rows": len(rows.y), "seconds": process_time() - began,
    }  # fmt: skip


def select(dataset: str, system: str, protocol: Protocol) -> list[Record]:
    """Select the settings of a system on the first outer training part."""
    split = split_of(dataset, 0, protocol.folds, protocol.seed)
    return [best(COLUMNS[system], split.shape, split, protocol)]


def selection_task(dataset: str, system: str, protocol: Protocol) -> Task | None:
    """Return the task that selects the settings of a system; None if it has nothing to tune."""
    column, shape = COLUMNS[system], shape_of(dataset, protocol.folds)
    grid = column.grid(shape, protocol)
    if not grid or column.left_out(shape):
        return None
    passes = len(grid) / 16 if column.one_pass else len(grid)
    guess = passes * protocol.selection_folds * column.n_tuned(shape, protocol) * column.micros(shape) / 1e6
    arguments = {"dataset": dataset, "system": system, "protocol": protocol}
    return Task(Cell("selection", dataset, system), select, arguments, 0.5 + guess)
