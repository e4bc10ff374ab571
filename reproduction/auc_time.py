"""AUC against time: test AUC during the stream, on the first fold. Scoring is not timed."""

from dataclasses import dataclass
from itertools import pairwise
from time import process_time
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from reproduction.cells import Cell, Record, Settings, Task
from reproduction.columns import COLUMNS
from reproduction.config import read
from reproduction.problems import Protocol, Split, shape_of, split_of
from reproduction.selection import scores, selection_task
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
            column, shape = COLUMNS[system], shape_of(dataset, protocol.folds)
            if column.left_out(shape):
                continue
            selection = selection_task(dataset, system, protocol)
            arguments = {"dataset": dataset, "system": system, "config": config, "protocol": protocol}
            rows = column.n_learned(shape, protocol) + config.points * min(config.test_rows, shape.n_rows // 4)
            guess = 0.5 + rows * column.micros(shape) / 1e6
            after = None if selection is None else selection.cell
            made += [] if selection is None else [selection]
            made.append(Task(Cell(NAME, dataset, system), run_curve, arguments, guess, after))
    return made


def rows_between(first: int, last: int, points: int) -> list[int]:
    """Return row numbers with a constant ratio, up to ``last``.

    >>> rows_between(50, 800, 5)
    [50, 100, 200, 400, 800]
    """
    return sorted({round(row) for row in np.geomspace(min(first, last), last, points)})


def learning_curve(model: Any, rows: Split, at: list[int]) -> list[Record]:
    """Return test AUC and CPU seconds of learning after each of these rows; one point if a model needs all rows."""
    points, seconds = [0, *at] if hasattr(model, "partial_fit") else [0, at[-1]], 0.0
    found = []
    for start, stop in pairwise(points):
        X, y, began = rows.X[start:stop], rows.y[start:stop], process_time()
        if len(points) > 2:
            model.partial_fit(X, y, classes=[-1, 1])
        else:
            model.fit(X, y)
        seconds += process_time() - began
        found.append(
            {"row": stop, "seconds": seconds, "auc": float(roc_auc_score(rows.y_test, scores(model, rows.X_test)))}
        )
    return found


def run_curve(
    dataset: str, system: str, config: AucTimeConfig, protocol: Protocol, settings: Settings | None = None
) -> list[Record]:
    """Run one system on the first fold of a data set."""
    column, split = COLUMNS[system], split_of(dataset, 0, protocol.folds, protocol.seed)
    n_learned = column.n_learned(split.shape, protocol)
    rows = split.first(n_learned, config.test_rows).seen_as(column.view)
    warm_up(column.make(split.shape, settings or {}, protocol.seed), rows)
    model = column.make(split.shape, settings or {}, protocol.seed)
    return learning_curve(model, rows, rows_between(config.first_row, n_learned, config.points))
