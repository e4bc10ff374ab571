"""AUC against time per row: one panel per data set."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from contest.contestants import CONTESTANTS
from contest.datasets import Data
from contest.records import Records, Summary, summary

INK, FAINT = "#333333", "#8c8c8c"
LOOKS = {
    "AUCClassifier": ("#d55e00", "*"),
    "FPOGD": ("#e69f00", "v"),
    "FPOGD-tuned": ("#e69f00", "^"),
    "ExactAUC": ("#cc79a7", "D"),
    "SGD-tuned": ("#0072b2", "o"),
    "river": ("#56b4e9", "s"),
    "logistic": ("#009e73", "P"),
    "LightGBM": ("#000000", "X"),
    "SVC": ("#8c8c8c", "h"),
}
"""Colour (Okabe and Ito's, which colour-blind readers can tell apart) and marker."""


def draw(records: Records, data: tuple[Data, ...], out: Path) -> None:
    """Save one panel per data set that has records; the legend takes the last place."""
    panels = []
    for one in data:
        found = {c.name: summary(records, one.name, c.name) for c in CONTESTANTS}
        if any(found.values()):
            panels.append((one, {name: made for name, made in found.items() if made}))
    columns = 4 if len(panels) > 3 else len(panels) + 1
    rows = -(-(len(panels) + 1) // columns)
    figure = Figure(figsize=(2.75 * columns, 2.75 * rows + 0.3), dpi=150, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    places = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, (one, found) in zip(places, panels, strict=False):
        draw_panel(axes, one, found)
    for axes in places[len(panels) :]:
        axes.axis("off")
    legend(places[len(panels)], {name for _, found in panels for name in found})
    figure.supxlabel("microseconds per row to learn, one thread (log scale)", fontsize=9, color=INK)
    figure.supylabel("AUC, mean of five folds ± standard error", fontsize=9, color=INK)
    figure.savefig(out, format="png")


def ends(found: list[Summary]) -> tuple[float, float]:
    """Of an axis on which the better half takes up at least a third of the room, and errors do not fill it."""
    aucs, error = [made.auc for made in found], float(np.nanmedian([made.error for made in found]))
    best = max(aucs)
    low = max(min(aucs), best - max(3.0 * (best - float(np.median(aucs))), 4.0 * error, 0.004))
    room = max(best - low, 1e-3)
    return low - 0.15 * room, max(best + 0.1 * room, best + 1.1 * error)


def draw_panel(axes: Axes, data: Data, found: dict[str, Summary]) -> None:
    """A marker and a bar for each; who is below the axis is shown at its foot, with its AUC."""
    low, high = ends(list(found.values()))
    axes.set_ylim(low, high)
    below = 0
    for name, made in sorted(found.items(), key=lambda item: item[1].micros):
        colour, marker = LOOKS[name]
        first = name == "AUCClassifier"
        style = {"color": colour, "marker": marker, "markersize": 13 if first else 6.5, "zorder": 4 if first else 3}
        if made.auc < low:
            foot = low + 0.04 * (high - low)
            axes.plot(made.micros, foot, **style, markeredgecolor="white", markeredgewidth=0.6)
            axes.annotate(f"{made.auc:.3f} ↓", (made.micros, foot), (0, 6 + 8 * (below % 2)), fontsize=6.5,
                          textcoords="offset points", color=colour, ha="center")  # fmt: skip
            below += 1
        else:
            axes.errorbar(
                made.micros, made.auc, yerr=np.nan_to_num(made.error), **style, markeredgecolor="white",
                markeredgewidth=0.6, elinewidth=1.2, capsize=0,
            )  # fmt: skip
    times = [made.micros for made in found.values()]
    axes.set_xscale("log")
    axes.set_xlim(min(times) / 2.5, max(times) * 2.5)
    axes.xaxis.set_major_locator(LogLocator(10, numticks=6))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axes.set_title(data.title, loc="left", fontsize=9, fontweight="bold", color=INK, pad=14)
    size = f"{data.n_rows:,} rows, {data.n_features} columns"
    axes.text(0, 1.025, size, transform=axes.transAxes, fontsize=7.5, color=FAINT)
    axes.tick_params(labelsize=7.5, colors=INK)
    axes.grid(color="#eeeeee", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def legend(axes: Axes, names: set[str]) -> None:
    shown = [contestant for contestant in CONTESTANTS if contestant.name in names]
    handles = []
    for contestant in shown:
        colour, marker = LOOKS[contestant.name]
        size = 13 if contestant.name == "AUCClassifier" else 7
        handles.append(Line2D([], [], linestyle="", color=colour, marker=marker, markersize=size,
                              markeredgecolor="white"))  # fmt: skip
    titles = [f"{contestant.title}, {'one pass' if contestant.passes == 'one' else 'batch'}" for contestant in shown]
    axes.legend(handles, titles, loc="center left", frameon=False, fontsize=8, labelspacing=0.75, labelcolor=INK)
