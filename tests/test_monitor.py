"""The monitor of a running model: its history."""

from functools import cache

import numpy as np
import pytest

from pairloom import AUCClassifier, ModelFileError, load, save
from pairloom.base.clock import next_race_calibration
from pairloom.base.tree import copy, nbytes, node, same
from pairloom.estimators.classifier import PairwiseClassifier
from pairloom.metrics.alerts import budget_cut, choose_threshold
from pairloom.race import Portfolio
from pairloom.stream import history
from pairloom.stream.history import POINTS, QUANTILES, Timeline

CHEAP = Portfolio(forests=(), kernels=())
TICKS = [16, 32, 64, *range(128, 2048, 128), 2048, 2304, 2560]


@node
class Alarms:
    """What a detector of drift would have in the state."""

    alarms: list[int]


def model(**rest):
    return AUCClassifier(portfolio=CHEAP, random_state=0, **rest)


@cache
def rows(n=2700):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + rng.normal(size=n) > 1.5).astype(int)


@cache
def _fitted():
    made = model().fit(*rows())
    made.stream_.state.observed["drift"] = Alarms([700, 1900])
    return made


@pytest.fixture
def fitted():
    """2,700 rows, and two alarms of drift among them."""
    return _fitted().with_state(copy(_fitted().state_))


def timeline(one) -> Timeline:
    return one.stream_.state.observed["history"]


# The history.


def test_cuts_between_calls_do_not_show(fitted):
    X, y = rows()
    parts = model()
    for x, label in zip(X[:300], y[:300], strict=True):
        parts.learn_one(x, label)
    for some in np.split(np.arange(300, 2700), [1, 40, 900, 901, 2000]):
        parts.partial_fit(X[some], y[some])
    del fitted.stream_.state.observed["drift"]
    assert same(parts.state_, fitted.state_)
    assert timeline(fitted).rows[: timeline(fitted).count].tolist() == TICKS


def test_a_point_is_what_the_model_said_at_its_row():
    X, y = rows()
    one = model().partial_fit(X[:1920], y[:1920])
    line, observed = timeline(one), one.stream_.state.observed
    np.testing.assert_array_equal(line.areas[line.count - 1], one.auc_)
    scores = observed["arrivals"].scores[:1920, 0]
    a, b = one.calibration_[0]
    for side, code in enumerate((1, 0)):
        own = a * scores[observed["recent"].labels[:1920] == code] + b
        np.testing.assert_allclose(line.scores[line.count - 1, side], np.quantile(own, QUANTILES))
    known = observed["recent"].scores[:1920, 0].copy()
    one.partial_fit(X[1920:2048], y[1920:2048])
    new = observed["arrivals"].scores[1920:2048, 0]
    alerts = [(sign * new >= budget_cut(sign * known, 0.01)).sum() for sign in (1, -1)]
    assert line.alerts[line.count - 1].tolist() == [*alerts, 128]
    assert sum(alerts) > 0


def test_a_budget_cut_is_the_threshold_without_labels():
    rng = np.random.default_rng(0)
    for n in (2, 7, 99, 100, 250):
        scores = rng.normal(size=n).round(1)
        for rate in (0.01, 0.1, 0.5, 1.0):
            cut = choose_threshold(np.arange(n) == 0, scores, alert_rate=rate)
            assert budget_cut(scores, rate) == float(cut)


def test_three_million_rows_are_256_points_at_most_and_nothing_is_lost():
    line, rng, row, before = Timeline(), np.random.default_rng(0), 0, 0
    empty, ticks = nbytes(line), []
    while (row := next_race_calibration(row)) <= 3_000_000:
        areas, scores = rng.normal(size=3), rng.normal(size=(2, 5))
        ticks.append((row, areas, np.array([rng.integers(9), 0.0, row - before]), scores))
        line.add(*ticks[-1])
        before = row
        assert line.count <= POINTS
        assert line.last == row
    assert nbytes(line) == empty
    assert line.each == 8
    assert line.alerts.sum(axis=0).tolist() == sum(tick[2] for tick in ticks).tolist()
    for k in range(line.count):
        own = ticks[k * 8 : k * 8 + 8]
        assert line.rows[k] == own[-1][0]
        np.testing.assert_allclose(line.areas[k], np.mean([tick[1] for tick in own], axis=0))
        np.testing.assert_allclose(line.scores[k], np.mean([tick[3] for tick in own], axis=0))
    assert len(ticks) == 8 * (line.count - 1) + line.open
    assert not line.rows[line.count :].any()


def test_what_is_missing_at_a_tick_is_no_part_of_a_mean():
    line, nothing = Timeline(), np.full(3, np.nan)
    line.each = 3
    for areas in (nothing, np.ones(3), nothing):
        line.add(1, areas, np.zeros(3), np.ones((2, 5)))
    assert line.areas[0].tolist() == [1, 1, 1]


def test_a_full_history_is_cut_anywhere_too(monkeypatch):
    monkeypatch.setattr(history, "POINTS", 8)
    X, y = rows()
    whole, parts = model().fit(X, y), model()
    for some in np.split(np.arange(2700), [900, 1024, 1500]):
        parts.partial_fit(X[some], y[some])
    assert timeline(whole).each == 4
    assert same(timeline(whole), timeline(parts))


def test_scores_that_move_show_in_the_alerts():
    X, y = rows()
    X = np.where(np.arange(2700)[:, None] < 2304, X, 3.0 * X)
    line = timeline(model().fit(X, y))
    rate = line.alerts[: line.count, 0] / np.maximum(1, line.alerts[: line.count, 2])
    assert rate[-1] > 0.1
    assert 0.002 < rate[8:-1].mean() < 0.025


def test_before_anything_is_learned_there_are_no_alerts():
    line = timeline(model().fit(rows(300)[0], np.zeros(300)))
    assert line.last == 256
    assert not line.alerts.any()


# Files.


def test_a_file_has_the_history(fitted, tmp_path):
    del fitted.stream_.state.observed["drift"]
    save(fitted, tmp_path / "model")
    found = load(tmp_path / "model")
    assert same(found.state_, fitted.state_)
    X, y = rows()
    found.partial_fit(X[:200], y[:200])
    assert timeline(found).last == 2816


@pytest.mark.parametrize(("name", "value"), [("count", 257), ("count", 3), ("each", 0), ("each", 3), ("open", 2)])
def test_a_history_that_cannot_be_is_refused(fitted, tmp_path, name, value):
    del fitted.stream_.state.observed["drift"]
    setattr(timeline(fitted), name, value)
    save(fitted, tmp_path / "model")
    with pytest.raises(ModelFileError, match="history must be points in the order of their rows"):
        load(tmp_path / "model")


def test_a_file_from_before_there_was_a_history_goes_on_with_an_empty_one(tmp_path, monkeypatch):
    X, y = rows()
    with monkeypatch.context() as older:
        older.setattr(AUCClassifier, "_observers", PairwiseClassifier._observers)
        save(model().fit(X[:1000], y[:1000]), tmp_path / "model")
    found = load(tmp_path / "model")
    assert timeline(found).count == 0
    found.partial_fit(X[1000:], y[1000:])
    whole = model().fit(X, y)
    assert timeline(found).rows[0] == 1024
    np.testing.assert_array_equal(found.decision_function(X), whole.decision_function(X))
    np.testing.assert_array_equal(timeline(found).areas[5], timeline(whole).areas[TICKS.index(1664)])
