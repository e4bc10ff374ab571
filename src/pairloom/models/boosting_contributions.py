"""Contributions of columns to the scores of boosted trees."""

import numpy as np

from pairloom.base.compiled import compiled
from pairloom.base.typing import Array
from pairloom.engines.boosting import TreeArrays
from pairloom.features.leaf_contributions import BACKGROUND, NOBODY, ROW, spread_value, step_back


@compiled
def contribute_boosted(
    X: Array, background: Array, players: Array, weights: Array, trees: TreeArrays, grown: Array, out: Array
) -> None:  # fmt: skip
    """Add those of the trees of a generation to ``out`` (rows, players, targets); ``X`` and ``background`` are bins.

    The walk is that of :func:`~pairloom.features.leaf_contributions.contribute_leaves`.
    """
    n_players = out.shape[1]
    sides, path = np.zeros(n_players, np.int8), np.empty(n_players, np.int32)
    nodes, counts = np.empty(n_players, np.int32), np.empty(n_players, np.int32)
    for k in range(len(grown)):
        for t in range(grown[k]):
            columns, masks, children, leaves = trees[0][k, t], trees[1][k, t], trees[2][k, t], trees[3][k, t]
            for i in range(X.shape[0]):
                for b in range(background.shape[0]):
                    at, n, u, waiting = 0, 0, 0, 0
                    while True:
                        c = columns[at]
                        if c >= 0:
                            player = players[c]
                            side = sides[player]
                            mask = masks[at]
                            way = (mask >> np.int64(background[b, c] if side == BACKGROUND else X[i, c])) & 1
                            if side == NOBODY:
                                other = (mask >> np.int64(background[b, c])) & 1
                                if way != other:
                                    nodes[waiting], counts[waiting] = children[at] + other, n
                                    waiting += 1
                                    path[n], sides[player] = player, ROW
                                    n, u = n + 1, u + 1
                            at = children[at] + way
                            continue
                        if n:
                            spread_value(leaves[at] * weights[i, b, k], path, n, sides, u, n - u, k, out[i])
                        if not waiting:
                            step_back(0, n, path, sides)
                            break
                        waiting -= 1
                        at = nodes[waiting]
                        u -= step_back(counts[waiting], n, path, sides)
                        n = counts[waiting] + 1
                        sides[path[n - 1]] = BACKGROUND
