"""Class weights: they multiply row weights, and their counts are state."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_sample_weight

from pairloom import AUCClassifier, load, save
from pairloom.base.tree import copy as copied
from pairloom.base.tree import same
from pairloom.persist import ModelFileError
from pairloom.systems import FPOGD, ExactAUC
from tests.conftest import make_stream
from tests.generic import SMALL, assert_same
from tests.hostile import read, sign

X, Y = make_stream("random", 300, 3)
W = np.random.default_rng(0).integers(0, 4, size=300) * 0.3
CUTS = [1, 3, 70, 71, 256]
MODELS = {
    "exact": lambda **more: ExactAUC(random_state=0, **more),
    "kernel": lambda **more: FPOGD(n_components=16, gamma="median", random_state=0, **more),
    "race": lambda **more: AUCClassifier(portfolio=SMALL, random_state=0, **more),
}


def by_hand(y, weight):
    """n_t / (k_t n_ty), one row after another."""
    counts, found = {}, []
    total = 0.0
    for label, own in zip(y.tolist(), weight.tolist(), strict=True):
        if own == 0:
            found.append(0.0)
            continue
        counts[label] = counts.get(label, 0.0) + own
        total += own
        found.append(own * (total / (len(counts) * counts[label])))
    return np.array(found)


def learned(model):
    """The state that learning changes, without counters."""
    return model.state_.stream


@pytest.mark.parametrize("name", MODELS)
def test_a_mapping_multiplies_the_weights_of_rows(name):
    weight = {1.0: 2.5}  # the other label weighs 1
    one = MODELS[name](class_weight=weight).fit(X, Y, W)
    other = MODELS[name]().fit(X, Y, W * np.where(Y == 1, 2.5, 1.0))
    assert same(learned(one), learned(other))
    assert one.state_.class_counts is None
    assert not same(learned(one), learned(MODELS[name]().fit(X, Y, W)))
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


@pytest.mark.parametrize("name", MODELS)
def test_balanced_is_by_the_counts_up_to_each_row(name):
    one = MODELS[name](class_weight="balanced").fit(X, Y, W)
    assert same(learned(one), learned(MODELS[name]().fit(X, Y, by_hand(Y, W))))
    counts = one.state_.class_counts
    assert sorted(counts.mass) == pytest.approx(sorted([W[Y > 0].sum(), W[Y < 0].sum()]))
    assert counts.total == pytest.approx(W.sum())


def test_balanced_comes_to_that_of_scikit_learn():
    model = ExactAUC(class_weight="balanced").fit(X, Y)
    _, _, weights = model._arrivals()
    expected = compute_sample_weight("balanced", Y)
    np.testing.assert_allclose(weights[-40:], expected[-40:], rtol=0.1)
    assert np.isclose(weights[-1], expected[-1], rtol=1e-12)


@pytest.mark.parametrize("weight", ["balanced", {-1.0: 0.3, 1.0: 3.0}])
@pytest.mark.parametrize("kind", ["random", "one_class_first"])
@pytest.mark.parametrize("name", ["exact", "kernel"])
def test_the_cuts_between_calls_do_not_show(name, kind, weight):
    rows, y = make_stream(kind, 300, 3)
    whole = MODELS[name](class_weight=weight).fit(rows, y, W)
    parts, single = (MODELS[name](class_weight=weight) for _ in range(2))
    for part in np.array_split(np.arange(300), CUTS):
        parts.partial_fit(rows[part], y[part], sample_weight=W[part])
    for x, label, own in zip(rows, y, W, strict=True):
        single.learn_one(x, label, own)
    assert_same(whole, parts)
    assert_same(whole, single)


def test_three_classes_and_those_that_were_only_declared():
    y = np.where(np.arange(300) % 7 == 3, "c", np.where(Y > 0, "b", "a"))
    whole = ExactAUC(class_weight="balanced", random_state=0).fit(X, y, W)
    assert same(learned(whole), learned(ExactAUC(random_state=0).fit(X, y, by_hand(y, W))))
    parts = ExactAUC(class_weight="balanced", random_state=0)
    for part in np.array_split(np.arange(300), CUTS):
        parts.partial_fit(X[part], y[part], classes=["a", "b", "c"], sample_weight=W[part])
    assert same(whole.state_, parts.state_)
    assert len(whole.state_.class_counts.mass) == 3


def test_while_one_class_has_come_its_weight_is_one():
    rows, y = X[:20], np.ones(20)
    alone = ExactAUC(class_weight="balanced", random_state=0).partial_fit(rows, y)
    assert same(learned(alone), learned(ExactAUC(random_state=0).partial_fit(rows, y)))


def test_a_class_of_weight_0_is_skipped():
    weight = {"no": 0.0, "a": 1.0, "b": 2.0}
    y = np.where(np.arange(300) % 3 == 0, "no", np.where(Y > 0, "b", "a"))
    there = y != "no"
    skipping = ExactAUC(class_weight=weight, random_state=0).fit(X, y)
    assert skipping.classes_.tolist() == ["a", "b"]
    assert_same(
        skipping.set_params(class_weight=None),
        ExactAUC(class_weight=weight, random_state=0).fit(X[there], y[there]).set_params(class_weight=None),
    )
    single = ExactAUC(class_weight=weight, random_state=0).learn_one(X[0], "no")
    assert not hasattr(single, "stream_")
    with pytest.raises(ValueError, match="nothing to learn"):
        ExactAUC(class_weight={0: 0, 1: 0}).fit(X, (Y > 0).astype(int))


@pytest.mark.parametrize("learn", ["fit", "partial_fit", "learn_one"])
def test_labels_that_are_none_are_named(learn):
    model = ExactAUC(class_weight={-1: 1.0, 2: 3.0})
    at = int(np.argmax(Y[0] != Y))
    if learn != "fit":
        model.partial_fit(X[:at], Y[:at])  # one class: the other may still be 2
    before = pickle.dumps(model)
    rows = (X[at], Y[at]) if learn == "learn_one" else (X, Y)
    with pytest.raises(ValueError, match=r"class_weight names \[2\], which are not among the classes, \[-1.0, 1.0\]"):
        getattr(model, learn)(*rows)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("even", "must be a mapping from labels to weights, \"balanced\" or None; got 'even'"),
        (3.0, "must be a mapping"),
        ([1, 2], "must be a mapping"),
        ({1: -1.0}, r"class_weight\[1\] must be a number at least 0; got -1.0"),
        ({1: np.nan}, r"class_weight\[1\] must be a number"),
        ({1: "2"}, r"class_weight\[1\] must be a number"),
    ],
)
def test_other_values_are_refused(value, message):
    for learn in (lambda model: model.fit(X, Y), lambda model: model.learn_one(X[0], Y[0])):
        model = ExactAUC(class_weight=value)
        with pytest.raises(ValueError, match=message):
            learn(model)
        assert not hasattr(model, "stream_")


def test_weights_stay_in_bounds():
    for factor in (1e-90, 1e90):
        model = ExactAUC(class_weight={1: factor, -1: 1.0}).fit(X, Y, np.full(300, factor))
        assert np.isfinite(model.decision_function(X)).all()


def test_probabilities_are_those_of_the_weighted_classes():
    plain, even = (ExactAUC(class_weight=weight).fit(X, Y) for weight in (None, "balanced"))
    assert plain.predict_proba(X)[:, 1].mean() == pytest.approx(0.25, abs=0.05)
    assert even.predict_proba(X)[:, 1].mean() == pytest.approx(0.5, abs=0.08)


# State and files.


@pytest.mark.parametrize("weight", ["balanced", {-1.0: 0.3, 1.0: 3.0}])
@pytest.mark.parametrize("at", [1, 120])
def test_it_goes_on_from_files_copies_and_states(weight, at, tmp_path):
    part = ExactAUC(class_weight=weight, random_state=0).partial_fit(X[:at], Y[:at], sample_weight=W[:at] + 0.1)
    whole = ExactAUC(class_weight=weight, random_state=0).partial_fit(X, Y, sample_weight=W + 0.1)
    save(part, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.class_weight == weight
    assert same(loaded.state_, part.state_)
    others = [loaded, copy.deepcopy(part), pickle.loads(pickle.dumps(part)), part.with_state(copied(part.state_))]
    for other in others:
        assert same(other.partial_fit(X[at:], Y[at:], sample_weight=W[at:] + 0.1).state_, whole.state_)


def test_fit_forgets_the_counts():
    model = ExactAUC(class_weight="balanced", random_state=0).fit(X[:50], Y[:50])
    assert_same(model.fit(X, Y), ExactAUC(class_weight="balanced", random_state=0).fit(X, Y))


def test_a_file_says_what_is_counted_only_if_it_counts(tmp_path):
    save(ExactAUC(random_state=0).fit(X, Y), tmp_path / "plain")
    save(ExactAUC(random_state=0, class_weight="balanced").fit(X, Y), tmp_path / "balanced")
    header, arrays = read(tmp_path / "plain")
    assert not any("class_counts" in path for path in (*header["state"]["kinds"], *arrays))
    header, arrays = read(tmp_path / "balanced")
    assert header["state"]["kinds"]["class_counts"] == "ClassCounts"
    changed = load(tmp_path / "plain").set_params(class_weight="balanced")
    with pytest.raises(ValueError, match="were changed after it was fitted"):
        save(changed, tmp_path / "changed")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h, a: a.update({"class_counts.mass": np.array([np.nan, 1.0])}), "numbers outside 0"),
        (lambda h, a: a.update({"class_counts.mass": np.array([-1.0, 301.0])}), "numbers outside 0"),
        (lambda h, a: a.update({"class_counts.mass": np.array([150.0, 100.0])}), "rows of each class, and their sum"),
        (lambda h, a: a.update({"class_counts.mass": np.zeros(2)}), "rows of each class"),
        (lambda h, a: a.update({"class_counts.mass": np.zeros(3)}), "axis of 2, not 3"),
        (lambda h, a: a.update({"class_counts.mass": np.array([75, 225])}), "dtype f8"),
        (lambda h, a: h["state"]["values"].update({"class_counts.total": {"float": "inf"}}), "total must be a value"),
        (lambda h, a: h["state"]["values"].update({"class_counts.total": {"float": "nan"}}), "total must be a value"),
        (lambda h, a: h["state"]["values"].update({"class_counts.total": 300}), "a value .float 0:MASS., not 300"),
        (lambda h, a: h["state"]["kinds"].update({"class_counts": "Fit"}), "must be a ClassCounts"),
        (lambda h, a: (h["state"]["kinds"].pop("class_counts"), h["state"]["values"].pop("class_counts.total"),
                       a.pop("class_counts.mass")), "class_counts must be present"),
        (lambda h, a: h["model"].update({"class_weight": None}), "class_counts must be absent"),
        (lambda h, a: h["model"].update({"class_weight": "even"}), "class_weight must be a mapping"),
        (lambda h, a: h["model"].update({"class_weight": {"dict": [[1, -1.0]]}}), "must be a number at least 0"),
    ],
)  # fmt: skip
def test_hostile_counts_are_refused(change, message, tmp_path):
    path = tmp_path / "model"
    save(ExactAUC(random_state=0, class_weight="balanced").fit(X, Y), path)
    header, arrays = read(path)
    path.write_bytes(sign(header, arrays))
    assert load(path).n_seen_ == 300
    change(header, arrays)
    path.write_bytes(sign(header, arrays))
    with pytest.raises(ModelFileError, match=message):
        load(path)
