"""Scores of entrants by compiled loops, and models that only predict."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import pairloom
from pairloom import AUCClassifier
from pairloom.features import RandomFourier
from tests.conftest import make_stream
from tests.generic import SMALL, assert_same

ROWS = 2300


@pytest.fixture(scope="module")
def stream():
    return make_stream("random", ROWS + 200, 4)


@pytest.fixture(scope="module", params=["float32", "float64"])
def model(request, stream):
    """With all candidates in the mixture."""
    X, y = stream
    fitted = AUCClassifier(portfolio=SMALL, random_state=0, dtype=request.param).fit(X[:ROWS], y[:ROWS])
    mixture = fitted.stream_.learned.mixture
    mixture.weights = np.linspace(0.2, 1.0, len(mixture.weights))
    return fitted


@pytest.fixture(scope="module")
def three():
    """Three classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 3))
    y = np.digitize(X[:, 0] ** 2 + X[:, 1], [0.3, 1.5])
    return X, AUCClassifier(portfolio=SMALL, random_state=0, pos_label=2).fit(X, y)


def scores_of(model, X, generic):
    """The score of each entrant, by its models' scores or by the compiled loops."""
    state, first, found = model.stream_.learned, 0, []
    for one in state.entrants:
        own = slice(first, first + len(one))
        first = own.stop
        slopes, shifts = state.mixture.slopes[own], state.mixture.shifts[own]
        if generic:
            scores = one.model.quick(one.stream.learned, X).reshape(X.shape[0], *slopes.shape)
            found.append(((scores - shifts) * slopes).sum(axis=1))
        else:
            found.append(one.model.mixed_scores(one.stream.learned, X, slopes, shifts))
    return np.array(found)


def test_compiled_loops_agree_with_the_models_scores(model, stream, three):
    X = stream[0][ROWS:].astype(model.dtype)
    tolerance = 2e-5 if model.dtype == "float32" else 1e-9
    expected = scores_of(model, X, generic=True)
    assert np.abs(expected).max() > 1
    np.testing.assert_allclose(scores_of(model, X, generic=False), expected, rtol=0, atol=tolerance)
    rows = three[0].astype(np.float32)
    np.testing.assert_allclose(scores_of(three[1], rows, False), scores_of(three[1], rows, True), rtol=0, atol=2e-5)


def test_far_values_and_csr_rows_say_the_same(model, stream):
    X = stream[0][ROWS : ROWS + 20].astype(model.dtype)
    X[3, 1] = 1e30
    expected = scores_of(model, X, generic=True)
    np.testing.assert_allclose(scores_of(model, X, generic=False), expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(scores_of(model, csr_array(X), generic=False), expected, rtol=1e-4, atol=1e-4)


def test_a_row_alone_has_the_score_that_it_has_among_others(model, stream):
    X = stream[0][ROWS:]
    for one in (model, model.frozen()):
        np.testing.assert_array_equal([one.score_one(x) for x in X[:40]], one.score_many(X)[:40])


def test_landmarks_have_new_weights_once_they_are_solved_for(stream):
    X, y = stream
    learning = AUCClassifier(portfolio=SMALL, random_state=0).fit(X[:1000], y[:1000])
    before = learning.decision_function(X[-50:])
    learning.partial_fit(X[1000:2100], y[1000:2100])
    assert np.abs(learning.decision_function(X[-50:]) - before).max() > 0
    fresh = pairloom.base.tree.copy(learning.stream_.learned)  # derived fields are left out
    race = learning.stream_.model
    rows = X[-50:].astype(np.float32)
    np.testing.assert_array_equal(race.score(fresh, rows), race.score(learning.stream_.learned, rows))


def test_a_frozen_model_predicts_the_same_and_is_smaller(model, stream, three, tmp_path):
    for one, X in ((model, stream[0][ROWS:]), (three[1], three[0])):
        frozen = one.frozen()
        np.testing.assert_allclose(frozen.decision_function(X), one.decision_function(X), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(frozen.predict_proba(csr_array(X)), one.predict_proba(X), rtol=0, atol=1e-4)
        assert frozen.mixture_ == one.mixture_
        assert frozen.n_pairs_ == one.n_pairs_
        assert frozen.auc_ == one.auc_
        assert frozen.nbytes_ < 0.5 * one.nbytes_
        np.testing.assert_array_equal(frozen.race_["auc"], one.race_["auc"])
        pairloom.save(frozen, tmp_path / "model.pairloom")
        found = pairloom.load(tmp_path / "model.pairloom")
        assert_same(found, frozen)
        np.testing.assert_array_equal(found.score_many(X), frozen.score_many(X))
        assert_same(frozen.frozen(), frozen)


def test_a_frozen_model_learns_nothing_and_the_model_goes_on(stream):
    X, y = stream
    one = AUCClassifier(portfolio=SMALL, random_state=0).fit(X[:900], y[:900])
    frozen = one.frozen()
    before = frozen.score_many(X[-20:])
    for learn in (frozen.fit, frozen.partial_fit):
        with pytest.raises(ValueError, match="frozen"):
            learn(X[:9], y[:9])
    with pytest.raises(ValueError, match="frozen"):
        frozen.learn_one(X[0], y[0])
    one.partial_fit(X[900:2000], y[900:2000])
    np.testing.assert_array_equal(frozen.score_many(X[-20:]), before)
    assert_same(one, AUCClassifier(portfolio=SMALL, random_state=0).fit(X[:2000], y[:2000]))


def test_a_model_before_its_first_mixture_can_be_frozen():
    early = AUCClassifier(portfolio=SMALL, random_state=0).fit(np.eye(6), [0, 1, 0, 1, 0, 1]).frozen()
    np.testing.assert_array_equal(early.decision_function(np.eye(6)), 0.0)


def test_maps_without_a_frozen_form_are_named(stream):
    X, y = stream
    pinned = AUCClassifier(portfolio=SMALL, features=RandomFourier(16), random_state=0).fit(X[:300], y[:300])
    with pytest.raises(ValueError, match="RandomFourier"):
        pinned.frozen()


def test_files_of_frozen_trees_that_run_in_circles_are_refused(model, tmp_path):
    frozen = model.frozen()
    forest = next(one for one in frozen.stream_.learned.members if hasattr(one, "yes"))
    inner = np.argwhere(forest.yes > np.arange(forest.yes.shape[1]))[-1]
    forest.yes[tuple(inner)] = 0
    with pytest.raises(ValueError, match=r"not saved: .*members.\d must have every node after its parent"):
        pairloom.save(frozen, tmp_path / "bad.pairloom")
