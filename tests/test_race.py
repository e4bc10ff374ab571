"""A race: evidence, exact paths, phases, budgets and pins."""

import pickle
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from pairloom import Learner, Stream
from pairloom.base.clock import mixes_at, next_evaluation, next_solution
from pairloom.metrics.auc import weighted_auc
from pairloom.models.exact_path import ExactPath
from pairloom.pairs import OppositeClass
from pairloom.race import Budget, Portfolio, Race
from pairloom.race.evidence import RAW, ROOM, VERDICTS, Evidence, ScoredWindow
from pairloom.race.mixing import helps
from pairloom.race.race import SETTLE_ROWS, tame
from tests.conftest import make_stream
from tests.generic import assert_same

SMALL = Portfolio(
    scales=("wide",), widths=(1.0,), near_widths=(1.0,), far_widths=(), n_components=64, n_landmarks=(64, 128), rank=32,
    whitening=(4, 8), exact_rank=16, scout_landmarks=32, scout_rank=16,
)  # fmt: skip
ROWS = SETTLE_ROWS + 300
BINDING = Budget(microseconds=0.25)
"""Less than all of SMALL's models cost."""


def areas_of(window, targets):
    """``ScoredWindow.auc`` by scikit-learn."""
    return np.array(
        [
            np.mean(
                [
                    roc_auc_score(window.labels == c, window.scores[:, m, k], sample_weight=window.weights)
                    for k, c in enumerate(targets)
                ]
            )
            for m in range(window.scores.shape[1])
        ]
    )


def rows_of(rng, n, share=0.3, n_models=2):
    """Scores of models, the later ones worse, with labels 0 and 1."""
    labels = (rng.random(n) < share).astype(float)
    noise = rng.normal(size=(n, n_models, 1)) * np.arange(1, n_models + 1)[:, None]
    return labels[:, None, None] + noise, labels, np.ones(n)


@pytest.fixture(scope="module")
def stream():
    X, y = make_stream("random", ROWS, 4)
    return X, y


@pytest.fixture(scope="module")
def settled(stream):
    return Stream(Race(portfolio=SMALL, budget=BINDING, seed=0)).partial_fit(*stream)


def test_weighted_areas_are_scikit_learns():
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 6, size=(200, 3)).astype(float)
    positive, weights = rng.random(200) < 0.3, rng.choice([0.1, 1.0, 7.0], 200)
    expected = [roc_auc_score(positive, column, sample_weight=weights) for column in scores.T]
    np.testing.assert_allclose(weighted_auc(scores, positive, weights), expected, rtol=1e-12)


def test_three_classes_are_each_against_the_rest_and_too_few_rows_say_nothing():
    rng = np.random.default_rng(1)
    window = ScoredWindow(rng.normal(size=(60, 2, 3)), rng.integers(0, 3, 60).astype(float), rng.random(60) + 0.1)
    np.testing.assert_allclose(window.auc(np.arange(3)), areas_of(window, range(3)), rtol=1e-12)
    window.labels[window.labels == 2] = 0.0
    window.labels[:2] = 2.0
    two = replace(window, scores=window.scores[:, :, :2])
    np.testing.assert_allclose(window.auc(np.arange(3)), areas_of(two, range(2)), rtol=1e-12)


def test_windows_close_at_512_rows_and_ten_of_the_rarer_class():
    evidence, rng = Evidence(np.array([1]), 2), np.random.default_rng(0)
    scores, labels, weights = rows_of(rng, 512, 0.0)
    labels[:9] = 1.0
    assert not evidence.add(scores[:511], labels[:511], weights[:511])
    assert evidence.verdict()[0][0] == evidence.open[0].auc(np.array([1]))[0]
    assert not evidence.add(scores[511:], labels[511:], weights[511:])
    assert evidence.add(scores[:1], np.ones(1), np.ones(1))
    assert evidence.closed == len(evidence.raw) == 1
    assert not evidence.open
    assert not evidence.add(*rows_of(rng, 511, 0.5))
    assert evidence.windows() == evidence.raw
    assert evidence.add(*rows_of(rng, 1, 0.5))


def test_windows_do_not_wait_for_a_class_that_has_gone():
    evidence, rng = Evidence(np.arange(3.0), 1), np.random.default_rng(0)
    for k in range(40):
        labels = rng.integers(0, 2, 128).astype(float)
        if k == 0:
            labels[:4] = 2.0
        evidence.add(rng.normal(size=(128, 1, 3)), labels, np.ones(128))
    assert evidence.closed > 1


def test_nothing_is_said_without_three_rows_of_each_class():
    evidence = Evidence(np.array([1]), 2)
    scores, labels, weights = rows_of(np.random.default_rng(0), 40, 0.0)
    for positives in range(3):
        assert evidence.windows() == []
        assert (evidence.verdict()[0] == 0.5).all()
        assert np.isinf(evidence.verdict()[1]).all()
        evidence.add(scores, np.where(np.arange(40) == positives, 1.0, labels), weights)
    assert len(evidence.windows()) == 1


def test_an_open_window_keeps_the_newest_rows_of_each_class():
    evidence, rng = Evidence(np.array([1]), 2), np.random.default_rng(0)
    for _ in range(100):
        evidence.add(*rows_of(rng, 128, 0.0))
    scores, labels, weights = rows_of(rng, 5, 1.0)
    evidence.add(scores, labels, weights)
    for _ in range(20):
        newest = rows_of(rng, 128, 0.0)
        evidence.add(*newest)
    (window,) = evidence.open
    assert len(window.labels) == ROOM + 5
    np.testing.assert_array_equal(window.scores[window.labels == 1], scores)
    np.testing.assert_array_equal(window.scores[-128:], newest[0])
    assert evidence.closed == 0


def test_the_verdict_is_on_the_newer_half():
    evidence, rng = Evidence(np.array([1]), 3), np.random.default_rng(0)
    for _ in range(VERDICTS + 5):
        evidence.add(*rows_of(rng, 512, n_models=3))
    assert evidence.closed == VERDICTS + 5
    assert len(evidence.verdicts) == VERDICTS
    assert len(evidence.raw) == RAW
    newer = evidence.verdicts[VERDICTS // 2 :]
    np.testing.assert_array_equal([w.auc(np.array([1])) for w in evidence.raw], newer)
    means, errors = evidence.verdict()
    np.testing.assert_array_equal(means, newer.mean(axis=0))
    assert means.argmax() == 0
    np.testing.assert_allclose(errors, np.std(newer[:, [0]] - newer, axis=0, ddof=1) / np.sqrt(VERDICTS // 2))
    three = replace(evidence, verdicts=evidence.verdicts[:3], closed=3)
    np.testing.assert_array_equal(three.verdict()[0], evidence.verdicts[1:3].mean(axis=0))


def test_a_mixture_of_independent_views_beats_each_and_forgetting_keeps_the_rest():
    evidence, rng = Evidence(np.array([1]), 3), np.random.default_rng(0)
    for _ in range(6):
        scores, labels, weights = rows_of(rng, 512, n_models=3)
        scores[:, 2] = 1e4 * (labels[:, None] + rng.normal(size=(512, 1)))
        evidence.add(scores, labels, weights)
    both, alone = evidence.mixture([0, 2]), [evidence.mixture([i]) for i in range(3)]
    np.testing.assert_allclose(alone[2], evidence.verdicts[:, 2])
    assert (both > alone[0]).all()
    assert (both > alone[2]).all()
    evidence.add(*rows_of(rng, 100, n_models=3))
    before = evidence.verdict()[0]
    evidence.only([2, 0])
    np.testing.assert_array_equal(evidence.verdict()[0], before[[2, 0]])
    np.testing.assert_allclose(evidence.mixture([1, 0]), both)
    assert evidence.open[0].scores.shape == (100, 2, 1)


def test_helping_is_one_standard_error_below_at_most():
    old = np.array([0.8, 0.9, 0.8, 0.9])
    gain = np.array([0.01, -0.02, 0.01, -0.02])
    error = gain.std(ddof=1) / 2
    assert helps(old + gain - gain.mean() - 0.99 * error, old)
    assert not helps(old + gain - gain.mean() - 1.01 * error, old)
    assert helps(old, old)
    assert not helps(old[:3], old[:3])
    assert helps(old[:3] + 1e-6, old[:3])


def test_a_path_has_the_minimiser_for_each_penalty():
    X, y = make_stream("random", 700, 5)
    weight = np.random.default_rng(0).choice([0.5, 1.0, 2.0], 700)
    path = Stream(ExactPath(dtype="float64", alphas=(0.0, 0.1, 4.0))).partial_fit(X, y, weight)
    cov = [np.cov(X[y == c].T, aweights=weight[y == c], ddof=0) for c in (1, -1)]
    delta = np.subtract(*(np.average(X[y == c], axis=0, weights=weight[y == c]) for c in (1, -1)))
    G = cov[0] + cov[1] + np.outer(delta, delta)
    for alpha, w in zip(path.model.alphas, path.coef, strict=True):
        penalty = alpha * np.trace(G) / weight.sum()
        np.testing.assert_allclose(w, np.linalg.solve(G + 0.5 * penalty * np.eye(5), delta), rtol=1e-9)


def test_a_path_solves_twice_in_every_doubling():
    rows = [0]
    while rows[-1] < 64:
        rows.append(next_solution(rows[-1]))
    assert rows == [0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]
    with pytest.raises(ValueError, match="alphas"):
        ExactPath(alphas=(1.0, -1.0))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_model_of_a_path_goes_on_bit_for_bit(n_classes):
    X, y = make_stream("random", 900, 3)
    y = y if n_classes == 2 else np.digitize(X[:, 0], [-0.5, 0.5])
    path = ExactPath(pairs=OppositeClass(n_classes), alphas=(0.01, 1.0, 10.0), seed=0)
    whole = Stream(path).partial_fit(X[:500], y[:500])
    picked = [pickle.loads(pickle.dumps(whole)).only(index) for index in (2, 0)]
    assert [one.model.alphas for one in picked] == [(10.0,), (0.01,)]
    size = len(path.pairs.targets)
    for _ in range(2):
        for one, first in zip(picked, (2 * size, 0), strict=True):
            rows = np.arange(first, first + size)
            np.testing.assert_array_equal(one.coef, whole.coef[rows])
            scores = whole.state.observed["recent"].scores[:, rows]
            np.testing.assert_array_equal(one.state.observed["recent"].scores, scores)
        for stream in (whole, *picked):
            stream.partial_fit(X[500:], y[500:])


def test_far_scores_are_drawn_in_and_keep_their_order():
    scores = np.array([-1e6, -40.0, -4.0, -1.0, 0.0, 3.9, 4.1, 1e30])
    tamed = tame(scores)
    assert (np.diff(tamed) > 0).all()
    np.testing.assert_array_equal(tamed[2:6], scores[2:6])
    np.testing.assert_allclose(tamed[[0, 1]], [-4 - np.log(1e6 - 3), -4 - np.log(37)])


def test_rows_at_which_things_happen():
    rows = [16]
    while rows[-1] < 4 * SETTLE_ROWS:
        rows.append(next_evaluation(rows[-1]))
    mixes = [t for t in rows if mixes_at(t, SETTLE_ROWS)]
    assert mixes[:8] == [16, 32, 64, 128, 256, 512, 1024, 1536]
    assert {t for t in mixes if t >= SETTLE_ROWS} == {SETTLE_ROWS, 2 * SETTLE_ROWS, 4 * SETTLE_ROWS}


def test_cuts_and_pickles_in_any_phase_do_not_matter(stream, settled):
    X, y = stream
    parts, rng = Stream(Race(portfolio=SMALL, budget=BINDING, seed=0)), np.random.default_rng(0)
    cuts = [*np.cumsum(rng.integers(1, 900, 100)), 1, 2, 15, 17, 1000, 1025, 8100, 8193, 8300, 16383, 16385, 16400]
    copies = {15, 1000, 1025, 8100, 8300, 16383, 16400}
    for start, end in pairwise(sorted({0, *(int(c) for c in cuts if c < ROWS), ROWS})):
        parts.partial_fit(X[start:end], y[start:end])
        parts.score(X[:3])
        if end in copies:
            parts = pickle.loads(pickle.dumps(parts))
    assert_same(settled.state, parts.state)
    np.testing.assert_array_equal(settled.score(X[:100]), parts.score(X[:100]))


def test_the_field_narrows_and_settles_within_the_budget(stream, settled):
    X, y = stream
    race, counts = Stream(Race(portfolio=SMALL, budget=BINDING, seed=0)), {}
    for start, end in pairwise([0, 1023, 1024, 8191, 8192, SETTLE_ROWS - 1, SETTLE_ROWS]):
        race.partial_fit(X[start:end], y[start:end])
        counts[end] = [len(one) for one in race.learned.entrants]
    cost = [one.price(4).cost for one in race.learned.entrants]
    assert counts[1023] == [6, 6]
    assert sorted(counts[1024])[-3:] == [6, 6, 6]
    assert counts[8191] == counts[1024]
    assert set(counts[8192]) == {1} == set(counts[SETTLE_ROWS - 1]) == set(counts[SETTLE_ROWS])
    assert len(counts[SETTLE_ROWS]) < len(counts[8192]) <= len(counts[8191])
    assert sum(cost) <= BINDING.limit(4) < sum(c.microseconds(4) for c in SMALL.finalists("wide", 1.0))
    np.testing.assert_array_equal(np.sort(race.learned.chosen[:, 0]), np.arange(len(cost)))
    assert roc_auc_score(y[:3000], settled.score(X[:3000])) > 0.95
    assert settled.nbytes < Stream(Race(portfolio=SMALL, seed=0)).partial_fit(X[:1500], y[:1500]).nbytes


def test_recent_scores_are_those_of_the_mixture_before_learning(stream):
    X, y = stream
    race = Stream(Race(portfolio=replace(SMALL, exact=None), seed=0, dtype="float64")).partial_fit(X[:9216], y[:9216])
    assert all(isinstance(one.model, Learner) for one in race.learned.entrants)
    said = []
    for t in range(9216, 9344):
        said.append(race.score(X[t : t + 1])[0])
        race.partial_fit(X[t : t + 1], y[t : t + 1])
    rows = np.arange(9216, 9344) % 4096
    np.testing.assert_allclose(race.state.observed["recent"].scores[rows, 0], said, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(race.state.observed["recent"].labels[rows], (y[9216:9344] > 0))
    assert race.state.observed["recent"].count == 9344


@pytest.mark.parametrize("kind", ["narrow", "linear"])
def test_what_is_right_for_the_stream_leads(kind):
    rng = np.random.default_rng(3)
    if kind == "narrow":
        X = rng.uniform(0, 6, size=(3000, 1))
        y = np.where(np.floor(2 * X[:, 0]) % 2 > 0, 1, -1)
    else:
        X = rng.normal(size=(3000, 30))
        y = np.where(X.sum(axis=1) + 2 * rng.normal(size=3000) > 0, 1, -1)
    portfolio = replace(SMALL, widths=(1.0, 32.0), near_widths=(1.0, 2.0))
    race = Stream(Race(portfolio=portfolio, seed=0)).partial_fit(X, y)
    best = race.learned.entrants[race.model._ranked(race.learned)[0].entrant].candidate
    assert best.factor == (32.0 if kind == "narrow" else None)
    areas = race.learned.evidence.mixture([i for i, _ in race.learned.chosen])
    assert len(areas) >= 4
    factors = {one.candidate.factor for one in race.learned.entrants}
    assert (32.0 in factors) == (kind == "narrow")
