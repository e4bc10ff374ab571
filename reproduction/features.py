"""AUC against the number of random features D; step and penalty are selected for each D, in each fold."""

from dataclasses import dataclass, replace

from pairloom.systems import FPOGD
from reproduction.cells import Cell, Record, Settings, Task
from reproduction.column import Column
from reproduction.columns import COLUMNS
from reproduction.config import read
from reproduction.problems import Protocol, Shape, scaled_split, shape_of, split_of
from reproduction.selection import best
from reproduction.sources import title_of
from reproduction.table import learn_fold

NAME = "features"
SYSTEM = "FPOGD, kernel"


@dataclass(frozen=True)
class FeaturesConfig:
    """See ``configs/features.toml``."""

    datasets: tuple[str, ...]
    numbers: tuple[int, ...]
    folds: int


def tasks(quick: bool, datasets: tuple[str, ...] | None) -> list[Task]:
    """Return the tasks: every D on every data set, after its selection."""
    config, protocol = read(NAME, FeaturesConfig, quick), read("protocol", Protocol, quick)
    return [task for dataset in datasets or config.datasets for number in config.numbers
            for fold in range(config.folds) for task in _tasks(dataset, number, fold, protocol)]  # fmt: skip


def _tasks(dataset: str, number: int, fold: int, protocol: Protocol) -> list[Task]:
    shape, title = shape_of(dataset, protocol.folds, protocol.limit(dataset)), title_of(dataset)
    micros = number * (0.012 + 2e-5 * shape.n_features)
    arguments = {"dataset": dataset, "number": number, "fold": fold, "protocol": protocol}
    selection = Task(
        Cell("selection", title, SYSTEM, "D", number, fold), select_for, arguments,
        1 + 8e-6 * micros * protocol.selection_rows,
    )  # fmt: skip
    run = Task(
        Cell(NAME, title, SYSTEM, "D", number, fold), run_number, arguments, 1 + 1e-6 * micros * shape.n_rows,
        selection.cell,
    )  # fmt: skip
    return [selection, run]


def with_features(n: int) -> Column:
    """Return the column of the table, with ``n`` features."""

    def make(shape: Shape, settings: Settings, seed: int) -> FPOGD:
        made: FPOGD = COLUMNS[SYSTEM].make(shape, settings, seed).set_params(n_components=n)
        return made

    return replace(COLUMNS[SYSTEM], make=make)


def select_for(dataset: str, number: int, fold: int, protocol: Protocol) -> list[Record]:
    """Select settings for this D on the outer training part."""
    split, column = (
        split_of(dataset, fold, protocol.folds, protocol.seed, protocol.limit(dataset)),
        with_features(number),
    )
    return [best(column, column.grid(split.shape, protocol), split, protocol)]


def run_number(dataset: str, number: int, fold: int, protocol: Protocol, chosen: Record) -> list[Record]:
    """Learn a fold with this D."""
    column = with_features(number)
    split = scaled_split(dataset, fold, protocol, column.view)
    return [learn_fold(column, split, chosen, protocol.seed, protocol)]
