"""The first page: the question, the answer in five sentences, the table, the ranks, and two figures."""

from collections.abc import Callable
from math import nan

import numpy as np

from reproduction.buffers import FIFO, WHOLE
from reproduction.report import svg
from reproduction.report.answer import ranks_of, sentences
from reproduction.report.auc_table import main_table
from reproduction.report.buffers import Ratios, relative_error, relative_runs
from reproduction.report.claims.comparisons import partly
from reproduction.report.html import Markup, element, missing
from reproduction.report.measured import Measured, sets_in_order
from reproduction.report.wording import listed, small
from reproduction.results import Results

QUESTION = "Is FPOGD the best online pairwise learner, and is stratification the reason?"

MARKERS = tuple(zip(("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00"), "ovsD^", strict=True))
"""Colour and marker of each data set of the two figures."""


def front(results: Results) -> Markup:
    """Return the question, the answer, the table, the ranks and the figures."""
    measured = Measured(results)
    if not measured:
        return element("section", element("h2", QUESTION), missing("table"), id="answer")
    answer = element("div", *(element("p", text) for text in sentences(results)), class_="answer")
    figures = _ranks_figure(measured), _regret_figure(results), _error_figure(results)
    return element("section", element("h2", QUESTION), answer, main_table(measured), _link(), *figures, id="answer")


def _link() -> Markup:
    link = element("a", "Every system, both outputs, all runs", href="runs.html")
    return element("p", link, ", with settings, edges of grids and cut steps.", class_="note")


def _ranks_figure(measured: Measured) -> Markup | None:
    ranks = ranks_of(measured)
    if ranks is None:
        return None
    sets = measured.compared_sets(ranks.names)
    caption = (
        f"Mean ranks over {listed(sets)}, by the AUC of the mean of the iterates. Friedman's test, "
        f"{small(ranks.p)}. Bars: half the critical difference of Nemenyi's test ({ranks.critical:.2f}) on each side; "
        "two systems differ significantly at 5 % if their bars do not overlap. Shaded: the bar of the best."
        f"{partly(measured, ranks.names, sets)}"
    )
    panel = svg.critical_difference(ranks, "Critical differences of mean ranks")
    return svg.shown("figure-ranks", [panel], caption, "Mean ranks with critical differences", wide=True)


def _regret_figure(results: Results) -> Markup | None:
    titles = {"i.i.d.": "shuffled", "sorted": "sorted by a column"}
    found = {title: relative_runs(results, order, WHOLE) for order, title in titles.items()}
    caption = (
        "Regret at the end of a stream as a multiple of that with gradients over the whole history, by memory: one "
        "point for each data set, the median of its orders. The same step, features and number of slots for all."
    )
    return _dots_figure("figure-relative-regret", found, "regret, whole history = 1", caption, "Regret by memory")


def _error_figure(results: Results) -> Markup | None:
    titles = {"common": "at the weights of exact gradients", "own": "along its own path"}
    found = {title: relative_error(results, path, FIFO) for path, title in titles.items()}
    caption = (
        "Mean squared error of the gradient, as a multiple of that of the paper's strata (FPOGD, FIFO), by memory with "
        "four slots for each class: one point for each data set. A centroid is no row of the past: its error is bias."
    )
    return _dots_figure(
        "figure-relative-error", found, "squared error, FPOGD with FIFO = 1", caption, "Gradient error by memory"
    )


def _dots_figure(name: str, found: dict[str, Ratios], x: str, caption: str, label: str) -> Markup | None:
    sets = sets_in_order({dataset for one in found.values() for own in one.values() for dataset in own})
    if not sets:
        return None
    styles = {one: svg.Style(*MARKERS[k % len(MARKERS)]) for k, one in enumerate(sets)}
    panels = [
        svg.dots(title, x, _in_rows(ratios, styles.__getitem__), f"{label}, {title}") for title, ratios in found.items()
    ]
    return svg.shown(name, panels, caption, label, list(styles.items()), wide=True)


def _in_rows(ratios: Ratios, style: Callable[[str], svg.Style]) -> dict[str, list[tuple[float, svg.Style]]]:
    """Return the points of each row, the smallest median above."""
    order = sorted(ratios, key=lambda name: float(np.nanmedian(list(ratios[name].values()) or [nan])))
    return {name: [(value, style(dataset)) for dataset, value in ratios[name].items()] for name in order}
