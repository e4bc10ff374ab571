"""The standings of a race as a picture."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pairloom.base.extras import needed
from pairloom.race.state import Standing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00")
"""Okabe and Ito's, which colour-blind readers can tell apart."""
FAINT = "#b8b8b8"


def plot_standings(standings: Sequence[Standing], mixture: Sequence[str], ax: "Axes | None" = None) -> "Axes":
    """Draw the area under the curve of each candidate against the row; those of the mixture in colour."""
    if ax is None:
        pyplot = needed("matplotlib.pyplot", "plot", "Drawing a race")
        ax = pyplot.subplots(figsize=(8, 4.5), layout="constrained")[1]
    lines: dict[str, list[tuple[int, float]]] = {}
    for one in standings:
        lines.setdefault(one.name, []).append((one.row, one.auc))
    for name, points in sorted(lines.items(), key=lambda line: line[0] in mixture):
        rows, areas = zip(*points, strict=True)
        if name in mixture:
            ax.plot(rows, areas, color=COLOURS[list(mixture).index(name)], linewidth=2, label=name, zorder=3)
        else:
            ax.plot(rows, areas, color=FAINT, linewidth=0.8)
        ax.plot(rows[-1:], areas[-1:], ".", color=COLOURS[list(mixture).index(name)] if name in mixture else FAINT)
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_formatter(lambda row, _: f"{row:,.0f}")
    ax.set_xlabel("rows")
    ax.set_ylabel("AUC in the newer windows")
    ax.spines[["top", "right"]].set_visible(False)
    if lines:
        ax.legend(title="in the mixture now", frameon=False, loc="lower right")
    return ax
