"""Reservoir, RS-x and the whole history: the engines agree, and with room for all rows they are all pairs."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from pairloom import Learner, Stream
from pairloom.features import Gaussian, Identity, RandomFourier
from pairloom.losses import LOSSES
from pairloom.memory import Reservoir, RSx, Strata, WholeHistory
from pairloom.pairs import Difference, OppositeClass
from pairloom.steps import Ball, Constant, Sqrt
from pairloom.stream import StabilityWarning
from tests.conftest import STREAMS, make_stream
from tests.covering import every_pair

pytestmark = pytest.mark.usefixtures("check_every_plan")

MEMORIES = {
    "reservoir": Reservoir(7),
    "reservoir of one": Reservoir(1),
    "reservoir, joint": Reservoir(12, by="joint"),
    "reservoir, never full": Reservoir(500),
    "rsx": RSx(12),
    "rsx of one": RSx(1),
    "rsx per class": RSx(5, by="class"),
    "rsx, never full": RSx(500, by="class"),
    "history": WholeHistory(300),
    "history, joint": WholeHistory(300, by="joint"),
}


def make(memory, **parts):
    defaults = {"features": RandomFourier(20, Gaussian(0.2)), "step": Constant(0.02), "dtype": "float64", "seed": 4}
    return Learner(memory=memory, **{**defaults, **parts})


def weights_of(kind, n):
    rng = np.random.default_rng(8)
    if kind == "heavy":
        return np.exp(3 * rng.normal(size=n))
    return None if kind == "none" else rng.integers(0, 4, size=n).astype(float)


def learn(learner, X, y, weight=None, cuts=()):
    stream = Stream(learner)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StabilityWarning)
        for rows in np.split(np.arange(len(y)), list(cuts)):
            stream.partial_fit(X[rows], y[rows], None if weight is None else weight[rows])
    return stream


def arrays(state):
    """The whole state of a memory."""
    slots = state.slots
    own = {name: value for name, value in vars(state).items() if isinstance(value, np.ndarray)}
    return {"points": slots.points, "labels": slots.labels, "mass": slots.mass, **own}


@every_pair(kind=STREAMS, weights=["none", "counts", "heavy"], dtype=["float64", "float32"])
def test_engines_agree(kind, weights, dtype):
    tol = 1e-10 if dtype == "float64" else 1e-4
    X, y = make_stream(kind, 150, 4, seed=1)
    weight = weights_of(weights, 150)
    for name, memory in MEMORIES.items():
        start = make(memory, dtype=dtype, step=Constant(0.002 if weights == "heavy" else 0.02))
        ours = learn(start, X, y, weight).learned
        truth = learn(replace(start, engine="reference"), X, y, weight).learned
        for key, value in arrays(truth.memory).items():
            scale = max(1.0, np.abs(value).max())
            np.testing.assert_allclose(arrays(ours.memory)[key], value, rtol=0, atol=tol * scale, err_msg=name)
        np.testing.assert_array_equal(ours.memory.slots.mass, truth.memory.slots.mass, err_msg=name)
        np.testing.assert_allclose(ours.w, truth.w, rtol=0, atol=tol * max(1.0, np.abs(truth.w).max()), err_msg=name)
        assert np.abs(truth.w).max() > 1e-4


@pytest.mark.parametrize("name", MEMORIES)
@pytest.mark.parametrize("cuts", [[1, 2, 50, 51, 120], range(1, 300)])
@pytest.mark.parametrize("weights", ["none", "heavy"])
def test_the_cut_of_the_stream_changes_no_bit(name, cuts, weights):
    X, y = make_stream("one_class_first", 300, 4)
    weight = weights_of(weights, 300)
    start = make(MEMORIES[name], features=Identity(), step=Constant(1e-4))
    whole, cut = learn(start, X, y, weight), learn(start, X, y, weight, cuts)
    np.testing.assert_array_equal(whole.learned.w, cut.learned.w)
    for key, value in arrays(whole.learned.memory).items():
        np.testing.assert_array_equal(arrays(cut.learned.memory)[key], value)


@pytest.mark.parametrize(
    "memory", [Reservoir(3), RSx(3, by="class"), WholeHistory(200), RSx(9), Reservoir(9, by="joint")]
)
def test_engines_agree_on_several_classes_and_on_labels_that_are_none(memory):
    X, _ = make_stream("random", 200, 4)
    grade = np.random.default_rng(0).integers(0, 4, size=200)
    many = [OppositeClass(4), Difference()] if memory.joint else [OppositeClass(4)]
    for pairs in many:
        start = make(memory, pairs=pairs)
        ours, truth = learn(start, X, grade), learn(replace(start, engine="reference"), X, grade)
        np.testing.assert_allclose(ours.learned.w, truth.learned.w, rtol=0, atol=1e-10)


# --- systems


def iterates(learner, X, y, weight=None):
    stream, path = Stream(learner), []
    for i in range(len(y)):
        stream.partial_fit(X[i : i + 1], y[i : i + 1], None if weight is None else weight[i : i + 1])
        path.append(stream.learned.w[0].copy())
    return np.array(path)


@pytest.mark.parametrize("engine", ["reference", "fused"])
@pytest.mark.parametrize("loss", LOSSES)
def test_while_all_rows_fit_olp_is_all_pairs_descent(engine, loss):
    """v = (1 / (t - 1)) sum over all earlier rows, steps eta / sqrt(t), written out as a double loop."""
    T, size = 60, 59
    X, y = make_stream("random", T, 4)
    parts = {"features": Identity(), "loss": LOSSES[loss], "penalty": Ball(0.05), "step": Sqrt(0.05)}
    path = iterates(make(RSx(size), engine=engine, **parts), X, y)
    w = np.zeros(4)
    for t in range(T):  # the last row still meets all size rows before it; then the sample is redrawn
        v = np.zeros(4)
        for i in range(t):
            if y[i] != y[t]:
                d = X[t] - X[i]
                v += y[t] * float(LOSSES[loss].derivative(y[t] * (w @ d))) * d / t
        w = w - 0.05 / np.sqrt(t + 1) * v
        w *= min(1, 0.05 / max(1e-300, np.linalg.norm(w)))
        np.testing.assert_allclose(path[t], w, rtol=0, atol=1e-12)
    assert np.linalg.norm(path, axis=1).max() == pytest.approx(0.05)


@pytest.mark.parametrize("engine", ["reference", "fused"])
@pytest.mark.parametrize("weights", ["none", "counts"])
def test_samples_with_room_for_all_are_the_whole_history(engine, weights):
    X, y = make_stream("one_class_first", 120, 4)
    weight = weights_of(weights, 120)
    for by in ("joint", "class"):
        truth = iterates(make(WholeHistory(120, by=by), engine=engine), X, y, weight)
        for memory in (RSx(120, by=by), Reservoir(120, by=by)):
            path = iterates(make(memory, engine=engine), X, y, weight)
            np.testing.assert_allclose(path, truth, rtol=0, atol=1e-12)
    strata = Strata(eps=-1.0, max_strata=120)
    np.testing.assert_allclose(iterates(make(strata, engine=engine), X, y, weight), truth, rtol=0, atol=1e-12)
    assert np.abs(truth[-1]).max() > 0.01


@pytest.mark.parametrize("engine", ["reference", "fused"])
def test_the_whole_history_refuses_the_row_that_does_not_fit(engine):
    X, y = make_stream("random", 60, 3)
    memory = WholeHistory(50)
    stream = Stream(make(memory, engine=engine)).partial_fit(X[:45], y[:45])
    with pytest.raises(ValueError, match=r"at most max_rows=50: it has 45, so 5 more fit, not 6. .* Strata\(\)"):
        memory.check_room(stream.learned.memory, 6)
    with pytest.raises(ValueError, match="at most max_rows=50: it has 0, so 50 more fit, not 51"):
        memory.check_room(None, 51)
    stream.partial_fit(X[45:50], y[45:50])
    with pytest.raises(ValueError, match="so 0 more fit"):
        stream.partial_fit(X[50:51], y[50:51])
    assert stream.learned.memory.seen[0] == 50


@pytest.mark.parametrize("engine", ["reference", "fused"])
@pytest.mark.parametrize("gamma", [0.2, "median"])
def test_a_refused_call_changes_nothing(engine, gamma):
    """Nor the rows kept while data-dependent settings are not final."""
    X, y = make_stream("random", 60, 3)
    start = make(WholeHistory(50), engine=engine, features=RandomFourier(20, Gaussian(gamma)))
    stream = Stream(start).partial_fit(X[:45], y[:45])
    w, t = stream.learned.w.copy(), stream.state.t
    with pytest.raises(ValueError, match="not 15"):
        stream.partial_fit(X[45:], y[45:])
    np.testing.assert_array_equal(stream.learned.w, w)
    assert (stream.state.t, stream.learned.memory.seen[0]) == (t, 45)
    whole = Stream(start).partial_fit(X[:50], y[:50])
    np.testing.assert_array_equal(stream.partial_fit(X[45:50], y[45:50]).learned.w, whole.learned.w)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Reservoir(0), "size must be an integer >= 1; got 0"),
        (lambda: Reservoir(by="label"), "by must be one of 'class', 'joint'; got 'label'"),
        (lambda: RSx(2.5), "size must be an integer >= 1; got 2.5"),
        (lambda: RSx(by="all"), "by must be one of 'class', 'joint'; got 'all'"),
        (lambda: WholeHistory(0), "max_rows must be an integer >= 1; got 0"),
        (lambda: WholeHistory(by="row"), "by must be one of 'class', 'joint'; got 'row'"),
        (lambda: Learner(pairs=Difference(), memory=WholeHistory()), "WholeHistory keeps slots for each class"),
    ],
)
def test_bad_values_are_named(build, message):
    with pytest.raises(ValueError, match=message):
        build()
