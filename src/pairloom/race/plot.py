"""The standings of a race as a picture."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pairloom.base.extras import needed
from pairloom.base.typing import Array
from pairloom.race.state import Standing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31", "#000000")
"""Okabe and Ito's, which colour-blind readers can tell apart, and one more."""


def shares_over_time(standings: Sequence[Standing]) -> tuple[list[str], Array, Array]:
    """The candidates' names, the rows at which they were weighed, and the share of each (names, rows) from there on."""
    names = list(dict.fromkeys(one.name for one in standings))
    rows = np.array(sorted({one.row for one in standings}), dtype=np.int64)
    shares = np.zeros((len(names), len(rows)))
    for one in standings:
        shares[names.index(one.name), np.searchsorted(rows, one.row)] = one.share
    return names, rows, shares


def plot_standings(standings: Sequence[Standing], axes: "Sequence[Axes] | None" = None) -> "Sequence[Axes]":
    """Draw the area under the curve of each candidate against the row, and below it their shares of the mixture."""
    if axes is None:
        pyplot = needed("matplotlib.pyplot", "plot", "Drawing a race")
        layout = {"height_ratios": [3, 2]}
        axes = pyplot.subplots(2, figsize=(8, 6), sharex=True, layout="constrained", gridspec_kw=layout)[1]
    above, below = axes
    names, rows, shares = shares_over_time(standings)
    for k, name in enumerate(names):
        own = [one for one in standings if one.name == name]
        at = np.searchsorted(rows, [one.row for one in own])
        colour = COLOURS[k % len(COLOURS)]
        said = np.where(shares[k, at] > 0, [one.auc for one in own], np.nan)
        above.plot(rows[at], [one.auc for one in own], color=colour, linewidth=0.8, alpha=0.5)
        above.plot(rows[at], said, color=colour, linewidth=2, label=name)
    if names:
        below.stackplot(rows, shares, colors=[COLOURS[k % len(COLOURS)] for k in range(len(names))], linewidth=0)
    _dress(above, below, empty=not names)
    return axes


def _dress(above: "Axes", below: "Axes", *, empty: bool) -> None:
    below.set_xscale("log", base=2)
    below.xaxis.set_major_formatter(lambda row, _: f"{row:,.0f}")
    below.set_xlabel("rows")
    below.set_ylabel("share of the mixture")
    below.set_ylim(0, 1)
    above.set_ylabel("AUC in the newer windows")
    for ax in (above, below):
        ax.spines[["top", "right"]].set_visible(False)
    if not empty:
        above.legend(frameon=False, loc="lower right", fontsize="small")
