"""AdaDSG: nested stages, pairs drawn without bias, and the compiled loops against the specification."""

import pickle
import warnings
from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix
from sklearn.metrics import roc_auc_score

from pairloom.base.randomness import generator
from pairloom.engines.state import CUT, PAIRS
from pairloom.features import Gaussian, RandomFourier
from pairloom.losses import LOSSES, Square
from pairloom.stream import StabilityWarning
from pairloom.systems import AdaDSG
from pairloom.systems.adadsg import Stage, descend, stages
from tests.conftest import STREAMS, make_stream
from tests.covering import every_pair

FEATURES = {"linear": {}, "scaled": {"scale": "standard"}, "fourier": {"features": RandomFourier(24, Gaussian(0.2))}}


def sparse_rows(n=300, d=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.3)
    return X, np.where(X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.normal(size=n) > 0.4, 1, -1)


def three_classes(X, y):
    return np.where(y > 0, 2, X[:, 0] > 0)


@pytest.mark.parametrize("growth", [1.0, 2.0, 3.5])
@pytest.mark.parametrize("counts", [(1, 1), (5, 90), (64, 64), (700, 41)])
def test_stages_are_nested_keep_the_shares_of_the_classes_and_end_with_all_rows(counts, growth):
    rng = np.random.default_rng(0)
    positive = rng.permutation(np.repeat([True, False], counts))
    found = list(stages(positive, np.ones(sum(counts)), 6, growth, 3, rng))
    assert len(found) == 6
    for e, (stage, later) in enumerate(pairwise([*found, None])):
        for side, (rows, count) in enumerate(zip(stage.rows, counts, strict=True)):
            assert len(set(rows)) == len(rows)
            assert (positive[rows] == (side == 0)).all()
            share = growth ** (e - 5)
            assert share * count <= len(rows) < share * count + 1
            if later is not None:
                assert later.rows[side][: len(rows)].tolist() == rows.tolist()
        assert stage.steps == 3 * max(map(len, stage.rows))
    assert sorted(np.concatenate(found[-1].rows)) == list(range(sum(counts)))


def test_stage_sizes_double():
    found = stages(np.arange(1024) % 4 == 0, np.ones(1024), 5, 2.0, 1, np.random.default_rng(0))
    assert [tuple(map(len, stage.rows)) for stage in found] == [(16, 48), (32, 96), (64, 192), (128, 384), (256, 768)]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_mean_step_is_the_full_pairwise_gradient_of_the_stage(loss, weighted):
    """Uniform numbers on a grid draw every pair, in proportion to the product of its weights, exactly."""
    rng = np.random.default_rng(1)
    X, y = make_stream("duplicates", 40, 3, seed=2)
    weight = rng.integers(1, 5, size=40) if weighted else np.ones(40, int)
    w = rng.normal(size=3) / 5
    stage = list(stages(y > 0, weight, 3, 2.0, 1, rng))[1]
    masses = [int(mass[-1]) for mass in stage.cumulative]
    grid = np.stack(np.meshgrid(*((np.arange(m) + 0.5) / m for m in masses)), axis=-1).reshape(-1, 2)
    i, j = stage.draw(grid)
    rate = 1e-3
    steps = [descend(w, d, LOSSES[loss], np.array([1.0, rate, 0.0]), np.zeros(7)) - w for d in X[i] - X[j]]
    gradient = np.zeros(3)
    for a in stage.rows[0]:
        for b in stage.rows[1]:
            slope = float(LOSSES[loss].derivative(w @ (X[a] - X[b])))
            gradient += weight[a] * weight[b] * slope * (X[a] - X[b]) / np.prod(masses)
    np.testing.assert_allclose(np.mean(steps, axis=0), -rate * gradient, rtol=1e-10, atol=1e-14)


def test_the_edges_of_a_draw():
    """Intervals are closed below, and rounding never leads past the last row."""
    half = Stage((np.arange(2), np.arange(2)), (np.array([1.0, 2.0]), np.array([3.0, 4.0])), 1)
    assert [rows.tolist() for rows in half.draw(np.array([[0.5, 0.75]]))] == [[1], [1]]
    mass = np.cumsum(np.full(7, 0.1))
    stage = Stage((np.arange(7), np.arange(7)), (mass, mass), 1)
    assert [rows.tolist() for rows in stage.draw(np.array([[0.0, np.nextafter(1, 0)], [1.0, 0.0]]))] == [[0, 6], [6, 0]]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("accuracy", ["sqrt", "inverse", "constant"])
@pytest.mark.parametrize("l1", [0.0, 0.02])
def test_a_fit_written_out(loss, accuracy, l1):
    X, y = make_stream("random", 120, 4)
    model = AdaDSG(
        loss=loss, eta=0.02, alpha=0.3, l1=l1, accuracy=accuracy, n_stages=4, passes=2, dtype="float64", random_state=5
    ).fit(X, y)
    rng, w, power = generator(5), np.zeros(4), {"sqrt": -0.5, "inverse": -1, "constant": 0}[accuracy]
    sides = [rng.permutation(np.flatnonzero(side)) for side in (y > 0, y < 0)]
    pairs = 0
    for fraction in (8, 4, 2, 1):
        i, j = (side[: -(-len(side) // fraction)] for side in sides)
        v = float(len(i) + len(j)) ** power
        for _ in range(2 * max(len(i), len(j))):
            a, b = rng.random(2)
            d = X[i[int(a * len(i))]] - X[j[int(b * len(j))]]
            u = (w - 0.02 * float(LOSSES[loss].derivative(w @ d)) * d) / (1 + 0.02 * 0.3 * v)
            w = np.sign(u) * np.maximum(0, np.abs(u) - 0.02 * l1 * v / (1 + 0.02 * 0.3 * v))
            pairs += 1
    np.testing.assert_allclose(model.coef_, w, rtol=1e-10, atol=1e-13)
    assert model.n_pairs_ == pairs
    assert model.n_seen_ == 120


@every_pair(kind=STREAMS, features=FEATURES, loss=LOSSES, classes=[2, 3])
def test_compiled_agrees_with_the_specification(kind, features, loss, classes):
    X, y = make_stream(kind, 140, 4)
    y = three_classes(X, y) if classes == 3 else y
    weight = np.random.default_rng(0).gamma(1.0, size=140)
    parameters = {
        "loss": loss, "eta": 0.02, "alpha": 0.2, "l1": 1e-3, "n_stages": 5, "dtype": "float64", "random_state": 2,
        **FEATURES[features],
    }  # fmt: skip
    spec, fast = (AdaDSG(engine=engine, **parameters).fit(X, y, weight) for engine in ("reference", "fused"))
    np.testing.assert_allclose(fast.coef_, spec.coef_, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(fast.stream_.learned.tally, spec.stream_.learned.tally, rtol=1e-10)
    np.testing.assert_allclose(fast.decision_function(X), spec.decision_function(X), rtol=1e-8)


@every_pair(engine=["reference", "fused"], features=FEATURES, container=[csr_array, csr_matrix], l1=[0.0, 1e-3])
def test_csr_rows_agree_with_dense_rows(engine, features, container, l1):
    X, y = sparse_rows()
    y = three_classes(X, y)
    parameters = {"eta": 0.005, "l1": l1, "dtype": "float64", "random_state": 1, "engine": engine, **FEATURES[features]}
    dense, sparse = (AdaDSG(**parameters).fit(rows, y) for rows in (X, container(X)))
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(sparse.decision_function(container(X)), dense.decision_function(X), rtol=1e-7, atol=1e-9)
    assert sparse.stream_.learned.lazy is None


def test_three_classes_are_three_models_against_the_rest():
    """The first model draws what the model of its class alone draws."""
    X, y = make_stream("random", 200, 4)
    labels = three_classes(X, y)
    parameters = {"eta": 0.02, "dtype": "float64", "random_state": 4}
    binary = AdaDSG(**parameters).fit(X, labels == 0)
    np.testing.assert_array_equal(AdaDSG(**parameters).fit(X, labels).coef_[0], binary.coef_)


def test_weights_are_chances():
    X, y = make_stream("random", 200, 4)
    weight = np.random.default_rng(0).gamma(1.0, size=200) * (np.arange(200) % 5 > 0)
    fit = lambda rows, labels, w: AdaDSG(random_state=0).fit(rows, labels, w)  # noqa: E731
    kept = weight > 0
    assert pickle.dumps(fit(X, y, weight)) == pickle.dumps(fit(X[kept], y[kept], weight[kept]))
    np.testing.assert_array_equal(fit(X, y, weight).coef_, fit(X, y, 4 * weight).coef_)
    np.testing.assert_array_equal(fit(X, y, np.ones(200)).coef_, fit(X, y, None).coef_)
    heavy = np.where(X[:, 0] > 0, 1e9, 1e-9)
    half = np.flatnonzero(X[:, 0] > 0)
    drawn = Stage((half, half), (np.cumsum(heavy[half]),) * 2, 1)
    assert drawn.draw(np.random.default_rng(0).random((500, 2)))[0].min() >= half[0]
    assert not np.array_equal(fit(X, y, heavy).coef_, fit(X, y, None).coef_)


def test_same_seed_same_bits_and_nothing_grows():
    X, y = make_stream("random", 2000, 4)
    first, second = (AdaDSG(random_state=7, scale="standard").fit(X, y) for _ in range(2))
    assert pickle.dumps(first) == pickle.dumps(second)
    assert not np.array_equal(AdaDSG(random_state=8, scale="standard").fit(X, y).coef_, first.coef_)
    assert AdaDSG(random_state=7, scale="standard").fit(X[:500], y[:500]).nbytes_ == first.nbytes_


def test_it_needs_all_rows():
    model = AdaDSG()
    assert not hasattr(model, "partial_fit")
    assert not hasattr(model, "learn_one")
    assert model.card.scheme == "offline"


def test_one_class_has_no_pairs():
    model = AdaDSG().fit([[1.0, 2.0], [3.0, 4.0]], ["a", "a"])
    assert not model.coef_.any()
    assert model.stream_.learned.tally[PAIRS] == 0
    assert model.predict([[5.0, 6.0]]) == "a"


@pytest.mark.parametrize("engine", ["reference", "fused"])
def test_too_long_a_step_is_cut(engine):
    X, y = make_stream("random", 200, 4)
    with pytest.warns(StabilityWarning, match="eta=5 is too long"):
        model = AdaDSG(eta=5.0, random_state=0, engine=engine).fit(X, y)
    assert model.stream_.learned.tally[CUT] > 0
    assert np.isfinite(model.coef_).all()


def test_it_ranks():
    X, y = make_stream("random", 3000, 5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = AdaDSG(features=RandomFourier(200, Gaussian("median")), eta=0.1, passes=3, random_state=0)
        model.fit(X[:2000], y[:2000])
    assert roc_auc_score(y[2000:], model.decision_function(X[2000:])) > 0.95
    assert model.loss_ < Square().value(0.0)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("loss", "cubic"), ("accuracy", "linear"), ("n_stages", 0), ("growth", 0.5), ("passes", 1.5), ("eta", 0.0)],
)
def test_bad_parameters_are_named(parameter, value):
    with pytest.raises(ValueError, match=parameter):
        AdaDSG(**{parameter: value}).fit([[0.0], [1.0]], [0, 1])
