"""Regret against loops over all pairs, and its comparator against other ways to find it."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from pairloom import Learner, Stream
from pairloom.evaluation import Regret, regret
from pairloom.evaluation.comparator import PairWeights, minimiser
from pairloom.evaluation.replay import Pass, learner_and_rows
from pairloom.features import Gaussian, Identity, RandomFourier
from pairloom.features.base import dense_features
from pairloom.losses import Hinge, Logistic, Square, SquaredHinge
from pairloom.memory import Latest, Strata, WholeHistory
from pairloom.pairs import Difference, OppositeClass
from pairloom.steps import Constant
from pairloom.systems import FPOGD, OAM, OGD, OLP, SPAM
from tests.conftest import make_stream

X, LABELS = make_stream("random", 60, 3)
RFF = RandomFourier(8, Gaussian(0.3))
BASE = Learner(features=RFF, memory=Strata(eps=0.3, max_strata=3), dtype="float64", seed=0, engine="reference")


def pairs_of(learner, Z, codes, normalization, k=0):
    """Of each row t: differences z_p - z_n of its pairs with the past, and c_t."""
    positive = codes == learner.pairs.targets[k]
    made = []
    for t in range(len(Z)):
        others = [i for i in range(t) if positive[i] != positive[t]]
        d = (1 if positive[t] else -1) * (Z[t] - Z[others])
        made.append((d, 1 / (len(others) if normalization == "class" else t) if others else 0.0))
    return made


def mapped(learner, X):
    stream = Stream(learner).partial_fit(X, LABELS[: len(X)])
    return dense_features(learner.features, stream.learned.phi, X)


def by_hand(learner, X, y, w_star, normalization):
    """L_t(w_{t-1}), L_t(w_t) and L_t(w*), NaN without pairs."""
    stream, codes = Stream(learner), learner.pairs.encode(np.asarray(y))
    path = [learner.init(X.shape[1], None).w.copy()]
    for t in range(len(X)):
        path.append(stream.partial_fit(X[t : t + 1], y[t : t + 1]).learned.w.copy())
    Z = dense_features(learner.features, stream.learned.phi, X)
    found = np.zeros((3, len(X)))
    for k in range(len(w_star)):
        for t, (d, c) in enumerate(pairs_of(learner, Z, codes, normalization, k)):
            for i, w in enumerate((path[t][k], path[t + 1][k], w_star[k])):
                found[i, t] += c * learner.loss.value(d @ w).sum()
    return found


@pytest.mark.parametrize("normalization", ["class", "history"])
@pytest.mark.parametrize("loss", [Square(), Logistic(), Hinge()])
def test_both_definitions_against_all_pairs(loss, normalization):
    learner = replace(BASE, loss=loss)
    found = regret(learner, X, LABELS, normalization=normalization)
    expected = by_hand(learner, X, LABELS, found.comparator, normalization)[:, found.rows - 1]
    # A hinge is 1 - m: next to its kink only the rounding error of m remains, which is absolute, since m is about 1.
    np.testing.assert_allclose([found.before, found.after, found.best], expected, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(found.total, np.cumsum(expected[0] - expected[2]), atol=1e-9)
    np.testing.assert_allclose(found.total_after, np.cumsum(expected[1] - expected[2]), atol=1e-9)
    # Every row after the first row of the second class.
    assert found.rows.tolist() == list(range(np.argmax(LABELS[0] != LABELS) + 1, len(X) + 1))
    assert found.normalization == normalization


def test_several_classes():
    y = (np.abs(X[:, 0]) * 2).astype(int) % 3
    learner = replace(BASE, pairs=OppositeClass(3))
    found = regret(learner, X, y)
    expected = by_hand(learner, X, y, found.comparator, "class")[:, found.rows - 1]
    np.testing.assert_allclose([found.before, found.after, found.best], expected, rtol=1e-9)
    assert found.comparator.shape == (3, 8)


def test_rows_beyond_a_block_and_by_moments_alone():
    X, y = make_stream("random", 300, 2)
    learner = Learner(features=Identity(), memory=Latest(), step=Constant(0.01), seed=0)
    found, other = regret(learner, X, y), regret(learner, X, y, max_rows=100)
    np.testing.assert_allclose(found.total, other.total, rtol=1e-9)
    d_and_c = pairs_of(learner, X.astype(np.float32).astype(float), (y > 0) * 1.0, "class")
    best = [c * np.square(1 - d @ found.comparator[0]).sum() for d, c in d_and_c]
    np.testing.assert_allclose(found.best, np.array(best)[found.rows - 1], rtol=1e-9)


def objective(learner, normalization):
    """Of the sum over t of L_t(w), by all pairs: differences and weights."""
    Z = mapped(learner, X)
    made = pairs_of(learner, Z, (LABELS > 0) * 1.0, normalization)
    d = np.concatenate([d for d, _ in made])
    return d, np.concatenate([np.full(len(d), c) for d, c in made])


def own_minimiser(learner, normalization, penalty=0.0):
    return minimiser(Pass(*learner_and_rows(learner, X, LABELS)), 0, normalization, penalty)


@pytest.mark.parametrize("normalization", ["class", "history"])
def test_the_comparator_of_the_square_loss_solves_the_normal_equations(normalization):
    d, c = objective(BASE, normalization)
    w, excess = own_minimiser(BASE, normalization)
    least = np.linalg.lstsq(np.sqrt(c)[:, None] * d, np.sqrt(c), rcond=None)[0]
    losses = [c @ np.square(1 - d @ v) for v in (least, w)]
    assert losses[0] <= losses[1] <= losses[0] + 1e-5
    assert excess < 1e-12


@pytest.mark.parametrize("loss", [Logistic(), SquaredHinge()])
def test_the_comparator_of_a_smooth_loss_is_as_good_as_another_method_finds(loss):
    learner = replace(BASE, loss=loss)
    d, c = objective(learner, "class")
    w, excess = own_minimiser(learner, "class")

    def total(v):
        return c @ loss.value(d @ v), (c * loss.derivative(d @ v)) @ d

    other = minimize(total, np.zeros(8), jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 10_000})
    assert other.fun - 1e-9 <= total(w)[0] <= other.fun + 1e-3
    assert excess < 1e-6


@pytest.mark.parametrize("loss", [Square(), Logistic()])
def test_a_penalty_of_the_comparator(loss):
    """Where the gradient of sum_t L_t(w) + (penalty / 2) ||w||^2 is 0."""
    learner = replace(BASE, loss=loss)
    d, c = objective(learner, "class")
    w, _ = own_minimiser(learner, "class", penalty=3.0)
    np.testing.assert_allclose((c * loss.derivative(d @ w)) @ d, -3.0 * w, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(regret(learner, X, LABELS, penalty=3.0).comparator[0], w)


def test_the_comparator_of_the_hinge_loss_is_a_linear_programme():
    learner = replace(BASE, loss=Hinge())
    d, c = objective(learner, "class")
    n, dim = d.shape
    # min c'xi  with  xi >= 1 - d w,  xi >= 0.
    least = linprog(
        np.concatenate([np.zeros(dim), c]),
        A_ub=np.hstack([-d, -np.eye(n)]),
        b_ub=-np.ones(n),
        bounds=[(None, None)] * dim + [(0, None)] * n,
    ).fun
    w, _ = own_minimiser(learner, "class")
    found = c @ Hinge().value(d @ w)
    assert least - 1e-9 <= found <= least + 1e-3


def test_it_is_not_the_minimiser_over_all_pairs_alike():
    """ExactAUC gives all pairs the same weight: in a sorted stream its loss differs."""
    X, y = make_stream("sorted", 300, 2)
    learner = Learner(features=Identity(), memory=Latest(), step=Constant(0.01), seed=0)
    found = regret(learner, X, y)
    d = (X[y > 0][:, None] - X[y < 0]).reshape(-1, 2)
    exact = np.linalg.lstsq(d, np.ones(len(d)), rcond=None)[0]
    assert regret(learner, X, y, comparator=exact).best.sum() > found.best.sum() * 1.01


def test_weights_of_pairs_by_hand():
    rng = np.random.default_rng(0)
    positive = rng.random(40) < 0.3
    for normalization in ("class", "history"):
        weights = PairWeights.of(positive, normalization)
        C = np.zeros((40, 40))
        for t in range(40):
            others = [i for i in range(t) if positive[i] != positive[t]]
            if others:
                C[t, others] = 1 / (len(others) if normalization == "class" else t)
        np.testing.assert_allclose(weights.c, C.max(axis=1))
        np.testing.assert_allclose(weights.degrees, (C + C.T).sum(axis=1))
        np.testing.assert_allclose(weights.matrix(), (C + C.T)[positive][:, ~positive])


def test_a_learner_of_the_whole_history_has_sublinear_regret_and_one_that_stands_still_has_not():
    X, y = make_stream("random", 600, 3)
    learner = Learner(features=RandomFourier(64, Gaussian(0.2)), memory=WholeHistory(max_rows=600), seed=0)
    moves, stands = (regret(replace(learner, step=Constant(eta)), X, y) for eta in (0.1, 1e-9))
    assert moves.exponent().high < 0.9 < stands.exponent().low
    assert stands.exponent().value == pytest.approx(1.0, abs=0.02)
    np.testing.assert_allclose(stands.before, 1.0, atol=1e-5)
    assert moves.total_after[-1] < moves.total[-1] < stands.total[-1]


def made_of(terms):
    n = len(terms)
    return Regret(np.arange(1, n + 1), terms, terms + 1.0, np.zeros(n), np.zeros((1, 1)), 0.0, "class")


@pytest.mark.parametrize("b", [0.3, 0.5, 1.0])
def test_the_exponents_interval_covers_the_truth(b):
    t, inside, widths = np.arange(1.0, 1001), 0, []
    for seed in range(12):
        noise = 0.1 * np.random.default_rng(seed).normal(size=len(t))
        value, low, high = made_of(np.diff(5 * t**b, prepend=0) + noise).exponent()
        inside += low <= b <= high
        widths.append(high - low)
        assert low <= value <= high
    assert inside >= 10
    assert 0 < np.median(widths) < 1


def test_exponents_of_what_has_none():
    assert np.isnan(made_of(-np.ones(500)).exponent()).all()
    assert np.isnan(made_of(np.ones(1)).exponent()).all()
    noisy = made_of(np.random.default_rng(2).normal(size=500) + np.r_[30, np.zeros(499)]).exponent()
    assert noisy.low == -np.inf or noisy.low < 0 < noisy.high
    steep = made_of(np.linspace(0, 1, 500))
    assert steep.exponent(0.5).value == pytest.approx(2.0, abs=0.02)
    assert steep.exponent(0.5, after=True).value < 1.9
    with pytest.raises(ValueError, match="fraction must be a number above 0"):
        steep.exponent(0.0)


@pytest.mark.parametrize(
    "system", [FPOGD(n_components=8, random_state=0), OGD(), OLP(size=4, random_state=0), OAM(size=4, random_state=0)]
)
def test_every_system_with_a_memory(system):
    found = regret(system, X, np.where(LABELS > 0, "rare", "common"))
    assert np.isfinite(found.total).all()
    assert found.best.sum() < found.before.sum()
    assert found.excess < 1e-3


@pytest.mark.parametrize(
    ("model", "y", "changes", "message"),
    [
        (SPAM(), LABELS, {}, "a learner that pairs each row with a memory"),
        (Learner(features=RFF, pairs=Difference(), memory=Latest("previous")), X[:, 0], {}, "different classes"),
        (replace(BASE, loss=Hinge()), LABELS, {"max_rows": 59}, "give at most 59 rows"),
        (BASE, LABELS, {"comparator": np.zeros(9)}, "comparator must be finite weights"),
        (BASE, np.ones(60), {}, "no row has an earlier partner"),
        (BASE, LABELS, {"penalty": -1.0}, "penalty must be a number"),
        (BASE, LABELS, {"normalization": "sum"}, "normalization must be one of"),
    ],
)
def test_what_has_no_regret_is_said(model, y, changes, message):
    with pytest.raises(ValueError, match=message):
        regret(model, X, y, **changes)
