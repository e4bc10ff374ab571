"""Standings of a race: the AUC and share of each candidate over time, recorded, logged and plotted."""

import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from pairloom.base.extras import import_extra
from pairloom.base.spec import Count, Size
from pairloom.base.tree import node
from pairloom.base.typing import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

log = logging.getLogger("pairloom.race")

MAX_STANDINGS = 2048
"""Standings kept; a stream without drift has fewer after a billion rows."""

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31", "#000000")
"""The colour-blind safe palette of Okabe and Ito, and one more colour."""


@node
class Standing:
    """The AUC of a candidate in the recent windows, and its share of the mixture, at ``row``."""

    row: Count
    name: str
    auc: Size
    share: Size


def thinned(standings: list[Standing]) -> list[Standing]:
    """Return the standings; beyond ``MAX_STANDINGS``, those of every second row, with the first and the last."""
    if len(standings) <= MAX_STANDINGS:
        return standings
    rows = list(dict.fromkeys(one.row for one in standings))
    kept = {rows[0], *rows[::-2]}
    return [one for one in standings if one.row in kept]


@contextmanager
def log_to_stderr(verbose: int) -> Iterator[None]:
    """Write the messages of races to stderr inside the block, unless ``verbose`` is 0."""
    if not verbose:
        yield
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    level = log.level
    log.addHandler(handler)
    log.setLevel(min(level or logging.INFO, logging.INFO))
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


def shares_over_time(standings: Sequence[Standing]) -> tuple[list[str], Array, Array]:
    """Return the names of the candidates, the rows of the standings, and the shares (names, rows)."""
    names = list(dict.fromkeys(one.name for one in standings))
    rows = np.array(sorted({one.row for one in standings}), dtype=np.int64)
    shares = np.zeros((len(names), len(rows)))
    for one in standings:
        shares[names.index(one.name), np.searchsorted(rows, one.row)] = one.share
    return names, rows, shares


def plot_standings(standings: Sequence[Standing], axes: "Sequence[Axes] | None" = None) -> "Sequence[Axes]":
    """Plot the AUC of each candidate over the rows, bold while it is in the mixture, and the shares below."""
    if axes is None:
        pyplot = import_extra("matplotlib.pyplot", "plot", "Drawing a race")
        layout = {"height_ratios": [3, 2]}
        axes = pyplot.subplots(2, figsize=(8, 6), sharex=True, layout="constrained", gridspec_kw=layout)[1]
    above, below = axes
    names, rows, shares = shares_over_time(standings)
    colours = [COLOURS[k % len(COLOURS)] for k in range(len(names))]
    for k, name in enumerate(names):
        own = [one for one in standings if one.name == name]
        at, aucs = np.searchsorted(rows, [one.row for one in own]), [one.auc for one in own]
        above.plot(rows[at], aucs, color=colours[k], linewidth=0.8, alpha=0.5)
        in_mixture = np.where(shares[k, at] > 0, aucs, np.nan)
        above.plot(rows[at], in_mixture, color=colours[k], linewidth=2, label=name)
    if names:
        below.stackplot(rows, shares, colors=colours, linewidth=0)
        above.legend(frameon=False, loc="lower right", fontsize="small")
    above.set_ylabel("AUC in the newer windows")
    below.set(xlabel="rows", ylabel="share of the mixture", ylim=(0, 1))
    below.set_xscale("log", base=2)
    below.xaxis.set_major_formatter(lambda row, _: f"{row:,.0f}")
    for ax in (above, below):
        ax.spines[["top", "right"]].set_visible(False)
    return axes
