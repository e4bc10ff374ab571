"""A forest as a feature map: cells, kernel, bytes, missing values, growth."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.tree import ExtraTreeClassifier

from pairloom.base.batch import Batch
from pairloom.base.tree import cast, nbytes, same
from pairloom.features import Forest, capabilities
from pairloom.features.base import dense_features
from pairloom.features.tree_growth import grow
from pairloom.features.trees import Nodes, Tree, grow_tree, renumbered, rounded_down, targets_of
from tests.conftest import make_stream

LEVELS = Forest(6, max_leaves=16, levels=(1, 3, 5))
FORESTS = {
    "plain": Forest(7, max_leaves=16),
    "random": Forest(7, max_leaves=16, labels=False),
    "levels": LEVELS,
    "random levels": replace(LEVELS, labels=False),
    "few rows": Forest(5, max_leaves=32, n_rows=40),
    "one leaf": Forest(3, max_leaves=1),
}


def rows(n=300, d=5, missing=False, seed=0):
    """A stream; a third of a column may be missing, more often in the rare class."""
    X, y = make_stream("random", n, d, seed)
    if missing:
        X[np.random.default_rng(1).random(n) < np.where(y > 0, 0.6, 0.2), 1] = np.nan
    return X, y


def batch(X, y, weight=None):
    return Batch(X, y, np.ones(len(y)) if weight is None else weight, np.zeros(len(y), np.int64))


def fixed(forest, X, y, seed=0, dtype="float64"):
    first = batch(X, (y > 0).astype(np.int64))
    return cast(capabilities.fix_features(forest, X.shape[1], first, np.random.default_rng(seed)), dtype)


@pytest.fixture(params=FORESTS)
def forest(request):
    return FORESTS[request.param]


@pytest.mark.parametrize("missing", [False, True])
def test_every_row_has_m_ones_of_length_1_and_cells_in_order(forest, missing):
    X, y = rows(missing=missing)
    state = fixed(forest, X, y)
    Z, cells = forest.apply(state, X), forest.cells(state, X)
    m = forest.n_trees * (1 + len(forest.levels))
    assert forest.n_cells == m
    assert Z.shape == (300, m * forest.max_leaves) == (300, forest.n_outputs(5))
    assert cells.shape == (300, m)
    assert cells.dtype == np.int32
    assert (np.diff(cells) > 0).all()
    assert (cells // forest.max_leaves == np.arange(m)).all()
    np.testing.assert_allclose(Z.data, 1 / np.sqrt(m), rtol=1e-15)
    np.testing.assert_allclose((Z.toarray() ** 2).sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(Z.indices.reshape(300, m), cells)
    np.testing.assert_array_equal(dense_features(forest, state, X), Z.toarray())
    assert forest.apply(state, X[:0]).shape == (0, Z.shape[1])


def test_the_kernel_is_the_share_of_trees(forest):
    X, y = rows(80)
    state = fixed(forest, X, y)
    leaves = np.stack([state.nodes.leaves(k, X) for k in range(forest.n_trees)], axis=1)
    share = (leaves[:, None] == leaves).mean(axis=2)
    if not forest.levels:
        K = (forest.apply(state, X) @ forest.apply(state, X).T).toarray()
        np.testing.assert_allclose(K, share, atol=1e-12)
    last = forest.cells(state, X).reshape(80, forest.n_trees, -1)[:, :, -1] % forest.max_leaves
    np.testing.assert_array_equal(last, leaves)


def test_a_row_stands_for_itself(forest):
    X, y = rows(100, missing=True)
    state = fixed(forest, X, y)
    cells = forest.cells(state, X)
    for part in (slice(0, 1), slice(15, 17), slice(3, 60)):
        np.testing.assert_array_equal(forest.cells(state, X[part]), cells[part])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_bytes_are_as_stated(forest, dtype):
    X, y = rows()
    state = fixed(forest, X, y, dtype=dtype)
    nodes = forest.n_trees * state.nodes.yes.shape[1]
    assert nodes <= forest.n_trees * (2 * forest.max_leaves - 1)
    each = 13 + 4 * (1 + len(forest.levels)) + (4 if dtype == "float64" else 0)
    assert nbytes(state.nodes) == nodes * each
    assert nbytes(state) <= nodes * each + 8 + 3 * 5 * 8
    size = {"columns": 4, "yes": 4, "missing_yes": 1, "values": 4 if dtype == "float32" else 8}
    assert {name: getattr(state.nodes, name).itemsize for name in size} == size


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_leaves_are_those_of_scikit_learn(kind, offset):
    """Also where neighbours in float32 are parted: a threshold is never rounded up to the values above it."""
    X, y = rows(400)
    X = (X + offset).astype(np.float32)
    nodes = Nodes.stumps(8, 1, 799)
    for k in range(8):
        tree = ExtraTreeClassifier(random_state=k).fit(X, y).tree_
        made = renumbered(tree.feature, rounded_down(tree.threshold), tree.children_left, tree.children_right)
        nodes.plant(k, Tree(*made), np.zeros(0, np.int64))
        new = rows(300, seed=5)[0] + offset
        for x in (X, new.astype(np.float32)):
            ours, theirs = nodes.leaves(k, x.astype(kind)), tree.apply(x)
            both = set(zip(ours.tolist(), theirs.tolist(), strict=True))
            assert len(both) == len(set(ours)) == len(set(theirs))


def test_missing_values_have_their_own_side_and_are_informative():
    X, _ = rows(300, missing=True)
    y = np.isnan(X[:, 1]).astype(np.int64)
    nodes, wrong = Nodes.stumps(20, 1, 599), np.zeros(300)
    for k in range(20):
        tree, _ = grow_tree(X, targets_of(y), np.ones(300), 2, np.random.default_rng(k))
        nodes.plant(k, tree, np.zeros(0, np.int64))
        split = tree.yes > np.arange(len(tree.yes))
        assert 0 < tree.missing_yes[split].sum() < split.sum()
        leaf = nodes.leaves(k, X)
        wrong += np.abs(y - (np.bincount(leaf, y) / np.bincount(leaf))[leaf]) / 20
    assert (wrong < 0.5).mean() > 0.95


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("missing", [False, True])
def test_splits_explain_what_they_can(k, missing):
    """With one column and one try the cut is random; missing values go where the squared error is smaller."""
    rng = np.random.default_rng(0)
    for trial in range(30):
        x = rng.normal(size=60).astype(np.float32)
        Y, weight = rng.normal(size=(60, k)).astype(np.float32), rng.uniform(0.5, 2.0, 60).astype(np.float32)
        if missing:
            x[rng.random(60) < 0.2] = np.nan
        tree = Tree(*grow(x[:, None], Y, weight, 20, 1, np.random.default_rng(trial)).tree)
        if len(tree.yes) == 1:
            continue
        cut = tree.values[0]
        assert np.nanmin(x) <= cut < np.nanmax(x)
        errors = [squared_error(Y, weight, (x <= cut) | (side & np.isnan(x)), 20) for side in (False, True)]
        assert errors[int(tree.missing_yes[0])] <= errors[1 - int(tree.missing_yes[0])] + 1e-4
        if not missing:
            assert tree.missing_yes[0] == ((x <= cut).sum() > 30)


def squared_error(Y, weight, side, least):
    """Weighted, around the means of two sides; infinite if one of them is too small."""
    if min(side.sum(), (~side).sum()) < least:
        return np.inf
    parts = [(Y[own], weight[own, None]) for own in (side, ~side)]
    return sum((w * np.square(y - (w * y).sum(axis=0) / w.sum())).sum() for y, w in parts)


def test_the_best_of_many_tries_is_taken():
    """One column determines the target, the others are noise: with as many tries as columns it is found."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 8)).astype(np.float32)
    X[:, 5] = np.repeat([0.0, 1.0], 100)
    target = X[:, 5:6].copy()
    for seed in range(10):
        tree = Tree(*grow(X, target, np.ones(200, np.float32), 2, 8, np.random.default_rng(seed)).tree)
        assert tree.columns[0] == 5
        assert len(tree.yes) == 3  # both sides are pure


def test_neighbours_in_float32_are_always_parted():
    x = np.repeat(np.array([1.0, np.nextafter(np.float32(1), np.float32(2))], np.float32), 20)
    target = np.repeat(np.array([[0.0], [1.0]], np.float32), 20, axis=0)
    for seed in range(60):
        tree = Tree(*grow(x[:, None], target, np.ones(40, np.float32), 2, 1, np.random.default_rng(seed)).tree)
        assert len(tree.yes) == 3
        assert tree.values[0] == 1


@pytest.mark.parametrize("labels", [True, False])
def test_levels_part_the_rows_ever_finer(labels):
    forest = replace(LEVELS, labels=labels)
    X, y = rows(400, missing=True)
    state = fixed(forest, X, y)
    cells = forest.cells(state, X).reshape(400, 6, 4) % forest.max_leaves
    seen_ended = False
    for k in range(6):
        for level in range(4):
            own = cells[:, k, level]
            assert own.max() < forest.max_leaves
            assert set(own) == set(range(own.max() + 1))  # of the rows that it was grown from none is without a cell
            # Those of one cell were in one cell of each coarser level.
            for coarser in range(level):
                pairs = {(int(a), int(b)) for a, b in zip(own, cells[:, k, coarser], strict=True)}
                assert len(pairs) == len(set(own))
        for level, depth in enumerate(forest.levels):
            node, at = by_hand(state.nodes, k, X, depth)
            assert len(set(cells[:, k, level])) == len(set(node)) <= 2**depth
            for one in set(node):  # a cell is a node at this depth, or a leaf above
                assert len(set(cells[node == one, k, level])) == 1
            seen_ended |= bool((at < depth).any())
        node, _ = by_hand(state.nodes, k, X, 99)
        assert len(set(zip(node.tolist(), cells[:, k, 3].tolist(), strict=True))) == len(set(node))
    assert seen_ended


def by_hand(nodes, k, X, most):
    """The node, and its depth, that each row comes to in at most so many steps."""
    node, depth = np.zeros(len(X), int), np.zeros(len(X), int)
    for i, x in enumerate(X):
        while depth[i] < most and nodes.yes[k, node[i]] != node[i]:
            value = x[nodes.columns[k, node[i]]]
            yes = nodes.missing_yes[k, node[i]] if np.isnan(value) else value <= nodes.values[k, node[i]]
            node[i] = nodes.yes[k, node[i]] + (0 if yes else 1)
            depth[i] += 1
    return node, depth


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_csr_rows_have_the_cells_of_dense_rows(forest, dtype):
    X, y = rows()
    X = np.where(np.abs(X) < 0.6, 0.0, X).astype(dtype)
    state = fixed(forest, X, y, dtype=dtype)
    thin = csr_array(X)
    long = (thin.data, thin.indices.astype(np.int64), thin.indptr.astype(np.int64))
    for thin in (thin, csr_array(long, shape=X.shape)):  # noqa: B020
        np.testing.assert_array_equal(forest.cells(state, thin), forest.cells(state, X))
    grown = fixed(forest, csr_array(X), y, dtype=dtype)
    np.testing.assert_array_equal(forest.cells(grown, csr_array(X)), forest.cells(grown, X))


@pytest.mark.parametrize(("max_leaves", "n"), [(1, 100), (2, 4), (3, 100), (7, 20), (16, 333), (64, 40)])
@pytest.mark.parametrize("labels", [True, False])
def test_no_tree_has_more_leaves_than_it_may_and_no_leaf_less_than_two_rows(max_leaves, n, labels):
    X, y = rows(n)
    forest = Forest(10, max_leaves=max_leaves, labels=labels)
    state = fixed(forest, X, y)
    for k in range(10):
        counts = np.bincount(state.nodes.leaves(k, X))
        assert len(counts) <= max_leaves
        assert counts.min() >= 2
    assert max_leaves <= 2 or (state.nodes.yes != np.arange(state.nodes.yes.shape[1])).any()


def test_there_is_room_for_the_nodes_of_the_largest_tree_only():
    nodes = Nodes.stumps(2, 1)
    assert nodes.with_room(1, 99) is nodes
    for wanted, room in ((20, 20), (21, 22), (80, 80), (81, 90), (95, 99)):
        before, nodes = nodes, nodes.with_room(wanted, 99)
        now = before.yes.shape[1]
        assert nodes.yes.shape == (2, room)
        assert nodes.cells.shape == (2, 1, room)
        np.testing.assert_array_equal(nodes.values[:, :now], before.values)
        nodes.check()


def test_only_the_first_rows_grow_it_and_one_row_grows_nothing():
    X, y = rows()
    forest = FORESTS["few rows"]
    assert same(fixed(forest, X, y), fixed(forest, X[:40], y[:40]))
    assert forest.rows_used_to_grow(fixed(forest, X, y)) == 40
    assert forest.rows_used_to_grow(fixed(forest, X[:9], y[:9])) == 9
    assert forest.rows_used_to_grow(fixed(replace(forest, labels=False), X, y)) == 0
    assert not forest.cells(fixed(forest, X[:1], y[:1]), X).reshape(300, 5)[:, 0].any()
    assert forest.fix(5, None, np.random.default_rng(0)).grown == 0


def test_random_trees_do_not_look_at_labels_and_others_do():
    X, y = rows()
    noise = np.random.default_rng(3).permutation(y)
    for labels in (True, False):
        forest = Forest(7, max_leaves=16, labels=labels)
        one, other = (fixed(forest, X, its).nodes.columns for its in (y, noise))
        assert np.array_equal(one, other) != labels
    random = Forest(7, max_leaves=16, labels=False)
    assert same(random.fix(5, X, np.random.default_rng(0)), fixed(random, X, y))


def test_classes_grow_by_classes_and_numbers_by_numbers():
    """Class codes are not numbers: trees of three classes do not depend on the codes."""
    X, _ = rows()
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    forest = Forest(5, max_leaves=8)

    def columns(labels):
        return forest.fix_on(5, batch(X, labels), np.random.default_rng(0)).nodes.columns

    np.testing.assert_array_equal(columns(y), columns(np.array([2, 0, 1])[y]))
    assert not np.array_equal(columns(y.astype(float)), columns(np.array([2.0, 0.0, 1.0])[y]))
