"""Alert budgets: on any stream of scores the rate of alerts is the requested one."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pairloom
from pairloom import AUCClassifier
from pairloom.base.tree import same
from pairloom.data import fraud_like
from pairloom.persist.format import ModelFileError
from pairloom.stream import AlertBudget
from pairloom.stream.alerts import START_ROWS, seconds_of
from pairloom.systems import ExactAUC
from tests.conftest import examples

N = 60_000
ROW = np.arange(N)
LATE = ROW >= 40_000


def steps(seed, every, shift, scale):
    """A shift and a scale that change at random every few rows, as the refits of a model do."""
    rng, part = np.random.default_rng(seed), ROW // every
    return rng.normal(0, shift, part[-1] + 1)[part], np.exp(rng.normal(0, scale, part[-1] + 1))[part]


def refits(noise):
    shift, scale = steps(1, 500, 1.0, 0.3)
    return shift + scale * noise


STREAMS = {
    "steady": lambda noise: noise,
    "fall": lambda noise: noise - 3 * LATE,
    "rise": lambda noise: noise + 3 * LATE,
    "a fifth": lambda noise: np.where(LATE, noise / 5, noise),
    "fourfold": lambda noise: np.where(LATE, noise * 4, noise),
    "refits": refits,
    "thousandfold": lambda noise: np.where(LATE, 1000 * noise, noise),
    "a thousandth": lambda noise: np.where(LATE, noise / 1000, noise),
    "far up": lambda noise: noise + 30 * LATE,
    "far down": lambda noise: noise - 1e6 * LATE,
    "growing": lambda noise: noise + ROW / 500,
    "shrinking": lambda noise: noise - ROW / 500,
    "exponential": lambda noise: np.exp(ROW / 3000) * (1 + 0.1 * noise),
    "periodic": lambda noise: noise + 2 * np.sin(ROW * 2 * np.pi / 1000),
    "heavy tails": lambda noise: noise / np.abs(np.roll(noise, 1)),
    "ties": lambda noise: noise.round(),
    "constant": lambda noise: 0.1 + 0 * noise,
    "constant, then not": lambda noise: noise * LATE,
    "none, then all high": lambda noise: np.where(LATE, 5.0, noise),
}


def in_windows(flags, size=5000):
    """The numbers of alerts in all windows of this size."""
    total = np.concatenate([[0], np.cumsum(flags)])
    return total[size:] - total[:-size]


@pytest.mark.parametrize("name", STREAMS)
def test_every_5000_rows_are_within_a_factor_of_one_and_a_half(name):
    for seed in (0, 1, 2):
        scores = STREAMS[name](np.random.default_rng(seed).normal(size=N))
        budget = AlertBudget(rate=0.01)
        flags = budget(scores)
        found = in_windows(flags)
        assert 50 / 1.5 <= found.min() <= found.max() <= 50 * 1.5, (seed, found.min(), found.max())
        assert in_windows(flags[START_ROWS:]).min() >= 33
        assert found.max() <= 67
        assert (budget.n_seen, budget.n_alerts, budget.realised) == (N, flags.sum(), flags.mean())


@pytest.mark.parametrize("name", ["steady", "rise", "fall", "a fifth", "fourfold", "thousandfold", "far up", "growing"])
def test_the_alerts_are_rows_with_high_scores_for_their_time(name):
    """The level follows mean, spread and quantile: without them the rate would hold, by alerts for any rows."""
    noise = np.random.default_rng(0).normal(size=N)
    flags = AlertBudget(rate=0.01)(STREAMS[name](noise))
    for newest in (slice(30_000, 40_000), slice(45_000, N)):
        assert (noise[newest][flags[newest]] > np.quantile(noise, 0.98)).mean() > 0.9


def test_the_level_follows_a_quantile_that_spread_and_mean_do_not_know():
    """From two values to normal scores: the excess returns to 0, so it does not move the level for good."""
    rng = np.random.default_rng(0)
    budget = AlertBudget(rate=0.01)
    budget(rng.choice([-1.0, 1.0], 20_000))
    budget(rng.normal(size=60_000))
    excess = []
    for _ in range(200):
        budget(rng.normal(size=100))
        excess.append(budget.state.excess)
    assert abs(np.mean(excess)) < 1.5
    assert abs(budget.state.quantile - 2.326) < 0.4


@pytest.mark.parametrize("rate", [0.001, 0.01, 0.2, 0.9, 1.0])
def test_the_alerts_are_the_rows_with_high_scores(rate):
    scores = np.random.default_rng(0).normal(size=N)
    flags = AlertBudget(rate=rate)(scores)
    assert not flags[:START_ROWS].any()
    chosen = scores[START_ROWS:] > np.quantile(scores, 1 - rate) if rate < 1 else np.ones(N - START_ROWS, bool)
    flags = flags[START_ROWS:]
    assert flags.mean() == pytest.approx(rate, rel=0.1)
    assert (flags & chosen).sum() > 0.6 * chosen.sum()


def test_a_row_raises_an_alert_if_it_is_above_the_level():
    budget, rng = AlertBudget(rate=0.05), np.random.default_rng(0)
    assert np.isnan(budget.realised)
    found = []
    for score in rng.normal(size=2000).tolist():
        level = budget.level
        found.append(budget(score))
        assert found[-1] is (score > level)
    assert budget.n_alerts == sum(found) > 50
    first = np.random.default_rng(0).normal(size=START_ROWS)
    started = AlertBudget(rate=0.05)
    started(first)
    assert (first > started.level).sum() == 25


@examples(40)
@given(
    scores=st.lists(
        st.sampled_from([0.0, 1.0, -1.0, 2.0, 1e100, -1e100, 1e-100]) | st.floats(-1e100, 1e100),
        min_size=1,
        max_size=40,
    ),
    rate=st.sampled_from([0.001, 0.01, 0.1, 0.5, 0.99]),
    seed=st.integers(0, 5),
)
def test_the_stated_bound_holds_on_any_stream(scores, rate, seed):
    rng = np.random.default_rng(seed)
    stream = np.repeat(rng.choice(scores, 60), rng.integers(1, 200, 60))
    flags = AlertBudget(rate=rate).start(scores)(stream)
    excess = np.concatenate([[0.0], np.cumsum(flags - rate)])
    assert excess.max() - excess.min() <= 17


def test_against_a_stream_that_watches_the_level():
    """Scores just above or just below the level: all alerts, then none, are stopped within the stated bound."""
    for sign in (1, -1):
        budget, rng = AlertBudget(rate=0.01), np.random.default_rng(0)
        budget(rng.normal(size=START_ROWS))
        excess = 0.0
        for _ in range(3000):
            level = budget.level
            score = level + sign * 1e-3 if np.isfinite(level) else float(rng.normal())
            excess += budget(np.clip(score, -1e99, 1e99)) - 0.01
            assert abs(excess) <= 9


CUTS = [1, 2, START_ROWS - 1, START_ROWS + 1, 700, 3000]


@pytest.mark.parametrize("kind", ["rate", "per_hour"])
def test_the_cuts_of_calls_do_not_matter(kind):
    rng = np.random.default_rng(0)
    scores, times = rng.standard_t(2, 5000), np.cumsum(rng.exponential(60.0, 5000)) + rng.normal(0, 30.0, 5000)
    whole, parts, single = (AlertBudget(**{kind: 0.03 if kind == "rate" else 1.0}) for _ in range(3))
    given = (scores,) if kind == "rate" else (scores, times)
    flags = whole(*given)
    assert flags.any()
    cut = zip(*(np.split(column, CUTS) for column in given), strict=True)
    np.testing.assert_array_equal(flags, np.concatenate([parts(*part) for part in cut]))
    np.testing.assert_array_equal(flags, [single(*row) for row in zip(*(c.tolist() for c in given), strict=True)])
    assert same(whole, parts)
    assert same(whole, single)


def test_alerts_per_hour_follow_the_clock():
    """Ten times as many rows by day as by night, and no rows at all in every tenth hour."""
    rng = np.random.default_rng(0)
    hours = np.sort(rng.uniform(0, 2000, 100_000))
    hours = hours[(hours.astype(int) % 10 > 0) & ((hours % 24 < 12) | (rng.random(len(hours)) < 0.1))]
    budget = AlertBudget(per_hour=2)
    flags = budget(rng.normal(size=len(hours)), 3600 * hours)
    assert budget.realised == pytest.approx(2, rel=0.02)
    assert budget.n_alerts == flags.sum()
    found = np.bincount((hours[flags] / 100).astype(int))[1:]  # 90 hours with rows in each
    assert 180 / 1.25 < found.min() <= found.max() < 200 * 1.25
    silent = AlertBudget(per_hour=2)
    silent(rng.normal(size=1000), 60.0 * np.arange(1000))
    assert silent(rng.normal(size=100), 1e7 + 60.0 * np.arange(100)).sum() < 12  # a gap of 16 weeks is not made up for


def test_times_are_dates_or_seconds():
    rng = np.random.default_rng(0)
    scores, seconds = rng.normal(size=3000), np.cumsum(rng.exponential(60.0, 3000)).round()
    dates = np.datetime64("2025-03-01") + seconds.astype("m8[s]")
    expected = AlertBudget(per_hour=1.5)(scores, seconds)
    assert expected.sum() > 30
    zoned = pd.Series(dates).dt.tz_localize("UTC")
    for times in (dates, pd.Series(dates), zoned, zoned.tolist(), pd.Series(dates).astype(str), dates.astype("M8[us]")):
        np.testing.assert_array_equal(AlertBudget(per_hour=1.5)(scores, times), expected)
    assert seconds_of(pd.Timestamp("1970-01-01T00:00:01.5")).tolist() == [1.5]


def test_rows_out_of_order_count_once():
    budget = AlertBudget(per_hour=0.1)
    budget(np.zeros(4), [0.0, 7200.0, 3600.0, 3600.0])
    assert budget.state.hours == 2.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda b: b(np.nan), "score is NaN at row 0"),
        (lambda b: b([1.0, np.inf]), "score is inf at row 1: it must be finite"),
        (lambda b: b([1.0, 2.0, -1e101]), r"score is -1e\+101 at row 2"),
        (lambda b: b(["high"]), "score"),
        (lambda b: b([[1.0, 2.0]]), "one column"),
        (lambda b: b(1.0, 3.0), "times are for per_hour=; this budget has rate="),
        (lambda b: b.start([]), "at least one score"),
        (lambda b: b.start([np.inf]), "all of them finite"),
    ],
)
@pytest.mark.parametrize("started", [False, True])
def test_an_error_changes_nothing(call, message, started):
    budget = AlertBudget(rate=0.1)
    budget(np.arange(600.0) if started else np.arange(5.0))
    before = copy.deepcopy(budget)
    with pytest.raises(ValueError, match=message):
        call(budget)
    assert same(budget, before)


def test_times_are_checked():
    budget = AlertBudget(per_hour=1.0)
    for times, message in (
        (None, "pass the times of the rows"), ([1.0], "times has 1 rows, but score has 2"),
        ([1.0, np.nan], "missing or infinite at row 1"), (["x", "y"], "times must be dates"),
        ([np.datetime64("NaT"), np.datetime64("2020-01-01")], "at row 0"), ([[1.0, 2.0]], "one column"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            budget([1.0, 2.0], times)
    assert same(budget, AlertBudget(per_hour=1.0))
    with pytest.raises(ValueError, match="start needs rate="):
        budget.start([1.0])


def test_one_request_only():
    with pytest.raises(ValueError, match=r"exactly one of rate= and per_hour=; got none"):
        AlertBudget()
    with pytest.raises(ValueError, match=r"got rate and per_hour"):
        AlertBudget(0.1, per_hour=3)
    for wrong in (0, -1.0, 1.5, np.nan, "1 %", True):
        with pytest.raises(ValueError, match="rate must be a number above 0 and at most 1"):
            AlertBudget(wrong)
    with pytest.raises(ValueError, match="per_hour must be a number above 0"):
        AlertBudget(per_hour=np.inf)


@pytest.mark.parametrize("rows", [0, 100, 2000])
@pytest.mark.parametrize("request_", [{"rate": 0.02}, {"per_hour": 3}])
def test_it_continues_from_a_file_and_a_copy(tmp_path, rows, request_):
    rng = np.random.default_rng(0)
    scores, times = rng.normal(size=4000), 60.0 * np.arange(4000)
    given = (lambda part: (scores[part], times[part])) if "per_hour" in request_ else (lambda part: (scores[part],))
    budget = AlertBudget(**request_)
    budget(*given(slice(0, rows)))
    pairloom.save(budget, tmp_path / "b")
    copies = [pairloom.load(tmp_path / "b"), copy.deepcopy(budget), pickle.loads(pickle.dumps(budget))]
    expected = budget(*given(slice(rows, 4000)))
    for one in copies:
        assert type(one) is AlertBudget
        np.testing.assert_array_equal(one(*given(slice(rows, 4000))), expected)
        assert same(one, budget)


def test_a_file_with_an_impossible_state_is_rejected(tmp_path):
    budget = AlertBudget(rate=0.02)
    for name, value in (("n_alerts", 5), ("variance", -1.0), ("mean", np.inf), ("excess", 30.0)):
        wrong = copy.deepcopy(budget)
        setattr(wrong.state, name, value)
        with pytest.raises(ValueError, match="would not load"):
            pairloom.save(wrong, tmp_path / "b")
    pairloom.save(budget, tmp_path / "b")
    data = (tmp_path / "b").read_bytes()
    (tmp_path / "b").write_bytes(data[: len(data) // 2])
    with pytest.raises(ModelFileError):
        pairloom.load(tmp_path / "b")


# Of a model.


def stream_of(n, seed=0, rate=0.1):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < rate).astype(int)
    return rng.normal(size=(n, 3)) + y[:, None], y


def test_a_model_starts_its_budget_at_its_threshold_and_continues_it():
    X, y = stream_of(3000)
    model = ExactAUC().fit(X, y)
    before = pickle.dumps(model)
    budget = model.alert_budget(rate=0.05)
    assert budget.level == pytest.approx(float(model.threshold(alert_rate=0.05)), abs=1e-9)
    model.alert_budget(rate=0.05)(0.0)
    assert model.alert_budget(0.05) is budget
    assert budget.n_seen == 1
    assert model.alert_budget(rate=0.02) is not budget
    assert model.alert_budget(rate=0.02).n_seen == 0
    assert model.alert_budget(per_hour=2.0).level == np.inf
    assert pickle.loads(before)._alerts is None
    model.fit(X, y)
    assert model._alerts is None


def test_predicting_does_not_change_it():
    X, y = stream_of(1000)
    model = ExactAUC().fit(X, y)
    model.alert_budget(rate=0.05)(model.score_many(X))
    before = copy.deepcopy(model._alerts)
    model.predict(X), model.predict_proba(X), model.score_one(X[0]), model.threshold(alert_rate=0.05), repr(model)
    model.partial_fit(X, y)
    assert same(model._alerts, before)


def test_it_is_part_of_the_state_of_the_model(tmp_path):
    X, y = stream_of(2000)
    model = ExactAUC(random_state=0).fit(X, y)
    plain = model.state_
    assert plain.alerts is None
    model.alert_budget(rate=0.05)(model.score_many(X[:777]))
    pairloom.save(model, tmp_path / "m")
    copies = [pairloom.load(tmp_path / "m"), copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    copies.append(model.with_state(model.state_))
    expected = model.alert_budget(rate=0.05)(model.score_many(X[777:]))
    for one in copies:
        np.testing.assert_array_equal(one.alert_budget(rate=0.05)(one.score_many(X[777:])), expected)
        assert same(one.state_, model.state_)
    model.with_state(plain)
    assert model.with_state(plain)._alerts is None


def test_a_model_with_one_class_has_a_budget_that_starts_with_the_first_rows():
    X, y = stream_of(300)
    model = ExactAUC().partial_fit(X[y == 0], y[y == 0])
    assert model.alert_budget(rate=0.05).level == np.inf
    model.partial_fit(X, y)
    assert model.alert_budget(rate=0.05).level == np.inf
    three = ExactAUC().fit(X, np.arange(300) % 3)
    with pytest.raises(ValueError, match="alert_budget is for two classes; this model has 3"):
        three.alert_budget(rate=0.1)
    with pytest.raises(ValueError, match="not fitted yet"):
        ExactAUC().alert_budget(rate=0.1)


def test_the_budget_is_that_of_the_positive_class():
    X, y = stream_of(3000)
    low, high = ExactAUC(pos_label=0).fit(X, y), ExactAUC(pos_label=1).fit(X, y)
    assert low.alert_budget(0.05)(low.score_many(X)).mean() == pytest.approx(0.05, rel=0.2)
    assert y[high.alert_budget(0.05)(high.score_many(X))].mean() > 0.4
    assert y[low.alert_budget(0.05)(low.score_many(X))].mean() < 0.05


def payments(n, positive, seed=0):
    columns, fraud = fraud_like(n, positive=positive, seed=seed)
    return pd.DataFrame(columns), fraud


def with_budget(model, frame, fraud, first=500, rate=0.01):
    """Learn the first rows, then score each 500 rows and learn them: alerts, scores and thresholds of these rows."""
    flags, scores, cuts = [], [], []
    model.partial_fit(frame[:first], fraud[:first])
    for start in range(first, len(fraud), 500):
        part = slice(start, start + 500)
        scores.append(model.score_many(frame[part]))
        flags.append(model.alert_budget(rate=rate)(scores[-1]))
        cuts.append(np.full(500, model.threshold(alert_rate=rate)))
        model.partial_fit(frame[part], fraud[part])
    return map(np.concatenate, (flags, scores, cuts))


def test_the_alerts_of_a_model_stay_within_budget_through_refits_and_an_alarm():
    frame, fraud = payments(16_000, 0.06)
    fraud[8000:] = np.random.default_rng(0).permutation(fraud[8000:])
    model = AUCClassifier(random_state=0)
    flags, *_ = with_budget(model, frame, fraud)
    assert model.changes_
    found = in_windows(flags)
    assert 50 / 1.5 <= found.min() <= found.max() <= 50 * 1.5


def test_after_a_change_a_threshold_is_of_the_rows_since_then():
    X, y = stream_of(6000)
    model = ExactAUC(drift="auto").fit(X, y)
    watched, recent = model.stream_.state.observed["drift"], model._recent
    order = np.arange(recent.count - 4096, recent.count) % 4096
    for since, n in ((0, 4096), (1000, 4096), (5000, 1000), (5990, 256)):
        watched.since = since
        codes, scores, _ = model._newest_scores()
        np.testing.assert_array_equal(codes, recent.labels[order][-n:])
        np.testing.assert_array_equal(scores, model._calibrate(recent.scores[order][-n:]))
    assert model.threshold(alert_rate=0.05).alert_rate.high > 0.08  # of 256 rows


@pytest.mark.parametrize(("weight", "share"), [(None, 0.002), ({1: 50.0}, 0.091), ("balanced", 0.5)])
def test_thresholds_weights_and_log_odds_with_two_positives_in_a_thousand(weight, share):
    frame, fraud = payments(20_000, 0.002)
    model = AUCClassifier(random_state=0, class_weight=weight)
    flags, scores, cuts = with_budget(model, frame, fraud, 4000)
    found = in_windows(flags)
    assert 50 / 1.5 <= found.min() <= found.max() <= 50 * 1.5
    assert 0.007 < (scores >= cuts).mean() < 0.014
    probability = 1.0 / (1.0 + np.exp(-scores))
    assert share / 2 < probability.mean() < 2 * share
    cut, positives = model.threshold(alert_rate=0.01), (fraud[-4096:] == 1).sum()
    assert cut.recall.value == pytest.approx(cut.precision.value * 40 / positives, rel=0.05)
    assert cut.alert_rate.low < 0.01 < cut.alert_rate.high
