"""Window AUC around a sudden change, and along a slow one."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from changes import slow, sudden
from changes.recovery import BLOCK
from changes.streams import Length
from contest.figure import FAINT, INK, OURS, PACKAGES
from mixed.payments import Size
from pairloom.cli.figures import plain, position, spread


@dataclass(frozen=True)
class Line:
    """How one learner is drawn, under what name."""

    label: str
    colour: str
    width: float = 1.5
    style: str = "-"


LINES = {
    "AUCClassifier, drift='auto'": Line('AUCClassifier,\ndrift="auto"', OURS, 2.4),
    "AUCClassifier, drift=None": Line("AUCClassifier,\ndrift=None", PACKAGES["pairloom"]),
    "LightGBM, last 60,000 rows": Line("LightGBM, last\n60,000 rows", PACKAGES["lightgbm"]),
    "river ARF, its own detectors": Line("river ARF", PACKAGES["river"]),
    "river logistic": Line("river logistic", PACKAGES["river"], 1.2, ":"),
}
"""By title; a learner that is not here is not drawn."""


def draw(name: str, changes: sudden.Found, length: Length, payments: slow.Found, size: Size, out: Path) -> None:
    """Save both panels as a PNG: the stream ``name`` of the sudden ones, and the payments; means over seeds."""
    figure = Figure(figsize=(10, 4.2), dpi=150, facecolor="white")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, gridspec_kw={"left": 0.06, "right": 0.88, "wspace": 0.5, "bottom": 0.13})
    figure.subplots_adjust(top=0.84)
    around(left, name, changes, length)
    along(right, payments, size)
    for axes in (left, right):
        axes.set_xlabel("rows", color=INK, fontsize=9)
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.grid(axis="y", color="#e6e6e6", linewidth=0.8)
        plain(axes)
    figure.savefig(out, format="png")


def around(axes: Axes, name: str, changes: sudden.Found, length: Length) -> None:
    """From a while before the change to a while after it; the goal is that of AUCClassifier."""
    end = length.before + length.after * 3 // 8
    ends = {}
    for title, line in LINES.items():
        runs = changes.get((name, title))
        if not runs:
            continue
        aucs = np.mean([run.aucs for run in runs], axis=0)
        rows = length.window + BLOCK * np.arange(len(aucs))
        shown = (rows >= length.before - length.after // 16) & (rows <= end)
        axes.plot(rows[shown], aucs[shown], color=line.colour, linewidth=line.width, linestyle=line.style)
        ends[title] = float(aucs[shown][-1])
    goal = np.mean([run.goal_after for run in changes[name, "AUCClassifier, drift=None"]])
    axes.hlines(goal, length.before, end, color=INK, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    axes.text(end, goal + 0.012, "trained on the new concept alone", ha="right", fontsize=7.5, color=INK)
    axes.axvline(length.before, color=FAINT, linewidth=0.8, zorder=0)
    axes.text(length.before, 0.02, " the concept changes", transform=axes.get_xaxis_transform(), fontsize=7.5,
              color=FAINT)  # fmt: skip
    axes.set_ylim(top=1.06)
    named(axes, "A sudden change", f"{name}; AUC of the newest {length.window:,} rows", ends)


def along(axes: Axes, payments: slow.Found, size: Size) -> None:
    ends = {}
    for title, line in LINES.items():
        runs = payments.get(title)
        if not runs:
            continue
        windows = np.mean([run.windows for run in runs], axis=0)[1:]
        rows = size.every * (2 + np.arange(len(windows)))
        axes.plot(rows, windows, color=line.colour, linewidth=line.width, linestyle=line.style)
        ends[title] = float(windows[-1])
    axes.axvspan(size.rows * 3 // 4, size.rows, color="#f5f5f5", zorder=0)
    axes.set_xlim(right=size.rows)
    named(axes, "A slow change", f"payments, 1 % fraud; AUC of windows of {size.every:,} rows", ends)


def named(axes: Axes, title: str, subtitle: str, ends: dict[str, float]) -> None:
    """A title, and each line's name where it ends."""
    axes.set_title(title, loc="left", fontsize=11, fontweight="bold", color=INK, pad=18)
    axes.text(0, 1.03, subtitle, transform=axes.transAxes, fontsize=8.5, color=FAINT)
    heights = spread({name: position(axes, end) for name, end in ends.items()}, gap=0.11)
    for name, height in heights.items():
        axes.annotate(LINES[name].label, (1.02, height), xycoords="axes fraction", color=LINES[name].colour,
                      fontsize=8.5, va="center", annotation_clip=False, linespacing=1.1)  # fmt: skip
