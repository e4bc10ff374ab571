"""The columns of a sample of rows: which of them vary, and lists of rows for columns of few ones."""

from typing import Any

import numpy as np

from pairloom.base.compiled import compiled
from pairloom.base.typing import Array

ZERO: Any = np.float32(0)
ONE: Any = np.float32(1)
INFINITY: Any = np.float32(np.inf)


@compiled
def measure_ranges(X: Array, rows: Array, low: Array, high: Array) -> None:
    """Fill ``low`` and ``high`` with the minimum and maximum of each column in some rows, without missing values."""
    low[:], high[:] = INFINITY, -INFINITY
    for i in rows:
        values = X[i]
        for j in range(low.shape[0]):
            x = values[j]
            low[j] = x if x < low[j] else low[j]
            high[j] = x if x > high[j] else high[j]


@compiled
def varying_first(X: Array, rows: Array, low: Array, high: Array) -> tuple[Array, int, Array]:
    """Return an order of the columns in which those that vary come first, their number, and the shares that are not 0.

    Only some ``rows`` are read; ``low`` and ``high`` are buffers.
    """
    d, shares = X.shape[1], np.zeros(X.shape[1], np.float32)
    measure_ranges(X, rows, low, high)
    for i in rows:
        values = X[i]
        for j in range(d):
            shares[j] += ONE if values[j] != ZERO else ZERO
    order, n_varying, n_constant = np.empty(d, np.int32), 0, 0
    for j in range(d):
        shares[j] /= np.float32(rows.shape[0])
        if low[j] < high[j]:
            order[n_varying] = j
            n_varying += 1
    for j in range(d):
        if not low[j] < high[j]:
            order[n_varying + n_constant] = j
            n_constant += 1
    return order, n_varying, shares


@compiled
def set_constant_aside(
    X: Array, rows: Array, start: int, stop: int, order: Array, here: int, pool: int, low: Array, high: Array,
    columns: Array,
) -> int:  # fmt: skip
    """Move those of the columns from ``here`` on that are constant in a few rows behind the others, in order.

    Return the new pool. To read whole rows takes less time than to try one column after another.
    """
    measure_ranges(X, rows[start:stop], low, high)
    kept, n_aside = here, 0
    for i in range(here, pool):
        column = order[i]
        if low[column] < high[column]:
            order[kept] = column
            kept += 1
        else:
            columns[n_aside] = column
            n_aside += 1
    for i in range(n_aside):
        order[kept + i] = columns[i]
    return kept


@compiled
def lists(X: Array, columns: Array, most: int) -> tuple[Array, Array, Array, Array]:
    """Return the lists of ``columns`` of which at most ``most`` values are not 0, and these are equal.

    Other columns have empty lists.
    """
    n, d = X.shape
    count, listed, found = columns.shape[0], columns.astype(np.uint32), np.empty(columns.shape[0], np.uint32)
    start, stop, value = np.zeros(d, np.int64), np.zeros(d, np.int64), np.zeros(d, np.float32)
    rows = np.empty(count * most, np.int32)
    for q in range(count):
        start[columns[q]] = stop[columns[q]] = q * most
    for i in range(n):
        values, n_found = X[i], np.uint64(0)
        for q in range(count):  # without branches: the values are hard to predict
            found[n_found] = q
            n_found += np.uint64(values[listed[q]] != ZERO)
        for f in range(int(n_found) - 1, -1, -1):
            j = listed[found[f]]
            if stop[j] == start[j]:
                value[j] = values[j]
            if values[j] == value[j] and stop[j] - start[j] < most:
                rows[stop[j]] = i
                stop[j] += 1
            else:
                stop[j], count = start[j], count - 1
                listed[found[f]] = listed[count]
    return start, stop, value, rows


@compiled
def n_tries(n_varying: int) -> int:
    """Return the square root of the number of columns that vary: constant columns cannot be split."""
    return max(1, int(np.sqrt(n_varying)))
