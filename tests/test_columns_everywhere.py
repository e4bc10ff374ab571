"""The generic checks, with mixed frames, for every estimator and each of its published forms."""

import pickle

import numpy as np
import pandas as pd
import pytest

import pairloom
from pairloom.base.tree import flatten, nbytes, same, unflatten
from pairloom.columns import Columns
from pairloom.features import Forest
from pairloom.systems import FPOGD
from tests.generic import assert_same, forms, make, outputs
from tests.mixed import mixed, records

FORMS = (
    "AUCClassifier", "ExactAUC", "FPOGD", "KOIL-FIFO", "OPAUC", "PairwiseRanker", "PairwiseRegressor",
    "SparseKernelAUC",
)  # fmt: skip
"""One of each kind of model: all use the same encoder."""
assert set(FORMS) <= set(forms())

pytestmark = [
    pytest.mark.filterwarnings("ignore::pairloom.stream.StabilityWarning"),
    pytest.mark.filterwarnings("ignore:X does not have valid feature names"),
]


@pytest.mark.parametrize("form", FORMS)
def test_chunks_single_rows_and_seeds_give_the_same_bits(form):
    frame, y = mixed(150)
    whole = make(form).fit(frame, y)
    assert_same(whole, make(form).fit(frame, y))
    if not hasattr(whole, "partial_fit"):
        return
    chunks, one_by_one = make(form), make(form)
    for rows in np.array_split(np.arange(150), [1, 3, 64, 100]):
        chunks.partial_fit(frame.iloc[rows], y[rows])
    for row, label in zip(records(frame), y, strict=True):
        one_by_one.learn_one(row, label)
    assert_same(whole, chunks)
    assert_same(whole, one_by_one)
    assert one_by_one.score_one(records(frame)[7]) == outputs_of_one(whole, frame)[7]


def outputs_of_one(model, frame):
    return (model.score_many if hasattr(model, "score_many") else model.predict)(frame)


@pytest.mark.parametrize("form", FORMS)
def test_predicting_changes_nothing_and_bad_rows_leave_no_trace(form):
    frame, y = mixed(120)
    model = make(form).fit(frame, y)
    before = pickle.dumps(model)
    later, _ = mixed(60, seed=1)
    later.loc[3, "shop"] = "never seen"
    expected = outputs(model, later)
    assert all(np.isfinite(values).all() for values in expected)
    for k, values in enumerate(outputs(model, later.iloc[3:4])):
        np.testing.assert_array_equal(values[0], expected[k][3])
    model.score_one(records(later)[3])
    text = later.astype({"age": object})
    text.loc[5, "age"] = "old"
    bad = [(text, "column 'age' must contain numbers, but contains 'old' at row 5"),
           (later.assign(age=np.inf), "column 'age' contains infinity at row 0"),
           (later.drop(columns="shop"), "Feature names seen at fit time, yet now missing"),
           (np.zeros((4, 7)), "pass a data frame or mappings")]  # fmt: skip
    for rows, message in bad:
        calls = [model.predict]
        if hasattr(model, "partial_fit"):
            calls.append(lambda X: model.partial_fit(X, y[: len(X)]))
        for call in calls:
            with pytest.raises(ValueError, match=message):
                call(rows)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("form", FORMS)
def test_flatten_files_and_memory(form, tmp_path):
    frame, y = mixed(150)
    model = make(form).fit(frame.iloc[:100], y[:100])
    state = model.state_
    assert same(unflatten(flatten(state)), state)
    pairloom.save(model, tmp_path / "model")
    for other in (model.with_state(unflatten(flatten(state))), pairloom.load(tmp_path / "model")):
        assert other.columns_ == model.columns_
        for ours, its in zip(outputs(other, frame), outputs(model, frame), strict=True):
            np.testing.assert_array_equal(ours, its)
        if hasattr(other, "partial_fit"):
            other, expected = (pickle.loads(pickle.dumps(one)) for one in (other, model))
            for one in (other, expected):
                one.partial_fit(frame.iloc[100:], y[100:])
            assert same(other.state_, expected.state_)
    assert model.nbytes_ == model.stream_.nbytes + model._encoder.nbytes + nbytes((model._windows, model._newest))


def test_memory_does_not_grow_with_new_categories():
    model, sizes = FPOGD(n_components=16, columns=Columns(max_categories=200, n_hashed=50), random_state=0), []
    for part in range(4):
        frame, y = mixed(1100, seed=part)
        frame["shop"] = [f"shop {part} {k}" for k in range(1100)]
        model.partial_fit(frame, y)
        sizes.append(model.nbytes_)
    assert sizes[1] == sizes[2] == sizes[3]
    assert model.columns_.id_like == ["shop"]


@pytest.mark.parametrize("features", [None, Forest(8, max_leaves=8)])
def test_rows_of_weight_zero_are_not_there(features):
    frame, y = mixed(150)
    weight = np.where(np.arange(150) % 3 == 0, 0.0, 2.0)
    keep = weight > 0
    made, alone = (FPOGD(features=features, n_components=16, random_state=0) for _ in range(2))
    made.fit(frame, y, sample_weight=weight)
    alone.fit(frame[keep], y[keep], sample_weight=weight[keep])
    assert_same(made, alone)


def test_prediction_from_a_frame_of_another_library():
    import polars as pl
    import pyarrow as pa

    frame, y = mixed(150)
    model = FPOGD(n_components=16, random_state=0).fit(frame, y)
    for other in (pl.from_pandas(frame), pa.Table.from_pandas(frame, preserve_index=False)):
        assert_same(model, FPOGD(n_components=16, random_state=0).fit(other, y))
        np.testing.assert_array_equal(model.decision_function(other), model.decision_function(frame))


def test_a_frame_is_not_changed():
    frame, y = mixed(50)
    before = frame.copy(deep=True)
    FPOGD(n_components=16, random_state=0).fit(frame, y).predict(frame)
    pd.testing.assert_frame_equal(frame, before)
