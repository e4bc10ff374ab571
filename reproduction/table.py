"""The AUC table: every system on every data set, in five folds with two seeds each, tuned inside each fold."""

import json
from dataclasses import dataclass, field, replace
from typing import Any

from reproduction.cells import Cell, Record, Settings, Task
from reproduction.column import Column
from reproduction.columns import COLUMNS, column_of
from reproduction.config import read
from reproduction.learning import aucs, learn_timed, start
from reproduction.problems import Protocol, Shape, Split, scaled_split, shape_of
from reproduction.selection import Grid, selection_task
from reproduction.sources import source_of, title_of

NAME = "table"

WARM_ROWS = 1200
"""Number of rows learned before timing starts, so that loading compiled code and packages is not timed."""


@dataclass(frozen=True)
class TableConfig:
    """``configs/table.toml``, or a configuration of yours.

    Parameters
    ----------
    datasets, imbalanced : names of the catalogue, or files; the second are imbalanced sets beyond the paper
    systems : names of columns, or classes, ``module:Class``; without any, all columns
    grids : for each class of yours, the values of its parameters to choose from
    """

    datasets: tuple[str, ...]
    systems: tuple[str, ...] = tuple(COLUMNS)
    imbalanced: tuple[str, ...] = ()
    grids: dict[str, Grid] = field(default_factory=dict)


def tasks(quick: bool, datasets: tuple[str, ...] | None) -> list[Task]:
    """Return the tasks: all runs of all systems, after their selections."""
    config = read(NAME, TableConfig, quick)
    return tasks_of(replace(config, datasets=datasets, imbalanced=()) if datasets else config, quick)


def tasks_of(config: TableConfig, quick: bool) -> list[Task]:
    """Return the tasks of a configuration."""
    protocol = read("protocol", Protocol, quick)
    return [task for dataset in (*config.datasets, *config.imbalanced) for system in config.systems
            for task in _tasks(dataset, system, config.grids.get(system, {}), protocol)]  # fmt: skip


def _tasks(dataset: str, system: str, grid: Grid, protocol: Protocol) -> list[Task]:
    shape = shape_of(dataset, protocol.folds, protocol.limit(dataset))
    column, title, axis = column_of(system, grid), title_of(dataset), "seed"
    why = column.left_out(shape)
    if why:
        return [Task(Cell(NAME, title, system, axis), leave_out, {"dataset": dataset, "why": why}, 0.1)]
    guess = 0.5 + column.n_learned(shape, protocol) * column.micros(shape) / 1e6
    made = []
    for fold in range(protocol.folds):
        selection = selection_task(dataset, system, fold, protocol, grid)
        made += [] if selection is None else [selection]
        for seed in range(protocol.seeds if column.seeded else 1):
            arguments = {"dataset": dataset, "system": system, "fold": fold, "seed": seed, "protocol": protocol,
                         "grid": grid}  # fmt: skip
            cell = Cell(NAME, title, system, axis, seed, fold)
            made.append(Task(cell, run_fold, arguments, guess, after=None if selection is None else selection.cell))
    return made


def run_fold(
    dataset: str, system: str, fold: int, seed: int, protocol: Protocol, grid: Grid, chosen: Record | None = None
) -> list[Record]:
    """Run one system on one fold with one seed; ``chosen``: the record of its selection."""
    column = column_of(system, grid)
    split = scaled_split(dataset, fold, protocol, column.view).in_order(seed)
    return [{**learn_fold(column, split, chosen or {}, seed, protocol), "note": note(dataset)}]


def learn_fold(column: Column, split: Split, chosen: Record, seed: int, protocol: Protocol) -> Record:
    """Learn the training part of a fold once, in order, and score its test part with each output.

    Each output has its own settings. If they are equal, one run gives both.
    """
    shape = split.shape
    rows = split.first(column.n_learned(shape, protocol))
    texts = {"": chosen.get("settings", "{}")}
    if "settings_last" in chosen:
        texts["_last"] = chosen["settings_last"]
    found = {text: _learn(column, shape, rows, json.loads(text), seed) for text in dict.fromkeys(texts.values())}
    record: Record = {"seconds": found[texts[""]]["seconds"]}
    for ending, text in texts.items():
        auc = found[text]["last" if ending else "mean"]
        own = {"auc": auc, "cut": found[text]["cut"], "settings": text, "edges": chosen.get(f"edges{ending}", "")}
        record |= {f"{name}{ending}": value for name, value in own.items()}
    return {**record, "rows": len(rows.y), "n_train": len(split.y), "n_test": len(split.y_test)}


def _learn(column: Column, shape: Shape, rows: Split, settings: Settings, seed: int) -> Record:
    """Return AUC by output, CPU seconds of learning, and the share of steps that were cut."""
    warm_up(column.make(shape, settings, seed), rows)
    run = start(column.make(shape, settings, seed), len(rows.y))
    seconds = learn_timed(run, rows.X, rows.y)
    found: Record = {"seconds": seconds, "cut": run.cut}
    return found | dict(aucs(rows.y_test, run.scores(rows.X_test)))


def leave_out(dataset: str, why: str) -> list[Record]:
    """Return the record of a system that is skipped."""
    return [{"note": "; ".join(part for part in (note(dataset), f"left out: {why}") if part)}]


def note(dataset: str) -> str:
    """Return a note on the stand-in that was read, if any."""
    source = source_of(dataset)
    return "" if source == dataset else f"stand-in: {source}"


def warm_up(made: Any, rows: Split) -> None:
    """Load all code for learning and scoring."""
    few = rows.first(WARM_ROWS, 10)
    run = start(made, len(few.y))
    run.learn(few.X, few.y)
    run.scores(few.X_test)
