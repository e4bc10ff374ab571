"""Selection: the best settings of a system by inner cross-validation, as many of them in one pass as share one."""

import json
import warnings
from itertools import groupby
from time import process_time
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from pairloom import Grid, StabilityWarning, Stream
from pairloom.base.typing import Array
from pairloom.estimators.classifier import PairwiseClassifier
from pairloom.experiments.reproduce.cells import Cell, Record, Settings, Task
from pairloom.experiments.reproduce.columns import COLUMNS, Column, Protocol
from pairloom.experiments.reproduce.problems import Shape, Split, shape_of, split_of

SHARED = ("alpha", "eta")
"""Settings in which models of one pass may differ."""


def scores(model: Any, X: Any) -> Array:
    """What a fitted model ranks rows by."""
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(X))
    return np.asarray(model.predict_proba(X)[:, 1])


def aucs(column: Column, shape: Shape, grid: list[Settings], split: Split, seed: int) -> list[float]:
    """Test AUC of each of the settings; 0 for a model whose scores are no numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StabilityWarning)  # some steps are too long on purpose
        if column.one_pass:
            return _side_by_side(column, shape, grid, split, seed)
        models = [column.make(shape, settings, seed) for settings in grid]
        return [_auc(split.y_test, _alone(model, split)) for model in models]


def _side_by_side(column: Column, shape: Shape, grid: list[Settings], split: Split, seed: int) -> list[float]:
    """Settings that differ in step and penalty alone, one pass for all."""
    found: list[float] = []
    for _, group in groupby(grid, key=lambda one: [one[name] for name in one if name not in SHARED]):
        models = [column.make(shape, settings, seed) for settings in group]
        together = Stream(Grid(model.to_model() for model in models)).partial_fit(split.X, split.y)
        found += [_auc(split.y_test, one) for one in together.score(split.X_test).T]
    return found


def _alone(model: PairwiseClassifier, split: Split) -> Array:
    """Test scores; no time is spent on calibration, which changes no ranking."""
    if model.needs_all_rows:
        return scores(model.fit(split.X, split.y), split.X_test)
    return Stream(model.to_model()).partial_fit(split.X, split.y).score(split.X_test)


def _auc(y: Array, given: Array) -> float:
    return float(roc_auc_score(y, given)) if np.isfinite(given).all() else 0.0


def best(column: Column, shape: Shape, split: Split, protocol: Protocol) -> Record:
    """The settings with the highest mean AUC over inner folds of the first rows of ``split``."""
    grid, began = column.grid(shape, protocol), process_time()
    rows = split.first(column.n_tuned(shape, protocol))
    inner = [part.seen_as(column.view) for part in rows.inner(protocol.selection_folds, protocol.seed)]
    mean = np.mean([aucs(column, shape, grid, part, protocol.seed) for part in inner], axis=0)
    return {
        "settings": json.dumps(grid[int(mean.argmax())]), "auc": float(mean.max()), "n_settings": len(grid),
        "rows": len(rows.y), "seconds": process_time() - began,
    }  # fmt: skip


def select(dataset: str, system: str, protocol: Protocol) -> list[Record]:
    """What a selection task runs: on the first outer training part."""
    split = split_of(dataset, 0, protocol.folds, protocol.seed)
    return [best(COLUMNS[system], split.shape, split, protocol)]


def selection_task(dataset: str, system: str, protocol: Protocol) -> Task | None:
    """The task that a system's settings come from; None if it has nothing to tune."""
    column, shape = COLUMNS[system], shape_of(dataset, protocol.folds)
    grid = column.grid(shape, protocol)
    if not grid or column.left_out(shape):
        return None
    passes = len(grid) / 16 if column.one_pass else len(grid)
    guess = passes * protocol.selection_folds * column.n_tuned(shape, protocol) * column.micros(shape) / 1e6
    arguments = {"dataset": dataset, "system": system, "protocol": protocol}
    return Task(Cell("selection", dataset, system), select, arguments, 0.5 + guess)
