"""The paper's bounds against enumeration and simulation."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from pairloom import Learner
from pairloom.data import DATASETS
from pairloom.evaluation import gradient_variance, regret
from pairloom.features import Gaussian, Identity, RandomFourier
from pairloom.features.base import dense_features
from pairloom.losses import Hinge, Logistic, Square, SquaredHinge
from pairloom.memory import Reservoir, Strata, WholeHistory
from pairloom.steps import Constant
from pairloom.systems import FPOGD
from pairloom.theory import (
    Partition,
    RegretBound,
    approximation_regret,
    degrees_of_freedom,
    features_for_error,
    features_needed,
    pairwise_failure,
    partner_smoothness,
    pointwise_failure,
    smoothness,
    strata_bound,
    uniform_failure,
)
from tests.conftest import make_stream

SMOOTH = [Square(), SquaredHinge(), Logistic()]


def unit(rng, n, dim):
    Z = rng.normal(size=(n, dim))
    return Z / np.linalg.norm(Z, axis=1, keepdims=True)


def gradients(loss, w, z, points):
    """Of the pairs of a positive z with its partners."""
    return loss.derivative((z - points) @ w)[:, None] * (z - points)


# Smoothness.


@pytest.mark.parametrize("loss", SMOOTH)
def test_smoothness_bounds_the_change_with_w_and_is_reached(loss):
    rng = np.random.default_rng(0)
    d = np.array([[2.0, 0.0]])
    worst = 0.0
    for _ in range(2000):
        w = rng.normal(size=2)
        v = w + 1e-4 * rng.normal(size=2)
        change = loss.derivative(d @ v) * d - loss.derivative(d @ w) * d
        worst = max(worst, np.linalg.norm(change) / np.linalg.norm(v - w))
    assert 0.95 * smoothness(loss, 4.0) < worst <= smoothness(loss, 4.0) * (1 + 1e-9)
    assert smoothness(loss) == loss.smoothness * 2
    assert smoothness(Hinge()) == np.inf


@pytest.mark.parametrize("norm", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("loss", SMOOTH)
def test_partner_smoothness_bounds_the_change_with_the_partner(loss, norm):
    rng = np.random.default_rng(1)
    M, worst = partner_smoothness(loss, norm, 2.0), 0.0
    z, w = np.array([1.0, 0.0]), norm * np.array([1.0, 0.0])
    for _ in range(800):
        x = unit(rng, 1, 2)[0] * rng.random() ** 0.1
        other = x + 1e-5 * rng.normal(size=2)
        if np.linalg.norm(other) > 1:
            continue
        change = gradients(loss, w, z, other[None]) - gradients(loss, w, z, x[None])
        worst = max(worst, np.linalg.norm(change) / np.linalg.norm(other - x))
    # The worst partner is opposite, in the wrong order; a short way to the inside.
    change = gradients(loss, -w, z, -z[None] + [[1e-6, 0.0]]) - gradients(loss, -w, z, -z[None])
    worst = max(worst, np.linalg.norm(change) / 1e-6)
    assert (0.3 if type(loss) is Logistic else 0.99) * M < worst <= M * (1 + 1e-6)
    assert partner_smoothness(Hinge(), norm) == np.inf
    assert partner_smoothness(Square(), norm, 2.0) == pytest.approx(2 + 8 * norm)


# Variance.


def test_variances_of_samples_by_enumeration():
    """All ways to draw, counted: exact, without a tolerance for chance."""
    rng = np.random.default_rng(0)
    values, strata = rng.normal(size=(6, 2)), np.array([0, 0, 0, 1, 1, 2])
    made, mean = Partition.of(values, strata), values.mean(axis=0)
    groups = [np.flatnonzero(strata == j) for j in range(3)]

    def variance(estimates):
        estimates = np.array(estimates)
        np.testing.assert_allclose(estimates.mean(axis=0), mean)
        return np.square(estimates - mean).sum(axis=1).mean()

    one_each = [sum(len(g) / 6 * values[i] for g, i in zip(groups, draw, strict=True)) for draw in product(*groups)]
    assert made.stratified() == pytest.approx(variance(one_each))
    two_and_one = [
        (values[a] + values[b]) / 2 * 3 / 6 + values[c] * 2 / 6 + values[d] / 6
        for a, b, c, d in product(groups[0], groups[0], groups[1], groups[2])
    ]
    assert made.stratified(np.array([2, 1, 1])) == pytest.approx(variance(two_and_one))
    draws = list(product(range(6), repeat=3))
    assert made.uniform(3) == pytest.approx(variance([values[list(d)].mean(axis=0) for d in draws]))
    distinct = [d for d in draws if len(set(d)) == 3]
    without = variance([values[list(d)].mean(axis=0) for d in distinct])
    assert made.uniform(3, replacement=False) == pytest.approx(without)
    assert made.uniform(6, replacement=False) == 0
    assert made.total == pytest.approx(np.square(values - mean).sum(axis=1).mean())


def test_the_certificate_fails_for_unequal_strata_and_holds_for_equal_ones():
    unequal = Partition(np.array([97, 1, 1, 1]), np.array([1.0, 0.0, 0.0, 0.0]))
    assert unequal.stratified() / unequal.uniform(4) == pytest.approx(4 * 0.97)
    assert unequal.stratified() > unequal.proportional(4)
    rng = np.random.default_rng(0)
    for _ in range(50):
        sizes, variances = rng.integers(1, 50, 5), rng.exponential(size=5)
        made = Partition(sizes, variances, between=float(rng.exponential()))
        # What the appendix proves is of draws in proportion to the sizes.
        assert made.neyman(5) <= made.proportional(5) * (1 + 1e-12)
        assert made.proportional(5) <= made.uniform(5)
        # At most k times uniform, and equal if sizes are equal.
        assert made.stratified() <= 5 * made.uniform(5)
        equal = replace(made, sizes=np.full(5, 7))
        assert equal.stratified() == pytest.approx(equal.proportional(5))
        # m_j in proportion to n_j sigma_j: the least.
        slots = sizes * np.sqrt(variances)
        assert made.stratified(5 * slots / slots.sum()) == pytest.approx(made.neyman(5))


@pytest.mark.parametrize("loss", SMOOTH)
def test_lemma_1_and_its_strata_bound_the_gradients_variance(loss):
    rng = np.random.default_rng(3)
    for norm in (0.1, 1.0, 5.0):
        z, points, w = unit(rng, 1, 5)[0], unit(rng, 60, 5), norm * unit(rng, 1, 5)[0]
        strata = points[:, 0].round(1)
        values = Partition.of(gradients(loss, w, z, points), strata)
        features = Partition.of(points, strata)
        M = partner_smoothness(loss, norm, 2.0)
        assert values.total <= features.uniform_bound(M)
        assert values.stratified() <= features.stratified_bound(M)
        # With M of w, as the lemma is printed, this fails once w is large.
        if norm == 5.0 and type(loss) is Square:
            assert values.total > features.uniform_bound(smoothness(loss) / 2)


def test_the_variance_of_a_memory_is_the_one_of_its_formula():
    """Over many seeds, at a fixed w: e_t of the last row. Each class has two strata of unequal sizes, far apart."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2)), np.where(rng.random(20) < 0.5, 1.0, -1.0)
    X[:, 0] += np.where(rng.random(20) < 0.3, 20, 0)
    w = np.array([0.05, -1.0])
    base = Learner(features=Identity(), step=Constant(1e-4), dtype="float64", engine="reference")
    z, partners = X[-1], X[:-1][y[:-1] != y[-1]]
    values = y[-1] * Square().derivative(y[-1] * ((z - partners) @ w))[:, None] * (z - partners)
    made = Partition.of(values, partners[:, 0] > 10)
    assert made.sizes.tolist() == [6, 2]
    for memory, expected in (
        (Strata(eps=100, representative="reservoir"), made.stratified()),
        (Reservoir(3), made.uniform(3, replacement=False)),
    ):
        found = [
            gradient_variance(replace(base, memory=memory, seed=seed), X, y, path=w, start=20).mean()
            for seed in range(100)
        ]
        assert abs(np.mean(found) - expected) < 4 * np.std(found) / np.sqrt(len(found))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.array([1, 2]), np.array([1.0])), "one number for each stratum"),
        ((np.array([1, 0]), np.array([1.0, 1.0])), "leave empty strata out"),
        ((np.array([1, 1]), np.array([1.0, -1.0])), "variances at least 0"),
        ((np.array([1]), np.array([1.0]), -1.0), "between must be"),
    ],
)
def test_partitions_that_are_none(arguments, message):
    with pytest.raises(ValueError, match=message):
        Partition(*arguments)


# Regret.


def fresh_draws(Z, y, eta, size, seed):
    """OGD on the square loss with unbiased gradients: of ``size`` fresh draws from all of the past; V_t and losses."""
    rng, w = np.random.default_rng(seed), np.zeros(Z.shape[1])
    path, variances, norms = [w], [], []
    for t in range(len(Z)):
        past = Z[:t][y[:t] != y[t]]
        if len(past):
            values = y[t] * Square().derivative(y[t] * ((Z[t] - past) @ w))[:, None] * (Z[t] - past)
            variances.append(np.square(values - values.mean(axis=0)).sum(axis=1).mean() / size)
            norms.append(np.square(values.mean(axis=0)).sum())
            w = w - eta * values[rng.integers(0, len(past), size)].mean(axis=0)
        path.append(w)
    return np.array(path), np.array(variances), np.array(norms)


def losses(Z, y, path):
    """L_t(w_t) for w_t, t = 0, 1, ..., the rows of ``path``."""
    found = []
    for t in range(len(Z)):
        past = Z[:t][y[:t] != y[t]]
        found.append(np.square(1 - y[t] * ((Z[t] - past) @ path[t])).mean() if len(past) else 0.0)
    return np.sum(found)


@pytest.mark.parametrize("labels", ["signal", "none"])
def test_the_bounds_hold_for_fresh_draws(labels):
    rng = np.random.default_rng(0)
    Z = unit(rng, 80, 3)
    y = np.where(Z[:, 0] + 0.5 * rng.normal(size=80) > 0, 1.0, -1.0)
    y = rng.permutation(y) if labels == "none" else y
    M, size = smoothness(Square(), 4.0), 2
    learner = Learner(features=Identity(), memory=WholeHistory(max_rows=80), step=Constant(1e-3), seed=0)
    w = regret(learner, Z, y).comparator[0]
    best = losses(Z, y, np.tile(w, (80, 1)))
    for eta in (0.02, 0.5 / M, 1.0 / M):
        runs = [fresh_draws(Z, y, eta, size, seed) for seed in range(10)]
        before = np.mean([losses(Z, y, path) for path, _, _ in runs]) - best
        after = np.mean([losses(Z, y, path[1:]) for path, _, _ in runs]) - best
        V, norms = (np.mean([run[i] for run in runs], axis=0) for i in (1, 2))
        assert before <= RegretBound.lemma(eta, w @ w, V, norms).total
        assert after <= RegretBound.theorem(eta, w @ w, V, M).total
        if eta * M < 1:
            assert before <= RegretBound.smooth(eta, w @ w, V, M, best).total


def test_the_theorem_is_false_before_the_step_and_so_is_log_regret_without_variance():
    """Labels without signal, the whole past, V = 0: the printed bound is constant, but the regret grows with T."""
    rng = np.random.default_rng(0)
    Z = unit(rng, 600, 2)
    y = np.where(rng.random(600) < 0.5, 1.0, -1.0)
    M = smoothness(Square(), 4.0)
    learner = Learner(
        features=Identity(), memory=WholeHistory(max_rows=800), step=Constant(1.0 / M), dtype="float64", seed=0
    )
    found = regret(learner, Z, y)
    w = found.comparator[0]
    bound = RegretBound.theorem(1.0 / M, w @ w, np.zeros(len(found)), M).total
    assert found.total_after[-1] <= bound < 0.1 * found.total[-1]
    assert found.total[-1] > 1.5 * found.total[len(found) // 2]
    half = replace(learner, step=Constant(0.5 / M))
    before = regret(half, Z, y).total[-1]
    assert before <= RegretBound.smooth(0.5 / M, w @ w, np.zeros(len(found)), M, found.best.sum()).total


def test_along_a_real_path_the_bounds_hold_without_sampling_and_not_for_a_reservoir():
    """A kept row is one that the weights were trained on: draws are not unbiased given w, and errors add up."""
    X, y = make_stream("random", 400, 3)
    eta, M = 0.1, smoothness(Square(), 4.0)
    learner = Learner(features=RandomFourier(32, Gaussian(0.3)), step=Constant(eta), seed=0)
    for memory, holds in ((WholeHistory(max_rows=400), True), (Reservoir(2), False)):
        model = replace(learner, memory=memory)
        found, error = regret(model, X, y, penalty=1 / eta), gradient_variance(model, X, y)
        w = found.comparator[0]
        assert (found.total[-1] <= RegretBound.lemma(eta, w @ w, error.errors, error.norms).total) == holds
        assert (found.total_after[-1] <= RegretBound.theorem(eta, w @ w, error.errors, M).total) == holds


def test_steps_that_are_too_long_for_a_bound_are_refused():
    with pytest.raises(ValueError, match=r"at most 1 / M = 0\.25; got eta=0\.5"):
        RegretBound.theorem(0.5, 1.0, np.zeros(3), 4.0)
    with pytest.raises(ValueError, match="at most 1 / M"):
        RegretBound.smooth(0.25, 1.0, np.zeros(3), 4.0, 1.0)
    bound = RegretBound.theorem(0.25, 1.0, np.ones(3), 4.0, approximation=7.0)
    assert (bound.distance, bound.variance, bound.gradients, bound.total) == (2.0, 0.75, 0.0, 9.75)


def test_the_loss_of_an_approximate_kernel_is_bounded_with_slope_and_not_without():
    """The same coefficients in the approximate space; losses of single pairs."""
    rng = np.random.default_rng(0)
    X, coefficients = rng.normal(size=(30, 2)), rng.normal(size=15)

    def kernel(A, B):
        return np.exp(-0.5 * np.square(A[:, None] - B).sum(axis=2))

    def pairwise(k):
        return k[::2, ::2] + k[1::2, 1::2] - k[::2, 1::2] - k[1::2, ::2]

    features = RandomFourier(200, Gaussian(0.5))
    Z = dense_features(features, features.fix(2, X, np.random.default_rng(1)), X)
    true, near = pairwise(kernel(X, X)), pairwise(Z @ Z.T)
    delta = np.abs(true - near).max()
    margins, others = true @ coefficients, near @ coefficients
    gained = Square().value(others).sum() - Square().value(margins).sum()
    size, slope = np.abs(coefficients).sum(), np.abs(Square().derivative(margins)).max()
    assert abs(gained) <= approximation_regret(15, size, delta, curvature=2.0, slope=slope)
    # A w* that fits badly: of first order in delta, which "every gradient vanishes" leaves out.
    tiny = 1e-4 * coefficients / size
    first_order = np.abs(Square().value(near @ tiny) - Square().value(true @ tiny)).sum()
    assert first_order > approximation_regret(15, 1e-4, delta, curvature=2.0)


# Features, strata, kernels.


def test_the_number_of_features_is_the_one_of_the_papers_table():
    table = {"diabetes": 185, "german": 219, "usps": 882, "rcv1": 1411, "a9a": 1875, "mnist": 2695, "ijcnn1": 4465}
    assert {name: features_needed(DATASETS[name].n_rows) for name in table} == table
    assert FPOGD(n_components="auto", horizon=768).to_model().features.n_components == 185


@pytest.mark.parametrize(
    ("decay", "power", "eigenvalue"),
    [
        ("slow", 1.0, lambda i: 1 / i),
        ("polynomial", 1.0, lambda i: i**-2.0),
        ("polynomial", 2.0, lambda i: i**-4.0),
        ("geometric", 1.0, lambda i: np.exp(-i)),
    ],
)
def test_the_number_of_features_grows_as_degrees_of_freedom_times_a_logarithm(decay, power, eigenvalue):
    ratios = []
    for T in (10**3, 10**4, 10**5):
        d = degrees_of_freedom(eigenvalue(np.arange(1.0, T + 1)), 1 / T)
        ratios.append(features_needed(T, decay, power) / (d * np.log(T)))
    assert max(ratios) < 1.3 * min(ratios)
    assert min(ratios) > 0.5


def founded(points, distance):
    """Centres that stay where they are: how many there are."""
    centres = []
    for x in points:
        if not centres or np.linalg.norm(np.array(centres) - x, axis=1).min() > distance:
            centres.append(x)
    return len(centres)


def test_strata_that_stay_where_they_are_founded_are_no_more_than_their_bound():
    rng = np.random.default_rng(0)
    above = 0
    for dim, distance in product((1, 2, 3), (0.3, 0.55, 0.9, 1.5)):
        n = max(founded(unit(rng, 500, dim) * rng.random((500, 1)) ** (1 / dim), distance) for _ in range(2))
        n = max(n, founded(np.array([[-1.0], [0.0], [1.0]]), distance)) if dim == 1 else n
        assert n <= strata_bound(1.0, distance, dim)
        above += n > strata_bound(1.0, distance, dim, form="printed")
    assert above >= 5, "what is printed is no bound"
    assert strata_bound(1.0, 0.1, 10_000) == np.inf
    assert strata_bound(1.0, 0.1, 10_000, n_rows=50) == 50
    assert strata_bound(1.0, 3.0, 2, form="printed") == 1


def estimates(n_components, n, rng):
    """Errors of k_hat at one pair of points, and of its pairwise kernel at two pairs, over draws of the frequencies."""
    x1, x2, y1, y2 = np.array([[0.0, 0.0], [1.0, 0.5], [0.3, -0.4], [1.2, 1.0]])
    features = RandomFourier(n_components, Gaussian(0.5))
    X, found = np.array([x1, x2, y1, y2]), []
    K = np.exp(-0.5 * np.square(X[:, None] - X).sum(axis=2))
    for _ in range(n):
        Z = dense_features(features, features.fix(2, X, rng), X)
        error = Z @ Z.T - K
        found.append((error[0, 2], error[0, 2] + error[1, 3] - error[0, 3] - error[1, 2]))
    return np.abs(found).T


def test_kernel_errors_are_no_more_frequent_than_their_bounds():
    rng = np.random.default_rng(0)
    for n_components in (4, 16, 64):
        point, pair = estimates(n_components, 600, rng)
        for delta in (0.1, 0.3, 0.5, 1.0):
            assert (point > delta).mean() <= pointwise_failure(n_components, delta) + 0.03
            assert (pair > delta).mean() <= pairwise_failure(n_components, delta) + 0.03
        if n_components == 4:
            assert (pair > 0.5).mean() > 1.5 * pairwise_failure(4, 0.5, form="printed")


def test_the_uniform_bound_holds_on_a_line():
    rng, delta = np.random.default_rng(0), 0.5
    t = np.linspace(-1, 1, 201)
    D = 800
    q = rng.normal(size=(40, D // 2))
    errors = np.abs(np.cos(q[:, :, None] * t).mean(axis=1) - np.exp(-0.5 * t**2)).max(axis=1)
    sizes = {"n_features": 1, "diameter": 1.0, "spread": 1.0, "pairwise": False}
    assert (errors > delta).mean() <= uniform_failure(D, delta, **sizes) < 0.3
    # Four errors add up, and what is printed is smaller than what holds.
    assert uniform_failure(D, 4 * delta, **{**sizes, "pairwise": True}) == uniform_failure(D, delta, **sizes)
    assert uniform_failure(D, delta, form="printed", **sizes) < 0.01 * uniform_failure(D, delta, **sizes)
    assert uniform_failure(10, 0.1, **sizes) == 1.0
    assert uniform_failure(400, 2.0, **{**sizes, "diameter": 0.1}) == pytest.approx(2**8 * np.exp(-400 * 4 / 24))


def test_features_for_an_error_are_enough_and_no_more():
    for delta, failure in product((0.1, 0.25), (0.01, 0.2)):
        D = features_for_error(delta, failure)
        assert D % 2 == 0
        assert pairwise_failure(D, delta) <= failure < pairwise_failure(D - 2, delta)
