"""Trees in a graph: the operator TreeEnsemble (opset 5), or TreeEnsembleRegressor (opset 3) for older runtimes."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pairloom.base.graph import ML, NoGraph, Value
from pairloom.base.typing import Array

SUM, LEQ = 1, 0
"""Codes of TreeEnsemble: add the leaves up; a row goes to the true node if its value is at most the split."""


@dataclass(frozen=True)
class TreeTable:
    """Nodes of trees, arrays (trees, nodes). The root of a tree is node 0, and nodes come after their parents.

    At a node, a row goes to ``yes`` if its value in ``columns`` is at most ``values``, or is missing and
    ``missing_yes``; otherwise to the node after ``yes``. A leaf is its own ``yes``.
    """

    columns: Array
    values: Array
    yes: Array
    missing_yes: Array

    @cached_property
    def inner(self) -> Array:
        """Which nodes are splits."""
        return np.asarray(self.yes > np.arange(self.yes.shape[1]))

    @cached_property
    def leaf(self) -> Array:
        """Which nodes are leaves, without room that is not used."""
        here = np.arange(self.yes.shape[1])
        last = np.where(self.inner, self.yes + 1, 0).max(axis=1, keepdims=True)
        return np.asarray((self.yes == here) & (here <= last))

    def sum(self, x: Value, w: Array) -> Value:
        """Return the sum over trees of the weights of the row's leaves, ``w`` (trees, nodes, targets): f8."""
        n_trees, n_targets = len(w), w.shape[2]
        if n_targets == 1:
            return self.sum_by_target(x, w[:, :, 0], np.zeros(n_trees, np.int64), 1)
        # A leaf has one weight only. So each tree returns the number of the row's leaf, which is looked up.
        number = np.cumsum(self.leaf, axis=1) - 1
        counts = self.leaf.sum(axis=1)
        first = np.cumsum(counts) - counts
        leaves = self.sum_by_target(x, np.where(self.leaf, number, 0).astype(float), np.arange(n_trees), n_trees)
        entries: Value = leaves.to("i8") + first
        return entries.rows_of(w[self.leaf], "f8").sum(axis=1, keep=False)

    def sum_by_target(self, x: Value, weights: Array, targets: Array, n_targets: int) -> Value:
        """Return the sums of ``weights`` (trees, nodes) of the row's leaves, of the trees of each target: f8."""
        splits = self.inner[:, 0]
        constant = np.bincount(targets[~splits], weights[~splits, 0], minlength=n_targets)
        if not splits.any():
            return x.zeros(n_targets) + constant
        some = TreeTable(self.columns[splits], self.values[splits], self.yes[splits], self.missing_yes[splits])
        total = (some._v5 if x.graph.ml_opset == 5 else some._v3)(x, weights[splits], targets[splits], n_targets)
        return total + constant if constant.any() else total

    def _v5(self, x: Value, weights: Array, targets: Array, n_targets: int) -> Value:
        inner, leaf = self.inner, self.leaf
        numbers = np.where(inner, number(inner), number(leaf))
        tree = np.nonzero(inner)[0]
        ways: dict[str, Any] = {}
        for name, node in (("true", self.yes[inner]), ("false", self.yes[inner] + 1)):
            ways[f"nodes_{name}nodeids"] = numbers[tree, node].tolist()
            ways[f"nodes_{name}leafs"] = leaf[tree, node].astype(int).tolist()
        x.graph.has_trees = True
        return x.graph.add(
            "TreeEnsemble", [x.to("f8")], "f8", ML, n_targets=n_targets, aggregate_function=SUM, post_transform=0,
            tree_roots=number(inner)[:, 0].tolist(), nodes_featureids=self.columns[inner].tolist(),
            nodes_splits=self.values[inner].astype(float), nodes_modes=np.full(inner.sum(), LEQ, np.uint8),
            nodes_missing_value_tracks_true=self.missing_yes[inner].astype(int).tolist(), **ways,
            leaf_targetids=targets[np.nonzero(leaf)[0]].tolist(), leaf_weights=weights[leaf].astype(float),
        )  # fmt: skip

    def _v3(self, x: Value, weights: Array, targets: Array, n_targets: int) -> Value:
        if x.dtype != "f4":
            raise NoGraph(
                "the trees of a model with dtype='float64' need ml_opset=5: the older operator adds up in float32"
            )
        inner, leaf = self.inner, self.leaf
        used = inner | leaf
        tree, node = np.nonzero(used)
        at_leaf = leaf[used]
        children = {"true": self.yes, "false": self.yes + 1}
        ways = {f"nodes_{way}nodeids": np.where(at_leaf, 0, to[used]).tolist() for way, to in children.items()}
        total = x.graph.add(
            "TreeEnsembleRegressor", [x], "f4", ML, n_targets=n_targets, aggregate_function="SUM",
            nodes_treeids=tree.tolist(), nodes_nodeids=node.tolist(),
            nodes_modes=np.where(at_leaf, "LEAF", "BRANCH_LEQ").tolist(),
            nodes_featureids=np.where(at_leaf, 0, self.columns[used]).tolist(),
            nodes_values=np.where(at_leaf, 0.0, self.values[used]).tolist(), **ways,
            nodes_missing_value_tracks_true=np.where(at_leaf, 0, self.missing_yes[used]).tolist(),
            target_treeids=tree[at_leaf].tolist(), target_nodeids=node[at_leaf].tolist(),
            target_ids=targets[tree[at_leaf]].tolist(), target_weights=weights[leaf].tolist(),
        )  # fmt: skip
        return total.to("f8")


def number(chosen: Array) -> Array:
    """Number the chosen entries of an array, in order."""
    return np.asarray(np.cumsum(chosen).reshape(chosen.shape) - 1)
