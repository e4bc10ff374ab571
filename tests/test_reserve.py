"""Columns of learn_one that come and go: absent names are missing values, new names take spare columns."""

import warnings
from datetime import date, timedelta

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

import pairloom
from pairloom import AUCClassifier, PairwiseRanker
from pairloom.base.tree import same
from pairloom.columns import Columns, ColumnsWarning
from pairloom.persist import ModelFileError
from pairloom.systems import FPOGD
from tests.hostile import read, sign

CLASSIFIERS = {
    "FPOGD": lambda **k: FPOGD(n_components=16, random_state=0, **k),
    "race": lambda **k: AUCClassifier(random_state=0, **k),
}


def stream(n, late, seed=0):
    """Rows in which the label depends on columns that arrive at row ``late``: a number, a category and a date."""
    rng = np.random.default_rng(seed)
    for t in range(n):
        y = int(rng.random() < 0.3)
        row = {"a": float(rng.normal()), "b": float(rng.normal() + 0.2 * y), "shop": "uvw"[int(rng.integers(3))]}
        if t >= late:
            row |= {"main": 5e4 + 1e3 * (rng.normal() + 2.0 * y), "device": "xy"[int(rng.random() < 0.2 + 0.6 * y)]}
            row |= {"day": date(2024, 1, 1) + timedelta(days=t // 10 - int(rng.integers(5)) * y)}
        yield row, y


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_an_absent_name_is_a_missing_value(name):
    models = [CLASSIFIERS[name]() for _ in range(2)]
    for t, (row, y) in enumerate(stream(200, 400)):
        gaps = {key: value for k, (key, value) in enumerate(row.items()) if t == 0 or (t + k) % 4}
        for model, given in zip(models, (gaps, {**dict.fromkeys(row), **gaps}), strict=True):
            assert t == 0 or np.isfinite(model.score_one(given))
            model.learn_one(given, y)
    assert same(models[0].state_, models[1].state_)
    assert models[0].score_one({}) == models[1].score_one(dict.fromkeys(row))
    with pytest.raises(ValueError, match=r"unknown columns \['main'\]"):
        models[0].learn_one({"main": 1.0}, 0)
    assert same(models[0].state_, models[1].state_)
    with pytest.raises(ValueError, match="feature names"):
        models[0].predict(pd.DataFrame({"a": [1.0]}))


@pytest.mark.parametrize("kind", ["number", "category", "date"])
def test_a_late_column_is_used(kind):
    name = {"number": "main", "category": "device", "date": "day"}[kind]
    model, scores, labels = FPOGD(n_components=64, columns=Columns(reserve=2), random_state=0), [], []
    for row, y in stream(4000, 1500):
        row = {key: value for key, value in row.items() if key in ("a", "b", name)}
        scores.append(model.score_one(row))
        labels.append(y)
        model.learn_one(row, y)
    before, after = (roc_auc_score(labels[rows], scores[rows]) for rows in (slice(500, 1500), slice(3000, 4000)))
    assert before < 0.65
    assert after > before + 0.12
    assert model.columns_.kinds[name] == kind
    assert model.columns_.missing[name] == pytest.approx(1500 / 4000)
    assert model.feature_names_in_.tolist() == ["a", "b", name]


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_frames_follow_rows_and_files_continue(name, tmp_path):
    rows = list(stream(700, 100))
    made = CLASSIFIERS[name](columns=Columns({"device": "category"}, reserve=4))
    for row, y in rows[:400]:
        made.learn_one(row, y)
    pairloom.save(made, tmp_path / "model")
    loaded = pairloom.load(tmp_path / "model")
    assert same(loaded.state_, made.state_)
    frame = pd.DataFrame([row for row, _ in rows[400:]])[loaded.feature_names_in_.tolist()]
    assert frame.columns.tolist() == ["a", "b", "shop", "day", "device", "main"]
    np.testing.assert_array_equal(loaded.score_many(frame), [made.score_one(row) for row, _ in rows[400:]])
    for row, y in rows[400:]:
        made.learn_one(row, y)
    labels = np.array([y for _, y in rows[400:]])
    loaded.partial_fit(frame[:200], labels[:200]).partial_fit(frame[200:], labels[200:])
    assert same(loaded.state_, made.state_)
    header, arrays = read(tmp_path / "model")
    header["state"]["values"]["columns.reserve.used"] = 4
    (tmp_path / "model").write_bytes(sign(header, arrays))
    with pytest.raises(ModelFileError):
        pairloom.load(tmp_path / "model")


def test_a_file_without_the_parameter_loads(tmp_path):
    model = FPOGD(n_components=8, columns=Columns({"shop": "category"}), random_state=0)
    for row, y in stream(40, 100):
        model.learn_one(row, y)
    pairloom.save(model, tmp_path / "model")
    header, arrays = read(tmp_path / "model")
    del header["model"]["columns"]["reserve"]
    (tmp_path / "model").write_bytes(sign(header, arrays))
    assert same(pairloom.load(tmp_path / "model").state_, model.state_)


def test_names_beyond_the_reserve_are_counted_and_reported_once():
    model = FPOGD(n_components=8, columns=Columns({"no": "drop"}, reserve=1), random_state=0).learn_one({"a": 1.0}, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.learn_one({"a": 2.0, "gap": None, "no": 3.0}, 1)
        assert model.score_one({"z": 1.0, "a": 1.0}) == model.score_one({"a": 1.0})
        before = pairloom.base.tree.copy(model.state_)
        with pytest.raises(ColumnsWarning):
            model.learn_one({"b": 1.0, "c": 2.0}, 1)
        assert same(model.state_, before)
    with pytest.warns(ColumnsWarning, match="the new column 'c' is ignored: all 1 spare columns are in use") as caught:
        model.learn_one({"c": 2.0, "b": 1.0, "d": 1}, 1).learn_one({"d": 2.0}, 1)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert model.columns_.ignored == 3
    assert list(model.columns_.kinds) == ["a", "b"]
    with pytest.raises(ValueError, match="column 'e' contains a list"):
        FPOGD(columns=Columns(reserve=1)).learn_one({"a": 1.0}, 0).learn_one({"e": [1]}, 0)


def test_a_stream_may_begin_with_an_empty_row(tmp_path):
    model = AUCClassifier(columns=Columns(reserve=4), random_state=0).learn_one({}, 0)
    for row, y in stream(60, 100):
        model.learn_one(row, y)
    pairloom.save(model, tmp_path / "model")
    assert pairloom.load(tmp_path / "model").score_one(row) == model.score_one(row)
    assert list(model.columns_.kinds) == ["a", "b", "shop"]


def test_other_estimators_have_a_reserve_too():
    ranker = PairwiseRanker(n_components=16, columns=Columns(reserve=3), random_state=0)
    for row, y in stream(300, 100):
        ranker.learn_one(row, float(y))
    assert len(ranker.feature_names_in_) == 6


@pytest.mark.parametrize("reserve", [-1, 1.5, 5000])
def test_a_reserve_is_a_small_number(reserve):
    with pytest.raises(ValueError, match="reserve"):
        Columns(reserve=reserve)
