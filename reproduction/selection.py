"""Select the settings of a system inside an outer training part, for each output, sharing passes if possible."""

import json
import warnings
from collections.abc import Sequence
from itertools import groupby
from time import process_time
from typing import Any

import numpy as np

from pairloom.stream import StabilityWarning
from reproduction.cells import Cell, Record, Settings, Task
from reproduction.column import Column
from reproduction.columns import column_of
from reproduction.learning import Output, aucs, side_by_side, start
from reproduction.problems import Protocol, Shape, Split, shape_of, split_of
from reproduction.sources import title_of

SHARED = ("alpha", "eta")
"""Settings in which the models of one pass may differ."""

PENALTIES = ("alpha", "l1", "theta")
"""Settings whose low end is no edge: less than the smallest penalty is none, and so is less than theta = 0."""

OutputAUC = dict[Output, float]
Grid = dict[str, list[Any]]
"""Values of the parameters of a class of yours."""


def aucs_of_grid(column: Column, shape: Shape, grid: list[Settings], split: Split, seed: int) -> list[OutputAUC]:
    """Return the test AUCs of each of the settings; 0 if the scores of a model are not finite."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StabilityWarning)  # some steps of the grid are too long
        if column.one_pass:
            return _together(column, shape, grid, split, seed)
        return [_alone(column.make(shape, settings, seed), split) for settings in grid]


def _together(column: Column, shape: Shape, grid: list[Settings], split: Split, seed: int) -> list[OutputAUC]:
    """Return test AUCs from one pass for all settings that differ only in step and penalty."""
    found: list[OutputAUC] = []
    for _, group in groupby(grid, key=lambda one: [one[name] for name in one if name not in SHARED]):
        made = [column.make(shape, settings, seed) for settings in group]
        models = [one.to_model() if hasattr(one, "to_model") else one for one in made]
        found += [aucs(split.y_test, one) for one in side_by_side(models, split.X, split.y, split.X_test)]
    return found


def _alone(made: Any, split: Split) -> OutputAUC:
    run = start(made, len(split.y))
    run.learn(split.X, split.y)
    return aucs(split.y_test, run.scores(split.X_test))


def best(column: Column, grid: list[Settings], split: Split, protocol: Protocol) -> Record:
    """Return the settings with the highest mean AUC over inner folds of the first rows of ``split``, by output.

    The columns of the last iterate end in ``_last``; they are missing for a system with one output.
    """
    shape, began = split.shape, process_time()
    rows = split.first(column.n_tuned(shape, protocol))
    inner = [part.seen_as(column.view) for part in rows.inner(protocol.selection_folds, protocol.seed)]
    found = [aucs_of_grid(column, shape, grid, part, protocol.seed) for part in inner]
    record: Record = {"n_settings": len(grid), "rows": len(rows.y), "seconds": process_time() - began}
    for output in found[0][0]:
        mean = np.mean([[one[output] for one in part] for part in found], axis=0)
        ending, settings = "_last" if output == "last" else "", grid[int(mean.argmax())]
        record |= {
            f"settings{ending}": json.dumps(settings), f"auc{ending}": float(mean.max()),
            f"edges{ending}": "; ".join(edges(grid, settings)),
        }  # fmt: skip
    return record


def edges(grid: Sequence[Settings], settings: Settings) -> list[str]:
    """Return the settings that are the lowest or the highest of their values.

    >>> edges([{"eta": eta} for eta in (1.0, 2.0, 4.0)], {"eta": 4.0})
    ['eta high']
    """
    found = []
    for name, chosen in settings.items():
        values = sorted({one[name] for one in grid if isinstance(one.get(name), (int, float))})
        if len(values) > 1 and chosen in (values[0], values[-1]):
            side = "low" if chosen == values[0] else "high"
            found += [] if side == "low" and name in PENALTIES else [f"{name} {side}"]
    return found


def select(dataset: str, system: str, fold: int, protocol: Protocol, grid: Grid) -> list[Record]:
    """Select the settings of a system on an outer training part."""
    split = split_of(dataset, fold, protocol.folds, protocol.seed, protocol.limit(dataset))
    column = column_of(system, grid)
    return [best(column, column.grid(split.shape, protocol), split, protocol)]


def selection_task(dataset: str, system: str, fold: int, protocol: Protocol, own: Grid) -> Task | None:
    """Return the task that selects the settings of a system; None if it has nothing to tune."""
    column, shape = column_of(system, own), shape_of(dataset, protocol.folds, protocol.limit(dataset))
    grid = column.grid(shape, protocol)
    if not grid or column.left_out(shape):
        return None
    passes = len(grid) / 16 if column.one_pass else len(grid)
    guess = passes * (protocol.selection_folds - 1) * column.n_tuned(shape, protocol) * column.micros(shape) / 1e6
    arguments = {"dataset": dataset, "system": system, "fold": fold, "protocol": protocol, "grid": own}
    return Task(Cell("selection", title_of(dataset), system, fold=fold), select, arguments, 0.5 + guess)
