"""Each guarantee to users, tested."""

import pickle
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairloom.systems import FPOGD
from tests.conftest import STREAMS, examples, make_stream
from tests.generic import FPOGD_VARIANTS, assert_same


@pytest.fixture(params=FPOGD_VARIANTS, ids=str)
def parameters(request):
    return {"random_state": 0, "n_components": 64, **FPOGD_VARIANTS[request.param]}


# 1. Any chunking gives the same model, bit for bit.


@pytest.mark.parametrize(
    ("parameters", "kind"),
    [(name, STREAMS[k % 4]) for k, name in enumerate(FPOGD_VARIANTS)],
    indirect=["parameters"],
)
def test_1_chunks_and_single_rows_give_the_same_bits(parameters, kind):
    X, y = make_stream(kind, 330, 20)
    whole = FPOGD(**parameters).fit(X, y)
    one_by_one = FPOGD(**parameters)
    for x, label in zip(X, y, strict=True):
        one_by_one.learn_one(x, label)
    assert_same(whole, one_by_one)
    chunks = FPOGD(**parameters)
    for rows in np.array_split(np.arange(330), [1, 3, 70, 71, 256, 300]):
        chunks.partial_fit(X[rows], y[rows])
    assert_same(whole, chunks)
    np.testing.assert_array_equal(whole.decision_function(X), [one_by_one.score_one(x) for x in X])


@examples(25)
@given(cuts=st.lists(st.integers(1, 1499), max_size=8), seed=st.integers(0, 5))
def test_1_any_cuts_of_a_longer_stream(cuts, seed):
    X, y = make_stream("one_class_first", 1500, 5, seed)
    parameters = {"gamma": "median", "scale": "standard", "n_components": 50, "average": "poly", "random_state": seed}
    whole, cut = FPOGD(**parameters).fit(X, y), FPOGD(**parameters)
    for rows in np.split(np.arange(1500), sorted(set(cuts))):
        cut.partial_fit(X[rows], y[rows])
    assert_same(whole, cut)


def test_1_the_container_does_not_matter():
    X, y = make_stream("random", 300, 6)
    X = X.astype(np.float32)
    expected = FPOGD(random_state=0).fit(X, y)
    readonly = X.astype(np.float64)
    readonly.flags.writeable = False
    for same in (readonly, np.asfortranarray(X), X.tolist(), X[::-1][::-1]):
        assert_same(expected, FPOGD(random_state=0).fit(same, y))


# 2. A batch may contain only one class.


@pytest.mark.parametrize("first", ["a", "b"])
def test_2_one_class_for_long_then_learning_starts(first):
    X, y = make_stream("random", 900, 4)
    labels = np.where(y > 0, "b", "a")
    order = np.concatenate([np.flatnonzero(labels == first)[:200], np.arange(900)])
    X, labels = X[order], labels[order]
    model = FPOGD(n_components=64, gamma="median", random_state=0).partial_fit(X[:200], labels[:200])
    assert model.classes_.tolist() == [first]
    assert model.predict(X[:5]).tolist() == [first] * 5
    assert model.predict_proba(X[:5]).tolist() == [[1.0]] * 5
    assert not model.coef_.any()
    model.partial_fit(X[200:], labels[200:])
    assert model.classes_.tolist() == ["a", "b"]
    right = np.where(labels == "b", 1, -1) * model.decision_function(X)
    assert right.mean() > 0.5
    assert_same(model, FPOGD(n_components=64, gamma="median", random_state=0).fit(X, labels))


def test_2_swapping_the_labels_turns_the_sign_and_nothing_else():
    X, y = make_stream("random", 300, 4)
    a, b = FPOGD(random_state=0).fit(X, y), FPOGD(random_state=0).fit(X, -y)
    np.testing.assert_array_equal(a.coef_, -b.coef_)
    np.testing.assert_array_equal(a.decision_function(X), -b.decision_function(X))
    assert [s.tolist() for s in a.strata_sizes_] == [s.tolist() for s in b.strata_sizes_][::-1]


def test_2_a_third_label_raises_and_names_classes():
    X, y = make_stream("random", 30, 4)
    model = FPOGD(random_state=0).fit(X, np.where(y > 0, "yes", "no"))
    before = pickle.dumps(model)
    for attempt in (
        lambda: model.partial_fit(X[:2], ["no", "maybe"]),
        lambda: model.learn_one(X[0], "maybe"),
    ):
        with pytest.raises(ValueError, match=r"'maybe' at row [01] is not one of .*'no', 'yes'"):
            attempt()
        assert pickle.dumps(model) == before
    with pytest.raises(ValueError, match=r"label 3 at row 2 is not one of \[1, 2\].*pass all labels as classes="):
        FPOGD().partial_fit(X[:3], [1, 2, 3])
    with pytest.raises(ValueError, match=r"7 at row 1 is not one of \[1, 2\]"):
        FPOGD().partial_fit(X[:3], [1, 7, 2], classes=[1, 2])
    with pytest.raises(ValueError, match="they cannot change"):
        model.partial_fit(X[:1], ["yes"], classes=["yes", "maybe"])


def test_2_classes_may_be_declared_before_they_are_seen():
    X, _ = make_stream("random", 30, 4)
    model = FPOGD(random_state=0).partial_fit(X[:2], [5, 5], classes=[9, 5])
    assert model.classes_.tolist() == [5, 9]
    assert model.predict_proba(X).shape == (30, 2)
    assert set(model.predict(X)) == {5}


@pytest.mark.parametrize("labels", [("no", "yes"), (False, True), (0, 1), (2.0, 7.0)])
def test_2_labels_of_any_kind(labels):
    X, y = make_stream("random", 100, 4)
    target = np.array(labels)[(y > 0).astype(int)]
    model = FPOGD(random_state=0).fit(X, target)
    assert model.classes_.dtype == target.dtype
    assert set(model.predict(X).tolist()) <= set(labels)
    assert set(model.predict_proba_one(X[0])) == set(labels)


# 3. Predicting changes nothing.


def test_3_predicting_changes_nothing(parameters):
    X, y = make_stream("random", 100, 5)
    model = FPOGD(**parameters)
    assert model.score_one(X[0]) == 0.0
    assert model.predict_proba_one(X[0]) == {}
    for t in range(1, 101, 9):
        model.partial_fit(X[t - 1 : t + 8], y[t - 1 : t + 8])
        before = pickle.dumps(model)
        for predict in (model.predict, model.predict_proba, model.decision_function):
            assert np.isfinite(predict(X)).all()
        model.score_one(X[0])
        model.predict_proba_one(X[0])
        assert np.isfinite([model.balanced_threshold_, model.nbytes_]).all()
        repr(model)
        assert pickle.dumps(model) == before


def test_3_from_many_threads():
    X, y = make_stream("random", 2000, 5)
    model = FPOGD(random_state=0).fit(X, y)
    expected, wrong = model.decision_function(X), []

    def work():
        for _ in range(20):
            if not np.array_equal(model.decision_function(X), expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# 4. Bad input raises ValueError naming the place, and the model is exactly as before.


def bad_batches(X, y):
    nan, infinite, huge = X.copy(), X.copy(), X.copy()
    nan[3, 1], infinite[0, 4], huge[7, 2] = np.nan, -np.inf, 1e300
    return {
        "NaN at row 3, column 1": (nan, y),
        "infinity at row 0, column 4": (infinite, y),
        "row 7, column 2, ?": (huge, y),
        "X has 4 features, but FPOGD is expecting 5": (X[:, :4], y),
        "inconsistent numbers of samples": (X, y[:-1]),
        "Expected 2D array": (X[0], y[:1]),
        "minimum of 1 is required": (X[:0], y[:0]),
        "NaN": (X, np.where(np.arange(len(y)) == 2, np.nan, y)),
        "at row 5 is not one of": (X, np.where(np.arange(len(y)) == 5, 3, y)),
        "Unknown label type": (X, y + 0.25 * np.arange(len(y))),
        "X must contain numbers, got the text [ab]": (np.where(X > 0, "a", "b"), y),
    }


@pytest.mark.parametrize("seen", [0, 1, 300, 1100])
def test_4_a_bad_batch_leaves_no_trace(seen):
    X, y = make_stream("random", 1200, 5)
    model = FPOGD(n_components=32, gamma="median", random_state=0)
    if seen:
        model.partial_fit(X[:seen], y[:seen], classes=[-1.0, 1.0])
    before = pickle.dumps(model)
    for message, (rows, labels) in bad_batches(X[:20], y[:20]).items():
        if not seen and "expecting" in message:
            continue
        pattern = "not one of" if not seen and "not one of" in message else message.replace("?", "").rstrip(", ")
        with pytest.raises(ValueError, match=pattern):
            model.partial_fit(rows, labels)
        assert pickle.dumps(model) == before


def test_4_a_bad_single_row_leaves_no_trace():
    X, y = make_stream("random", 200, 5)
    model = FPOGD(n_components=32, random_state=0).fit(X, y)
    before = pickle.dumps(model)
    for row, label, message in (
        ([1, 2, np.nan, 4, 5], 1.0, "NaN at row 0, column 2"),
        ([1, 2, 3, 4], 1.0, r"expected one row of 5 values, got shape \(4,\)"),
        ([[1, 2, 3, 4, 5]], 1.0, "expected one row of 5 values"),
        ([1, 2, 3, 4, "x"], 1.0, "must contain numbers only"),
        ([1, 2, 3, 4, 1e30], 1.0, "1e.30 at row 0, column 4, too large for float32"),
        ({"a": 1}, 1.0, "without column names"),
        ([1, 2, 3, 4, 5], 2.0, "2.0 at row 0 is not one of"),
        ([1, 2, 3, 4, 5], [1.0], "y must be one label"),
        ([1, 2, 3, 4, 5], np.nan, "NaN"),
        ([1, 2, 3, 4, 5], None, "."),
    ):
        with pytest.raises(ValueError, match=message):
            model.learn_one(row, label)
        if message not in (".", "NaN", "y must be one label") and "not one of" not in message:
            with pytest.raises(ValueError, match=message):
                model.score_one(row)
        assert pickle.dumps(model) == before


def test_4_fit_with_bad_input_keeps_the_fitted_model():
    X, y = make_stream("random", 200, 5)
    model = FPOGD(n_components=32, random_state=0).fit(X, y)
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((5, 3), np.nan), [0, 1, 0, 1, 0])
    assert pickle.dumps(model) == before


def test_2_text_and_numbers_do_not_mix():
    X, _ = make_stream("random", 40, 4)
    model = FPOGD(random_state=0).partial_fit(X[:20], [0] * 20)
    before = pickle.dumps(model)
    for attempt in (lambda: model.partial_fit(X[20:], ["1"] * 20), lambda: model.learn_one(X[0], "1")):
        with pytest.raises(ValueError, match="text and numbers"):
            attempt()
        assert pickle.dumps(model) == before


@pytest.mark.parametrize("change", [{"gamma": [1.0, 2.0]}, {"random_state": -1}, {"eps": None}, {"n_components": "12"}])
def test_4_a_bad_parameter_keeps_the_fitted_model(change):
    X, y = make_stream("random", 40, 4)
    model = FPOGD(random_state=0).fit(X, y)
    expected = model.decision_function(X)
    with pytest.raises(ValueError, match=next(iter(change))):
        model.set_params(**change).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), expected)
    fresh = FPOGD(**change)
    with pytest.raises(ValueError, match=next(iter(change))):
        fresh.learn_one(X[0], 1)
    assert fresh.score_one(X[0]) == 0.0


@pytest.mark.parametrize("value", [1e300, np.inf, np.nan])
def test_4_a_huge_value_is_refused_without_a_word_from_numpy(value):
    model = FPOGD(dtype="float64", random_state=0).fit(np.eye(4), [0, 1, 0, 1])
    for attempt in (lambda: model.learn_one([1, value, 1, 1], 0), lambda: model.predict([[1, value, 1, 1]])):
        with pytest.raises(ValueError, match="at row 0, column 1"):
            attempt()


def test_4_odd_rows_and_labels():
    with pytest.raises(ValueError, match=r"column names .*must be strings"):
        FPOGD().learn_one({("a", 1): 1.0, ("b", 2): 2.0}, 0)
    for label in ([1], (1,), np.array([1])):
        with pytest.raises(ValueError, match="y must be one label"):
            FPOGD().learn_one([1.0, 2.0], label)
