"""AUC against time, and AUC against the number of random features."""

from collections.abc import Sequence
from itertools import groupby

from pairloom.base.html import Markup
from pairloom.data import DATASETS
from pairloom.experiments.reproduce.cells import Record
from pairloom.experiments.reproduce.report import svg
from pairloom.experiments.reproduce.report.estimates import estimate
from pairloom.experiments.reproduce.report.html import missing, section
from pairloom.experiments.reproduce.report.measured import GROUPS, Measured, in_order, known, sets_in_order
from pairloom.experiments.reproduce.report.wording import count, duration
from pairloom.experiments.reproduce.results import Results
from pairloom.theory import features_needed

DRAWN = (*GROUPS["in the paper"], "AUCClassifier")
"""The systems whose curves are shown."""

N_POINTS = 60
"""Of a curve: more cannot be told apart."""


def time_section(results: Results) -> Markup:
    """One panel for each data set."""
    records = [one for one in results.read("auc-time") if one.get("system") in DRAWN and known(one, "auc")]
    if not records:
        return section("auc-time", "AUC against time", missing("auc-time"))
    datasets = sets_in_order(one["dataset"] for one in records)
    panels = [
        _time_panel(title, [one for one in records if one["dataset"] == dataset])
        for dataset, title in zip(datasets, Measured(results).titles(datasets), strict=True)
    ]
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
    """The records of each system in the order of rows."""
    return {
        system: sorted((one for one in records if one["system"] == system), key=lambda one: one.get("row", 0))
        for system in in_order(one["system"] for one in records)
    }


def thinned(points: Sequence[Record]) -> list[Record]:
    """At most ``N_POINTS`` of the points, dense at the start as a logarithmic axis shows them, and the last."""
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
    panels = [
        _features_panel(dataset, [one for one in records if one["dataset"] == dataset])
        for dataset in sets_in_order(one["dataset"] for one in records)
    ]
    caption = (
        "AUC × 100 of FPOGD with a kernel against the number D of random features: mean over folds, bars of one "
        "standard error. The dashed line is the paper's √T ln T, with T rows."
    )
    figure = svg.shown("figure-features", panels, caption, "AUC against the number of random features")
    return section("features", "AUC against the number of random features", figure)


def rows_of(dataset: str, records: Sequence[Record]) -> int:
    """T: rows learned, or those of the whole set where the results do not say."""
    told = [int(one["rows"]) for one in records if "rows" in one]
    return max(told) if told else DATASETS[dataset].n_rows if dataset in DATASETS else 0


def by_value(records: Sequence[Record], column: str) -> dict[float, list[float]]:
    """One column's numbers for each value of a sweep."""
    kept = sorted((float(one["value"]), float(one[column])) for one in records if known(one, column))
    return {value: [number for _, number in group] for value, group in groupby(kept, key=lambda pair: pair[0])}


def _features_panel(dataset: str, records: Sequence[Record]) -> Markup:
    figure, axes = svg.panel(dataset, "random features D", "AUC × 100")
    values = by_value(records, "auc")
    means = [estimate([100 * auc for auc in aucs]) for aucs in values.values()]
    style = svg.style_of("FPOGD, kernel")
    bars = [0.0 if one.error != one.error else one.error for one in means]
    axes.errorbar(
        list(values), [one.mean for one in means], bars, color=style.colour, marker=style.marker, markersize=4.5,
        linewidth=1.6, capsize=2.5, elinewidth=0.9,
    )  # fmt: skip
    svg.steps_of_two(axes, list(values))
    rows = rows_of(dataset, records)
    if rows:
        mark = features_needed(rows)
        axes.axvline(mark, color=svg.INK, linewidth=1, linestyle="--")
        axes.annotate(f"√T ln T = {count(mark)} ", (mark, 0.04), xycoords=("data", "axes fraction"), fontsize=8,
                      color=svg.INK, ha="right")  # fmt: skip
    return svg.inline(figure, f"AUC against the number of random features on {dataset}")
