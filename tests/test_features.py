import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from pairloom.features import Gaussian, Identity, RandomFourier
from pairloom.features.kernels import median_squared_distance, squared_distances
from pairloom.state import cast


def fixed(features, X, seed=0, dtype=np.float64):
    state = features.fix(X.shape[1], X, np.random.default_rng(seed))
    return cast(state, np.float64, dtype)


@pytest.fixture
def X():
    return np.random.default_rng(1).normal(size=(300, 7))


def test_kernel_is_scikit_learns(X):
    K = Gaussian(0.3)(np.asarray(0.3), X, X[:50])
    np.testing.assert_allclose(K, rbf_kernel(X, X[:50], gamma=0.3), rtol=1e-12)


@pytest.mark.parametrize("D", [64, 65, 2048])
@pytest.mark.parametrize("gamma", [0.1, "median", (0.3, 0.1, 0.2, 0.01, 1.0, 0.5, 0.7)])
def test_unit_norm_and_kernel_within_the_stated_bound(X, D, gamma):
    """Property 6: ||r(x)|| = 1, and |<r, r'> - k| <= sqrt(4 ln(2/p) / D) with probability 1 - p for each pair."""
    features = RandomFourier(D, Gaussian(gamma))
    state = fixed(features, X)
    Z = features.apply(state, X)
    assert Z.shape == (300, D + D % 2)
    np.testing.assert_allclose(np.square(Z).sum(axis=1), 1.0, rtol=1e-12)
    error = np.abs(Z @ Z.T - features.kernel(state.gamma, X, X))[np.triu_indices(300, 1)]
    p = 0.01
    # The pairs share frequencies, so the share of exceptions varies more than for independent draws: allow 3 p.
    assert (error > np.sqrt(4 * np.log(2 / p) / Z.shape[1])).mean() <= 3 * p
    # Neither is the bound idle: the error is of the order it says.
    assert error.max() > 0.2 * np.sqrt(4 * np.log(2 / p) / Z.shape[1])


def test_kernel_error_falls_like_one_over_root_d(X):
    errors = []
    for D in (128, 2048):
        features = RandomFourier(D, Gaussian(0.1))
        state = fixed(features, X)
        Z = features.apply(state, X)
        errors.append(np.sqrt(np.square(Z @ Z.T - features.kernel(state.gamma, X, X)).mean()))
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.35)


def test_frequencies_are_normal_with_the_variance_of_the_width():
    gamma = np.array([0.5, 2.0])
    q = Gaussian(tuple(gamma)).frequencies(gamma, 2, 200_000, np.random.default_rng(0))
    np.testing.assert_allclose(q.var(axis=1), 2 * gamma, rtol=0.02)
    assert abs(np.corrcoef(q)[0, 1]) < 0.01


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("d", "D"), [(1, 2), (3, 14), (20, 200), (22, 1024), (123, 512), (784, 2048)])
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
        expected[:, 5] = 0  # we put a constant column in the middle, scikit-learn at the lower end
    identity = Identity(scale=rule)
    np.testing.assert_allclose(identity.apply(fixed(identity, X), X), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("rule", ["standard", "maxabs", "minmax"])
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
        (lambda: Gaussian("wide"), "gamma must be positive, 'paper' or 'median', got 'wide'"),
        (lambda: Gaussian(-1.0), "gamma must be a positive number, or one per column"),
        (lambda: Gaussian([0.1, np.inf]), "gamma must be a positive number"),
        (lambda: RandomFourier(0), "n_components must be a whole number of at least 1; got 0"),
        (lambda: RandomFourier(2.5), "n_components must be a whole number"),
        (lambda: Identity(scale="robust"), "scale, if not None, must be one of 'standard', 'maxabs', 'minmax'"),
    ],
)
def test_bad_values_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_wrong_number_of_widths(X):
    with pytest.raises(ValueError, match="gamma has 2 widths, but the rows have 7 columns"):
        fixed(RandomFourier(8, Gaussian((0.1, 0.2))), X)


def test_parts_are_values():
    assert RandomFourier(8, Gaussian(np.array([0.1, 0.2]))) == RandomFourier(8, Gaussian((0.1, 0.2)))
    assert len({Gaussian(0.1), Gaussian(0.1), Gaussian("median")}) == 2
