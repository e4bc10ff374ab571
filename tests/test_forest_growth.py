"""Growing forests: the rows and samples, and the effect on weights, squares and the memory."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from pairloom import Learner, Stream
from pairloom.base.batch import Batch
from pairloom.base.tree import arrays, copy, same
from pairloom.features import Forest
from pairloom.features.base import dense_features
from pairloom.features.forest_growth import LEARNING_RATE, Replanted, corrections, residuals, votes
from pairloom.features.forest_state import Sample
from pairloom.memory import Latest, Strata, Window
from pairloom.pairs import Difference, OppositeClass, Order
from pairloom.steps import AdaGrad, Constant
from tests.conftest import make_stream

RENEWED = Forest(5, max_leaves=8, n_rows=60, growth="renewed")
BOOSTED = Forest(6, max_leaves=8, n_rows=60, growth="boosted")
GROWING = {"renewed": RENEWED, "boosted": BOOSTED}
AT = {
    "renewed": [64, 64, 96, 128, 192, 256, 320, 416, 576],
    "boosted": [64, 128, 192, 256, 320, 384],
}


def make(features, **changes):
    return Learner(features, **{"memory": Latest(size=4), "step": AdaGrad(0.1), "seed": 0, **changes})


def batch(X, y, weight=None):
    return Batch(X, y, np.ones(len(y)) if weight is None else weight, np.zeros(len(y), np.int64))


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize("growth", GROWING)
def test_trees_change_in_turn_after_the_rows_of_the_clock(growth, engine):
    n = 600
    X, y = make_stream("random", n + 130, 4)
    features = GROWING[growth]
    stream, changed = Stream(make(features, engine=engine)), []
    before = None
    for t in range(n):
        stream.partial_fit(X[t : t + 1], y[t : t + 1])
        nodes = stream.learned.phi.nodes.with_room(2 * features.max_leaves - 1, 2 * features.max_leaves - 1)
        now = [np.concatenate([nodes.yes[k], nodes.columns[k], nodes.values[k]]) for k in range(features.n_trees)]
        if before is not None:
            own = [k for k in range(features.n_trees) if not np.array_equal(now[k], before[k])]
            changed += [(t, k) for k in own]
        before = [a.copy() for a in now]
    due = [t for t in AT[growth] if t < n]
    assert changed == [(t, k % features.n_trees) for k, t in enumerate(due)]
    assert stream.learned.phi.planted == len(due)


@pytest.mark.parametrize("growth", GROWING)
def test_after_the_last_row_of_the_clock_nothing_grows(growth):
    features = replace(GROWING[growth], n_rows=32)
    last = 16_384 if growth == "renewed" else 1800
    X, y = make_stream("random", 200, 4)
    stream = Stream(make(features)).partial_fit(X, y)
    for state in (stream.state, stream.learned):
        state.t = last
    stream.learned.phi.planted = 4 * 5 if growth == "renewed" else 6
    nodes = copy(stream.learned.phi.nodes)
    stream.partial_fit(X, y)
    assert same(stream.learned.phi.nodes, nodes)


@pytest.mark.parametrize("csr", [False, True])
def test_the_sample_is_the_newest_rows(csr):
    X, y = make_stream("random", 200, 4)
    scores = np.random.default_rng(0).normal(size=(200, 2))
    for cuts in ((200,), (1, 2, 59, 60, 61, 150, 200), range(1, 201)):
        sample, start = Sample.empty(60, 4), 0
        for end in cuts:
            part = csr_array(X[start:end]) if csr else X[start:end]
            sample.add(batch(part, y[start:end], 1.0 + np.arange(start, end)), scores[start:end])
            kept = sample.rows()
            new = np.arange(max(0, end - 60), end)
            order = np.argsort(kept.weight)
            assert kept.count == len(new) == len(kept.y)
            np.testing.assert_array_equal(kept.weight[order], 1.0 + new)
            np.testing.assert_array_equal(kept.columns.T[: kept.count][order], X[new])
            np.testing.assert_array_equal(kept.y[order], y[new])
            np.testing.assert_array_equal(kept.scores[order], scores[new])
            start = end
        assert sample.count == 200
        assert sample.columns.shape == (4, 60)


@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("models", [1, 4])
def test_what_a_new_tree_does_to_weights_and_squares(targets, models):
    rng = np.random.default_rng(0)
    D, own = 40, slice(8, 16)
    w, squares = rng.normal(size=(targets, D, models)), rng.random((targets, D, models))
    starts = rng.normal(size=(targets, 8))
    before, after = rng.integers(8, size=50), rng.integers(7, size=50)  # no row is in the last new leaf
    change = Replanted(None, own, starts, before, after)
    new_w, new_squares = change.weights(w.copy()), change.squares(squares.copy())
    for k in range(targets):
        for r in range(models):
            old = np.array([w[k, 8 + leaf, r] for leaf in before])
            fresh = np.array([starts[k, leaf] for leaf in after])
            factor = max(0.0, float(old @ fresh) / float(fresh @ fresh))
            np.testing.assert_allclose(new_w[k, own, r], factor * starts[k], rtol=1e-12)
            for leaf in range(8):
                known = [squares[k, 8 + before[i], r] for i in range(50) if after[i] == leaf]
                assert new_squares[k, 8 + leaf, r] == pytest.approx(np.mean(known) if known else 0.0)
    rest = np.r_[0:8, 16:40]
    np.testing.assert_array_equal(new_w[:, rest], w[:, rest])
    np.testing.assert_array_equal(new_squares[:, rest], squares[:, rest])
    # The first tree in this place replaces no other.
    first = Replanted(None, own, starts)
    np.testing.assert_array_equal(first.weights(w.copy())[:, own], np.repeat(starts[:, :, None], models, axis=2))
    assert not first.squares(squares.copy())[:, own].any()
    # A tree that contradicts the old one starts at 0.
    contrary = -np.abs(w) * np.sign(np.pad(starts, ((0, 0), (8, 24))))[:, :, None]
    zero = Replanted(None, own, starts, after, after).weights(contrary)
    assert not zero[:, own].any()


@pytest.mark.parametrize("pairs", [OppositeClass(), OppositeClass(3)], ids=str)
def test_what_is_still_wrong_and_by_how_much_a_leaf_changes_it(pairs):
    rng = np.random.default_rng(0)
    n, targets = 80, pairs.targets
    y, scores = rng.integers(pairs.n_groups, size=n) * 1.0, rng.normal(size=(n, len(targets)))
    sample = Sample(np.zeros((n, 1)), y, rng.random(n) + 0.5, scores, n)
    wrong, speed = residuals(sample, targets)
    leaf = rng.integers(5, size=n)
    made = corrections(sample, wrong, speed, leaf, 6)
    for k, target in enumerate(targets):
        p = (sample.y == target) - wrong[:, k]
        assert ((p > 0) & (p < 1)).all()
        assert np.average(wrong[:, k], weights=sample.weight) == pytest.approx(0.0, abs=1e-9)
        offsets = np.log(p / (1 - p)) - sample.scores[:, k]
        np.testing.assert_allclose(offsets, offsets[0], rtol=1e-9)
        np.testing.assert_allclose(speed[:, k], p * (1 - p))
        for cell in range(6):
            own = leaf == cell
            top = (sample.weight * wrong[:, k])[own].sum()
            down = (sample.weight * speed[:, k])[own].sum() + sample.weight.mean()
            assert made[k, cell] == pytest.approx(LEARNING_RATE * top / down)
    numbers = replace(sample, y=rng.normal(size=n), scores=sample.scores[:, :1])
    spread = np.sqrt(np.cov(numbers.y, aweights=sample.weight, ddof=0))
    for exact, unit in ((True, 1.0), (False, spread)):
        wrong, speed = residuals(numbers, np.zeros(0), exact)
        gap = numbers.y[:, None] / unit - numbers.scores
        np.testing.assert_allclose(wrong, gap - np.average(gap, axis=0, weights=sample.weight), atol=1e-12)
        assert (speed == 1).all()


@pytest.mark.parametrize("pairs", [OppositeClass(), OppositeClass(3), Order(), Difference()], ids=str)
@pytest.mark.parametrize("growth", GROWING)
def test_a_new_tree_starts_as_its_rows_say(growth, pairs):
    """At the first change of a stream: the tree, its initial weights, and the rows in the memory."""
    X, _ = make_stream("random", 70, 4)
    score = np.square(X).sum(axis=1)
    cuts = np.quantile(score, [0.7] if pairs.n_groups == 2 else [0.3, 0.7])
    y = score if pairs.n_groups == 0 else np.digitize(score, cuts)
    features = replace(GROWING[growth], n_trees=2)  # of which one is grown at row 64
    learner = make(features, pairs=pairs, memory=Window(6), dtype="float64")
    stream = Stream(learner).partial_fit(X[:64], y[:64])
    state, targets = copy(stream.learned), pairs.targets if pairs.n_groups else np.zeros(0)
    assert not state.w.any()  # all rows are in one leaf
    sample = state.phi.sample.rows()
    assert sample.count == 60
    change = features.change(state.phi, 64, targets, pairs.exact)
    assert change.phi.planted == 1
    leaf = change.phi.nodes.leaves(0, sample.X)
    n = int(leaf.max()) + 1
    assert 1 < n < 8
    if growth == "renewed":
        expected = votes(sample, leaf, n, targets, pairs.exact) / np.sqrt(2)
    else:
        expected = np.sqrt(2) * corrections(sample, *residuals(sample, targets, pairs.exact), leaf, n)
    np.testing.assert_allclose(change.starts, expected)
    # The score of a row is then the initial weight of its leaf over M.
    before = np.zeros((len(expected), features.n_outputs(4), 1))
    before[:, change.cells] = 1.0
    w, squares = change.weights(before.copy())[:, :, 0], change.squares(before.copy())
    assert not w[:, change.cells][:, n:].any()  # coordinates without a leaf
    assert not squares[:, change.cells][:, n:].any()
    Z = dense_features(features, change.phi, sample.X)
    times = features.n_trees if growth == "renewed" else 1
    by_hand = votes(sample, leaf, n, targets, pairs.exact) / times if growth == "renewed" else expected / np.sqrt(2)
    np.testing.assert_allclose(Z @ w.T, by_hand[:, leaf].T, atol=1e-12)
    after = stream.partial_fit(X[64:65], y[64:65]).learned
    assert same(after.phi.nodes, change.phi.nodes)
    assert after.phi.sample.count == 65


@pytest.mark.parametrize("parts", [{}, {"average": "mean"}, {"engine": "reference"}], ids=str)
def test_a_tree_that_replaces_another_takes_over_what_that_one_knew(parts):
    """In the second renewal: initial weights fit the old scores, squares are inherited row by row."""
    X, y = make_stream("random", 300, 4)
    stream = Stream(make(RENEWED, dtype="float64", **parts)).partial_fit(X[:256], y[:256])
    state = copy(stream.learned)
    sample = state.phi.sample.rows()
    before = state.phi.nodes.leaves(0, sample.X)
    change = RENEWED.change(state.phi, 256, np.array([1.0]))
    after = change.phi.nodes.leaves(0, sample.X)
    np.testing.assert_array_equal(change.before, before)
    np.testing.assert_array_equal(change.after, after)
    assert change.cells == slice(0, 8)
    old, w, squares = state.w[0, before], change.weights(state.w[:, :, None].copy())[0, :8, 0], state.squares[0, before]
    fresh = votes(sample, after, 8, np.array([1.0]))[0]
    factor = (old @ fresh[after]) / (fresh[after] @ fresh[after])
    assert factor > 0
    np.testing.assert_allclose(w, factor * fresh)
    handed = change.squares(state.squares[:, :, None].copy())[0, :8, 0]
    for leaf in range(8):
        assert handed[leaf] == pytest.approx(squares[after == leaf].mean() if (after == leaf).any() else 0.0)
    # The other trees and the average change only by the next row.
    later = stream.partial_fit(X[256:257], y[256:257]).learned
    assert np.abs(later.w[0, :8] - w).max() <= 0.1 + 1e-9
    assert np.abs(later.w[0, 8:] - state.w[0, 8:]).max() <= 0.1 + 1e-9
    assert (later.squares[0, :8] >= handed - 1e-12).all()


def test_each_tree_has_a_seed_of_its_own():
    X, y = make_stream("random", 64, 4)
    stream = Stream(make(RENEWED)).partial_fit(X, y)
    trees = []
    for planted in (0, 0, 1, 2):
        state = copy(stream.learned)
        state.phi.planted = planted
        nodes = RENEWED.change(state.phi, 64, np.array([1.0])).phi.nodes
        trees.append((nodes.columns[planted].tolist(), nodes.values[planted].tolist()))
    assert trees[0] == trees[1]
    assert trees[0] != trees[2] != trees[3] != trees[0]


@pytest.mark.parametrize("parts", [{}, {"average": "mean"}, {"step": Constant(0.1)}, {"engine": "reference"}], ids=str)
@pytest.mark.parametrize("growth", GROWING)
def test_the_memory_follows_the_map(growth, parts):
    X, y = make_stream("random", 300, 4)
    features = GROWING[growth]
    learner = make(features, memory=Strata(max_strata=4, cluster_in="input"), **parts)
    stream = Stream(learner).partial_fit(X, y)
    state = stream.learned
    slots = state.memory.slots
    filled = slots.mass > 0
    assert filled.sum() > 4
    expected = features.cells(state.phi, slots.rows)[filled]
    if state.cells is not None:
        np.testing.assert_array_equal(state.cells[filled], expected)
    elif parts.get("engine") == "reference":
        np.testing.assert_allclose(slots.points[filled], dense_features(features, state.phi, slots.rows)[filled])
    else:
        assert (state.lazy.counts[filled] == features.n_trees).all()
        np.testing.assert_array_equal(state.lazy.columns[filled][:, : features.n_trees], expected)
    kept = {tuple(row) for row in X.astype(np.float32).tolist()}
    assert all(tuple(row) in kept for row in slots.rows[filled].astype(np.float32).tolist())


@pytest.mark.parametrize("growth", GROWING)
def test_a_copy_of_a_growing_forest_shares_nothing_that_is_written(growth):
    X, y = make_stream("random", 400, 4)
    stream = Stream(make(GROWING[growth])).partial_fit(X[:200], y[:200])
    twin = copy(stream.state)
    assert twin.learned.phi is not stream.learned.phi
    ours = {array.__array_interface__["data"][0] for array in arrays(stream.state) if array.size}
    assert not any(array.__array_interface__["data"][0] in ours for array in arrays(twin) if array.size)
    before = copy(twin)
    stream.partial_fit(X[200:], y[200:])
    assert same(twin, before)
    again = Stream(stream.model)
    again.state = twin
    assert same(again.partial_fit(X[200:], y[200:]).state, stream.state)
    once = Stream(make(Forest(5, max_leaves=8, n_rows=64))).partial_fit(X, y)
    assert copy(once.state).learned.phi is once.learned.phi


def test_scoring_and_failing_calls_change_nothing():
    X, y = make_stream("random", 300, 4)
    stream = Stream(make(RENEWED)).partial_fit(X[:200], y[:200])
    before = copy(stream.state)
    stream.score(X)
    stream.auc()
    with pytest.raises(ValueError, match="infinity"):
        stream.partial_fit(np.full((2, 4), np.inf), [0, 1])
    assert same(stream.state, before)


def test_a_renewed_forest_follows_a_change_that_a_fixed_one_does_not():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 6))
    y = np.where(np.arange(1500) < 500, X[:, 0] * X[:, 1], X[:, 3] * X[:, 4]) > 0
    area = {}
    for growth in ("once", "renewed", "boosted"):
        forest = Forest(20, max_leaves=32, n_rows=256, growth=growth)
        scores, labels, _ = Stream(make(forest)).partial_fit(X, y).recent()
        up, down = scores[1000:][labels[1000:] > 0], scores[1000:][labels[1000:] == 0]
        area[growth] = (up[:, None] > down).mean()
    assert area["renewed"] > area["once"] + 0.05
    assert area["boosted"] > 0.5
