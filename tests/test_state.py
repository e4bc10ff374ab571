"""The state of every estimator is one tree: flat tables of arrays and plain values, and back."""

import json
from dataclasses import dataclass, fields, is_dataclass

import numpy as np
import pytest

from pairloom import AUCClassifier, Learner, Stream
from pairloom.base.tree import (
    DERIVED,
    NODES,
    SHARED,
    Flat,
    cast,
    copy,
    dtype_code,
    flatten,
    nbytes,
    node,
    same,
    unflatten,
)
from pairloom.features import Growing
from pairloom.models.exact import ExactPath
from pairloom.race import Budget
from tests.conftest import make_stream
from tests.generic import SMALL, forms, make

RULES = {"gamma": "median", "scale": "standard"}


def through_a_file(flat):
    """The content of a possible file: JSON, and bytes with a dtype and a shape."""
    values, kinds = json.loads(json.dumps([flat.values, flat.kinds]))
    arrays = {path: np.frombuffer(a.tobytes(), a.dtype).reshape(a.shape).copy() for path, a in flat.arrays.items()}
    return Flat(arrays, values, kinds)


def changed(form, **changes):
    known = forms()[form][0]._get_param_names()
    return make(form, **{name: value for name, value in changes.items() if name in known})


def assert_goes_on(model, X, y, at, **first):
    """A model stored after ``at`` rows and restored equals the one that was not stored."""
    learn = (lambda m, rows, **more: m.partial_fit(X[rows], y[rows], **more)) if hasattr(model, "partial_fit") else None
    if learn is None:
        model.fit(X[:at], y[:at])
    else:
        learn(model, slice(at), **first)
    flat = flatten(model.state_)
    found = model.with_state(unflatten(through_a_file(flat)))
    assert same(found.state_, model.state_)
    says = "decision_function" if hasattr(model, "decision_function") else "predict"
    np.testing.assert_array_equal(getattr(found, says)(X), getattr(model, says)(X))
    if learn is not None:
        for rows in (slice(at, at + 1), slice(at + 1, None)):
            learn(model, rows)
            learn(found, rows)
        assert same(found.state_, model.state_)
        np.testing.assert_array_equal(getattr(found, says)(X), getattr(model, says)(X))


@pytest.mark.parametrize("form", ["FPOGD", "OPAUCr", "SPAM-L2", "KOIL-RS++", "ExactAUC", "OAM-gra"])
def test_so_does_one_of_three_classes_and_csr_rows(form):
    from scipy.sparse import csr_array

    if form not in forms():
        form = next(name for name in forms() if name.startswith(form[:3]))
    X, score = make_stream("random", 900, 6)
    X[np.abs(X) < 0.7] = 0.0
    y = np.array(["low", "middle", "high"])[np.digitize(X.sum(axis=1) + score, [-1, 1])]
    assert_goes_on(changed(form), csr_array(X), y, 300, classes=["low", "middle", "high"])


@pytest.mark.parametrize("at", [300, 16_500])
def test_a_race_goes_on_from_its_flat_state(at):
    """Between two refits, and after candidates may be dropped; test_race_files.py has the other stages, as files."""
    X, y = make_stream("random", at + 150, 3)
    assert_goes_on(AUCClassifier(portfolio=SMALL, budget=Budget(2**24), random_state=0), X, y, at)


def test_features_that_grow_go_on_too():
    X, y = make_stream("random", 900, 3)
    assert_goes_on(make("FPOGD", features=Growing(64, block=16), cluster_in="input"), X, y, 400)


def test_the_order_of_calls_does_not_show_in_the_flat_state():
    X, y = make_stream("random", 300, 3)
    whole, rows = make("FPOGD", **RULES).fit(X, y), make("FPOGD", **RULES)
    for i in range(300):
        rows.partial_fit(X[i : i + 1], y[i : i + 1])
    assert same(whole.state_, rows.state_)


def test_a_copy_shares_the_map_and_nothing_that_is_written_into():
    X, y = make_stream("random", 200, 3)
    stream = Stream(Learner(seed=0)).partial_fit(X, y)
    twin = copy(stream.state)
    assert same(twin, stream.state)
    assert twin.learned.phi is stream.learned.phi
    w = stream.learned.w.copy()
    twin.learned.w += 1.0
    np.testing.assert_array_equal(stream.learned.w, w)
    assert not same(twin, stream.state)


@pytest.mark.parametrize("form", forms())
def test_what_is_rounded_is_said_by_the_field(form):
    """In a float32 model rounded arrays and rows, and no others, are float32; by the specification only rows are."""
    X, y = make_stream("random", 40, 3)
    for changes, kind in (({}, np.float32), ({"engine": "reference"}, np.float64)):
        model = changed(form, dtype="float32", **changes).fit(X, y)
        learned = model.stream_.learned
        if changes and form.startswith("AUCClassifier"):  # the paths and grids of a race have one engine
            learned = [e.stream.learned for e in learned.entrants if isinstance(e.model, ExactPath)]
            assert learned
        for tree in nodes(learned):
            for f in fields(tree):
                value = getattr(tree, f.name)
                if isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.ndim:
                    expected = {"R": kind, "X": np.float32}.get(dtype_code(f), np.float64)
                    assert value.dtype == expected, f"{type(tree).__name__}.{f.name}"


def nodes(tree):
    """All dataclasses of a tree but batches, whose rows are given by users."""
    if isinstance(tree, list):
        for part in tree:
            yield from nodes(part)
    elif is_dataclass(tree) and type(tree).__name__ != "Batch":
        yield tree
        for f in fields(tree):
            if not f.metadata.get("derived"):
                yield from nodes(getattr(tree, f.name))


def test_trees_of_other_classes_are_not_states():
    @dataclass
    class Outside:
        a: np.ndarray
        b: float

    flat = flatten({"x": Outside(np.arange(3.0), np.inf)})
    with pytest.raises(ValueError, match="x has the unknown class Outside"):
        unflatten(flat)
    with pytest.raises(TypeError, match=r"x\.b contains a function, neither an array nor a plain value"):
        flatten({"x": Outside(np.arange(3.0), make_stream)})


def test_two_nodes_cannot_have_one_name():
    with pytest.raises(TypeError, match="two state classes with the name State"):
        node(type("State", (), {}))
    assert "State" in NODES


def test_what_is_derived_is_counted_and_not_stored():
    X, y = make_stream("random", 300, 3)
    model = make("ExactAUC").fit(X, y)
    before, flat = nbytes(model.state_), flatten(model.state_)
    model.decision_function(X)
    assert nbytes(model.state_) > before
    assert flatten(model.state_).kinds == flat.kinds
    assert flatten(model.state_).arrays.keys() == flat.arrays.keys()
    assert copy(model.state_).stream.learned.memory.solved is None
    assert not any("solved" in path for path in flat.arrays)
    assert DERIVED != SHARED


def test_a_cast_changes_rounded_arrays_alone():
    X, y = make_stream("random", 50, 3)
    learned = Stream(Learner(seed=0)).partial_fit(X, y).learned
    double = cast(learned, np.float64)
    assert double.w.dtype == double.phi.projection.dtype == np.float64
    assert double.tally is learned.tally
    assert cast(double, np.float32).w.dtype == np.float32
