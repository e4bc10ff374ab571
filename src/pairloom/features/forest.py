"""Trees as features: a forest is a random feature map."""

from bisect import bisect_right
from dataclasses import dataclass, field, replace
from math import log, log2, sqrt
from typing import Any, ClassVar, Literal

import numpy as np

from pairloom.base.batch import Batch
from pairloom.base.checks import check_choice, check_count
from pairloom.base.clock import NEVER, next_boost, next_deepening, next_renewal, renewals
from pairloom.base.csr import Rows, is_sparse, rows_of_cells
from pairloom.base.tree import OPTIONAL, node
from pairloom.base.typing import Array
from pairloom.features.base import LOOKUP, Change, FeatureMap
from pairloom.features.deepening import Deepened, deepen
from pairloom.features.growth import Replanted, Sample, corrections, residuals, votes
from pairloom.features.leaf_sums import LeafSum
from pairloom.features.scaling import Scaler, fit_scaler
from pairloom.features.trees import Nodes, grow_tree, single, targets_of

Growth = Literal["once", "renewed", "boosted"]

SMALLEST_LEAF = 2
"""Rows in a leaf, at least."""

CHANGED = 0.5
"""Who keeps less than this of what was before has seen a change, not age."""

BOOSTED_LEAF = 5
"""The same, in a tree that is grown on what is still wrong."""

TREE, ROW = 3e7, 1e4
"""What it costs to grow a tree, and for each of its rows and the root of the number of columns besides, in flops."""


@node
class ForestState:
    """Arrays of a fixed forest; ``grown`` (0-d): rows whose labels it was grown by."""

    scaler: Scaler
    nodes: Nodes
    grown: Array


@node
class Past:
    """Of a forest that has forgotten: rows that no longer count, trees grown so far, and those from before a change."""

    since: int
    turn: int
    old: int


@node
class GroveState(ForestState):
    """A forest that goes on growing: from the newest rows, from a seed (0-d); ``planted``: trees grown so far."""

    changes: ClassVar[bool] = True

    sample: Sample
    seed: Array
    planted: int = 0
    past: Past | None = field(default=None, metadata=OPTIONAL)

    @property
    def since(self) -> int:
        """Rows that no longer count."""
        return 0 if self.past is None else self.past.since

    @property
    def turn(self) -> int:
        """Trees grown so far: ``planted`` says what a forest of this age has grown."""
        return self.planted if self.past is None else self.past.turn


@dataclass(frozen=True)
class Forest(FeatureMap):
    """phi(x) has a 1 / sqrt(m) for each of the m cells that x lies in: its leaf in each of M trees.

    <phi(x), phi(x')> is the share of trees that put x and x' into one leaf: the kernel of a random forest. It is wide
    where rows are few and narrow where they are many, does not see the scale of a column, and takes missing values:
    each split sends them to a side of their own. ||phi(x)|| = 1 exactly. Best with steps per coordinate
    (:class:`~pairloom.AdaGrad`): cells are visited at very different rates.

    With ``labels`` a tree is extremely randomised: the best of sqrt(d) random splits is taken. Labels that grew a tree
    are not learned again by its leaves, which would be shown what they were chosen for; they are used once more, as
    votes: the weight of a new leaf starts at the log-odds of its rows. Without labels, splits are random, weights start
    at 0, and all rows teach. Categories given as whole numbers are split by order.

    ``growth`` says when trees are grown:

    - "once": from the first ``n_rows`` rows, which do not teach if labels choose the splits.
    - "renewed": tree by tree, from the newest ``n_rows`` rows, at rows 64 to 16,384: each tree once between rows n and
      4 n, or n and ``pace`` n. The votes of a new tree are multiplied so that its scores fit those of the tree that it
      replaces, and its leaves take over what that one knew of the size of gradients. No call is long, all rows teach,
      and what changes in the stream up to then is forgotten. With ``deep_rows``, after that the leaves of one tree
      every 512 rows are split further by the newest so many rows. The parts of a leaf start at its weight: nothing that
      was learned is lost.
    - "boosted": a tree is added every 64 rows, and every 512 from row 8,192 on, on what is still wrong with the
      scores that the newest rows came with; its leaves start a tenth of the way to where they would be right.

    A memory must keep raw rows for the last two, as for ``Growing``, and ``levels`` are for the first.

    Parameters
    ----------
    n_trees : M.
    max_leaves : the most leaves of a tree; a leaf has at least 2 rows, and more where this asks for it.
    n_rows : rows that a tree is grown from, at most.
    labels : whether labels choose the splits.
    levels : depths whose nodes are coordinates too, in order, such as (4, 8): coarse cells learn first, fine ones
        later. Where a path has ended, its leaf stands for the node. Then m = M (1 + number of levels).
    growth : "once", "renewed" or "boosted".
    pace : how many times as long the stream gets while each tree is renewed once, if growth is "renewed". Renewal ends
        at the first of the rows 64 pace, 64 pace^2, ... that is 16,384 or later. 8 takes two thirds of the time of 4.
    deep_rows : rows by which leaves are split further in a long stream, if growth is "renewed"; 0: leaves stay.
        ``max_leaves`` should leave room for it: half as many as these rows, or as many.
    scale : scaling of the columns where they are used as they are (``cluster_in="input"``); trees do not see it.

    Cost: M log2(max_leaves) comparisons per row, or so; D = m max_leaves coordinates of which m are not 0. For each of
    the M (2 max_leaves - 1) nodes 13 bytes, and 4 for each level and the leaves (float64: 4 more); ``n_rows`` rows, or
    ``deep_rows``, for good if trees are grown while the stream runs. A tree of 4,096 rows of 80 columns takes some
    5 ms, splitting its leaves by 8,192 rows 15.

    References
    ----------
    Geurts, Ernst and Wehenkel, Extremely Randomized Trees, Machine Learning 2006: section 4 has the kernel.
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
    max_leaves: int = 2048
    n_rows: int = 4096
    labels: bool = True
    levels: tuple[int, ...] = ()
    growth: Growth = "once"
    pace: int = 4
    deep_rows: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("n_trees", "max_leaves", "n_rows"):
            check_count(name, getattr(self, name))
        if not isinstance(self.labels, bool):
            raise ValueError(f"labels must be True or False, got {self.labels!r}")
        depths = isinstance(self.levels, tuple) and all(type(level) is int and level >= 1 for level in self.levels)
        if not depths or list(self.levels) != sorted(set(self.levels)):
            raise ValueError(f"levels must be depths from 1 on, in order, such as (4, 8); got {self.levels!r}")
        check_choice("growth", self.growth, Growth)
        if self.grows and (self.levels or not self.labels):
            raise ValueError(f"growth={self.growth!r} is for labels=True and levels=(): new leaves start by labels")
        check_count("pace", self.pace)
        if self.pace < 2:
            raise ValueError(f"pace must be 2 or more, such as 4; got {self.pace}")
        if self.deep_rows != 0:
            check_count("deep_rows", self.deep_rows)
        if self.deep_rows and self.growth != "renewed":
            raise ValueError(f"deep_rows={self.deep_rows} is for growth='renewed', not {self.growth!r}")

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

    def upkeep(self, n_features: int) -> float:
        """The way down the trees, and growing them where that costs most: at row 1,000, or row 2,048 if boosted."""
        lookups = LOOKUP * log2(2 * self.max_leaves) * self.n_cells
        if not self.grows:
            return lookups
        if self.growth == "boosted":  # a tree of 2,048 rows every 64 rows
            return lookups + (TREE + 2048 * ROW * sqrt(n_features)) / 64
        return lookups + self.n_trees * (TREE / 1000 + ROW * sqrt(n_features)) / log(self.pace)

    def halved(self) -> "Forest | None":
        return replace(self, n_trees=self.n_trees // 2) if self.n_trees >= 50 else None

    def numbers(self, n_features: int) -> int:
        kept = max(self.n_rows, self.deep_rows) * n_features if self.grows else 0
        return (4 + len(self.levels)) * self.n_trees * (2 * self.max_leaves - 1) + kept

    def fix(self, n_features: int, rows: Any, rng: np.random.Generator) -> ForestState:
        if self.labels and rows is not None and not self.grows:
            raise ValueError("Forest(labels=True) is grown by labels, and here are none: use Forest(labels=False)")
        return self._fix(n_features, rows, None, None, rng)

    def fix_on(self, n_features: int, first: Batch | None, rng: np.random.Generator) -> ForestState:
        if first is None or not self.labels or self.grows:
            return self._fix(n_features, None if first is None else first.X, None, None, rng)
        return self._fix(n_features, first.X, first.y, first.weight, rng)

    def _fix(self, n_features: int, rows: Any, labels: Any, weight: Any, rng: np.random.Generator) -> ForestState:
        nodes = Nodes.stumps(self.n_trees, 1 + len(self.levels), self.max_leaves)
        # Where values are missing nobody uses columns as they are: they cannot be clustered by.
        known = self.scale is not None and rows is not None and not np.isnan(getattr(rows, "data", rows)).any()
        scaler = fit_scaler(self.scale if known else None, n_features, rows)
        if self.grows:
            sample, seed = Sample.empty(max(self.n_rows, self.deep_rows), n_features), np.asarray(rng.integers(2**63))
            return GroveState(scaler, nodes, np.asarray(0), sample, seed)
        n = 0 if rows is None else min(self.n_rows, rows.shape[0])
        if n >= SMALLEST_LEAF:
            columns = rows[:n] if is_sparse(rows) else np.ascontiguousarray(single(rows[:n].T))
            chance, w = labels is None, np.ones(n) if weight is None else weight[:n]
            for k in range(self.n_trees):
                targets = rng.random((n, 1)) if chance else targets_of(labels[:n])
                nodes.plant(k, grow_tree(columns, targets, w, self._least(n), rng, by_chance=chance), self._levels)
        return ForestState(scaler, nodes, np.asarray(0 if labels is None else n))

    def _least(self, n: int, least: int = SMALLEST_LEAF) -> int:
        """Rows in a leaf, at least, so that a tree of n rows has no more than ``max_leaves``."""
        return max(least, -(-n // self.max_leaves))

    def first_weights(
        self, state: ForestState, first: Batch | None, targets: Array, exact: bool = False
    ) -> Array | None:
        """What the labels of the growers say in each leaf, shared out among the trees."""
        if first is None or not state.grown:
            return None
        growers = first[: self.growers(state)]
        w = np.zeros((max(1, len(targets)), self.n_trees, self.n_cells // self.n_trees, self.max_leaves))
        cells = state.nodes.walk(growers.X, self._levels)
        for k in range(self.n_trees):
            w[:, k, -1] = votes(growers, cells[:, k, -1], self.max_leaves, targets, exact)
        return w.reshape(len(w), -1) / sqrt(self.n_cells)

    def next_change(self, state: GroveState, t: int) -> int:
        if not self.grows:
            return NEVER
        planted, since = state.planted, state.since
        while since + self.next_planting(planted) < t:  # that is done before row t
            planted += 1
        row = self.next_planting(planted)
        return row if row == NEVER else since + row

    @property
    def forgets(self) -> bool:
        return self.grows

    @property
    def _grown_up(self) -> int:
        """The row by which a forest that goes on growing has all its trees, or has renewed them for the last time."""
        if self.growth == "boosted":
            return next_boost(self.n_trees - 1, self.n_trees)
        return int(64 * self.pace ** renewals(self.pace))

    def forget(self, state: GroveState, t: int, keep: float) -> None:
        """Be as far with growing as a younger forest; which tree comes next stays as it was."""
        if not self.grows or (self.growth == "boosted" and keep >= CHANGED):
            return
        past = state.past or Past(0, state.planted, 0)
        # No further than to where growing ends: who goes on forgetting goes on growing.
        age = int(keep * min(t - past.since, self._grown_up))
        past.since = t - age
        if keep < CHANGED:
            past.old = self.n_trees
        state.past = past
        state.planted = bisect_right(range(state.planted), age, key=self.next_planting)

    def next_planting(self, planted: int) -> int:
        """The row after which a forest that goes on growing, and has planted so many trees, plants the next."""
        if self.growth == "boosted":
            return next_boost(planted, self.n_trees)
        return (next_deepening if self.deep_rows else next_renewal)(planted, self.n_trees, self.pace)

    def change(self, state: GroveState, t: int, targets: Array, exact: bool = False) -> Change:
        if self.deep_rows and state.planted >= renewals(self.pace) * self.n_trees:
            return self._deepen(state, targets)
        sample, k = state.sample.rows(min(self.n_rows, t - state.since)), state.turn % self.n_trees
        rng = np.random.default_rng((int(state.seed), state.turn))
        cells = slice(k * self.max_leaves, (k + 1) * self.max_leaves)
        known = state.turn >= self.n_trees and (state.past is None or not state.past.old)
        before = state.nodes.leaves(k, sample.columns, sample.count) if known else None
        self._count(state)
        if self.growth == "boosted":
            wrong, speed = residuals(sample, targets, exact)
            tree = grow_tree(sample.columns, wrong, sample.weight, self._least(sample.count, BOOSTED_LEAF), rng)
            state.nodes.plant(k, tree, self._levels)
            leaf = state.nodes.leaves(k, sample.columns, sample.count)
            starts = sqrt(self.n_trees) * corrections(sample, wrong, speed, leaf, self.max_leaves)
            return Replanted(state, cells, starts)
        tree = grow_tree(sample.columns, wanted_of(sample, targets), sample.weight, self._least(sample.count), rng)
        state.nodes.plant(k, tree, self._levels)
        leaf = state.nodes.leaves(k, sample.columns, sample.count)
        starts = votes(sample, leaf, self.max_leaves, targets, exact) / sqrt(self.n_trees)
        return Replanted(state, cells, starts, before, None if before is None else leaf)

    def _deepen(self, state: GroveState, targets: Array) -> Deepened:
        """Split the leaves of the tree whose turn it is."""
        sample, k = state.sample.rows(self.deep_rows), state.turn % self.n_trees
        rng = np.random.default_rng((int(state.seed), state.turn))
        self._count(state)
        tree, of, share = deepen(state.nodes, k, sample, wanted_of(sample, targets), SMALLEST_LEAF, rng)
        state.nodes.plant(k, tree, self._levels)
        return Deepened(state, slice(k * self.max_leaves, (k + 1) * self.max_leaves), of, share)

    def _count(self, state: GroveState) -> None:
        """One more tree."""
        state.planted += 1
        if state.past is not None:
            state.past.turn += 1
            state.past.old = max(0, state.past.old - 1)

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

    def linear_sum(self, state: ForestState, w: Array, slopes: Array) -> LeafSum | None:
        """For cells that are leaves alone."""
        return None if self.levels else LeafSum(state.nodes, np.ascontiguousarray(w.transpose(1, 2, 0)), slopes)

    @property
    def _levels(self) -> Array:
        return np.array(self.levels, np.int64)


def wanted_of(sample: Sample, targets: Array) -> Array:
    """``targets_of`` the rows of a sample; there are ``targets`` where labels are classes."""
    return targets_of(sample.y.astype(np.int64) if len(targets) else sample.y)
