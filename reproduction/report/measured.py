"""The results as the report needs them: by data set and system."""

import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Literal

from pairloom.data import DATASETS
from reproduction.cells import Record
from reproduction.report.estimates import Difference, Estimate, by_fold, compared, estimate
from reproduction.results import Results

KERNEL, LINEAR = "FPOGD, kernel", "FPOGD, linear"
EARLY = ("FPOGD, kernel, 1,000 rows", "FPOGD, linear, 1,000 rows")
KERNEL_TUNED, PROJECTRON_TUNED = "FPOGD, tuned width", "ProjectronPP, tuned width"
QUEUE, CENTROID, PRINTED, RELEASED = "newest rows, kernel", "FPOGD, centroid", "FPOGD, as printed", "released code"

GROUPS: dict[str, tuple[str, ...]] = {
    "in the paper": (KERNEL, LINEAR, "SPAM-NET", "OGD", "SparseKernelAUC", "ProjectronPP", "Kar"),
    "controls": (
        QUEUE, CENTROID, PRINTED, RELEASED, *EARLY, "FPOGD, 1/d", KERNEL_TUNED, "newest rows, tuned width",
    ),
    "beyond the paper": (
        "AUCClassifier", "KOIL++", "KOIL++, tuned width", PROJECTRON_TUNED, "OAM", "OPAUC", "AdaOAM",
        "SOLAM", "SPAM", "OPERA", "AdaDSG", "FourierSGD", "ExactAUC", "ExactAUC, kernel",
    ),
    "batch": ("logistic", "SVC", "LightGBM"),
}  # fmt: skip
"""The systems in the order of the page; systems in none of these groups come last, as "other"."""

Output = Literal["mean", "last"]
"""The iterate that scores: the mean of all, or the last. The page compares means, unless it says otherwise."""

_SETS = {dataset: rank for rank, dataset in enumerate(DATASETS)}
_RANK = {system: rank for rank, system in enumerate(name for names in GROUPS.values() for name in names)}


def spoken(system: str) -> str:
    """The name of a system as its authors write it.

    >>> spoken("ProjectronPP, tuned width")
    'Projectron++, tuned width'
    """
    return system.replace("ProjectronPP", "Projectron++").replace("SparseKernelAUC", "Sparse Kernel AUC")


def group_of(system: str) -> str:
    """The group of a system."""
    return next((group for group, names in GROUPS.items() if system in names), "other")


def in_order(systems: Iterable[str]) -> list[str]:
    """Each system once, in the order of the page."""
    return sorted(set(systems), key=lambda name: (_RANK.get(name, len(_RANK)), name))


def sets_in_order(datasets: Iterable[str]) -> list[str]:
    """Each data set once, in the order of the catalogue: by size."""
    return sorted(set(datasets), key=lambda name: (_SETS.get(name, len(_SETS)), name))


def by_dataset(records: Sequence[Record]) -> dict[str, list[Record]]:
    """The records of each data set, in the order of the page."""
    return {name: [one for one in records if one["dataset"] == name]
            for name in sets_in_order(one["dataset"] for one in records)}  # fmt: skip


def known(record: Record, column: str) -> bool:
    """Whether a record has a number in a column; NaN does not count."""
    return column in record and record[column] == record[column]


def is_imbalanced(dataset: str) -> bool:
    """Whether a data set is one of the imbalanced ones beyond the paper: a file, not in the catalogue."""
    return dataset not in _SETS


def text_of(settings: str) -> str:
    """Settings from JSON as text; unchanged if they are not JSON."""
    try:
        read = json.loads(settings)
    except json.JSONDecodeError:
        return settings
    return ", ".join(f"{name} = {value}" for name, value in read.items()) if isinstance(read, dict) else settings


class Measured:
    """The table: AUC, time and rows of every system on every set. A stand-in has its own name."""

    def __init__(self, results: Results) -> None:
        records = results.read("table")
        self._titles = {one.get("dataset", ""): source for one in records if (source := _stand_in(one))}
        self._cells: dict[tuple[str, str], list[Record]] = {}
        for record in records:
            key = (self.title(record.get("dataset", "")), record.get("system", ""))
            self._cells.setdefault(key, []).append(record)

    def __bool__(self) -> bool:
        return bool(self._cells)

    @cached_property
    def datasets(self) -> list[str]:
        """All data sets."""
        return sets_in_order(dataset for dataset, _ in self._cells)

    @cached_property
    def systems(self) -> list[str]:
        """All systems."""
        return in_order(system for _, system in self._cells)

    def runs(self, dataset: str, system: str, output: Output = "mean") -> dict[tuple[int, int], float]:
        """AUC by fold and seed; empty where a system was left out, or has no such iterate.

        A system without iterates, such as a batch learner, has one output, which stands for the mean.
        """
        column = "auc" if output == "mean" else "auc_last"
        records = self._cells.get((dataset, system), [])
        return {(one["fold"], int(one["value"])): float(one[column]) for one in records if known(one, column)}

    def auc(self, dataset: str, system: str, output: Output = "mean") -> Estimate | None:
        """Mean AUC over the folds, seeds averaged, with the standard error over folds."""
        values = list(by_fold(self.runs(dataset, system, output)).values())
        return estimate(values) if values else None

    def difference(self, dataset: str, one: str, other: str, output: Output = "mean") -> Difference | None:
        """The difference of two systems over the runs that both have; None if there is none.

        If the second has one output, it is compared with that.
        """
        return compared(self.runs(dataset, one, output), self.runs(dataset, other, output) or self.runs(dataset, other))

    def compared_sets(self, systems: Sequence[str], datasets: Iterable[str] | None = None) -> list[str]:
        """The data sets on which all of these systems were run."""
        return [name for name in datasets or self.datasets if all(self.runs(name, one) for one in systems)]

    def cut(self, dataset: str, system: str) -> float:
        """The share of steps that were cut as unstable, the mean over the runs."""
        found = [float(one.get("cut", 0.0)) for one in self._cells.get((dataset, system), [])]
        return sum(found) / len(found) if found else 0.0

    def chosen(self, dataset: str, system: str, name: str, output: Output = "mean") -> list[float]:
        """The selected values of a setting, one for each fold; empty if the system does not have it."""
        column = "settings" if output == "mean" else "settings_last"
        records = [one for one in self._cells.get((dataset, system), []) if int(one["value"]) == 0]
        settings = (json.loads(str(one.get(column, "{}"))) for one in records)
        return [float(one[name]) for one in settings if name in one]

    def on_edge(self, dataset: str, system: str) -> bool:
        """Whether the same setting lies on the same edge of its grid in more than half of the folds."""
        edges, folds = self.edges(dataset, system), len({fold for fold, _ in self.runs(dataset, system)})
        return any(2 * edges.count(edge) > folds for edge in edges)

    def edges(self, dataset: str, system: str, output: Output = "mean") -> list[str]:
        """Settings on an edge of their grid, such as "eta low", one entry for each fold in which it is there."""
        column = "edges" if output == "mean" else "edges_last"
        records = [one for one in self._cells.get((dataset, system), []) if int(one["value"]) == 0]
        return [edge for one in records for edge in str(one.get(column, "")).split("; ") if edge]

    def is_tuned(self, dataset: str, system: str) -> bool:
        """Whether settings were selected."""
        return any(one.get("settings", "{}") != "{}" for one in self._cells.get((dataset, system), []))

    def micros(self, dataset: str, system: str) -> float | None:
        """Microseconds of learning per row."""
        records = [one for one in self._cells.get((dataset, system), []) if one.get("rows") and "seconds" in one]
        if not records:
            return None
        return 1e6 * sum(float(one["seconds"]) for one in records) / sum(int(one["rows"]) for one in records)

    def cap(self, dataset: str, system: str) -> int | None:
        """The number of rows learned, if fewer than the training part has."""
        records = [one for one in self._cells.get((dataset, system), []) if "rows" in one and "n_train" in one]
        fewer = [one["rows"] for one in records if one["rows"] < one["n_train"]]
        return int(max(fewer)) if fewer else None

    def n_train(self, dataset: str) -> int:
        """The number of rows of the training part of a fold; 0 if it is not known."""
        return self._largest(dataset, "n_train")

    def n_rows(self, dataset: str) -> int:
        """The number of rows that were drawn from a data set; 0 if it is not known."""
        return self._largest(dataset, "n_train", "n_test")

    def _largest(self, dataset: str, *columns: str) -> int:
        return max((sum(int(one.get(name, 0)) for name in columns) for (own, _), records in self._cells.items()
                    if own == dataset for one in records), default=0)  # fmt: skip

    def note(self, dataset: str, system: str) -> str:
        """Why a system was left out; "" if it was not left out, or has no record."""
        if self.runs(dataset, system):
            return ""
        notes = (str(one.get("note", "")) for one in self._cells.get((dataset, system), []))
        parts = (part.strip() for note in notes for part in note.split(";"))
        return next((part for part in parts if part and not part.startswith("stand-in:")), "")

    def title(self, dataset: str) -> str:
        """The name of a data set on the page: of the one that was read, if that is a stand-in."""
        return self._titles.get(dataset, dataset)

    def stand_in(self, dataset: str) -> str:
        """The data set that was read instead of one of the paper; "" if that was read itself."""
        return self._titles.get(dataset, "")

    def replaced(self, dataset: str) -> str:
        """The data set of the paper that a stand-in replaces; "" if it is none."""
        return next((name for name, title in self._titles.items() if title == dataset), "")

    def best(self, dataset: str, systems: Sequence[str], output: Output = "mean") -> str | None:
        """The system with the highest mean AUC."""
        found = {system: one.mean for system in systems if (one := self.auc(dataset, system, output))}
        return max(found, key=found.__getitem__) if found else None


def _stand_in(record: Record) -> str:
    parts = (part.strip() for part in str(record.get("note", "")).split(";"))
    return next((part.removeprefix("stand-in:").strip() for part in parts if part.startswith("stand-in:")), "")
