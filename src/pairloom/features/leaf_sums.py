"""Sums of the weights of leaves: compiled loops for forests that learn and for those that only predict."""

from dataclasses import dataclass, field
from math import sqrt

import numpy as np

from pairloom.base.compiled import compiled
from pairloom.base.tree import OPTIONAL, Rounded, node
from pairloom.base.typing import Array
from pairloom.features.linear_sum import Member, Share
from pairloom.features.trees import MANY_ROWS, TOGETHER, Nodes, go_down, walk_leaves


@node
class FrozenForest(Member):
    """Nodes of trees as in :class:`~pairloom.features.trees.Nodes`; ``w`` (trees, nodes, classes): of each leaf.

    ``missing_yes``: None in files from before values could be missing.
    """

    columns: Array
    values: Rounded
    yes: Array
    w: Array
    missing_yes: Array | None = field(default=None, metadata=OPTIONAL)

    def add(self, X: Array, out: Array) -> None:
        if self.missing_yes is not None and has_gaps(X):
            sum_nodes_with_gaps(X, self.columns, self.values, self.yes, self.missing_yes, self.w, out)
        else:
            sum_nodes(X, self.columns, self.values, self.yes, self.w, out)


@dataclass(frozen=True)
class LeafSum:
    """The models of a forest whose cells are its leaves; ``w`` (classes, D, models), ``slopes`` (models, classes)."""

    nodes: Nodes
    w: Array
    slopes: Array

    def add(self, X: Array, out: Array) -> None:
        nodes, slopes = self.nodes, 1.0 / sqrt(len(self.nodes.yes)) * self.slopes
        if has_gaps(X):
            ways = (nodes.columns, nodes.values, nodes.yes, nodes.missing_yes, nodes.cells)
            sum_leaves_with_gaps(X, *ways, self.w, slopes, out)
        else:
            sum_leaves(X, nodes.columns, nodes.values, nodes.yes, nodes.cells, self.w, slopes, out)

    def frozen(self, share: Share) -> FrozenForest:
        """The weights of each leaf become one, and the room that no tree uses is left out."""
        nodes, slopes = self.nodes, self.slopes / sqrt(len(self.nodes.yes))
        n_trees, n_nodes = nodes.yes.shape
        inner = nodes.yes != np.arange(n_nodes)
        used = int(max(1, np.where(inner, nodes.yes + 2, 1).max()))
        cells = nodes.cells[:, 0, :used] + np.arange(n_trees)[:, None] * (self.w.shape[1] // n_trees)
        w = np.zeros((n_trees, used, len(self.w)))
        for k, own in enumerate(self.w):
            for r in range(own.shape[1]):
                w[:, :, k] += slopes[r, k] * own[cells, r]
        w[inner[:, :used]] = 0.0
        columns, values, yes, missing_yes = (
            array[:, :used].copy() for array in (nodes.columns, nodes.values, nodes.yes, nodes.missing_yes)
        )
        return FrozenForest(*share, columns, values, yes, w, missing_yes)


@compiled
def sum_leaves(
    X: Array, columns: Array, values: Array, yes: Array, cells: Array, w: Array, slopes: Array, out: Array
) -> None:  # fmt: skip
    """Add to ``out`` (rows, targets), for each tree, slopes' w of the row's leaf; ``w`` (targets, D, models).

    Many rows go tree by tree, so that a tree stays in the cache; few row by row, through several trees side by side.
    A row's sum has the order of the trees either way.
    """
    size = w.shape[1] // columns.shape[0]
    if X.shape[0] >= MANY_ROWS:
        leaves = np.empty((X.shape[0], 1, 1), np.int32)
        for t in range(columns.shape[0]):
            walk_leaves(X, columns[t : t + 1], values[t : t + 1], yes[t : t + 1], cells[t : t + 1], leaves)
            for i in range(X.shape[0]):
                add_leaf(w, t * size + leaves[i, 0, 0], slopes, out[i])
        return
    at = np.empty(TOGETHER, np.int32)
    for i in range(X.shape[0]):
        for start in range(0, columns.shape[0], TOGETHER):
            count = min(TOGETHER, columns.shape[0] - start)
            go_down(X[i], columns, values, yes, start, count, at)
            for q in range(count):
                add_leaf(w, (start + q) * size + cells[start + q, 0, at[q]], slopes, out[i])


@compiled
def sum_leaves_with_gaps(
    X: Array, columns: Array, values: Array, yes: Array, missing_yes: Array, cells: Array, w: Array, slopes: Array,
    out: Array,
) -> None:  # fmt: skip
    """``sum_leaves`` of rows whose values may be missing, with the same bits where they are not."""
    size = w.shape[1] // columns.shape[0]
    for t in range(columns.shape[0]):
        for i in range(X.shape[0]):
            at = leaf_of(X[i], columns[t], values[t], yes[t], missing_yes[t])
            add_leaf(w, t * size + cells[t, 0, at], slopes, out[i])


@compiled
def has_gaps(X: Array) -> bool:
    """Whether any value is missing."""
    for i in range(X.shape[0]):
        for c in range(X.shape[1]):
            if np.isnan(X[i, c]):
                return True
    return False


@compiled
def leaf_of(x: Array, columns: Array, values: Array, yes: Array, missing_yes: Array) -> int:
    """The leaf of a row in one tree."""
    at = 0
    while yes[at] != at:
        value = x[columns[at]]
        goes = missing_yes[at] if np.isnan(value) else value <= values[at]
        at = yes[at] if goes else yes[at] + 1
    return at


@compiled
def add_leaf(w: Array, cell: int, slopes: Array, out: Array) -> None:
    """Add to ``out`` (targets) slopes' w of a cell."""
    for k in range(w.shape[0]):
        total = 0.0
        for r in range(w.shape[2]):
            total += slopes[r, k] * w[k, cell, r]
        out[k] += total


@compiled
def sum_nodes(X: Array, columns: Array, values: Array, yes: Array, w: Array, out: Array) -> None:
    """``sum_leaves`` with the weights at the nodes."""
    at = np.empty(TOGETHER, np.int32)
    for i in range(X.shape[0]):
        x = X[i]
        for start in range(0, columns.shape[0], TOGETHER):
            count = min(TOGETHER, columns.shape[0] - start)
            go_down(x, columns, values, yes, start, count, at)
            for q in range(count):
                for k in range(w.shape[2]):
                    out[i, k] += w[start + q, at[q], k]


@compiled
def sum_nodes_with_gaps(
    X: Array, columns: Array, values: Array, yes: Array, missing_yes: Array, w: Array, out: Array
) -> None:  # fmt: skip
    """``sum_nodes`` of rows whose values may be missing."""
    for i in range(X.shape[0]):
        for t in range(columns.shape[0]):
            at = leaf_of(X[i], columns[t], values[t], yes[t], missing_yes[t])
            for k in range(w.shape[2]):
                out[i, k] += w[t, at, k]
