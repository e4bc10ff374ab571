"""The mixture of a race: the best candidates lead, larger spaces are used where they help, the rest is dropped."""

import logging
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from pairloom import Stream
from pairloom.pairs import OppositeClass
from pairloom.race import Budget, Race
from pairloom.race.mixing import drop_negligible
from pairloom.race.race import DROP_FROM_ROW, MIN_ENTRANT_SHARE
from pairloom.race.state import Mixture
from tests.conftest import make_stream
from tests.generic import SMALL

FIELD = replace(SMALL, forests=SMALL.forests[:1])
"""Candidates of the kinds of the default portfolio."""

KERNELS = replace(SMALL, n_landmarks=64, large_landmarks=128)


def race(**changes):
    return Race(**{"portfolio": SMALL, "seed": 0, **changes})


def share(stream, *kinds):
    """The shares of the candidates of these kinds."""
    weights = stream.learned.mixture.weights
    names = [one.name for one in stream.learned.entrants]
    return sum(w for w, name in zip(weights, names, strict=True) if name.startswith(kinds)) / weights.sum()


def line(n, d=8, noise=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(X.sum(axis=1) + noise * rng.normal(size=n) > 0, 1, -1)


def xor(n, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 4))
    return X, np.where(X[:, 0] * X[:, 1] > 0, 1, -1)


def waves(n, seed=0):
    X = np.random.default_rng(seed).uniform(0, 6, size=(n, 1))
    return X, np.where(np.sin(4 * X[:, 0]) > 0, 1, -1)


@pytest.mark.parametrize("n", [200, 600, 1500])
def test_where_a_line_is_right_forests_do_not_lead(n):
    X, y = line(n + 2000)
    stream = Stream(race(portfolio=FIELD)).partial_fit(X[:n], y[:n])
    assert share(stream, "linear", "kernel") > share(stream, "forest")
    linear = Stream(stream.learned.entrants[[e.name for e in stream.learned.entrants].index("linear")].model)
    best = max(roc_auc_score(y[n:], s) for s in linear.partial_fit(X[:n], y[:n]).score(X[n:]).T)
    streams = [stream, *(Stream(race(portfolio=FIELD, seed=seed)).partial_fit(X[:n], y[:n]) for seed in (1, 2))]
    assert np.mean([roc_auc_score(y[n:], one.score(X[n:])) for one in streams]) > best - 0.02


@pytest.mark.parametrize("make", [xor, waves])
def test_where_no_line_is_right_the_linear_model_has_little_to_say(make):
    X, y = make(7000)
    stream = Stream(race(portfolio=KERNELS)).partial_fit(X[:5000], y[:5000])
    assert share(stream, "linear") < 0.1
    assert stream.model.mixture(stream.learned)[0] != "linear"
    assert roc_auc_score(y[5000:], stream.score(X[5000:])) > 0.9


def test_few_positives_are_no_worse_than_the_linear_model_alone():
    rng = np.random.default_rng(0)
    n = 3300
    X = rng.normal(size=(n + 20_000, 6))
    score = X @ [1.0, 1.0, 0.5, 0, 0, 0] + 0.7 * rng.normal(size=len(X))
    y = np.where(score > np.quantile(score, 1 - 32 / n), 1, -1)
    y[:n] = -1
    y[np.argsort(score[:n])[-32:]] = 1
    assert (y[:n] > 0).sum() == 32
    alone = replace(FIELD, forests=(), kernels=(), boosted=None)
    both = [Stream(race(portfolio=portfolio)).partial_fit(X[:n], y[:n]) for portfolio in (FIELD, alone)]
    mixed, linear = (roc_auc_score(y[n:], stream.score(X[n:])) for stream in both)
    assert [one.name for one in both[1].learned.entrants] == ["linear"]
    assert mixed > linear - 0.02
    assert linear > 0.8


def test_before_both_classes_were_seen_the_prior_predicts():
    X, _ = line(700)
    stream = Stream(race(portfolio=FIELD)).partial_fit(X, -np.ones(700))
    found = dict(zip([one.name for one in stream.learned.entrants], stream.learned.mixture.weights, strict=True))
    kernels = [name for name in found if name.startswith("kernel")]
    assert len(kernels) == 2
    total = sum(found.values())
    assert found["boosted"] == 0.0  # its prior weight grows with the rows of the rarer class
    for name in found.keys() - {"boosted"}:
        assert found[name] / total == pytest.approx((0.5 if name in kernels else 1.0) / 3)
    assert {one.auc for one in stream.learned.standings} == {0.5}


def test_three_classes_are_mixed_by_one_set_of_weights():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 3))
    y = np.digitize(X[:, 0] + 0.2 * rng.normal(size=4000), [-0.5, 0.5])
    stream = Stream(race(pairs=OppositeClass(3))).partial_fit(X[:2500], y[:2500])
    scores = stream.score(X[2500:])
    assert scores.shape == (1500, 3)
    # The middle class is on no side of a line.
    assert min(roc_auc_score(y[2500:] == c, scores[:, c]) for c in range(3)) > 0.85
    assert stream.learned.mixture.slopes.shape == (sum(len(one) for one in stream.learned.entrants), 3)
    assert stream.learned.mixture.weights.shape == (len(stream.learned.entrants),)


def test_weights_of_rows_matter():
    """Two rules, one in heavy rows, the other in light ones: the mixture follows the heavy rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    heavy = rng.random(3000) < 0.5
    y = np.where(np.where(heavy, X[:, 0], -X[:, 0]) > 0, 1, -1)
    stream = Stream(race()).partial_fit(X, y, np.where(heavy, 3.0, 0.2))
    assert roc_auc_score(np.where(X[:, 0] > 0, 1, -1), stream.score(X)) > 0.9
    assert stream.learned.counts.sum() == pytest.approx(3.0 * heavy.sum() + 0.2 * (~heavy).sum())


# A larger space.


@pytest.mark.parametrize("make", [waves, line])
def test_a_larger_space_comes_where_kernels_pay_and_not_where_they_do_not(make, caplog):
    X, y = make(4200)
    # Trees cannot follow a line across eight columns, nor can few of them follow waves.
    portfolio = KERNELS if make is waves else replace(KERNELS, kernels=(("wide", 64.0),))
    with caplog.at_level(logging.INFO, "pairloom.race"):
        stream = Stream(race(portfolio=portfolio)).partial_fit(X, y)
    kernels = [one for one in stream.model.entrants(stream.learned) if one.candidate.family == "kernel"]
    if make is waves:
        assert [(one.large, one.stage) for one in kernels] == [(128, 1024)]
        assert kernels[0].candidate.features.inner.n_landmarks == 128
        assert kernels[0].stream.learned.phi.inner.landmarks.shape == (1, 128)
        assert "has 128 features now" in caplog.text
    else:
        assert [one.large for one in kernels] == [0] * len(kernels)
        assert {one.stage for one in kernels} == {512}
        assert "features now" not in caplog.text


def test_a_budget_halves_the_larger_space_or_leaves_it_out():
    X, y = waves(4200)
    kernel = KERNELS.candidates(1)[-1]
    others = [one for one in KERNELS.candidates(1) if one.family != "kernel"]
    portfolio = replace(KERNELS, large_landmarks=256, kernels=(("minmax", 4.0),))
    for landmarks, expected in ((128, 128), (127, 0)):
        size = replace(kernel, features=kernel.large, large=None)
        limit = sum(one.microseconds(1) for one in [*others, size]) + (1e-6 if landmarks == 128 else -1e-6)
        stream = Stream(race(portfolio=portfolio, budget=Budget(microseconds=limit))).partial_fit(X, y)
        found = {one.name: one.large for one in stream.learned.entrants}
        assert found["kernel, width 4, minmax"] == expected
        running = stream.model.entrants(stream.learned)
        assert sum(one.candidate.microseconds(1) for one in running) <= limit


def test_an_enlarged_candidate_predicts_when_the_rest_of_the_mixture_was_dropped():
    """All weight is on a kernel that is dropped, as its family is enlarged: the enlarged one takes its place."""
    X, y = waves(4200)
    stream = Stream(race(portfolio=KERNELS)).partial_fit(X[:2040], y[:2040])
    (grown,) = [one for one in stream.learned.coming if one.large]
    at = [one.name for one in stream.learned.entrants]
    twin = next(name for name in at if name.startswith("kernel") and name != grown.name)
    model, state = stream.model, stream.learned
    mix = Race._mix

    def only_the_twin(self, state):
        mix(self, state)
        weights = np.array([float(name == twin) for name in at])
        state.mixture = Mixture(drop_negligible(weights, weights), state.mixture.slopes, state.mixture.shifts)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Race, "_mix", only_the_twin)
        stream.partial_fit(X[2040:2100], y[2040:2100])
    assert twin not in [one.name for one in state.entrants]
    assert model.mixture(state)
    assert len(np.unique(stream.score(X))) > 100


# Elimination.


def test_who_has_next_to_nothing_to_say_leaves_and_all_that_is_kept_follows():
    X, y = xor(DROP_FROM_ROW + 1500)
    stream = Stream(race(portfolio=KERNELS)).partial_fit(X[: DROP_FROM_ROW - 1], y[: DROP_FROM_ROW - 1])
    before = [one.name for one in stream.learned.entrants]
    stream.partial_fit(X[DROP_FROM_ROW - 1 : DROP_FROM_ROW], y[DROP_FROM_ROW - 1 : DROP_FROM_ROW])
    state = stream.learned
    last = [one for one in state.standings if one.row == DROP_FROM_ROW]
    assert [one.name for one in last] == before
    staying = [one.name for one in last if one.share >= MIN_ENTRANT_SHARE]
    assert "linear" not in staying
    assert [one.name for one in state.entrants] == staying
    n_models = sum(len(one) for one in state.entrants)
    assert len(state.mixture.weights) == len(staying)
    assert len(state.mixture.slopes) == len(state.mixture.shifts) == n_models == state.evidence.n_models
    assert all(window.scores.shape[1] == n_models for window in [*state.evidence.open, *state.evidence.raw])
    assert state.evidence.areas.shape == (16, n_models)
    np.testing.assert_array_equal(state.evidence.areas[-1], state.evidence.raw[-1].auc(np.array([1])))
    stream.partial_fit(X[DROP_FROM_ROW:], y[DROP_FROM_ROW:])
    assert roc_auc_score(y[-1000:], stream.score(X[-1000:])) > 0.9


def test_nobody_leaves_before_row_16384_since_a_rule_may_change():
    stream = Stream(race()).partial_fit(*xor(DROP_FROM_ROW - 1024))
    last = [one for one in stream.learned.standings if one.row == 14_336]
    assert min(one.share for one in last if one.name == "linear") < MIN_ENTRANT_SHARE
    assert [one.name for one in stream.learned.entrants] == [one.name for one in last]


def test_constant_scores_and_rows_that_say_nothing_are_no_harm():
    _, y = make_stream("random", 1300, 2)
    stream = Stream(race()).partial_fit(np.ones((1300, 2)), y)
    assert np.isfinite(stream.score(np.ones((3, 2)))).all()
    assert np.isfinite(stream.learned.mixture.weights).all()
