"""Scores of forests: compiled sums over the weights of leaves, for learning and for prediction only."""

from dataclasses import dataclass, field
from math import sqrt
from typing import Annotated

import numpy as np

from pairloom.base.compiled import compiled
from pairloom.base.graph import Value
from pairloom.base.graph_trees import TreeTable
from pairloom.base.tree import OPTIONAL, node
from pairloom.base.typing import Array
from pairloom.features.capabilities import FrozenShare, FrozenSum
from pairloom.features.contributions import Contrast
from pairloom.features.leaf_contributions import contribute_leaves
from pairloom.features.trees import INTERLEAVED, Nodes, check_order, go_down, walk_leaves

TREE_BY_TREE_ROWS = 64
"""Minimum number of rows for which a loop over trees is faster."""


@node
class FrozenForest(FrozenSum):
    """Trees as in :class:`~pairloom.features.trees.Nodes`, with weights ``w`` (trees, nodes, classes) at the leaves.

    ``missing_yes`` is None in files written before missing values were supported.
    """

    columns: Annotated[Array, "i4 _T _N 0:d"]
    values: Annotated[Array, "R _T _N"]
    yes: Annotated[Array, "i4 _T _N 0:_N"]
    w: Annotated[Array, "f8 _T _N v"]
    missing_yes: Annotated[Array, "b1 _T _N"] | None = field(default=None, metadata=OPTIONAL)

    def check(self) -> None:
        check_order(self.values, self.yes, self.missing_yes)

    def add(self, X: Array, out: Array) -> None:
        if self.missing_yes is not None and has_gaps(X):
            sum_nodes_with_gaps(X, self.columns, self.values, self.yes, self.missing_yes, self.w, out)
        else:
            sum_nodes(X, self.columns, self.values, self.yes, self.w, out)

    @property
    def explainable(self) -> "FrozenForest":
        return self

    def contribute(self, contrast: Contrast, out: Array) -> None:
        n_trees, n_nodes, n_targets = self.w.shape
        missing_yes = np.zeros(self.yes.shape, bool) if self.missing_yes is None else self.missing_yes
        cells = np.broadcast_to(np.arange(n_nodes, dtype=np.int32), (n_trees, 1, n_nodes))
        w = self.w.reshape(n_trees * n_nodes, n_targets).T[:, :, None]
        nodes = (self.columns, self.values, self.yes, missing_yes, cells)
        contribute_leaves(*contrast, *nodes, w, np.ones((1, n_targets)), out)

    def to_onnx(self, x: Value) -> Value:
        missing_yes = np.zeros(self.yes.shape, bool) if self.missing_yes is None else self.missing_yes
        return TreeTable(self.columns, self.values, self.yes, missing_yes).sum(x, self.w)


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

    @property
    def explainable(self) -> "LeafSum":
        return self

    def contribute(self, contrast: Contrast, out: Array) -> None:
        nodes, slopes = self.nodes, 1.0 / sqrt(len(self.nodes.yes)) * self.slopes
        ways = (nodes.columns, nodes.values, nodes.yes, nodes.missing_yes, nodes.cells)
        contribute_leaves(*contrast, *ways, self.w, slopes, out)

    def frozen(self, share: FrozenShare) -> FrozenForest:
        """Return the trees with one weight per leaf and class, and without unused nodes."""
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
    """Add slopes' w of the row's leaf in each tree to ``out`` (rows, targets); ``w`` (targets, D, models).

    With many rows, the outer loop is over trees, so that a tree stays in the cache. With few rows, it is over rows, and
    several trees are traversed at once. In both cases the terms of a row are added in the order of the trees.
    """
    size = w.shape[1] // columns.shape[0]
    if X.shape[0] >= TREE_BY_TREE_ROWS:
        leaves = np.empty((X.shape[0], 1, 1), np.int32)
        for t in range(columns.shape[0]):
            walk_leaves(X, columns[t : t + 1], values[t : t + 1], yes[t : t + 1], cells[t : t + 1], leaves)
            for i in range(X.shape[0]):
                add_leaf(w, t * size + leaves[i, 0, 0], slopes, out[i])
        return
    at = np.empty(INTERLEAVED, np.int32)
    for i in range(X.shape[0]):
        for start in range(0, columns.shape[0], INTERLEAVED):
            count = min(INTERLEAVED, columns.shape[0] - start)
            go_down(X[i], columns, values, yes, start, count, at)
            for q in range(count):
                add_leaf(w, (start + q) * size + cells[start + q, 0, at[q]], slopes, out[i])


@compiled
def sum_leaves_with_gaps(
    X: Array, columns: Array, values: Array, yes: Array, missing_yes: Array, cells: Array, w: Array, slopes: Array,
    out: Array,
) -> None:  # fmt: skip
    """Do the same as ``sum_leaves`` for rows with missing values; other rows have bitwise identical results."""
    size = w.shape[1] // columns.shape[0]
    for t in range(columns.shape[0]):
        for i in range(X.shape[0]):
            at = leaf_of(X[i], columns[t], values[t], yes[t], missing_yes[t])
            add_leaf(w, t * size + cells[t, 0, at], slopes, out[i])


@compiled
def has_gaps(X: Array) -> bool:
    """Return whether any value is missing."""
    for i in range(X.shape[0]):
        for c in range(X.shape[1]):
            if np.isnan(X[i, c]):
                return True
    return False


@compiled
def leaf_of(x: Array, columns: Array, values: Array, yes: Array, missing_yes: Array) -> int:
    """Return the leaf of a row in one tree."""
    at = 0
    while yes[at] != at:
        value = x[columns[at]]
        goes = missing_yes[at] if np.isnan(value) else value <= values[at]
        at = yes[at] if goes else yes[at] + 1
    return at


@compiled
def add_leaf(w: Array, cell: int, slopes: Array, out: Array) -> None:
    """Add slopes' w of a cell to ``out`` (targets)."""
    for k in range(w.shape[0]):
        total = 0.0
        for r in range(w.shape[2]):
            total += slopes[r, k] * w[k, cell, r]
        out[k] += total


@compiled
def sum_nodes(X: Array, columns: Array, values: Array, yes: Array, w: Array, out: Array) -> None:
    """Add the weight of the row's leaf in each tree to ``out`` (rows, targets); ``w`` (trees, nodes, targets)."""
    at = np.empty(INTERLEAVED, np.int32)
    for i in range(X.shape[0]):
        x = X[i]
        for start in range(0, columns.shape[0], INTERLEAVED):
            count = min(INTERLEAVED, columns.shape[0] - start)
            go_down(x, columns, values, yes, start, count, at)
            for q in range(count):
                for k in range(w.shape[2]):
                    out[i, k] += w[start + q, at[q], k]


@compiled
def sum_nodes_with_gaps(
    X: Array, columns: Array, values: Array, yes: Array, missing_yes: Array, w: Array, out: Array
) -> None:  # fmt: skip
    """Do the same as ``sum_nodes`` for rows with missing values."""
    for i in range(X.shape[0]):
        for t in range(columns.shape[0]):
            at = leaf_of(X[i], columns[t], values[t], yes[t], missing_yes[t])
            for k in range(w.shape[2]):
                out[i, k] += w[t, at, k]
