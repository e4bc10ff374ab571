import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import Matern
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

from pairloom.base.randomness import generator
from pairloom.features import KERNELS, Cauchy, Gaussian, Laplace, Matern32, Matern52, OrthogonalFourier, RandomFourier
from pairloom.features import distances as distances_module
from pairloom.features.distances import coordinate_sums, median_distance, squared_distances

ISOTROPIC = [name for name, kernel in KERNELS.items() if kernel().isotropic]
WIDTHS = {"one": 0.3, "many": (0.3, 0.1, 0.2, 0.01, 1.0, 0.5, 0.7)}


@pytest.fixture
def X():
    return np.random.default_rng(1).normal(size=(300, 7))


@pytest.fixture(params=KERNELS, ids=str)
def kind(request):
    return KERNELS[request.param]


@pytest.fixture(params=WIDTHS, ids=str)
def gamma(request):
    return WIDTHS[request.param]


def expected(kind, gamma, X, Y):
    """The kernel matrix by another library; the widths of a vector are scaled into the columns."""
    gamma = np.broadcast_to(gamma, X.shape[1])
    if kind is Laplace:
        return laplacian_kernel(X * gamma, Y * gamma, gamma=1.0)
    if kind is Cauchy:
        return np.prod(1 / (1 + np.square(gamma * (X[:, None] - Y[None]))), axis=-1)
    X, Y = X * np.sqrt(gamma), Y * np.sqrt(gamma)
    if kind is Gaussian:
        return rbf_kernel(X, Y, gamma=1.0)
    return Matern(length_scale=1 / np.sqrt(2), nu=kind.two_nu / 2)(X, Y)


def test_the_table_names_every_kernel():
    assert list(KERNELS) == ["gaussian", "laplace", "cauchy", "matern32", "matern52"]
    assert all(kernel.name == name for name, kernel in KERNELS.items())
    assert ISOTROPIC == ["gaussian", "matern32", "matern52"]


def test_matrices_are_those_of_other_libraries(kind, gamma, X):
    K = kind(gamma)(np.asarray(gamma), X, X[:50])
    assert K.dtype == np.float64
    np.testing.assert_allclose(K, expected(kind, gamma, X, X[:50]), rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(kind(gamma)(np.asarray(gamma), X.astype(np.float32), X[:50]), K, rtol=1e-4)
    np.testing.assert_allclose(np.diag(kind(gamma)(np.asarray(gamma), X, X)), 1.0, rtol=1e-12)


@pytest.mark.parametrize("container", [sp.csr_array, sp.csr_matrix, sp.csc_array])
def test_matrices_of_sparse_rows(kind, gamma, X, container):
    X = np.where(np.abs(X) > 1, X, 0.0)
    X[5] = 0.0
    kernel, gamma = kind(gamma), np.asarray(gamma)
    dense = kernel(gamma, X, X[:50])
    for A, B in ((container(X), container(X[:50])), (container(X), X[:50]), (X, container(X[:50]))):
        np.testing.assert_allclose(kernel(gamma, A, B), dense, rtol=1e-12, atol=1e-14)


def test_entries_stored_twice_are_summed(kind, X):
    once = sp.csr_array(X)
    twice = sp.csr_array((np.repeat(once.data / 2, 2), np.repeat(once.indices, 2), 2 * once.indptr), shape=X.shape)
    kernel, gamma = kind(0.3), np.asarray(0.3)
    np.testing.assert_allclose(kernel(gamma, twice, twice), kernel(gamma, X, X), rtol=1e-10, atol=1e-14)
    assert twice.nnz == 2 * once.nnz


def test_matern_becomes_gaussian_as_it_becomes_smooth():
    """The width is the Gaussian's: Matern of length scale 1 / sqrt(2 gamma) tends to it."""
    X, Y = np.zeros((1, 1)), np.linspace(0.1, 2, 20)[:, None]
    gaussian = Gaussian()(np.asarray(0.7), X, Y)
    gaps = [np.abs(kind()(np.asarray(0.7), X, Y) - gaussian).max() for kind in (Matern32, Matern52)]
    gaps += [np.abs(Matern(1 / np.sqrt(1.4), nu=nu)(X, Y) - gaussian).max() for nu in (10.0, np.inf)]
    assert gaps[0] > gaps[1] > gaps[2] > gaps[3]
    assert gaps[3] < 1e-14


@pytest.mark.parametrize("D", [64, 2048])
def test_unit_norm_and_kernel_within_the_stated_bound(kind, gamma, X, D):
    """Property 6: ||r(x)|| = 1, and |<r, r'> - k| <= sqrt(4 ln(2/p) / D) with probability 1 - p for each pair."""
    maps = [RandomFourier(D, kind(gamma))] + ([OrthogonalFourier(D, kind(gamma))] if kind().isotropic else [])
    for features in maps:
        state = features.fix(7, X, np.random.default_rng(0))
        Z = features.apply(state, X)
        np.testing.assert_allclose(np.square(Z).sum(axis=1), 1.0, rtol=1e-12)
        error = np.abs(Z @ Z.T - features.kernel(state.gamma, X, X))[np.triu_indices(300, 1)]
        p = 0.01
        # The pairs share frequencies, so the share of exceptions varies more than for independent draws: allow 3 p.
        assert (error > np.sqrt(4 * np.log(2 / p) / D)).mean() <= 3 * p
        # Nor is the bound loose: the error is of this order.
        assert error.max() > 0.15 * np.sqrt(4 * np.log(2 / p) / D)


def test_the_mean_over_many_maps_is_the_kernel(kind, gamma, X):
    """No bias: the mean of n independent estimates is within a few standard errors of k, for every pair at once."""
    X = X[:12]
    maps = [RandomFourier(64, kind(gamma))] + ([OrthogonalFourier(64, kind(gamma))] if kind().isotropic else [])
    for features in maps:
        estimates = []
        for seed in range(100, 500):
            Z = features.apply(features.fix(7, None, np.random.default_rng(seed)), X)
            estimates.append((Z @ Z.T)[np.triu_indices(12, 1)])
        K = features.kernel(np.asarray(gamma), X, X)[np.triu_indices(12, 1)]
        standard_error = np.std(estimates, axis=0) / 20
        assert (np.abs(np.mean(estimates, axis=0) - K) / standard_error).max() < 4.5


LAWS = {
    Gaussian: lambda gamma: stats.norm(scale=np.sqrt(2 * gamma)),
    Laplace: lambda gamma: stats.cauchy(scale=gamma),
    Cauchy: lambda gamma: stats.laplace(scale=gamma),
    Matern32: lambda gamma: stats.t(3, scale=np.sqrt(2 * gamma)),
    Matern52: lambda gamma: stats.t(5, scale=np.sqrt(2 * gamma)),
}


def test_coordinates_of_the_frequencies_have_the_stated_law(kind):
    gamma = np.array([0.5, 2.0, 0.01])
    maps = [RandomFourier(40_000, kind(gamma))] + ([OrthogonalFourier(40_000, kind(gamma))] if kind().isotropic else [])
    for features in maps:
        q = features.fix(3, None, np.random.default_rng(3)).projection
        for coordinate, width in zip(q, gamma, strict=True):
            assert stats.kstest(coordinate, LAWS[kind](width).cdf).pvalue > 1e-3
        # In pairs: uncorrelated signs and, where one factor c stretches all coordinates, nothing more.
        assert np.abs(np.corrcoef(np.sign(q)) - np.eye(3)).max() < 0.03


def test_more_components_keep_the_first(kind, X):
    few, many = (RandomFourier(D, kind("median")).fix(7, X, np.random.default_rng(0)).projection for D in (16, 64))
    np.testing.assert_array_equal(few, many[:, :8])


# Widths.


def test_median_width_is_one_over_the_kernels_own_distance(kind, X):
    pairs = np.triu_indices(300, 1)
    distance = {
        Laplace: np.median(cdist(X, X, "cityblock")[pairs]),
        Cauchy: np.sqrt(np.median(cdist(X, X, "sqeuclidean")[pairs])),
    }.get(kind, np.median(cdist(X, X, "sqeuclidean")[pairs]))
    width = kind("median").width(7, X)
    assert width == pytest.approx(1 / distance, rel=1e-12)
    # So the kernel of two typical rows is neither 0 nor 1.
    typical = np.median(kind()(width, X, X)[pairs])
    assert typical == pytest.approx(np.exp(-1), abs=0.15)
    # Rows in other units have the same kernel matrix.
    other = kind("median").width(7, 1000 * X)
    np.testing.assert_allclose(kind()(other, 1000 * X, 1000 * X), kind()(width, X, X), rtol=1e-7)


def test_paper_width_is_one_number_for_all(kind, X):
    assert kind().width(7, X) == kind("paper").width(7, None) == kind("median").width(7, None) == 1 / 14


def test_median_width_of_sparse_rows(kind, X):
    X = np.where(np.abs(X) > 1, X, 0.0)
    for container in (sp.csr_array, sp.csr_matrix):
        assert kind("median").width(7, container(X)) == pytest.approx(float(kind("median").width(7, X)), rel=1e-9)


@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3, 1e6 + 0.1])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, sp.csr_matrix])
def test_median_width_of_equal_rows_is_the_papers(kind, value, container):
    rows = np.tile(value * np.random.default_rng(0).normal(size=(1, 30)), (200, 1))
    assert kind("median").width(30, container(rows)) == 1 / 60
    assert kind("median").width(30, container(rows[:1])) == 1 / 60


def test_wrong_number_of_widths(kind, X):
    with pytest.raises(ValueError, match="gamma has 2 widths, but the rows have 7 columns"):
        RandomFourier(8, kind((0.1, 0.2))).fix(7, X, np.random.default_rng(0))


def test_bad_values_are_named(kind):
    for gamma, message in (
        ("wide", "gamma must be positive, 'paper' or 'median', got 'wide'"),
        (-1.0, "gamma must be a positive number, or one per column"),
        ([0.1, np.inf], "gamma must be a positive number"),
        ([], "gamma must be a positive number"),
    ):
        with pytest.raises(ValueError, match=message):
            kind(gamma)


def test_a_factor_multiplies_the_width_whatever_the_rule(kind):
    rows = np.random.default_rng(0).normal(size=(40, 3))
    for gamma in ("paper", "median", 0.3, (0.1, 0.2, 0.3)):
        np.testing.assert_allclose(kind(gamma, 4.0).width(3, rows), 4.0 * kind(gamma).width(3, rows), rtol=1e-15)
    with pytest.raises(ValueError, match="factor must be a number above 0"):
        kind("median", 0.0)


def test_kernels_are_values(kind):
    assert kind(np.array([0.1, 0.2])) == kind((0.1, 0.2))
    assert len({kind(0.1), kind(0.1), kind("median")}) == 2
    assert repr(kind(0.5)) == f"{kind.__name__}(gamma=0.5, factor=1.0)"


# Distances.


@pytest.mark.parametrize("block", [1, 100, 1 << 17])
def test_blocks_do_not_change_the_sums(X, monkeypatch, block):
    monkeypatch.setattr(distances_module, "BLOCK_SIZE", block)
    np.testing.assert_allclose(coordinate_sums(X, X[:33], np.abs), cdist(X, X[:33], "cityblock"), rtol=1e-12)


def test_distances_between_far_rows_lose_nothing(X):
    np.testing.assert_allclose(squared_distances(X + 1e6, X[:50] + 1e6), cdist(X, X[:50], "sqeuclidean"), atol=1e-7)


def test_median_distance_takes_evenly_spaced_rows():
    rows = np.arange(5120.0)[:, None]
    taken = np.linspace(0, 5119, 512).astype(int)[:, None]
    expected = np.median(cdist(taken, taken, "cityblock")[np.triu_indices(512, 1)])
    assert median_distance(rows, lambda X, Y: coordinate_sums(X, Y, np.abs)) == expected


# Orthogonal features.


def mean_square_error(features, X, seeds):
    errors = []
    for seed in seeds:
        state = features.fix(X.shape[1], X, generator(seed))
        Z = features.apply(state, X)
        errors.append(np.square(Z @ Z.T - features.kernel(state.gamma, X, X))[np.triu_indices(len(X), 1)].mean())
    return np.mean(errors)


@pytest.mark.parametrize("name", ISOTROPIC)
@pytest.mark.parametrize("d", [7, 22])
def test_orthogonal_features_have_a_lower_kernel_error(name, d):
    X = np.random.default_rng(999).normal(size=(100, d))
    kernel = KERNELS[name]("median")
    for D in (64, 512):
        independent = mean_square_error(RandomFourier(D, kernel), X, range(30))
        orthogonal = mean_square_error(OrthogonalFourier(D, kernel), X, range(30))
        assert orthogonal < (0.6 if name == "gaussian" else 0.85) * independent


def test_orthogonal_features_with_a_width_per_column():
    X = np.random.default_rng(999).normal(size=(100, 7))
    kernel = Gaussian((0.05, 0.1, 0.1, 0.05, 0.15, 0.1, 0.1))
    errors = [mean_square_error(kind(256, kernel), X, range(30)) for kind in (OrthogonalFourier, RandomFourier)]
    assert errors[0] < 0.8 * errors[1]
    q = OrthogonalFourier(14, kernel).fix(7, None, np.random.default_rng(0)).projection / np.sqrt(kernel.gamma)[:, None]
    np.testing.assert_allclose(q.T @ q, np.diag(np.square(q).sum(axis=0)), atol=1e-12)


@pytest.mark.parametrize("d", [1, 3, 64, 200])
def test_blocks_are_orthogonal_and_lengths_chi_distributed(d):
    q = OrthogonalFourier(400, Gaussian(0.5)).fix(d, None, np.random.default_rng(0)).projection.T
    for start in range(0, 200, d):
        block = q[start : start + d]
        np.testing.assert_allclose(block @ block.T, np.diag(np.square(block).sum(axis=1)), atol=1e-11 * d)
    assert stats.kstest(np.linalg.norm(q, axis=1), stats.chi(d).cdf).pvalue > 1e-3


def test_rows_drawn_with_the_same_seed_do_not_meet_their_frequencies():
    X = np.random.default_rng(4).normal(size=(150, 123))
    features = OrthogonalFourier(512, Gaussian("median"))
    assert mean_square_error(features, X, [4]) < 1.3 * mean_square_error(features, X, range(5, 10))


@pytest.mark.parametrize("kind", [Laplace, Cauchy])
def test_orthogonal_features_refuse_the_other_kernels(kind):
    message = (
        r"orthogonal features need an isotropic kernel \(Gaussian, Matern32, Matern52\); "
        f"got {kind.__name__}, for which RandomFourier works"
    )
    with pytest.raises(ValueError, match=message):
        OrthogonalFourier(8, kind())
