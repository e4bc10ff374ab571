"""Figures of the commands `evaluate`, `inspect` and `demo`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pairloom.base.extras import import_extra
from pairloom.base.files import replacing
from pairloom.base.typing import Array
from pairloom.metrics.auc import weighted_auc
from pairloom.metrics.curve import average_precision, mass_above

INK, FAINT = "#333333", "#8c8c8c"
COLOURS = BLUE, GREEN, ORANGE = "#0072b2", "#009e73", "#d55e00"
"""The colour-blind safe palette of Okabe and Ito."""

POSITIVE_SHADES, NEGATIVE_SHADES = ("#5b2a6e", "#e3cdec"), ("#37474f", "#d3dce0")
"""Dark and light end of the bands of each class."""


def new_figure(width: float, height: float, **options: Any) -> Any:
    """Return an empty figure that opens no window."""
    import_extra("matplotlib", "plot", "A figure")
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), facecolor="white", **options)


def _save(figure: Any, out: Path) -> None:
    """Save atomically under exactly this name."""
    with replacing(out) as file:
        figure.savefig(file, format=out.suffix[1:].lower() or "png", dpi=150)


def draw_curves(scores: Array, positive: Array, weights: Array, out: Path, title: str) -> None:
    """Draw the ROC and precision-recall curves side by side."""
    own, other = mass_above(scores, positive, weights)
    tpr, fpr = own / own[-1], other / other[-1]
    precision, chance = own[1:] / (own + other)[1:], own[-1] / (own[-1] + other[-1])
    figure = new_figure(9, 4.4, layout="constrained")
    left, right = figure.subplots(1, 2)
    area = float(weighted_auc(scores[:, None], positive, weights)[0])
    left.plot(fpr, tpr, color=BLUE, linewidth=2)
    left.plot([0, 1], [0, 1], color=FAINT, linewidth=0.8, linestyle=":")
    right.step(tpr[1:], precision, where="pre", color=ORANGE, linewidth=2)
    right.axhline(chance, color=FAINT, linewidth=0.8, linestyle=":")
    precision_title = f"average precision {average_precision(scores, positive, weights):.4f}"
    for axes, name, x, y in (
        (left, f"AUC {area:.4f}", "false positive rate", "true positive rate"),
        (right, precision_title, "recall", "precision"),
    ):
        axes.set_title(name, fontsize=10, color=INK, loc="left")
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        axes.set_xlim(-0.01, 1.01)
        axes.set_ylim(-0.01, 1.01)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title, fontsize=11, color=INK)
    _save(figure, out)


def draw_race(model: Any, out: Path, title: str) -> None:
    """Draw the candidates of an AUCClassifier along the stream."""
    figure = new_figure(8, 6, layout="constrained")
    axes = figure.subplots(2, sharex=True, gridspec_kw={"height_ratios": [3, 2]})
    model.plot_race(axes)
    figure.suptitle(title, fontsize=11, color=INK)
    _save(figure, out)


def draw_strata(sizes: dict[str, Array], out: Path, title: str) -> None:
    """Draw the shares of the strata of each class, the largest first."""
    figure = new_figure(8, 4, layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, len(sizes), sharey=True))
    for axes, (name, own) in zip(panels, sizes.items(), strict=True):
        axes.bar(np.arange(1, len(own) + 1), np.sort(own)[::-1] / max(own.sum(), 1e-300), color=BLUE)
        axes.set_title(name, fontsize=10, color=INK, loc="left")
        axes.set_xlabel("stratum")
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("share of the class")
    figure.suptitle(title, fontsize=11, color=INK)
    _save(figure, out)


@dataclass(frozen=True)
class Panel:
    """One column of the demo figure.

    Parameters
    ----------
    seen : number of rows learned at each point
    auc : AUC at each point, by learner
    label : text of the coloured lines, by learner; the others are grey
    final : AUC over the second half, by learner
    strata : for the rare class and the rest, sizes of shape (points, strata); 0 if there is no stratum yet
    """

    title: str
    subtitle: str
    classes: tuple[str, str]
    seen: Array
    auc: dict[str, Array]
    label: dict[str, str]
    final: dict[str, float]
    strata: tuple[Array, Array]


def draw_demo(panels: list[Panel], out: Path, title: str, caption: str) -> None:
    """Draw the panels of the demo side by side."""
    figure = new_figure(10, 12)
    sides = {"left": 0.07, "right": 0.87, "wspace": 0.58}
    along = figure.add_gridspec(2, len(panels), height_ratios=(1.55, 1), top=0.915, bottom=0.56, hspace=0.12, **sides)
    beside = figure.add_gridspec(1, len(panels), top=0.495, bottom=0.075, left=0.16, right=0.97, wspace=0.62)
    figure.text(0.018, 0.972, title, fontsize=15, fontweight="bold", color=INK)
    figure.text(0.018, 0.012, caption, fontsize=7.5, color=FAINT, va="bottom", linespacing=1.4)
    for column, panel in enumerate(panels):
        above = figure.add_subplot(along[0, column])
        below = figure.add_subplot(along[1, column], sharex=above)
        _draw_auc(above, panel)
        _draw_bands(below, panel)
        _draw_final(figure.add_subplot(beside[0, column]), panel)
        if column == 0:
            above.set_ylabel("AUC of the last rows", color=INK, fontsize=9)
            below.set_ylabel("share of the class", color=INK, fontsize=9)
    with replacing(out) as file:
        figure.savefig(file, format="png", dpi=150)


def _draw_auc(axes: Any, panel: Panel) -> None:
    """Draw one line per learner, with labels at the ends."""
    ends = {name: float(panel.auc[name][-1]) for name in panel.label}
    for name, auc in panel.auc.items():
        colour, first = _colour_of(panel, name), name == next(iter(panel.label))
        width = 2.4 if first else 1.5 if name in panel.label else 0.6
        axes.plot(
            panel.seen, auc, color=colour, linewidth=width, zorder=3 if first else 2 if name in panel.label else 1
        )
    low = min(float(np.nanmin(panel.auc[name])) for name in panel.label)
    axes.set_ylim(low - 0.15 * (1.0 - low), 1.0 + 0.03 * (1.0 - low))
    axes.set_xlim(0, panel.seen[-1])
    axes.yaxis.set_major_locator(_ticks())
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
            color=_colour_of(panel, name), fontsize=8.5, va="center", annotation_clip=False, linespacing=1.15,
        )  # fmt: skip


def _colour_of(panel: Panel, name: str) -> str:
    """Return the colour of a learner with a label; grey for the others."""
    return dict(zip(panel.label, COLOURS, strict=False)).get(name, "#c4c4c4")


def _draw_final(axes: Any, panel: Panel) -> None:
    """Draw a dot for the AUC of each learner; values below the axis are drawn at its edge, with their value.

    The first learner with a label is on top, with a vertical line; the others are sorted by AUC.
    """
    top = next(iter(panel.label))
    names = [*sorted(panel.final.keys() - {top}, key=lambda name: (panel.final[name], name)), top]
    best, middle = max(panel.final.values()), float(np.median(list(panel.final.values())))
    low = best - 2.5 * max(best - middle, 0.005)
    axes.axvline(max(panel.final[top], low), color=_colour_of(panel, top), linewidth=0.8, linestyle=":", zorder=1)
    for height, name in enumerate(names):
        value, colour = panel.final[name], _colour_of(panel, name) if name in panel.label else "#777777"
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
    axes.xaxis.set_major_locator(_ticks())
    axes.set_title("AUC over the second half", loc="left", fontsize=9, color=INK)
    plain(axes)
    axes.grid(axis="x", color="#f0f0f0", linewidth=0.8)


def _draw_bands(axes: Any, panel: Panel) -> None:
    """Draw the shares of the strata of each class as bands: the rare class upwards, the rest downwards."""
    from matplotlib.colors import LinearSegmentedColormap

    for side, ends, name, sizes in zip(
        (1, -1), (POSITIVE_SHADES, NEGATIVE_SHADES), panel.classes, panel.strata, strict=True
    ):
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
    axes.xaxis.set_major_locator(_ticks())
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    plain(axes)


def plain(axes: Any) -> None:
    """Remove the frame except for the horizontal axis."""
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(FAINT)
    axes.tick_params(colors=INK, labelsize=8.5, length=0)


def position(axes: Any, value: float) -> float:
    """Return the height of a value as a fraction of the axes."""
    low, high = axes.get_ylim()
    return float((value - low) / (high - low))


def spread(heights: dict[str, float], gap: float) -> dict[str, float]:
    """Move heights at least ``gap`` apart, so that labels do not overlap; their order stays the same."""
    moved: dict[str, float] = {}
    ceiling = 1.0
    for name in sorted(heights, key=heights.__getitem__, reverse=True):
        moved[name] = min(heights[name], ceiling)
        ceiling = moved[name] - gap
    return moved


def _ticks() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(5, steps=[1, 2, 5, 10])
