"""SPAM: the published steps, and its parameters."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array
from sklearn.metrics import roc_auc_score

from pairloom.engines.state import CUT
from pairloom.features import Gaussian, RandomFourier
from pairloom.models.rule import Row
from pairloom.steps import ElasticNet
from pairloom.systems import SPAM, ExactAUC
from tests.conftest import make_stream


def gradients(model, X, y, w):
    """The step's gradient at a fixed w, of each row by itself: what the specification subtracts from w."""
    learner, state = model.stream_.model, model.stream_.learned
    found = []
    for x, label in zip(X, y, strict=True):
        state.w[0] = w
        row = Row(x, label, 1.0, 0.01, 1.0, 0.01, 0.0, np.empty(0))
        learner.rule.step(state, 0, row, learner.penalty)
        found.append((w - state.w[0]) / 0.01)
    return np.array(found)


@pytest.mark.parametrize("rare", [0.5, 0.05])
def test_mean_gradient_is_p_1_p_times_that_of_all_pairs(rare):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = np.where(np.arange(200) < 200 * rare, 1.0, -1.0)
    model = SPAM(means="full", dtype="float64", engine="reference").fit(X, y)
    w, p = rng.normal(size=4), (y > 0).mean()
    differences = (X[y > 0][:, None] - X[y < 0]).reshape(-1, 4)
    all_pairs = -2 * (1 - differences @ w) @ differences / len(differences)
    mean = model._labels.sign * gradients(model, X, model._labels.sign * y, model._labels.sign * w).mean(axis=0)
    np.testing.assert_allclose(mean, p * (1 - p) * all_pairs, rtol=1e-11)
    assert not model.stream_.learned.tally[CUT]


def test_the_proximal_step_minimises():
    keep, rate, threshold = (float(v) for v in ElasticNet(0.3, l1=0.2).at(np.asarray(0.7)))
    for w, g in [(1.0, -0.4), (-0.3, 0.9), (0.05, 0.0), (-2.0, -1.0)]:
        u = w - 0.7 * g
        step = keep * w - rate * g
        step = np.sign(step) * max(0.0, abs(step) - threshold)
        best = minimize_scalar(lambda v, u=u: 0.5 * (v - u) ** 2 + 0.7 * (0.15 * v**2 + 0.2 * abs(v)), tol=1e-12)
        assert step == pytest.approx(best.x, abs=1e-6)


def test_without_l1_the_net_is_plain_and_with_it_weights_are_exactly_zero():
    X, y = make_stream("random", 500, 8)
    X = np.column_stack([X, 0.01 * np.random.default_rng(0).normal(size=(500, 8))])
    plain, net = SPAM(eta=0.05).fit(X, y), SPAM(eta=0.05, l1=0.02, average="last").fit(X, y)
    np.testing.assert_array_equal(plain.coef_, SPAM(eta=0.05, l1=0.0).fit(X, y).coef_)
    assert (net.coef_[8:] == 0).all()
    assert net.coef_.any()


def test_running_means_are_true_averages_and_wait_for_both_classes():
    X, y = make_stream("one_class_first", 90, 3)
    model = SPAM(dtype="float64", eta=0.01).fit(X, y)
    kept = model.stream_.learned.memory
    for label in (-1.0, 1.0):
        c = int(model._labels.encode(np.array([label]))[0])
        np.testing.assert_allclose(kept.sums[0, c] / kept.counts[0, c], X[y == label].mean(axis=0), rtol=1e-12)
    first = SPAM().partial_fit(X[:5], y[:5])
    assert not first.coef_.any()


def test_many_passes_reach_the_exact_minimiser():
    X, y = make_stream("random", 400, 3)
    exact = ExactAUC(alpha=1e-9).fit(X, y)
    model = SPAM(alpha=1e-9, eta=0.03, schedule="constant", average="poly", dtype="float64").fit(X, y)
    rng = np.random.default_rng(0)
    for _ in range(150):
        order = rng.permutation(400)
        model.partial_fit(X[order], y[order])
    assert exact.pair_loss(model.coef_) - exact.pair_loss(exact.coef_) < 2e-3
    assert exact.pair_loss(np.zeros(3)) == 1.0


def test_kernel_spam_is_one_argument_away():
    X, y = make_stream("random", 2000, 4)
    kernel = SPAM(eta=0.1, schedule="constant", features=RandomFourier(256, Gaussian("median")), random_state=0)
    auc = [roc_auc_score(y, model.fit(X, y).decision_function(X)) for model in (kernel, SPAM(eta=0.02))]
    assert auc[0] > 0.9 > 0.8 > auc[1]


def test_full_means_have_no_partial_fit_and_say_why():
    model = SPAM(means="full")
    with pytest.raises(AttributeError, match="has no attribute 'partial_fit'") as error:
        model.partial_fit([[0.0]], [1])
    assert "needs all rows at once: call fit" in str(error.value.__cause__)


def test_sparse_text_costs_entries_not_columns():
    rng = np.random.default_rng(0)
    X = csr_array((rng.random(20_000), (np.repeat(np.arange(2000), 10), rng.integers(0, 50_000, 20_000))))
    X.sum_duplicates()
    y = (np.asarray(X[:, :25_000].sum(axis=1)).ravel() > 2.5).astype(int)
    model = SPAM(dtype="float64").fit(X, y)
    assert model.nbytes_ < 10 * 50_000 * 8
    assert model.stream_.learned.lazy is not None  # kept by the engine for CSR rows
    np.testing.assert_allclose(model.coef_, SPAM(dtype="float64").fit(X[:, :].toarray(), y).coef_, atol=1e-10)
