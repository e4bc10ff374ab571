"""The choice of a split: random columns and cuts, judged by how well they explain the targets of a node's first rows."""

from typing import Any, NamedTuple

import numpy as np

from pairloom.base.compiled import compiled
from pairloom.base.typing import Array
from pairloom.features.tree_columns import INFINITY, ZERO, Ones

MAX_ROUNDS = 4
"""Maximum number of tries per column to find enough splits with enough rows on both sides."""

NEAR = 3e-4
"""A node is a leaf if no target differs from the first by more than this share of it."""

MIN_JUDGED, MIN_INFORMATIVE = 512, 64
"""Splits are judged by so many rows of a node; by more if fewer than the second number are then informative, as those
of a rare class are."""

MIN_SPARSENESS = 4
"""A list of rows is used if the share of ones is at most one in so many."""

MIN_LEAVES = 64
"""The rows that judge a split fill at least so many of the smallest leaves."""

BETTER = 1.0 + 1e-9
"""A split is better if its gain is, by this factor: the order of a sum does not matter then."""


class Members(NamedTuple):
    """Rows (n, d), and arrays permuted as nodes are split: row numbers, weights, weighted targets (k, n).

    ``place``: where each row is among the permuted ones; empty if no column has a list of ``ones``.
    """

    X: Array
    rows: Array
    weight: Array
    sums: Array
    place: Array
    ones: Any


class Search(NamedTuple):
    """Search of splits: minimum rows in a leaf, number of splits to try, number of rows that judge a split, random
    state, order of the columns."""

    least: int
    tries: int
    judged: int
    bits: Array
    order: Array


class Room(NamedTuple):
    """Buffers for the values of a column, and for sums of targets over judged rows: all, of one side, missing."""

    values: Array
    total: Array
    left: Array
    lost: Array


@compiled
def best_split(
    members: Members, a: int, b: int, search: Search, pool: int, room: Room
) -> tuple[int, float, bool, int]:  # fmt: skip
    """Return column, value and side of missing values for the rows from a to b; column -1 if there is no split.

    The columns are the first ``pool`` of the search's order. Those that are found to be constant are moved behind the
    others; the number of the others, for the children of the node, is returned as well.
    """
    bits, order = search.bits, search.order
    found, threshold, yes, best = -1, ZERO, False, -1.0
    if pure(members.weight[a:b], members.sums, a):
        return found, threshold, yes, pool
    end, limit = min(b, a + search.judged), min(search.tries, 1 + b - a)
    mass = add_up(members.weight[a:end], members.sums, a, room.total)
    here, rounds, done = 0, 0, 0
    while done < limit and here < pool and rounds < MAX_ROUNDS:
        pick = here + below(bits, pool - here)
        order[here], order[pick] = order[pick], order[here]
        column = order[here]
        gain, cut, goes, useful = tried(members, column, a, end, bits, search.least, mass, room)
        if not useful:
            pool -= 1
            order[here], order[pool] = order[pool], order[here]
        else:
            done += gain >= 0
            here += 1
            if gain > best * BETTER:
                found, threshold, yes, best = column, cut, goes, gain
        if here >= pool:
            here, rounds = 0, rounds + 1
    return found, threshold, yes, pool


@compiled
def pure(weight: Array, sums: Array, a: int) -> bool:
    """Return whether the targets of rows from a on are nearly constant."""
    for c in range(sums.shape[0]):
        own = sums[c, a:]
        near: Any = np.float32(NEAR) * abs(own[0])
        for i in range(weight.shape[0]):
            if abs(own[i] * weight[0] - own[0] * weight[i]) > near * weight[i]:
                return False
    return True


@compiled
def add_up(weight: Array, sums: Array, a: int, total: Array) -> float:
    """Fill ``total`` with the sum of rows from a on, and return their weight."""
    mass = 0.0
    for i in range(weight.shape[0]):
        mass += weight[i]
    for c in range(total.shape[0]):
        own, s = sums[c, a:], 0.0
        for i in range(weight.shape[0]):
            s += own[i]
        total[c] = s
    return mass


@compiled
def n_judged(weight: Array, sums: Array, least: int, total: Array) -> int:
    """Return by how many of a node's rows a split is judged.

    If few rows deviate from the mean much more than others, splits are about them. Their number is measured by
    (sum of q)^2 / (sum of q^2), where q is the square of a row's weighted deviation.
    """
    mass = add_up(weight, sums, 0, total)
    second, fourth = 1e-300, 0.0
    for i in range(weight.shape[0]):
        q = 0.0
        for c in range(total.shape[0]):
            gap = sums[c, i] - weight[i] * total[c] / mass
            q += gap * gap
        second += q
        fourth += q * q
    wanted = MIN_INFORMATIVE * weight.shape[0] * min(1.0, fourth / (second * second))
    return max(MIN_JUDGED, MIN_LEAVES * least, int(np.ceil(wanted)))


@compiled
def tried(
    members: Members, column: int, a: int, b: int, bits: Array, least: int, mass: float, room: Room
) -> tuple[float, float, bool, bool]:
    """Cut a column at random; return the gain, the cut, the side of missing values, and whether another cut is worth a try.

    The gain is -1 if a side has less than ``least`` rows.
    """
    ones, n = Ones(*members.ones), b - a
    size = ones.stop[column] - ones.start[column]
    weight, sums, values = members.weight[a:b], members.sums, room.values
    cut, n_lost, w_lost, one_cut = ZERO, 0, 0.0, True
    if 0 < size and MIN_SPARSENESS * size <= n:
        n_left, w_left = sum_ones(members, ones, column, a, b, room.left)
        value = ones.value[column]
        if n_left == 0:
            return -1.0, ZERO, False, False
        cut = random_cut(bits, min(ZERO, value), max(ZERO, value))
        if value > ZERO:
            n_left, w_left = n - n_left, mass - w_left
            for c in range(room.left.shape[0]):
                room.left[c] = room.total[c] - room.left[c]
    else:
        low, high, n_lost = gather(members.X, column, members.rows[a:b], values)
        if not low < high:
            return -1.0, ZERO, False, False
        cut = random_cut(bits, low, high)
        n_left, w_left = sum_left(weight, sums, a, values, cut, room.left)
        if n_lost > 0:
            w_lost = sum_lost(weight, sums, a, values, room.lost)
        if min(n_left, n - n_left) < least:
            one_cut = two_valued(values[:n], low, high)
    gain, yes = explained(n, n_left, n_lost, w_left, w_lost, least, mass, room)
    return gain, cut, yes, gain >= 0 or not one_cut


@compiled
def two_valued(values: Array, low: float, high: float) -> bool:
    """Return whether there are no other values than two, and none is missing."""
    for i in range(values.shape[0]):
        if values[i] != low and values[i] != high:
            return False
    return True


@compiled
def random_cut(bits: Array, low: Any, high: Any) -> float:
    """Return a random number from ``low`` on, below ``high``."""
    cut: Any = np.float32(low + fraction(bits) * (high - low))
    return low if cut >= high else cut  # type: ignore[no-any-return]


@compiled
def gather(X: Array, column: int, rows: Array, values: Array) -> tuple[float, float, int]:
    """Copy the values of a column; return their minimum and maximum, and the number of missing values."""
    low, high, lost = INFINITY, -INFINITY, 0
    at = np.uint32(column)
    for i in range(rows.shape[0]):
        x = X[rows[i], at]
        values[i] = x
        low = x if x < low else low
        high = x if x > high else high
        lost += x != x
    return low, high, lost


@compiled
def sum_ones(members: Members, ones: Ones, column: int, a: int, b: int, left: Array) -> tuple[int, float]:
    """Fill ``left`` with the sums of rows a to b in the list of a column; return their number and weight."""
    count, mass = 0, 0.0
    left[:] = 0.0
    for e in range(ones.start[column], ones.stop[column]):
        i = members.place[ones.rows[e]]
        if a <= i < b:
            count += 1
            mass += members.weight[i]
            for c in range(left.shape[0]):
                left[c] += members.sums[c, i]
    return count, mass


@compiled
def sum_left(weight: Array, sums: Array, a: int, values: Array, cut: float, left: Array) -> tuple[int, float]:
    """Fill ``left`` with the sums of the rows whose values are at most ``cut``; return their number and weight."""
    count, mass = 0, 0.0
    for i in range(weight.shape[0]):
        goes = values[i] <= cut
        count += goes
        mass += weight[i] if goes else ZERO
    for c in range(left.shape[0]):
        own, s = sums[c, a:], 0.0
        for i in range(weight.shape[0]):
            s += own[i] if values[i] <= cut else ZERO
        left[c] = s
    return count, mass


@compiled
def sum_lost(weight: Array, sums: Array, a: int, values: Array, lost: Array) -> float:
    """Fill ``lost`` with the sums of the rows whose values are missing; return their weight."""
    mass = 0.0
    lost[:] = 0.0
    for i in range(weight.shape[0]):
        if np.isnan(values[i]):
            mass += weight[i]
            for c in range(lost.shape[0]):
                lost[c] += sums[c, a + i]
    return mass


@compiled
def explained(
    n: int, n_left: int, n_lost: int, w_left: float, w_lost: float, least: int, mass: float, room: Room
) -> tuple[float, bool]:  # fmt: skip
    """Return the gain of a split, -1 if a side is too small, and whether missing values go with those up to the cut."""
    total, left, lost = room.total, room.left, room.lost
    best, yes = -1.0, 2 * n_left > n
    for side in range(2 if n_lost > 0 else 1):
        n_yes, w_yes = n_left + side * n_lost, w_left + side * w_lost
        if min(n_yes, n - n_yes) >= least:
            gain = 0.0
            for c in range(total.shape[0]):
                s = left[c] + (lost[c] if side == 1 else 0.0)
                gain += s * s / w_yes + (total[c] - s) * (total[c] - s) / (mass - w_yes)
            if gain > best * BETTER:
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
