"""The results of ``regret`` and ``variance`` as the report needs them: by stream and buffer algorithm."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import nan, sqrt
from typing import NamedTuple

import numpy as np

from reproduction.buffers import MEMORIES
from reproduction.cells import Record
from reproduction.regret import HORIZON, ORDERS
from reproduction.report.estimates import Estimate, estimate
from reproduction.report.html import ABSENT, Entry
from reproduction.report.measured import known, sets_in_order
from reproduction.report.wording import interval
from reproduction.results import Results
from reproduction.variance import CERTIFICATE, PATHS

CONSTANT, ROOT = "constant", "1/√T"
"""The two steps."""

LONG = 500
"""The fewest rows for a verdict on regret; the streams of a quick run are shorter."""


def in_order(systems: Iterable[str]) -> list[str]:
    """Each algorithm once, in the order of the page; others last."""
    rank = {name: k for k, name in enumerate(MEMORIES)}
    return sorted(set(systems), key=lambda name: (rank.get(name, len(rank)), name))


def interval_entry(found: tuple[float, float, float] | None) -> Entry:
    """The cell of a table with an exponent and its interval."""
    return ABSENT if found is None else Entry(interval(*found), found[0])


class Stream(NamedTuple):
    """Rows of a data set in an order, and the step of all algorithms; ``fold``: the number of the order."""

    dataset: str
    order: str
    step: str
    fold: int


@dataclass(frozen=True)
class Run:
    """One algorithm on one stream: its curve, and the record of the whole stream."""

    eta: float
    curve: list[Record] = field(default_factory=list)
    whole: Record = field(default_factory=dict)

    def final(self, column: str) -> float:
        """A sum at the last row; NaN if it is not known."""
        last = self.curve[-1] if self.curve else {}
        return float(last[column]) if known(last, column) else nan

    @property
    def within_reach(self) -> float:
        """The regret at the last row, before the step, against w' instead of w*; NaN if it is not known."""
        return self.final("before") + self.final("best") - self.final("near")

    def interval(self, ending: str = "") -> tuple[float, float, float] | None:
        """The exponent of the regret and its interval; ``ending``: of the columns, "_after" or "_near"."""
        names = [f"{name}{ending}" for name in ("exponent", "low", "high")]
        if not all(known(self.whole, name) for name in names):
            return None
        value, low, high = (float(self.whole[name]) for name in names)
        return value, low, high

    def entry(self, ending: str = "") -> Entry:
        """The cell of a table with the exponent."""
        return interval_entry(self.interval(ending))

    def sublinear(self, ending: str = "") -> bool:
        """Whether the whole interval of the exponent is below 1."""
        found = self.interval(ending)
        return found is not None and found[2] < 1


def streams(results: Results) -> dict[Stream, dict[str, Run]]:
    """All runs by stream and algorithm, data sets in the order of the page."""
    axes = {axis: order for order, axis in ORDERS.items()}
    cells: dict[tuple[str, str, str, float, int], list[Record]] = {}
    for one in results.read("regret"):
        if one.get("axis") in axes:
            key = (one["dataset"], one["system"], axes[one["axis"]], float(one["value"]), one["fold"])
            cells.setdefault(key, []).append(one)
    found: dict[Stream, dict[str, Run]] = {}
    for (dataset, system, order, eta, fold), records in cells.items():
        curve = sorted((one for one in records if known(one, "before")), key=lambda one: one["row"])
        whole = next((one for one in records if "row" not in one), {})
        last = curve[-1]["row"] if curve else 0
        step = ROOT if abs(eta * sqrt(last) - 1) < 0.02 else CONSTANT
        found.setdefault(Stream(dataset, order, step, fold), {})[system] = Run(eta, curve, whole)
    sets, orders = sets_in_order(stream.dataset for stream in found), list(ORDERS)
    rank = {stream: (sets.index(stream.dataset), orders.index(stream.order), stream.step != CONSTANT, stream.fold)
            for stream in found}  # fmt: skip
    return {stream: {name: found[stream][name] for name in in_order(found[stream])}
            for stream in sorted(found, key=rank.__getitem__)}  # fmt: skip


def long_streams(results: Results, *systems: str, order: str = "") -> dict[Stream, dict[str, Run]]:
    """Streams of at least ``LONG`` rows with runs of all ``systems``; of one order, or of both."""
    return {stream: runs for stream, runs in streams(results).items() if stream.order.startswith(order)
            and all(one in runs for one in systems)
            and all(run.curve and run.curve[-1]["row"] >= 0.9 * LONG for run in runs.values())}  # fmt: skip


def horizons(results: Results) -> dict[str, dict[int, Record]]:
    """Data set -> T -> the regret without variance and with a step of 1 / ln T, on the first fold."""
    found: dict[str, dict[int, Record]] = {}
    for one in results.read("regret"):
        if one.get("axis") == HORIZON and known(one, "before") and one["fold"] == 0:
            found.setdefault(one["dataset"], {})[int(one["row"])] = one
    return {name: dict(sorted(found[name].items())) for name in sets_in_order(found)}


def on_path(results: Results, path: str) -> dict[str, dict[str, list[Record]]]:
    """Data set -> algorithm -> records of the errors of its gradients along a path ("own" or "common")."""
    found: dict[str, dict[str, list[Record]]] = {}
    for one in results.read("variance"):
        if one.get("axis") == PATHS[path]:
            found.setdefault(one["dataset"], {}).setdefault(one["system"], []).append(one)
    return {name: {system: found[name][system] for system in in_order(found[name])} for name in sets_in_order(found)}


def mean_errors(results: Results, path: str) -> dict[str, dict[str, Estimate]]:
    """Data set -> algorithm -> the mean of e_t over folds."""
    found = {
        name: {system: [float(one["mean"]) for one in records if known(one, "mean")]
               for system, records in systems.items()}
        for name, systems in on_path(results, path).items()
    }  # fmt: skip
    return {name: {system: estimate(means) for system, means in systems.items() if means}
            for name, systems in found.items()}  # fmt: skip


def certificates(results: Results) -> list[Record]:
    """The records of the certificate, data sets in the order of the page."""
    records = [one for one in results.read("variance") if one.get("system") == CERTIFICATE and known(one, "above")]
    sets = sets_in_order(one["dataset"] for one in records)
    return sorted(records, key=lambda one: (sets.index(one["dataset"]), one["value"], one["fold"]))


def averaged(records: Iterable[Record], column: str) -> float:
    """The mean of a column over the records that have it; NaN if there are none."""
    values = [float(one[column]) for one in records if known(one, column)]
    return float(np.mean(values)) if values else nan


Ratios = dict[str, dict[str, float]]
"""Algorithm -> data set -> a multiple of another algorithm's value."""


def regret_of(run: Run) -> float:
    """The regret at the end of a stream."""
    return run.final("before")


def error_of(run: Run) -> float:
    """The mean squared error of the gradient along a run's own path; NaN if it is not known."""
    return float(run.whole["error"]) if known(run.whole, "error") else nan


def relative_runs(
    results: Results, order: str, reference: str, step: str = CONSTANT, value: Callable[[Run], float] = regret_of
) -> Ratios:
    """The regret or the error of each algorithm as a multiple of ``reference``'s: medians over the orders of a set."""
    found: dict[tuple[str, str], list[float]] = {}
    for stream, runs in streams(results).items():
        if (stream.step, stream.order) == (step, order) and reference in runs:
            least = value(runs[reference])
            for name, run in runs.items():
                found.setdefault((name, stream.dataset), []).append(value(run) / least if least > 0 else nan)
    return _nested({key: float(np.median(values)) for key, values in found.items()})


def relative_error(results: Results, path: str, reference: str) -> Ratios:
    """The mean squared error of the gradient in the experiment on variance as a multiple of ``reference``'s."""
    found = {(name, dataset): one.mean / own[reference].mean
             for dataset, own in mean_errors(results, path).items() if reference in own
             for name, one in own.items()}  # fmt: skip
    return _nested(found)


def _nested(found: dict[tuple[str, str], float]) -> Ratios:
    return {name: {dataset: value for (one, dataset), value in found.items() if one == name}
            for name in in_order(name for name, _ in found)}  # fmt: skip
