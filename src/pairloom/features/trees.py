"""Trees as node arrays, and compiled loops that traverse them."""

from typing import Annotated, Any, NamedTuple

import numpy as np

from pairloom.base.compiled import compiled
from pairloom.base.csr import is_sparse
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.features.tree_growth import grow

INTERLEAVED = 16
"""Number of rows, or trees of one row, traversed at once: memory is slower than arithmetic."""

STEPS_PER_CHECK = 4
"""Number of steps between checks of whether all of them have reached a leaf."""


class Tree(NamedTuple):
    """Column, value, first child and side of missing values of each node; see :class:`Nodes`."""

    columns: Array
    values: Array
    yes: Array
    missing_yes: Array

    @property
    def n_leaves(self) -> int:
        """The number of leaves."""
        return (len(self.yes) + 1) // 2


@node
class Nodes:
    """The nodes of T trees, with room for as many as the largest tree has had; the root of a tree is node 0.

    At a node, a row goes to ``yes`` if its value in ``columns`` is at most ``values``, or is missing and
    ``missing_yes``; otherwise to the node after ``yes``. A leaf has an infinite value and is its own ``yes``. These
    arrays are featureids, values, truenodeids and missing_value_tracks_true of ONNX's TreeEnsemble; falsenodeids are
    ``yes`` + 1. Room that is not used is 0 everywhere: files leave out zeros.
    ``cells`` (T, K, N): the number of a node among those of its tree that are coordinates of level k.
    """

    columns: Annotated[Array, "i4 T _N 0:d"]
    values: Annotated[Array, "R T _N"]
    yes: Annotated[Array, "i4 T _N 0:_N"]
    missing_yes: Annotated[Array, "b1 T _N"]
    cells: Annotated[Array, "i4 T K _N 0:L"]

    def check(self) -> None:
        check_order(self.values, self.yes, self.missing_yes)

    @classmethod
    def stumps(cls, n_trees: int, n_levels: int, n_nodes: int = 1) -> "Nodes":
        """Return trees of one leaf, with room for ``n_nodes``."""
        shape = (n_trees, n_nodes)
        values, missing_yes = np.zeros(shape), np.zeros(shape, bool)
        values[:, 0], missing_yes[:, 0] = np.inf, True
        yes, cells = np.zeros(shape, np.int32), np.zeros((n_trees, n_levels, n_nodes), np.int32)
        return cls(np.zeros(shape, np.int32), values, yes, missing_yes, cells)

    def with_room(self, n_nodes: int, most: int) -> "Nodes":
        """Return trees with room for ``n_nodes`` in each: these, or a copy with an eighth more room, up to ``most``."""
        n_trees, n_levels, now = self.cells.shape
        if n_nodes <= now:
            return self
        wide = Nodes.stumps(n_trees, n_levels, max(n_nodes, min(most, now + now // 8)))
        for name in ("columns", "values", "yes", "missing_yes", "cells"):
            getattr(wide, name)[..., :now] = getattr(self, name)
        wide.values = wide.values.astype(self.values.dtype, copy=False)
        return wide

    def plant(self, k: int, tree: Tree, levels: Array) -> None:
        """Replace tree k by ``tree``, for which there must be room."""
        n = len(tree.yes)
        leaf = tree.yes == np.arange(n)
        self.columns[k, :n] = tree.columns
        self.values[k, :n] = np.where(leaf, np.float32(np.inf), tree.values)
        self.yes[k, :n] = tree.yes
        self.missing_yes[k, :n] = leaf | tree.missing_yes
        number_nodes(self.yes[k, :n], levels, self.cells[k])

    def leaves(self, k: int, X: Array) -> Array:
        """Return the leaf in tree k of each row."""
        return walk_one(X, self.columns[k], self.values[k], self.yes[k], self.missing_yes[k], self.cells[k, -1])

    def walk(self, X: Any, levels: Array) -> Array:
        """Return the cell of each row at each level of the trees: (rows, trees, levels)."""
        out = np.empty((X.shape[0], *self.cells.shape[:2]), np.int32)
        nodes = (self.columns, self.values, self.yes, self.missing_yes, self.cells)
        if is_sparse(X):
            rows = X.tocsr()
            walk_csr(rows.data, rows.indices, rows.indptr, X.shape[1], *nodes, levels, out)
        elif len(levels) or np.isnan(X).any():
            walk_levels(X, *nodes, levels, out)
        elif len(X) < INTERLEAVED:
            walk_few(X, self.columns, self.values, self.yes, self.cells, out)
        else:
            walk_leaves(X, self.columns, self.values, self.yes, self.cells, out)
        return out


def check_order(values: Array, yes: Array, missing_yes: Array | None) -> None:
    """Raise ValueError unless every node comes after its parent, so that every path ends in a leaf."""
    here = np.arange(yes.shape[1])
    leaf = (yes == here) & (values == np.inf) & (True if missing_yes is None else missing_yes)
    inner = (yes > here) & (yes + 1 < len(here)) & np.isfinite(values)
    unused = (yes == 0) & (values == 0) & (here > 0)
    first = np.where(inner, yes, 0)
    reached = np.take_along_axis(unused, first, axis=1) | np.take_along_axis(unused, first + inner, axis=1)
    if not (leaf | inner | unused).all() or reached.any():
        raise ValueError("must have every node after its parent")


def grow_tree(
    X: Any, targets: Array, weight: Array, least: int, rng: np.random.Generator, *, random: bool = False
) -> tuple[Tree, Array | None]:
    """Grow an extremely randomised tree with at least ``least`` rows per leaf; return it, and the leaf of each row.

    ``X`` (n, d), or CSR rows, for which scikit-learn grows the tree, and leaves are None. With ``targets`` (n, k), use
    the best of sqrt(d) random splits, where d is the number of columns that vary; if ``random``, use the first split,
    as scikit-learn's RandomTreesEmbedding does.
    """
    weights = weight / weight.mean()
    if is_sparse(X):
        from sklearn.tree import ExtraTreeRegressor

        tries = 1 if random else max(1, int(np.sqrt(X.shape[1])))
        grower = ExtraTreeRegressor(max_features=tries, min_samples_leaf=least, random_state=int(rng.integers(2**31)))
        rows = type(X)((single(X.data), X.indices, X.indptr), shape=X.shape)
        tree = grower.fit(rows, targets, weights).tree_
        values = rounded_down(tree.threshold)
        return Tree(*renumbered(tree.feature, values, tree.children_left, tree.children_right)), None
    tries = 1 if random else 0
    grown = grow(single(X), targets.astype(np.float32), weights.astype(np.float32), least, tries, rng)
    return Tree(*grown.tree), grown.leaf


def single(values: Array) -> Array:
    """Return values as float32, clipped to its range."""
    largest = np.finfo(np.float32).max
    return values if values.dtype == np.float32 else np.clip(values, -largest, largest).astype(np.float32)


def rounded_down(values: Array) -> Array:
    """Return thresholds as float32, rounded down: float32 rows stay on the same side of each split."""
    near = values.astype(np.float32)
    return np.where(near > values, np.nextafter(near, np.float32(-np.inf)), near)


def targets_of(y: Array) -> Array:
    """Return the targets (n, k) of a tree: an indicator of each class (one for two), or standardised real labels."""
    if y.dtype.kind == "f":
        spread = y.std()
        return np.asarray((y - y.mean()) / (spread if spread > 0 else 1.0))[:, None]
    classes = np.flatnonzero(np.bincount(y))
    return np.asarray(y[:, None] == (classes[1:] if len(classes) == 2 else classes))


@compiled
def renumbered(
    feature: Array, threshold: Array, left: Array, right: Array
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """Renumber the nodes of a scikit-learn tree, so that the second child of a node follows the first."""
    n = left.shape[0]
    old, first = np.zeros(n, np.int64), np.arange(n).astype(np.int32)
    columns, values = np.zeros(n, np.int32), np.zeros(n, np.float32)
    count = 1
    for at in range(n):
        here = old[at]
        if left[here] >= 0:
            columns[at], values[at], first[at] = feature[here], threshold[here], count
            old[count], old[count + 1] = left[here], right[here]
            count += 2
    return columns, values, first, np.zeros(n, np.bool_)


@compiled
def number_nodes(yes: Array, levels: Array, cells: Array) -> None:
    """Number the coordinates of a tree: for each of ``levels``, its nodes and the leaves above it; then all leaves.

    Parents must come before their children.
    """
    depth = np.zeros(yes.shape[0], np.int64)
    used = np.zeros(cells.shape[0], np.int64)
    last = cells.shape[0] - 1
    for at in range(yes.shape[0]):
        leaf = yes[at] == at
        if not leaf:
            depth[yes[at]] = depth[yes[at] + 1] = depth[at] + 1
        for k in range(last + 1):
            if (k == last and leaf) or (k < last and (depth[at] == levels[k] or (leaf and depth[at] < levels[k]))):
                cells[k, at] = used[k]
                used[k] += 1


@compiled
def walk_leaves(X: Array, columns: Array, values: Array, yes: Array, cells: Array, out: Array) -> None:
    """Fill ``out`` with the leaves of rows without missing values; tree by tree, so that a tree stays in the cache."""
    at = np.empty(INTERLEAVED, np.int32)
    for t in range(columns.shape[0]):
        column, value, first = columns[t], values[t], yes[t]
        for start in range(0, X.shape[0], INTERLEAVED):
            count = min(INTERLEAVED, X.shape[0] - start)
            at[:] = 0
            moving = True
            while moving:
                for _ in range(STEPS_PER_CHECK):
                    for q in range(count):
                        here = at[q]
                        at[q] = first[here] + (X[start + q, column[here]] > value[here])
                moving = False
                for q in range(count):
                    if first[at[q]] != at[q]:
                        moving = True
            for q in range(count):
                out[start + q, t, 0] = cells[t, 0, at[q]]


@compiled
def walk_few(X: Array, columns: Array, values: Array, yes: Array, cells: Array, out: Array) -> None:
    """Do the same as ``walk_leaves``, row by row, with several trees at once."""
    at, n_trees = np.empty(INTERLEAVED, np.int64), columns.shape[0]
    for i in range(X.shape[0]):
        for start in range(0, n_trees, INTERLEAVED):
            count = min(INTERLEAVED, n_trees - start)
            go_down(X[i], columns, values, yes, start, count, at)
            for q in range(count):
                out[i, start + q, 0] = cells[start + q, 0, at[q]]


@compiled
def go_down(x: Array, columns: Array, values: Array, yes: Array, start: int, count: int, at: Array) -> None:
    """Fill ``at`` with the leaf of a row without missing values in each of ``count`` trees from ``start`` on."""
    at[:] = 0
    moving = True
    while moving:
        for _ in range(STEPS_PER_CHECK):
            for q in range(count):
                here = at[q]
                at[q] = yes[start + q, here] + (x[columns[start + q, here]] > values[start + q, here])
        moving = False
        for q in range(count):
            if yes[start + q, at[q]] != at[q]:
                moving = True


@compiled
def descend(
    x: Array, columns: Array, values: Array, yes: Array, missing_yes: Array, cells: Array,
    levels: Array, out: Array,
) -> None:  # fmt: skip
    """Fill ``out`` with the cells of one row in one tree."""
    at, depth, k, last = 0, 0, 0, cells.shape[0] - 1
    while True:
        while k < last and levels[k] == depth:
            out[k] = cells[k, at]
            k += 1
        if yes[at] == at:
            break
        value = x[columns[at]]
        goes = missing_yes[at] if np.isnan(value) else value <= values[at]
        at = yes[at] if goes else yes[at] + 1
        depth += 1
    for j in range(k, last + 1):
        out[j] = cells[j, at]


@compiled
def walk_levels(
    X: Array, columns: Array, values: Array, yes: Array, missing_yes: Array, cells: Array,
    levels: Array, out: Array,
) -> None:  # fmt: skip
    """Fill ``out`` with the cells of rows at all levels; values may be missing."""
    for t in range(columns.shape[0]):
        for i in range(X.shape[0]):
            descend(X[i], columns[t], values[t], yes[t], missing_yes[t], cells[t], levels, out[i, t])


@compiled
def walk_one(X: Array, columns: Array, values: Array, yes: Array, missing_yes: Array, cells: Array) -> Array:
    """Return the leaves of rows in one tree; values may be missing."""
    out, at = np.empty(X.shape[0], np.int32), np.empty(INTERLEAVED, np.uint32)
    for start in range(0, X.shape[0], INTERLEAVED):
        count = min(INTERLEAVED, X.shape[0] - start)
        at[:] = 0
        moving = True
        while moving:
            moving = False
            for q in range(count):
                here = at[q]
                x = X[start + q, columns[here]]
                goes = (x <= values[here]) | (missing_yes[here] & (x != x))
                at[q] = yes[here] + (not goes)
                moving |= at[q] != here
        for q in range(count):
            out[start + q] = cells[at[q]]
    return out


@compiled
def walk_csr(
    data: Array, indices: Array, indptr: Array, d: int, columns: Array, values: Array, yes: Array,
    missing_yes: Array, cells: Array, levels: Array, out: Array,
) -> None:  # fmt: skip
    """Do the same as ``walk_levels`` for CSR rows."""
    x = np.zeros(d, data.dtype)
    for i in range(out.shape[0]):
        for e in range(indptr[i], indptr[i + 1]):
            x[indices[e]] = data[e]
        for t in range(columns.shape[0]):
            descend(x, columns[t], values[t], yes[t], missing_yes[t], cells[t], levels, out[i, t])
        for e in range(indptr[i], indptr[i + 1]):
            x[indices[e]] = 0.0
