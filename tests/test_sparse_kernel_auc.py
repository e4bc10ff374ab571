"""SparseKernelAUC: greedy choices against brute force, Newton steps against general optimisers, and the estimator."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

from pairloom.data import load_dataset
from pairloom.systems import SparseKernelAUC, sparse_kernel_auc
from pairloom.systems.pair_sums import EveryPair, PairSums
from pairloom.systems.sparse_kernel_auc import Basis, candidate_gains, grow, objective, optimise, solve
from tests.conftest import make_stream

ALPHA = 1e-2


def problem(kind="random", n=50, seed=0):
    """Kernel matrix, pair sums."""
    X, y = make_stream(kind, n, 3, seed)
    weight = np.random.default_rng(seed).gamma(2.0, size=n)
    return rbf_kernel(X, gamma=0.3), PairSums(y > 0, weight)


def energy(K, sums, rows, beta):
    """E, pair by pair."""
    o, total = K[:, rows] @ beta, 0.0
    for i in np.flatnonzero(sums.positive):
        for j in np.flatnonzero(~sums.positive):
            total += sums.weight[i] * sums.weight[j] * max(0.0, 1 - (o[i] - o[j])) ** 2
    return ALPHA / 2 * beta @ K[np.ix_(rows, rows)] @ beta + total / (2 * sums.total)


def newton_1d(K, sums, rows, beta, c):
    """The Newton step of a new coefficient from 0, pair by pair."""
    o, k = K[:, rows] @ beta, K[:, c]
    slope, curvature = ALPHA * o[c], ALPHA * K[c, c]
    for i in np.flatnonzero(sums.positive):
        for j in np.flatnonzero(~sums.positive):
            gap, w = 1 - (o[i] - o[j]), sums.weight[i] * sums.weight[j] / sums.total
            if gap > 0:
                slope -= w * gap * (k[i] - k[j])
                curvature += w * (k[i] - k[j]) ** 2
    return -slope / curvature


def best_beta(K, sums, rows):
    """The minimiser, by a general optimiser."""
    every = EveryPair(sums.positive, sums.weight)
    own, across = K[np.ix_(rows, rows)], K[rows]
    found = minimize(
        lambda b: ALPHA / 2 * b @ own @ b + every.value(b @ across), np.zeros(len(rows)),
        jac=lambda b: ALPHA * own @ b + across @ every.gradient(b @ across), method="BFGS", options={"gtol": 1e-10},
    )  # fmt: skip
    return found.x


@pytest.mark.parametrize("kind", ["random", "duplicates"])
def test_candidates_are_tried_as_brute_force_does(kind):
    K, sums = problem(kind)
    rows, beta = np.array([3, 17, 40]), np.array([0.5, -0.8, 0.3])
    pool = np.setdiff1d(np.arange(50), rows)
    steps, gains = candidate_gains(sums, ALPHA, Basis(rows, beta, beta @ K[rows]), pool, K[pool])
    before = energy(K, sums, rows, beta)
    for c, step, gain in zip(pool, steps, gains, strict=True):
        np.testing.assert_allclose(step, newton_1d(K, sums, rows, beta, c), rtol=1e-10)
        after = energy(K, sums, np.append(rows, c), np.append(beta, step))
        np.testing.assert_allclose(gain, before - after, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_candidates", [7, 59])
def test_the_greedy_fit_written_out(n_candidates):
    """Six choices, each the best of its pool; all coefficients optimised again at 1, 2, 4 and at the end."""
    K, sums = problem(seed=3)
    found = grow(lambda c: K[c], sums, ALPHA, 6, n_candidates, 0.0, np.random.default_rng(8))
    rng, rows, beta = np.random.default_rng(8), [], np.empty(0)
    for m in range(1, 7):
        free = [c for c in range(50) if c not in rows]
        pool = rng.choice(free, min(n_candidates, len(free)), replace=False)
        steps = [newton_1d(K, sums, rows, beta, c) for c in pool]
        left = [energy(K, sums, [*rows, c], np.append(beta, b)) for c, b in zip(pool, steps, strict=True)]
        rows, beta = [*rows, pool[np.argmin(left)]], np.append(beta, steps[np.argmin(left)])
        if m in (1, 2, 4, 6):
            beta = best_beta(K, sums, rows)
    assert found.rows.tolist() == rows
    np.testing.assert_allclose(found.beta, beta, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found.o, beta @ K[rows], atol=1e-6)


def test_a_poor_pool_ends_it_only_once_all_coefficients_are_optimal(monkeypatch):
    K, sums = problem()
    pools = []

    def gains(sums, alpha, basis, pool, values):
        pools.append(len(basis.rows))
        steps, gains = candidate_gains(sums, alpha, basis, pool, values)
        return steps, 0 * gains if len(pools) == 4 else gains

    monkeypatch.setattr(sparse_kernel_auc, "candidate_gains", gains)
    assert len(grow(lambda c: K[c], sums, ALPHA, 6, 20, 1e-9, np.random.default_rng(0)).rows) == 6
    assert pools == [0, 1, 2, 3, 3, 4, 5]


def test_newton_steps_lower_the_objective_every_time(monkeypatch):
    K, sums = problem(n=200)
    rows = np.arange(0, 200, 7)
    start = Basis(rows, np.random.default_rng(0).normal(size=len(rows)) * 5, np.empty(0))
    basis = Basis(rows, start.beta, start.beta @ K[rows])
    values = [objective(sums, ALPHA, basis)]
    monkeypatch.setattr(sparse_kernel_auc, "MAX_NEWTON_STEPS", 1)
    for _ in range(12):
        basis = optimise(sums, ALPHA, basis, K[rows])
        values.append(objective(sums, ALPHA, basis))
    falls = -np.diff(values)
    assert (falls[:3] > 0).all()
    assert (falls >= 0).all()
    assert falls[-1] == 0
    np.testing.assert_allclose(basis.beta, best_beta(K, sums, rows), rtol=1e-4, atol=1e-5)


def test_a_newton_step_that_wakes_other_pairs_is_shortened(monkeypatch):
    """Only the first pair counts at the start; a full step makes its loss 0 and that of the second 121."""
    sums = PairSums(np.array([True, False, False]), np.ones(3))
    K = np.array([[0.0, -1.0, 10.0]])
    basis = Basis(np.array([0]), np.array([-0.2]), -0.2 * K[0])
    monkeypatch.setattr(sparse_kernel_auc, "MAX_NEWTON_STEPS", 1)
    after = optimise(sums, ALPHA, basis, K)
    assert objective(sums, ALPHA, after) < objective(sums, ALPHA, basis)
    assert -0.2 < after.beta[0] < 0.2


def test_the_objective_falls_with_every_choice():
    K, sums = problem(n=150)
    values = [
        objective(sums, ALPHA, grow(lambda c: K[c], sums, ALPHA, m, 10, 0.0, np.random.default_rng(2)))
        for m in range(1, 20)
    ]
    assert (np.diff(values) < 0).all()


def test_with_all_rows_it_is_the_kernel_ranking_svm():
    """Stationary over all functions, not over the basis alone: alpha beta + dL/do = 0."""
    K, sums = problem(n=60)
    basis = grow(lambda c: K[c], sums, ALPHA, 1000, 1000, 0.0, np.random.default_rng(0))
    assert sorted(basis.rows) == list(range(60))
    every = EveryPair(sums.positive, sums.weight)
    np.testing.assert_allclose(ALPHA * basis.beta, -every.gradient(basis.o)[basis.rows], atol=1e-6)


def test_a_singular_system_is_solved():
    A = np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    np.testing.assert_allclose(A @ solve(A, A[0]), A[0], rtol=1e-6)


def test_it_stops_when_choices_gain_little():
    X, y = make_stream("random", 300, 3)
    sizes = [len(SparseKernelAUC(tol=tol, random_state=0).fit(X, y).coef_) for tol in (0.1, 1e-2, 1e-4)]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[2] < 200
    duplicates = SparseKernelAUC(random_state=0).fit(*make_stream("duplicates", 300, 3))
    assert len(duplicates.coef_) <= 16  # of 8 distinct rows


@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
@pytest.mark.parametrize("scale", [None, "standard"])
def test_scores_are_sums_of_kernels_at_the_support(kernel, scale):
    X, y = make_stream("random", 200, 4)
    model = SparseKernelAUC(kernel=kernel, gamma=0.2, max_support=12, scale=scale, dtype="float64", random_state=0)
    model.fit(X, y)
    rows = X if scale is None else (X - X.mean(axis=0)) / X.std(axis=0)
    values = (rbf_kernel if kernel == "gaussian" else laplacian_kernel)(rows, model.support_, gamma=0.2)
    np.testing.assert_allclose(model.stream_.score(X), values @ model.coef_, rtol=0, atol=1e-10)
    assert model.gamma_ == 0.2
    for support in model.support_:
        assert np.abs(rows - support).sum(axis=1).min() < 1e-12
    # The calibration is fitted to these scores.
    np.testing.assert_allclose(
        model.stream_.state.observed["recent"].view()[0][:, 0], values @ model.coef_, rtol=0, atol=1e-10
    )


def test_loss_is_the_mean_over_all_pairs():
    X, y = make_stream("random", 200, 4)
    model = SparseKernelAUC(max_support=12, dtype="float64", random_state=0).fit(X, y)
    scores = model.stream_.score(X)
    margins = scores[y > 0][:, None] - scores[y < 0][None, :]
    np.testing.assert_allclose(model.loss_, np.square(np.maximum(0, 1 - margins)).mean(), rtol=1e-10)
    assert model.n_pairs_ == margins.size


@pytest.mark.parametrize("kernel", ["gaussian", "linear", "cauchy"])
@pytest.mark.parametrize("scale", [None, "standard", "maxabs"])
def test_csr_rows_agree_with_dense_rows(kernel, scale):
    X, y = make_stream("random", 200, 6)
    X[np.abs(X) < 0.2] = 0
    y = np.where(y > 0, 2, X[:, 0] > 0)
    make = lambda: SparseKernelAUC(  # noqa: E731
        kernel=kernel, alpha=0.01, max_support=9, scale=scale, dtype="float64", random_state=0
    )
    dense, sparse = make().fit(X, y), make().fit(csr_array(X), y)
    for one, other in zip(dense.support_, sparse.support_, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)
    np.testing.assert_allclose(sparse.stream_.score(csr_array(X)), dense.stream_.score(X), rtol=0, atol=1e-6)


def test_more_than_two_classes_have_a_basis_each():
    X, y = make_stream("random", 200, 4)
    labels = np.where(y > 0, 2, X[:, 0] > 0)
    make = lambda: SparseKernelAUC(max_support=30, tol=1e-2, dtype="float64", random_state=0)  # noqa: E731
    three, first = make().fit(X, labels), make().fit(X, labels == 0)
    assert len({len(coef) for coef in three.coef_}) > 1
    assert len(three.support_) == len(three.coef_) == 3
    np.testing.assert_array_equal(three.coef_[0], first.coef_)
    for c, (support, beta) in enumerate(zip(three.support_, three.coef_, strict=True)):
        K, every = rbf_kernel(support, X, gamma=three.gamma_), EveryPair(labels == c, np.ones(200))
        slope = K @ every.gradient(beta @ K) + 1e-4 * rbf_kernel(support, gamma=three.gamma_) @ beta
        np.testing.assert_allclose(slope, 0.0, atol=1e-6)
        assert roc_auc_score(labels == c, three.decision_function(X)[:, c]) > 0.9


def test_weights_are_those_of_the_pairs():
    """Twice the weight of all rows of a class changes nothing; a row of weight 3 is three rows."""
    X, y = make_stream("random", 120, 3)
    make = lambda: SparseKernelAUC(max_support=300, n_candidates=300, tol=0.0, dtype="float64", random_state=0)  # noqa: E731
    scores = make().fit(X, y).stream_.score(X)
    np.testing.assert_allclose(make().fit(X, y, np.where(y > 0, 2.0, 1.0)).stream_.score(X), scores, atol=1e-5)
    weight = np.random.default_rng(0).integers(1, 4, size=120)
    weighted = make().fit(X, y, weight).stream_.score(X)
    repeated = make().fit(np.repeat(X, weight, axis=0), np.repeat(y, weight)).stream_.score(X)
    np.testing.assert_allclose(weighted, repeated, atol=1e-4)
    assert np.abs(weighted - scores).max() > 1e-2


def test_a_linear_kernel_may_have_more_rows_than_columns():
    X, y = make_stream("random", 200, 3)
    model = SparseKernelAUC(kernel="linear", max_support=30, tol=0.0, dtype="float64", random_state=0).fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert model.gamma_ is None
    assert len(model.coef_) <= 30


def test_it_needs_all_rows_and_both_classes():
    assert not hasattr(SparseKernelAUC(), "partial_fit")
    model = SparseKernelAUC().fit([[1.0, 2.0], [3.0, 4.0]], ["a", "a"])
    assert model.support_.shape == (0, 2)
    assert model.predict([[5.0, 6.0]]) == "a"


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("kernel", "cubic"), ("gamma", -1.0), ("alpha", 0.0), ("max_support", 0), ("n_candidates", 2.5), ("tol", -1.0)],
)
def test_bad_parameters_are_named(parameter, value):
    with pytest.raises(ValueError, match=parameter):
        SparseKernelAUC(**{parameter: value}).fit([[0.0], [1.0]], [0, 1])


def test_usps(data_folder):
    """Digits 0-4 against 5-9."""
    data = load_dataset("usps", data_home=data_folder)
    X, y = data.X, data.y
    order = np.random.default_rng(0).permutation(len(y))
    train, test = np.split(order, [int(0.8 * len(y))])
    model = SparseKernelAUC(max_support=100, random_state=0).fit(X[train], y[train])
    assert roc_auc_score(y[test], model.decision_function(X[test])) > 0.97
