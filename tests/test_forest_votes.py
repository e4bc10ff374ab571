"""Initial weights of a forest, from the labels of the rows that each leaf was grown on."""

from dataclasses import replace

import numpy as np
import pytest

from pairloom import Learner
from pairloom.features import Forest, Identity, Whitened
from pairloom.features.forest_growth import votes
from pairloom.memory import Window
from pairloom.pairs import Difference, OppositeClass, Order
from tests.test_forest import FORESTS, LEVELS, batch, rows


def odds(own, rest):
    return np.log(own / rest)


@pytest.mark.parametrize("classes", [2, 3])
def test_votes_are_log_odds_by_hand(classes):
    rng = np.random.default_rng(0)
    y, leaf, weight = rng.integers(classes, size=60).astype(float), rng.integers(4, size=60), rng.random(60) + 0.2
    y[leaf == 1] = 1.0
    targets = np.array([1.0]) if classes == 2 else np.arange(3.0)
    made = votes(batch(None, y, weight), leaf, 5, targets)
    assert made.shape == (len(targets), 5)
    unit = weight.mean()
    for k, target in enumerate(targets):
        share = weight[y == target].sum() / weight.sum()
        for cell in range(5):
            own = weight[(leaf == cell) & (y == target)].sum() + unit * share
            rest = weight[(leaf == cell) & (y != target)].sum() + unit * (1 - share)
            assert made[k, cell] == pytest.approx(odds(own, rest) - odds(share, 1 - share), rel=1e-10, abs=1e-12)
    np.testing.assert_allclose(made[:, 4], 0.0, atol=1e-12)  # no rows: what is known of all


def test_votes_of_numbers_by_hand():
    rng = np.random.default_rng(0)
    y, leaf, weight = 5 + 3 * rng.normal(size=60), rng.integers(4, size=60), rng.random(60) + 0.2
    made = votes(batch(None, y, weight), leaf, 5, np.zeros(0))
    mean = (weight * y).sum() / weight.sum()
    spread = np.sqrt((weight * (y - mean) ** 2).sum() / weight.sum())
    for cell in range(5):
        own = leaf == cell
        expected = (weight[own] * (y[own] - mean) / spread).sum() / (weight[own].sum() + weight.mean())
        assert made[0, cell] == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(votes(batch(None, y, weight), leaf, 5, np.zeros(0), True), spread * made)
    assert not votes(batch(None, np.full(60, 2.0), weight), leaf, 5, np.zeros(0)).any()


@pytest.mark.parametrize("small", [1e-14, 1e-20, 1e-100])
def test_votes_are_finite_whatever_the_weights(small):
    y, leaf = np.array([0.0, 1.0, 1.0, 0.0]), np.array([0, 1, 1, 1])
    for weight in (np.array([small, 1.0, 1.0, small]), np.array([1e100, small, small, 1e100])):
        made = votes(batch(None, y, weight), leaf, 2, np.array([1.0]))
        assert np.isfinite(made).all()
        assert made[0, 0] < made[0, 1]


@pytest.mark.parametrize("pairs", [OppositeClass(), OppositeClass(3), Order(), Difference()], ids=str)
@pytest.mark.parametrize("forest", [Forest(5, max_leaves=8, n_rows=100), replace(LEVELS, n_rows=100)], ids=str)
@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_the_first_weights_are_the_growers_votes(pairs, forest, engine):
    X, y = rows(100)
    y = X[:, 0] if pairs.n_groups == 0 else np.digitize(X[:, 0], [0.0] if pairs.n_groups == 2 else [-0.5, 0.5])
    weight = np.random.default_rng(0).random(100) + 0.5
    learner = Learner(forest, pairs=pairs, memory=Window(5), dtype="float64", seed=0, engine=engine)
    first = batch(X, pairs.encode(y), weight)
    state = learner.init(5, first)
    m, L = forest.n_cells, forest.max_leaves
    own = state.w.reshape(len(state.w), forest.n_trees, m // forest.n_trees, L)
    assert not own[:, :, :-1].any()
    targets = pairs.targets if pairs.n_groups else np.zeros(0)
    for k in range(forest.n_trees):
        expected = votes(first, state.phi.nodes.leaves(k, X), L, targets, pairs.exact) / np.sqrt(m)
        np.testing.assert_allclose(own[:, k, -1], expected, rtol=1e-12)
    assert own.any()
    np.testing.assert_array_equal(state.w, state.w_bar)
    assert not learner.init(5, None).w.any()


def test_maps_without_labels_start_at_nothing():
    X, y = rows(100)
    for features in (Identity(), replace(FORESTS["random"], scale="standard")):
        assert not Learner(features, seed=0).init(5, batch(X, (y > 0) * 1.0)).w.any()
    with pytest.raises(ValueError, match="a sparse map has too many features to be whitened"):
        Whitened(FORESTS["random"])
