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
def count_below(values: Array, n: int, cuts: Array, start: Array, first: int, below: Array) -> None:
    """Fill ``below`` with the number of cuts below each of n values; those of value i are ``cuts[start[i] :]``.

    A binary search for all values at once, without branches. ``first``: its first step, half of the possible cuts.
    """
    for i in range(n):
        below[i] = first * (cuts[start[i] + first - 1] < values[i])
    step = first >> 1
    while step > 0:
        for i in range(n):
            below[i] += step * (cuts[start[i] + below[i] + step - 1] < values[i])
        step >>= 1


@compiled
def is_other(value: float, below: int, own: Array) -> bool:
    """Return whether a value of a category has no bin of its own."""
    return (below == N_CUTS or own[below] != value) and value == value


@compiled
def bin_rows(X: Array, category: Array, cuts: Array, out: Array) -> None:
    """Fill ``out`` with the bins of rows."""
    d, flat = X.shape[1], cuts.ravel()
    start, below = np.arange(d).astype(np.int32) * np.int32(N_CUTS), np.empty(d, np.int32)
    for i in range(X.shape[0]):
        x = X[i]
        count_below(x, d, flat, start, 32, below)
        for c in range(d):
            out[i, c] = below[c] + 1 if x[c] == x[c] else MISSING
        for c in range(d):
            if category[c] and is_other(x[c], below[c], cuts[c]):
                out[i, c] = OTHER


@compiled
def bin_columns(X: Array, n: int, start: int, end: int, category: Array, cuts: Array, out: Array) -> None:
    """Fill rows ``start`` to ``end`` of ``out`` with the bins of these columns of the first n rows of X."""
    values, below, zero = np.empty(64, X.dtype), np.empty(64, np.int32), np.zeros(64, np.int32)
    for at in range(0, n, 64):  # a few rows at a time, which stay in the cache
        m = min(64, n - at)
        for c in range(start, end):
            for i in range(m):
                values[i] = X[at + i, c]
            count_below(values, m, cuts[c], zero, 32 if cuts[c, 1] < np.inf else 1, below)
            for i in range(m):
                out[c, at + i] = below[i] + 1 if values[i] == values[i] else MISSING
            if category[c]:
                for i in range(m):
                    if is_other(values[i], below[i], cuts[c]):
                        out[c, at + i] = OTHER
