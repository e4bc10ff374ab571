import subprocess
import sys
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from threadpoolctl import threadpool_limits

from pairloom.base.tree import cast
from pairloom.features import (
    KERNELS,
    Cauchy,
    Compressed,
    Gaussian,
    Identity,
    Landmarks,
    Laplace,
    Matern32,
    Matern52,
    Nystroem,
    OrthogonalFourier,
    RandomFourier,
    Whitened,
)
from pairloom.features.distances import median_squared_distance, squared_distances
from pairloom.features.fourier import project
from pairloom.features.scaling import fit_scaler
from tests.covering import every_pair

SCALINGS = [None, "standard", "wide", "maxabs", "minmax"]
MAPS = {
    "identity": lambda scale: Identity(scale=scale),
    "gaussian": lambda scale: RandomFourier(64, Gaussian("median"), scale=scale),
    "laplace": lambda scale: RandomFourier(64, Laplace("median"), scale=scale),
    "cauchy": lambda scale: RandomFourier(64, Cauchy("median"), scale=scale),
    "matern32": lambda scale: RandomFourier(64, Matern32("median"), scale=scale),
    "matern52": lambda scale: RandomFourier(64, Matern52(0.1), scale=scale),
    "orthogonal": lambda scale: OrthogonalFourier(64, Gaussian("median"), scale=scale),
    "nystroem": lambda scale: Nystroem(32, Gaussian("median"), scale=scale),
    "landmarks": lambda scale: Landmarks(32, Matern32("median"), scale=scale),
    "nystroem-laplace": lambda scale: Nystroem(32, Laplace("median"), rank=20, scale=scale),
    "compressed": lambda scale: Compressed(Identity(scale=scale)),
    "compressed-landmarks": lambda scale: Compressed(Landmarks(32, Gaussian("median"), scale=scale)),
    "whitened": lambda scale: Whitened(RandomFourier(64, Gaussian("median"), scale=scale), 8),
    "whitened-nystroem": lambda scale: Whitened(Nystroem(32, Matern32("median"), scale=scale), 8),
    "orthogonal-matern32": lambda scale: OrthogonalFourier(64, Matern32("median"), scale=scale),
}


def fixed(features, X, seed=0, dtype=np.float64):
    state = features.fix(X.shape[1], X, np.random.default_rng(seed))
    return cast(state, dtype)


@pytest.fixture
def X():
    return np.random.default_rng(1).normal(size=(300, 7))


@pytest.fixture
def rows():
    """Rows with many zeros, a column of zeros, one without zeros, an empty row, and columns of different scales."""
    X = np.random.default_rng(1).normal(size=(203, 9))
    X[np.abs(X) < 0.8] = 0.0
    X = X * [1, 10, 100, 0.1, 5, 1, 1, 1, 1]
    X[:, 3], X[:, 4], X[17] = 0.0, 2.0 + np.arange(203) % 7, 0.0
    return X


def dense(Z):
    return Z.toarray() if sp.issparse(Z) else Z


@pytest.mark.parametrize(("D", "outputs"), [(64, 64), (65, 66), (1, 2)])
@pytest.mark.parametrize("kind", [RandomFourier, OrthogonalFourier])
def test_an_odd_number_of_components_is_rounded_up(X, kind, D, outputs):
    features = kind(D, Gaussian("median"))
    Z = features.apply(fixed(features, X), X)
    assert Z.shape == (300, outputs)
    assert features.n_outputs(7) == outputs
    np.testing.assert_allclose(np.square(Z).sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("d", "D"), [(22, 1024), (784, 1024), (3000, 100), (600, 4500)])
def test_bits_do_not_depend_on_the_number_of_threads(d, D, dtype):
    X = np.random.default_rng(d).normal(size=(64, d)).astype(dtype)
    features = RandomFourier(D, Gaussian(1 / d))
    state = fixed(features, X.astype(float), dtype=dtype)
    mapped = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            mapped.append(features.apply(state, X))
    np.testing.assert_array_equal(*mapped)


@pytest.mark.parametrize(("d", "m"), [(1, 1), (22, 3000), (512, 600), (513, 600), (700, 2100), (3000, 50)])
def test_products_in_blocks_are_products(d, m):
    rng = np.random.default_rng(0)
    X, Q = rng.normal(size=(19, d)), rng.normal(size=(d, m))
    np.testing.assert_allclose(project(X, Q), X @ Q, rtol=0, atol=1e-11)


def test_a_product_with_a_triangular_matrix_leaves_only_zeros_out():
    rng = np.random.default_rng(0)
    X, Q = rng.normal(size=(11, 700)), np.triu(rng.normal(size=(700, 700)))
    np.testing.assert_allclose(project(X, Q, upper=True), X @ Q, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(project(X[3:5], Q, upper=True), project(X, Q, upper=True)[3:5])


def test_kernel_error_falls_like_one_over_root_d(X):
    errors = []
    for D in (128, 2048):
        features = RandomFourier(D, Gaussian(0.1))
        state = fixed(features, X)
        Z = features.apply(state, X)
        errors.append(np.sqrt(np.square(Z @ Z.T - features.kernel(state.gamma, X, X)).mean()))
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.35)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("d", "D"), [(1, 2), (3, 14), (20, 200), (22, 1024), (123, 512), (784, 2048), (600, 4500)])
def test_a_row_has_the_same_bits_in_every_call(d, D, dtype):
    X = np.random.default_rng(d).normal(size=(203, d)).astype(dtype)
    features = RandomFourier(D, Gaussian("median"), scale="standard")
    state = fixed(features, X.astype(float), dtype=dtype)
    whole = features.apply(state, X)
    assert whole.dtype == dtype
    for cuts in ([1], [7, 8, 9], [100], [13, 14, 190, 200]):
        parts = [features.apply(state, part) for part in np.split(X, cuts)]
        np.testing.assert_array_equal(np.vstack(parts), whole)
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_array_equal(features.apply(state, X[order]), whole[order])


@pytest.mark.parametrize(
    ("rule", "scaler"),
    [("standard", StandardScaler()), ("maxabs", MaxAbsScaler()), ("minmax", MinMaxScaler((-1, 1)))],
)
def test_scaling_is_scikit_learns(X, rule, scaler):
    X = X * [1, 10, 100, 0.1, 5, 1, 1] + [0, 5, -300, 1, 0, 0, 0]
    X[:, 5] = 0.1  # constant, and its mean is not exactly 0.1
    expected = scaler.fit_transform(X)
    if rule == "minmax":
        expected[:, 5] = 0  # here a constant column becomes 0, in scikit-learn the lower end
    identity = Identity(scale=rule)
    np.testing.assert_allclose(identity.apply(fixed(identity, X), X), expected, rtol=1e-9, atol=1e-9)


def test_wide_is_standard_but_no_narrower_than_an_eighth_of_the_range():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(size=500), np.arange(500) == 7, np.full(500, 3.0)]).astype(float)
    scaler = fit_scaler("wide", 3, X)
    np.testing.assert_allclose(scaler.shift, X.mean(axis=0))
    np.testing.assert_allclose(scaler.scale, [X[:, 0].std(), 1 / 8, 1.0])
    assert X[:, 1].std() < 1 / 8


@pytest.mark.parametrize("rule", SCALINGS[1:])
def test_scaling_folded_into_the_frequencies_equals_scaling_first(X, rule):
    X = 100 + 30 * X
    folded = RandomFourier(64, Gaussian(0.1), scale=rule)
    plain = RandomFourier(64, Gaussian(0.1))
    scaled = folded.inputs(fixed(folded, X), X)
    np.testing.assert_allclose(
        folded.apply(fixed(folded, X), X), plain.apply(fixed(plain, scaled), scaled), rtol=0, atol=1e-11
    )


def test_width_rules(X):
    assert fixed(RandomFourier(8, Gaussian("paper")), X).gamma == 1 / 14
    expected = np.median(squared_distances(X, X)[np.triu_indices(300, 1)])
    assert fixed(RandomFourier(8, Gaussian("median")), X).gamma == pytest.approx(1 / expected, rel=1e-12)
    scaled = RandomFourier(8, Gaussian("median"), scale="standard")
    Z = StandardScaler().fit_transform(X)
    assert fixed(scaled, X).gamma == pytest.approx(1 / median_squared_distance(Z), rel=1e-9)


def test_median_width_of_degenerate_rows():
    assert fixed(RandomFourier(8, Gaussian("median")), np.ones((20, 4))).gamma == 1 / 8
    assert fixed(RandomFourier(8, Gaussian("median")), np.ones((1, 4))).gamma == 1 / 8
    mostly_equal = np.zeros((100, 2))
    mostly_equal[0] = 3.0
    # The median is 0; the mean of 99 distances of 18 among 4,950 pairs is not.
    assert fixed(RandomFourier(8, Gaussian("median")), mostly_equal).gamma == pytest.approx(4950 / (99 * 18))


def test_same_seed_same_map_and_more_components_keep_the_first(X):
    few, many = RandomFourier(16, Gaussian(0.2)), RandomFourier(64, Gaussian(0.2))
    np.testing.assert_array_equal(fixed(few, X).projection, fixed(many, X).projection[:, :8])
    assert not np.array_equal(fixed(few, X, seed=1).projection, fixed(few, X).projection)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: RandomFourier(8, "gaussian"),
            r"must be a Kernel, such as Gaussian\('median'\); got 'gaussian'",
        ),
        (lambda: RandomFourier(0), "n_components must be an integer >= 1; got 0"),
        (lambda: RandomFourier(2.5), "n_components must be an integer"),
        (lambda: Identity(scale="robust"), "scale, if not None, must be one of 'standard', 'wide', 'maxabs', 'minmax'"),
    ],
)
def test_bad_values_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_parts_are_values():
    assert RandomFourier(8, Gaussian(np.array([0.1, 0.2]))) == RandomFourier(8, Gaussian((0.1, 0.2)))
    assert RandomFourier(8) != OrthogonalFourier(8)
    assert len({make(None) for make in MAPS.values()} | {make(None) for make in MAPS.values()}) == len(MAPS)


@pytest.mark.parametrize("kind", MAPS, ids=str)
def test_fixing_twice_gives_the_same_bits(X, kind):
    features = MAPS[kind]("standard")
    np.testing.assert_array_equal(features.apply(fixed(features, X), X), features.apply(fixed(features, X.copy()), X))


# CSR rows.


@every_pair(kind=MAPS, scale=SCALINGS, container=[sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_array])
def test_sparse_rows_are_mapped_as_dense_rows(rows, kind, scale, container):
    features = MAPS[kind](scale)
    from_dense, from_sparse = fixed(features, rows), fixed(features, container(rows))
    Z, sparse = features.apply(from_dense, rows), features.apply(from_sparse, container(rows))
    assert sp.issparse(sparse) == features.keeps_csr
    if features.keeps_csr and scale in ("standard", "wide", "minmax"):
        # Not centred: a shift that is the same for every row.
        np.testing.assert_allclose(dense(sparse) - Z, np.tile(dense(sparse)[0] - Z[0], (203, 1)), atol=1e-12)
    else:
        np.testing.assert_allclose(dense(sparse), Z, rtol=0, atol=1e-10)
    differences = features.inputs(from_dense, rows)[1:] - features.inputs(from_dense, rows)[:-1]
    inputs = features.inputs(from_sparse, container(rows))
    assert inputs.format == "csr"
    np.testing.assert_allclose(dense(inputs)[1:] - dense(inputs)[:-1], differences, atol=1e-11)


@pytest.mark.parametrize("scale", SCALINGS)
@pytest.mark.parametrize("kind", ["gaussian", "orthogonal", "nystroem", "nystroem-laplace", "whitened", "identity"])
def test_sparse_rows_in_float32(rows, kind, scale):
    features = MAPS[kind](scale)
    state = fixed(features, rows, dtype=np.float32)
    Z = features.apply(state, sp.csr_array(rows.astype(np.float32)))
    assert Z.dtype == np.float32
    if kind != "identity":
        assert Z.flags.c_contiguous
        np.testing.assert_allclose(Z, features.apply(state, rows.astype(np.float32)), atol=2e-5)


@pytest.mark.parametrize("scale", SCALINGS[1:])
def test_scalers_of_sparse_rows(rows, scale):
    ours, theirs = fit_scaler(scale, 9, sp.csr_matrix(rows)), fit_scaler(scale, 9, rows)
    np.testing.assert_allclose(ours.shift, theirs.shift, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(ours.scale, theirs.scale, rtol=1e-12)


@pytest.mark.parametrize("kind", MAPS, ids=str)
def test_mapping_leaves_the_rows_alone(rows, kind):
    features = MAPS[kind]("maxabs")
    X = sp.csr_array(rows)
    Z = features.apply(fixed(features, X), X)
    np.testing.assert_array_equal(X.toarray(), rows)
    if sp.issparse(Z):
        assert not any(np.shares_memory(getattr(Z, part), getattr(X, part)) for part in ("data", "indices", "indptr"))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("d", "D"), [(1, 2), (3, 14), (123, 512), (784, 2048), (5000, 200)])
def test_a_sparse_row_has_the_same_bits_in_every_call(d, D, dtype):
    X = sp.random_array((203, d), density=0.1, format="csr", rng=np.random.default_rng(d), dtype=dtype)
    features = RandomFourier(D, Gaussian("median"), scale="standard")
    state = fixed(features, X, dtype=dtype)
    whole = features.apply(state, X)
    assert whole.dtype == dtype
    for cuts in ([1], [7, 8, 9], [100], [13, 14, 190, 200]):
        edges = [0, *cuts, 203]
        parts = [features.apply(state, X[a:b]) for a, b in pairwise(edges)]
        np.testing.assert_array_equal(np.vstack(parts), whole)
    order = np.random.default_rng(0).permutation(203)
    np.testing.assert_array_equal(features.apply(state, X[order]), whole[order])


@pytest.fixture(scope="module")
def wide():
    return sp.random_array((2000, 47_236), density=0.002, format="csr", rng=np.random.default_rng(0))


# Two of the five scalings for each map, equally often: a scaler does not depend on the map.
@pytest.mark.parametrize(
    ("kind", "scale"), [(kind, SCALINGS[(k + turn) % 5]) for k, kind in enumerate(MAPS) for turn in (0, 2)]
)
def test_many_columns_stay_sparse(kind, scale, wide):
    X = wide.copy()
    features = MAPS[kind](scale)
    tracemalloc.start()
    state = fixed(features, X, dtype=np.float32)
    features.apply(state, X.astype(np.float32))
    features.inputs(state, X.astype(np.float32))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # 32 frequencies in float64, in the few copies that drawing and orthogonalising take; dense rows are 756 MB.
    frequencies = 8 * 32 * 47_236
    assert peak < 5 * frequencies + 30e6 < 0.12 * 8 * 2000 * 47_236


@pytest.mark.parametrize("name", KERNELS, ids=str)
def test_kernel_matrices_of_many_columns_stay_sparse(name):
    X = sp.random_array((200, 47_236), density=0.002, format="csr", rng=np.random.default_rng(0))
    tracemalloc.start()
    KERNELS[name]()(np.asarray(0.1), X, X)
    KERNELS[name]()(np.full(47_236, 0.1), X, X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5e6 < 0.1 * 8 * 200 * 47_236


def test_parts_need_neither_scikit_learn_nor_sparse_matrices():
    code = (
        "import sys, pairloom.features, numpy as np; from pairloom.features import RandomFourier as R; "
        "phi = R(8, scale='standard'); X = np.ones((3, 2)); phi.apply(phi.fix(2, X, np.random.default_rng(0)), X); "
        "print([name for name in ('sklearn', 'scipy.sparse', 'scipy.spatial') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("kernel", [Gaussian(0.5), Matern32(tuple(np.linspace(0.1, 1.0, 80)))])
def test_frequencies_made_orthogonal_in_place_are_those_of_qr(kernel, monkeypatch):
    phi = OrthogonalFourier(30, kernel)
    expected = phi.fix(80, None, np.random.default_rng(0)).projection
    monkeypatch.setattr("pairloom.features.fourier.LARGE_SIZE", 0)
    np.testing.assert_allclose(phi.fix(80, None, np.random.default_rng(0)).projection, expected, rtol=1e-10, atol=1e-12)
