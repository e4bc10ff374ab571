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
QUEUE, CENTROID, PRINTED, RELEASED = "newest rows, kernel", "FPOGD, centroid", "FPOGD, as printed", "released code"

GROUPS: dict[str, tuple[str, ...]] = {
    "in the paper": (KERNEL, LINEAR, "SPAM-NET", "OGD", "SparseKernelAUC", "ProjectronPP", "Kar"),
    "controls": (
        QUEUE, CENTROID, PRINTED, RELEASED, *EARLY, "FPOGD, 1/d", "FPOGD, tuned width", "newest rows, tuned width",
    ),
    "beyond the paper": (
        "AUCClassifier", "KOIL++", "KOIL++, tuned width", "ProjectronPP, tuned width", "OAM", "OPAUC", "AdaOAM",
        "SOLAM", "SPAM", "OPERA", "AdaDSG", "FourierSGD", "ExactAUC", "ExactAUC, kernel",
    ),
    "batch": ("logistic", "SVC", "LightGBM"),
}  # fmt: skip
"""The systems in the order of the page; systems in none of these groups come last, as "other"."""

Output = Literal["mean", "last"]
"""The iterate that scores: the mean of all, or the last. The page compares means, unless it says otherwise."""

_RANK = {system: rank for rank, system in enumerate(name for names in GROUPS.values() for name in names)}
_SETS = {dataset: rank for rank, dataset in enumerate(DATASETS)}


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
    return dataset not in DATASETS


def text_of(settings: str) -> str:
    """Settings from JSON as text; unchanged if they are not JSON."""
    try:
        read = json.loads(settings)
    except json.JSONDecodeError:
        return settings
    return ", ".join(f"{name} = {value}" for name, value in read.items()) if isinstance(read, dict) else settings


class Measured:
    """The table: AUC, time and rows of every system on every set."""

    def __init__(self, results: Results) -> None:
        self._cells: dict[tuple[str, str], list[Record]] = {}
        for record in results.read("table"):
            self._cells.setdefault((record.get("dataset", ""), record.get("system", "")), []).append(record)

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
        """The difference of two systems over the runs that both have; None if there is none."""
        return compared(self.runs(dataset, one, output), self.runs(dataset, other, output))

    def compared_sets(self, systems: Sequence[str], datasets: Iterable[str] | None = None) -> list[str]:
        """The data sets on which all of these systems were run."""
        return [name for name in datasets or self.datasets if all(self.runs(name, one) for one in systems)]

    def cut(self, dataset: str, system: str) -> float:
        """The largest share of steps that were cut as unstable, over the runs."""
        return max((float(one.get("cut", 0.0)) for one in self._cells.get((dataset, system), [])), default=0.0)

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
        return max((int(one.get("n_train", 0)) for (name, _), records in self._cells.items() if name == dataset
                    for one in records), default=0)  # fmt: skip

    def note(self, dataset: str, system: str) -> str:
        """Why a system was left out; "" if it was not left out, or has no record."""
        if self.runs(dataset, system):
            return ""
        notes = (str(one.get("note", "")) for one in self._cells.get((dataset, system), []))
        parts = (part.strip() for note in notes for part in note.split(";"))
        return next((part for part in parts if part and not part.startswith("stand-in:")), "")

    def stand_in(self, dataset: str) -> str:
        """The data set that was read instead of this one; "" if there is no stand-in."""
        for (name, _), records in self._cells.items():
            for record in records if name == dataset else ():
                for part in str(record.get("note", "")).split(";"):
                    if part.strip().startswith("stand-in:"):
                        return part.partition(":")[2].strip()
        return ""

    def titles(self, datasets: Iterable[str]) -> list[str]:
        """Names for a sentence; stand-ins are marked."""
        return [f"{name} (stand-in)" if self.stand_in(name) else name for name in datasets]

    def best(self, dataset: str, systems: Sequence[str]) -> str | None:
        """The system with the highest mean AUC."""
        found = {system: one.mean for system in systems if (one := self.auc(dataset, system))}
        return max(found, key=found.__getitem__) if found else None
