"""Figures of explanations: bars for one row, dots for many."""

from typing import TYPE_CHECKING, Any

import numpy as np

from pairloom.base.extras import import_extra
from pairloom.base.typing import Array
from pairloom.explain.sentences import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pairloom.explain.explanation import Explanation

RAISES, LOWERS, INK, GRID = "#d55e00", "#0072b2", "#333333", "#ececec"

MAX_COLUMNS = 20
"""Columns in a figure of many rows; with one row, twice as many as its reasons."""

HEIGHT = 0.36
"""Largest distance of a dot from the line of its column."""


def plot_bars(explanation: "Explanation", axes: "Axes | None" = None) -> "Axes":
    """Plot the contributions to the score of one row, the largest on top, the sum of all others at the end."""
    values, most = explanation.values[0], 2 * explanation.top_n
    order = [j for j in np.argsort(-np.abs(values), kind="stable").tolist() if values[j]]
    shown, rest = order[:most], order[most:]
    labels = [_label(explanation, j) for j in shown]
    lengths = [float(values[j]) for j in shown]
    if rest:
        labels.append(f"{len(rest)} other columns")
        lengths.append(float(values[rest].sum()))
    axes = _axes(axes, len(labels))
    axes.barh(range(len(lengths)), lengths, color=[RAISES if v > 0 else LOWERS for v in lengths], height=0.7)
    reach = max(map(abs, lengths), default=1.0)
    for k, v in enumerate(lengths):
        side = "left" if v > 0 else "right"
        axes.text(v + np.copysign(0.015 * reach, v), k, _signed(v), va="center", ha=side, fontsize="small", color=INK)
    axes.set_xlim(min(0.0, *lengths, 0.0) - 0.16 * reach, max(0.0, *lengths, 0.0) + 0.16 * reach)
    score, base = float(explanation.scores[0]), float(explanation.base[0])
    title = f"score {_plain(score)}; typical rows {_plain(base)} on average"
    _finish(axes, labels, title)
    return axes


def plot_dots(explanation: "Explanation", axes: "Axes | None" = None) -> "Axes":
    """Plot one dot per row and column; its colour is the rank of the value among those of the column."""
    values = explanation.values
    size = np.abs(values).mean(axis=0)
    shown = [j for j in np.argsort(-size, kind="stable").tolist() if size[j]][:MAX_COLUMNS]
    axes = _axes(axes, len(shown))
    matplotlib = import_extra("matplotlib", "plot", "Drawing an explanation")
    colours = matplotlib.colors.LinearSegmentedColormap.from_list("pairloom", [LOWERS, "#b9b9b9", RAISES])
    for k, j in enumerate(shown):
        own = values[:, j]
        numbers = explanation.cells.texts[j] is None
        colour: Any = colours(_ranks(explanation.cells.numbers[:, j])) if numbers else "#7f7f7f"
        axes.scatter(own, k + _spread(own), s=9, c=colour, linewidths=0, zorder=3)
    axes.margins(x=0.03)
    title = f"{len(values):,} rows; colour: low (blue) to high (orange) values of the column, grey: categories"
    _finish(axes, [printable(explanation.columns[j]).replace("$", r"\$") for j in shown], title)
    return axes


def _axes(axes: "Axes | None", lines: int) -> Any:
    if axes is not None:
        return axes
    pyplot = import_extra("matplotlib.pyplot", "plot", "Drawing an explanation")
    return pyplot.subplots(figsize=(8, 1.2 + 0.34 * max(2, lines)), layout="constrained")[1]


def _label(explanation: "Explanation", j: int) -> str:
    text = explanation.cells.text(0, j)
    shown = f"{printable(explanation.columns[j])} = {'missing' if text is None else text}"
    return shown.replace("$", r"\$")


def _finish(axes: Any, labels: list[str], title: str) -> None:
    axes.axvline(0.0, color=INK, linewidth=0.8, zorder=2)
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.set_title(title, loc="left", fontsize="medium", color=INK)
    axes.set_xlabel("contribution to the score", color=INK)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(colors=INK, length=0)
    axes.grid(axis="x", color=GRID)
    axes.set_axisbelow(True)


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "\N{MINUS SIGN}")


def _plain(value: float) -> str:
    return f"{value:.2f}".replace("-", "\N{MINUS SIGN}")


def _ranks(numbers: Array) -> Array:
    """Return the share of the other values that are lower; missing values have 0.5."""
    known = ~np.isnan(numbers)
    out = np.full(len(numbers), 0.5)
    values, place = np.unique(numbers[known], return_inverse=True)
    out[known] = place / max(1, len(values) - 1)
    return out


def _spread(values: Array) -> Array:
    """Return offsets that keep dots with nearly equal values apart."""
    span = float(np.ptp(values)) or 1.0
    cell = np.round(60 * (values - values.min()) / span).astype(int)
    out = np.zeros(len(values))
    for one in np.unique(cell):
        own = np.flatnonzero(cell == one)
        k = np.arange(len(own))
        out[own] = np.where(k % 2, 1, -1) * ((k + 1) // 2)
    return HEIGHT * out / max(1.0, float(np.abs(out).max()))
