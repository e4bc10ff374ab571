import pickle
import tracemalloc
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from pairloom import Grid, Learner, Stream
from pairloom.base.tree import cast
from pairloom.features import Gaussian, Identity, Nystroem, OrthogonalFourier, RandomFourier, Whitened
from pairloom.steps import Constant
from pairloom.systems import FPOGD, OGD, OPAUC, SPAM, ExactAUC
from tests.conftest import make_stream

INNER = {
    "identity": Identity(scale="standard"),
    "fourier": RandomFourier(40, Gaussian("median")),
    "orthogonal": OrthogonalFourier(40, Gaussian(0.05), scale="maxabs"),
    "nystroem": Nystroem(50, Gaussian("median"), rank=30),
    "whitened": Whitened(RandomFourier(40, Gaussian("median")), 3),
}


def fixed(features, X, dtype=np.float64):
    return cast(features.fix(X.shape[1], X, np.random.default_rng(0)), dtype)


def mapped(features, X, new=None):
    return features.apply(fixed(features, X), X if new is None else new)


@pytest.fixture(params=INNER, ids=str)
def inner(request):
    return INNER[request.param]


@pytest.fixture
def X():
    return np.random.default_rng(1).normal(size=(300, 6)) * [1, 1, 2, 5, 0.5, 1] + [0, 10, 0, -3, 1, 0]


@pytest.mark.parametrize("rank", [1, 4, 12])
def test_the_largest_variances_become_equal_and_the_rest_stays(inner, X, rank):
    """Against the eigenvalues of the covariance: l_{k+1}, k + 1 times, then those that follow, up to one factor."""
    Z = mapped(inner, X)
    Z = Z - Z.mean(axis=0)
    values, V = np.linalg.eigh(Z.T @ Z / 300)
    values, V = values[::-1], V[:, ::-1]
    k = min(rank, Z.shape[1] - 1)
    expected = np.minimum(values, values[k])
    W = mapped(Whitened(inner, rank), X)
    np.testing.assert_allclose(W.mean(axis=0), 0.0, atol=1e-12)
    assert np.square(W).sum(axis=1).mean() == pytest.approx(1, rel=1e-12)
    covariance = V.T @ (W.T @ W / 300) @ V
    np.testing.assert_allclose(covariance, np.diag(expected) / expected.sum(), atol=1e-4 / k)
    # No rotation: every direction keeps its sign.
    assert (np.einsum("nd,nd->d", Z @ V[:, : k + 1], W @ V[:, : k + 1]) > 0).all()


def test_the_inner_map_is_the_one_it_would_be_alone(inner, X):
    alone, wrapped = fixed(inner, X), fixed(Whitened(inner, 3), X)
    np.testing.assert_array_equal(inner.apply(wrapped.inner, X), inner.apply(alone, X))
    assert Whitened(inner, 3).n_outputs(6) == inner.n_outputs(6)
    np.testing.assert_array_equal(Whitened(inner).inputs(wrapped, X), inner.inputs(alone, X))


@pytest.mark.parametrize("rows", [None, 1, "equal"], ids=str)
def test_where_nothing_is_known_it_is_the_inner_map(inner, X, rows):
    known = {None: None, 1: X[:1], "equal": np.tile(X[0], (50, 1))}[rows]
    ours, theirs = (
        phi.apply(phi.fix(6, known, np.random.default_rng(0)), X) for phi in (Whitened(inner), inner)
    )  # fmt: skip
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [2, 3, 5, 20, 65, 300])
def test_few_rows_give_what_they_know(inner, X, n, dtype):
    features = Whitened(inner, 64)
    state = fixed(features, X[:n], dtype)
    Z = features.apply(state, X.astype(dtype))
    assert Z.dtype == dtype
    assert np.isfinite(Z).all()
    assert np.square(Z[:n]).sum(axis=1).mean() == pytest.approx(1, rel=1e-3)


def test_directions_without_variance_are_left_alone(X):
    """Four directions in ten columns: the level is the fourth variance, not the rounding errors of the fifth."""
    rows = X[:, :4] @ np.random.default_rng(0).normal(size=(4, 10))
    W = mapped(Whitened(Identity(), 8), rows)
    values = np.linalg.eigvalsh(W.T @ W / 300)[::-1]
    np.testing.assert_allclose(values, [0.25] * 4 + [0] * 6, atol=1e-9)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_has_the_same_bits_in_every_call(inner, X, dtype, container):
    X = container(np.where(np.abs(X) > 0.7, X, 0.0).astype(dtype))
    features = Whitened(inner, 5)
    state = fixed(features, X, dtype)
    whole = features.apply(state, X)
    assert isinstance(whole, np.ndarray)
    assert whole.flags.c_contiguous
    for cuts in ([1], [7, 8, 9], [100], [13, 14, 190, 200]):
        parts = [features.apply(state, X[a:b]) for a, b in pairwise([0, *cuts, 300])]
        np.testing.assert_array_equal(np.vstack(parts), whole)
    order = np.random.default_rng(0).permutation(300)
    np.testing.assert_array_equal(features.apply(state, X[order]), whole[order])


def test_csr_rows_are_mapped_as_dense_rows(inner, X):
    X = np.where(np.abs(X) > 0.7, X, 0.0)
    features = Whitened(inner, 3)
    dense, sparse = mapped(features, X), mapped(features, sp.csr_array(X))
    np.testing.assert_allclose(sparse @ sparse.T, dense @ dense.T, atol=1e-8)
    np.testing.assert_allclose(mapped(features, X, sp.csr_array(X)), dense, atol=1e-9)


def test_csr_rows_are_dense_a_block_at_a_time():
    X = sp.random_array((400, 20_000), density=0.002, format="csr", rng=np.random.default_rng(0), dtype=np.float32)
    features = Whitened(Identity(), 4)
    state = fixed(features, X[:50], np.float32)
    tracemalloc.start()
    Z = features.apply(state, X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # The features, and one product of their size at a time, padded.
    assert peak < 3.1 * Z.nbytes


def test_many_rows_are_not_all_looked_at(X):
    rows = np.tile(X, (10, 1))
    rows[2048:] *= 1000
    features = Whitened(Identity(), 2)
    np.testing.assert_array_equal(mapped(features, rows, X), mapped(features, rows[:2048], X))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Whitened("fourier"), r"inner must be a feature map, such as RandomFourier\(512\); got 'fourier'"),
        (lambda: Whitened(rank=0), "rank must be an integer >= 1; got 0"),
        (lambda: Whitened(Identity(), scale="standard"), "the inner map scales the columns: pass scale='standard'"),
    ],
)
def test_bad_values_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# In learners.


def test_warm_rows():
    assert Learner(Whitened(Identity(), 100)).warm_rows == 1024
    assert Learner(Whitened(Identity(), 700)).warm_rows == 1400
    assert Learner(Whitened(Nystroem(1500), 700)).warm_rows == 1500


@pytest.mark.parametrize("system", [FPOGD, OGD, OPAUC, SPAM, ExactAUC])
def test_with_every_kind_of_system_dense_and_csr(inner, system):
    X, y = make_stream("random", 1500, 6)
    X[np.abs(X) < 0.3] = 0.0
    model = clone(system(features=Whitened(inner, 4), dtype="float64", random_state=0)).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    sparse = clone(model).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.decision_function(X), model.decision_function(sp.csr_array(X)), atol=1e-7)


def test_in_a_grid(inner):
    X, y = make_stream("random", 1500, 6)
    one = Learner(Whitened(inner, 4), dtype="float64", seed=0)
    learners = [replace(one, step=Constant(eta), average="poly") for eta in (0.02, 0.2)]
    grid = Stream(Grid(learners)).partial_fit(X[:1000], y[:1000]).partial_fit(X[1000:], y[1000:])
    for i, learner in enumerate(learners):
        alone = Stream(learner).partial_fit(X, y)
        np.testing.assert_allclose(grid.score(X)[:, i], alone.score(X), rtol=1e-8, atol=1e-10)


def test_small_directions_are_learned_at_once():
    """The largest direction limits the step, and the smallest determines the time to converge."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 10)) * [100, 30, 30, 30, 30, 1, 1, 1, 1, 1]
    y = np.where(X[:, -1] + 0.1 * rng.normal(size=3000) > 0, 1.0, -1.0)
    areas = []
    for phi, eta in ((Identity(), 4e-6), (Whitened(Identity(), 5), 0.01)):
        stream = Stream(Learner(phi, step=Constant(eta), average="poly", seed=0)).partial_fit(X[:2000], y[:2000])
        areas.append(roc_auc_score(y[2000:], stream.score(X[2000:])))
    assert areas[0] < 0.7
    assert areas[1] > 0.98


def test_gamma_is_the_inner_maps():
    X, y = make_stream("random", 300, 4)
    inner = RandomFourier(20, Gaussian("median"))
    models = [FPOGD(features=phi, random_state=0).fit(X, y) for phi in (inner, Whitened(inner), Whitened(Identity()))]
    assert models[0].gamma_ == models[1].gamma_
    assert models[2].gamma_ is None
