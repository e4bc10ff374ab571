import pickle
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import kernel_approximation
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from pairloom import Grid, Learner, Stream
from pairloom.base.tree import cast
from pairloom.features import KERNELS, Gaussian, Laplace, Matern32, Nystroem, RandomFourier
from pairloom.models.mapped import WARM_ROWS
from pairloom.steps import Constant
from pairloom.systems import FPOGD, OGD, OPAUC, SPAM, ExactAUC
from tests.conftest import make_stream


def fixed(features, X, dtype=np.float64):
    return cast(features.fix(X.shape[1], X, np.random.default_rng(0)), dtype)


def mapped(features, X, new=None):
    return features.apply(fixed(features, X), X if new is None else new)


@pytest.fixture
def X():
    return np.random.default_rng(1).normal(size=(120, 6)) * [1, 1, 2, 5, 0.5, 1] + [0, 10, 0, -3, 1, 0]


@pytest.mark.parametrize("gamma", [0.3, (0.1, 0.3, 0.2, 0.05, 1.0, 0.3), "median"], ids=["one", "each", "rule"])
@pytest.mark.parametrize("kind", KERNELS.values())
def test_all_rows_as_landmarks_give_the_kernel(X, kind, gamma):
    features = Nystroem(120, kind(gamma))
    state = fixed(features, X)
    Z = features.apply(state, X)
    np.testing.assert_allclose(Z @ Z.T, kind(gamma)(state.gamma, X, X), atol=2e-5 if gamma == "median" else 1e-10)


@pytest.mark.parametrize(("kernel", "name"), [(Gaussian(0.05), "rbf"), (Laplace(0.05), "laplacian")])
def test_scikit_learns_map_with_the_same_landmarks(X, kernel, name):
    theirs = kernel_approximation.Nystroem(name, gamma=0.05, n_components=30, random_state=0).fit(X[:30]).transform(X)
    ours = mapped(Nystroem(30, kernel), X)
    np.testing.assert_allclose(ours @ ours.T, theirs @ theirs.T, atol=1e-9)


@pytest.mark.parametrize("rank", [1, 5, 40])
def test_a_truncated_rank_is_the_best_of_that_rank(X, rank):
    K = Gaussian(0.1)(np.asarray(0.1), X, X)
    values, V = np.linalg.eigh(K)
    best = (V[:, -rank:] * values[-rank:]) @ V[:, -rank:].T
    Z = mapped(Nystroem(120, Gaussian(0.1), rank=rank), X)
    assert Z.shape == (120, rank)
    np.testing.assert_allclose(Z @ Z.T, best, atol=1e-10)
    # Columns are principal directions, the largest first.
    np.testing.assert_allclose(Z.T @ Z, np.diag(values[::-1][:rank]), atol=1e-9)


@pytest.mark.parametrize("rule", ["standard", "maxabs", "minmax"])
@pytest.mark.parametrize("kernel", [Gaussian("median"), Matern32(0.1), Laplace(0.2)], ids=repr)
def test_scaling_folded_into_the_widths_equals_scaling_first(X, kernel, rule):
    folded, plain = Nystroem(25, kernel, scale=rule), Nystroem(25, kernel)
    scaled = folded.inputs(fixed(folded, X), X)
    ours, theirs = mapped(folded, X), mapped(plain, scaled)
    np.testing.assert_allclose(ours @ ours.T, theirs @ theirs.T, atol=1e-9)


def test_the_number_of_columns_does_not_depend_on_the_rows_seen(X):
    features = Nystroem(50, Gaussian("median"), rank=30)
    for n in (1, 2, 29, 31, 120):
        Z = mapped(features, X[:n], X)
        assert Z.shape == (120, features.n_outputs(6)) == (120, 30)
        assert not Z[:, min(n, 30) :].any()
        assert np.square(Z).sum(axis=1).max() <= 1 + 1e-9
    Z = features.apply(features.fix(6, None, np.random.default_rng(0)), X)
    assert Z.shape == (120, 30)
    assert np.isfinite(Z).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_landmarks_do_no_harm(X, dtype):
    rows = np.tile(X[:9], (10, 1)).astype(dtype)
    features = Nystroem(64, Gaussian("median"))
    Z = features.apply(fixed(features, rows, dtype), rows)
    assert np.isfinite(Z).all()
    assert (np.abs(Z).max(axis=0) > 0).sum() <= 9
    np.testing.assert_allclose(np.square(Z).sum(axis=1), 1.0, atol=1e-4)


def test_float32_is_near_float64(X):
    X = X.astype(np.float32)
    for kernel in (Gaussian("median"), Matern32("median"), Laplace("median")):
        features = Nystroem(100, kernel)
        single = features.apply(fixed(features, X, np.float32), X)
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, mapped(features, X.astype(float)), atol=3e-4)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("d", "m", "kernel"),
    [(1, 3, Gaussian(0.1)), (22, 150, Gaussian("median")), (123, 64, Matern32("median")), (7, 33, Laplace("median"))],
)
def test_a_row_has_the_same_bits_in_every_call(d, m, kernel, dtype, container):
    X = sp.random_array((203, d), density=0.4, format="csr", rng=np.random.default_rng(d), dtype=dtype).toarray()
    X = container(X)
    features = Nystroem(m, kernel, rank=max(1, m - 2), scale="standard")
    state = fixed(features, X, dtype)
    whole = features.apply(state, X)
    assert whole.dtype == dtype
    for cuts in ([1], [7, 8, 9], [100], [13, 14, 190, 200]):
        parts = [features.apply(state, X[a:b]) for a, b in pairwise([0, *cuts, 203])]
        np.testing.assert_array_equal(np.vstack(parts), whole)
    order = np.random.default_rng(0).permutation(203)
    np.testing.assert_array_equal(features.apply(state, X[order]), whole[order])
    np.testing.assert_array_equal(np.vstack([features.apply(state, X[i : i + 1]) for i in range(40)]), whole[:40])


def test_bits_do_not_depend_on_the_number_of_threads():
    X = np.random.default_rng(0).normal(size=(700, 50)).astype(np.float32)
    features = Nystroem(600, Gaussian("median"))
    state, bits = fixed(features, X, np.float32), []
    for threads in (1, 2):
        with threadpool_limits(threads):
            bits.append(features.apply(state, X))
    np.testing.assert_array_equal(*bits)


def test_csr_rows_of_large_columns_far_from_zero():
    """What the centre would save dense rows from, cancellation, stays small where the kernel's width fits the data."""
    X = np.random.default_rng(0).normal(size=(100, 4)) + 30
    features = Nystroem(40, Gaussian("median"))
    state = fixed(features, X)
    np.testing.assert_allclose(features.apply(state, sp.csr_array(X)), features.apply(state, X), atol=1e-9)


@pytest.mark.parametrize("kernel", [Gaussian(0.2), Laplace(0.2)], ids=repr)
def test_places_that_csr_rows_store_twice_count_as_their_sum(kernel):
    twice = sp.csr_array((np.array([1.0, 2.0, 4.0, 1.0]), [0, 0, 1, 0], [0, 3, 4]), shape=(2, 3))
    features = Nystroem(2, kernel)
    state = fixed(features, twice)
    np.testing.assert_allclose(features.apply(state, twice), features.apply(state, twice.toarray()), atol=1e-12)
    assert twice.nnz == 4


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Nystroem(0), "n_landmarks must be an integer >= 1; got 0"),
        (lambda: Nystroem(8, "gaussian"), r"must be a Kernel, such as Gaussian\('median'\); got 'gaussian'"),
        (lambda: Nystroem(8, rank=0), "rank, if not None, must be an integer"),
        (lambda: Nystroem(8, rank=9), "rank must be at most n_landmarks=8; got 9"),
    ],
)
def test_bad_values_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# In learners.


@pytest.mark.parametrize("n", [3, 1099, 1100, 1150])
def test_as_many_rows_are_kept_as_there_are_landmarks(n):
    features = Nystroem(1100, Gaussian("median"), rank=20)
    X, y = make_stream("random", n, 4)
    learner = Learner(features, seed=2)
    stream, direct = Stream(learner).partial_fit(X, y), Stream(learner)
    fixed_at = max(r for r in (1, 4, 16, 64, 256, 1024, 1100) if r <= n)
    batch = direct.check(X, y)
    direct.start_with(batch[:fixed_at])
    direct.learn(batch)
    np.testing.assert_array_equal(stream.learned.w, direct.learned.w)
    assert stream.learned.phi.landmarks.shape == (4, fixed_at)
    assert (stream.state.kept is None) == (n >= 1100)
    assert learner.init(4, batch).phi.landmarks.shape == (4, min(n, 1100))


def test_fewer_landmarks_do_not_shorten_the_warm_start():
    assert Learner(Nystroem(10)).warm_rows == Learner(RandomFourier(10)).warm_rows == WARM_ROWS
    assert Learner(Nystroem(2048)).warm_rows == 2048


def test_csr_rows_learn_what_dense_rows_learn():
    X, y = make_stream("random", 1100, 5)
    X[np.abs(X) < 0.5] = 0.0
    learner = Learner(Nystroem(100, Gaussian("median"), rank=30, scale="standard"), dtype="float64", seed=0)
    dense, sparse = (Stream(learner).partial_fit(Z, y) for Z in (X, sp.csr_array(X)))
    # The columns of a fixed map are known up to their sign.
    np.testing.assert_allclose(sparse.score(X), dense.score(sp.csr_array(X)), rtol=1e-6, atol=1e-8)


def test_in_a_grid():
    X, y = make_stream("random", 1500, 5)
    one = Learner(Nystroem(128, Gaussian("median"), rank=64), dtype="float64", seed=0)
    learners = [replace(one, step=Constant(eta), average="poly") for eta in (0.02, 0.2)]
    grid = Stream(Grid(learners)).partial_fit(X[:1000], y[:1000]).partial_fit(X[1000:], y[1000:])
    for i, learner in enumerate(learners):
        alone = Stream(learner).partial_fit(X, y)
        np.testing.assert_allclose(grid.score(X)[:, i], alone.score(X), rtol=1e-8, atol=1e-10)
    assert Grid([Learner(Nystroem(2048))]).warm_rows == 2048


@pytest.mark.parametrize("system", [FPOGD, OGD, OPAUC, SPAM, ExactAUC])
def test_with_every_kind_of_system(system):
    X, y = make_stream("random", 2500, 4)
    model = clone(system(features=Nystroem(100, Gaussian("median"), rank=40), random_state=0))
    model.fit(X[:2000], y[:2000])
    assert roc_auc_score(y[2000:], model.decision_function(X[2000:])) > 0.8
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    if system is FPOGD:
        assert model.gamma_ == pytest.approx(1 / 8, rel=0.3)
