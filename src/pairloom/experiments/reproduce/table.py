"""The AUC table: every system on every set, five folds, with the settings that were selected."""

import json
from dataclasses import dataclass
from time import process_time
from typing import Any

from sklearn.metrics import roc_auc_score

from pairloom.experiments.reproduce.cells import Cell, Record, Settings, Task
from pairloom.experiments.reproduce.columns import COLUMNS, Column, Protocol
from pairloom.experiments.reproduce.config import read
from pairloom.experiments.reproduce.problems import Split, shape_of, source_of, split_of
from pairloom.experiments.reproduce.selection import scores, selection_task

WARM_ROWS = 1200
"""That a model learns before the clock is started: neither compiled code nor packages are loaded on the clock."""


@dataclass(frozen=True)
class TableConfig:
    """See ``configs/table.toml``."""

    datasets: tuple[str, ...]
    systems: tuple[str, ...]


def run_fold(
    dataset: str, system: str, fold: int, protocol: Protocol, settings: Settings | None = None
) -> list[Record]:
    """One fold of one system."""
    split = split_of(dataset, fold, protocol.folds, protocol.seed)
    return [{**learn_fold(COLUMNS[system], split, settings or {}, protocol), "note": note(dataset)}]


def learn_fold(column: Column, split: Split, settings: Settings, protocol: Protocol) -> Record:
    """Learn the training part of a fold once, in order, and score its test part; the clock is for learning alone."""
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
    """The record of a system that does not take part."""
    return [{"note": "; ".join(part for part in (note(dataset), f"left out: {why}") if part)}]


def note(dataset: str) -> str:
    """Which other set was read, if one was."""
    source = source_of(dataset)
    return "" if source == dataset else f"stand-in: {source}"


def warm_up(model: Any, rows: Split) -> None:
    """Load what learning and scoring need."""
    few = rows.first(WARM_ROWS, 10)
    scores(model.fit(few.X, few.y), few.X_test)


@dataclass(frozen=True)
class Table:
    """The experiment."""

    name: str = "table"

    def tasks(self, quick: bool, datasets: tuple[str, ...] | None) -> list[Task]:
        """All folds of all systems, after their selection."""
        config, protocol = read(self.name, TableConfig, quick), read("protocol", Protocol, quick)
        return [task for dataset in datasets or config.datasets for system in config.systems
                for task in self._tasks(dataset, system, protocol)]  # fmt: skip

    def _tasks(self, dataset: str, system: str, protocol: Protocol) -> list[Task]:
        column, shape = COLUMNS[system], shape_of(dataset, protocol.folds)
        why = column.left_out(shape)
        if why:
            return [Task(Cell(self.name, dataset, system), leave_out, {"dataset": dataset, "why": why}, 0.1)]
        selection = selection_task(dataset, system, protocol)
        guess = 0.5 + column.n_learned(shape, protocol) * column.micros(shape) / 1e6
        made = [
            Task(
                Cell(self.name, dataset, system, fold=fold), run_fold,
                {"dataset": dataset, "system": system, "fold": fold, "protocol": protocol}, guess,
                after=None if selection is None else selection.cell,
            )
            for fold in range(protocol.folds)
        ]  # fmt: skip
        return made if selection is None else [selection, *made]
