"""The effect of the number of strata, and their number."""

from collections.abc import Sequence

from reproduction.cells import Record
from reproduction.clusters import STRATA, at_most
from reproduction.report import svg
from reproduction.report.curves import by_value, thinned
from reproduction.report.html import Markup, missing, section
from reproduction.report.measured import KERNEL, by_dataset, known
from reproduction.report.wording import count, number
from reproduction.results import Results

TITLE = "Strata: how many, and what they change"


def strata_section(results: Results) -> Markup:
    """AUC and error of the gradient against the cap, AUC along the stream, and the number of strata with its bounds."""
    records = results.read("clusters")
    capped = [one for one in records if one.get("axis") == "max_strata"]
    balls = [one for one in records if one.get("axis") == "eps" and "n_strata" in one]
    if not capped and not balls:
        return section("clusters", TITLE, missing("clusters"))
    figures = [_cap_figure(capped), _along_figure(capped)] if capped else [missing("clusters")]
    figures.append(_count_figure(balls) if balls else missing("clusters"))
    return section("clusters", TITLE, *figures)


def final_auc(records: Sequence[Record]) -> dict[float, list[float]]:
    """The AUC at the end of the stream for each cap, over folds."""
    last: dict[tuple[float, int], Record] = {}
    for one in sorted((one for one in records if known(one, "auc")), key=lambda one: one["row"]):
        last[float(one["value"]), one["fold"]] = one
    return by_value(list(last.values()), "auc")


def relative_error(records: Sequence[Record]) -> dict[float, float]:
    """Mean squared error of the gradient over the mean squared gradient, for each cap."""
    errors, norms = by_value(records, "error"), by_value(records, "norm")
    return {value: sum(errors[value]) / sum(norms[value]) for value in errors if sum(norms.get(value, []))}


def _cap_figure(records: Sequence[Record]) -> Markup:
    panels = [make(*one) for one in by_dataset(records).items() for make in (_auc_panel, _error_panel)]
    caption = (
        "Left: AUC × 100 at the end of the stream against the cap s on the strata of each class, with a small ε: mean "
        "over folds, bars of one standard error. Right: squared error of the gradient from the strata, "
        "‖u − ∇L‖², as a share of ‖∇L‖², both averaged over the stream."
    )
    return svg.shown("figure-strata-cap", panels, caption, "AUC and error of the gradient against the most strata")


def _auc_panel(dataset: str, records: Sequence[Record]) -> Markup:
    figure, axes = svg.panel(f"{dataset}: AUC", "most strata for each class, s", "AUC × 100")
    svg.error_bars(axes, final_auc(records), svg.style_of(KERNEL))
    return svg.inline(figure, f"AUC against the most strata on {dataset}")


def _error_panel(dataset: str, records: Sequence[Record]) -> Markup:
    figure, axes = svg.panel(f"{dataset}: gradient", "most strata for each class, s", "error / gradient, squared")
    values = relative_error(records)
    if values:
        svg.line(axes, list(values), list(values.values()), svg.Style("#d55e00", "s", width=1.6), n_markers=99)
        svg.log_axis(axes, "y", number)
        svg.steps_of_two(axes, list(values))
    return svg.inline(figure, f"Squared error of the gradient against the most strata on {dataset}")


def _along_figure(records: Sequence[Record]) -> Markup:
    curves = [one for one in records if known(one, "auc")]
    caps = sorted({float(one["value"]) for one in curves})
    styles = dict(zip(caps, svg.scale(len(caps)), strict=True))
    axes = {"row": "rows", "seconds": "processor time, s"}
    panels = [_along_panel(*one, column, axes[column], styles) for one in by_dataset(curves).items() for column in axes]
    caption = "AUC × 100 along the stream for each cap s (first fold): against rows, and against processor time."
    entries = [(f"s = {cap:g}", style) for cap, style in styles.items()]
    return svg.shown("figure-strata-along", panels, caption, "AUC along the stream for each cap", entries)


def _along_panel(
    dataset: str, records: Sequence[Record], column: str, name: str, styles: dict[float, svg.Style]
) -> Markup:
    figure, axes = svg.panel(dataset, name, "AUC × 100")
    first = min(one["fold"] for one in records)
    for cap, style in styles.items():
        points = [one for one in records if one["value"] == cap and one["fold"] == first and one.get(column, 0) > 0]
        points = thinned(sorted(points, key=lambda one: one["row"]))
        if points:
            svg.line(axes, [one[column] for one in points], [100 * one["auc"] for one in points], style)
    svg.log_axis(axes, "x", count if column == "row" else number)
    return svg.inline(figure, f"AUC on {dataset} against {name} for each cap on the strata")


def _count_figure(records: Sequence[Record]) -> Markup:
    panels = []
    for dataset, own in by_dataset(records).items():
        for space, system in STRATA.items():
            here = [one for one in own if one["system"] == system]
            shares = sorted({float(one["value"]) for one in here})
            panels += [_count_panel(f"{dataset}, {SPACES[space]}", share, here) for share in shares]
    entries = [(name, style) for name, _, style in _COUNTS]
    caption = (
        "Number of strata over the stream, clustering φ(x) as in the paper, and clustering x, for five thresholds ε on "
        "the squared distance, as shares of its mean; curves end where there are 2,048 strata. The paper's bound "
        "min{t − 1, ⌈(R/r)^{d}⌉}, r = √ε, is drawn where it is below the trivial t − 1."
    )
    return svg.shown("figure-strata-count", panels, caption, "Number of strata over the stream and its bounds", entries)


SPACES = {"features": "φ(x)", "input": "x"}

_COUNTS = (
    ("strata", "n_strata", svg.Style("#0072b2", "o", width=2.0)),
    ("the paper's bound", "bound_paper", svg.Style("#d55e00", "^", (0, (4, 1.5)))),
)
"""Name, column and style; the bounds are logarithms."""


def bound(record: Record, column: str) -> float:
    """A bound on the number of strata, from its logarithm; there are never more strata than earlier rows."""
    return at_most(record["row"], record[column])


def _count_panel(title: str, share: float, records: Sequence[Record]) -> Markup:
    figure, axes = svg.panel(f"{title}, ε = {share:g} of the mean", "rows t", "strata")
    points = thinned(sorted((one for one in records if one["value"] == share), key=lambda one: one["row"]))
    for _, column, style in reversed(_COUNTS):
        kept = [one for one in points if column in one and (column == "n_strata" or bound(one, column) < one["row"])]
        heights = [float(one[column]) if column == "n_strata" else bound(one, column) for one in kept]
        svg.line(axes, [one["row"] for one in kept], heights, style)
    svg.log_axis(axes, "x", count)
    svg.log_axis(axes, "y", count)
    return svg.inline(figure, f"Number of strata, {title}, with threshold {share:g}, and its bounds")
