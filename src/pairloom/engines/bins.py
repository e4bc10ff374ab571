"""Bins: the values of a column as integers below 64, so that a split is one 64-bit mask."""

import numpy as np

from pairloom.base.compiled import compiled
from pairloom.base.typing import Array

N_BINS, N_CUTS = 64, 63
"""Bins of a column, and cuts between them, sorted and padded with infinity."""

MISSING, OTHER = 0, 63
"""The bins of missing values, and of rare and unseen categories."""

MAX_CATEGORIES = 61
"""Categories with a bin of their own."""


@compiled
def fit_cuts(values: Array, category: bool, min_count: int, n_bins: int, cuts: Array) -> int:
    """Fill ``cuts`` with those of a column, given its sorted ``values`` without NaN; return their number.

    The bins of a number hold about equally many values, at most ``n_bins`` bins; those of categories are the codes that
    occur most often, and at least ``min_count`` times.
    """
    cuts[:] = np.inf
    distinct, counts = counted(values)
    if category:
        return most_frequent(distinct, counts, min_count, cuts)
    every = len(distinct) <= n_bins
    made, filled, rest, left = 0, 0, len(values), n_bins
    for i in range(len(distinct) - 1):
        filled += counts[i]
        # A frequent value gets its own bin if the bin before it is at least half full.
        heavy = counts[i + 1] * left >= 2 * rest and 2 * filled * left >= rest
        if every or filled * left >= rest or heavy:
            cuts[made] = np.float32(0.5) * distinct[i] + np.float32(0.5) * distinct[i + 1]
            made, rest, left, filled = made + 1, rest - filled, left - 1, 0
            if made == n_bins - 1:
                break
    return made


@compiled
def most_frequent(distinct: Array, counts: Array, min_count: int, cuts: Array) -> int:
    """Write the most frequent values to ``cuts``, in order; return their number. Their counts become 0."""
    for _ in range(min(len(counts), MAX_CATEGORIES)):
        most = 0
        for i in range(1, len(counts)):
            if counts[i] > counts[most]:
                most = i
        if counts[most] < min_count:
            break
        counts[most] = 0
    kept = 0
    for i in range(len(counts)):
        if counts[i] == 0:
            cuts[kept] = distinct[i]
            kept += 1
    return kept


@compiled
def counted(values: Array) -> tuple[Array, Array]:
    """Return the distinct values of a sorted array, and how often each occurs."""
    distinct, counts, n = np.empty_like(values), np.zeros(len(values), np.int64), 0
    for i in range(len(values)):
        if i == 0 or values[i] != values[i - 1]:
            distinct[n] = values[i]
            n += 1
        counts[n - 1] += 1
    return distinct[:n], counts[:n]


@compiled
def bin_of(value: float, category: bool, cuts: Array) -> int:
    """Return the bin of a value: 1 plus the number of cuts below it."""
    if np.isnan(value):
        return MISSING
    below = 0
    for step in (32, 16, 8, 4, 2, 1):
        below += step * (cuts[below + step - 1] < value)
    if category and (below == N_CUTS or cuts[below] != value):
        return OTHER
    return below + 1


@compiled
def bin_rows(X: Array, category: Array, cuts: Array, out: Array) -> None:
    """Fill ``out`` with the bins of rows."""
    for i in range(X.shape[0]):
        for c in range(X.shape[1]):
            out[i, c] = bin_of(X[i, c], category[c], cuts[c])


@compiled
def bin_columns(X: Array, n: int, start: int, end: int, category: Array, cuts: Array, out: Array) -> None:
    """Fill rows ``start`` to ``end`` of ``out`` with the bins of these columns of the first n rows of X."""
    for first in range(0, n, 64):  # a few rows at a time, which stay in the cache
        for c in range(start, end):
            for i in range(first, min(n, first + 64)):
                out[c, i] = bin_of(X[i, c], category[c], cuts[c])
