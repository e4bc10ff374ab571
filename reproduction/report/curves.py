"""AUC against time, and AUC against the number of random features."""

from collections.abc import Sequence
from itertools import groupby

from pairloom.data import DATASETS
from pairloom.theory import features_needed
from reproduction.cells import Record
from reproduction.report import svg
from reproduction.report.html import Markup, missing, section
from reproduction.report.measured import GROUPS, KERNEL, Measured, by_dataset, in_order, known
from reproduction.report.wording import count, duration
from reproduction.results import Results

DRAWN = (*GROUPS["in the paper"], "AUCClassifier")
"""The systems whose curves are shown."""

N_POINTS = 60
"""Points of a curve, at most; more could not be distinguished."""


def time_section(results: Results) -> Markup:
    """One panel for each data set."""
    records = [one for one in results.read("auc-time") if one.get("system") in DRAWN and known(one, "auc")]
    if not records:
        return section("auc-time", "AUC against time", missing("auc-time"))
    sets = by_dataset(records)
    panels = [_time_panel(*one) for one in zip(map(Measured(results).title, sets), sets.values(), strict=True)]
    systems = in_order(one["system"] for one in records)
    caption = (
        "AUC × 100 on the test rows of the first fold against processor time of learning; the time of evaluation is "
        "not counted. Each system learns with the settings selected for the table, all in one thread."
    )
    entries = [(system, svg.style_of(system)) for system in systems]
    figure = svg.shown("figure-auc-time", panels, caption, "AUC of the systems against time, by data set", entries)
    return section("auc-time", "AUC against time", figure)


def _time_panel(title: str, records: Sequence[Record]) -> Markup:
    figure, axes = svg.panel(title, "processor time", "AUC × 100")
    curves = curves_of(records)
    for system in reversed(list(curves)):
        points = thinned([one for one in curves[system] if one["seconds"] > 0])
        svg.line(axes, [one["seconds"] for one in points], [100 * one["auc"] for one in points], svg.style_of(system))
    last = [100 * curve[-1]["auc"] for curve in curves.values()]
    every = [100 * one["auc"] for one in records]
    low = max(min(every), min(last) - 8)
    high = max(every)
    axes.set_ylim(low - 0.05 * (high - low) - 0.1, high + 0.08 * (high - low) + 0.1)
    seen = [one["seconds"] for one in records if 100 * one["auc"] >= low and one["seconds"] > 0]
    if seen:
        axes.set_xlim(0.7 * min(seen), 1.4 * max(seen))
    svg.log_axis(axes, "x", duration)
    return svg.inline(figure, f"AUC against time on {title}")


def curves_of(records: Sequence[Record]) -> dict[str, list[Record]]:
    """The records of each system, ordered by row."""
    return {
        system: sorted((one for one in records if one["system"] == system), key=lambda one: one.get("row", 0))
        for system in in_order(one["system"] for one in records)
    }


def thinned(points: Sequence[Record]) -> list[Record]:
    """At most ``N_POINTS`` of the points: more at the start, as a logarithmic axis shows them, and the last one."""
    n = len(points)
    if n <= N_POINTS:
        return list(points)
    kept = sorted({min(round(n ** (k / (N_POINTS - 1))) - 1, n - 1) for k in range(N_POINTS)})
    return [points[k] for k in kept]


def features_section(results: Results) -> Markup:
    """AUC against D, with the paper's number of features marked."""
    records = [one for one in results.read("features") if one.get("axis") == "D" and known(one, "auc")]
    if not records:
        return section("features", "AUC against the number of random features", missing("features"))
    panels = [_features_panel(*one) for one in by_dataset(records).items()]
    caption = (
        "AUC × 100 of FPOGD with a kernel against the number D of random features: mean over folds, bars of one "
        "standard error. The dashed line is the paper's √T ln T, with T rows."
    )
    figure = svg.shown("figure-features", panels, caption, "AUC against the number of random features")
    return section("features", "AUC against the number of random features", figure)


def rows_of(dataset: str, records: Sequence[Record]) -> int:
    """T: rows learned, or all rows of the data set if the results do not contain it."""
    learned = [int(one["rows"]) for one in records if "rows" in one]
    return max(learned) if learned else DATASETS[dataset].n_rows if dataset in DATASETS else 0


def by_value(records: Sequence[Record], column: str) -> dict[float, list[float]]:
    """The numbers of a column, by the value of a sweep."""
    kept = sorted((float(one["value"]), float(one[column])) for one in records if known(one, column))
    return {value: [number for _, number in group] for value, group in groupby(kept, key=lambda pair: pair[0])}


def _features_panel(dataset: str, records: Sequence[Record]) -> Markup:
    figure, axes = svg.panel(dataset, "random features D", "AUC × 100")
    svg.error_bars(axes, by_value(records, "auc"), svg.style_of(KERNEL))
    rows = rows_of(dataset, records)
    if rows:
        mark = features_needed(rows)
        axes.axvline(mark, color=svg.INK, linewidth=1, linestyle="--")
        axes.annotate(f"√T ln T = {count(mark)} ", (mark, 0.04), xycoords=("data", "axes fraction"), fontsize=8,
                      color=svg.INK, ha="right")  # fmt: skip
    return svg.inline(figure, f"AUC against the number of random features on {dataset}")
