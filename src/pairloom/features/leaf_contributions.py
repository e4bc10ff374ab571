"""Contributions of columns to the scores of trees."""

from math import factorial

import numpy as np

from pairloom.base.compiled import compiled
from pairloom.base.typing import Array

TABLE = 32
"""Numbers of players on a path up to which the weights of a leaf are tabulated."""

NOBODY, ROW, BACKGROUND = 0, 1, 2
"""Whose value a player has on the path to a leaf; nobody's: both rows take the path at all nodes of the player."""


def _weight(u: int, v: int) -> float:
    return factorial(u - 1) * factorial(v) / factorial(u + v) if u else 0.0


WEIGHTS = np.array([[_weight(u, v) for v in range(TABLE)] for u in range(TABLE)])


@compiled
def leaf_weight(u: int, v: int) -> float:
    """Return (u - 1)! v! / (u + v)! for u >= 1, the share of a leaf's value for each of u players."""
    if u < TABLE and v < TABLE:
        found: float = WEIGHTS[u, v]
        return found
    share = 1.0 / (u + v)
    for k in range(1, v + 1):
        share *= k / (u - 1.0 + k)
    return share


@compiled
def spread_value(value: float, path: Array, n: int, sides: Array, u: int, v: int, k: int, out: Array) -> None:
    """Add the shares of a leaf's value to ``out`` (players, classes) for the n players on its path.

    The leaf counts for the sets with all u players on the side of the row, and none of the v players on the side of the
    background.
    """
    plus = value * leaf_weight(u, v) if u else 0.0
    minus = value * leaf_weight(v, u) if v else 0.0
    for q in range(n):
        if sides[path[q]] == ROW:
            out[path[q], k] += plus
        else:
            out[path[q], k] -= minus


@compiled
def step_back(to: int, n: int, path: Array, sides: Array) -> int:
    """Forget the players noted on a path after the first ``to``; return how many of them were on the row's side."""
    removed = 0
    for q in range(to, n):
        removed += sides[path[q]] == ROW
        sides[path[q]] = NOBODY
    return removed


@compiled
def contribute_leaves(
    X: Array, background: Array, players: Array, weights: Array,
    columns: Array, values: Array, yes: Array, missing_yes: Array, cells: Array, w: Array, slopes: Array, out: Array,
) -> None:  # fmt: skip
    """Add those of ``sum_leaves`` to ``out``, by one walk through each tree for each pair of rows.

    Where both rows go the same way, the walk follows them. Where they part at a node of a new player, it follows both,
    and notes the player on the side of the row, or of the background; at further nodes of this player, it follows that
    side only. This is interventional TreeSHAP with one background row.

    Reference: Laberge and Pequignot, Understanding Interventional TreeSHAP: How and Why it Works, 2022.
    """
    n_players, size = out.shape[1], w.shape[1] // columns.shape[0]
    sides, path = np.zeros(n_players, np.int8), np.empty(n_players, np.int32)
    nodes, counts = np.empty(n_players, np.int32), np.empty(n_players, np.int32)
    for t in range(columns.shape[0]):
        column, threshold, first, missing = columns[t], values[t], yes[t], missing_yes[t]
        for i in range(X.shape[0]):
            x = X[i]
            for b in range(background.shape[0]):
                other = background[b]
                at, n, u, waiting = 0, 0, 0, 0
                while True:
                    if first[at] != at:
                        c = column[at]
                        player = players[c]
                        side = sides[player]
                        value = other[c] if side == BACKGROUND else x[c]
                        no = not (missing[at] if np.isnan(value) else value <= threshold[at])
                        if side == NOBODY:
                            value = other[c]
                            no_other = not (missing[at] if np.isnan(value) else value <= threshold[at])
                            if no != no_other:
                                nodes[waiting], counts[waiting] = first[at] + no_other, n
                                waiting += 1
                                path[n], sides[player] = player, ROW
                                n, u = n + 1, u + 1
                        at = first[at] + no
                        continue
                    if n:
                        for k in range(w.shape[0]):
                            total = 0.0
                            for r in range(w.shape[2]):
                                total += slopes[r, k] * w[k, t * size + cells[t, 0, at], r]
                            spread_value(total * weights[i, b, k], path, n, sides, u, n - u, k, out[i])
                    if not waiting:
                        step_back(0, n, path, sides)
                        break
                    waiting -= 1
                    at = nodes[waiting]
                    u -= step_back(counts[waiting], n, path, sides)
                    n = counts[waiting] + 1
                    sides[path[n - 1]] = BACKGROUND
