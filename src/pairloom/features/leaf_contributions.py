"""Contributions of columns to the scores of trees: one walk through a tree for a row and up to 62 background rows.

At a leaf, a player of its path is the row's if the background row fails the conditions of the player on the path, and
the background's if the row fails them; a leaf with a player that both fail does not count. This is interventional
TreeSHAP, in which the walk for several background rows is shared: they are the bits of a number.

Reference: Laberge and Pequignot, Understanding Interventional TreeSHAP: How and Why it Works, 2022.
"""

from math import factorial

import numpy as np

from pairloom.base.compiled import compiled
from pairloom.base.typing import Array

BITS = 62
"""Background rows of a walk: bits of a signed number, without its sign."""

PLACES = np.zeros(67, np.int64)
"""The position of a bit, by its remainder modulo 67, which is different for each of them."""
PLACES[[pow(2, k, 67) for k in range(BITS)]] = np.arange(BITS)

UNKNOWN = -1

TABLE = 32
"""Numbers of players on a path up to which the weights of a leaf are tabulated."""

SHARES = np.array([[factorial(u - 1) * factorial(v) / factorial(u + v) if u else 0.0 for v in range(TABLE)]
                   for u in range(TABLE)])  # fmt: skip

FAILED, OUT, PATH, NODES, ALIVE, MARKS, LOG, BEFORE, WAS_OUT, SIZE, OUTS = range(11)
"""Rows of the memory of a walk; one array, since Numba counts references to arrays in tuples at each use.

By player: the background rows that fail its conditions, as bits, and whether the row does. PATH: the players noted.
NODES, ALIVE, MARKS: nodes to visit later, their background rows, and the length of the log there; negative where only
the background rows part. LOG, BEFORE, WAS_OUT: players that were changed, with FAILED and OUT before. SIZE, OUTS: with
a log of this length, the number of players in PATH, and how many of them the row fails."""


@compiled
def leaf_share(u: int, v: int) -> float:
    """Return (u - 1)! v! / (u + v)!, the share of a leaf's value for each of u players; 0 for u = 0."""
    if u < TABLE and v < TABLE:
        found: float = SHARES[u, v]
        return found
    if u == 0:
        return 0.0
    share = 1.0 / (u + v)
    for k in range(1, v + 1):
        share *= k / (u - 1.0 + k)
    return share


@compiled
def new_walk(n_players: int, n_nodes: int) -> Array:
    """Return the memory of a walk."""
    return np.zeros((11, max(n_players, n_nodes // 2 + 3)), np.int64)


@compiled
def note(walk: Array, player: int, failed: int, out: int, logged: int) -> int:
    """Set what is noted of a player, and log what to undo; return the length of the log."""
    walk[LOG, logged], walk[BEFORE, logged], walk[WAS_OUT, logged] = player, walk[FAILED, player], walk[OUT, player]
    size = walk[SIZE, logged]
    walk[PATH, size] = player
    walk[SIZE, logged + 1] = size + ((walk[FAILED, player] | walk[OUT, player]) == 0)
    walk[OUTS, logged + 1] = walk[OUTS, logged] + out - walk[OUT, player]
    walk[FAILED, player], walk[OUT, player] = failed, out
    return logged + 1


@compiled
def undo(walk: Array, logged: int, to: int) -> int:
    """Undo what was noted since the log had the length ``to``."""
    while logged > to:
        logged -= 1
        player = walk[LOG, logged]
        walk[FAILED, player], walk[OUT, player] = walk[BEFORE, logged], walk[WAS_OUT, logged]
    return logged


@compiled
def part(
    walk: Array, player: int, child: int, way: int, alive: int, same: int, logged: int, waiting: int
) -> tuple[int, int, int, int]:
    """Go on from a node with the children ``child`` and ``child`` + 1, of which the row goes to the one of its ``way``.

    ``same``: the background rows that go there too. Return the next node, its background rows, the length of the log,
    and the number of nodes to visit later.
    """
    other, here, there = alive ^ same, child + way, child + 1 - way
    if walk[OUT, player]:  # only the background rows matter
        if not same:
            return there, other, logged, waiting
        if other:
            walk[NODES, waiting], walk[ALIVE, waiting], walk[MARKS, waiting] = there, other, -1 - logged
            waiting += 1
        return here, same, logged, waiting
    if other:
        left = other & ~walk[FAILED, player]
        if left:
            walk[NODES, waiting], walk[ALIVE, waiting], walk[MARKS, waiting] = there, left, logged
            waiting += 1
        logged = note(walk, player, walk[FAILED, player] | other, 0, logged)
    return here, alive, logged, waiting


@compiled
def resume(walk: Array, waiting: int, logged: int) -> tuple[int, int, int]:
    """Return a node to visit, its background rows, and the length of the log there."""
    mark = walk[MARKS, waiting]
    if mark < 0:
        logged = undo(walk, logged, -1 - mark)
    else:  # the row fails the condition of the player that was noted next
        player = walk[LOG, mark]
        logged = undo(walk, logged, mark)
        logged = note(walk, player, walk[FAILED, player], 1, logged)
    return walk[NODES, waiting], walk[ALIVE, waiting], logged


@compiled
def spread_value(
    walk: Array, logged: int, alive: int, first: int, value: float, weights: Array, i: int, k: int, out: Array
) -> None:
    """Add the shares of a leaf's value to ``out`` (rows, players, classes), for each background row that reaches it.

    The leaf counts for the sets of players with all u players of the row, and none of the v of the background.
    """
    n, v = walk[SIZE, logged], walk[OUTS, logged]
    while alive:
        bit = int(alive & -alive)
        alive ^= bit
        b = PLACES[bit % 67]
        u = 0
        for q in range(n):
            player = walk[PATH, q]
            u += ((walk[FAILED, player] >> b) & 1) & (1 - walk[OUT, player])
        share = value * weights[i, first + b, k]
        plus, minus = share * leaf_share(u, v), share * leaf_share(v, u)
        for q in range(n):  # without branches, which processors would often predict wrongly
            player = walk[PATH, q]
            own = ((walk[FAILED, player] >> b) & 1) & (1 - walk[OUT, player])
            out[i, player, k] += plus * own - minus * walk[OUT, player]


@compiled
def sorted_background(background: Array, first: int, count: int) -> tuple[Array, Array, Array]:
    """Return the sorted values of each column, the rows up to each of them, and those with a missing value, as bits.

    Values are padded with infinity to a power of two, minus one.
    """
    size = 1
    while size < count:
        size = 2 * size + 1
    d = background.shape[1]
    values, rows, missing = np.full((d, size), np.inf), np.zeros((d, size + 1), np.int64), np.zeros(d, np.int64)
    for c in range(d):
        own = background[first : first + count, c]
        order = np.argsort(own)
        known = 0
        for b in order:
            if np.isnan(own[b]):
                missing[c] |= np.int64(1) << b
            else:
                values[c, known] = own[b]
                rows[c, known + 1] = rows[c, known] | (np.int64(1) << b)
                known += 1
        rows[c, known + 1 :] = rows[c, known]
    return values, rows, missing


@compiled
def rows_up_to(values: Array, rows: Array, limit: float) -> int:
    """Return the background rows whose value is at most ``limit``, as bits."""
    below, step = 0, (len(values) + 1) // 2
    while step:
        below += step * (values[below + step - 1] <= limit)
        step //= 2
    found: int = rows[below]
    return found


@compiled
def contribute_leaves(
    X: Array, background: Array, players: Array, weights: Array,
    columns: Array, values: Array, yes: Array, missing_yes: Array, cells: Array, w: Array, slopes: Array, out: Array,
) -> None:  # fmt: skip
    """Add those of ``sum_leaves`` to ``out`` (rows, players, classes)."""
    size, walk = w.shape[1] // columns.shape[0], new_walk(out.shape[1], yes.shape[1])
    first_child = np.empty(yes.shape[1], np.int64)
    for first in range(0, len(background), BITS):
        count = min(BITS, len(background) - first)
        whole = (np.int64(1) << count) - 1
        known = sorted_background(background, first, count)
        for t in range(columns.shape[0]):
            column, threshold, child, missing = columns[t], values[t], yes[t], missing_yes[t]
            first_child[:] = UNKNOWN
            for i in range(X.shape[0]):
                at, alive, logged, waiting = 0, int(whole), 0, 0
                while True:
                    here = child[at]
                    if here != at:
                        c = column[at]
                        value = X[i, c]
                        no = int(not (missing[at] if np.isnan(value) else value <= threshold[at]))
                        if first_child[at] == UNKNOWN:
                            first_child[at] = rows_up_to(known[0][c], known[1][c], threshold[at])
                            if missing[at]:
                                first_child[at] |= known[2][c]
                        same = int(alive & (first_child[at] ^ -no))
                        at, alive, logged, waiting = part(walk, players[c], here, no, alive, same, logged, waiting)
                        continue
                    if logged:
                        cell = t * size + cells[t, 0, at]
                        for k in range(w.shape[0]):
                            total = 0.0
                            for r in range(w.shape[2]):
                                total += slopes[r, k] * w[k, cell, r]
                            spread_value(walk, logged, alive, first, total, weights, i, k, out)
                    if not waiting:
                        undo(walk, logged, 0)
                        break
                    waiting -= 1
                    at, alive, logged = resume(walk, waiting, logged)
