"""Trees as node arrays: grown by scikit-learn, walked by compiled loops."""

from typing import Any

import numpy as np

from pairloom.base.compiled import compiled
from pairloom.base.csr import is_sparse
from pairloom.base.tree import Rounded, node
from pairloom.base.typing import Array

TOGETHER = 16
"""Rows that go down a tree side by side: while one waits for a node, the others go on."""


@node
class Nodes:
    """The nodes of T trees, N at most in each; a tree begins at node 0.

    At a node a row goes to ``yes`` if its value in ``columns`` is at most ``values``, or is missing and
    ``missing_yes``; otherwise to ``no``. From a leaf it goes to the leaf. These are featureids, values, truenodeids,
    falsenodeids and missing_value_tracks_true of ONNX's TreeEnsemble. ``cells`` (T, K, N): the number of a node among
    those of its tree that are coordinates of level k.
    """

    columns: Array
    values: Rounded
    yes: Array
    no: Array
    missing_yes: Array
    cells: Array

    @classmethod
    def stumps(cls, n_trees: int, n_levels: int, max_leaves: int) -> "Nodes":
        """Trees of one leaf."""
        shape = (n_trees, 2 * max_leaves - 1)
        here = np.tile(np.arange(shape[1], dtype=np.int32), (n_trees, 1))
        return cls(
            np.zeros(shape, np.int32), np.zeros(shape), here, here.copy(), np.zeros(shape, bool),
            np.zeros((n_trees, n_levels, shape[1]), np.int32),
        )  # fmt: skip

    def plant(self, k: int, tree: Any, levels: Array) -> None:
        """Tree k becomes ``tree``, one of scikit-learn's."""
        n = tree.node_count
        leaf = tree.children_left < 0
        here = np.arange(n)
        self.columns[k, :n] = np.where(leaf, 0, tree.feature)
        # float32, as the rows that it was grown from: the same in a model of any dtype.
        self.values[k, :n] = np.where(leaf, 0.0, tree.threshold).astype(np.float32)
        self.yes[k, :n] = np.where(leaf, here, tree.children_left)
        self.no[k, :n] = np.where(leaf, here, tree.children_right)
        self.missing_yes[k, :n] = tree.missing_go_to_left
        number_nodes(self.yes[k, :n], self.no[k, :n], levels, self.cells[k])

    def leaves(self, k: int, X: Any) -> Array:
        """The leaf of each row in tree k."""
        own = slice(k, k + 1)
        columns, values, yes, no = (a[own] for a in (self.columns, self.values, self.yes, self.no))
        tree = Nodes(columns, values, yes, no, self.missing_yes[own], np.ascontiguousarray(self.cells[own, -1:]))
        return tree.walk(X, np.zeros(0, np.int64))[:, 0, 0]

    def walk(self, X: Any, levels: Array) -> Array:
        """The cell of each row at each level of the trees: (rows, trees, levels)."""
        out = np.empty((X.shape[0], *self.cells.shape[:2]), np.int32)
        nodes = (self.columns, self.values, self.yes, self.no, self.missing_yes, self.cells)
        if is_sparse(X):
            rows = X.tocsr()
            walk_csr(rows.data, rows.indices, rows.indptr, X.shape[1], *nodes, levels, out)
        elif len(levels):
            walk_levels(X, *nodes, levels, out)
        else:
            walk_leaves(X, *nodes, out)
        return out


def grow_tree(rows: Any, labels: Array | None, weight: Array | None, least: int, rng: np.random.Generator) -> Any:
    """An extremely randomised tree with at least ``least`` rows in a leaf; without labels, one that chance grows.

    With labels the best of sqrt(d) random splits of random columns is taken: by classes if these are whole numbers,
    else by squared error. Without, one random split of one random column, as in scikit-learn's RandomTreesEmbedding.
    """
    from sklearn.tree import ExtraTreeClassifier, ExtraTreeRegressor

    seed = int(rng.integers(2**31))
    rows = rows.astype(np.float32, copy=False)
    if labels is None:
        noise, weight = rng.random(rows.shape[0]), None
        return ExtraTreeRegressor(max_features=1, min_samples_leaf=least, random_state=seed).fit(rows, noise).tree_
    kind = ExtraTreeClassifier if labels.dtype.kind == "i" else ExtraTreeRegressor
    return kind(max_features="sqrt", min_samples_leaf=least, random_state=seed).fit(rows, labels, weight).tree_


@compiled
def number_nodes(yes: Array, no: Array, levels: Array, cells: Array) -> None:
    """Number the coordinates of a tree: at each of ``levels`` its nodes, and the leaves above; then all leaves.

    Parents come before their children.
    """
    depth = np.zeros(yes.shape[0], np.int64)
    used = np.zeros(cells.shape[0], np.int64)
    last = cells.shape[0] - 1
    for at in range(yes.shape[0]):
        leaf = yes[at] == at
        if not leaf:
            depth[yes[at]] = depth[no[at]] = depth[at] + 1
        for k in range(last + 1):
            if (k == last and leaf) or (k < last and (depth[at] == levels[k] or (leaf and depth[at] < levels[k]))):
                cells[k, at] = used[k]
                used[k] += 1


@compiled
def walk_leaves(
    X: Array, columns: Array, values: Array, yes: Array, no: Array, missing_yes: Array, cells: Array, out: Array
) -> None:  # fmt: skip
    """The leaf of each row, tree by tree over the rows, so that a tree stays in the cache."""
    at = np.empty(TOGETHER, np.int32)
    for t in range(columns.shape[0]):
        for start in range(0, X.shape[0], TOGETHER):
            count = min(TOGETHER, X.shape[0] - start)
            at[:] = 0
            moved = True
            while moved:
                moved = False
                for q in range(count):
                    here = at[q]
                    value = X[start + q, columns[t, here]]
                    goes = (value <= values[t, here]) | (np.isnan(value) & missing_yes[t, here])
                    there = yes[t, here] if goes else no[t, here]
                    moved |= there != here
                    at[q] = there
            for q in range(count):
                out[start + q, t, 0] = cells[t, 0, at[q]]


@compiled
def descend(
    x: Array, columns: Array, values: Array, yes: Array, no: Array, missing_yes: Array, cells: Array,
    levels: Array, out: Array,
) -> None:  # fmt: skip
    """The cells of one row in one tree."""
    at, depth, k, last = 0, 0, 0, cells.shape[0] - 1
    while True:
        while k < last and levels[k] == depth:
            out[k] = cells[k, at]
            k += 1
        if yes[at] == at:
            break
        value = x[columns[at]]
        goes = missing_yes[at] if np.isnan(value) else value <= values[at]
        at = yes[at] if goes else no[at]
        depth += 1
    for j in range(k, last + 1):
        out[j] = cells[j, at]


@compiled
def walk_levels(
    X: Array, columns: Array, values: Array, yes: Array, no: Array, missing_yes: Array, cells: Array,
    levels: Array, out: Array,
) -> None:  # fmt: skip
    """``walk_leaves`` with the nodes at some levels too."""
    for t in range(columns.shape[0]):
        for i in range(X.shape[0]):
            descend(X[i], columns[t], values[t], yes[t], no[t], missing_yes[t], cells[t], levels, out[i, t])


@compiled
def walk_csr(
    data: Array, indices: Array, indptr: Array, d: int, columns: Array, values: Array, yes: Array, no: Array,
    missing_yes: Array, cells: Array, levels: Array, out: Array,
) -> None:  # fmt: skip
    """``walk_levels`` for CSR rows."""
    x = np.zeros(d, data.dtype)
    for i in range(out.shape[0]):
        for e in range(indptr[i], indptr[i + 1]):
            x[indices[e]] = data[e]
        for t in range(columns.shape[0]):
            descend(x, columns[t], values[t], yes[t], no[t], missing_yes[t], cells[t], levels, out[i, t])
        for e in range(indptr[i], indptr[i + 1]):
            x[indices[e]] = 0.0
