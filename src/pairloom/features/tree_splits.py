"""The choice of a split: random cuts of random columns, judged by how well they explain the targets of some rows."""

from typing import Any, NamedTuple

import numpy as np

from pairloom.base.compiled import compiled
from pairloom.base.typing import Array
from pairloom.features.tree_columns import INFINITY, ZERO, set_constant_aside

MAX_ROUNDS = 4
"""Maximum number of tries per column to find enough splits with enough rows on both sides."""

MAX_DIFFERENCE = 3e-4
"""A node is a leaf if no target differs from the first by more than this share of it."""

MIN_JUDGED, MIN_INFORMATIVE = 512, 64
"""Splits are judged by so many rows of a node; by more if fewer than the second number are then informative, as those
of a rare class are."""

MIN_SPARSENESS = 4
"""A list of rows is used if the share of ones is at most one in so many."""

MANY_USELESS, FEW_ROWS = 16, 16
"""If so many columns of a node turned out to have no cut, and the node has at most one row for so many of the columns
that are left, its constant columns are set aside all at once."""

SEVERAL_CUTS = 2
"""Any number of cuts above 1."""

MIN_LEAVES = 64
"""The rows that judge a split fill at least so many of the smallest leaves."""

MIN_GAIN_RATIO = 1.0 + 1e-9
"""A split is better if its gain is, by this factor: the order of a sum does not matter then."""


class Members(NamedTuple):
    """Rows (n, d), and arrays permuted as nodes are split: row numbers, and ``sums`` (1 + k, n).

    ``sums`` are the weight of each row and its k weighted targets. The others are lists of ones: those of column j are
    ``ones_rows[ones[j] : listed[j]]``, with the value ``ones_value[j]``. ``place``: where each row is among the
    permuted ones; empty if there are no lists.
    """

    X: Array
    rows: Array
    sums: Array
    place: Array
    ones: Array
    listed: Array
    ones_value: Array
    ones_rows: Array


class Search(NamedTuple):
    """Minimum rows in a leaf, number of splits to try, number of rows that judge a split, random state, columns.

    The columns that vary in a node are the first of an order, as many as its pool.
    """

    least: int
    tries: int
    judged: int
    bits: Array
    order: Array


class Room(NamedTuple):
    """Buffers for the values of a column, the smallest and largest of each, and some columns; and for sums of judged
    rows: all of them, those on one side, and those with missing values.
    """

    values: Array
    low: Array
    high: Array
    columns: Array
    total: Array
    left: Array
    lost: Array


@compiled
def best_split(
    members: Members, start: int, stop: int, search: Search, pool: int, room: Room
) -> tuple[int, float, bool, int]:  # fmt: skip
    """Return column, value and side of missing values for the rows from start to stop; column -1 if there is no split.

    Columns that turn out to have no cut are moved behind the others; the new pool is returned as well.
    """
    # Parts of tuples are passed one by one: otherwise this loop would count references.
    X, rows, sums, place, ones, listed, ones_value, ones_rows = members
    least, tries, judged, bits, order = search
    values, low, high, columns, total, left, lost = room
    found, threshold, yes, best = -1, ZERO, False, -1.0
    if pure(sums, start, stop):
        return found, threshold, yes, pool
    limit, end = min(tries, 1 + stop - start), min(stop, start + judged)
    add_up(sums, start, end, total)
    here, rounds, done, useless = 0, 0, 0, 0
    while done < limit and here < pool and rounds < MAX_ROUNDS:
        pick = here + below(bits, pool - here)
        column = order[pick]
        order[here], order[pick] = column, order[here]
        first, last = ones[column], listed[column]
        if first < last and MIN_SPARSENESS * (last - first) <= end - start:
            n_left, cut, cuts = cut_ones(
                place, sums, ones_rows, first, last, ones_value[column], start, end, bits, total, left
            )
            n_lost = 0
        else:
            n_left, n_lost, cut, cuts = cut_values(X, rows, sums, column, start, end, bits, least, values, left, lost)
        gain, goes = -1.0, False
        if cuts > 0:
            gain, goes = explained(end - start, n_left, n_lost, least, total, left, lost)
        if gain < 0 and cuts < SEVERAL_CUTS:
            pool -= 1
            order[here], order[pool] = order[pool], column
            useless += 1
            if useless == MANY_USELESS and FEW_ROWS * (end - start) <= pool - here:
                pool = set_constant_aside(X, rows, start, end, order, here, pool, low, high, columns)
        else:
            done += gain >= 0
            here += 1
            if gain >= 0 and gain > best * MIN_GAIN_RATIO:
                found, threshold, yes, best = column, cut, goes, gain
        if here >= pool:
            here, rounds = 0, rounds + 1
    return found, threshold, yes, pool


@compiled
def pure(sums: Array, start: int, stop: int) -> bool:
    """Return whether the targets of rows from start to stop are nearly constant."""
    mass: Any = sums[0, start]
    for c in range(1, sums.shape[0]):
        own: Any = sums[c, start]
        near: Any = np.float32(MAX_DIFFERENCE) * abs(own)
        for i in range(start + 1, stop):
            if abs(sums[c, i] * mass - own * sums[0, i]) > near * sums[0, i]:
                return False
    return True


@compiled
def add_up(sums: Array, start: int, stop: int, total: Array) -> None:
    """Fill ``total`` with the sums of rows from start to stop."""
    for c in range(total.shape[0]):
        s = 0.0
        for i in range(np.uint64(start), np.uint64(stop)):
            s += sums[c, i]
        total[c] = s


@compiled
def n_judged(sums: Array, least: int, total: Array) -> int:
    """Return by how many of a node's rows a split is judged.

    If few rows deviate from the mean much more than others, splits are about them. Their number is measured by
    (sum of q)^2 / (sum of q^2), where q is the square of a row's weighted deviation.
    """
    n = sums.shape[1]
    add_up(sums, 0, n, total)
    second, fourth = 0.0, 0.0
    for i in range(n):
        q = 0.0
        for c in range(1, total.shape[0]):
            gap = sums[c, i] - sums[0, i] * total[c] / total[0]
            q += gap * gap
        second += q
        fourth += q * q
    share = fourth / (second * second) if fourth > 0 else 1.0
    wanted = int(np.ceil(n * min(1.0, MIN_INFORMATIVE * share)))
    return min(n, max(MIN_JUDGED, MIN_LEAVES * least, wanted))  # type: ignore[no-any-return]


@compiled
def cut_values(
    X: Array, rows: Array, sums: Array, column: int, start: int, stop: int, bits: Array, least: int, values: Array,
    left: Array, lost: Array,
) -> tuple[int, int, float, int]:  # fmt: skip
    """Cut the values of a column at random, and add up both the rows up to the cut and those with missing values.

    Return the numbers of these rows, the cut, and the number of cuts that the column has: 0, 1 or ``SEVERAL_CUTS``.
    """
    low, high, n_lost = gather(X, rows, column, start, stop, values)
    if not low < high:
        return 0, 0, ZERO, 0
    cut, n = random_cut(bits, low, high), stop - start
    n_left = sum_left(sums, values, cut, start, n, left)
    if n_lost > 0:
        sum_lost(sums, values, start, n, lost)
    few = min(n_left, n - n_left) < least and n_lost == 0
    return n_left, n_lost, cut, 1 if few and two_valued(values, n, low, high) else SEVERAL_CUTS


@compiled
def cut_ones(
    place: Array, sums: Array, ones_rows: Array, first: int, last: int, value: float, start: int, stop: int,
    bits: Array, total: Array, left: Array,
) -> tuple[int, float, int]:  # fmt: skip
    """Do the same as ``cut_values`` for a column with a list of ones."""
    count = 0
    left[:] = 0.0
    for e in range(first, last):
        i = place[ones_rows[e]]
        if start <= i < stop:
            count += 1
            for c in range(left.shape[0]):
                left[c] += sums[c, i]
    if count == 0:
        return 0, ZERO, 0
    cut = random_cut(bits, min(ZERO, value), max(ZERO, value))
    if value > ZERO:
        count = stop - start - count
        for c in range(left.shape[0]):
            left[c] = total[c] - left[c]
    return count, cut, 1


@compiled
def two_valued(values: Array, n: int, low: float, high: float) -> bool:
    """Return whether there are no other values than two."""
    others = 0
    for i in range(n):
        others += values[i] != low and values[i] != high
    return others == 0


@compiled
def random_cut(bits: Array, low: Any, high: Any) -> float:
    """Return a random number from ``low`` on, below ``high``."""
    cut: Any = np.float32(low + fraction(bits) * (high - low))
    return low if cut >= high else cut  # type: ignore[no-any-return]


@compiled
def gather(X: Array, rows: Array, column: int, start: int, stop: int, values: Array) -> tuple[float, float, int]:
    """Copy the values of a column; return their minimum and maximum, and the number of missing values."""
    low, high, lost = INFINITY, -INFINITY, 0
    first, at = np.uint64(start), np.uint64(column)
    for i in range(np.uint64(stop - start)):
        x = X[rows[first + i], at]
        values[i] = x
        low = x if x < low else low
        high = x if x > high else high
        lost += x != x
    return low, high, lost


@compiled
def sum_left(sums: Array, values: Array, cut: float, start: int, n: int, left: Array) -> int:
    """Fill ``left`` with the sums of the rows whose values are at most ``cut``; return their number."""
    count, first = 0, np.uint64(start)
    for i in range(np.uint64(n)):
        count += values[i] <= cut
    for c in range(left.shape[0]):
        s = 0.0
        for i in range(np.uint64(n)):
            s += sums[c, first + i] if values[i] <= cut else ZERO
        left[c] = s
    return count


@compiled
def sum_lost(sums: Array, values: Array, start: int, n: int, lost: Array) -> None:
    """Fill ``lost`` with the sums of the rows whose values are missing."""
    lost[:] = 0.0
    for i in range(n):
        if np.isnan(values[i]):
            for c in range(lost.shape[0]):
                lost[c] += sums[c, start + i]


@compiled
def explained(
    n: int, n_left: int, n_lost: int, least: int, total: Array, left: Array, lost: Array
) -> tuple[float, bool]:  # fmt: skip
    """Return the gain of a split, -1 if a side is too small, and whether missing values go with those up to the cut."""
    best, yes = -1.0, 2 * n_left > n
    for side in range(2 if n_lost > 0 else 1):
        n_yes = n_left + side * n_lost
        if min(n_yes, n - n_yes) >= least:
            mass = left[0] + (lost[0] if side == 1 else 0.0)
            gain = 0.0
            for c in range(1, total.shape[0]):
                s = left[c] + (lost[c] if side == 1 else 0.0)
                gain += s * s / mass + (total[c] - s) * (total[c] - s) / (total[0] - mass)
            if gain > best * MIN_GAIN_RATIO:
                best, yes = gain, side == 1 if n_lost > 0 else yes
    return best, yes


@compiled
def next_bits(bits: Array) -> int:
    """Return 64 random bits: Marsaglia's xorshift."""
    x = bits[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    bits[0] = x
    return x  # type: ignore[no-any-return]


@compiled
def below(bits: Array, n: int) -> int:
    """Return a random number from 0 to n - 1."""
    return int(((next_bits(bits) >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@compiled
def fraction(bits: Array) -> float:
    """Return a random number in [0, 1)."""
    return (next_bits(bits) >> np.uint64(11)) * (1.0 / 9007199254740992.0)
