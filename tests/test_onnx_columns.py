"""Exported models of mixed columns agree with those that were exported: missing and unseen values of every kind."""

import warnings

import numpy as np
import pandas as pd
import pytest

from pairloom import AUCClassifier, PairwiseRanker, PairwiseRegressor
from pairloom.base.graph import NoGraph
from pairloom.columns import Columns
from pairloom.estimators import BoostingClassifier
from pairloom.features import Compressed, Forest, Landmarks
from pairloom.persist import export_onnx
from pairloom.systems import FPOGD, OPAUC
from tests.generic import SMALL
from tests.mixed import mixed
from tests.runtime import TOLERANCE, assert_agrees, feeds_of, run, session_of

N = 1500
MANY = Columns(max_categories=60, marks_after=20)
"""Enough one-hot columns for each category."""


def stream():
    """Mixed columns, of which one looks like an id, one has no values, and one has none at first; new rows."""
    frame, y = mixed(N + 100, seed=1)
    frame["due"] = frame["time"].shift(3) - pd.Timedelta("200D")
    frame["number"] = np.arange(len(frame))
    frame["empty"] = np.full(len(frame), None, object)
    frame["late"] = np.where(np.arange(len(frame)) < 5, None, frame["shop"]).astype(object)
    new = frame.iloc[N:].reset_index(drop=True)
    new["known"] = new["known"].astype(object).astype(float)
    new.loc[3, "device"], new.loc[4, "shop"], new.loc[4, "late"] = "blackberry", "shop nowhere", "nowhere"
    new.loc[5:9, ["amount", "age", "known"]] = np.nan
    new.loc[10:12, "time"], new.loc[11:14, "due"] = pd.NaT, pd.NaT
    new.loc[15, "amount"], new.loc[16, "age"] = 9e14, -9e14
    new.loc[17, "time"] = pd.Timestamp("2199-12-31T23:59")
    new.loc[18, ["device", "shop", "late"]] = None
    return frame.iloc[:N], y[:N], new


FRAME, Y, NEW = stream()

NEAR = NEW.copy()
"""The same without extreme values: the angles of Fourier features have no digits left there, linear scores no limit."""
NEAR.loc[15, "amount"], NEAR.loc[16, "age"], NEAR.loc[17, "time"] = 50.0, -50.0, pd.Timestamp("2025-01-01")

FIVE = np.array(list("abcde"))[np.digitize(FRAME["age"].fillna(0.0), [-1.0, -0.3, 0.3, 1.0])]
PARTS = {"random_state": 0}
NUMBERS = {"items": "category", "age": "category"}
MODELS = {
    "race": AUCClassifier(portfolio=SMALL, **PARTS), "boosting": BoostingClassifier(n_trees=20, **PARTS),
    "boosting, many categories": BoostingClassifier(n_trees=20, columns=NUMBERS, **PARTS),
    "fourier": FPOGD(n_components=32, gamma="median", scale="standard", columns=MANY, **PARTS),
    "forest": FPOGD(features=Forest(10, max_leaves=64), **PARTS),
    "compressed": FPOGD(features=Compressed(Landmarks(16, scale="wide")), columns=MANY, **PARTS),
    "linear": OPAUC(scale="standard", columns=MANY, **PARTS),
}  # fmt: skip


def fitted(model, dtype, y=Y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of columns that look like ids
        return model.set_params(dtype=dtype).fit(FRAME, y)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("y", [Y, FIVE], ids=["two", "five"])
@pytest.mark.parametrize("name", MODELS)
def test_every_kind_of_column(name, y, dtype, tmp_path):
    model = fitted(MODELS[name], dtype, y)
    session, new = session_of(model, tmp_path), NEAR if name in ("fourier", "linear") else NEW
    assert_agrees(model, new, session)
    types = {one.name: one.type for one in session.get_inputs()}
    number = "tensor(float)" if dtype == "float32" else "tensor(double)"
    assert types["amount"] == types["known"] == number
    assert types["device"] == types["late"] == "tensor(string)"
    assert types["time"] == types["due"] == "tensor(double)"
    assert "empty" not in types
    assert ("number" in types) == (name in ("fourier", "compressed", "linear"))
    if dtype == "float32":
        assert_agrees(model, new, session_of(model, tmp_path, ml_opset=3))


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("kind", [PairwiseRanker, PairwiseRegressor])
def test_real_labels(kind, dtype, tmp_path):
    model = fitted(kind(n_components=32, columns=MANY, **PARTS), dtype, Y + FRAME["age"].fillna(0.0).to_numpy())
    session = session_of(model, tmp_path)
    assert [one.name for one in session.get_outputs()] == ["score"]
    assert_agrees(model, NEAR, session)


def test_numbers_only_with_names_of_outputs(tmp_path):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 3)), columns=["score", "label", "b"])
    model = OPAUC(random_state=0).fit(frame, frame["b"] > 0.5)
    session = session_of(model, tmp_path)
    assert [one.name for one in session.get_inputs()] == ["score", "label", "b"]
    found = run(session, feeds_of(session, frame))
    assert list(found) == ["label_", "probabilities", "score_"]
    np.testing.assert_allclose(found["score_"], model.score_many(frame), atol=1e-5)


def test_categories_that_only_a_hash_identifies_are_refused_or_unknown(tmp_path):
    frame = FRAME[["age", "shop"]].assign(long=np.where(FRAME["age"] > 0, "x" * 80, "y"))
    for columns, name, reason in ((Columns(max_categories=9), "shop", "more than 9"), (None, "long", "64 letters")):
        own = frame[["age", name]]
        model = AUCClassifier(portfolio=SMALL, columns=columns, random_state=0).fit(own, Y)
        with pytest.raises(NoGraph, match=rf"'{name}' has .*{reason}.*on_hashed='unknown'"):
            export_onnx(model, tmp_path / "model.onnx")
        with pytest.warns(UserWarning, match="they are unknown categories in the file"):
            session = session_of(model, tmp_path, on_hashed="unknown")
        found = run(session, feeds_of(session, own))["score"]
        known = own[name].isin(model._encoder.state.categories[1]).to_numpy()
        assert 50 < known.sum() < len(own) - 50
        np.testing.assert_allclose(found[known], model.score_many(own)[known], atol=1e-4)


def test_columns_without_an_input(tmp_path):
    frame = pd.DataFrame({"": np.arange(300.0) % 7, "b": np.arange(300.0) % 11})
    model = OPAUC(random_state=0).fit(frame, frame["b"] > 5)
    with pytest.raises(NoGraph, match="a column without a name"):
        export_onnx(model, tmp_path / "model.onnx")
    dropped = OPAUC(columns={"b": "drop"}, random_state=0).fit(frame.rename(columns={"": "a"}), frame["b"] > 5)
    assert [one.name for one in session_of(dropped, tmp_path).get_inputs()] == ["a"]
