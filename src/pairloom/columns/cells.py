"""Counts of the values of columns by cell, of missing and of new values, in which changes are found."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from pairloom.base.typing import Array
from pairloom.columns.loops import CATEGORY, DATE

CELLS = 10
"""Cells of a column: tenths of its values, or its nine most frequent categories and all others."""

MISSING, ROWS, NEW, OF = range(CELLS, CELLS + 4)
"""Rows of a table of counts after the cells: missing values and all, then new values and those among which they were
counted."""

NO_LIMIT = 2**53


@dataclass(frozen=True)
class Rules:
    """Which columns are categories, and which are dates; codes from ``n_named`` are shared by several categories."""

    category: Array
    date: Array
    n_named: int

    @classmethod
    def of(cls, c: int, kinds: Array | None, n_named: int) -> Self:
        """Return the rules for columns of these kinds; None: all are numbers."""
        kinds = np.zeros(c, np.int64) if kinds is None else kinds
        return cls(kinds == CATEGORY, kinds == DATE, n_named)


def no_range(c: int) -> Array:
    """Return the range of no values."""
    return np.repeat([[np.inf], [-np.inf]], c, axis=1)


def joined(*ranges: Array) -> Array:
    """Return the range of the values in several ranges (2, c)."""
    ends = np.stack(ranges)
    return np.stack([ends[:, 0].min(axis=0), ends[:, 1].max(axis=0)])


def range_of(values: Array, rules: Rules) -> Array:
    """Return the range (2, c) of the values; of categories, of the codes that belong to one category."""
    values = np.where(rules.category & (values >= rules.n_named), np.nan, values)
    low, high = (end.reduce(values, axis=0, initial=start) for end, start in ((np.fmin, np.inf), (np.fmax, -np.inf)))
    return np.stack([low, high])


def counts_of(values: Array, rules: Rules, known: Array, cuts: Array) -> Array:
    """Return the counts of values: see ``MISSING``."""
    counts = np.zeros((OF + 1, values.shape[1]), np.int64)
    numbers, categories = np.flatnonzero(~rules.category), np.flatnonzero(rules.category)
    counts[OF] = len(values) - np.isnan(values).sum(axis=0)
    counts[MISSING], counts[ROWS] = len(values) - counts[OF], len(values)
    for columns, inside in ((numbers, np.greater), (categories, np.equal)):
        own = values[:, columns]
        for k in range(CELLS - 1 if len(columns) else 0):
            counts[k + 1, columns] = inside(own, cuts[k, columns]).sum(axis=0)
    # Numbers were counted above each cut; categories in each cell but the first, which has all others.
    counts[0] = counts[OF]
    counts[: CELLS - 1, numbers] -= counts[1:CELLS, numbers]
    counts[0, categories] -= counts[1:CELLS, categories].sum(axis=0)
    beyond = (values > known[1]) & (~rules.category | (values < rules.n_named))
    counts[NEW] = (beyond | (values < np.where(rules.category, 0.0, known[0]))).sum(axis=0)
    return counts


def cuts_of(values: Array, category: bool) -> Array:
    """Return the cuts of a column.

    >>> cuts_of(np.array([5.0, 5.0, 7.0, np.nan]), category=True)[:3].tolist()
    [5.0, 7.0, inf]
    >>> cuts_of(np.arange(1.0, 101.0), category=False).tolist()
    [10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0]
    >>> [f"{cut:.4f}" for cut in cuts_of(np.array([0.0] * 95 + [1.0] * 5), category=False)[:3]]
    ['-0.0000', '0.0000', 'inf']
    """
    values, cuts = np.sort(values[~np.isnan(values)]), np.full(CELLS - 1, np.inf)
    if len(values) == 0:
        return cuts
    if category:
        codes, n = np.unique(values, return_counts=True)
        found = codes[np.argsort(-n, kind="stable")[: CELLS - 1]]
    else:
        tenths = values[np.arange(1, CELLS) * len(values) // CELLS - (np.arange(1, CELLS) * len(values) >= CELLS)]
        codes, n = np.unique(tenths, return_counts=True)
        # A value that is several tenths has a cell of its own, from just below it.
        found = np.sort(np.concatenate([codes, np.nextafter(codes[n > 1], -np.inf)]))
    cuts[: len(found)] = found
    return cuts
