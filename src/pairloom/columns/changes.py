"""Changes of columns, found without labels: newer rows compared with older ones, at a stated rate of false alarms."""

from dataclasses import dataclass
from math import inf

import numpy as np
from scipy.special import fdtrc, gammaincc, gammaln

from pairloom.base.typing import Array
from pairloom.columns.cells import CELLS, MISSING, NEW, OF, ROWS

FALSE_RATE = 1e-4
"""Bound of the probability that a comparison of independent rows raises a false alarm in any of its columns."""

MIN_PSI, MIN_MISSING, MIN_NEW = 0.1, 0.02, 0.01
"""Smallest changes that raise an alarm, however many rows confirm them: of the population stability index, of the share
of missing values (in either direction) and of the share of new values (more of them)."""

DISTRIBUTION, GAPS, NEW_VALUES = 1, 2, 4
ASPECTS = {DISTRIBUTION: "distribution", GAPS: "missing", NEW_VALUES: "new values"}
"""What may have changed in a column: bits of a number, and their names."""

SCORE = "(score)"
"""The name under which the scores of a model are reported, as if they were a column."""

ARROW = " -> "

MIN_EXPECTED = 5.0
"""Rows expected in a cell of either window, below which the cell is merged with others for the test."""


DEPENDENT = 0.05
"""Level of the test that rows depend on each other."""


@dataclass(frozen=True)
class ColumnChange:
    """A column in older and in newer rows.

    ``row``: the number of rows learned when they were compared; for a change found on a stream, the missing values and
    the range of the newer rows include up to 4,096 later rows. ``changed``: what raised an alarm, of "distribution",
    "missing" and "new values"; empty without an alarm. ``psi``: the population stability index. ``missing``: shares of
    missing values, older and newer. ``new``: shares of new values: categories, or numbers outside the range, not seen
    before the window. ``new_categories``: names of the first five. ``ranges``: smallest and largest number, older and
    newer; None for categories and dates.
    """

    column: str
    row: int
    changed: tuple[str, ...]
    psi: float
    missing: tuple[float, float]
    new: tuple[float, float]
    new_categories: tuple[str, ...] = ()
    ranges: tuple[tuple[float, float], tuple[float, float]] | None = None

    def __str__(self) -> str:
        """Return what changed, or the index.

        >>> print(ColumnChange("age", 1024, ("distribution", "missing"), 0.31, (0.0, 0.25), (0.0, 0.0)))
        PSI 0.31, 0 -> 25 % missing
        """
        cells = self.cells
        parts = [f"{cells[name]} {name}" for name in self.changed if name in cells]
        if "distribution" in self.changed or not parts:
            parts.insert(0, f"PSI {self.psi:.2f}")
        return ", ".join(parts + ([f"range {cells['range']}"] if cells["range"] else []))

    @property
    def cells(self) -> dict[str, str]:
        """The row of a table of changes: by heading, empty where nothing differs."""
        new = "new values" in self.changed
        ranges = self.ranges if self.ranges is not None and self.ranges[0] != self.ranges[1] else ()
        return {
            "column": self.column,
            "row": f"{self.row:,}",
            "PSI": f"{self.psi:.2f}" if self.psi > 0 else "",
            "missing": _shares(self.missing),
            "new values": " ".join([_shares(self.new), *map(repr, self.new_categories)]) if new else "",
            "range": ARROW.join(f"{low:.5g} to {high:.5g}" for low, high in ranges),
        }


def _shares(pair: tuple[float, float]) -> str:
    """Return two shares.

    >>> _shares((0.0, 0.0123)), _shares((0.5, 1.0)), _shares((0.0, 0.0))
    ('0 -> 1.2 %', '50 -> 100 %', '')
    """
    if pair[0] == pair[1]:
        return ""
    percents = [100.0 * share for share in pair]
    return ARROW.join(f"{one:.0f}" if one >= 10 else f"{one:.2g}" for one in percents) + " %"


@dataclass(frozen=True)
class Compared:
    """The comparison of all columns: ``psi`` (c,), ``missing`` and ``new`` (2, c), and ``changed`` (c,), bits."""

    psi: Array
    missing: Array
    new: Array
    changed: Array


def compare(older: Array, newer: Array, moving: Array, complete: Array) -> Compared:
    r"""Compare tables of counts (blocks, CELLS + 4, c) with another, and raise alarms at large and significant changes.

    Shares p of the older and q of the newer values, by cell, differ by the population stability index

    .. math:: \sum_k (q_k - p_k) \log(q_k / p_k).

    An index of at least 0.1 is tested by the G statistic of the two rows of counts, which has a chi-squared
    distribution if nothing changed; cells with few rows are merged. The counts of missing values and of new values are
    tested exactly (hypergeometric); the share of new values must also exceed the largest of any older block. Each of
    the three tests of c columns has the level ``FALSE_RATE`` / (3 c).

    If older blocks differ from each other by more than chance (at 5 %), rows depend on each other, and differences
    between windows are compared with those between blocks, by an F test, where that gives the larger p-value.

    ``moving`` (c,): columns whose values always change: dates. Only their missing values are tested.
    ``complete`` (c,): columns whose older window is complete; the index of others is not tested.

    Reference: Yurdakul and Naranjo, Statistical properties of the population stability index, 2020; McCullagh and
    Nelder, Generalized Linear Models, 1989, section 4.5 (dispersion).
    """
    whole = older.sum(axis=0)
    psi = stability_index(whole[:CELLS], newer[:CELLS])
    n = np.stack([whole[ROWS], newer[ROWS]])
    missing = np.stack([whole[MISSING], newer[MISSING]]) / np.maximum(n, 1)
    most = (older[:, NEW] / np.maximum(older[:, OF], 1)).max(axis=0)
    new = np.stack([most, newer[NEW] / np.maximum(newer[OF], 1)])
    level, changed = FALSE_RATE / (3.0 * len(psi)), np.zeros(len(psi), np.int64)
    # Few columns have a large change, and only these are tested.
    for j in np.flatnonzero((psi >= MIN_PSI) & complete & ~moving).tolist():
        changed[j] += DISTRIBUTION * (g_test(older[:, :CELLS, j], newer[:CELLS, j]) < level)
    for j in np.flatnonzero((np.abs(missing[1] - missing[0]) >= MIN_MISSING) & (n > 0).all(axis=0)).tolist():
        counts = (missing[0, j] * n[0, j], n[0, j]), (missing[1, j] * n[1, j], n[1, j])
        exact = 2.0 * min(more_than(*counts), more_than(*counts[::-1]))
        gaps = [
            np.stack([one[..., MISSING, j], one[..., ROWS, j] - one[..., MISSING, j]], -1) for one in (older, newer)
        ]
        changed[j] += GAPS * (exact < level and g_test(gaps[0], gaps[1], merge=False) < level)
    for j in np.flatnonzero((new[1] - new[0] >= MIN_NEW) & ~moving & (whole[OF] > 0)).tolist():
        changed[j] += NEW_VALUES * (more_than((whole[NEW, j], whole[OF, j]), (newer[NEW, j], newer[OF, j])) < level)
    return Compared(psi, missing, new, changed)


def stability_index(older: Array, newer: Array) -> Array:
    """Return the population stability index of each column; 0 if either window has no values.

    Half a row is added to each cell with rows, so that the index is finite.

    >>> stability_index(np.array([[50], [50], [0]]), np.array([[50], [50], [0]])).tolist()
    [0.0]
    >>> round(stability_index(np.array([[5000], [5000]]), np.array([[6000], [4000]])).item(), 3)
    0.041
    """
    half = 0.5 * (older + newer > 0)
    p, q = (one / np.maximum(one.sum(axis=0), 1e-300) for one in (older + half, newer + half))
    ratio = np.divide(q, p, out=np.ones_like(q), where=p > 0)
    index = ((q - p) * np.log(ratio)).sum(axis=0)
    return np.where((older.sum(axis=0) > 0) & (newer.sum(axis=0) > 0), index, 0.0)


def g_test(older: Array, newer: Array, *, merge: bool = True) -> float:
    """Return the p-value of the test that newer counts (cells,) have the shares of older ones (blocks, cells).

    >>> round(g_test(np.array([[50, 50]]), np.array([60, 45])), 3)
    0.305
    >>> round(g_test(np.array([[10, 40], [40, 10]]), np.array([60, 45])), 3)  # blocks differ more than windows
    0.896
    """
    whole = older.sum(axis=0)
    if merge:
        few = (whole + newer) * min(whole.sum(), newer.sum()) < MIN_EXPECTED * (whole.sum() + newer.sum())
        older, newer = (
            np.concatenate([one[..., ~few], one[..., few].sum(-1, keepdims=True)], -1) for one in (older, newer)
        )
        whole = older.sum(axis=0)
    cells = int((whole + newer > 0).sum()) - 1
    if cells < 1:
        return 1.0
    g, older = _heterogeneity(np.stack([whole, newer])), older[older.sum(axis=1) > 0]
    p, within = float(gammaincc(cells / 2.0, g / 2.0)), _heterogeneity(older)
    freedom = cells * (len(older) - 1)
    if freedom < 1 or gammaincc(freedom / 2.0, within / 2.0) > DEPENDENT:
        return p
    return max(p, float(fdtrc(cells, freedom, (g / cells) / (within / freedom))))


def _heterogeneity(counts: Array) -> float:
    """Return the G statistic of several rows of counts."""
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / max(counts.sum(), 1)
    ratio = np.divide(counts, expected, out=np.ones(counts.shape), where=counts > 0)
    return max(0.0, 2.0 * float((counts * np.log(ratio)).sum()))


def more_than(older: tuple[float, float], newer: tuple[float, float]) -> float:
    """Return the p-value of Fisher's exact test that newer rows contain no larger share; each is a count and its rows.

    >>> round(more_than((1, 10), (5, 10)), 4)
    0.0704
    """
    (k, n), (k_new, n_new) = older, newer
    hits = k + k_new
    values = np.arange(k_new, min(hits, n_new) + 1)
    ways = _log_choose(n_new, values) + _log_choose(n, hits - values) - _log_choose(n + n_new, hits)
    return float(min(1.0, np.exp(ways).sum()))


def _log_choose(n: float, k: float | Array) -> Array:
    inside = (np.asarray(k) >= 0) & (np.asarray(k) <= n)
    k = np.where(inside, k, 0)
    return np.where(inside, gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0), -inf)
