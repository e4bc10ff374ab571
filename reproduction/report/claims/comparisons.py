"""Comparisons of systems over data sets, for claims on AUC, and their words."""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from reproduction.report.measured import KERNEL, Measured, Output, is_imbalanced, spoken
from reproduction.report.wording import listed, of

FEW = 3
"""More sets than this are counted and not named."""


class Comparison(NamedTuple):
    """Two systems on all sets with both: where the first is significantly above or below, and the mean difference."""

    sets: list[str]
    above: list[str]
    below: list[str]
    mean: float


def against(
    measured: Measured, one: str, other: str, datasets: Iterable[str], output: Output = "mean"
) -> Comparison:  # fmt: skip
    """Return where one system is significantly above or below another."""
    gaps = {name: gap for name in datasets if (gap := measured.difference(name, one, other, output))}
    above, below = ([name for name, gap in gaps.items() if gap.clear == sign] for sign in (1, -1))
    mean = float(np.mean([gap.mean for gap in gaps.values()])) if gaps else 0.0
    return Comparison(list(gaps), above, below, mean)


class Standing(NamedTuple):
    """A form of FPOGD among others on all sets with it and another.

    ``highest``: sets where its mean is the highest; ``behind``: set -> systems that are significantly above it.
    """

    sets: list[str]
    highest: list[str]
    behind: dict[str, list[str]]


def standing(
    measured: Measured,
    others: Sequence[str],
    datasets: Iterable[str],
    output: Output = "mean",
    form: str = KERNEL,
) -> Standing:
    """Return where a form of FPOGD stands among others."""
    sets, highest = [], []
    behind: dict[str, list[str]] = {}
    for name in datasets:
        ours = measured.auc(name, form, output)
        aucs = {other: measured.auc(name, other, output) or measured.auc(name, other) for other in others}
        found = {other: auc.mean for other, auc in aucs.items() if auc}
        if ours and found:
            sets.append(name)
            highest += [name] if ours.mean > max(found.values()) else []
            gaps = {other: measured.difference(name, form, other, output) for other in found}
            ahead = [other for other, gap in gaps.items() if gap and gap.clear < 0]
            behind |= {name: ahead} if ahead else {}
    return Standing(sets, highest, behind)


def ahead_of_all(
    measured: Measured, form: str, rivals: Sequence[str], datasets: Iterable[str], output: Output
) -> list[str]:
    """Return the sets on which a form of FPOGD is significantly above every one of its rivals."""
    found = {name: [measured.difference(name, form, one, output) for one in rivals] for name in datasets}
    return [name for name, gaps in found.items() if any(gaps) and all(gap.clear > 0 for gap in gaps if gap)]


def papers_sets(measured: Measured) -> list[str]:
    """Return the measured data sets of the paper; a stand-in counts as the set that it replaces."""
    return [name for name in measured.datasets if not is_imbalanced(name)]


def named(hits: Collection[str]) -> str:
    """Return the number of sets, with their names if they are few."""
    names = f" ({listed(list(hits))})" if 0 < len(hits) <= FEW else ""
    return f"{len(hits) or 'none'}{names}"


def counted(hits: Collection[str], asked: Collection[str]) -> str:
    """Return how many of how many sets, with their names if they are few."""
    if FEW < len(hits) < len(asked):
        return f"{len(hits)} of {len(asked)} sets"
    return of(list(hits), len(asked))


def partly(measured: Measured, systems: Sequence[str], datasets: Sequence[str]) -> str:
    """Return a sentence on the systems that learned a part of the rows."""
    sets = {one: [name for name in datasets if measured.cap(name, one)] for one in systems}
    capped = [f"{spoken(one)} on {named(names)}" for one, names in sets.items() if names]
    return f" On part of the rows only: {listed(capped)}." if capped else ""
