"""Classifiers, metric and wrapper in pipelines of river."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.metrics import log_loss, roc_auc_score

import pairloom
from pairloom import AUCClassifier, PairwiseRanker
from pairloom.base.tree import same
from pairloom.columns import Columns, ColumnsWarning
from pairloom.systems import FPOGD
from tests.test_reserve import stream

pytest.importorskip("river", reason="river is missing: pip install -e .[river]")

from river import (
    anomaly,
    checks,
    compose,
    datasets,
    evaluate,
    imblearn,
    linear_model,
    metrics,
    multiclass,
    naive_bayes,
    tree,
)
from river import feature_extraction as text

from pairloom.adapters.river import CalibratedScores, RiverAUC, RiverClassifier, StreamingROCAUC, as_river

FAST = FPOGD(n_components=32, random_state=0)
CHECKED = {
    "FPOGD": lambda: as_river(FAST),
    "RiverAUC": RiverAUC,
    "three classes": lambda: RiverAUC(classes=(False, True, "neither")),
    "calibrated logistic": lambda: CalibratedScores(linear_model.LogisticRegression()),
    "calibrated tree": lambda: CalibratedScores(tree.HoeffdingTreeClassifier()),
    "calibrated scorer": lambda: CalibratedScores(anomaly.HalfSpaceTrees(seed=0)),
}


@pytest.mark.parametrize("name", CHECKED)
def test_river_checks_it_and_skips_nothing(name):
    model = CHECKED[name]()
    assert model._unit_test_skips() == set()
    found = list(checks.yield_checks(model)) if name != "three classes" else []
    assert len(found) >= 40 or name == "three classes"
    for check in found:
        check(model.clone())


def test_several_classes():
    labels = ("low", "mid", "high")
    model, rng = RiverAUC(classes=labels), np.random.default_rng(0)
    assert model._multiclass
    assert model.predict_proba_one({"a": 1.0}) == dict.fromkeys(labels, 1 / 3)
    for _ in range(400):
        k = int(rng.integers(3))
        model.learn_one({"a": float(rng.normal() + 3 * k)}, labels[k])
    assert [model.predict_one({"a": 3.0 * k}) for k in range(3)] == list(labels)
    undeclared = multiclass.OneVsRestClassifier(as_river(FAST))
    for row, y in datasets.ImageSegments().take(60):
        undeclared.predict_proba_one(row)
        undeclared.learn_one(row, y)
    assert undeclared.predict_one(row) in {y for _, y in datasets.ImageSegments().take(60)}


@pytest.mark.parametrize("label", [False, True, 0, 1, np.bool_(True), np.int64(1), "spam"])
def test_labels_of_two_classes_need_no_names(label):
    model = as_river(FAST)
    assert model.predict_proba_one({"a": 1.0}) == {False: 0.5, True: 0.5}
    assert model.predict_one({"a": 1.0}) is False
    model.learn_one({"a": 1.0}, label)
    known = model.predict_proba_one({"a": 1.0})
    assert set(known) == ({"spam"} if label == "spam" else {False, True})
    assert sum(known.values()) == pytest.approx(1.0)
    assert model.predict_one({"a": 1.0}) == label


def test_raw_rows_with_text_dates_and_gaps():
    model, metric = RiverAUC(), StreamingROCAUC()
    rows = [(row, bool(y)) for row, y in stream(1200, 0)]
    gaps = [({k: v for j, (k, v) in enumerate(row.items()) if (t + j) % 5}, y) for t, (row, y) in enumerate(rows)]
    evaluate.progressive_val_score(gaps, model, metric)
    assert metric.get() > 0.8
    assert model.model.columns_.kinds["shop"] == "category"
    assert model.model.columns_.kinds["day"] == "date"
    pinned = RiverAUC(columns=Columns({"a": "category"}, on_text="missing"))
    pinned.learn_one({"a": 1, "b": 2.0}, True)
    pinned.learn_one({"a": 1, "b": "?"}, False)
    assert pinned.model.columns_.malformed == {"b": 1}


def test_the_order_of_names_does_not_matter():
    models = [as_river(FAST) for _ in range(2)]
    for row, y in stream(150, 50):
        models[0].learn_one(row, y)
        models[1].learn_one(dict(reversed(row.items())), y)
    assert same(models[0].model.state_, models[1].model.state_)
    by_number = as_river(FAST)
    by_number.learn_one({0: 1.0, 1: 2.0}, True)
    assert list(by_number.model.columns_.kinds) == ["0", "1"]
    with pytest.raises(ValueError, match="two names of a row have the same text"):
        by_number.learn_one({1: 1.0, "1": 2.0}, True)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_are_rows(library):
    as_frame = {
        "pandas": pd.DataFrame, "polars": lambda rows: pl.DataFrame(rows, infer_schema_length=None),
        "pyarrow": lambda rows: pl.DataFrame(rows, infer_schema_length=None).to_arrow(),
    }[library]  # fmt: skip
    rows = list(stream(900, 150))
    one, many = as_river(FAST), as_river(FAST)
    for row, y in rows:
        one.learn_one(row, y)
    for cuts in ((0, 1), (1, 300), (300, 400), (400, 900)):
        part = [{k: v for k, v in row.items() if k != "b"} if cuts[0] == 300 else row for row, _ in rows[slice(*cuts)]]
        many.learn_many(as_frame(part), pd.Series([y for _, y in rows[slice(*cuts)]]))
    again = as_river(FAST)
    for t, (row, y) in enumerate(rows):
        again.learn_one({k: v for k, v in row.items() if k != "b"} if 300 <= t < 400 else row, y)
    assert same(again.model.state_, many.model.state_)
    assert not same(again.model.state_, one.model.state_)
    frame = as_frame([{**row, "unknown": 1.0} for row, _ in rows[:50]])
    found = many.predict_proba_many(frame)
    assert type(found) is type(frame)
    by_row = [many.predict_proba_one({**row, "unknown": 1.0}) for row, _ in rows[:50]]
    positive = found[found.columns[1]] if library == "pandas" else found["1"]
    np.testing.assert_allclose(np.asarray(positive), [p[1] for p in by_row], rtol=1e-6)
    assert list(np.asarray(many.predict_many(frame))) == [many.predict_one(row) for row, _ in rows[:50]]
    if library == "pandas":
        assert many.predict_proba_many(frame[:0]).shape == (0, 2)


def test_new_names_beyond_the_reserve_are_ignored():
    model = as_river(FAST, reserve=1)
    model.learn_one({"a": 1.0}, True)
    model.learn_one({"a": 2.0, "b": 1.0}, False)
    with pytest.warns(ColumnsWarning, match="'c' is ignored"):
        model.learn_one({"c": 1.0}, True)
    model.learn_one({"c": 1.0}, True)
    assert model.model.columns_.ignored == 2
    model.learn_one({}, True)


def test_a_column_that_arrives_late_is_found():
    scores, labels, model = [], [], RiverAUC()
    for row, y in stream(4000, 2500):
        row = {k: v for k, v in row.items() if k in ("a", "b", "main")}
        scores.append(model.score_one(row))
        labels.append(y)
        model.learn_one(row, y)
    assert roc_auc_score(labels[1500:2500], scores[1500:2500]) < 0.65
    assert roc_auc_score(labels[3200:], scores[3200:]) > 0.85


def test_tools_of_river():
    data = list(datasets.Phishing().take(600))
    auc = {}
    for name, model in {
        "alone": as_river(FAST),
        "pipeline": compose.Select("https", "is_popular", "long_url") | as_river(FAST),
        "sampled": imblearn.RandomUnderSampler(as_river(FAST), {False: 0.5, True: 0.5}, seed=1),
        "hard": imblearn.HardSamplingClassifier(as_river(FAST), p=0.1, size=40, seed=1),
    }.items():
        metric = metrics.ROCAUC(200) + metrics.Accuracy() + StreamingROCAUC()
        evaluate.progressive_val_score(data, model, metric)
        auc[name] = metric[0].get()
        assert metric[2].get() == pytest.approx(auc[name], abs=0.02)
    assert min(auc.values()) > 0.7
    late = evaluate.progressive_val_score(data, as_river(FAST), StreamingROCAUC(), delay=50)
    assert 0.7 < late.get() < auc["alone"]
    words = text.BagOfWords(on="text", lowercase=True) | as_river(FAST, reserve=8)
    for line, y in (("buy now", True), ("see you", False), ("buy this", True), ("see this", False)) * 30:
        words.learn_one({"text": line}, y)
    assert words.predict_one({"text": "buy"}) is True
    weighted = as_river(FAST)
    evaluate.progressive_val_score([(x, y, {"w": 0.0}) for x, y in data[:20]], weighted, StreamingROCAUC())
    assert not hasattr(weighted.model, "stream_")


def test_clones_pickles_and_files(tmp_path):
    model = RiverAUC(seed=3, columns={"shop": "category"}, reserve=5)
    for row, y in stream(120, 40):
        model.learn_one(row, y)
    fresh = model.clone()
    assert (fresh.seed, fresh.columns, fresh.reserve) == (3, {"shop": "category"}, 5)
    assert not hasattr(fresh.model, "stream_")
    pairloom.save(model.model, tmp_path / "model")
    for other in (pickle.loads(pickle.dumps(model)), as_river(pairloom.load(tmp_path / "model"))):
        assert isinstance(other, RiverClassifier)
        assert other.predict_proba_one(row) == model.predict_proba_one(row)
        other.learn_one(row, 1)
    assert AUCClassifier().get_params() == as_river(AUCClassifier()).estimator.get_params()
    with pytest.raises(TypeError, match="as_river takes a classifier"):
        as_river(PairwiseRanker())
    with pytest.raises(ValueError, match="learned rows without column names"):
        as_river(FPOGD(random_state=0).fit([[0.0], [1.0]], [0, 1]))


def test_the_metric_is_exact_and_has_bounds():
    rng = np.random.default_rng(0)
    y, scores, w = rng.random(800) < 0.3, rng.normal(size=800), rng.integers(1, 4, 800)
    metric, small, text_label = StreamingROCAUC(), StreamingROCAUC(max_bytes=2000), StreamingROCAUC(pos_val="yes")
    assert np.isnan(metric.get())
    for label, score, weight in zip(y, scores, w, strict=True):
        metric.update(label, {True: score, False: -score}, float(weight))
        small.update(label, score)
        text_label.update("yes" if label else "no", {"yes": score})
    assert metric.get() == pytest.approx(roc_auc_score(y, scores, sample_weight=w), abs=1e-12)
    assert text_label.get() == pytest.approx(roc_auc_score(y, scores), abs=1e-12)
    low, high = small.bounds
    assert low <= roc_auc_score(y, scores) <= high < low + 0.1
    assert repr(metric).startswith("StreamingROCAUC: ")
    assert np.isnan(metric.clone().get())
    assert metric.works_with(anomaly.HalfSpaceTrees())
    assert not metric.works_with(linear_model.LinearRegression())
    with pytest.raises(NotImplementedError, match="RollingROCAUC"):
        metric.revert(True, 0.5)


@pytest.mark.parametrize("kind", ["classifier", "scorer"])
def test_scores_become_probabilities(kind):
    rng = np.random.default_rng(0)
    # The classifier is overconfident: its columns, which are equal, count as independent evidence.
    inner = naive_bayes.GaussianNB() if kind == "classifier" else anomaly.HalfSpaceTrees(seed=0)
    model, raw, found, labels = CalibratedScores(inner), [], [], []
    assert model.predict_proba_one({"x": 0.5}) == {False: 0.5, True: 0.5}
    for _ in range(3000):
        y = bool(rng.random() < 0.1)
        value = float(np.clip(rng.normal(0.85 if y else 0.35, 0.1 if kind == "scorer" else 0.35), 0, 1))
        x = {"x": value, "copy": value, "again": value}
        raw.append(model._score(x))
        found.append(model.predict_proba_one(x)[True])
        labels.append(y)
        model.learn_one(x, y)
    assert abs(np.mean(found[1000:]) - np.mean(labels[1000:])) < 0.02
    plain = 1 / (1 + np.exp(-np.array(raw[1000:])))
    assert log_loss(labels[1000:], found[1000:]) < 0.9 * log_loss(labels[1000:], plain)
    with pytest.raises(ValueError, match="y must be one of labels"):
        model.learn_one(x, "other")
