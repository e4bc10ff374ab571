"""Compiled loops of gradient boosting: grow a tree on binned rows, score rows, learn the leaves."""

import numpy as np

from pairloom.base.compiled import compiled, copy_to
from pairloom.base.typing import Array
from pairloom.engines.bins import N_BINS, bin_columns, bin_rows, fit_cuts
from pairloom.engines.splits import TIE, Growth, Slopes, best_split, logistic, logistic_loss, slopes_of

__all__ = ["arrive", "bin_columns", "bin_rows", "fit_cuts", "grow", "learn_leaves", "walk"]

VALUES, SQUARES = 3, 4
"""Positions in ``TreeArrays``."""

BLOCK_TREES = 4
"""Trees between two measurements of the loss."""

TreeArrays = tuple[Array, Array, Array, Array, Array]
"""Columns, masks, children, values and squares of the nodes of T trees of each target, (targets, T, nodes).

The root of a tree is node 0. At a node, a row whose bin in its column is set in its mask goes to the node after its
child, all others to its child. A leaf has column -1. Squares are sums of squared slopes of the leaves."""


@compiled
def add_rows(bins: Array, columns: Array, rows: Array, packed: Array, histogram: Array) -> None:
    """Fill the histogram of some rows."""
    own = packed[rows]
    for q in range(len(columns)):
        sums, values = histogram[q], bins[columns[q]]
        sums[:] = 0
        for t in range(len(rows)):
            sums[values[rows[t]]] += own[t]


@compiled
def subtract(histogram: Array, other: Array) -> None:
    """histogram <- histogram - other."""
    for q in range(histogram.shape[0]):
        for b in range(histogram.shape[1]):
            histogram[q, b] -= other[q, b]


@compiled
def grow(
    bins: Array, columns: Array, category: Array, y: Array, weight: Array, scores: Array,
    settings: tuple[int, int, float, float, int, float, float], tree: TreeArrays,
) -> None:  # fmt: skip
    """Grow one tree on binned rows, ``bins`` (d, n), best split first, and add its values to their ``scores``.

    ``columns``: those that splits may use; ``category``: which of all columns are categories. ``settings``: a
    :class:`Growth`. ``tree`` has one axis, the nodes.
    """
    growth = Growth(*settings)
    n, size = len(y), growth.max_leaves
    tree_columns, tree_masks, children, values, _ = tree
    slopes = slopes_of(scores, y, weight, growth)
    rows, other = np.empty(n, np.int32), np.empty(n, np.int32)
    for i in range(n):
        rows[i] = i
    histograms = np.empty((size, len(columns), N_BINS), np.int64)
    start, end, slot = np.zeros(2 * size, np.int64), np.zeros(2 * size, np.int64), np.zeros(2 * size, np.int64)
    gains, masks, best = np.zeros(2 * size), np.zeros(2 * size, np.int64), np.zeros(2 * size, np.int64)
    end[0] = n
    add_rows(bins, columns, rows, slopes.packed, histograms[0])
    gains[0], best[0], masks[0] = best_split(histograms[0], columns, category, slopes, growth)
    nodes, leaves = 1, 1
    while leaves < size:
        at = 0
        for k in range(1, nodes):
            if gains[k] > TIE * gains[at]:
                at = k
        if gains[at] <= 0.0:
            break
        middle = part(rows, other, start[at], end[at], bins[best[at]], masks[at])
        tree_columns[at], tree_masks[at], children[at], gains[at] = best[at], masks[at], nodes, 0.0
        left, right = nodes, nodes + 1
        start[left], end[left], start[right], end[right] = start[at], middle, middle, end[at]
        small, large = (left, right) if 2 * middle <= start[at] + end[at] else (right, left)
        slot[small], slot[large] = leaves, slot[at]
        nodes, leaves = nodes + 2, leaves + 1
        if leaves < size:
            add_rows(bins, columns, rows[start[small] : end[small]], slopes.packed, histograms[slot[small]])
            subtract(histograms[slot[large]], histograms[slot[small]])
            for k in (left, right):
                gains[k], best[k], masks[k] = best_split(histograms[slot[k]], columns, category, slopes, growth)
    for k in range(nodes):
        if tree_columns[k] < 0:
            values[k] = leaf_value(rows[start[k] : end[k]], slopes, growth)
            for t in range(start[k], end[k]):
                scores[rows[t]] += values[k]


@compiled
def part(rows: Array, other: Array, start: int, end: int, values: Array, mask: int) -> int:
    """Move the rows of a node that ``mask`` does not contain to the front, both parts in order; return their end."""
    left, right = start, 0
    for t in range(start, end):
        row = rows[t]
        if (mask >> np.int64(values[row])) & 1:
            other[right] = row
            right += 1
        else:
            rows[left] = row
            left += 1
    copy_to(rows[left:end], other[:right])
    return left


@compiled
def leaf_value(rows: Array, slopes: Slopes, growth: Growth) -> float:
    """Return the Newton step of the scores of a leaf's rows, times the learning rate."""
    g = h = 0.0
    for row in rows:
        g += slopes.g[row]
        h += slopes.h[row]
    return -growth.rate * g / (h + growth.alpha)


@compiled
def leaf_of(row: Array, trees: TreeArrays, k: int, t: int) -> int:
    """Return the leaf of a binned row in tree t of target k."""
    columns, masks, children = trees[0][k, t], trees[1][k, t], trees[2][k, t]
    at = 0
    while columns[at] >= 0:
        at = children[at] + ((masks[at] >> np.int64(row[columns[at]])) & 1)
    return at


@compiled
def walk(bins: Array, trees: TreeArrays, grown: Array, out: Array) -> None:
    """Add the values of the leaves of binned rows (rows, d) to ``out`` (rows, targets)."""
    for start in range(0, bins.shape[0], 256):  # rows that stay in the cache
        end = min(bins.shape[0], start + 256)
        for k in range(out.shape[1]):
            for t in range(grown[k]):
                for i in range(start, end):
                    out[i, k] += trees[VALUES][k, t, leaf_of(bins[i], trees, k, t)]


@compiled
def arrive(
    bins: Array, y: Array, factors: Array, targets: Array, base: Array, trees: TreeArrays, grown: Array, scores: Array,
    drops: Array, mass: Array,
) -> None:  # fmt: skip
    """Score rows that the growing trees have not seen: ``scores`` (rows, targets).

    ``drops`` and ``mass`` (targets, blocks): by how much each block of trees reduced the loss of such rows, weighted by
    their ``factors`` (rows, targets), and the sum of these.
    """
    for i in range(bins.shape[0]):
        for k in range(len(targets)):
            sign = 1.0 if y[i] == targets[k] else -1.0
            score = base[k]
            before = logistic_loss(sign * score)
            for t in range(grown[k]):
                score += trees[VALUES][k, t, leaf_of(bins[i], trees, k, t)]
                if (t + 1) % BLOCK_TREES == 0:
                    after = logistic_loss(sign * score)
                    drops[k, t // BLOCK_TREES] += factors[i, k] * (before - after)
                    mass[k, t // BLOCK_TREES] += factors[i, k]
                    before = after
            scores[i, k] = score


@compiled
def learn_leaves(
    bins: Array, y: Array, weight: Array, targets: Array, base: Array, trees: TreeArrays, grown: Array, eta: float,
    scores: Array,
) -> None:  # fmt: skip
    """Score rows one by one, then take a step of AdaGrad on the logistic loss in the leaves that each fell in."""
    values, squares = trees[VALUES], trees[SQUARES]
    leaves = np.empty(values.shape[1], np.int64)
    for i in range(bins.shape[0]):
        for k in range(len(targets)):
            score = base[k]
            for t in range(grown[k]):
                leaves[t] = leaf_of(bins[i], trees, k, t)
                score += values[k, t, leaves[t]]
            scores[i, k] = score
            slope = (logistic(score) - (1.0 if y[i] == targets[k] else 0.0)) * weight[i]
            for t in range(grown[k]):
                squares[k, t, leaves[t]] += slope * slope
                values[k, t, leaves[t]] -= eta * slope / np.sqrt(squares[k, t, leaves[t]])
