"""Boosted trees in an ONNX graph."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pairloom.base.graph import Value, joined
from pairloom.base.graph_trees import TreeTable
from pairloom.base.typing import Array
from pairloom.engines.bins import MISSING, N_BINS, N_CUTS, OTHER
from pairloom.models.boosting_state import Bins, Generation, Trees


def boosted_onnx(bins: Sequence[Bins], generations: Sequence[Generation], slopes: Array, x: Value) -> Value:
    """Return the mean score of generations times ``slopes`` (targets,), f8.

    A split of a number is at one of its cuts. A split of a category, which may send any bins to either side, becomes a
    split of a further column: whether the category goes to the second child, looked up by its bin.
    """
    share = slopes / max(1, len(generations))
    columns, width, total = [x], len(bins[0].category) if bins else 0, x.zeros(len(slopes))
    tables, weights, targets = [], [], []
    for one in generations:
        ways = _ways(one.trees, bins[one.bins].category)
        if ways.size:
            columns.append(_looked_up(bins[one.bins], ways, x))
        for k in range(len(slopes)):
            n = int(one.trees.grown[k])
            tables.append(_table(one.trees, k, n, bins[one.bins], ways, width))
            weights.append(share[k] * one.trees.values[k, :n])
            targets.append(np.full(n, k))
        width += len(ways) * ways.shape[1]
        total = total + share * one.base
    if not sum(map(len, weights)):
        return total
    return total + stacked(tables).sum_by_target(joined(columns), stack(weights), np.concatenate(targets), len(slopes))


def _ways(trees: Trees, category: Array) -> Array:
    """Return the different masks of splits of each category column, padded with zeros: (columns, masks)."""
    found = [np.unique(trees.masks[trees.columns == c]) for c in np.flatnonzero(category)]
    ways = np.zeros((len(found), max(map(len, found), default=0)), np.int64)
    for own, masks in zip(ways, found, strict=True):
        own[: len(masks)] = masks
    return ways


def _looked_up(bins: Bins, ways: Array, x: Value) -> Value:
    """Return for each mask of each category column whether its bit of the row's bin is set: (rows, masks)."""
    categories, (c, n) = np.flatnonzero(bins.category), ways.shape
    values = x.take(categories)
    hits = values.reshape(-1, c, 1).equals(bins.cuts[categories]).to("f4")
    kept = (hits * np.arange(1.0, N_CUTS + 1)).sum(keep=False)
    known = (kept > 0.0).where(kept, float(OTHER))
    places = values.isnan().where(x.graph.constant(float(MISSING), "f4"), known)
    table = (ways[:, None, :] >> np.arange(N_BINS)[:, None]) & 1
    starts = N_BINS * np.arange(c)
    found = (places.to("i8") + starts).rows_of(table.reshape(c * N_BINS, n).astype(np.uint8), "u1")
    return found.reshape(-1, c * n).to(x.dtype)


def _table(trees: Trees, k: int, n: int, bins: Bins, ways: Array, first: int) -> TreeTable:
    """Return the first n trees of target k; the column of mask q of category c is ``first`` + c len(masks) + q."""
    columns, masks, children = (array[k, :n] for array in (trees.columns, trees.masks, trees.children))
    inner = columns >= 0
    at = np.where(inner, columns, 0)
    # Bit 0 is that of missing values. The others are 0 for the bins up to a cut.
    cut = (((masks[..., None] >> np.arange(1, N_BINS)) & 1) == 0).sum(axis=-1)
    values = np.where(cut == N_CUTS, np.inf, bins.cuts[at, np.minimum(cut, N_CUTS) - 1])
    values = np.where(cut == 0, -np.inf, values)
    missing_yes = (masks & 1) == 0
    for c, column in enumerate(np.flatnonzero(bins.category)):
        own = inner & (columns == column)
        at[own] = first + c * ways.shape[1] + np.searchsorted(np.unique(masks_of(trees, column)), masks[own])
        values[own], missing_yes[own] = 0.5, False
    return TreeTable(at, values, np.where(inner, children, np.arange(columns.shape[1])), missing_yes)


def masks_of(trees: Trees, column: Any) -> Array:
    """Return the masks of the splits of a column, of all targets."""
    return np.asarray(trees.masks[trees.columns == column])


def stacked(tables: Sequence[TreeTable]) -> TreeTable:
    """Return all trees as one table."""
    names = ("columns", "values", "yes", "missing_yes")
    columns, values, yes, missing_yes = (stack([getattr(one, name) for one in tables]) for name in names)
    return TreeTable(columns, values, yes, missing_yes)


def stack(arrays: Sequence[Array]) -> Array:
    """Return arrays (trees, nodes) as one, with zeros for nodes that a tree does not have."""
    size = max(array.shape[1] for array in arrays)
    return np.concatenate([np.pad(array, ((0, 0), (0, size - array.shape[1]))) for array in arrays])
