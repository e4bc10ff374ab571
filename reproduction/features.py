"""AUC against the number of random features D; step and penalty are selected for each D."""

from dataclasses import dataclass, replace

from pairloom.systems import FPOGD
from reproduction.cells import Cell, Record, Settings, Task
from reproduction.columns import COLUMNS, Column
from reproduction.config import read
from reproduction.problems import Protocol, Shape, shape_of, split_of
from reproduction.selection import best
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
            for task in _tasks(dataset, number, config.folds, protocol)]  # fmt: skip


def _tasks(dataset: str, number: int, folds: int, protocol: Protocol) -> list[Task]:
    shape = shape_of(dataset, protocol.folds)
    micros = number * (0.012 + 2e-5 * shape.n_features)
    arguments = {"dataset": dataset, "number": number, "protocol": protocol}
    selection = Task(
        Cell("selection", dataset, SYSTEM, "D", number), select_for, arguments,
        1 + 8e-6 * micros * protocol.selection_rows,
    )  # fmt: skip
    made = [
        Task(
            Cell(NAME, dataset, SYSTEM, "D", number, fold), run_number, {**arguments, "fold": fold},
            1 + 1e-6 * micros * shape.n_rows, selection.cell,
        )
        for fold in range(folds)
    ]  # fmt: skip
    return [selection, *made]


def with_features(n: int) -> Column:
    """Return the column of the table, with ``n`` features."""

    def make(shape: Shape, settings: Settings, seed: int) -> FPOGD:
        made: FPOGD = COLUMNS[SYSTEM].make(shape, settings, seed).set_params(n_components=n)
        return made

    return replace(COLUMNS[SYSTEM], make=make)


def select_for(dataset: str, number: int, protocol: Protocol) -> list[Record]:
    """Select settings for this D on the first outer training part."""
    split = split_of(dataset, 0, protocol.folds, protocol.seed)
    return [best(with_features(number), split.shape, split, protocol)]


def run_number(dataset: str, number: int, fold: int, protocol: Protocol, settings: Settings) -> list[Record]:
    """Learn a fold with this D."""
    column, split = with_features(number), split_of(dataset, fold, protocol.folds, protocol.seed)
    return [learn_fold(column, split, settings, protocol)]
