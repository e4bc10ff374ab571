"""The compiled grower of trees agrees with a slow, obvious one."""

import numpy as np
import pytest

from pairloom.features.tree_columns import lists
from pairloom.features.tree_growth import grow, grow_on
from tests.growing_trees import Grower


def sample(n, d, kind, seed):
    """Rows with columns of several kinds, targets (n, k) and weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(np.float32)
    X[:, 1] = np.round(X[:, 1])
    X[:, 2] = 7.0
    score = X[:, 0] + X[:, 1] * X[:, 3]
    if kind == "sparse":
        for j in range(4, d):  # ones, minus ones, twos, and one column of two values that are not 0
            X[:, j] = (rng.random(n) < rng.uniform(0.002, 0.3)) * (1.0, -1.0, 2.0)[j % 3]
        X[:, 4] *= rng.integers(1, 3, n)
        score += X[:, 5:].sum(axis=1)
    if kind == "missing":
        X[rng.random(X.shape) < 0.15] = np.nan
    weight = rng.uniform(0.5, 2.0, n) if kind == "weights" else np.ones(n)
    targets = (score > np.quantile(score, 0.99 if kind == "rare" else 0.6))[:, None]
    if kind == "classes":
        targets = np.digitize(score, [-0.5, 0.5])[:, None] == np.arange(3)
    if kind == "numbers":
        targets = score[:, None] + rng.normal(size=(n, 1))
    return X, targets.astype(np.float32), weight.astype(np.float32)


def agree(grown, slow):
    for one, other in zip(grown.tree, slow.tree, strict=True):
        np.testing.assert_array_equal(one, np.array(other, one.dtype))
    np.testing.assert_array_equal(grown.parent, slow.parent)
    np.testing.assert_array_equal(grown.leaf, slow.leaf)


KINDS = ["plain", "sparse", "missing", "weights", "rare", "classes", "numbers"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("n", "d", "least", "tries"), [(40, 6, 1, 1), (300, 9, 2, 0), (1500, 40, 2, 0), (900, 12, 20, 3), (400, 500, 2, 0)]
)
def test_the_compiled_grower_does_the_same_step_by_step(kind, n, d, least, tries):
    X, targets, weight = sample(n, d, kind, n + d)
    grown = grow(X, targets, weight, least, tries, np.random.default_rng(n))
    agree(grown, Grower(X, targets, weight, least, tries, np.random.default_rng(n)))
    assert len(grown.parent) > 1
    assert np.bincount(grown.leaf)[grown.leaf].min() >= least


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("room", [31, 60, 700])
def test_a_tree_is_grown_on_step_by_step(kind, room):
    X, targets, weight = sample(800, 10, kind, 1)
    first = grow(X[:60], targets[:60], weight[:60], 5, 2, np.random.default_rng(0))
    leaf = Grower(X[:60], targets[:60], weight[:60], 5, 2, np.random.default_rng(0))
    tree, rng = tuple(np.array(part, one.dtype) for part, one in zip(leaf.tree, first.tree, strict=True)), 2
    at = np.array([leaf_of(x, tree) for x in X])
    grown = grow_on(X, targets, weight, 2, 0, np.random.default_rng(rng), tree, at, room)
    agree(grown, Grower(X, targets, weight, 2, 0, np.random.default_rng(rng), tree, at, room))
    assert len(grown.parent) <= max(room, len(tree[0]))


def leaf_of(x, tree):
    column, value, first, missing = tree
    at = 0
    while first[at] != at:
        one = x[column[at]]
        at = first[at] + (0 if one <= value[at] or (missing[at] and np.isnan(one)) else 1)
    return at


def test_lists_are_of_columns_with_one_value_that_is_not_0():
    rng = np.random.default_rng(0)
    X = ((rng.random((200, 30)) < np.linspace(0, 0.3, 30)) * rng.choice([1, -2, 0.5], 30)).astype(np.float32)
    X[5, 7], X[9, 8], X[3, 9] = 3.0, np.nan, -3.0
    columns = rng.permutation(30)[:25].astype(np.int32)
    start, stop, value, rows = lists(X, columns, 30)
    for j in range(30):
        own = np.flatnonzero(X[:, j])
        listed = j in columns and len(own) <= 30 and len(set(X[own, j].tolist())) == 1
        np.testing.assert_array_equal(rows[start[j] : stop[j]], own if listed else [])
        assert not listed or value[j] == X[own[0], j]


def test_rows_in_any_order_grow_equally_good_trees():
    """A stream may be sorted: the rows by which splits are judged are drawn at random."""
    X, targets, weight = sample(4000, 8, "plain", 5)
    order = np.argsort(targets[:, 0] + 0.1 * X[:, 0])
    gaps = []
    for rows in (np.arange(4000), order):
        leaf = grow(X[rows], targets[rows], weight, 100, 4, np.random.default_rng(0)).leaf
        mean = np.bincount(leaf, targets[rows, 0]) / np.maximum(1, np.bincount(leaf))
        gaps.append(np.square(targets[rows, 0] - mean[leaf]).mean())
    assert max(gaps) < 0.15 < targets.var()
    assert max(gaps) < 1.3 * min(gaps)
