"""Compiled loops of gradient boosting: grow a tree on binned rows, score rows, learn the leaves.

The slope g and the curvature h of a row's loss are rounded at random to 10 bits and packed with a count of 1 into one
64-bit integer. A histogram of such integers is exact and does not depend on the order of the rows, and that of a node
minus that of one child is that of the other.
"""

from math import exp, log1p
from typing import NamedTuple

import numpy as np

from pairloom.base.compiled import compiled
from pairloom.base.typing import Array
from pairloom.engines.bins import MISSING, N_BINS, bin_columns, bin_rows, fit_cuts

__all__ = ["arrive", "bin_columns", "bin_rows", "fit_cuts", "grow", "learn_leaves", "walk"]

LEVELS = 1022
"""Largest rounded slope and curvature: the sum of 16,384 of them has at most 24 bits."""

SLOPE_BITS, CURVATURE_BITS = 39, 15
"""Position of the sums of slopes and curvatures in a packed sum; the count comes first."""

CURVATURE_MASK, COUNT_MASK = (1 << 24) - 1, (1 << 15) - 1

MIN_CURVATURE = 1e-3
"""Minimum sum of curvatures in a child."""

CATEGORY_ALPHA, CATEGORY_SMOOTHING, FEW_CATEGORIES = 10.0, 10.0, 4
"""L2 penalty of the children of a split on more than a few categories, and curvature added when they are sorted."""

TIE = 1.0 + 1e-9
"""A split replaces an earlier one if its gain is larger by this factor: rounding does not decide."""

BLOCK_TREES = 4
"""Trees between two measurements of the loss."""

MAX_MARGIN = 30.0
"""Beyond this, exp is not computed."""


class TreeArrays(NamedTuple):
    """Nodes of T trees of each target, (targets, T, nodes); the root of a tree is node 0.

    At a node, a row whose bin in ``columns`` is set in ``masks`` goes to the node after ``children``, all others to
    ``children``. A leaf has column -1. ``squares``: sums of squared slopes of the leaves.
    """

    columns: Array
    masks: Array
    children: Array
    values: Array
    squares: Array


class Growth(NamedTuple):
    """How a tree is grown: maximum number of leaves, minimum rows in a leaf, L2 penalty, learning rate and seed."""

    max_leaves: int
    min_rows: int
    alpha: float
    rate: float
    seed: int


class Slopes(NamedTuple):
    """Slope and curvature of each row, both packed, and the units of the packed ones."""

    g: Array
    h: Array
    packed: Array
    g_unit: float
    h_unit: float


@compiled
def logistic(margin: float) -> float:
    """Return 1 / (1 + exp(-margin))."""
    return 1.0 / (1.0 + exp(-margin)) if margin > -MAX_MARGIN else exp(margin)


@compiled
def logistic_loss(margin: float) -> float:
    """Return ln(1 + exp(-margin))."""
    return log1p(exp(-margin)) if margin > -MAX_MARGIN else -margin


@compiled
def slopes_of(scores: Array, positive: Array, weight: Array, seed: int) -> Slopes:
    """Return slopes and curvatures of the logistic loss at ``scores``."""
    n = len(positive)
    g, h, packed = np.empty(n), np.empty(n), np.empty(n, np.int64)
    largest_g = largest_h = 1e-300
    for i in range(n):
        p = logistic(scores[i])
        g[i] = (p - positive[i]) * weight[i]
        h[i] = p * (1.0 - p) * weight[i]
        largest_g, largest_h = max(largest_g, abs(g[i])), max(largest_h, h[i])
    g_unit, h_unit = largest_g / LEVELS, largest_h / LEVELS
    bits = np.uint64(seed) * np.uint64(2654435761) + np.uint64(88172645463325252)
    for i in range(n):
        bits ^= bits << np.uint64(13)
        bits ^= bits >> np.uint64(7)
        bits ^= bits << np.uint64(17)
        up_g = np.float64(bits >> np.uint64(40)) / (1 << 24)
        up_h = np.float64((bits >> np.uint64(8)) & np.uint64(0xFFFFFF)) / (1 << 24)
        slope, curvature = np.int64(np.floor(g[i] / g_unit + up_g)), np.int64(h[i] / h_unit + up_h)
        packed[i] = (slope << SLOPE_BITS) + (curvature << CURVATURE_BITS) + 1
    return Slopes(g, h, packed, g_unit, h_unit)


@compiled
def unpack(total: int, slopes: Slopes) -> tuple[float, float, int]:
    """Return the sums of slopes and curvatures, and the count, of a packed sum."""
    curvature = (total >> CURVATURE_BITS) & CURVATURE_MASK
    return (total >> SLOPE_BITS) * slopes.g_unit, curvature * slopes.h_unit, total & COUNT_MASK


@compiled
def gain_of(left: int, right: int, slopes: Slopes, min_rows: int, alpha: float) -> float:
    """Return G_l^2 / (H_l + alpha) + G_r^2 / (H_r + alpha) of two packed sums; -1 if a child is too small."""
    g, h, count = unpack(left, slopes)
    other_g, other_h, other_count = unpack(right, slopes)
    if count < min_rows or other_count < min_rows or h < MIN_CURVATURE or other_h < MIN_CURVATURE:
        return -1.0
    return g * g / (h + alpha) + other_g * other_g / (other_h + alpha)


@compiled
def larger_goes(mask: int, bits: int, left: int, right: int) -> int:
    """Return a mask that sends ``bits``, of values without rows in the node, to the child with more rows."""
    return mask | bits if (right & COUNT_MASK) > (left & COUNT_MASK) else mask & ~bits


@compiled
def split_number(sums: Array, last: int, total: int, slopes: Slopes, growth: Growth) -> tuple[float, int]:
    """Return the best gain and mask of a split of a column of numbers, with bins up to ``last``."""
    best, mask, one = 0.0, np.int64(0), np.int64(1)
    missing = sums[MISSING]
    for way in range(2 if missing != 0 else 1):
        left = missing if way == 0 else np.int64(0)
        for b in range(1, last):
            if sums[b] == 0:
                continue
            left += sums[b]
            gain = gain_of(left, total - left, slopes, growth.min_rows, growth.alpha)
            if gain > TIE * best:
                best, mask = gain, ~((one << np.int64(b + 1)) - one)
                if missing == 0:
                    mask = larger_goes(mask, one, left, total - left)
                elif way == 1:
                    mask |= one
    return best, mask


@compiled
def split_category(sums: Array, total: int, slopes: Slopes, growth: Growth) -> tuple[float, int]:
    """Return the best gain and mask of a split of a category, whose bins are sorted by g / (h + smoothing)."""
    order, keys, count = np.empty(N_BINS, np.int64), np.empty(N_BINS), 0
    for b in range(N_BINS):
        if sums[b] != 0:
            g, h, _ = unpack(sums[b], slopes)
            key, at = g / (h + CATEGORY_SMOOTHING), count
            while at > 0 and keys[at - 1] > key:
                keys[at], order[at] = keys[at - 1], order[at - 1]
                at -= 1
            keys[at], order[at] = key, b
            count += 1
    alpha = max(growth.alpha, CATEGORY_ALPHA) if count > FEW_CATEGORIES else growth.alpha
    best, mask, left = 0.0, np.int64(0), np.int64(0)
    present = bits_of(order, 0, count)
    for i in range(count - 1):
        left += sums[order[i]]
        gain = gain_of(left, total - left, slopes, growth.min_rows, alpha)
        if gain > TIE * best:
            best, mask = gain, larger_goes(bits_of(order, i + 1, count), ~present, left, total - left)
    return best, mask


@compiled
def bits_of(order: Array, start: int, end: int) -> int:
    """Return an integer with these bits."""
    bits = np.int64(0)
    for i in range(start, end):
        bits |= np.int64(1) << order[i]
    return bits


@compiled
def best_split(
    histogram: Array, columns: Array, category: Array, last: Array, slopes: Slopes, growth: Growth
) -> tuple[float, int, int]:  # fmt: skip
    """Return gain, column and mask of the best split of a node, given its ``histogram`` (columns, bins)."""
    total = histogram[0].sum()
    G, H, count = unpack(total, slopes)
    found, column, chosen = 0.0, -1, np.int64(0)
    if count < 2 * growth.min_rows:
        return found, column, chosen
    before = G * G / (H + growth.alpha)
    for q in range(len(columns)):
        c = columns[q]
        if category[c]:
            gain, mask = split_category(histogram[q], total, slopes, growth)
        else:
            gain, mask = split_number(histogram[q], last[c], total, slopes, growth)
        if gain > before * TIE and gain - before > TIE * found:
            found, column, chosen = gain - before, c, mask
    return found, column, chosen


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
def grow(
    bins: Array, columns: Array, category: Array, last: Array, positive: Array, weight: Array, scores: Array,
    growth: Growth, tree: TreeArrays,
) -> None:  # fmt: skip
    """Grow one tree on binned rows, ``bins`` (d, n), best split first, and add its values to their ``scores``.

    ``columns``: those that splits may use; ``category`` and ``last``: kind and last bin of every column. ``tree`` has
    one axis, the nodes.
    """
    n, size = len(positive), growth.max_leaves
    slopes = slopes_of(scores, positive, weight, growth.seed)
    rows, other = np.arange(n).astype(np.int32), np.empty(n, np.int32)
    histograms = np.empty((size, len(columns), N_BINS), np.int64)
    start, end, slot = np.zeros(2 * size, np.int64), np.zeros(2 * size, np.int64), np.zeros(2 * size, np.int64)
    gains, masks, best = np.zeros(2 * size), np.zeros(2 * size, np.int64), np.zeros(2 * size, np.int64)
    end[0] = n
    add_rows(bins, columns, rows, slopes.packed, histograms[0])
    gains[0], best[0], masks[0] = best_split(histograms[0], columns, category, last, slopes, growth)
    nodes, leaves = 1, 1
    while leaves < size:
        at = 0
        for k in range(1, nodes):
            if gains[k] > TIE * gains[at]:
                at = k
        if gains[at] <= 0.0:
            break
        middle = part(rows, other, start[at], end[at], bins[best[at]], masks[at])
        tree.columns[at], tree.masks[at], tree.children[at], gains[at] = best[at], masks[at], nodes, 0.0
        left, right = nodes, nodes + 1
        start[left], end[left], start[right], end[right] = start[at], middle, middle, end[at]
        small, large = (left, right) if 2 * middle <= start[at] + end[at] else (right, left)
        slot[small], slot[large] = leaves, slot[at]
        nodes, leaves = nodes + 2, leaves + 1
        if leaves < size:
            add_rows(bins, columns, rows[start[small] : end[small]], slopes.packed, histograms[slot[small]])
            histograms[slot[large]] -= histograms[slot[small]]
            for k in (left, right):
                gains[k], best[k], masks[k] = best_split(histograms[slot[k]], columns, category, last, slopes, growth)
    for k in range(nodes):
        if tree.columns[k] < 0:
            tree.values[k] = leaf_value(rows[start[k] : end[k]], slopes, growth)
            for t in range(start[k], end[k]):
                scores[rows[t]] += tree.values[k]


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
    rows[left:end] = other[:right]
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
    at = 0
    while trees.columns[k, t, at] >= 0:
        bin_number = np.int64(row[trees.columns[k, t, at]])
        at = trees.children[k, t, at] + ((trees.masks[k, t, at] >> bin_number) & 1)
    return at


@compiled
def walk(bins: Array, trees: TreeArrays, grown: Array, out: Array) -> None:
    """Add the values of the leaves of binned rows (rows, d) to ``out`` (rows, targets)."""
    for start in range(0, bins.shape[0], 256):  # rows that stay in the cache
        end = min(bins.shape[0], start + 256)
        for k in range(out.shape[1]):
            for t in range(grown[k]):
                for i in range(start, end):
                    out[i, k] += trees.values[k, t, leaf_of(bins[i], trees, k, t)]


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
                score += trees.values[k, t, leaf_of(bins[i], trees, k, t)]
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
    leaves = np.empty(trees.values.shape[1], np.int64)
    for i in range(bins.shape[0]):
        for k in range(len(targets)):
            score = base[k]
            for t in range(grown[k]):
                leaves[t] = leaf_of(bins[i], trees, k, t)
                score += trees.values[k, t, leaves[t]]
            scores[i, k] = score
            slope = (logistic(score) - (1.0 if y[i] == targets[k] else 0.0)) * weight[i]
            for t in range(grown[k]):
                trees.squares[k, t, leaves[t]] += slope * slope
                trees.values[k, t, leaves[t]] -= eta * slope / np.sqrt(trees.squares[k, t, leaves[t]])
