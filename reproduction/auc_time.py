"""AUC against time: test AUC during the stream, on the first fold. Scoring is not timed."""

import json
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from reproduction.cells import Cell, Record, Task
from reproduction.columns import COLUMNS
from reproduction.config import read
from reproduction.learning import aucs, learn_timed, start
from reproduction.problems import Protocol, Split, scaled_split, shape_of
from reproduction.selection import selection_task
from reproduction.sources import title_of
from reproduction.table import warm_up

NAME = "auc-time"


@dataclass(frozen=True)
class AucTimeConfig:
    """See ``configs/auc-time.toml``."""

    datasets: tuple[str, ...]
    systems: tuple[str, ...]
    first_row: int
    points: int
    test_rows: int


def tasks(quick: bool, datasets: tuple[str, ...] | None) -> list[Task]:
    """Return the tasks: every system on every data set, after its selection."""
    config, protocol = read(NAME, AucTimeConfig, quick), read("protocol", Protocol, quick)
    made: list[Task] = []
    for dataset in datasets or config.datasets:
        for system in config.systems:
            column, shape = COLUMNS[system], shape_of(dataset, protocol.folds, protocol.limit(dataset))
            if column.left_out(shape):
                continue
            selection = selection_task(dataset, system, 0, protocol, {})
            arguments = {"dataset": dataset, "system": system, "config": config, "protocol": protocol}
            rows = column.n_learned(shape, protocol) + config.points * min(config.test_rows, shape.n_rows // 4)
            guess = 0.5 + rows * column.micros(shape) / 1e6
            after = None if selection is None else selection.cell
            made += [] if selection is None else [selection]
            made.append(Task(Cell(NAME, title_of(dataset), system), run_curve, arguments, guess, after))
    return made


def rows_between(first: int, last: int, points: int) -> list[int]:
    """Return row numbers with a constant ratio, up to ``last``.

    >>> rows_between(50, 800, 5)
    [50, 100, 200, 400, 800]
    """
    return sorted({round(row) for row in np.geomspace(min(first, last), last, points)})


def learning_curve(made: Any, rows: Split, at: list[int]) -> list[Record]:
    """Return test AUC and CPU seconds of learning after each of these rows; one point if a model needs all rows.

    The AUC is that of the mean of the iterates, if there are iterates.
    """
    run, seconds, found = start(made, len(rows.y)), 0.0, []
    for first, stop in pairwise([0, *at] if run.learns_in_parts else [0, at[-1]]):
        seconds += learn_timed(run, rows.X[first:stop], rows.y[first:stop])
        auc = aucs(rows.y_test, run.scores(rows.X_test))["mean"]
        found.append({"row": stop, "seconds": seconds, "auc": auc})
    return found


def run_curve(
    dataset: str, system: str, config: AucTimeConfig, protocol: Protocol, chosen: Record | None = None
) -> list[Record]:
    """Run one system on the first fold of a data set."""
    column, split = COLUMNS[system], scaled_split(dataset, 0, protocol, COLUMNS[system].view)
    settings, shape = json.loads((chosen or {}).get("settings", "{}")), split.shape
    n_learned = column.n_learned(shape, protocol)
    rows = split.first(n_learned, config.test_rows)
    warm_up(column.make(shape, settings, protocol.seed), rows)
    at = rows_between(config.first_row, n_learned, config.points)
    return learning_curve(column.make(shape, settings, protocol.seed), rows, at)
