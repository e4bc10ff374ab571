"""AUC against time per row: one panel per data set."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from contest.contestants import CONTESTANTS
from contest.datasets import Data
from contest.labels import label
from contest.records import Records, Summary, summary

INK, FAINT = "#333333", "#8c8c8c"
PACKAGES = {"pairloom": "#b8620a", "scikit-learn": "#0072b2", "river": "#007a5a", "lightgbm": "#4d4d4d",
            "catboost": "#7b3294"}  # fmt: skip
"""Colours that colour-blind readers can tell apart, dark enough for text."""
OURS = "#d1260f"
SHAPES = {"one": "o", "batch": "s"}
SHORT = {
    "FPOGD": "FPOGD", "FPOGD-tuned": "FPOGD, tuned", "ExactAUC-linear": "Exact, linear", "SGD-tuned": "SGD, tuned",
    "ARF": "ARF", "AMF": "AMF",
    "HistGradientBoosting": "HistGB", "LightGBM-defaults": "LightGBM",
}  # fmt: skip
"""Titles on the panels, where the colour says the package."""
NOTES = {"river": "river (forests: the first rows only)", "lightgbm": "LightGBM", "catboost": "CatBoost"}


class Look(NamedTuple):
    """How a contestant is drawn."""

    colour: str
    marker: str
    size: float
    first: bool


def look(name: str) -> Look:
    contestant = next(contestant for contestant in CONTESTANTS if contestant.name == name)
    if name == "AUCClassifier":
        return Look(OURS, "*", 17.0, True)
    return Look(PACKAGES[contestant.package], SHAPES[contestant.passes], 6.0, False)


def draw(records: Records, data: tuple[Data, ...], out: Path) -> None:
    """Save one panel per data set that has records; the legend takes the last place, or a line above full rows."""
    panels = []
    for one in data:
        found = {c.name: made for c in CONTESTANTS if (made := summary(records, one.name, c.name))}
        if found:
            panels.append((one, found))
    columns = 4 if len(panels) > 3 else len(panels) + 1
    rows, full = -(-len(panels) // columns), len(panels) % columns == 0
    figure = Figure(figsize=(3.4 * columns, 3.5 * rows + 0.3), dpi=150, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    places = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, (one, found) in zip(places, panels, strict=False):
        draw_panel(axes, one, found)
    for axes in places[len(panels) :]:
        axes.axis("off")
    shown = {name for _, found in panels for name in found if not look(name).first}
    packages = {c.package for c in CONTESTANTS if c.name in shown}
    where = {"loc": "outside upper center", "ncols": 8} if full else {"loc": "center left"}
    legend(figure if full else places[len(panels)], packages, where)
    machines = {r.machine for r in records.all.values() if any(r.data == one.name for one in data)}
    note = f", {len(machines)} machines" if len(machines) > 1 else ""
    figure.supxlabel(f"microseconds per row to learn, one thread{note} (log scale)", fontsize=10, color=INK)
    figure.supylabel("AUC, mean over folds or windows (log scale of what is missing to 1)", fontsize=10, color=INK)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # the labels go by where the panels are now
    for axes, (_, found) in zip(places, panels, strict=False):
        write_labels(axes, found)
    figure.savefig(out, format="png")


def missing(made: Summary) -> float:
    return max(1.0 - made.auc, 1e-5)


def draw_panel(axes: Axes, data: Data, found: dict[str, Summary]) -> None:
    """A marker for each, and a bar of one standard error to both sides."""
    for name, made in found.items():
        colour, marker, size, first = look(name)
        axes.plot(made.micros, missing(made), marker, color=colour, markersize=size, markeredgecolor="white",
                  markeredgewidth=0.7, zorder=4 if first else 3)  # fmt: skip
        error = min(float(np.nan_to_num(made.error)), 0.9 * missing(made))
        axes.vlines(made.micros, missing(made) - error, missing(made) + error, color=colour, linewidth=0.9, alpha=0.35)
    times, gaps = [made.micros for made in found.values()], [missing(made) for made in found.values()]
    axes.set_xscale("log")
    axes.set_yscale("log")
    _room(axes, times, gaps)
    axes.xaxis.set_major_locator(LogLocator(10, numticks=8))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}" if x >= 1 else f"{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_locator(FixedLocator([1.0 - auc for auc in round_aucs(*axes.get_ylim())]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda gap, _: f"{1 - gap:.5f}".rstrip("0").ljust(4, "0")))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_title(data.title, loc="left", fontsize=10, fontweight="bold", color=INK, pad=16)
    size_of = f"{data.n_rows:,} rows, {data.n_features} columns"
    axes.text(0, 1.025, size_of, transform=axes.transAxes, fontsize=8, color=FAINT)
    axes.tick_params(labelsize=8, colors=INK)
    axes.grid(color="#eeeeee", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _room(axes: Axes, times: list[float], gaps: list[float]) -> None:
    """Ends of the axes, the better up, with some room for labels."""
    wide, high = np.log10(max(times) / min(times)) + 0.1, np.log10(max(gaps) / min(gaps)) + 0.02
    axes.set_xlim(min(times) / 10 ** (0.14 * wide), max(times) * 10 ** (0.16 * wide))
    axes.set_ylim(max(gaps) * 10 ** (0.1 * high), min(gaps) / 10 ** (0.12 * high))


def round_aucs(low: float, high: float) -> list[float]:
    """Four round AUCs or more between two distances to 1, if there are as many: 0.99, 0.98, 0.95 if this will do."""
    low, high = sorted((low, high))
    for steps in ((10, 20, 50), (10, 15, 20, 30, 40, 60, 80), range(10, 100, 5), range(10, 100, 2), range(10, 100)):
        gaps = [step * 10.0**power for power in range(-6, -1) for step in steps]
        inside: list[float] = []
        for gap in (gap for gap in gaps if low <= gap <= high):
            if not inside or np.log(gap / inside[-1]) > np.log(high / low) / 12:
                inside.append(gap)
        if len(inside) >= 4:
            break
    return [1.0 - gap for gap in inside]


def write_labels(axes: Axes, found: dict[str, Summary]) -> None:
    titles = {contestant.name: contestant.title for contestant in CONTESTANTS}
    looks = [look(name) for name in found]
    label(
        axes,
        np.array([[made.micros, missing(made)] for made in found.values()]),
        np.array([0.3 * one.size if one.first else 0.5 * one.size for one in looks]) + 1.0,
        [SHORT.get(name, titles[name]) for name in found],
        [{"color": one.colour, "fontsize": 9.5 if one.first else 7.5, "fontweight": "bold" if one.first else "normal"}
         for one in looks],
    )  # fmt: skip


def legend(parent: Axes | Figure, packages: set[str], where: dict[str, Any]) -> None:
    """Colours are packages, of which those on the panels are listed; shapes are passes."""

    def handle(marker: str, colour: str, size: float = 7.0) -> Line2D:
        return Line2D([], [], linestyle="", color=colour, marker=marker, markersize=size, markeredgecolor="white")

    shown = {
        "pairloom's AUCClassifier, one pass": handle("*", OURS, 17.0),
        "one pass over the rows": handle("o", FAINT),
        "batch: all rows at hand": handle("s", FAINT),
    } | {NOTES.get(name, name): handle("D", colour) for name, colour in PACKAGES.items() if name in packages}
    looks = {"frameon": False, "fontsize": 9, "labelspacing": 0.8, "labelcolor": INK}
    parent.legend(shown.values(), shown.keys(), **where, **looks)
