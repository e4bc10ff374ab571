"""AUC against the number of random features D, each with its own step and penalty."""

from dataclasses import dataclass, replace

from pairloom.experiments.reproduce.cells import Cell, Record, Settings, Task
from pairloom.experiments.reproduce.columns import COLUMNS, Column, Protocol
from pairloom.experiments.reproduce.config import read
from pairloom.experiments.reproduce.problems import Shape, shape_of, split_of
from pairloom.experiments.reproduce.selection import best
from pairloom.experiments.reproduce.table import learn_fold
from pairloom.systems import FPOGD

SYSTEM = "FPOGD, kernel"


@dataclass(frozen=True)
class FeaturesConfig:
    """See ``configs/features.toml``."""

    datasets: tuple[str, ...]
    numbers: tuple[int, ...]
    folds: int


def with_features(n: int) -> Column:
    """The column of the table, with ``n`` features."""

    def make(shape: Shape, settings: Settings, seed: int) -> FPOGD:
        made: FPOGD = COLUMNS[SYSTEM].make(shape, settings, seed).set_params(n_components=n)
        return made

    return replace(COLUMNS[SYSTEM], make=make)


def select_for(dataset: str, number: int, protocol: Protocol) -> list[Record]:
    """Settings for this D, from the first outer training part."""
    split = split_of(dataset, 0, protocol.folds, protocol.seed)
    return [best(with_features(number), split.shape, split, protocol)]


def run_number(dataset: str, number: int, fold: int, protocol: Protocol, settings: Settings) -> list[Record]:
    """Learn a fold with this D."""
    column, split = with_features(number), split_of(dataset, fold, protocol.folds, protocol.seed)
    return [learn_fold(column, split, settings, protocol)]


@dataclass(frozen=True)
class Features:
    """The experiment."""

    name: str = "features"

    def tasks(self, quick: bool, datasets: tuple[str, ...] | None) -> list[Task]:
        """Every D on every set, after its selection."""
        config, protocol = read(self.name, FeaturesConfig, quick), read("protocol", Protocol, quick)
        return [task for dataset in datasets or config.datasets for number in config.numbers
                for task in self._tasks(dataset, number, config.folds, protocol)]  # fmt: skip

    def _tasks(self, dataset: str, number: int, folds: int, protocol: Protocol) -> list[Task]:
        shape = shape_of(dataset, protocol.folds)
        micros = number * (0.012 + 2e-5 * shape.n_features)
        arguments = {"dataset": dataset, "number": number, "protocol": protocol}
        selection = Task(
            Cell("selection", dataset, SYSTEM, "D", number), select_for, arguments,
            1 + 8e-6 * micros * protocol.selection_rows,
        )  # fmt: skip
        made = [
            Task(
                Cell(self.name, dataset, SYSTEM, "D", number, fold), run_number, {**arguments, "fold": fold},
                1 + 1e-6 * micros * shape.n_rows, selection.cell,
            )
            for fold in range(folds)
        ]  # fmt: skip
        return [selection, *made]
