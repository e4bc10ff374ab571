"""Two files of results, set by set: two versions of a contestant on the same folds."""

from dataclasses import dataclass
from math import exp, log
from statistics import fmean

from rich.table import Table

from common.script import make_table
from contest.datasets import Data
from contest.kinds import by_kind
from contest.records import Record, Records


@dataclass(frozen=True)
class Difference:
    """AUC and average precision, new minus old, and the ratios of costs, new to old."""

    auc: float
    precision: float
    learning: float
    scoring: float

    def cells(self) -> list[str]:
        return [f"{self.auc:+.4f}", f"{self.precision:+.4f}", f"{self.learning:.2f}", f"{self.scoring:.2f}"]


def difference(new: list[Record], old: list[Record]) -> Difference:
    """Return the difference of the means over the same folds."""

    def mean(records: list[Record], name: str) -> float:
        return fmean(value for one in records if (value := getattr(one, name)) is not None)

    return Difference(
        mean(new, "auc") - mean(old, "auc"),
        mean(new, "precision") - mean(old, "precision"),
        mean(new, "micros") / mean(old, "micros"),
        mean(new, "scoring") / mean(old, "scoring"),
    )


def mean_difference(all_of: list[Difference]) -> Difference:
    """Return the mean over data sets; the geometric mean of ratios."""
    return Difference(
        fmean(one.auc for one in all_of),
        fmean(one.precision for one in all_of),
        exp(fmean(log(one.learning) for one in all_of)),
        exp(fmean(log(one.scoring) for one in all_of)),
    )


def both(new: Records, old: Records, data: Data, names: tuple[str, str]) -> tuple[list[Record], list[Record]]:
    """Return the records of the folds that both files have."""
    pairs = [(new.all.get((data.name, names[0], k)), old.all.get((data.name, names[1], k))) for k in range(data.folds)]
    found = [(one, other) for one, other in pairs if one and other]
    return [one for one, _ in found], [other for _, other in found]


def table_of_differences(new: Records, old: Records, data: list[Data], names: list[tuple[str, str]]) -> Table:
    """Compare contestants, each by its names in the new and the old file, on data sets with raw columns."""
    headings = ["folds", "AUC, old", "AUC, new", "AUC", "AP", "µs per row, old", "new", "cost", "cost to score"]
    table = make_table("new results minus old", ["contestant", "data"], headings)
    for pair in names:
        for kind, own in by_kind(data).items():
            found = []
            for one in own:
                ours, theirs = both(new, old, one, pair)
                if ours:
                    made = difference(ours, theirs)
                    found.append(made)
                    table.add_row(pair[0], one.name, *_cells(ours, theirs, made))
            if found:
                mean = mean_difference(found).cells()
                table.add_row(
                    "", f"mean of {kind} ({len(found)})", "", "", "", *mean[:2], "", "", *mean[2:], style="bold"
                )
                table.add_section()
    table.caption = "cost: new to old; means of ratios are geometric; folds that both files have"
    return table


def _cells(ours: list[Record], theirs: list[Record], made: Difference) -> list[str]:
    auc, precision, learning, scoring = made.cells()
    old, new = ((fmean(one.auc for one in records), fmean(one.micros for one in records)) for records in (theirs, ours))
    return [f"{len(ours)}", f"{old[0]:.4f}", f"{new[0]:.4f}", auc, precision, f"{old[1]:,.0f}", f"{new[1]:,.0f}",
            learning, scoring]  # fmt: skip
