"""ExactAUC: against the problem it solves, row by row and in closed form."""

import pickle

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array
from sklearn.metrics import roc_auc_score

from pairloom.features import RandomFourier
from pairloom.systems import ExactAUC, exact_auc
from tests.conftest import make_stream


def differences(X, y, weight=None):
    """z_i - z_j of all pairs, and their shares."""
    weight = np.ones(len(y)) if weight is None else weight
    pairs = (X[y > 0][:, None] - X[y < 0]).reshape(-1, X.shape[1])
    share = np.outer(weight[y > 0], weight[y < 0]).ravel()
    return pairs, share / share.sum()


@pytest.mark.parametrize("n", [60, 700])
def test_it_minimises_the_loss_over_all_pairs(n):
    X, y = make_stream("random", n, 4)
    weight = np.random.default_rng(0).choice([0.5, 1.0, 2.0], n)
    model = ExactAUC(alpha=0.1, dtype="float64").fit(X, y, weight)
    pairs, share = differences(X, y, weight)

    def objective(w):
        return share @ np.square(1 - pairs @ w) + 0.05 * w @ w

    best = minimize(objective, np.zeros(4), tol=1e-12)
    np.testing.assert_allclose(model.coef_, best.x, atol=1e-5)
    w = np.random.default_rng(1).normal(size=4)
    assert model.pair_loss(w) == pytest.approx(share @ np.square(1 - pairs @ w), rel=1e-12)
    assert model.loss_ == pytest.approx(share @ np.square(1 - pairs @ model.coef_), rel=1e-12)
    gradient = -2 * (share * (1 - pairs @ model.coef_)) @ pairs + 0.1 * model.coef_
    np.testing.assert_allclose(gradient, 0, atol=1e-12)


def test_the_path_is_the_same_minimiser_for_each_penalty():
    X, y = make_stream("random", 500, 6)
    alphas = [1e-3, 0.1, 10.0]
    path = ExactAUC(dtype="float64").fit(X, y).coef_path(alphas)
    for alpha, w in zip(alphas, path, strict=True):
        np.testing.assert_allclose(w, ExactAUC(alpha=alpha, dtype="float64").fit(X, y).coef_, rtol=1e-9)
    with pytest.raises(ValueError, match="two classes"):
        ExactAUC().fit(X, np.digitize(X[:, 0], [-1, 1])).coef_path([1.0])


def test_equal_and_constant_columns_give_the_solution_of_least_norm():
    X, y = make_stream("random", 300, 3)
    wide = np.column_stack([X, X[:, 0], np.ones(300)])
    model = ExactAUC(alpha=0.0, dtype="float64").fit(wide, y)
    pairs, _ = differences(wide, y)
    expected = np.linalg.lstsq(pairs, np.ones(len(pairs)), rcond=1e-10)[0]
    np.testing.assert_allclose(model.coef_, expected, atol=1e-10)
    assert model.coef_[0] == pytest.approx(model.coef_[3], rel=1e-9)


def test_moments_far_from_zero_do_not_cancel():
    X, y = make_stream("random", 1000, 3)
    near, far = (ExactAUC(alpha=0.0, dtype="float64").fit(X + shift, y).coef_ for shift in (0.0, 1e6))
    np.testing.assert_allclose(far, near, rtol=1e-6)


def test_one_class_against_the_rest():
    X, y = make_stream("random", 900, 4)
    three = np.digitize(X[:, 0] + 0.3 * y, [-0.5, 0.5])
    model = ExactAUC(alpha=1e-3, dtype="float64").fit(X, three)
    for k in range(3):
        alone = ExactAUC(alpha=1e-3, dtype="float64").fit(X, np.where(three == k, 1, -1))
        np.testing.assert_allclose(model.coef_[k], alone.coef_, rtol=1e-9)
    counts = np.bincount(three)
    assert model.n_pairs_ == counts[0] * counts[1] + counts[0] * counts[2] + counts[1] * counts[2]


def test_in_a_feature_space_and_from_sparse_rows():
    X, y = make_stream("random", 1200, 4)
    X[np.abs(X) < 0.4] = 0
    model = ExactAUC(alpha=1e-4, features=RandomFourier(200), random_state=0).fit(X, y)
    assert roc_auc_score(y, model.decision_function(X)) > 0.9
    thin = ExactAUC(alpha=1e-4, features=RandomFourier(200), random_state=0).fit(csr_array(X), y)
    np.testing.assert_allclose(thin.decision_function(X), model.decision_function(X), atol=0.02)


def test_a_space_too_large_is_refused_and_alternatives_named():
    with pytest.raises(ValueError, match=r"2 matrices of 9,000 x 9,000.*allows 8,192 columns.*RandomFourier.*SPAM"):
        ExactAUC().fit(np.zeros((2, 9000)), [0, 1])


def test_a_solution_is_found_once_and_is_no_part_of_the_state(monkeypatch):
    X, y = make_stream("random", 500, 4)
    model = ExactAUC().fit(X, y)
    solves = []
    solve = exact_auc.ExactLearner.solve
    monkeypatch.setattr(exact_auc.ExactLearner, "solve", lambda self, state: solves.append(1) or solve(self, state))
    for _ in range(3):
        model.score_one(X[0])
        model.predict(X)
    assert len(solves) == 1
    assert model.stream_.learned.memory.solved is not None
    assert pickle.loads(pickle.dumps(model)).stream_.learned.memory.solved is None


@pytest.mark.parametrize("unit", [1e-90, 1e90])
def test_the_unit_of_the_weights_does_not_matter_however_large(unit):
    X, y = make_stream("random", 700, 4)
    weight = np.random.default_rng(0).choice([0.5, 1.0, 2.0], 700)
    plain, scaled = (ExactAUC(random_state=0, dtype="float32").fit(X, y, w) for w in (weight, unit * weight))
    np.testing.assert_allclose(scaled.coef_, plain.coef_, rtol=1e-5)
