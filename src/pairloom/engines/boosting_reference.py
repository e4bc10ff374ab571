"""The loops of gradient boosting, step by step in NumPy: the specification of ``engines/boosting.py``.

A node's sums are added up from its rows for every split, without histograms.
"""

from math import exp, log1p

import numpy as np

from pairloom.base.typing import Array
from pairloom.engines.bins import MAX_CATEGORIES, MISSING, N_BINS, N_CUTS, OTHER
from pairloom.engines.boosting import BLOCK_TREES, SQUARES, VALUES, TreeArrays
from pairloom.engines.splits import (
    CATEGORY_ALPHA,
    CATEGORY_SMOOTHING,
    FEW_CATEGORIES,
    LEVELS,
    MIN_CURVATURE,
    TIE,
    Growth,
    Slopes,
)


def fit_cuts(values: Array, category: bool, min_count: int, n_bins: int, cuts: Array) -> int:
    """Fill the cuts of a column."""
    distinct, counts = np.unique(values, return_counts=True)
    cuts[:] = np.inf
    if category:
        order = np.argsort(-counts, kind="stable")[:MAX_CATEGORIES]
        made = np.sort(distinct[[i for i in order if counts[i] >= min_count]])
    else:
        ends = range(len(distinct) - 1) if len(distinct) <= n_bins else equal_counts(counts, n_bins)
        half = distinct.dtype.type(0.5)
        made = np.array([half * distinct[i] + half * distinct[i + 1] for i in ends])
    cuts[: len(made)] = made
    return len(made)


def equal_counts(counts: Array, n_bins: int) -> list[int]:
    """Return the last value of each bin but the last; a frequent value begins a bin if the one before is half full."""
    ends: list[int] = []
    start = 0
    for i in range(len(counts) - 1):
        size = counts[start:].sum() / (n_bins - len(ends))
        filled = counts[start : i + 1].sum()
        if filled >= size or (counts[i + 1] >= 2 * size and 2 * filled >= size):
            ends.append(i)
            start = i + 1
        if len(ends) == n_bins - 1:
            break
    return ends


def bin_rows(X: Array, category: Array, cuts: Array, out: Array) -> None:
    """Return the bins of rows in ``out``."""
    for c in range(X.shape[1]):
        below = np.searchsorted(cuts[c], X[:, c])
        known = cuts[c][np.minimum(below, N_CUTS - 1)] == X[:, c]
        bins = np.where(category[c] & ~known, OTHER, below + 1)
        out[:, c] = np.where(np.isnan(X[:, c]), MISSING, bins)


def bin_columns(X: Array, n: int, start: int, end: int, category: Array, cuts: Array, out: Array) -> None:
    """Fill ``out`` with the bins of columns."""
    made = np.zeros((n, X.shape[1]), np.uint8)
    bin_rows(X[:n], category, cuts, made)
    out[start:end, :n] = made[:, start:end].T


def logistic(margin: float) -> float:
    """Return 1 / (1 + exp(-margin))."""
    return 1.0 / (1.0 + exp(-margin)) if margin > -30.0 else exp(margin)


def slopes_of(scores: Array, y: Array, weight: Array, growth: Growth) -> Slopes:
    """Return slopes and curvatures; the rounded ones are not packed, but two integers (n, 2)."""
    p = np.array([logistic(score) for score in scores.tolist()])
    weight = weight / growth.unit
    g, h = (p - (y == growth.target)) * weight, p * (1.0 - p) * weight
    units = max(1e-300, np.abs(g).max()) / LEVELS, max(1e-300, h.max()) / LEVELS
    rounded, bits, mask = np.empty((len(p), 2), np.int64), growth.seed * 2654435761 + 88172645463325252, (1 << 64) - 1
    for i in range(len(p)):
        bits = (bits ^ (bits << 13)) & mask
        bits ^= bits >> 7
        bits = (bits ^ (bits << 17)) & mask
        up = (bits >> 40) / (1 << 24), ((bits >> 8) & 0xFFFFFF) / (1 << 24)
        rounded[i] = np.floor(g[i] / units[0] + up[0]), np.floor(h[i] / units[1] + up[1])
    return Slopes(g, h, rounded, *units)


class Node:
    """A node: its rows, and its best split."""

    def __init__(self, rows: Array, bins: Array, columns: Array, category: Array, slopes: Slopes, growth: Growth):
        self.rows, self.gain, self.column, self.mask = rows, 0.0, -1, 0
        self.slopes, self.growth = slopes, growth
        if len(rows) < 2 * growth.min_rows:
            return
        before = self.gain_of(rows, rows[:0], growth.alpha, whole=True)
        for c in columns.tolist():
            gain, mask = self.best(bins[c, rows], bool(category[c]))
            if gain > before * TIE and gain - before > TIE * self.gain:
                self.gain, self.column, self.mask = gain - before, c, mask

    def best(self, values: Array, category: bool) -> tuple[float, int]:
        """Return the gain and the mask of the best split of a column."""
        best, mask = 0.0, 0
        for inside, bits, free, alpha in self.splits(values, category):
            gain = self.gain_of(self.rows[~inside], self.rows[inside], alpha)
            if gain > TIE * best:
                best, mask = gain, bits | free if 2 * inside.sum() > len(inside) else bits & ~free
        return best, mask

    def splits(self, values: Array, category: bool) -> list[tuple[Array, int, int, float]]:
        """Return for each split the rows and the bins of the second child, and the bins that follow the larger one."""
        found, everything, alpha = np.unique(values), (1 << N_BINS) - 1, self.growth.alpha
        if category:
            order = sorted(found.tolist(), key=lambda b: self.key(self.rows[values == b]))
            if len(order) > FEW_CATEGORIES:
                alpha = max(alpha, CATEGORY_ALPHA)
            free = everything & ~sum(1 << b for b in order)
            cuts = range(1, len(order))
            return [(np.isin(values, order[i:]), sum(1 << b for b in order[i:]), free, alpha) for i in cuts]
        missing = values == MISSING
        made = []
        for second in (False, True) if missing.any() else (False,):
            for b in found[found != MISSING].tolist():
                bits = everything & ~((1 << (b + 1)) - 1) | int(second)
                made.append(((values > b) | (second & missing), bits, int(not missing.any()), alpha))
        return made

    def sums(self, rows: Array) -> tuple[float, float]:
        g, h = self.slopes.packed[rows].sum(axis=0).tolist()
        return g * self.slopes.g_unit, h * self.slopes.h_unit

    def key(self, rows: Array) -> float:
        g, h = self.sums(rows)
        return g / (h + CATEGORY_SMOOTHING)

    def gain_of(self, left: Array, right: Array, alpha: float, *, whole: bool = False) -> float:
        total = 0.0
        for rows in (left,) if whole else (left, right):
            g, h = self.sums(rows)
            if not whole and (len(rows) < self.growth.min_rows or h < MIN_CURVATURE):
                return -1.0
            total += g * g / (h + alpha)
        return total


def signed(mask: int) -> int:
    """Return 64 bits as a signed integer."""
    return mask - (1 << 64) if mask >> 63 else mask


def grow(
    bins: Array, columns: Array, category: Array, y: Array, weight: Array, scores: Array,
    settings: tuple[int, int, float, float, int, float, float], tree: TreeArrays,
) -> None:  # fmt: skip
    """Grow one tree, best split first."""
    growth, (tree_columns, masks, children, values, _) = Growth(*settings), tree
    slopes = slopes_of(scores, y, weight, growth)
    rest = (bins, columns, category, slopes, growth)
    nodes = [Node(np.arange(len(y)), *rest)]
    for _ in range(1, growth.max_leaves):
        at = 0
        for k, one in enumerate(nodes):
            if one.gain > TIE * nodes[at].gain:
                at = k
        one = nodes[at]
        if one.gain <= 0.0:
            break
        inside = (one.mask >> bins[one.column, one.rows].astype(object)) & 1 == 1
        tree_columns[at], masks[at], children[at] = one.column, signed(one.mask), len(nodes)
        one.gain = 0.0
        nodes += [Node(one.rows[~inside], *rest), Node(one.rows[inside], *rest)]
    for k, one in enumerate(nodes):
        if tree_columns[k] < 0:
            values[k] = -growth.rate * slopes.g[one.rows].sum() / (slopes.h[one.rows].sum() + growth.alpha)
            scores[one.rows] += values[k]


def leaf_of(row: Array, trees: TreeArrays, k: int, t: int) -> int:
    """Return the leaf of a binned row in tree t of target k."""
    columns, masks, children = (array[k, t].tolist() for array in trees[:3])
    at = 0
    while columns[at] >= 0:
        at = children[at] + ((masks[at] >> int(row[columns[at]])) & 1)
    return at


def walk(bins: Array, trees: TreeArrays, grown: Array, out: Array) -> None:
    """Add the values of the leaves of rows to ``out``."""
    for i, row in enumerate(bins):
        for k in range(out.shape[1]):
            for t in range(grown[k]):
                out[i, k] += trees[VALUES][k, t, leaf_of(row, trees, k, t)]


def arrive(
    bins: Array, y: Array, factors: Array, targets: Array, base: Array, trees: TreeArrays, grown: Array, scores: Array,
    drops: Array, mass: Array,
) -> None:  # fmt: skip
    """Score rows, and add by how much each block of trees reduced their loss."""
    for i, row in enumerate(bins):
        for k, target in enumerate(targets):
            sign = 1.0 if y[i] == target else -1.0
            path = [base[k]]
            for t in range(grown[k]):
                path.append(path[-1] + trees[VALUES][k, t, leaf_of(row, trees, k, t)])
            scores[i, k] = path[-1]
            for block in range(grown[k] // BLOCK_TREES):
                start, end = (sign * path[BLOCK_TREES * b] for b in (block, block + 1))
                drops[k, block] += factors[i, k] * (log1p(exp(-start)) - log1p(exp(-end)))
                mass[k, block] += factors[i, k]


def learn_leaves(
    bins: Array, y: Array, weight: Array, targets: Array, base: Array, trees: TreeArrays, grown: Array, eta: float,
    scores: Array,
) -> None:  # fmt: skip
    """Score rows one by one, and take a step in their leaves after each."""
    for i, row in enumerate(bins):
        for k, target in enumerate(targets):
            leaves = [(k, t, leaf_of(row, trees, k, t)) for t in range(grown[k])]
            scores[i, k] = base[k] + sum(trees[VALUES][leaf] for leaf in leaves)
            slope = (logistic(scores[i, k]) - float(y[i] == target)) * weight[i]
            for leaf in leaves:
                trees[SQUARES][leaf] += slope * slope
                trees[VALUES][leaf] -= eta * slope / np.sqrt(trees[SQUARES][leaf])
