"""Figures: AUC along a stream, all learners beside each other, and the strata."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from pairloom.base.files import replacing
from pairloom.base.typing import Array

INK, FAINT = "#333333", "#8c8c8c"
COLOURS = ("#0072b2", "#009e73", "#d55e00")
"""Of the lines, in order: Okabe and Ito's, which colour-blind readers can tell apart."""
RARE, REST = ("#5b2a6e", "#e3cdec"), ("#37474f", "#d3dce0")
"""Dark and light end of the bands of each class."""


@dataclass(frozen=True)
class Panel:
    """One column of the figure.

    ``seen``: rows learned at each moment; ``auc``: name -> AUC at each moment (NaN is left out), of the learners that
    ``label`` has a text for, and in grey of the others; ``final``: name -> AUC of all; ``strata``: for the rare class
    and the rest, (moments, strata) sizes, 0 where there is no stratum yet.
    """

    title: str
    subtitle: str
    classes: tuple[str, str]
    seen: Array
    auc: dict[str, Array]
    label: dict[str, str]
    final: dict[str, float]
    strata: tuple[Array, Array]


def draw(panels: list[Panel], out: Path, title: str, caption: str) -> None:
    """Save the panels side by side as a PNG."""
    figure = Figure(figsize=(10, 12), dpi=150, facecolor="white")
    FigureCanvasAgg(figure)
    sides = {"left": 0.07, "right": 0.87, "wspace": 0.58}
    along = figure.add_gridspec(2, len(panels), height_ratios=(1.55, 1), top=0.915, bottom=0.56, hspace=0.12, **sides)
    beside = figure.add_gridspec(1, len(panels), top=0.495, bottom=0.075, left=0.16, right=0.97, wspace=0.62)
    figure.text(0.018, 0.972, title, fontsize=15, fontweight="bold", color=INK)
    figure.text(0.018, 0.012, caption, fontsize=7.5, color=FAINT, va="bottom", linespacing=1.4)
    for column, panel in enumerate(panels):
        above = figure.add_subplot(along[0, column])
        below = figure.add_subplot(along[1, column], sharex=above)
        draw_auc(above, panel)
        draw_strata(below, panel)
        draw_final(figure.add_subplot(beside[0, column]), panel)
        if column == 0:
            above.set_ylabel("AUC of the last rows", color=INK, fontsize=9)
            below.set_ylabel("share of the class", color=INK, fontsize=9)
    with replacing(out) as file:
        figure.savefig(file, format="png")


def draw_auc(axes: Axes, panel: Panel) -> None:
    """One line per learner; those with a label named at their ends."""
    ends = {name: float(panel.auc[name][-1]) for name in panel.label}
    for name, auc in panel.auc.items():
        colour, first = colour_of(panel, name), name == next(iter(panel.label))
        width = 2.4 if first else 1.5 if name in panel.label else 0.6
        axes.plot(
            panel.seen, auc, color=colour, linewidth=width, zorder=3 if first else 2 if name in panel.label else 1
        )
    low = min(float(np.nanmin(panel.auc[name])) for name in panel.label)
    axes.set_ylim(low - 0.15 * (1.0 - low), 1.0 + 0.03 * (1.0 - low))
    axes.set_xlim(0, panel.seen[-1])
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axes.axvspan(panel.seen[-1] / 2, panel.seen[-1], color="#f5f5f5", zorder=0)
    axes.text(0.985, 0.03, "second half", transform=axes.transAxes, fontsize=7.5, color=FAINT, ha="right")
    axes.tick_params(labelbottom=False)
    axes.set_title(panel.title, loc="left", fontsize=11, fontweight="bold", color=INK, pad=18)
    axes.text(0, 1.03, panel.subtitle, transform=axes.transAxes, fontsize=8.5, color=FAINT)
    plain(axes)
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.8)
    heights = spread({name: position(axes, end) for name, end in ends.items()}, gap=0.14)
    for name, text in panel.label.items():
        axes.annotate(
            text, (1.02, heights[name]), xycoords="axes fraction",
            color=colour_of(panel, name), fontsize=8.5, va="center", annotation_clip=False, linespacing=1.15,
        )  # fmt: skip


def colour_of(panel: Panel, name: str) -> str:
    """A colour of its own for a learner with a label, grey for the others."""
    return dict(zip(panel.label, COLOURS, strict=False)).get(name, "#c4c4c4")


def draw_final(axes: Axes, panel: Panel) -> None:
    """A dot for the AUC of each learner; those below the scale at its edge, with their number.

    The first with a label is on top, with a line down to compare the others with, which follow by their AUC.
    """
    top = next(iter(panel.label))
    names = [*sorted(panel.final.keys() - {top}, key=lambda name: (panel.final[name], name)), top]
    best, middle = max(panel.final.values()), float(np.median(list(panel.final.values())))
    low = best - 2.5 * max(best - middle, 0.005)
    axes.axvline(max(panel.final[top], low), color=colour_of(panel, top), linewidth=0.8, linestyle=":", zorder=1)
    for height, name in enumerate(names):
        value, colour = panel.final[name], colour_of(panel, name) if name in panel.label else "#777777"
        shown = max(value, low)
        axes.plot([low, shown], [height, height], color="#ececec", linewidth=1.2, zorder=1)
        axes.plot(shown, height, marker="o" if value >= low else "<", color=colour, markersize=4.5, zorder=2)
        if value < low:
            axes.annotate(f" {value:.3f}", (shown, height), fontsize=7, color=FAINT, va="center", xytext=(4, 0),
                          textcoords="offset points")  # fmt: skip
        axes.text(-0.02, height, name, transform=axes.get_yaxis_transform(), fontsize=7.5, color=colour, ha="right",
                  va="center", fontweight="bold" if name in panel.label else "normal")  # fmt: skip
    axes.set_yticks([])
    axes.set_ylim(-0.8, len(names) - 0.2)
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axes.set_title("AUC over the second half", loc="left", fontsize=9, color=INK)
    plain(axes)
    axes.grid(axis="x", color="#f0f0f0", linewidth=0.8)


def draw_strata(axes: Axes, panel: Panel) -> None:
    """Bands: the strata's shares of their class; the rare class upwards, the rest downwards."""
    for side, ends, name, sizes in zip((1, -1), (RARE, REST), panel.classes, panel.strata, strict=True):
        shares = side * sizes / np.maximum(sizes.sum(axis=1, keepdims=True), 1)
        shades = LinearSegmentedColormap.from_list("bands", ends)(np.linspace(0, 1, sizes.shape[1]))
        axes.stackplot(panel.seen, shares.T, colors=shades, edgecolor="white", linewidth=0.4)
        count = np.count_nonzero(sizes[-1])
        axes.annotate(
            f"{name}\n{count} strata", (1.02, 0.5 + 0.25 * side), xycoords="axes fraction",
            color=ends[0], fontsize=8.5, va="center", annotation_clip=False, linespacing=1.15,
        )  # fmt: skip
    axes.axhline(0, color="white", linewidth=2.5)
    axes.set_ylim(-1, 1)
    axes.set_yticks([-1, 0, 1], ["100 %", "0", "100 %"])
    axes.set_xlabel("examples", color=INK, fontsize=9)
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    plain(axes)


def plain(axes: Axes) -> None:
    """No frame but the axis below."""
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(FAINT)
    axes.tick_params(colors=INK, labelsize=8.5, length=0)


def position(axes: Axes, value: float) -> float:
    """Height of a value as a fraction of the axes."""
    low, high = axes.get_ylim()
    return float((value - low) / (high - low))


def spread(heights: dict[str, float], gap: float) -> dict[str, float]:
    """Heights moved apart, from the top down, so that labels do not overlap; the order is kept."""
    moved: dict[str, float] = {}
    ceiling = 1.0
    for name in sorted(heights, key=heights.__getitem__, reverse=True):
        moved[name] = min(heights[name], ceiling)
        ceiling = moved[name] - gap
    return moved
