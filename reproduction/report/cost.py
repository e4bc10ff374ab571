"""Time per example against s, D, d and T, with fitted exponents, the true ones and those of the paper."""

from collections.abc import Iterable, Sequence
from functools import cache

from matplotlib.axes import Axes

from reproduction.cells import Record
from reproduction.config import read
from reproduction.cost import NAME, Config, Sweep
from reproduction.report import svg
from reproduction.report.curves import by_value
from reproduction.report.estimates import Slope, slope
from reproduction.report.html import Column, Entry, Markup, missing, note, number_entry, section, table
from reproduction.report.measured import in_order
from reproduction.report.wording import number
from reproduction.results import Results

AXES = {"s": "strata for each class, s", "D": "random features, D", "d": "columns, d", "T": "rows, T"}

FEW = 3
"""A panel with more lines than this does not show their exponents; the table has all of them."""


@cache
def sweeps() -> dict[tuple[str, str], Sweep]:
    """The sweeps of a full run, by system and axis."""
    return {(sweep.system, sweep.axis): sweep for sweep in read(NAME, Config, quick=False).sweeps}


def exponent(records: Iterable[Record], sweep: Sweep) -> Slope | None:
    """The fitted exponent of a sweep; None from fewer than two values."""
    points = [
        (float(one["value"]), float(one["micros"]))
        for one in records
        if one["system"] == sweep.system and one["axis"] == sweep.axis and one["value"] >= sweep.fit_from
    ]
    return slope([value for value, _ in points], [micros for _, micros in points])


def measured_costs(results: Results) -> list[Record]:
    """The records that belong to a sweep."""
    known = sweeps()
    return [one for one in results.read("cost") if (one["system"], one["axis"]) in known and one.get("micros", 0) > 0]


def cost_section(results: Results) -> Markup:
    """A panel for each quantity."""
    records = measured_costs(results)
    if not records:
        return section("cost", "Cost of an example", missing("cost"))
    axes = [axis for axis in AXES if any(one["axis"] == axis for one in records)]
    panels = [_panel(axis, [one for one in records if one["axis"] == axis]) for axis in axes]
    systems = in_order(one["system"] for one in records)
    caption = (
        "Processor time for each example, mean over repetitions, both axes logarithmic. Thin lines: the fitted power. "
        "What does not depend on the quantity bends a curve at its left end; so a power is fitted from the value on "
        "from which the quantity is most of the cost."
    )
    entries = [(system, svg.style_of(system)) for system in systems]
    figure = svg.shown("figure-cost", panels, caption, "Time for each example against s, D, d and T", entries)
    return section("cost", "Cost of an example", figure)


def costs_section(results: Results) -> Markup:
    """The exponents of all sweeps in a table."""
    records = measured_costs(results)
    axes = [axis for axis in AXES if any(one["axis"] == axis for one in records)]
    shown = _exponents(records, axes, in_order(one["system"] for one in records))
    return section("costs", "Exponents of the time for each example", shown)


def _panel(axis: str, records: Sequence[Record]) -> Markup:
    figure, axes = svg.panel(f"against {axis}", AXES[axis], "µs for each example")
    values: list[float] = []
    systems = in_order(one["system"] for one in records)
    for k, system in enumerate(systems):
        means = {value: sum(times) / len(times) for value, times
                 in by_value([one for one in records if one["system"] == system], "micros").items()}  # fmt: skip
        style, sweep = svg.style_of(system), sweeps()[system, axis]
        svg.line(axes, list(means), list(means.values()), style, n_markers=99)
        values = sorted({*values, *means})
        fitted = exponent(records, sweep)
        if fitted is not None:
            ends = [max(min(means), sweep.fit_from), max(means)]
            axes.plot(ends, [fitted.factor * end**fitted.value for end in ends], color=style.colour, linewidth=0.7)
        if fitted is not None and len(systems) <= FEW:
            text = f"{system}: {fitted}{_printed(sweep)}"
            axes.text(0.03, 0.94 - 0.085 * k, text, transform=axes.transAxes, fontsize=7.5, color=style.dark)
    _roomy(axes)
    svg.log_axis(axes, "y", number)
    svg.steps_of_two(axes, values)
    return svg.inline(figure, f"Time for each example against {axis}")


def _printed(sweep: Sweep) -> str:
    return "" if sweep.paper is None else f", paper {sweep.paper:g}"


def _roomy(axes: Axes) -> None:
    """Show at least a decade, so that a flat curve looks flat, with room for the exponents above."""
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    if high < 10 * low:
        middle = (low * high) ** 0.5
        low, high = middle / 10**0.5, middle * 10**0.5
    axes.set_ylim(low, high * (high / low) ** 0.25)


def _exponents(records: Sequence[Record], axes: Sequence[str], systems: Sequence[str]) -> Markup:
    columns = [Column("quantity"), Column("system"), Column("exponent"), Column("fitted from"), Column("true"),
               Column("cost of an example"), Column("paper"), Column("as printed")]  # fmt: skip
    rows = []
    for axis in axes:
        for system in systems:
            sweep = sweeps().get((system, axis))
            fitted = None if sweep is None else exponent(records, sweep)
            if sweep is None or fitted is None:
                continue
            rows.append([
                Entry(axis), Entry(system), Entry(str(fitted), fitted.value),
                Entry(f"{sweep.fit_from:,}", sweep.fit_from), Entry(f"{sweep.true:g}", sweep.true),
                Entry(sweep.true_cost),
                number_entry(sweep.paper, lambda value: f"{value:g}", Entry("–")), Entry(sweep.paper_cost),
            ])  # fmt: skip
    after = note(
        "In brackets: 95 % intervals of the fits. The paper's O((sD/d) T) counts gradients of d numbers each, so that "
        "in time d cancels, and it leaves out the feature map, which takes d·D operations. Without a kernel its O(sT) "
        "is O(sd) in the time of an example. T is 0: this time should not grow along the stream."
    )
    return table(columns, rows, "Exponents of the time for each example", after=after)
