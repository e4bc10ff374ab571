"""Alert thresholds: their properties on the rows they were chosen on, and coverage on later rows."""

import copy
import pickle
from statistics import NormalDist

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import precision_recall_curve, recall_score
from sklearn.model_selection import FixedThresholdClassifier

from pairloom import AUCClassifier
from pairloom.evaluation import prequential
from pairloom.metrics import Estimate, Threshold, WindowAUC, choose_threshold, precision_at_k
from pairloom.metrics.intervals import wilson
from pairloom.stream import AlertBudget
from pairloom.systems import SPAM, ExactAUC
from tests.conftest import make_stream

SCORES = np.array([0.9, 0.8, 0.8, 0.7, 0.5, 0.5, 0.3, 0.2, 0.1, 0.0])
Y = np.array([1, 1, 0, 1, 0, 0, 1, 0, 0, 0])


def rows(n, seed=0, rate=0.1):
    """Rows, one in ten of them positive, that a linear model ranks better than chance."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < rate).astype(int)
    return rng.normal(size=(n, 3)) + y[:, None], y


@pytest.fixture(scope="module")
def fitted():
    X, y = rows(1500)
    return ExactAUC().fit(X, y)


# Rows counted by hand.


@pytest.mark.parametrize(
    ("aim", "cut", "precision", "recall", "rate"),
    [
        ({"alert_rate": 0.1}, 0.9, 1.0, 0.25, 0.1),
        ({"alert_rate": 0.2}, 0.9, 1.0, 0.25, 0.1),  # 0.8 stands for two rows: all three would be one too many
        ({"alert_rate": 0.3}, 0.8, 2 / 3, 0.5, 0.3),
        ({"alert_rate": 1.0}, 0.0, 0.4, 1.0, 1.0),
        ({"per_thousand": 400}, 0.7, 0.75, 0.75, 0.4),
        ({"precision": 0.7}, 0.7, 0.75, 0.75, 0.4),
        ({"precision": 0.75}, 0.7, 0.75, 0.75, 0.4),
        ({"precision": 0.8}, 0.9, 1.0, 0.25, 0.1),
        ({"precision": 0.1}, 0.0, 0.4, 1.0, 1.0),
        ({"cost_ratio": 0.5}, 0.9, 1.0, 0.25, 0.1),
        ({"cost_ratio": 1.5}, 0.7, 0.75, 0.75, 0.4),
        ({"cost_ratio": 20}, 0.3, 4 / 7, 1.0, 0.7),
    ],
)
def test_a_small_case_by_hand(aim, cut, precision, recall, rate):
    found = choose_threshold(Y, SCORES, **aim)
    assert float(found) == cut
    assert [found.precision.value, found.recall.value, found.alert_rate.value] == pytest.approx(
        [precision, recall, rate], rel=1e-12
    )


@pytest.mark.parametrize("aim", [{"alert_rate": 0.09}, {"cost_ratio": 0.01}])
def test_where_no_alert_is_allowed_the_threshold_is_just_above_all_scores(aim):
    y = Y.copy()
    y[0] = 0
    found = choose_threshold(y, SCORES, **aim)
    assert found > 0.9
    assert found == np.nextafter(0.9, 1.0)
    assert np.isnan(found.precision.value)
    assert found.precision[1:] == (0.0, 1.0)
    assert (found.recall.value, found.recall.low, found.alert_rate.value) == (0.0, 0.0, 0.0)
    assert found.alert_rate.high == pytest.approx(0.2775, abs=1e-4)


def test_an_interval_by_hand():
    """p = 1/4 of n = 4, z = 1.96: (1/4 + z^2/8 -+ z sqrt(3/64 + z^2/64)) / (1 + z^2/4)."""
    z = NormalDist().inv_cdf(0.975)
    reach = z * np.sqrt(3 / 64 + z * z / 64)
    found = wilson(np.array([True, False, False, False]), np.ones(4))
    assert found == pytest.approx([0.25, *((0.25 + z * z / 8 + np.array([-reach, reach])) / (1 + z * z / 4))])
    one_heavy = wilson(np.array([True, False, False]), np.array([1e100, 1.0, 1.0]))
    assert one_heavy == pytest.approx(wilson(np.array([True]), np.ones(1)))


def test_a_weight_counts_as_so_many_rows_and_says_less_than_they_do():
    rng = np.random.default_rng(1)
    scores, y, weight = rng.normal(size=300).round(1), rng.random(300) < 0.3, rng.integers(0, 4, size=300)
    for aim in ({"alert_rate": 0.1}, {"precision": 0.32}, {"cost_ratio": 3.0}):
        weighted = choose_threshold(y, scores, weight, **aim)
        repeated = choose_threshold(np.repeat(y, weight), np.repeat(scores, weight), **aim)
        assert float(weighted) == float(repeated)
        for name in ("precision", "recall", "alert_rate"):
            one, other = getattr(weighted, name), getattr(repeated, name)
            assert one.value == pytest.approx(other.value, rel=1e-12)
            assert one.low < other.low
            assert one.high > other.high
        alike = choose_threshold(y, scores, np.full(300, 2.5), **aim)
        assert alike.alert_rate == pytest.approx(choose_threshold(y, scores, **aim).alert_rate)


def test_it_agrees_with_scikit_learn():
    rng = np.random.default_rng(2)
    scores, y, weight = rng.normal(size=500).round(1), rng.random(500) < 0.2, rng.random(500)
    scores[y] += 1.0
    precision, recall, cuts = precision_recall_curve(y, scores, sample_weight=weight)
    for wanted in (0.25, 0.4, 0.6):
        first = np.flatnonzero(precision[:-1] >= wanted)[0]
        found = choose_threshold(y, scores, weight, precision=wanted)
        assert float(found) == cuts[first]
        assert found.precision.value == pytest.approx(precision[first])
        assert found.recall.value == pytest.approx(recall[first])


@pytest.mark.parametrize("aim", [{"alert_rate": 0.02}, {"alert_rate": 0.1}, {"precision": 0.4}])
def test_intervals_hold_in_95_of_100_windows(aim):
    """Coverage of the interval of a threshold chosen on one window: 300 windows, standard error 1.3 %."""
    above, held = NormalDist().cdf, []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        y = rng.random(800) < 0.1
        cut = choose_threshold(y, rng.normal(size=800) + 1.5 * y, **aim)
        own, other = 0.1 * above(1.5 - cut), 0.9 * above(-cut)
        true = own / (own + other), own / 0.1, own + other
        found = cut.precision, cut.recall, cut.alert_rate
        held.append([bounds.low <= value <= bounds.high for bounds, value in zip(found, true, strict=True)])
    shares = np.mean(held, axis=0)
    assert (shares > 0.92).all(), shares
    assert (shares < 0.99).all(), shares


# Of a model.


def test_a_model_chooses_by_its_newest_scores(fitted):
    scores, codes, _ = fitted._recent.view()
    scores = fitted._calibrate(scores)
    positive = codes == fitted._labels.codes[1]
    for aim in ({"alert_rate": 0.05}, {"per_thousand": 30}, {"precision": 0.4}):
        found = fitted.threshold(**aim)
        assert isinstance(found, Threshold)
        alerted = scores >= found
        assert found.alert_rate.value == alerted.mean()
        assert found.precision.value == pytest.approx(positive[alerted].mean())
        assert found.recall.value == pytest.approx(recall_score(positive, alerted))
        assert (scores[~alerted] < found).all()
    assert fitted.threshold(alert_rate=0.05).alert_rate.value == 0.05
    assert fitted.threshold(per_thousand=30) == fitted.threshold(alert_rate=0.03)
    assert fitted.threshold(precision=0.4).precision.value >= 0.4


def test_the_threshold_of_a_race_is_of_the_scores_of_its_current_mixture():
    """Rows were scored by earlier mixtures on arrival, at which other thresholds would have the same rate."""
    X, y = rows(2000)
    race = AUCClassifier(random_state=0).fit(X, y)
    found = race.threshold(alert_rate=0.05)
    now, before = race._recent.view()[0], race._arrivals()[0]
    assert found.alert_rate.value == (race._calibrate(now) >= found).mean() == 0.05
    assert (race._calibrate(before) >= found).mean() != 0.05
    later = race.score_many(rows(20_000, seed=1)[0]) >= found
    assert found.alert_rate.low < later.mean() < found.alert_rate.high


def test_later_rows_are_alerted_on_at_about_this_rate(fitted):
    X, y = rows(20_000, seed=1)
    found = fitted.threshold(alert_rate=0.05)
    alerted = fitted.score_many(X) >= found
    assert found.alert_rate.low < alerted.mean() < found.alert_rate.high
    assert found.precision.low < y[alerted].mean() < found.precision.high
    assert found.recall.low < alerted[y == 1].mean() < found.recall.high


def test_a_cost_ratio_is_met_on_later_rows(fitted):
    X, y = rows(20_000, seed=1)
    scores = fitted.score_many(X)

    def cost(cut, ratio):
        return ratio * ((y == 1) & (scores < cut)).sum() + ((y == 0) & (scores >= cut)).sum()

    cuts = [fitted.threshold(cost_ratio=ratio) for ratio in (1, 5, 20, 100)]
    assert sorted(cuts, reverse=True) == cuts
    for cut, ratio in zip(cuts, (1, 5, 20, 100), strict=True):
        least = cost(choose_threshold(y, scores, cost_ratio=ratio), ratio)
        assert cost(cut, ratio) < 1.05 * least


@pytest.mark.parametrize("positive", ["bad", "good"])
def test_it_cuts_score_many_and_fits_into_scikit_learn_whichever_class_is_positive(positive):
    X, y = rows(1200)
    labels = np.where(y == 1, positive, "good" if positive == "bad" else "bad")
    model = ExactAUC(pos_label=positive).fit(X, labels)
    other = ExactAUC(pos_label=1).fit(X, y)
    found = model.threshold(alert_rate=0.05)
    assert float(found) == pytest.approx(float(other.threshold(alert_rate=0.05)), rel=1e-6)
    fixed = FixedThresholdClassifier(
        FrozenEstimator(model), threshold=found, pos_label=model.pos_label_, response_method="decision_function"
    )
    assert clone(fixed).threshold == found
    assert clone(fixed).threshold.recall == found.recall
    said = fixed.fit(X, labels).predict(X)
    np.testing.assert_array_equal(said == positive, model.score_many(X) >= found)
    assert 0 < (said == positive).mean() < 0.15


@pytest.mark.parametrize("weight", [{0: 0.5, 1: 7.0}, "balanced"])
def test_alerts_are_for_rows_as_they_come_whatever_classes_weigh(weight):
    """The weights of classes move scores and log-odds; here they are removed again, up to the last digits."""
    X, y = rows(6000)  # 4,500 of them have a weight, more than are kept
    own = np.random.default_rng(3).integers(0, 4, size=6000) * 0.7
    model = ExactAUC(class_weight=weight).fit(X, y, own)
    plain = ExactAUC().fit(X, y, own)
    np.testing.assert_allclose(model._scored_positives()[2], plain._scored_positives()[2], rtol=1e-9)
    assert abs(model._arrivals()[2] - plain._arrivals()[2]).max() > 0.1
    found = model.threshold(alert_rate=0.05)
    assert found.alert_rate.value == pytest.approx(0.05, abs=0.002)
    assert found.recall.value == pytest.approx(plain.threshold(alert_rate=0.05).recall.value, abs=0.1)


def test_with_one_aim_only(fitted):
    with pytest.raises(ValueError, match=r"exactly one of alert_rate=, per_thousand=, .*; got none"):
        fitted.threshold()
    with pytest.raises(ValueError, match=r"exactly one of .* got alert_rate, precision"):
        fitted.threshold(alert_rate=0.1, precision=0.5)
    for aim, value in (
        ("alert_rate", 0), ("alert_rate", 1.1), ("per_thousand", 1001), ("precision", np.nan), ("precision", "high"),
        ("cost_ratio", 0.0), ("cost_ratio", np.inf), ("alert_rate", True),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"{aim} must be a number above 0"):
            fitted.threshold(**{aim: value})


def test_what_is_missing_is_named(fitted):
    with pytest.raises(ValueError, match="not fitted yet"):
        ExactAUC().threshold(alert_rate=0.1)
    X, y = rows(60)
    with pytest.raises(ValueError, match=r"both classes among the newest 4,096 .* there are 52, all of one class"):
        ExactAUC().partial_fit(X[y == 0], y[y == 0]).threshold(alert_rate=0.1)
    three = ExactAUC().fit(X, np.arange(60) % 3)
    with pytest.raises(ValueError, match="for two classes; this model has 3"):
        three.threshold(alert_rate=0.1)
    with pytest.raises(ValueError, match=r"no threshold has a precision of 0.9.* the best is 0.5, with a recall of 1"):
        choose_threshold([0, 1], [0.7, 0.2], precision=0.9)
    with pytest.raises(ValueError, match="both classes: there are 2 positives and 0 negatives"):
        choose_threshold([1, 1], [0.7, 0.2], alert_rate=0.9)
    with pytest.raises(ValueError, match="finite scores"):
        choose_threshold([1, 0], [np.inf, 0.2], alert_rate=0.9)


# As a value.


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_it_is_a_number_that_can_be_copied(fitted, protocol):
    found = fitted.threshold(precision=0.4)
    copies = [pickle.loads(pickle.dumps(found, protocol)), copy.copy(found), copy.deepcopy(found)]
    for one in copies:
        assert type(one) is Threshold
        assert one == found == float(found)
        assert (one.precision, one.recall, one.alert_rate) == (found.precision, found.recall, found.alert_rate)
        assert isinstance(one.precision, Estimate)
    assert found + 1 == float(found) + 1
    assert f"{found:.3f}" == f"{float(found):.3f}"
    with pytest.raises(AttributeError):
        found.recall = 1.0


def test_it_prints_well():
    found = choose_threshold(Y, SCORES, alert_rate=0.3)
    assert str(found) == (
        "0.8: precision 0.6667 (0.2077 to 0.9385), recall 0.5000 (0.1500 to 0.8500), "
        "alert rate 0.3000 (0.1078 to 0.6032)"
    )
    assert repr(found) == "Threshold(0.8, precision=0.6667, recall=0.5, alert_rate=0.3)"


# Over time.


def test_precision_at_k_is_the_mean_over_all_ways_to_break_ties():
    y, scores = [1, 1, 0, 1], np.array([0.9, 0.5, 0.5, 0.5])
    assert precision_at_k(y, scores, 1) == 1.0
    assert precision_at_k(y, scores, 2) == pytest.approx((1 + 2 / 3) / 2)
    assert precision_at_k(y, scores, 9) == 0.75
    assert precision_at_k(y, scores, 2, sample_weight=[0, 3, 1, 0]) == 0.75
    assert precision_at_k(["a", "b"], [0.1, 0.7], 1, pos_label="a") == 0.0
    assert np.isnan(precision_at_k([], [], 3))
    with pytest.raises(ValueError, match="k must be an integer"):
        precision_at_k(y, scores, 0.5)


def test_the_top_share_of_a_window():
    window = WindowAUC(4).update([1, 0, 1, 0, 0], [9.0, 4.0, 3.0, 2.0, 1.0])
    assert window.top(0.25) == (0.0, 0.0)
    assert window.top(0.5) == (0.5, 1.0)
    assert window.top(0.375) == (pytest.approx(1 / 3), 0.5)
    assert window.top(1.0) == (0.25, 1.0)
    assert np.isnan(WindowAUC(4).top(0.5)).all()
    assert np.isnan(WindowAUC(4).update(0, 1.0).top(0.5)[1])


def test_prequential_has_the_precision_and_recall_of_alerts_if_asked_for():
    X, y = make_stream("random", 1200, 3)
    y = (y > 0).astype(int)
    plain = prequential(SPAM(eta=0.02), (X, y), every=400, window=100, progress=False)
    found = prequential(SPAM(eta=0.02), (X, y), every=400, window=100, alert_rate=0.1, progress=False)
    assert list(found.table) == [*plain.table, "alert_rate", "precision", "recall"]
    for name in plain.table.keys() - {"rows_per_second"}:
        np.testing.assert_array_equal(found.table[name], plain.table[name])
    model, scores = SPAM(eta=0.02), []
    for x, label in zip(X, y, strict=True):
        scores.append(model.score_one(x))
        model.learn_one(x, label)
    flags = AlertBudget(rate=0.1)(scores)
    for k, end in enumerate((400, 800, 1200)):
        newest = slice(end - 100, end)
        raised, label = flags[newest], y[newest] == 1
        assert found.table["alert_rate"][k] == raised.mean()
        if raised.any():
            assert found.table["precision"][k] == pytest.approx(label[raised].mean())
        assert found.table["recall"][k] == pytest.approx(raised[label].mean())
    assert found.table["alert_rate"][2] > found.table["alert_rate"][0] == 0
    assert np.isnan(found.table["precision"][0])
    labels = [ax.get_ylabel() for ax in found.plot().axes]
    assert labels[1:4] == ["alert rate", "precision of alerts", "recall of alerts"]
    assert len(plain.plot().axes) == len(labels) - 3
    with pytest.raises(ValueError, match="alert_rate must be a number above 0 and at most 1"):
        prequential(SPAM(), (X, y), alert_rate=2.0, progress=False)


def test_rows_without_a_label_use_the_budget_but_have_no_precision():
    X, y = rows(3000)
    model, unknown = ExactAUC(), np.arange(3000) % 3 == 0
    found = prequential(model, (X, np.where(unknown, None, y.astype(object))), every=3000, window=5000,
                        alert_rate=0.1, progress=False)  # fmt: skip
    again, scores = ExactAUC(), []
    for x, label, hidden in zip(X, y, unknown, strict=True):
        scores.append(again.score_one(x))
        if not hidden:
            again.learn_one(x, label)
    flags = AlertBudget(rate=0.1)(scores)[~unknown]
    assert found.table["alert_rate"].tolist() == [flags.mean()]
    assert found.table["precision"][0] == pytest.approx(y[~unknown][flags].mean())
    assert found.table["recall"][0] == pytest.approx(flags[y[~unknown] == 1].mean())
