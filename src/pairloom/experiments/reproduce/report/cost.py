"""Time for each example against s, D, d and T, with fitted exponents beside the paper's."""

from collections.abc import Sequence

from pairloom.experiments.reproduce import paper
from pairloom.experiments.reproduce.cells import Record
from pairloom.experiments.reproduce.report import svg
from pairloom.experiments.reproduce.report.curves import by_value
from pairloom.experiments.reproduce.report.estimates import Slope, slope, upper_half
from pairloom.experiments.reproduce.report.html import Markup, missing, note, section
from pairloom.experiments.reproduce.report.measured import in_order
from pairloom.experiments.reproduce.report.tables import Column, Entry, table
from pairloom.experiments.reproduce.report.wording import number
from pairloom.experiments.reproduce.results import Results

AXES = {"s": "strata for each class, s", "D": "random features, D", "d": "columns, d", "T": "rows, T"}


def cost_section(results: Results) -> Markup:
    """A panel for each quantity, and the exponents in a table."""
    records = [one for one in results.read("cost") if "micros" in one and one.get("axis") in AXES]
    if not records:
        return section("cost", "Cost of an example", missing("cost"))
    axes = [axis for axis in AXES if any(one["axis"] == axis for one in records)]
    panels = [_panel(axis, [one for one in records if one["axis"] == axis]) for axis in axes]
    systems = in_order(one["system"] for one in records)
    caption = (
        "Processor time for each example, mean over repetitions, both axes logarithmic. Thin lines: the "
        "fitted power, with its exponent, a 95 % interval, and the exponent of the paper. "
        "The time of what does not depend on the quantity bends a curve at its left end; so the table has a second "
        "fit, over the larger half of the values."
    )
    entries = [(system, svg.style_of(system)) for system in systems]
    figure = svg.shown("figure-cost", panels, caption, "Time for each example against s, D, d and T", entries)
    return section("cost", "Cost of an example", figure, _exponents(records, axes, systems))


def fits(records: Sequence[Record], axis: str, system: str) -> tuple[Slope | None, Slope | None]:
    """The exponent over all values, and over the larger half of them."""
    kept = [one for one in records if one["axis"] == axis and one["system"] == system and one.get("micros", 0) > 0]
    x, y = [float(one["value"]) for one in kept], [float(one["micros"]) for one in kept]
    return slope(x, y), upper_half(x, y)


def _panel(axis: str, records: Sequence[Record]) -> Markup:
    figure, axes = svg.panel(f"against {axis}", AXES[axis], "µs for each example")
    values: list[float] = []
    for k, system in enumerate(in_order(one["system"] for one in records)):
        means = {value: sum(times) / len(times) for value, times
                 in by_value([one for one in records if one["system"] == system], "micros").items()}  # fmt: skip
        style = svg.style_of(system)
        svg.line(axes, list(means), list(means.values()), style, n_markers=99)
        values = sorted({*values, *means})
        fitted, _ = fits(records, axis, system)
        if fitted is not None:
            ends = [min(means), max(means)]
            axes.plot(ends, [fitted.factor * end**fitted.value for end in ends], color=style.colour, linewidth=0.7)
            text = f"{system}: {fitted}, paper {paper.exponent(axis, system):g}"
            axes.text(0.03, 0.94 - 0.085 * k, text, transform=axes.transAxes, fontsize=7.5, color=style.dark)
    _roomy(axes)
    svg.log_axis(axes, "y", number)
    svg.steps_of_two(axes, values)
    return svg.inline(figure, f"Time for each example against {axis}")


def _roomy(axes: svg.Axes) -> None:
    """At least a decade, so that a flat curve looks flat, and room for the exponents above."""
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    if high < 10 * low:
        middle = (low * high) ** 0.5
        low, high = middle / 10**0.5, middle * 10**0.5
    axes.set_ylim(low, high * (high / low) ** 0.25)


def _exponents(records: Sequence[Record], axes: Sequence[str], systems: Sequence[str]) -> Markup:
    columns = [Column("quantity"), Column("system"), Column("exponent, all values"), Column("larger half"),
               Column("paper")]  # fmt: skip
    rows = []
    for axis in axes:
        for system in systems:
            every, upper = fits(records, axis, system)
            if every is None:
                continue
            printed = paper.exponent(axis, system)
            rows.append([
                Entry(axis), Entry(system), Entry(str(every), every.value),
                Entry(str(upper), upper.value) if upper else Entry("–"),
                Entry(f"{printed:g}", printed),
            ])  # fmt: skip
    after = note(
        "In brackets: 95 % intervals of the fits. The paper's O((sD/d) T) counts gradients of d numbers each, so that "
        "in time d cancels, and it leaves out the feature map, which takes d·D operations. Without a kernel its O(sT) "
        "is O(sd) in the time of an example. T is 0: this time should not grow along the stream."
    )
    return table(columns, rows, "Exponents of the time for each example", after=after)
