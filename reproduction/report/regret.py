"""Regret along shuffled and sorted streams, with fitted exponents."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from reproduction.buffers import CENTROID, FIFO, OAM_TYPE, QUEUE, RESERVOIR, WHOLE
from reproduction.report import svg
from reproduction.report.buffers import CONSTANT, ROOT, Run, Stream, horizons, in_order, interval_entry, streams
from reproduction.report.estimates import slope
from reproduction.report.html import ABSENT, Column, Entry, Markup, maths, missing, note, number_entry, section, table
from reproduction.report.wording import count, number, span
from reproduction.results import Results

TITLE = "Regret"

DRAWN = (FIFO, RESERVOIR, CENTROID, QUEUE, "Yang, previous", "Kar", OAM_TYPE, WHOLE)
"""The algorithms with curves."""

Runs = dict[Stream, dict[str, Run]]


def regret_section(results: Results) -> Markup:
    """Return curves for both definitions and both steps, and the regret without variance."""
    found = streams(results)
    if not found:
        return section("regret", TITLE, missing("regret"))
    constant = {stream: runs for stream, runs in found.items() if stream.step == CONSTANT}
    root = {stream: runs for stream, runs in found.items() if stream.step == ROOT}
    figures = [
        _figure("figure-regret", constant, "before", "R_{t} = Σ L_{t}(w_{t−1}) − L_{t}(w⋆), the definition, with a "
                "constant step; above shuffled, below sorted by columns of large variance: the median of the orders, "
                "and a band from the least to the largest."),
        _figure("figure-regret-after", constant, "after", "The same with L_{t}(w_{t}), the loss after the step, which "
                "the caption of the paper's figure names and its proof bounds."),
        _figure("figure-regret-root", root, "before", "By the definition with the step of the remark, η = 1/√T."),
    ]  # fmt: skip
    parts = [figure for figure in figures if figure is not None]
    return section("regret", TITLE, *parts, _ends(results))


def exponents_section(results: Results) -> Markup:
    """Return the exponents of the regret on every set, with a constant step."""
    found = {stream: runs for stream, runs in streams(results).items() if stream.step == CONSTANT}
    return section("exponents", "Exponents of the regret", _exponents(found))


def _figure(name: str, found: Runs, column: str, what: str) -> Markup | None:
    datasets = list(dict.fromkeys(stream.dataset for stream in found))
    if not datasets:
        return None
    panels = [
        _panel(name, dataset, {one: runs for one, runs in found.items() if one.dataset == dataset}, column)
        for dataset in datasets
    ]
    caption = f"{what} Both axes are logarithmic: a line of slope b is t^{{b}}."
    systems = in_order(system for runs in found.values() for system in runs if system in DRAWN)
    entries = [(system, svg.style_of(system)) for system in systems]
    return svg.shown(name, panels, caption, f"Regret against rows ({column} the step)", entries)


def _panel(name: str, dataset: str, found: Runs, column: str) -> Markup:
    figure, *both = svg.stacked((f"{dataset}, shuffled", "", "regret"), (f"{dataset}, sorted", "rows t", "regret"))
    for axes, order in zip(both, ("i.i.d.", "sorted"), strict=True):
        every = [runs for stream, runs in found.items() if stream.order == order]
        for system in reversed(DRAWN):
            _band(axes, [runs[system] for runs in every if system in runs], column, svg.style_of(system))
        svg.log_axis(axes, "x", count)
        svg.log_axis(axes, "y", number)
    return svg.inline(figure, f"{name}: regret on {dataset}, shuffled above, sorted below")


def _band(axes: Axes, runs: Sequence[Run], column: str, style: svg.Style) -> None:
    positive = [[(float(one["row"]), one[column]) for one in run.curve if one.get(column, 0) > 0] for run in runs]
    curves = [np.array(curve).T for curve in positive if curve]
    if not curves:
        return
    rows = curves[0][0]
    values = np.array([np.interp(rows, own, regrets) for own, regrets in curves])
    if len(curves) > 1:
        axes.fill_between(rows, values.min(axis=0), values.max(axis=0), color=style.colour, alpha=0.15, linewidth=0)
    svg.line(axes, list(rows), list(np.median(values, axis=0)), style, n_markers=6)


def _exponents(found: Runs) -> Markup:
    systems = in_order(system for runs in found.values() for system in runs)
    keys = sorted(dict.fromkeys((stream.order, stream.dataset) for stream in found), key=lambda key: key[0])
    columns = [Column("algorithm"), *(Column(dataset, order) for order, dataset in keys)]
    rows = [[Entry(system), *(_exponent(_own(found, key, system)) for key in keys)] for system in systems]
    after = note(maths(
        "b of R_{t} ~ t^{b} over the last nine tenths of the rows, by the definition, constant step: from the least to "
        "the largest of the orders. Below 1 the regret is sublinear there."
    ))  # fmt: skip
    return table(columns, rows, "Exponents of the regret", "every", after)


def _own(found: Runs, key: tuple[str, str], system: str) -> list[Run]:
    return [runs[system] for stream, runs in found.items() if (stream.order, stream.dataset) == key and system in runs]


def _exponent(runs: Sequence[Run]) -> Entry:
    values = [one[0] for run in runs if (one := run.interval())]
    return Entry(span(values, lambda b: f"{b:.2f}"), float(np.median(values))) if values else ABSENT


def _ends(results: Results) -> Markup | None:
    found = horizons(results)
    lengths = sorted({T for ends in found.values() for T in ends})
    if not lengths:
        return None
    columns = [Column("set"), *(Column(f"T = {count(T)}") for T in lengths), Column("exponent in T")]
    rows = [
        [Entry(name), *(number_entry(ends.get(T, {}).get("before")) for T in lengths), interval_entry(growth(ends))]
        for name, ends in found.items()
    ]
    after = note(maths(
        "R_{T} with gradients over the whole history, so without variance, the step η = 1/ln T of the remark, and few "
        "features. Of order log T, the exponent would be near 0."
    ))  # fmt: skip
    return table(columns, rows, "Regret without variance, against the length of the stream", "every", after)


def growth(ends: dict[int, dict[str, float]]) -> tuple[float, float, float] | None:
    """Return the exponent of R_T in T with its interval; None if R_T is not positive or known for few T."""
    regrets: Sequence[float] = [float(one["before"]) for one in ends.values()]
    if len(regrets) < 3 or min(regrets) <= 0:
        return None
    fitted = slope(list(ends), regrets)
    return None if fitted is None else (fitted.value, fitted.low, fitted.high)
