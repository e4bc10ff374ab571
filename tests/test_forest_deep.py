"""Leaves that are split further in a long stream: the rows, the samples, and no loss of learned weights."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from pairloom import Learner, Stream, load, save
from pairloom.base.batch import Batch
from pairloom.base.clock import NEVER, n_renewals
from pairloom.base.tree import copy, same
from pairloom.features import Forest
from pairloom.features.forest_growth import Deepened, deepen, unfolded
from pairloom.features.forest_state import Sample
from pairloom.features.tree_growth import grow, grow_on
from pairloom.features.trees import Nodes, Tree
from pairloom.memory import Latest
from pairloom.models import StepPath
from pairloom.pairs import OppositeClass, Order
from pairloom.steps import AdaGrad, Constant
from tests.conftest import make_stream
from tests.hostile import read
from tests.test_agreement import close

START = 16_384
DEEP = Forest(5, max_leaves=32, n_rows=60, growth="renewed", deep_rows=150)


def make(features=DEEP, **changes):
    return Learner(features, **{"memory": Latest(size=4), "step": AdaGrad(0.1), "seed": 0, **changes})


def late(model, n=400, missing=False, kind=None):
    """A stream whose state is changed after n rows to that of 16,384 rows, with all trees renewed."""
    X, y = make_stream("random", n + 1200, 4)
    if missing:
        X = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
    y = y if kind is None else kind(X, y)
    stream = Stream(model).partial_fit(X[:n], y[:n])
    stream.state.t = stream.learned.t = START
    stream.learned.phi.planted = 4 * DEEP.n_trees
    return stream, X[n:], y[n:]


def nodes_of(stream, k):
    nodes = stream.learned.phi.nodes
    inner = np.flatnonzero(nodes.yes[k] > np.arange(nodes.yes.shape[1]))
    return np.concatenate([nodes.yes[k, inner], nodes.columns[k, inner], nodes.values[k, inner]])


@pytest.mark.parametrize("deep_rows", [0, 150])
def test_one_tree_every_512_rows_from_row_16384_on(deep_rows):
    stream, X, y = late(make(replace(DEEP, deep_rows=deep_rows)))
    before, changed = [nodes_of(stream, k) for k in range(5)], []
    for t in range(1100):
        stream.partial_fit(X[t : t + 1], y[t : t + 1])
        now = [nodes_of(stream, k) for k in range(5)]
        changed += [(t, k) for k in range(5) if not np.array_equal(now[k], before[k])]
        before = now
    assert changed == ([(0, 0), (512, 1), (1024, 2)] if deep_rows else [])
    assert stream.learned.phi.planted == 20 + len(changed)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("parts", [{}, {"dtype": "float64"}, {"average": "mean"}, {"step": Constant(0.1)}], ids=str)
def test_every_score_stays_and_each_new_leaf_is_a_part_of_an_old_one(parts, missing):
    stream, X, _ = late(make(**parts), missing=missing)
    state = stream.learned
    sample = state.phi.sample.rows()
    assert sample.count == 150
    old, scores = copy(state.phi), stream.score(X)
    change = DEEP.change(state.phi, START, np.array([1.0]))
    assert isinstance(change, Deepened)
    assert change.cells == slice(0, 32)
    before, after = (phi.nodes.walk(X, np.zeros(0, np.int64))[:, 0, 0] for phi in (old, state.phi))
    np.testing.assert_array_equal(change.of[after], before)
    assert len(change.of) > before.max() + 1
    w = change.weights(stream.learned.w[:, :, None].copy())[:, :, 0]
    if "average" not in parts:
        kept = DEEP.cells(state.phi, X)
        np.testing.assert_allclose(w[0, kept].sum(axis=1) / np.sqrt(5), scores, atol=1e-5)
    assert same(change.phi.sample, old.sample)


def test_the_parts_of_a_leaf_share_what_it_knew_of_gradients():
    rng = np.random.default_rng(0)
    squares, w = rng.random((2, 20, 3)), rng.normal(size=(2, 20, 3))
    of, share = np.array([1, 0, 1, 2]), np.array([0.25, 1.0, 0.75, 1.0])
    change = Deepened(None, slice(8, 14), of, share)
    new_w, new = change.weights(w.copy()), change.squares(squares.copy())
    for cell in range(4):
        np.testing.assert_array_equal(new_w[:, 8 + cell], w[:, 8 + of[cell]])
        np.testing.assert_allclose(new[:, 8 + cell], share[cell] * squares[:, 8 + of[cell]])
    rest = np.r_[0:8, 12:20]
    np.testing.assert_array_equal(new_w[:, rest], w[:, rest])
    np.testing.assert_array_equal(new[:, rest], squares[:, rest])


def test_shares_are_those_of_rows_and_add_up():
    stream, _, _ = late(make())
    phi = stream.learned.phi
    sample = phi.sample.rows()
    tree, of, share = deepen(phi.nodes, 2, sample, sample.y[:, None] == 1, 2, np.random.default_rng(0), 63)
    np.testing.assert_allclose(np.bincount(of, share)[np.unique(of)], 1.0)
    phi.plant(2, tree, np.zeros(0, np.int64), 63)
    rows = np.bincount(phi.nodes.leaves(2, sample.X), minlength=len(of)) + 1
    for leaf in np.unique(of):
        np.testing.assert_allclose(share[of == leaf], rows[of == leaf] / rows[of == leaf].sum())


@pytest.mark.parametrize("leaves", [9, 12, 32])
def test_there_are_never_more_leaves_than_there_is_room_for(leaves):
    features = Forest(5, max_leaves=leaves, n_rows=60, growth="renewed", deep_rows=300)
    stream, _, _ = late(make(features))
    phi = stream.learned.phi
    for _ in range(20):
        change = features.change(phi, START, np.array([1.0]))
        assert len(change.of) <= leaves
        assert phi.nodes.cells.max() < leaves
    assert phi.planted == 40


KINDS = {
    "two": (OppositeClass(), None),
    "three": (OppositeClass(3), lambda X, y: np.digitize(X[:, 0], [-0.5, 0.5])),
    "numbers": (Order(), lambda X, y: X[:, 0] * X[:, 1]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_specification_agrees(kind):
    pairs, labels = KINDS[kind]
    states = []
    for engine in ("auto", "reference"):
        memory = Latest("previous", size=4) if kind == "numbers" else Latest(size=4)
        stream, X, y = late(make(engine=engine, pairs=pairs, memory=memory, dtype="float64"), kind=labels)
        states.append(stream.partial_fit(X[:700], y[:700]).learned)
    one, other = states
    assert one.phi.planted == other.phi.planted == 22
    np.testing.assert_array_equal(one.phi.nodes.yes, other.phi.nodes.yes)
    np.testing.assert_array_equal(one.phi.nodes.values, other.phi.nodes.values)
    assert close(one.w, other.w, 1e-9)
    assert close(one.squares, other.squares, 1e-9)


@pytest.mark.parametrize("csr", [False, True])
@pytest.mark.parametrize("path", [False, True])
def test_it_does_not_matter_how_rows_are_cut_into_calls(path, csr):
    features = Forest(3, max_leaves=16, n_rows=40, growth="renewed", deep_rows=90)
    model = StepPath(make(features), [0.05, 0.2]) if path else make(features)
    X, y = make_stream("random", START + 1100, 3)
    X = csr_array(X) if csr else X
    whole, parts, start = Stream(model).partial_fit(X, y), Stream(model), 0
    for end in (7, 70, 5000, START - 1, START, START + 1, START + 512, START + 513, START + 1100):
        parts.partial_fit(X[start:end], y[start:end])
        start = end
    assert same(whole.state, parts.state)
    assert whole.learned.phi.planted == 12 + 3


def test_a_file_goes_on_and_says_how_many_rows_it_keeps(tmp_path):
    features = Forest(3, max_leaves=16, n_rows=40, growth="renewed", deep_rows=90)
    X, y = make_stream("random", START + 800, 3)
    stream = Stream(make(features)).partial_fit(X[: START + 300], y[: START + 300])
    save(stream, tmp_path / "model")
    _, arrays = read(tmp_path / "model")
    assert arrays["learned.phi.sample.columns"].shape == (3, 90)
    found = load(tmp_path / "model")
    assert repr(found) == repr(stream)
    for one in (stream, found):
        one.partial_fit(X[START + 300 :], y[START + 300 :])
    assert same(found.state, stream.state)


def test_a_tree_whose_nodes_are_not_its_own_is_cut_to_the_room_that_there_is():
    """A file may hold any nodes of which each comes after its parent."""
    rng = np.random.default_rng(0)
    sample = Sample(rng.normal(size=(2, 50)), rng.integers(2, size=50) * 1.0, np.ones(50), np.zeros((50, 1)), 50)
    for yes in ([13, *range(1, 15)], [1, 3, 3, 5, 5, 7, 7, 9, 9, 11, 11, 13, 13, 13, 14]):
        nodes = Nodes.stumps(1, 1, 15)
        nodes.yes[0] = yes
        nodes.values[0] = np.where(nodes.yes[0] == np.arange(15), np.inf, 0.0)
        nodes.missing_yes[0] = nodes.yes[0] == np.arange(15)
        nodes.cells[0, 0] = rng.integers(8, size=15)
        tree, cells = unfolded(nodes.columns[0], nodes.values[0], nodes.yes[0], nodes.missing_yes[0], nodes.cells[0, 0])
        assert len(tree.yes) == len(cells) <= 15
        made, of, share = deepen(nodes, 0, sample, sample.y[:, None], 2, rng, 15)
        assert len(of) == len(share) == (len(made.yes) + 1) // 2 <= 8
        nodes.plant(0, made, np.zeros(0, np.int64))
        assert nodes.cells.max() < 8
        assert of.max() < 8


def test_a_tree_that_is_grown_on_keeps_its_splits():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)).astype(np.float32), rng.integers(2, size=(300, 1)).astype(np.float32)
    weight = np.ones(300, np.float32)
    small = grow(X[:40], y[:40], weight[:40], 5, 2, np.random.default_rng(0)).tree
    n = len(small[0])
    nodes = Nodes.stumps(1, 1, 299)
    nodes.plant(0, Tree(*small), np.zeros(0, np.int64))
    ends = np.flatnonzero(small[2] == np.arange(n))
    leaf = ends[nodes.leaves(0, X)].astype(np.int32)
    large, parent, own = grow_on(X, y, weight, 5, 2, np.random.default_rng(1), small, leaf, 299)
    assert len(large[0]) > n
    split = small[2] > np.arange(n)
    for old, new in zip(small, large, strict=True):
        np.testing.assert_array_equal(new[:n][split], old[split])
    np.testing.assert_array_equal(parent[:n], np.arange(n))
    nodes.plant(0, Tree(*large), np.zeros(0, np.int64))
    finer = np.flatnonzero(large[2] == np.arange(len(large[2])))[nodes.leaves(0, X)]
    np.testing.assert_array_equal(own, finer)
    np.testing.assert_array_equal(parent[finer], leaf)
    assert np.bincount(finer)[finer].min() >= 5


def test_columns_with_one_value_do_not_count_as_tries():
    rng = np.random.default_rng(0)
    for d in (3, 64, 65, 130):
        X = np.zeros((100, d), np.float32)
        X[:, d - 2] = rng.normal(size=100)
        X[:, 0] = np.nan
        target = (X[:, d - 2] > 0).astype(np.float32)[:, None]
        tree = Tree(*grow(X, target, np.ones(100, np.float32), 1, 1, np.random.default_rng(d)).tree)
        split = tree.yes > np.arange(len(tree.yes))
        assert split.any()
        assert (tree.columns[split] == d - 2).all()
        nodes = Nodes.stumps(1, 1, 199)
        nodes.plant(0, tree, np.zeros(0, np.int64))
        leaf = nodes.leaves(0, X)
        assert set(np.bincount(leaf, target[:, 0]) / np.bincount(leaf)) == {0.0, 1.0}


def test_the_newest_rows_of_a_larger_sample():
    X, y = make_stream("random", 200, 4)
    whole = Sample.empty(150, 4)
    rows = Batch(X, y, 1.0 + np.arange(200), np.zeros(200, np.int64))
    for end in (30, 60, 100, 140, 190):
        part = rows[whole.count : end]
        whole.add(part, np.zeros((len(part), 1)))
        newest = whole.rows(60)
        n = min(60, end)
        assert newest.count == n == len(newest.y)
        order = np.argsort(newest.weight)
        np.testing.assert_array_equal(newest.weight[order], 1.0 + np.arange(end - n, end))
        np.testing.assert_array_equal(newest.columns[:, :n].T[order], X[end - n : end])
        np.testing.assert_array_equal(newest.y[order], y[end - n : end])


@pytest.mark.parametrize("wrong", [-1, 1.5, True, None, "8192"])
def test_what_is_no_number_of_rows_is_refused(wrong):
    with pytest.raises(ValueError, match="deep_rows must be an integer >= 1"):
        Forest(growth="renewed", deep_rows=wrong)


@pytest.mark.parametrize("wrong", [0, 1, -4, 2.5, True, None])
def test_what_is_no_pace_is_refused(wrong):
    with pytest.raises(ValueError, match="pace must be"):
        Forest(growth="renewed", pace=wrong)


@pytest.mark.parametrize("pace", [2, 3, 4, 8, 16, 1000])
def test_at_every_pace_each_tree_is_renewed_once_a_turn_and_then_deepened(pace):
    forest = Forest(7, growth="renewed", pace=pace, deep_rows=100)
    turns = n_renewals(pace)
    end = 64 * pace**turns
    assert end >= START > end // pace or pace > 256
    rows = [forest.next_planting(planted) for planted in range(7 * turns)]
    for planted, row in enumerate(rows):
        n = 64 * pace ** (planted // 7)
        assert n <= row < pace * n
        assert row == replace(forest, deep_rows=0).next_planting(planted)
    assert rows == sorted(rows)
    assert [forest.next_planting(7 * turns + k) - end for k in range(3)] == [0, 512, 1024]
    assert replace(forest, deep_rows=0).next_planting(7 * turns) == NEVER
    assert replace(forest, deep_rows=0).next_planting(2**52) == NEVER


def test_a_slower_pace_deepens_later():
    features = Forest(3, max_leaves=16, n_rows=40, growth="renewed", pace=16, deep_rows=90)
    X, y = make_stream("random", 1400, 3)
    stream = Stream(make(features)).partial_fit(X, y)
    assert stream.learned.phi.planted == 4
    stream.learned.phi.planted = 6
    assert isinstance(features.change(stream.learned.phi, START, np.array([1.0])), Deepened)


@pytest.mark.parametrize("growth", ["once", "boosted"])
def test_it_is_for_renewed_forests(growth):
    with pytest.raises(ValueError, match="deep_rows=100 is for growth='renewed'"):
        Forest(growth=growth, deep_rows=100)


def test_a_longer_stream_makes_finer_leaves_and_a_better_model():
    rng = np.random.default_rng(0)
    X = rng.random((40_000, 2)).astype(np.float32)
    y = np.floor(12 * X).sum(axis=1) % 2  # a chess board
    area = {}
    for deep_rows in (0, 2000):
        features = Forest(10, max_leaves=1024, n_rows=300, growth="renewed", deep_rows=deep_rows)
        scores, labels, _ = Stream(make(features)).partial_fit(X, y).recent()
        up, down = scores[labels > 0], scores[labels == 0]
        area[deep_rows] = (up[:, None] > down).mean()
    assert area[2000] > area[0] + 0.05
