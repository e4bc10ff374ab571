"""Trees as features: a forest is a random feature map."""

from dataclasses import dataclass
from math import log2, sqrt
from typing import Any, ClassVar, Literal

import numpy as np

from pairloom.base.batch import Batch
from pairloom.base.checks import check_choice, check_count, check_number
from pairloom.base.clock import NEVER, next_boost, next_renewal
from pairloom.base.csr import Rows, rows_of_cells
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.features.base import FeatureMap
from pairloom.features.growth import Replanted, Sample, corrections, residuals, votes
from pairloom.features.scaling import Scaler, fit_scaler
from pairloom.features.trees import Nodes, grow_tree

Growth = Literal["once", "renewed", "boosted"]

SMALLEST_LEAF = 2
"""Rows in a leaf, at least."""

BOOSTED_LEAF = 5
"""The same, in a tree that is grown on what is still wrong."""


@node
class ForestState:
    """Arrays of a fixed forest; ``grown`` (0-d): rows whose labels it was grown by."""

    scaler: Scaler
    nodes: Nodes
    grown: Array


@node
class GroveState(ForestState):
    """A forest that goes on growing: from the newest rows, from a seed (0-d); ``planted``: trees grown so far."""

    changes: ClassVar[bool] = True

    sample: Sample
    seed: Array
    planted: int = 0


@dataclass(frozen=True)
class Forest(FeatureMap):
    """phi(x) has a 1 / sqrt(m) for each of the m cells that x lies in: its leaf in each of M trees.

    <phi(x), phi(x')> is the share of trees that put x and x' into one leaf: the kernel of a random forest. It is wide
    where rows are few and narrow where they are many, does not see the scale of a column, and takes missing values:
    each split sends them to a side of their own. ||phi(x)|| = 1 exactly.

    With ``levels``, the node at each of these depths is a coordinate too (the root is at depth 0; where a path has
    ended, its leaf is repeated under an index of that level): coarse cells learn first, fine ones later. Then
    m = M (1 + number of levels).

    Trees are grown from the first rows of the stream. With ``labels`` each is an extremely randomised tree of
    scikit-learn's, grown by the first ``share`` of them; these rows are then not learned again, or their leaves would
    teach what they were chosen for. Without, splits are random, and all rows grow and teach. A leaf has at least 2
    rows, and more where ``max_leaves`` asks for it.

    Categories given as whole numbers are split by their order, like any other column.

    Parameters
    ----------
    n_trees : M.
    max_leaves : the most leaves of a tree.
    n_rows : rows from the start of the stream that trees are grown from.
    labels : whether labels choose the splits.
    levels : depths whose nodes are coordinates besides the leaves, in order.
    share : of ``n_rows``, those that grow trees and do not teach, if labels choose the splits.
    growth : "once", from the first rows; "renewed" or "boosted", from the newest, while the stream runs.
    scale : scaling of the columns where they are used as they are (``cluster_in="input"``); trees do not see it.

    Cost: M log2(max_leaves) comparisons per row, or so; D = m max_leaves coordinates of which m are not 0; for each of
    the M (2 max_leaves - 1) nodes 17 bytes and 4 for each level and the leaves (float64: 4 more); while they are grown,
    ``n_rows`` rows. Growing 100 trees from 2,048 rows takes a few tenths of a second.

    References
    ----------
    Geurts, Ernst and Wehenkel, Extremely Randomized Trees, Machine Learning 2006, where the kernel is in section 4.
    Breiman, Some Infinity Theory for Predictor Ensembles, 2000.

    >>> X = np.array([[0.0], [1.0], [5.0], [6.0]])
    >>> phi = Forest(100, labels=False)
    >>> Z = phi.dense(phi.fix(1, X, np.random.default_rng(0)), X)
    >>> (Z @ Z.T).round(2)[0]
    array([1., 1., 0., 0.])
    """

    sparse = True
    takes_nan = True

    n_trees: int = 100
    max_leaves: int = 1024
    n_rows: int = 4096
    labels: bool = True
    levels: tuple[int, ...] = ()
    share: float = 0.5
    growth: Growth = "once"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("n_trees", "max_leaves", "n_rows"):
            check_count(name, getattr(self, name))
        check_number("share", self.share, 0, 1, open_low=True)
        if not isinstance(self.labels, bool):
            raise ValueError(f"labels must be True or False, got {self.labels!r}")
        if list(self.levels) != sorted(set(self.levels)) or any(level < 1 for level in self.levels):
            raise ValueError(f"levels must be depths from 1 on, in order, such as (4, 8); got {self.levels!r}")
        check_choice("growth", self.growth, Growth)
        if self.grows and (self.levels or not self.labels):
            raise ValueError(f"growth={self.growth!r} is for labels=True and levels=(): new leaves start by labels")

    @property
    def grows(self) -> bool:
        return self.growth != "once"

    @property
    def needs_data(self) -> bool:
        return not self.grows or self.scale is not None

    @property
    def warm_rows(self) -> int:
        return 0 if self.grows else self.n_rows

    @property
    def n_cells(self) -> int:
        """m: coordinates of a row that are not 0."""
        return self.n_trees * (1 + len(self.levels))

    def n_outputs(self, n_features: int) -> int:
        return self.n_cells * self.max_leaves

    def flops(self, n_features: int) -> float:
        return 10.0 * self.n_trees * log2(2 * self.max_leaves)

    def numbers(self, n_features: int) -> int:
        return (5 + len(self.levels)) * self.n_trees * (2 * self.max_leaves - 1)

    def fix(self, n_features: int, rows: Any, rng: np.random.Generator) -> ForestState:
        if self.labels and rows is not None and not self.grows:
            raise ValueError("Forest(labels=True) is grown by labels, and here are none: use Forest(labels=False)")
        return self._fix(n_features, rows, None, None, rng)

    def fix_on(self, n_features: int, first: Batch | None, rng: np.random.Generator) -> ForestState:
        if first is None or not self.labels or self.grows:
            return self._fix(n_features, None if first is None else first.X, None, None, rng)
        n = int(self.share * len(first))
        return self._fix(n_features, first.X, first.y[:n], first.weight[:n], rng)

    def _fix(self, n_features: int, rows: Any, labels: Any, weight: Any, rng: np.random.Generator) -> ForestState:
        nodes = Nodes.stumps(self.n_trees, 1 + len(self.levels), self.max_leaves)
        # Where values are missing nobody uses columns as they are: they cannot be clustered by.
        known = self.scale is not None and rows is not None and not np.isnan(getattr(rows, "data", rows)).any()
        scaler = fit_scaler(self.scale if known else None, n_features, rows)
        if self.grows:
            sample, seed = Sample.empty(self.n_rows, n_features), np.asarray(rng.integers(2**63))
            return GroveState(scaler, nodes, np.asarray(0), sample, seed)
        grown = 0 if rows is None else len(labels) if labels is not None else rows.shape[0]
        if grown >= SMALLEST_LEAF:
            for k in range(self.n_trees):
                nodes.plant(k, grow_tree(rows[:grown], labels, weight, self._least(grown), rng), self._levels)
        return ForestState(scaler, nodes, np.asarray(0 if labels is None else grown))

    def _least(self, n: int) -> int:
        """Rows in a leaf, at least, so that a tree of n rows has no more than ``max_leaves``."""
        return max(SMALLEST_LEAF, -(-n // self.max_leaves))

    def first_weights(self, state: ForestState, first: Batch | None, targets: Array) -> Array | None:
        """What the labels of the growers say in each leaf, shared out among the trees."""
        if first is None or not state.grown:
            return None
        growers = first[: self.growers(state)]
        w = np.zeros((max(1, len(targets)), self.n_trees, self.n_cells // self.n_trees, self.max_leaves))
        for k in range(self.n_trees):
            w[:, k, -1] = votes(growers, state.nodes.leaves(k, growers.X), self.max_leaves, targets)
        return w.reshape(len(w), -1) / sqrt(self.n_cells)

    def next_change(self, state: GroveState, t: int) -> int:
        clock = {"once": lambda planted, n_trees: NEVER, "renewed": next_renewal, "boosted": next_boost}[self.growth]
        return max(t, clock(state.planted, self.n_trees)) if self.grows else NEVER

    def change(self, state: GroveState, t: int, targets: Array) -> Replanted:
        sample, k = state.sample.rows(), state.planted % self.n_trees
        rng = np.random.default_rng((int(state.seed), state.planted))
        cells = slice(k * self.max_leaves, (k + 1) * self.max_leaves)
        before = state.nodes.leaves(k, sample.X) if state.planted >= self.n_trees else None
        state.planted += 1
        if self.growth == "boosted":
            wrong, speed = residuals(sample, targets)
            limits = {"max_leaf_nodes": self.max_leaves, "max_features": None}
            tree = grow_tree(sample.X, wrong, sample.weight, BOOSTED_LEAF, rng, **limits)
            state.nodes.plant(k, tree, self._levels)
            leaf = state.nodes.leaves(k, sample.X)
            return Replanted(
                state, cells, sqrt(self.n_trees) * corrections(sample, wrong, speed, leaf, self.max_leaves)
            )
        labels = sample.y.astype(np.int64) if len(targets) else sample.y
        state.nodes.plant(k, grow_tree(sample.X, labels, sample.weight, self._least(sample.count), rng), self._levels)
        leaf = state.nodes.leaves(k, sample.X)
        starts = votes(sample, leaf, self.max_leaves, targets) / sqrt(self.n_trees)
        return Replanted(state, cells, starts, before, None if before is None else leaf)

    def remember(self, state: GroveState, batch: Batch, scores: Array) -> None:
        state.sample.add(batch, scores)

    def growers(self, state: ForestState) -> int:
        return int(state.grown)

    def apply(self, state: ForestState, X: Any) -> Any:
        from scipy.sparse import csr_array

        rows = self.rows(state, X)
        return csr_array((rows.data, rows.indices, rows.indptr), shape=(len(rows), self.n_outputs(X.shape[1])))

    def rows(self, state: ForestState, X: Any) -> Rows:
        return rows_of_cells(self.cells(state, X), state.nodes.values.dtype)

    def cells(self, state: ForestState, X: Any) -> Array:
        cells = state.nodes.walk(X, self._levels).reshape(X.shape[0], self.n_cells)
        cells += np.arange(0, self.n_cells * self.max_leaves, self.max_leaves, dtype=np.int32)
        return cells

    @property
    def _levels(self) -> Array:
        return np.array(self.levels, np.int64)
