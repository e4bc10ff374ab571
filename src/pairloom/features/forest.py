"""Trees as features: a forest is a random feature map."""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from functools import partial
from math import log, log2, sqrt
from typing import Any, Literal

import numpy as np

from pairloom.base.batch import Batch
from pairloom.base.checks import check_choice, check_count
from pairloom.base.clock import NEVER, n_renewals, next_boost, next_deepening, next_renewal
from pairloom.base.csr import CSRRows, is_sparse
from pairloom.base.merging import GROWN, RowCounts, check_equal
from pairloom.base.spec import StateSpec
from pairloom.base.tree import copy
from pairloom.base.typing import Array
from pairloom.features.capabilities import Change, Cost, GrowingMap, LabelledMap, RacingMap, SparseMap
from pairloom.features.forest_growth import Deepened, Replanted, corrections, deepen, residuals, votes
from pairloom.features.forest_state import ForestState, GroveState, Past, Sample, pooled_sample
from pairloom.features.leaf_sums import LeafSum
from pairloom.features.scaling import fit_scaler
from pairloom.features.trees import Nodes, grow_tree, single, targets_of

Growth = Literal["once", "renewed", "boosted"]

MIN_LEAF_ROWS, MIN_BOOSTED_LEAF_ROWS = 2, 5
"""Minimum number of rows in a leaf; leaves of a boosted tree fit residuals."""

MIN_KEEP = 0.5
"""If forgetting keeps less than this share of the past, it is a response to drift, not gradual decay."""

NODE_FLOPS = 300.0
"""The cost of visiting a node, in flops of a matrix product."""

TREE_FLOPS, ROW_FLOPS = 1.2e7, 4e3
"""The cost of growing a tree: a constant and a term per row, times the square root of the number of columns."""


@dataclass(frozen=True)
class Forest(GrowingMap, SparseMap, LabelledMap, RacingMap):
    """phi(x) is 1 / sqrt(m) in each of the m cells that x lies in: its leaf in each of M trees.

    <phi(x), phi(x')> is the share of trees in which x and x' are in the same leaf: the kernel of a random forest. It is
    wide in sparse regions and narrow in dense regions, does not depend on the scale of a column, and handles missing
    values: each split sends them to one side. ||phi(x)|| = 1 exactly. It works best with steps per coordinate
    (:class:`~pairloom.steps.AdaGrad`), because cells are visited at very different rates.

    With ``labels`` a tree is extremely randomised: it uses the best of sqrt(d) random splits. Splits of many rows are
    judged by 512 of them, or by more if one class is rare. The leaves of a tree do not learn from the rows that the
    tree was grown on, because they would overfit. Instead, the labels of these rows determine the initial weights: a
    new leaf starts at the log-odds of its rows. Without labels, splits are random, weights start at 0, and all rows are
    learned. Categories encoded as integers are split by order.

    ``growth`` determines when trees are grown:

    - "once": from the first ``n_rows`` rows, which are not learned if labels determine the splits.
    - "renewed": tree by tree, from the newest ``n_rows`` rows, at rows 64 to 16,384: each tree once between rows n and
      4 n, or n and ``pace`` n. The initial weights of a new tree are scaled so that its scores fit those of the tree
      that it replaces, and its leaves inherit that tree's sums of squared gradients. No single call takes long, all
      rows are learned, and the forest adapts to drift until row 16,384. With ``deep_rows``, the leaves of one tree
      every 512 rows are then split further by the newest ``deep_rows`` rows. The parts of a leaf start at its weight,
      so that no learned weight is lost.
    - "boosted": a tree is added every 64 rows, and every 512 from row 8,192 on, grown on the residuals of the scores
      that the newest rows had on arrival; its leaves start at a tenth of the Newton step.

    For the last two, the memory must keep raw rows, as for ``Growing``. ``levels`` require "once".

    Parameters
    ----------
    n_trees : M.
    max_leaves : the largest number of leaves of a tree; a leaf has at least 2 rows, or more to respect this limit.
    n_rows : the largest number of rows that a tree is grown from.
    labels : whether labels determine the splits.
    levels : depths whose nodes are also coordinates, in order, such as (4, 8): coarse cells learn first, fine cells
        later. A leaf above such a depth counts as a node at that depth. Then m = M (1 + number of levels).
    growth : "once", "renewed" or "boosted".
    pace : the factor by which the length of the stream grows while each tree is renewed once, if growth is "renewed".
        Renewal ends at the first of the rows 64 pace, 64 pace^2, ... that is 16,384 or later. A pace of 8 takes two
        thirds of the time of 4.
    deep_rows : number of rows used to split leaves further in a long stream, if growth is "renewed"; 0: no further
        splits. ``max_leaves`` should be between half of ``deep_rows`` and ``deep_rows``.
    scale : scaling of the columns if they are used directly (``cluster_in="input"``); trees do not depend on it.

    Cost: about M log2(max_leaves) comparisons per row; D = m max_leaves coordinates, m of them nonzero. 13 bytes for
    each of the M (2 max_leaves - 1) nodes, and 4 for each level and the leaves (float64: 4 more); a growing forest
    also keeps ``n_rows`` rows, or ``deep_rows``. Growing a tree from 4,096 rows of 80 columns takes about 2 ms, and
    splitting its leaves by 8,192 rows takes 7 ms.

    References
    ----------
    Geurts, Ernst and Wehenkel, Extremely Randomized Trees, Machine Learning 2006: section 4 has the kernel.
    Breiman, Some Infinity Theory for Predictor Ensembles, 2000.

    >>> X = np.array([[0.0], [1.0], [5.0], [6.0]])
    >>> phi = Forest(100, labels=False)
    >>> Z = phi.apply(phi.fix(1, X, np.random.default_rng(0)), X)
    >>> (Z @ Z.T).toarray().round(2)[0]
    array([1., 1., 0., 0.])
    """

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
        if self.growth != "once" and (self.levels or not self.labels):
            raise ValueError(f"growth={self.growth!r} is for labels=True and levels=(): new leaves start by labels")
        check_count("pace", self.pace)
        if self.pace < 2:
            raise ValueError(f"pace must be 2 or more, such as 4; got {self.pace}")
        if self.deep_rows != 0:
            check_count("deep_rows", self.deep_rows)
        if self.deep_rows and self.growth != "renewed":
            raise ValueError(f"deep_rows={self.deep_rows} is for growth='renewed', not {self.growth!r}")

    @property
    def growing(self) -> "Forest | None":
        return None if self.growth == "once" else self

    @property
    def labelled(self) -> "Forest | None":
        """The forest, if it is grown from labels of the first rows; a growing forest is fixed without them."""
        return self if self.labels and self.growth == "once" else None

    @property
    def forgetting(self) -> "Forest | None":
        return self.growing

    @property
    def needs_data(self) -> bool:
        return self.growth == "once" or self.scale is not None

    @property
    def warm_rows(self) -> int:
        return self.n_rows if self.growth == "once" else 0

    @property
    def n_cells(self) -> int:
        """Number m of nonzero coordinates of a row."""
        return self.n_trees * (1 + len(self.levels))

    @property
    def max_nodes(self) -> int:
        """Largest number of nodes of a tree."""
        return 2 * self.max_leaves - 1

    def n_outputs(self, n_features: int) -> int:
        return self.n_cells * self.max_leaves

    def cost(self, n_features: int) -> Cost:
        depth, kept = log2(2 * self.max_leaves), 0
        if self.growth != "once":
            kept = max(self.n_rows, self.deep_rows) * n_features
        nodes = (4 + len(self.levels)) * self.n_trees * self.max_nodes
        lookups = NODE_FLOPS * depth * self.n_cells
        return Cost(10.0 * self.n_trees * depth + (lookups + self._growth_flops(n_features)), nodes + kept)

    def _growth_flops(self, n_features: int) -> float:
        """Return the peak flops per row of growing: at row 1,000, or at row 2,048 if boosted."""
        if self.growth == "once":
            return 0.0
        if self.growth == "boosted":  # a tree of 2,048 rows every 64 rows
            return (TREE_FLOPS + 2048 * ROW_FLOPS * sqrt(n_features)) / 64
        return self.n_trees * (TREE_FLOPS / 1000 + ROW_FLOPS * sqrt(n_features)) / log(self.pace)

    def halved(self) -> "Forest | None":
        return replace(self, n_trees=self.n_trees // 2) if self.n_trees >= 50 else None

    def fix(self, n_features: int, rows: Any, rng: np.random.Generator) -> ForestState:
        if self.labelled is not None and rows is not None:
            raise ValueError("Forest(labels=True) is grown by labels, and none were given: use Forest(labels=False)")
        return self._fix(n_features, rows, None, None, rng)

    def fix_on(self, n_features: int, first: Batch, rng: np.random.Generator) -> ForestState:
        return self._fix(n_features, first.X, first.y, first.weight, rng)

    def _fix(self, n_features: int, rows: Any, labels: Any, weight: Any, rng: np.random.Generator) -> ForestState:
        nodes = Nodes.stumps(self.n_trees, 1 + len(self.levels))
        # Rows with missing values cannot be clustered by their columns, so the scaler is not used.
        known = self.scale is not None and rows is not None and not np.isnan(getattr(rows, "data", rows)).any()
        scaler = fit_scaler(self.scale if known else None, n_features, rows)
        if self.growth != "once":
            sample, seed = Sample.empty(max(self.n_rows, self.deep_rows), n_features), np.asarray(rng.integers(2**63))
            return GroveState(scaler, nodes, np.asarray(0), sample, seed)
        n = 0 if rows is None else min(self.n_rows, rows.shape[0])
        if n >= MIN_LEAF_ROWS:
            X = rows[:n] if is_sparse(rows) else np.ascontiguousarray(single(rows[:n]))
            random, w = labels is None, np.ones(n) if weight is None else weight[:n]
            for k in range(self.n_trees):
                targets = rng.random((n, 1)) if random else targets_of(labels[:n])
                tree, _ = grow_tree(X, targets, w, self._min_leaf_rows(n), rng, random=random)
                nodes = nodes.with_room(len(tree.yes), self.max_nodes)
                nodes.plant(k, tree, self._levels)
        return ForestState(scaler, nodes, np.asarray(0 if labels is None else n))

    def state_spec(self, n_features: int, t: int, n_targets: int) -> StateSpec:
        rows, leaves = max(self.n_rows, self.deep_rows), self.max_leaves
        sizes = {"T": self.n_trees, "K": 1 + len(self.levels), "L": leaves, "n": rows}
        symbols = {"d": n_features, "D": self.n_outputs(n_features), "k": n_targets, **sizes}
        if self.growing is None:
            return StateSpec(ForestState, symbols, check=partial(ForestState.check_room, most=self.max_nodes))
        check = partial(GroveState.check_growth, trees=self, t=t, most=self.max_nodes)
        return StateSpec(GroveState, symbols, check=check)

    def _min_leaf_rows(self, n: int, least: int = MIN_LEAF_ROWS) -> int:
        """Return the minimum rows per leaf such that a tree of n rows has at most ``max_leaves``."""
        return max(least, -(-n // self.max_leaves))

    def first_weights(self, state: ForestState, first: Batch, targets: Array, exact: bool = False) -> Array | None:
        """Return the log-odds of the leaves, from the labels that the trees were grown on, divided by their number."""
        if not state.grown:
            return None
        grown_by = first[: self.rows_used_to_grow(state)]
        w = np.zeros((max(1, len(targets)), self.n_trees, self.n_cells // self.n_trees, self.max_leaves))
        cells = state.nodes.walk(grown_by.X, self._levels)
        for k in range(self.n_trees):
            w[:, k, -1] = votes(grown_by, cells[:, k, -1], self.max_leaves, targets, exact)
        return w.reshape(len(w), -1) / sqrt(self.n_cells)

    def next_change(self, state: GroveState, t: int) -> int:
        if state.fixed:
            return NEVER
        planted, since = state.planted, state.since
        while since + self.next_planting(planted) < t:  # planted before row t
            planted += 1
        row = self.next_planting(planted)
        return row if row == NEVER else since + row

    def next_planting(self, planted: int) -> int:
        """Return the row after which a growing forest that has planted ``planted`` trees plants the next."""
        if self.growth == "boosted":
            return next_boost(planted, self.n_trees)
        return (next_deepening if self.deep_rows else next_renewal)(planted, self.n_trees, self.pace)

    def forget(self, state: GroveState, keep: float) -> None:
        """Continue growing like a younger forest, with the same tree next."""
        boosted = self.growth == "boosted"
        if boosted and keep >= MIN_KEEP:
            return
        past, t = state.past or Past(0, state.planted, 0), state.sample.count
        # The row at which growing ends: a forest that forgets repeatedly keeps growing.
        last = next_boost(self.n_trees - 1, self.n_trees) if boosted else int(64 * self.pace ** n_renewals(self.pace))
        age = int(keep * min(t - past.since, last))
        past.since = t - age
        if keep < MIN_KEEP:
            past.old = self.n_trees
        state.past = past
        state.planted = bisect_right(range(state.planted), age, key=self.next_planting)

    def change(self, state: GroveState, t: int, targets: Array, exact: bool = False) -> Change:
        """Regrow the next tree, or split its leaves."""
        k, boosted = state.turn % self.n_trees, self.growth == "boosted"
        rng = np.random.default_rng((int(state.seed), state.turn))
        cells = slice(k * self.max_leaves, (k + 1) * self.max_leaves)
        if self.deep_rows and state.planted >= n_renewals(self.pace) * self.n_trees:
            sample = state.sample.rows(self.deep_rows)
            state.count_tree()
            wanted = sample_targets(sample, targets)
            tree, of, share = deepen(state.nodes, k, sample, wanted, MIN_LEAF_ROWS, rng, self.max_nodes)
            state.plant(k, tree, self._levels, self.max_nodes)
            return Deepened(state, cells, of, share)
        sample = state.sample.rows(min(self.n_rows, t - state.since))
        known = state.turn >= self.n_trees and (state.past is None or not state.past.old)
        before = state.nodes.leaves(k, sample.X) if known else None
        state.count_tree()
        if boosted:
            residual, curvature = residuals(sample, targets, exact)
        wanted = residual if boosted else sample_targets(sample, targets)
        min_rows = self._min_leaf_rows(sample.count, MIN_BOOSTED_LEAF_ROWS if boosted else MIN_LEAF_ROWS)
        tree, ends = grow_tree(sample.X, wanted, sample.weight, min_rows, rng)
        state.plant(k, tree, self._levels, self.max_nodes)
        # Trees are grown in float32: a row that was rounded may have grown another leaf than its own.
        exactly = sample.X.dtype == np.float32
        leaf, n_leaves = state.nodes.cells[k, -1, ends] if exactly else state.nodes.leaves(k, sample.X), tree.n_leaves
        if boosted:
            starts = sqrt(self.n_trees) * corrections(sample, residual, curvature, leaf, n_leaves)
            return Replanted(state, cells, starts)
        starts = votes(sample, leaf, n_leaves, targets, exact) / sqrt(self.n_trees)
        return Replanted(state, cells, starts, before, None if before is None else leaf)

    def merge(
        self, base: GroveState, parts: list[GroveState], rows: RowCounts, targets: Array, exact: bool = False
    ) -> tuple[GroveState, list[Change]]:
        """Grow the trees due by the new row, each at most once, on the newest rows of all parts in turn."""
        check_equal("trees", base.nodes, [part.nodes for part in parts], GROWN)
        state, pool = copy(base), pooled_sample([part.sample for part in parts], rows)
        state.fixed = None
        age, n, at, changes = rows.total - state.since, pool.count, 0, []
        plantings = range(state.planted, state.planted + age + 1)
        due = bisect_left(plantings, age, key=self.next_planting)
        state.skip_trees(due - self.n_trees)
        for planted in plantings[max(0, due - self.n_trees) : due]:
            row = state.since + self.next_planting(planted)
            end = max(at, n * (row - rows.base) // max(1, rows.total - rows.base))
            state.sample.extend(pool, at, end)
            at = end
            changes.append(self.change(state, row, targets, exact))
        state.sample.extend(pool, at, n)
        state.sample.end_at(rows.total)
        return state, changes

    def remember(self, state: GroveState, batch: Batch, scores: Array) -> None:
        state.sample.add(batch, scores)

    def rows_used_to_grow(self, state: ForestState) -> int:
        return int(state.grown)

    def rows(self, state: ForestState, X: Any) -> CSRRows:
        return CSRRows.of_cells(self.cells(state, X), state.nodes.values.dtype)

    def cells(self, state: ForestState, X: Any) -> Array:
        cells = state.nodes.walk(X, self._levels).reshape(X.shape[0], self.n_cells)
        cells += np.arange(0, self.n_cells * self.max_leaves, self.max_leaves, dtype=np.int32)
        return cells

    def linear_sum(self, state: ForestState, w: Array, slopes: Array) -> LeafSum | None:
        """Return the sum as one loop, if all cells are leaves."""
        return None if self.levels else LeafSum(state.nodes, np.ascontiguousarray(w.transpose(1, 2, 0)), slopes)

    @property
    def _levels(self) -> Array:
        return np.array(self.levels, np.int64)


def sample_targets(sample: Sample, targets: Array) -> Array:
    """Return the ``targets_of`` a sample; its labels are classes unless ``targets`` is empty."""
    return targets_of(sample.y.astype(np.int64) if len(targets) else sample.y)
