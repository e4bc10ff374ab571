"""Contributions of columns to the scores of boosted trees."""

import numpy as np

from pairloom.base.compiled import compiled
from pairloom.base.typing import Array
from pairloom.engines.boosting import TreeArrays
from pairloom.features.leaf_contributions import BITS, new_walk, part, resume, spread_value, undo


@compiled
def contribute_boosted(
    X: Array, background: Array, players: Array, weights: Array, trees: TreeArrays, grown: Array, out: Array
) -> None:  # fmt: skip
    """Add those of the trees of a generation to ``out`` (rows, players, targets); ``X`` and ``background`` are bins."""
    walk, second = new_walk(out.shape[1], trees[0].shape[2]), np.zeros(trees[0].shape[2], np.int64)
    for first in range(0, len(background), BITS):
        count = min(BITS, len(background) - first)
        whole = (np.int64(1) << count) - 1
        for k in range(len(grown)):
            if not weights[:, :, k].any():
                continue
            for t in range(grown[k]):
                columns, masks, children, leaves = trees[0][k, t], trees[1][k, t], trees[2][k, t], trees[3][k, t]
                goes_second(background, first, count, columns, masks, second)
                for i in range(X.shape[0]):
                    at, alive, logged, waiting = 0, int(whole), 0, 0
                    while True:
                        c = columns[at]
                        if c >= 0:
                            way = (masks[at] >> np.int64(X[i, c])) & 1
                            same = int(alive & second[at] if way else alive & ~second[at])
                            at, alive, logged, waiting = part(
                                walk, players[c], children[at], way, alive, same, logged, waiting
                            )
                            continue
                        if logged:
                            spread_value(walk, logged, alive, first, leaves[at], weights, i, k, out)
                        if not waiting:
                            undo(walk, logged, 0)
                            break
                        waiting -= 1
                        at, alive, logged = resume(walk, waiting, logged)


@compiled
def goes_second(background: Array, first: int, count: int, columns: Array, masks: Array, out: Array) -> None:
    """Fill ``out`` (nodes,) with the background rows that go to the second child, as bits."""
    for at in range(len(columns)):
        out[at] = 0
        if columns[at] >= 0:
            for b in range(count):
                out[at] |= ((masks[at] >> np.int64(background[first + b, columns[at]])) & 1) << b
