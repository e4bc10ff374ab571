"""Panels: small separate figures, so that a narrow screen can show them below each other and still be readable."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from math import isfinite, isnan
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from reproduction.report.estimates import Ranks, estimate
from reproduction.report.html import Markup, element, maths
from reproduction.report.measured import spoken

INK, FAINT, GRID = "#333333", "#6b6b6b", "#e6e6e6"


@dataclass(frozen=True)
class Style:
    """The style of a line; marker and dashes distinguish lines without colours."""

    colour: str
    marker: str
    dashes: Any = "-"
    width: float = 1.4
    size: float = 4.8

    @property
    def dark(self) -> str:
        """The colour for text, which needs more contrast than a line."""
        return _mix(tuple(bytes.fromhex(self.colour[1:])), (0, 0, 0), 0.35)


STYLES = {
    "FPOGD, kernel": Style("#0072b2", "o", width=2.2),
    "FPOGD, linear": Style("#56b4e9", "s", (0, (5, 1.5))),
    "SPAM-NET": Style("#e69f00", "^", (0, (4, 1, 1, 1))),
    "OGD": Style("#d55e00", "v", (0, (1, 1))),
    "SparseKernelAUC": Style("#cc79a7", "D", (0, (3, 1.5))),
    "ProjectronPP": Style("#009e73", "P", (0, (6, 1, 1, 1, 1, 1))),
    "Kar": Style("#8c8c8c", "X", (0, (2, 1))),
    "AUCClassifier": Style("#000000", "*", width=1.8, size=9.0),
    "FPOGD, FIFO": Style("#0072b2", "o", width=2.2),
    "FPOGD, reservoir": Style("#56b4e9", "s", (0, (5, 1.5))),
    "FPOGD, centroid": Style("#08306b", "D", (0, (3, 1, 1, 1))),
    "FPOGD, Neyman": Style("#009e73", "P", (0, (6, 1, 1, 1, 1, 1))),
    "Yang, previous": Style("#8c6d31", "h", (0, (1, 1))),
    "Yang, opposite": Style("#e69f00", "^", (0, (4, 1, 1, 1))),
    "newest rows": Style("#d55e00", "v", width=2.2),
    "newest rows, kernel": Style("#d55e00", "v", width=2.2),
    "Kar, by class": Style("#5e5e5e", "p", (0, (4, 2))),
    "OAM-type reservoir": Style("#cc79a7", "<", (0, (3, 1.5))),
    "fresh uniform draws": Style("#7a6a00", ">", (0, (1, 2))),
    "whole history": Style("#000000", "*", width=1.0, size=7.0),
}
"""The colours of Okabe and Ito, which colour-blind readers can distinguish."""

_MARKERS = "osD^v*PXp<>h"
_DASHES = ("-", (0, (5, 1.5)), (0, (3, 1, 1, 1)), (0, (1, 1)))


def style_of(system: str) -> Style:
    """The style of a system; a plain one if it has none."""
    return STYLES.get(system, Style(FAINT, "h"))


def scale(n: int) -> list[Style]:
    """Styles of ``n`` ordered lines, from light to dark."""
    light, dark = (0x9E, 0xCA, 0xE1), (0x08, 0x30, 0x6B)
    return [
        Style(_mix(light, dark, k / max(n - 1, 1)), _MARKERS[k % len(_MARKERS)], _DASHES[k % len(_DASHES)])
        for k in range(n)
    ]


def _mix(one: Sequence[int], other: Sequence[int], share: float) -> str:
    return "#" + "".join(f"{round((1 - share) * a + share * b):02x}" for a, b in zip(one, other, strict=True))


def panel(title: str, x: str, y: str) -> tuple[Figure, Axes]:
    """An empty panel. All panels have the same margins, so that their axes are aligned."""
    figure = _figure(3.5, 2.75)
    axes = figure.add_axes((0.19, 0.165, 0.785, 0.725))
    _dress(axes, title, x, y)
    return figure, axes


def stacked(upper: tuple[str, str, str], lower: tuple[str, str, str]) -> tuple[Figure, Axes, Axes]:
    """Two empty panels, one above the other, each with a title and the names of its axes."""
    figure = _figure(3.5, 5.5)
    above, below = (figure.add_axes((0.19, bottom, 0.785, 0.3625)) for bottom in (0.5825, 0.0825))
    _dress(above, *upper)
    _dress(below, *lower)
    return figure, above, below


def _dress(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set_title(title, loc="left", fontsize=9.5, fontweight="bold", color=INK)
    axes.set_xlabel(x, fontsize=8.5, color=INK)
    axes.set_ylabel(y, fontsize=8.5, color=INK)
    axes.yaxis.set_label_coords(-0.2, 0.5)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(which="both", colors=INK, labelsize=8, length=2.5, width=0.6)
    axes.grid(color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)


def box(axes: Axes, height: float, quantiles: Sequence[float], style: Style) -> None:
    """A horizontal box from the second to the fourth of five quantiles, with whiskers and a line at the middle."""
    least, low, middle, high, most = quantiles
    axes.plot([least, most], [height, height], color=style.dark, linewidth=0.8, zorder=2)
    axes.barh(height, high - low, 0.62, left=low, color=style.colour, alpha=0.45, edgecolor=style.dark, linewidth=0.8)
    axes.plot([middle, middle], [height - 0.31, height + 0.31], color=style.dark, linewidth=1.6, zorder=3)
    axes.plot([middle], [height], color=style.dark, marker=style.marker, markersize=style.size, zorder=4)


def named_rows(title: str, x: str, names: Sequence[str]) -> tuple[Figure, Axes]:
    """Return an empty panel with a named row at each height 0, 1, ..., from above."""
    width, height, left = 4.3, 0.75 + 0.22 * len(names), 0.37
    figure = _figure(width, height)
    axes = figure.add_axes((left, 0.48 / height, 0.97 - left, 1 - 0.75 / height))
    _dress(axes, title, x, "")
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    return figure, axes


def dots(title: str, x: str, rows: Mapping[str, Sequence[tuple[float, Style]]], label: str) -> Markup:
    """Return a panel with a row of points for each name on a logarithmic axis, and a thin line at 1.

    Points without a positive value are not drawn.
    """
    figure, axes = named_rows(title, x, list(rows))
    for place, points in enumerate(rows.values()):
        for value, style in points:
            if isfinite(value) and value > 0:
                axes.plot([value], [place], linestyle="", color=style.colour, marker=style.marker,
                          markersize=style.size + 0.6, markeredgecolor="white", markeredgewidth=0.4)  # fmt: skip
    axes.axvline(1.0, color=FAINT, linewidth=0.8, zorder=1)
    log_axis(axes, "x", lambda value: f"{value:g}")
    return inline(figure, label)


def critical_difference(ranks: Ranks, label: str) -> Markup:
    """Return the mean ranks of methods with bars of half the critical difference on both sides, the best first.

    Two methods differ significantly if their bars do not overlap.
    """
    order = sorted(range(len(ranks.names)), key=lambda k: ranks.means[k])
    names = [f"{spoken(ranks.names[k])}  {ranks.means[k]:.1f}" for k in order]
    figure, axes = named_rows(f"mean rank over {ranks.n} sets", "mean rank: 1 is the best", names)
    half = ranks.critical / 2
    for place, k in enumerate(order):
        style, mean = style_of(ranks.names[k]), ranks.means[k]
        axes.plot([mean - half, mean + half], [place, place], color=style.colour, linewidth=2.2, alpha=0.45)
        axes.plot([mean], [place], color=style.colour, marker=style.marker, markersize=style.size + 1)
    best = ranks.means[order[0]]
    axes.axvspan(best - half, best + half, color=GRID, zorder=0)
    return inline(figure, label)


def line(axes: Axes, x: Sequence[float], y: Sequence[float], style: Style, n_markers: int = 9) -> None:
    """A line with a few markers on it."""
    axes.plot(
        x, y, color=style.colour, linestyle=style.dashes, linewidth=style.width, marker=style.marker,
        markersize=style.size, markeredgecolor="white", markeredgewidth=0.4, markevery=max(1, len(x) // n_markers),
    )  # fmt: skip


def error_bars(axes: Axes, values: Mapping[float, Sequence[float]], style: Style) -> None:
    """The mean AUC x 100 at each value of a sweep, with bars of one standard error."""
    means = [estimate([100 * auc for auc in aucs]) for aucs in values.values()]
    bars = [0.0 if isnan(one.error) else one.error for one in means]
    axes.errorbar(
        list(values), [one.mean for one in means], bars, color=style.colour, marker=style.marker, markersize=4.5,
        linewidth=1.6, capsize=2.5, elinewidth=0.9,
    )  # fmt: skip
    if values:
        steps_of_two(axes, list(values))


def log_axis(axes: Axes, which: str, text: Any) -> None:
    """A logarithmic axis with labels at powers of ten, and at 2 and 5 if it is short; at round numbers if shorter."""
    axis = getattr(axes, f"{which}axis")
    if not isfinite(axis.get_minpos()):
        return  # no positive number
    getattr(axes, f"set_{which}scale")("log")
    low, high = axis.get_view_interval()
    if high < 4 * low:
        axis.set_major_locator(MaxNLocator(5))
    else:
        axis.set_major_locator(LogLocator(10, subs=(1.0,) if high > 60 * low else (1.0, 2.0, 5.0), numticks=6))
    axis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))
    # Minor ticks would take half of the drawing time.
    axis.set_minor_locator(NullLocator())


def steps_of_two(axes: Axes, values: Sequence[float]) -> None:
    """A logarithmic x axis with a tick at each of a few values."""
    axes.set_xscale("log")
    shown = list(values)[:: 1 + len(values) // 8]
    axes.xaxis.set_major_locator(FixedLocator(shown))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.4g}" if value < 1 else f"{value:,.0f}"))
    axes.xaxis.set_minor_locator(NullLocator())


def inline(figure: Figure, label: str) -> Markup:
    """A figure as SVG for a page: without a fixed size and unused ids, and with the same bytes for the same lines.

    Ids are made from the label, so that two figures of a page have different ids.
    """
    out = StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": label, "path.simplify": True}):
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<style .*?</style>|<!--.*?-->", "", text, flags=re.S)
    used = set(re.findall(r"#([\w.-]+)[\")]", text))
    text = re.sub(r' id="([\w.-]+)"', lambda found: found[0] if found[1] in used else "", text)
    text = re.sub(r"<svg [^>]*?(viewBox=\"[^\"]*\")[^>]*>", lambda found: f"<svg {found[1]}>", text, count=1)
    text = re.sub(r"(?<=\d\.\d\d)\d+", "", text.replace("xlink:href", "href"))
    text = re.sub(r"\s*\n\s*", "\n", text).replace("<defs/>", "")
    opening = element("svg", role="img", aria_label=label).removesuffix("</svg>").removesuffix(">")
    return Markup(text.replace("<svg", opening, 1))


def _legend(entries: Sequence[tuple[str, Style]], figure: str) -> Markup:
    """Names next to a piece of their line; they wrap on a narrow screen."""
    items = [element("li", _swatch(style, f"{figure}, {name}"), name) for name, style in entries]
    return element("ul", *items, class_="legend")


def _swatch(style: Style, name: str) -> Markup:
    figure = _figure(0.42, 0.15)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.axis("off")
    axes.set(xlim=(0, 2), ylim=(-1, 1))
    line(axes, [0.0, 1.0, 2.0], [0.0, 0.0, 0.0], style)
    axes.lines[0].set_markevery([1])
    return Markup(re.sub(r'role="img" aria-label="[^"]*"', 'aria-hidden="true"', inline(figure, name), count=1))


def _figure(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height), facecolor="none")
    FigureCanvasSVG(figure)
    return figure


def shown(
    name: str,
    panels: Sequence[Markup],
    caption: str,
    label: str,
    entries: Sequence[tuple[str, Style]] = (),
    wide: bool = False,
) -> Markup:
    """A figure of the page: a legend, panels and a caption; ``label`` describes it in a few words."""
    key = _legend(entries, name) if entries else None
    kind = " wide" if wide else " few" if len(panels) in (1, 2, 4) else ""
    grid = element("div", *panels, class_=f"panels{kind}")
    return element("figure", key, grid, element("figcaption", maths(caption)), id=name, role="group", aria_label=label)
