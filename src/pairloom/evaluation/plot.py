"""A prequential evaluation as a picture."""

from typing import TYPE_CHECKING

import numpy as np

from pairloom.base.extras import needed
from pairloom.evaluation.prequential import Prequential

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Okabe and Ito's, which colour-blind readers can tell apart."""

PANELS = {
    "auc": "AUC of the newest rows",
    "precision": "precision of alerts",
    "recall": "recall of alerts",
    "loss": "loss",
    "strata": "strata",
    "bytes": "bytes",
    "rows_per_second": "rows per second",
}


def plot(found: Prequential) -> "Figure":
    """A panel for each figure that at least one model tells; the band is the 95 % interval of the AUC."""
    pyplot = needed("matplotlib.pyplot", "plot", "Drawing an evaluation")
    table = found.table
    shown = [name for name in PANELS if name in table and np.isfinite(table[name]).any()]
    heights = [2.2 if name == "auc" else 1.0 for name in shown]
    figure, axes = pyplot.subplots(
        len(shown), 1, sharex=True, squeeze=False, figsize=(8, 1.6 * sum(heights) + 0.6), layout="constrained",
        gridspec_kw={"height_ratios": heights},
    )  # fmt: skip
    for name, ax in zip(shown, axes[:, 0], strict=True):
        for k, model in enumerate(found.names):
            own = table["model"] == model
            rows, colour = table["row"][own], COLOURS[k % len(COLOURS)]
            ax.plot(rows, table[name][own], color=colour, linewidth=1.8, label=model)
            if name == "auc":
                ax.fill_between(rows, table["low"][own], table["high"][own], color=colour, alpha=0.15, linewidth=0)
        ax.set_ylabel(PANELS[name])
        if name in ("bytes", "rows_per_second"):
            ax.set_yscale("log")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0, 0].legend(frameon=False, loc="lower right")
    axes[-1, 0].set_xlabel("rows")
    axes[-1, 0].xaxis.set_major_formatter(lambda row, _: f"{row:,.0f}")
    made: Figure = figure
    return made
