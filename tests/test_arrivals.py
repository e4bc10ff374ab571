"""Scores on arrival, and their AUC."""

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from pairloom import AUCClassifier, Grid, Learner, PairwiseRanker, PairwiseRegressor, Stream
from pairloom.base.clock import next_multiple
from pairloom.estimators import concordance
from pairloom.features import Gaussian, Identity, RandomFourier
from pairloom.memory import Latest
from pairloom.steps import Constant
from pairloom.stream import ArrivalScores, Hook
from pairloom.systems import FPOGD, ExactAUC
from tests.conftest import make_stream
from tests.generic import SMALL

RULES = {"gamma": "median", "scale": "standard", "random_state": 0}
MODELS = {
    "rules on data": lambda: FPOGD(n_components=32, **RULES),
    "fixed rules": lambda: FPOGD(n_components=32, random_state=0),
    "race": lambda: AUCClassifier(portfolio=SMALL, random_state=0),
    "exact": lambda: ExactAUC(scale="standard"),
}


def arrivals(model):
    return model.stream_.state.observed["arrivals"]


@pytest.mark.parametrize("name", ["rules on data", "fixed rules"])
def test_they_are_the_scores_given_before_each_row_was_learned(name):
    X, y = make_stream("random", 300, 3)
    model, said = MODELS[name](), []
    for x, label in zip(X, y, strict=True):
        said.append(model.stream_.score_rows(x[None, :].astype(np.float32))[0] if said else 0.0)
        model.learn_one(x, label)
    np.testing.assert_allclose(arrivals(model).scores[:300, 0], said, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_the_cuts_between_calls_do_not_show(name):
    X, y = make_stream("random", 1300, 3)
    whole, parts = MODELS[name]().fit(X, y), MODELS[name]()
    for rows in np.split(np.arange(1300), [1, 3, 70, 71, 256, 300, 690, 1024, 1030]):
        parts.partial_fit(X[rows], y[rows])
    one, other = arrivals(whole), arrivals(parts)
    assert one.count == other.count
    np.testing.assert_array_equal(one.scores, other.scores)


def test_neither_a_replay_nor_a_new_mixture_rewrites_them():
    X, y = make_stream("random", 600, 3)
    model = MODELS["race"]().partial_fit(X[:200], y[:200])
    before = arrivals(model).scores[:128].copy()
    recent = model.stream_.state.observed["recent"].scores[:128].copy()
    model.partial_fit(X[200:], y[200:])
    np.testing.assert_array_equal(arrivals(model).scores[:128], before)
    assert (model.stream_.state.observed["recent"].scores[:128] != recent).any()


def test_a_grid_shows_the_rows_of_its_open_block_before_a_replay():
    X, y = make_stream("random", 300, 3)
    learner = Learner(features=RandomFourier(16, Gaussian("median")), seed=0)
    whole, rows = (Stream(Grid([learner, learner], 32), [ArrivalScores()]) for _ in range(2))
    whole.partial_fit(X, y)
    for i in range(300):
        rows.partial_fit(X[i : i + 1], y[i : i + 1])
    one, other = (stream.state.observed["arrivals"] for stream in (whole, rows))
    np.testing.assert_allclose(one.scores, other.scores, rtol=1e-4, atol=1e-5)


def test_auc_is_that_of_the_newest_rows_with_an_interval():
    X, y = make_stream("random", 5000, 3)
    model = FPOGD(n_components=64, **RULES).fit(X, y)
    places = np.arange(5000 - 4096, 5000) % 4096
    expected = roc_auc_score(y[-4096:], model._labels.sign * arrivals(model).scores[places, 0])
    assert model.auc_.value == pytest.approx(expected, abs=1e-12)
    assert model.auc_.low < expected < model.auc_.high
    assert str(model.auc_).startswith(f"{expected:.4f} (")


def test_auc_of_one_class_is_not_a_number_and_of_three_a_mean():
    X, _ = make_stream("random", 400, 3)
    assert np.isnan(FPOGD(random_state=0).partial_fit(X[:5], np.zeros(5)).auc_.value)
    three = np.digitize(X.sum(axis=1), [-1, 1])
    model = FPOGD(kernel="linear", eta=0.01, random_state=0).fit(X, three)
    scores = arrivals(model).scores[:400]
    each = [roc_auc_score(three == k, scores[:, k]) for k in range(3)]
    assert model.auc_.value == pytest.approx(np.mean(each))
    assert model.auc_.low < model.auc_.value < model.auc_.high


@pytest.mark.parametrize("kind", [PairwiseRanker, PairwiseRegressor])
def test_rankers_and_regressors_know_their_concordance_inside_queries(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    queries = np.arange(600) // 10
    y = X[:, 0] + 5 * rng.normal(size=60)[queries]
    model = kind(n_components=64, random_state=0).fit(X, y, groups=queries)
    scores = arrivals(model).scores[:600, 0]
    assert model.concordance_ == concordance(y, scores, groups=queries) > 0.7
    assert np.isnan(kind().partial_fit(X[:3], np.ones(3)).concordance_)


def test_a_hook_that_is_added_later_acts_from_then_on():
    @dataclass(frozen=True)
    class Ticks(Hook):
        name = "ticks"

        def init(self, model):
            return []

        def next_row(self, t):
            return next_multiple(t, 10)

        def tick(self, own, state, model):
            own.append(state.t)

    X, y = make_stream("random", 60, 3)
    model = Learner(Identity(), step=Constant(0.01), memory=Latest("opposite"), seed=0)
    before = Stream(model).partial_fit(X[:25], y[:25])
    after = Stream(model, [Ticks()])
    after.resume(before.state)
    after.partial_fit(X[25:], y[25:])
    assert after.state.observed["ticks"] == [30, 40, 50, 60]
