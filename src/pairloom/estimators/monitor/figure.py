"""The panels as a Matplotlib figure."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pairloom.base.extras import import_extra
from pairloom.estimators.monitor.panels import DRIFT_COLOUR, Panel, panels_of, row_ticks
from pairloom.estimators.monitor.view import View

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, FAINT, GRID = "#333333", "#6b6b6b", "#ececec"


def plot_view(view: View, axes: "Sequence[Axes] | None" = None) -> "Sequence[Axes]":
    """Plot the panels, one below the other, over the rows of the stream."""
    panels = panels_of(view)
    if axes is None:
        pyplot = import_extra("matplotlib.pyplot", "plot", "Drawing a stream")
        heights = {"height_ratios": [panel.height for panel in panels]}
        axes = pyplot.subplots(
            len(panels), figsize=(9, 9), sharex=True, layout="constrained", gridspec_kw=heights
        )[1]  # fmt: skip
    for panel, ax in zip(panels, axes, strict=True):
        _draw(panel, ax)
        for row in view.alarms:
            ax.axvline(row, color=DRIFT_COLOUR, linewidth=1.1, linestyle=(0, (4, 2)), zorder=4)
        ax.set_xticks(row_ticks(view.rows))
        ax.set_xlim(0, max(1, view.rows))
        ax.xaxis.set_major_formatter(lambda row, _: f"{row:,.0f}")
    axes[-1].set_xlabel("rows", color=INK)
    if view.alarms:
        lines: Any = import_extra("matplotlib.lines", "plot", "Drawing a stream")
        _legend(
            axes[0], {"change found": lines.Line2D([], [], color=DRIFT_COLOUR, linewidth=1.1, linestyle=(0, (4, 2)))}
        )
    return axes


def _draw(panel: Panel, ax: "Axes") -> None:
    for band in panel.bands:
        ax.fill_between(
            band.x, band.low, band.high, color=band.colour, alpha=band.strength, linewidth=0,
            step="post" if band.steps else None,
        )  # fmt: skip
    for line in panel.lines:
        ax.plot(
            line.x, line.y, color=line.colour, linewidth=1.0 if line.dashed else 1.7, zorder=3,
            linestyle="--" if line.dashed else "-", marker="o" if len(line.x) == 1 else None, markersize=3,
        )  # fmt: skip
    ax.set_ylim(*panel.span)
    ax.set_yticks(list(panel.ticks), list(panel.ticks.values()))
    title = ax.set_title(panel.title, loc="left", fontsize="medium", fontweight="bold", color=INK)
    # Placed relative to the title, whose position is known only after drawing; the layout ignores it.
    ax.annotate(
        panel.about, (1, 0), xytext=(8, 0), xycoords=title, textcoords="offset points", fontsize="small", color=FAINT,
        verticalalignment="bottom",
    ).set_in_layout(False)  # fmt: skip
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(FAINT)
    ax.tick_params(colors=INK, labelsize="small", length=3, width=0.7)
    ax.grid(color=GRID, linewidth=0.8)
    ax.set_axisbelow(True)
    if panel.key:
        patches = import_extra("matplotlib.patches", "plot", "Drawing a stream")
        key = {name: patches.Patch(color=colour, alpha=0.75, linewidth=0) for name, colour in panel.key}
        _legend(ax, key, handlelength=1.0, handleheight=1.0)


def _legend(ax: "Axes", handles: dict[str, Any], **style: Any) -> None:
    ax.legend(
        handles.values(), handles.keys(), loc="upper left", bbox_to_anchor=(1.0, 1.02), frameon=False,
        fontsize="small", labelcolor=INK, borderaxespad=0.4, **style,
    )  # fmt: skip
