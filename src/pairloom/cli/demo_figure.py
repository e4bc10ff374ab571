"""The figure of `pairloom demo`: AUC and alerts through a change."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pairloom.base.files import replacing
from pairloom.base.typing import Array
from pairloom.cli.figures import BLUE, FAINT, INK, ORANGE, new_figure, plain

FOUND, LIGHT_BLUE = "#aa3377", "#b9d7ea"


@dataclass(frozen=True)
class Curves:
    """AUC of the newest ``window`` rows by system, and alerts and hits ``per`` so many rows, with their ``budget``.

    ``change``: the row of the change, which was ``found`` after so many ``frauds``.
    """

    rows: Array
    auc: dict[str, Array]
    window: int
    alerts: Array
    hits: Array
    per: int
    budget: float
    change: int
    found: int | None
    frauds: str


def draw_curves(curves: Curves, out: Path) -> None:
    """Draw AUC above alerts, with the row of the change and the row at which it was found."""
    figure = new_figure(9, 5.6, layout="constrained")
    above, below = figure.subplots(2, sharex=True, gridspec_kw={"height_ratios": [1.6, 1]})
    _draw_auc(above, curves)
    _draw_alerts(below, curves)
    for axes in (above, below):
        axes.axvline(curves.change, color=INK, linewidth=1.2, linestyle=":")
        if curves.found is not None:
            axes.axvline(curves.found, color=FOUND, linewidth=1.4, linestyle=(0, (4, 2)))
        axes.set_xlim(0, curves.rows[-1])
        plain(axes)
        axes.tick_params(labelsize=10)
    below.set_xlabel("payments", color=INK, fontsize=11)
    below.set_xticks(range(0, int(curves.rows[-1]) + 1, 2 * curves.window))
    below.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    with replacing(out) as file:
        figure.savefig(file, format="png", dpi=150)


def _draw_auc(axes: Any, curves: Curves) -> None:
    """Draw a line for each system, with its name."""
    axes.axhline(0.5, color=FAINT, linewidth=1, linestyle="--")
    axes.text(0.01, 0.51, "chance", color=FAINT, fontsize=9, transform=axes.get_yaxis_transform(), va="bottom")
    for (name, auc), colour in zip(curves.auc.items(), (BLUE, ORANGE), strict=False):
        axes.plot(curves.rows, auc, color=colour, linewidth=2.4 if colour == BLUE else 1.6, label=name)
    axes.tick_params(labelbottom=False)
    low = min(float(np.nanmin(auc)) for auc in curves.auc.values())
    axes.set_ylim(min(0.45, low - 0.03), 1.0)
    axes.legend(frameon=False, fontsize=10, loc="lower left", labelcolor=INK, borderaxespad=0.6)
    axes.set_title(f"AUC of the newest {curves.window:,} payments", loc="left", fontsize=11, color=INK, pad=22)
    axes.text(curves.change, 1.015, "fraud changes  ", color=INK, fontsize=9.5, ha="right", va="bottom")
    if curves.found is not None:
        text = f"  found, {curves.frauds} frauds later"
        axes.text(curves.found, 1.015, text, color=FOUND, fontsize=9.5, ha="left", va="bottom")
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.8)


def _draw_alerts(axes: Any, curves: Curves) -> None:
    """Draw bars of alerts, those of frauds darker, and the budget."""
    start, width = np.arange(len(curves.alerts)) * curves.per, 0.86 * curves.per
    middle = start + 0.5 * curves.per
    axes.bar(middle, curves.alerts, width, color=LIGHT_BLUE, label="alerts")
    axes.bar(middle, curves.hits, width, color=BLUE, label="frauds among them")
    axes.axhline(curves.budget, color=INK, linewidth=1.2, linestyle="--", label=f"budget: {curves.budget:.0f}")
    axes.set_ylim(0, 1.35 * max(curves.budget, curves.alerts.max()))
    axes.legend(frameon=False, fontsize=10, loc="upper left", ncols=3, labelcolor=INK, borderaxespad=0.2)
    axes.set_title(f"Alerts of AUCClassifier in {curves.per:,} payments", loc="left", fontsize=11, color=INK)
