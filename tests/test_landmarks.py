"""Landmarks: the features of Nystroem up to a rotation, by Cholesky instead of eigenvalues."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from pairloom import Learner, Stream
from pairloom.features import KERNELS, Gaussian, Landmarks, Laplace, Matern32, Nystroem
from pairloom.features.distances import squared_distances
from pairloom.models.exact import ExactPath
from pairloom.systems import FPOGD, ExactAUC
from tests.conftest import make_stream
from tests.test_nystroem import fixed, mapped


@pytest.fixture
def X():
    return np.random.default_rng(1).normal(size=(120, 6)) * [1, 1, 2, 5, 0.5, 1] + [0, 10, 0, -3, 1, 0]


@pytest.mark.parametrize("gamma", [0.3, (0.1, 0.3, 0.2, 0.05, 1.0, 0.3), "median"], ids=["one", "each", "rule"])
@pytest.mark.parametrize("kind", KERNELS.values())
def test_between_landmarks_the_kernel_is_exact_to_five_digits(X, kind, gamma):
    features = Landmarks(120, kind(gamma))
    state = fixed(features, X)
    Z = features.apply(state, X)
    np.testing.assert_allclose(Z @ Z.T, kind(gamma)(state.gamma, X, X), atol=1e-5)


@pytest.mark.parametrize("scale", [None, "standard", "wide", "minmax"])
@pytest.mark.parametrize("kernel", [Gaussian("median", 2.0), Matern32("median"), Laplace("median")], ids=repr)
def test_they_are_nystroems_features_turned(X, kernel, scale):
    """Where no eigenvalue is so small that Nystroem cuts it."""
    ours, theirs = (mapped(kind(40, kernel, scale=scale), X[:60], X[30:]) for kind in (Landmarks, Nystroem))
    np.testing.assert_allclose(ours @ ours.T, theirs @ theirs.T, atol=1e-5)
    assert not np.allclose(ours, theirs, atol=1e-3)


def test_a_coordinate_is_what_a_landmark_knows_beyond_those_before_it(X):
    """The map of the first ten landmarks is the first ten coordinates of the map of forty."""
    few, many = (mapped(Landmarks(m, Gaussian(0.05)), X[:40], X) for m in (10, 40))
    np.testing.assert_allclose(few, many[:, :10], atol=1e-12)
    triangle = many[:40]
    np.testing.assert_allclose(triangle, np.tril(triangle), atol=2e-3)  # but for the 1e-6 of the diagonal


def test_fewer_rows_than_landmarks_leave_columns_of_zeros(X):
    features = Landmarks(50, Gaussian("median"))
    for n in (1, 2, 29, 50, 120):
        Z = mapped(features, X[:n], X)
        assert Z.shape == (120, features.n_outputs(6)) == (120, 50)
        assert not Z[:, n:].any()
        assert (np.abs(Z[:, : min(n, 50)]).max(axis=0) > 0).all()
        assert np.square(Z).sum(axis=1).max() <= 1 + 1e-9
    Z = features.apply(features.fix(6, None, np.random.default_rng(0)), X)
    assert Z.shape == (120, 50)
    assert np.isfinite(Z).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_landmarks_do_no_harm(X, dtype):
    rows = np.tile(X[:9], (10, 1)).astype(dtype)
    features = Landmarks(64, Gaussian("median"))
    Z = features.apply(fixed(features, rows, dtype), rows)
    assert np.isfinite(Z).all()
    np.testing.assert_allclose(np.square(Z).sum(axis=1), 1.0, atol=1e-3)
    same = features.apply(fixed(features, np.ones((64, 3), dtype), dtype), np.ones((2, 3), dtype))
    np.testing.assert_allclose(np.square(same).sum(axis=1), 1.0, atol=1e-3)


def test_float32_is_near_float64(X):
    """As kernel values: a direction of next to nothing is known to few digits in float32."""
    X = X.astype(np.float32)
    for kernel in (Gaussian("median"), Matern32("median"), Laplace("median")):
        features = Landmarks(100, kernel)
        single = features.apply(fixed(features, X, np.float32), X)
        assert single.dtype == np.float32
        double, state = mapped(features, X.astype(float)), fixed(features, X, np.float32)
        csr = features.apply(state, sp.csr_array(X))
        np.testing.assert_allclose(csr @ csr.T, double @ double.T, atol=1e-3)
        np.testing.assert_allclose(single @ single.T, double @ double.T, atol=1e-3)


@pytest.mark.parametrize("kernel", [Gaussian("median"), Matern32("median"), Laplace("median")], ids=repr)
@pytest.mark.parametrize("scale", [None, "standard", "minmax"])
def test_csr_rows_are_mapped_as_dense_ones(kernel, scale):
    X = sp.random_array((90, 7), density=0.4, format="csr", rng=np.random.default_rng(0))
    features = Landmarks(25, kernel, scale=scale)
    from_csr, from_dense = fixed(features, X), fixed(features, X.toarray())
    Z = features.apply(from_dense, X.toarray())
    for state in (from_csr, from_dense):
        for rows in (X, X.toarray()):
            found = features.apply(state, rows)
            np.testing.assert_allclose(found @ found.T, Z @ Z.T, atol=1e-9)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("d", "m"), [(1, 3), (22, 150), (7, 33)])
def test_a_row_has_the_same_bits_in_every_call(d, m, dtype, container):
    X = sp.random_array((203, d), density=0.4, format="csr", rng=np.random.default_rng(d), dtype=dtype).toarray()
    X = container(X)
    features = Landmarks(m, Gaussian("median"), scale="standard")
    state = fixed(features, X, dtype)
    whole = features.apply(state, X)
    assert whole.dtype == dtype
    for cuts in ([1], [7, 8, 9], [13, 14, 190, 200]):
        parts = [features.apply(state, X[a:b]) for a, b in pairwise([0, *cuts, 203])]
        np.testing.assert_array_equal(np.vstack(parts), whole)
    order = np.random.default_rng(0).permutation(203)
    np.testing.assert_array_equal(features.apply(state, X[order]), whole[order])


def test_bits_do_not_depend_on_the_number_of_threads():
    X = np.random.default_rng(0).normal(size=(700, 50)).astype(np.float32)
    features = Landmarks(600, Gaussian("median"))
    state, bits = fixed(features, X, np.float32), []
    for threads in (1, 2):
        with threadpool_limits(threads):
            bits.append(features.apply(state, X))
    np.testing.assert_array_equal(*bits)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Landmarks(0), "n_landmarks must be an integer >= 1; got 0"),
        (lambda: Landmarks(8, "gaussian"), r"must be a Kernel, such as Gaussian\('median'\); got 'gaussian'"),
        (lambda: Landmarks(8, rank=4), "Landmarks keeps all directions: for rank=4, use Nystroem"),
    ],
)
def test_bad_values_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_an_exact_path_over_them_is_the_one_over_nystroem():
    """The minimiser does not depend on the coordinates, if none is dropped."""
    X, y = make_stream("random", 400, 4)
    found = []
    for kind in (Landmarks, Nystroem):
        stream = Stream(ExactPath(features=kind(30, Gaussian(0.5)), alphas=(0.1, 1.0), dtype="float64", seed=0))
        stream.start_with(stream.check(X[:50], y[:50]))
        found.append(stream.partial_fit(X, y).score(X))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("system", [FPOGD, ExactAUC])
def test_in_systems(system):
    X, y = make_stream("random", 2500, 4)
    model = system(features=Landmarks(100, Gaussian("median")), random_state=0).fit(X[:2000], y[:2000])
    assert roc_auc_score(y[2000:], model.decision_function(X[2000:])) > 0.8
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert Learner(Landmarks(2048)).warm_rows == 2048


def test_rows_of_many_columns_that_are_mostly_0_have_the_features_of_csr_rows():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((80, 600)) < 0.03, rng.normal(1.0, 1.0, (80, 600)), 0.0)
    X[::7] = rng.normal(size=(12, 600))  # rows without zeros among them
    phi = Landmarks(20, Gaussian("median"), scale="maxabs")
    few = X[[i for i in range(80) if i % 7]]
    direct = np.square(few[:, None] - few[None]).sum(axis=2)
    np.testing.assert_allclose(squared_distances(few, few), direct, rtol=1e-9, atol=1e-9)
    state = phi.fix(600, X, rng)
    Z = phi.apply(state, X)
    np.testing.assert_allclose(Z, phi.apply(state, sp.csr_array(X)), rtol=0, atol=1e-8)
    for start, end in ((0, 1), (1, 2), (5, 9), (70, 80)):
        np.testing.assert_array_equal(phi.apply(state, X[start:end]), Z[start:end])
