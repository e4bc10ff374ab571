"""Extremely randomised trees, grown by a compiled loop.

scikit-learn's trees have the same distribution. This implementation uses contiguous columns: it grows a tree of many
columns in half the time, and a small tree, of which a renewed forest grows hundreds, in a tenth. The minimum number of
rows in a leaf limits the number of leaves, so nodes can be split in the order of their creation.
"""

from typing import Any, NamedTuple

import numpy as np

from pairloom.base.compiled import compiled
from pairloom.base.typing import Array

ZERO: Any = np.float32(0)
INFINITY: Any = np.float32(np.inf)

MAX_ROUNDS = 4
"""Maximum number of tries per column to find enough splits with enough rows on both sides."""

MIN_VARIANCE = 1e-7
"""A node is a leaf if the variance of its targets, relative to their mean square, is below this."""


class Members(NamedTuple):
    """Columns (d, n), and arrays permuted as nodes are split: weighted targets (n, k), weights, row numbers."""

    columns: Array
    sums: Array
    weight: Array
    rows: Array


class Search(NamedTuple):
    """Search of splits: minimum rows in a leaf, number of splits to try, random state, order of the columns."""

    least: int
    tries: int
    bits: Array
    order: Array


class Sums(NamedTuple):
    """Buffers for sums of targets over all rows of a node, rows up to a cut, and rows with a missing value."""

    total: Array
    left: Array
    lost: Array


def grow(
    columns: Array, targets: Array, weight: Array, least: int, tries: int, rng: np.random.Generator
) -> tuple[Array, Array, Array, Array]:
    """Grow a tree from ``columns`` (d, n) and ``targets`` (n, k), all float32, weights above 0.

    Each node tries ``tries`` splits, each of a random column at a random value within its range, and uses the split
    with the smallest squared error (for class indicators, the Gini index). Missing values go to the side where the
    error is smaller; if no value is missing, to the larger side.

    Returns column, value, first child and side of missing values of each node. The second child follows the first; a
    leaf is its own first child.
    """
    n = len(targets)
    root = (np.zeros(1, np.int32), np.zeros(1, np.float32), np.zeros(1, np.int32), np.zeros(1, bool))
    room = 2 * max(1, n // least) + 1
    return grow_on(columns, targets, weight, least, tries, rng, root, np.zeros(n, np.int32), room)[0]


def grow_on(
    columns: Array, targets: Array, weight: Array, least: int, tries: int, rng: np.random.Generator,
    tree: tuple[Array, Array, Array, Array], leaf: Array, room: int,
) -> tuple[tuple[Array, Array, Array, Array], Array]:  # fmt: skip
    """Grow ``tree`` further, given the ``leaf`` of each row, to at most ``room`` nodes.

    Return the larger tree, and for each of its nodes the node of ``tree`` that it equals or is a part of.
    """
    count = len(tree[0])
    column, first, parent = np.zeros(room, np.int32), np.arange(room, dtype=np.int32), np.arange(room, dtype=np.int32)
    value, missing = np.zeros(room, np.float32), np.zeros(room, bool)
    for whole, part in zip((column, value, first, missing), tree, strict=True):
        whole[:count] = part
    rows = np.argsort(leaf, kind="stable").astype(np.int32)
    stop = np.cumsum(np.bincount(leaf, minlength=room))
    start = np.concatenate([[0], stop[:-1]])
    bits = rng.integers(1, 2**63, 1, dtype=np.uint64)
    members = columns, (targets * weight[:, None])[rows], weight[rows], rows
    order = np.arange(len(columns), dtype=np.int32)
    nodes = start, stop, column, value, first, missing, parent
    count = grow_nodes(members, (least, tries, bits, order), nodes, count)
    return (column[:count], value[:count], first[:count], missing[:count]), parent[:count]


@compiled
def grow_nodes(members_: Any, search_: Any, nodes: Any, count: int) -> int:
    """Split the leaves among ``count`` nodes while possible, and return the number of nodes.

    ``nodes``: start and stop of the rows of each node, its column, value, first child, side of missing values, and the
    node of the old tree that it is a part of. A column that is constant in a node is constant in its children: such
    columns are not tried again. Named tuples are passed as plain tuples.
    """
    members, search = Members(*members_), Search(*search_)
    start, stop, column, value, first, missing, parent = nodes
    k = members.sums.shape[1]
    sums = Sums(np.empty(k), np.empty(k), np.empty(k))
    constant = np.zeros((column.shape[0], (search.order.shape[0] + 63) // 64), np.uint64)
    at = 0
    while at < count:
        a, b = start[at], stop[at]
        found, threshold, yes = -1, ZERO, False
        if first[at] == at and b - a >= 2 * search.least and count + 2 <= column.shape[0]:
            found, threshold, yes = best_split(members, a, b, search, constant[at], sums)
        if found >= 0:
            middle = divide(
                members.columns[found], threshold, yes, members.sums, members.weight, members.rows, a, b
            )  # fmt: skip
            column[at], value[at], missing[at], first[at] = found, threshold, yes, count
            start[count], stop[count], start[count + 1], stop[count + 1] = a, middle, middle, b
            for child in range(count, count + 2):
                parent[child] = parent[at]
                constant[child] = constant[at]
            count += 2
        at += 1
    return count


@compiled
def best_split(
    members: Members, a: int, b: int, search: Search, constant: Array, sums: Sums
) -> tuple[int, float, bool]:  # fmt: skip
    """Return column, value and side of missing values for the rows from a to b; column -1 if there is no split.

    ``constant``: a bit for each column, whether it is known to be constant in these rows.
    """
    bits, order = search.bits, search.order
    mass, pure = add_up(members, a, b, sums.total)
    found, threshold, yes, best = -1, ZERO, False, -1.0
    if pure:
        return found, threshold, yes
    pool, here, rounds, done = order.shape[0], 0, 0, 0
    while done < search.tries and here < pool and rounds < MAX_ROUNDS:
        pick = here + int(next_bits(bits) % np.uint64(pool - here))
        order[here], order[pick] = order[pick], order[here]
        column = order[here]
        values, word, bit = members.columns[column], column >> 6, np.uint64(1) << np.uint64(column & 63)
        low, high, n_lost = ZERO, ZERO, 0
        if constant[word] & bit == 0:
            low, high, n_lost = span(values, members.rows, a, b)
        if not low < high:
            constant[word] |= bit
            pool -= 1
            order[here], order[pool] = order[pool], order[here]
        else:
            cut: Any = np.float32(low + fraction(bits) * (high - low))
            cut = low if cut >= high else cut
            gain, goes = explained_by(values, cut, n_lost, members, a, b, search.least, mass, sums)
            done += gain >= 0
            if gain > best:
                found, threshold, yes, best = column, cut, goes, gain
            here += 1
        if here >= pool:
            here, rounds = 0, rounds + 1
    return found, threshold, yes


@compiled
def add_up(members: Members, a: int, b: int, total: Array) -> tuple[float, bool]:
    """Fill ``total`` with the sum of rows a to b; return their weight, and whether targets are nearly constant."""
    sums, weight = members.sums, members.weight
    total[:] = 0.0
    mass, squares = 0.0, 0.0
    for i in range(a, b):
        mass += weight[i]
        for c in range(total.shape[0]):
            total[c] += sums[i, c]
            squares += sums[i, c] * sums[i, c] / weight[i]
    explained = 0.0
    for c in range(total.shape[0]):
        explained += total[c] * total[c] / mass
    return mass, squares - explained <= MIN_VARIANCE * squares


def n_tries(columns: Array, n: int) -> int:
    """Return the square root of the number of columns that vary in n rows: constant columns cannot be split.

    >>> n_tries(np.array([[0.0, 1.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]), 2)
    1
    """
    return max(1, int(np.sqrt(n_varying(columns, n))))


@compiled
def n_varying(columns: Array, n: int) -> int:
    """Return the number of columns with different values in n rows; a missing value differs from others."""
    count = 0
    for j in range(columns.shape[0]):
        first = columns[j, 0]
        for i in range(1, n):
            value = columns[j, i]
            if value != first and not (value != value and first != first):
                count += 1
                break
    return count


@compiled
def span(values: Array, rows: Array, a: int, b: int) -> tuple[float, float, int]:
    """Return the minimum and maximum of a column, and its number of missing values."""
    low, high, lost = INFINITY, -INFINITY, 0
    for i in range(a, b):
        x = values[rows[i]]
        low = x if x < low else low
        high = x if x > high else high
        lost += x != x
    return low, high, lost


@compiled
def explained_by(
    values: Array, cut: float, n_lost: int, members: Members, a: int, b: int, least: int, mass: float, room: Sums
) -> tuple[float, bool]:  # fmt: skip
    """Return the gain of a split, -1 if a side is too small, and whether missing values go with those up to ``cut``."""
    sums, weight, rows = members.sums, members.weight, members.rows
    total, left, lost = room.total, room.left, room.lost
    left[:] = 0.0
    lost[:] = 0.0
    n_left, w_left, w_lost = 0, 0.0, 0.0
    for i in range(a, b):
        if values[rows[i]] <= cut:
            n_left += 1
            w_left += weight[i]
            for c in range(total.shape[0]):
                left[c] += sums[i, c]
    for i in range(a, b if n_lost > 0 else a):
        if np.isnan(values[rows[i]]):
            w_lost += weight[i]
            for c in range(total.shape[0]):
                lost[c] += sums[i, c]
    best, yes = -1.0, 2 * n_left > b - a
    for side in range(2 if n_lost > 0 else 1):
        n_yes, w_yes = n_left + side * n_lost, w_left + side * w_lost
        if min(n_yes, b - a - n_yes) >= least:
            gain = 0.0
            for c in range(total.shape[0]):
                s = left[c] + side * lost[c]
                gain += s * s / w_yes + (total[c] - s) * (total[c] - s) / (mass - w_yes)
            if gain > best:
                best, yes = gain, side == 1 if n_lost > 0 else yes
    return best, yes


@compiled
def divide(
    values: Array, cut: float, yes: bool, sums: Array, weight: Array, rows: Array, a: int, b: int
) -> int:  # fmt: skip
    """Move the rows of the first child to the front, and return where those of the second begin."""
    i, j = a, b - 1
    while i <= j:
        x = values[rows[i]]
        if x <= cut or (yes and np.isnan(x)):
            i += 1
        else:
            rows[i], rows[j] = rows[j], rows[i]
            weight[i], weight[j] = weight[j], weight[i]
            for c in range(sums.shape[1]):
                sums[i, c], sums[j, c] = sums[j, c], sums[i, c]
            j -= 1
    return i


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
def fraction(bits: Array) -> float:
    """Return a random number in [0, 1)."""
    return (next_bits(bits) >> np.uint64(11)) * (1.0 / 9007199254740992.0)
