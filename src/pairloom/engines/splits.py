"""Splits of nodes in gradient boosting: packed slopes of the loss, and the best split of a histogram.

The slope g and the curvature h of a row's loss are rounded at random to 10 bits and packed with a count of 1 into one
64-bit integer. A histogram of such integers is exact and does not depend on the order of the rows, and that of a node
minus that of one child is that of the other.
"""

from math import exp, log1p
from typing import Any, NamedTuple

import numpy as np

from pairloom.base.compiled import compiled
from pairloom.base.typing import Array
from pairloom.engines.bins import MISSING, N_BINS

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

MAX_MARGIN = 30.0
"""Beyond this, exp is not computed."""


class Growth(NamedTuple):
    """How a tree is grown: maximum number of leaves, minimum rows in a leaf, L2 penalty, learning rate, and seed.

    ``target``: the label of positive rows; ``unit``: the weight that counts as 1.
    """

    max_leaves: int
    min_rows: int
    alpha: float
    rate: float
    seed: int
    target: float
    unit: float


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
def slopes_of(scores: Array, y: Array, weight: Array, growth: Growth) -> Slopes:
    """Return slopes and curvatures of the logistic loss at ``scores``."""
    n = len(y)
    g, h, packed = np.empty(n), np.empty(n), np.empty(n, np.int64)
    largest_g = largest_h = 1e-300
    for i in range(n):
        p = logistic(scores[i])
        g[i] = (p - (1.0 if y[i] == growth.target else 0.0)) * weight[i] / growth.unit
        h[i] = p * (1.0 - p) * weight[i] / growth.unit
        largest_g, largest_h = max(largest_g, abs(g[i])), max(largest_h, h[i])
    g_unit, h_unit = largest_g / LEVELS, largest_h / LEVELS
    bits = np.uint64(growth.seed) * np.uint64(2654435761) + np.uint64(88172645463325252)
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
def gain_of(left: int, right: int, slopes: Slopes, min_rows: int, alpha: float) -> tuple[float, float]:
    """Return numerator and denominator of G_l^2 / (H_l + alpha) + G_r^2 / (H_r + alpha) of two packed sums.

    The numerator is -1 if a child is too small.
    """
    g, h, count = unpack(left, slopes)
    other_g, other_h, other_count = unpack(right, slopes)
    if count < min_rows or other_count < min_rows or h < MIN_CURVATURE or other_h < MIN_CURVATURE:
        return -1.0, 1.0
    size, other_size = h + alpha, other_h + alpha
    return g * g * other_size + other_g * other_g * size, size * other_size


@compiled
def larger_goes(mask: Any, bits: Any, left: int, right: int) -> Any:
    """Return a mask that sends ``bits``, of values without rows in the node, to the child with more rows."""
    return mask | bits if (right & COUNT_MASK) > (left & COUNT_MASK) else mask & ~bits


@compiled
def split_number(sums: Array, total: int, slopes: Slopes, growth: Growth) -> tuple[float, Any]:
    """Return the best gain and mask of a split of a column of numbers."""
    best, size, one = 0.0, 1.0, np.int64(1)
    mask: Any = np.int64(0)
    missing = sums[MISSING]
    for way in range(2 if missing != 0 else 1):
        left = missing if way == 0 else np.int64(0)
        for b in range(1, N_BINS):  # after the last bin with rows: missing values against all others
            if sums[b] == 0:
                continue
            left += sums[b]
            if left & COUNT_MASK < growth.min_rows:
                continue
            if (total - left) & COUNT_MASK < growth.min_rows:
                break
            gain, own = gain_of(left, total - left, slopes, growth.min_rows, growth.alpha)
            if gain * size > TIE * best * own:  # compares quotients: divisions would take most of the time
                best, size, mask = gain, own, (np.int64(-1) << np.int64(b)) << one
                if missing == 0:
                    mask = larger_goes(mask, one, left, total - left)
                elif way == 1:
                    mask |= one
    return best / size, mask


@compiled
def split_category(sums: Array, total: int, slopes: Slopes, growth: Growth) -> tuple[float, Any]:
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
    best, size, left = 0.0, 1.0, np.int64(0)
    mask: Any = np.int64(0)
    present = bits_of(order, 0, count)
    for i in range(count - 1):
        left += sums[order[i]]
        gain, own = gain_of(left, total - left, slopes, growth.min_rows, alpha)
        if gain * size > TIE * best * own:
            best, size = gain, own
            mask = larger_goes(bits_of(order, i + 1, count), ~present, left, total - left)
    return best / size, mask


@compiled
def bits_of(order: Array, start: int, end: int) -> Any:
    """Return an integer with these bits."""
    bits = np.int64(0)
    for i in range(start, end):
        bits |= np.int64(1) << order[i]
    return bits


@compiled
def best_split(
    histogram: Array, columns: Array, category: Array, slopes: Slopes, growth: Growth
) -> tuple[float, int, Any]:  # fmt: skip
    """Return gain, column and mask of the best split of a node, given its ``histogram`` (columns, bins)."""
    total = histogram[0].sum()
    G, H, count = unpack(total, slopes)
    found, column = 0.0, -1
    chosen: Any = np.int64(0)
    if count < 2 * growth.min_rows:
        return found, column, chosen
    before = G * G / (H + growth.alpha)
    for q in range(len(columns)):
        c = columns[q]
        if category[c]:
            gain, mask = split_category(histogram[q], total, slopes, growth)
        else:
            gain, mask = split_number(histogram[q], total, slopes, growth)
        if gain > before * TIE and gain - before > TIE * found:
            found, column, chosen = gain - before, c, mask
    return found, column, chosen
