"""The AUC table: every system on every data set, five folds, with selected settings."""

import json
from dataclasses import dataclass
from time import process_time
from typing import Any

from sklearn.metrics import roc_auc_score

from reproduction.cells import Cell, Record, Settings, Task
from reproduction.columns import COLUMNS, Column
from reproduction.config import read
from reproduction.problems import Protocol, Split, shape_of, source_of, split_of
from reproduction.selection import scores, selection_task

NAME = "table"

WARM_ROWS = 1200
"""Number of rows learned before timing starts, so that loading compiled code and packages is not timed."""


@dataclass(frozen=True)
class TableConfig:
    """See ``configs/table.toml``."""

    datasets: tuple[str, ...]
    systems: tuple[str, ...]


def tasks(quick: bool, datasets: tuple[str, ...] | None) -> list[Task]:
    """Return the tasks: all folds of all systems, after their selection."""
    config, protocol = read(NAME, TableConfig, quick), read("protocol", Protocol, quick)
    return [task for dataset in datasets or config.datasets for system in config.systems
            for task in _tasks(dataset, system, protocol)]  # fmt: skip


def _tasks(dataset: str, system: str, protocol: Protocol) -> list[Task]:
    column, shape = COLUMNS[system], shape_of(dataset, protocol.folds)
    why = column.left_out(shape)
    if why:
        return [Task(Cell(NAME, dataset, system), leave_out, {"dataset": dataset, "why": why}, 0.1)]
    selection = selection_task(dataset, system, protocol)
    guess = 0.5 + column.n_learned(shape, protocol) * column.micros(shape) / 1e6
    made = [
        Task(
            Cell(NAME, dataset, system, fold=fold), run_fold,
            {"dataset": dataset, "system": system, "fold": fold, "protocol": protocol}, guess,
            after=None if selection is None else selection.cell,
        )
        for fold in range(protocol.folds)
    ]  # fmt: skip
    return made if selection is None else [selection, *made]


def run_fold(
    dataset: str, system: str, fold: int, protocol: Protocol, settings: Settings | None = None
) -> list[Record]:
    """Run one fold of one system."""
    split = split_of(dataset, fold, protocol.folds, protocol.seed)
    return [{**learn_fold(COLUMNS[system], split, settings or {}, protocol), "note": note(dataset)}]


def learn_fold(column: Column, split: Split, settings: Settings, protocol: Protocol) -> Record:
    """Learn the training part of a fold once, in order, and score its test part; only learning is timed."""
    shape = split.shape
    rows = split.first(column.n_learned(shape, protocol)).seen_as(column.view)
    model = column.make(shape, settings, protocol.seed)
    warm_up(column.make(shape, settings, protocol.seed), rows)
    began = process_time()
    model.fit(rows.X, rows.y)
    seconds = process_time() - began
    return {
        "auc": float(roc_auc_score(rows.y_test, scores(model, rows.X_test))), "seconds": seconds,
        "rows": len(rows.y), "n_train": len(split.y), "n_test": len(split.y_test), "settings": json.dumps(settings),
    }  # fmt: skip


def leave_out(dataset: str, why: str) -> list[Record]:
    """Return the record of a system that is skipped."""
    return [{"note": "; ".join(part for part in (note(dataset), f"left out: {why}") if part)}]


def note(dataset: str) -> str:
    """Return a note on the stand-in that was read, if any."""
    source = source_of(dataset)
    return "" if source == dataset else f"stand-in: {source}"


def warm_up(model: Any, rows: Split) -> None:
    """Load all code for learning and scoring."""
    few = rows.first(WARM_ROWS, 10)
    scores(model.fit(few.X, few.y), few.X_test)
