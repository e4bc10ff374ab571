"""Labels on a stream: which may appear later, and the state after errors."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from pairloom import load, save
from pairloom.systems import FPOGD
from tests.conftest import make_stream


def test_classes_cannot_change_in_mid_stream():
    X, y = make_stream("random", 400, 4)
    y = (y > 0).astype(int)
    model = FPOGD(gamma="median", random_state=0).partial_fit(X[:300], y[:300])
    before = roc_auc_score(y, model.decision_function(X))
    for classes in ([0, 1, 2], [0, 2], [1, 2], ["0", "1"]):
        with pytest.raises(ValueError, match=r"this model has the classes \[0, 1\]: they cannot change"):
            model.partial_fit(X[300:], y[300:], classes=classes)
    assert roc_auc_score(y, model.decision_function(X)) == before
    assert model.n_seen_ == 300
    model.partial_fit(X[300:], y[300:], classes=[1, 0])
    model.partial_fit(X[300:], y[300:], classes={0, 1})


def test_one_label_may_become_two_but_not_three():
    X, _ = make_stream("random", 6, 4)
    model = FPOGD(random_state=0).partial_fit(X[:3], [0, 0, 0])
    with pytest.raises(ValueError, match="names 3 labels, but this model began with two"):
        model.partial_fit(X[3:], [0, 1, 2], classes=[0, 1, 2])
    with pytest.raises(ValueError, match="does not contain the label known so far, 0"):
        model.partial_fit(X[3:], [1, 1, 2], classes=[1, 2])
    assert model.partial_fit(X[3:], [0, 1, 0], classes=[0, 1]).classes_.tolist() == [0, 1]


def test_classes_named_along_with_rows_of_weight_zero_are_remembered():
    X, _ = make_stream("random", 6, 4)
    model = FPOGD(random_state=0).partial_fit(X[:3], [0, 1, 0], classes=[0, 1, 2], sample_weight=np.zeros(3))
    with pytest.raises(ValueError, match=r"an earlier call named \[0, 1, 2\]"):
        model.partial_fit(X[3:], [0, 1, 0], classes=[0, 1])
    assert model.partial_fit(X[3:], [0, 1, 2]).classes_.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="cannot change"):
        model.partial_fit(X[:1], [0], classes=[0, 1], sample_weight=[0.0])


def test_classes_have_one_dtype_whatever_the_call():
    X, _ = make_stream("random", 2, 4)
    text = ["fine", "fraud"]
    ways = [FPOGD().fit(X, labels) for labels in (text, np.array(text, dtype=object), pd.Series(text))]
    ways.append(FPOGD().learn_one(X[0], "fine").learn_one(X[1], "fraud"))
    ways.append(
        FPOGD().partial_fit(X[:1], ["fine"]).partial_fit(X[1:], ["fraud"], classes=np.array(text, dtype="<U20"))
    )
    assert {model.classes_.dtype.str for model in ways} == {"<U5"}
    numbers = [FPOGD().fit(X, np.array([0, 1], dtype=kind)) for kind in ("int8", "uint16", "int64")]
    numbers.append(FPOGD().learn_one(X[0], 0).learn_one(X[1], np.int8(1)))
    numbers.append(FPOGD(pos_label=np.int64(1)).partial_fit(X[:1], [0]).partial_fit(X[1:], [1]))
    assert {model.classes_.dtype.str for model in numbers} == {"<i8"}


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0.0, np.nan, 1.0], "Input y contains NaN. It is at row 1"),
        (["a", None, "b"], "Input y contains None. It is at row 1"),
        ([0.0, 1.0, np.inf], "Input y contains infinity .* It is at row 2"),
    ],
)
def test_a_missing_label_is_named(y, message):
    X, _ = make_stream("random", 3, 4)
    with pytest.raises(ValueError, match=message):
        FPOGD().fit(X, np.array(y, dtype=object if None in y else None))


@pytest.mark.parametrize("y", [["a", np.nan, "b"], ["1", 1, "2"], [2**63, 2**63 + 1, -1], [2**53 + 1, float(2**53), 1]])
def test_lists_that_numpy_would_merge_are_refused(y):
    X, _ = make_stream("random", 3, 4)
    before = FPOGD(random_state=0)
    with pytest.raises(ValueError, match=r"contains NaN|mixes labels|Unknown label type"):
        before.fit(X, y)
    assert not hasattr(before, "stream_")


def test_large_labels_stay_whole_numbers():
    X, _ = make_stream("random", 2, 4)
    for labels in ([2**64 - 1, 2**64 - 2], [2**53, 2**53 + 1], np.array([2**64 - 1, 0], np.uint64)):
        model = FPOGD(random_state=0).fit(X, labels)
        assert sorted(model.classes_.tolist()) == sorted(int(one) for one in labels)
        assert model.predict(X).dtype.kind in "iu"


EXACT = {
    "uint64": np.array([2**64 - 1, 0], dtype=np.uint64),
    "large numbers": [2**64 - 1, 0],
    "numbers that a double rounds": [2**64 - 1, 2**64 - 2],
    "NUL": np.array(["a\0", "a"], dtype=object),
    "text that ends in NUL": ["a\0", "a"],
    "a lone surrogate": ["\ud800", "x"],
    "empty text": ["", "x"],
    "int64": np.array([2**63 - 1, -(2**63)]),
    "bool": [True, False],
    "minus zero": [-0.0, 1.0],
}


@pytest.mark.parametrize("kind", EXACT)
@pytest.mark.parametrize("rows", [1, 12])
def test_labels_stay_what_they_are_and_files_hold_them(kind, rows, tmp_path):
    X, _ = make_stream("random", 12, 3)
    two = EXACT[kind]
    y = two * 6 if isinstance(two, list) else np.tile(two, 6)
    batches = FPOGD(n_components=8, random_state=0).partial_fit(X[:rows], y[:rows])
    named = FPOGD(n_components=8, random_state=0).partial_fit(X[:rows], y[:rows], classes=two)
    single = FPOGD(n_components=8, random_state=0)
    for x, label in zip(X[:rows], list(y[:rows]), strict=True):
        single.learn_one(x, label)
    for model in (batches, named, single):
        save(model, tmp_path / "model")
        found = load(tmp_path / "model")
        for one in (model, found):
            one.partial_fit(X, y)
        assert set(found.classes_.tolist()) == set(list(two) if isinstance(two, list) else two.tolist())
        assert len(found.classes_) == 2
        assert found.classes_.dtype == model.classes_.dtype
        np.testing.assert_array_equal(found.predict(X), model.predict(X))
