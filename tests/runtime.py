"""Exported models, run by onnxruntime."""

import numpy as np
import onnxruntime
import pandas as pd
from sklearn.base import is_classifier

from pairloom.persist import export_onnx

TOLERANCE = {"float32": 1e-5, "float64": 1e-9}
"""Largest differences of scores, relative to the largest score."""


def session_of(model, folder, **options):
    """A session with the exported model."""
    export_onnx(model, folder / "model.onnx", **options)
    return onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])


def feeds_of(session, X):
    """The inputs of a session for an array, or for a frame: text for categories, days for dates."""
    if not isinstance(X, pd.DataFrame):
        [one] = session.get_inputs()
        return {one.name: np.asarray(X, np.float32 if one.type == "tensor(float)" else float)}
    feeds = {}
    for one in session.get_inputs():
        column = X[one.name]
        if one.type == "tensor(string)":
            values = column.astype(object).where(column.notna(), "").to_numpy(object)
        elif column.dtype.kind == "M":
            values = ((column - pd.Timestamp(0)) / pd.Timedelta(days=1)).to_numpy(float)
        else:
            values = column.to_numpy(np.float32 if one.type == "tensor(float)" else float)
        feeds[one.name] = values[:, None]
    return feeds


def run(session, feeds):
    """The outputs by name."""
    return dict(zip([one.name for one in session.get_outputs()], session.run(None, feeds), strict=True))


def assert_agrees(model, X, session, n_single=20):
    """Scores, probabilities and labels are those of the model; those of single rows are those of the batch."""
    feeds = feeds_of(session, X)
    found, tolerance = run(session, feeds), TOLERANCE[model.dtype]
    by_class = is_classifier(model) and (len(model.classes_) > 2 and model.pos_label is None)
    expected = model.decision_function(X) if by_class else (getattr(model, "score_many", None) or model.predict)(X)
    assert found["score"].dtype == model.dtype
    assert found["score"].shape == expected.shape
    largest = np.abs(expected).max()
    assert largest > 0
    np.testing.assert_allclose(found["score"], expected, rtol=0, atol=tolerance * largest)
    for i in range(min(n_single, len(X))):
        alone = run(session, {name: values[i : i + 1] for name, values in feeds.items()})
        np.testing.assert_allclose(alone["score"][0], found["score"][i], rtol=0, atol=tolerance * largest)
    if is_classifier(model):
        np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), rtol=0, atol=10 * tolerance)
        decisions = model.decision_function(X)
        ordered = np.sort(decisions.reshape(len(X), -1), axis=1)
        margin = np.abs(decisions) if decisions.ndim == 1 else ordered[:, -1] - ordered[:, -2]
        clear = margin > 2 * tolerance * largest
        assert clear.mean() > 0.9
        np.testing.assert_array_equal(found["label"][clear], model.predict(X)[clear])
