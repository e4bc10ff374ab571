"""Extremely randomised trees, grown by a compiled loop.

scikit-learn's trees have the same distribution in small nodes. This implementation is built for many small trees:
nodes are split depth first, so that the rows of a node stay in the cache; splits of large nodes are judged by some
of their rows; and a column that is constant in a node is not looked at again below it.
"""

from typing import Any, NamedTuple

import numpy as np

from pairloom.base.compiled import compiled
from pairloom.base.typing import Array
from pairloom.features.tree_columns import ZERO, lists, n_tries, varying_first
from pairloom.features.tree_splits import MIN_SPARSENESS, Members, Room, Search, below, best_split, n_judged


class Grown(NamedTuple):
    """A tree: column, value, first child and side of missing values of each node; and what it was grown from.

    The second child of a node follows the first; a leaf is its own first child. ``parent``: the node of the old tree
    that a node equals or is a part of. ``leaf``: the leaf of each row.
    """

    tree: tuple[Array, Array, Array, Array]
    parent: Array
    leaf: Array


def grow(X: Array, targets: Array, weight: Array, least: int, tries: int, rng: np.random.Generator) -> Grown:
    """Grow a tree from ``X`` (n, d) and ``targets`` (n, k), all float32, weights above 0.

    Each node tries ``tries`` splits (0: the square root of the number of columns that vary), each of a random column at
    a random value within its range, and uses the split with the smallest squared error (for class indicators, the Gini
    index). Missing values go to the side where the error is smaller; if no value is missing, to the larger side.
    """
    n = len(targets)
    root = (np.zeros(1, np.int32), np.zeros(1, np.float32), np.zeros(1, np.int32), np.zeros(1, bool))
    room = 2 * max(1, n // least) + 1
    return grow_on(X, targets, weight, least, tries, rng, root, np.zeros(n, np.int32), room)


def grow_on(
    X: Array, targets: Array, weight: Array, least: int, tries: int, rng: np.random.Generator,
    tree: tuple[Array, Array, Array, Array], leaf: Array, room: int,
) -> Grown:  # fmt: skip
    """Grow ``tree`` further, given the ``leaf`` of each row, to at most ``room`` nodes, leaves of many rows first."""
    count = len(tree[0])
    column, first, parent = np.zeros(room, np.int32), np.arange(room, dtype=np.int32), np.arange(room, dtype=np.int32)
    value, missing = np.zeros(room, np.float32), np.zeros(room, bool)
    for whole, part in zip((column, value, first, missing), tree, strict=True):
        whole[:count] = part
    bits = rng.integers(1, 2**63, 1, dtype=np.uint64)
    leaf = leaf.astype(np.int32)
    nodes = column, value, first, missing, parent
    by_size = np.argsort(-np.bincount(leaf, minlength=count), kind="stable")
    count = grow_nodes(X, targets, weight, (least, tries), bits, nodes, leaf, by_size)
    return Grown((column[:count], value[:count], first[:count], missing[:count]), parent[:count], leaf)


@compiled
def grow_nodes(
    X: Array, targets: Array, weight: Array, limits: Any, bits: Array, nodes: Any, leaf: Array, by_size: Array
) -> int:  # fmt: skip
    """Split the leaves among the nodes while possible, update the leaf of each row, return the number of nodes.

    ``limits``: minimum rows in a leaf, and number of tries. ``nodes``: column, value, first child, side of missing
    values, and node of the old tree. ``by_size``: the nodes, those of many rows first.
    """
    n, k = targets.shape
    n_nodes, (least, tries) = nodes[0].shape[0], limits
    shuffled = shuffle(n, bits)
    rows, start, stop = arranged(leaf, n_nodes, shuffled)
    sums = np.empty((1 + k, n), np.float32)
    for i in range(n):
        sums[0, i] = weight[rows[i]]
        for c in range(k):
            sums[1 + c, i] = targets[rows[i], c] * sums[0, i]
    room = Room(np.empty(n, np.float32), np.empty(1 + k), np.empty(1 + k), np.empty(1 + k))
    judged = n_judged(sums, least, room.total)
    order, pool, shares = varying_first(X, shuffled[:judged])
    most = judged // MIN_SPARSENESS
    sparse = order[:pool]
    ones = lists(X, sparse[shares[sparse] * n <= most], most)
    place = np.empty(n if ones[3].shape[0] else 0, np.int32)
    for i in range(place.shape[0]):
        place[rows[i]] = i
    members = Members(X, rows, sums, place, *ones)
    search = Search(least, tries if tries > 0 else n_tries(pool), judged, bits, order)
    return split_all(members, search, room, (start, stop, *nodes), leaf, by_size, pool)


@compiled
def split_all(
    members: Members, search: Search, room: Room, nodes: Any, leaf: Array, by_size: Array, pool: int
) -> int:  # fmt: skip
    """Split the leaves of many rows first, and the parts of each leaf depth first; return the number of nodes.

    The columns that vary in a node are the first of an order, as many as its pool. Below the node, only these change
    places, so the order still holds when its second child is split.
    """
    start, stop, column, value, first, missing, parent = nodes
    n_nodes, spare = column.shape[0], (np.empty(room.values.shape[0], np.bool_), np.empty_like(members.rows))
    stack, pools = np.empty(n_nodes, np.int32), np.empty(n_nodes, np.int32)
    count: int = by_size.shape[0]
    for root in by_size:
        if first[root] != root:
            continue
        stack[0], pools[0], depth = root, pool, 1
        while depth > 0:
            depth -= 1
            at, own = stack[depth], pools[depth]
            a, b = start[at], stop[at]
            found, threshold, yes = -1, ZERO, False
            if b - a >= 2 * search.least and count + 2 <= n_nodes:
                found, threshold, yes, own = best_split(members, a, b, search, own, room)
            if found < 0:
                for i in range(a, b):
                    leaf[members.rows[i]] = at
                continue
            middle = divide(members, found, threshold, yes, a, b, spare, room.values)
            column[at], value[at], missing[at], first[at] = found, threshold, yes, count
            start[count], stop[count], start[count + 1], stop[count + 1] = a, middle, middle, b
            for child in range(2):
                parent[count + child] = parent[at]
                stack[depth + child], pools[depth + child] = count + 1 - child, own
            count += 2
            depth += 2
    return count


@compiled
def shuffle(n: int, bits: Array) -> Array:
    """Return the numbers below n in random order."""
    numbers = np.empty(n, np.uint32)
    for i in range(n):
        numbers[i] = i
    for i in range(n - 1, 0, -1):
        j = below(bits, i + 1)
        numbers[i], numbers[j] = numbers[j], numbers[i]
    return numbers


@compiled
def arranged(leaf: Array, n_nodes: int, shuffled: Array) -> tuple[Array, Array, Array]:
    """Return the rows with those of each leaf together, otherwise in order; and start and stop of each node's."""
    n = leaf.shape[0]
    rows = np.empty(n, np.uint32)
    start, stop = np.zeros(n_nodes, np.int64), np.zeros(n_nodes, np.int64)
    for i in range(n):
        stop[leaf[i]] += 1
    total = 0
    for at in range(n_nodes):
        start[at] = total
        total += stop[at]
        stop[at] = start[at]
    for i in shuffled:
        rows[stop[leaf[i]]] = i
        stop[leaf[i]] += 1
    return rows, start, stop


@compiled
def divide(
    members: Members, column: int, cut: float, yes: bool, a: int, b: int, spare: tuple[Array, Array], values: Array
) -> int:  # fmt: skip
    """Move the rows of the first child to the front, without changing the order on either side; return their end."""
    goes, later = spare[0][: b - a], spare[1]
    X, rows, sums, place, at = members.X, members.rows[a:b], members.sums, members.place, np.uint32(column)
    count = 0
    for i in range(rows.shape[0]):
        x = X[rows[i], at]
        goes[i] = (x <= cut) | (yes & (x != x))
        count += goes[i]
    part(rows, goes, later)
    for c in range(sums.shape[0]):
        part(sums[c, a:b], goes, values)
    for i in range(rows.shape[0] if place.shape[0] else 0):
        place[rows[i]] = a + i
    return a + count


@compiled
def part(numbers: Array, goes: Array, later: Array) -> None:
    """Move the numbers that go to the front; ``later`` is a buffer for the others."""
    front, n_later = np.uint64(0), np.uint64(0)
    for i in range(goes.shape[0]):  # without branches: which way a number goes is hard to predict
        number = numbers[i]
        numbers[front], later[n_later] = number, number
        front += np.uint64(goes[i])
        n_later += np.uint64(not goes[i])
    for i in range(goes.shape[0] - int(front)):
        numbers[int(front) + i] = later[i]
