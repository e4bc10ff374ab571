"""StepPath: models side by side over one forest, each the same as on its own."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from pairloom import Learner, Stream
from pairloom.base.tree import arrays, copy, same
from pairloom.features import Forest, RandomFourier
from pairloom.losses import Logistic, Square, SquaredHinge
from pairloom.memory import Latest, Reservoir, Strata, Window
from pairloom.models import StepPath
from pairloom.pairs import Difference, OppositeClass
from pairloom.steps import L2, AdaGrad, Constant, ElasticNet
from tests.conftest import make_stream
from tests.covering import every_pair

ETAS = [0.01, 0.1, 0.5]
NET = ElasticNet(1e-2, l1=1e-2)
ONCE = Forest(5, max_leaves=8, n_rows=64)
FOUR = Latest(size=4)
PARTS = {
    "plain": {"features": ONCE, "memory": FOUR, "loss": SquaredHinge()},
    "levels": {"features": replace(ONCE, levels=(2,)), "memory": Window(5), "loss": Logistic(), "penalty": L2(1e-2)},
    "random": {"features": replace(ONCE, labels=False), "memory": Strata(max_strata=4), "penalty": NET},
    "sums": {"features": ONCE, "memory": Reservoir(5, normalization="sum"), "loss": Logistic()},
    "three classes": {"features": ONCE, "memory": FOUR, "pairs": OppositeClass(3), "loss": Logistic()},
    "numbers": {"features": ONCE, "memory": Window(5), "pairs": Difference(), "loss": Square()},
    "renewed": {"features": replace(ONCE, growth="renewed"), "memory": FOUR, "loss": SquaredHinge()},
    "boosted": {"features": replace(ONCE, growth="boosted"), "memory": FOUR, "loss": SquaredHinge()},
}  # fmt: skip


def make(name, **changes):
    return Learner(**{**PARTS[name], "step": AdaGrad(0.1), "dtype": "float64", "seed": 0, **changes})


def rows(name, n=400, csr=False):
    X, y = make_stream("random", n, 4)
    X = np.where(np.abs(X) < 0.4, 0.0, X)
    score = np.square(X).sum(axis=1)
    if name in ("three classes", "numbers"):
        y = np.digitize(score, np.quantile(score, [0.4, 0.7])) if name == "three classes" else score / 10
    weight = np.random.default_rng(1).choice([0.5, 1.0, 2.0], n)
    return csr_array(X) if csr else X, y, weight


@every_pair(name=PARTS, dtype=["float64", "float32"], csr=[False, True])
def test_each_model_is_what_it_would_be_alone(name, dtype, csr):
    tol = 1e-10 if dtype == "float64" else 1e-4
    """Except for a boosted forest, which grows on the scores of the middle model."""
    data = rows(name, csr=csr)
    path = StepPath(make(name, dtype=dtype), ETAS)
    stream = Stream(path).partial_fit(*data)
    assert len(path) == 3
    assert stream.learned.w.shape[2] == stream.learned.squares.shape[2] == 3
    for i, eta in enumerate(ETAS):
        alone = Stream(make(name, dtype=dtype, step=AdaGrad(eta))).partial_fit(*data)
        assert alone.model == path.pick(i)
        if name == "boosted" and i != 1:
            continue
        ours, truth = stream.learned, alone.learned
        assert same(ours.phi.nodes, truth.phi.nodes)
        assert same(ours.memory, truth.memory)
        np.testing.assert_array_equal(ours.cells, truth.cells)
        np.testing.assert_allclose(ours.w[:, :, i], truth.w, atol=tol)
        np.testing.assert_allclose(np.sqrt(ours.squares[:, :, i]), np.sqrt(truth.squares), atol=tol)
        np.testing.assert_allclose(ours.tally[:, i], truth.tally, rtol=tol)
        for one, other in ((stream.recent()[0], alone.recent()[0]), (stream.score(data[0]), alone.score(data[0]))):
            np.testing.assert_allclose(one[:, i], other, atol=tol)
        np.testing.assert_array_equal(stream.recent()[2], alone.recent()[2])
        vectors = path.learner.n_vectors
        np.testing.assert_allclose(stream.coef[i * vectors : (i + 1) * vectors], alone.coef, atol=tol)
        if name != "numbers":
            assert stream.auc()[i] == pytest.approx(alone.auc()[0], abs=1e-3 if dtype == "float32" else 1e-9)


@pytest.mark.parametrize(("name", "at"), [(name, (40, 64, 200, 399)[k % 4]) for k, name in enumerate(PARTS)])
def test_one_of_them_goes_on_alone_and_the_path_does_not_notice(name, at):
    X, y, weight = rows(name)
    stream = Stream(StepPath(make(name), ETAS)).partial_fit(X[:at], y[:at], weight[:at])
    before = copy(stream.state)
    for i in (0, 1, -1):
        one = stream.only(i)
        assert one.model == make(name, step=AdaGrad(ETAS[i]))
        assert one.n_seen == at
        np.testing.assert_allclose(one.score(X), stream.score(X)[:, i], rtol=0, atol=1e-13)
        np.testing.assert_array_equal(one.recent()[0], stream.recent()[0][:, i])
        ours = {array.__array_interface__["data"][0] for array in arrays(stream.learned) if array.size}
        fixed = [*arrays(stream.learned.phi)] if stream.model.features.growing is None else []
        shared = {array.__array_interface__["data"][0] for array in fixed if array.size}
        for array in arrays(one.learned):
            assert not array.size or array.__array_interface__["data"][0] not in ours - shared
        one.partial_fit(X[at:], y[at:], weight[at:])
        assert same(stream.state, before)
        if name == "boosted" and i != 1:
            continue
        alone = Stream(one.model).partial_fit(X, y, weight)
        np.testing.assert_allclose(one.coef, alone.coef, atol=1e-10)
        np.testing.assert_allclose(one.score(X), alone.score(X), atol=1e-10)
        np.testing.assert_allclose(one.recent()[0], alone.recent()[0], atol=1e-10)
    stream.partial_fit(X[at:], y[at:], weight[at:])
    assert same(stream.state, Stream(stream.model).partial_fit(X, y, weight).state)


def test_before_the_first_row_and_between_pickles():
    X, y, _ = rows("plain")
    path = StepPath(make("plain"), ETAS)
    stream = Stream(path)
    assert stream.score(X).shape == (400, 3)
    assert not stream.only(1).score(X).any()
    assert Stream(StepPath(make("three classes"), ETAS)).score(X).shape == (400, 3, 3)
    stream.partial_fit(X[:100], y[:100])
    twin = pickle.loads(pickle.dumps(stream))
    for one in (stream, twin):
        one.partial_fit(X[100:], y[100:])
    assert same(stream.state, twin.state)
    assert stream.score(X[:0]).shape == (0, 3)
    assert "(0.01, 0.1, 0.5)" in repr(path)


def test_the_length_of_the_learners_own_step_does_not_matter():
    one, other = (StepPath(make("plain", step=AdaGrad(eta)), ETAS) for eta in (0.1, 7.0))
    assert one == other
    assert one != StepPath(make("plain"), ETAS[:2])
    assert replace(one.learner, seed=1) != one.learner
    assert one.seed == 0
    assert one.dtype == "float64"


def test_a_step_that_leaves_the_range_of_numbers_is_skipped_for_each_model():
    X, y, weight = rows("numbers")
    y = np.where(np.arange(400) == 300, 1e20, y)
    path = StepPath(make("numbers", dtype="float32"), ETAS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stream = Stream(path).partial_fit(X, y, weight)
        alone = [Stream(path.pick(i)).partial_fit(X, y, weight) for i in range(3)]
    for i in range(3):
        np.testing.assert_array_equal(stream.learned.tally[5, i], alone[i].learned.tally[5])
        assert alone[i].learned.tally[5] > 0
    assert np.isfinite(stream.score(X)).all()


@pytest.mark.parametrize("etas", [None, 5, ["a"], "ab", [], [0.0], [-1.0], [np.inf], [0.1, np.nan]], ids=str)
def test_what_is_no_list_of_steps_is_refused(etas):
    with pytest.raises(ValueError, match=r"etas must be numbers|at least one step|eta must be"):
        StepPath(make("plain"), etas)


def test_a_learner_that_is_not_over_cells_is_refused():
    for changes in ({"average": "mean"}, {"step": Constant(0.1)}, {"features": RandomFourier(8)}):
        with pytest.raises(ValueError, match="a path needs a learner with step=AdaGrad"):
            StepPath(make("plain", **changes), [0.1])
