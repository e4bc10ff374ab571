"""Mixing: shares of models, weights of candidates by stacking, outliers."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from pairloom.race.evidence import ScoredWindow
from pairloom.race.mixing import (
    LOG_ODDS_PER_ROW,
    MAX_SCORES,
    MIN_SHARE,
    PRIOR_STRENGTH,
    candidate_scores,
    drop_negligible,
    fit_weights,
    model_shares,
    soft_clip,
    spread,
)
from tests.covering import every_pair

# Shares of the models of a candidate.


def test_shares_are_the_softmax_of_areas_inside_each_candidate():
    rng = np.random.default_rng(0)
    areas, sizes, rare = rng.random(9), [3, 1, 5], 7.0
    found = model_shares(areas, rare, sizes)
    for start, end in pairwise(np.cumsum([0, *sizes])):
        odds = np.exp(LOG_ODDS_PER_ROW * rare * areas[start:end])
        np.testing.assert_allclose(found[start:end], odds / odds.sum(), rtol=1e-12)


def test_without_evidence_shares_are_equal_and_with_much_the_best_has_all():
    areas = np.array([0.9, 0.8, 0.7, 0.6])
    np.testing.assert_array_equal(model_shares(areas, 0.0, [2, 2]), np.full(4, 0.5))
    np.testing.assert_allclose(model_shares(areas, 1e5, [2, 2]), [1, 0, 1, 0], atol=1e-300)
    np.testing.assert_array_equal(model_shares(np.full(3, 0.5), 1e9, [3]), np.full(3, 1 / 3))


# Scores of candidates in windows.


def window(rng, n, n_models, n_vectors, labels):
    scores = rng.normal(size=(n, n_models, n_vectors)) * rng.gamma(1.0, 20.0, size=(n_models, n_vectors))
    scores[:, 0, 0] = 3.0  # a constant model
    scores[0, -1, -1] = 1e6
    return ScoredWindow(scores, rng.choice(labels, n), rng.random(n) + 0.5)


@pytest.mark.parametrize("targets", [[1.0], [0.0, 1.0, 2.0]], ids=len)
def test_scores_of_candidates_by_a_slow_loop(targets):
    rng = np.random.default_rng(1)
    sizes, labels = [2, 3], [0.0, 1.0] if len(targets) == 1 else targets
    windows = [window(rng, n, 5, len(targets), labels) for n in (30, 17)]
    parts = model_shares(rng.random(5), 2.0, sizes)
    scores, positive, weight, target = candidate_scores(windows, parts, sizes, np.array(targets))
    at = 0
    for one in reversed(windows):
        for k, c in enumerate(targets):
            for i in range(len(one.labels)):
                for e, own in enumerate(([0, 1], [2, 3, 4])):
                    u = 0.0
                    for m in own:
                        column = one.scores[:, m, k]
                        u += parts[m] * (column[i] - column.mean()) / (column.std() or 1.0)
                    expected = u if abs(u) <= 4 else np.sign(u) * (4 + np.log(abs(u) - 3))
                    assert scores[at, e] == pytest.approx(expected, rel=1e-9, abs=1e-9)
                assert positive[at] == (one.labels[i] == c)
                assert weight[at] == one.weights[i]
                assert target[at] == k
                at += 1
    assert at == len(scores) == len(positive) == len(weight) == len(target)


def test_the_newest_windows_are_used_up_to_a_number_of_scores():
    rng = np.random.default_rng(0)
    n = MAX_SCORES // 2
    windows = [ScoredWindow(rng.normal(size=(n, 1, 1)), np.full(n, float(k)), np.ones(n)) for k in range(3)]
    _, positive, weight, _ = candidate_scores(windows, np.ones(1), [1], np.array([0.0]))
    assert len(weight) == MAX_SCORES
    assert not positive.any()  # the oldest is left out


def test_the_spread_of_equal_scores_is_1():
    scores = np.array([[1.0, 5.0], [3.0, 5.0]])
    np.testing.assert_array_equal(spread(scores), [1.0, 1.0])
    np.testing.assert_array_equal(spread(10 * scores), [10.0, 1.0])


# Weights by stacking.


def value(x, scores, positive, weight, target, prior):
    """The objective of the docstring, and its gradient."""
    K, kinds = scores.shape[1], np.unique(target)
    prior, weight = prior / prior.sum(), weight / weight.mean()
    w, b = x[:K], x[K:]
    z = scores @ w + b[np.searchsorted(kinds, target)]
    away = w - w.sum() * prior
    loss = weight @ (np.logaddexp(0.0, z) - positive * z) + PRIOR_STRENGTH * away @ away
    gap = weight * (expit(z) - positive)
    by_w = scores.T @ gap + 2 * PRIOR_STRENGTH * (away - (away @ prior))
    by_b = [gap[target == kind].sum() for kind in kinds]
    return loss, np.concatenate([by_w, by_b])


def least(scores, positive, weight, target, prior):
    K, n_kinds = scores.shape[1], len(np.unique(target))
    start = np.concatenate([prior / prior.sum(), np.zeros(n_kinds)])
    bounds = [(0.0, None)] * K + [(None, None)] * n_kinds
    options = {"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-10}
    return minimize(value, start, (scores, positive, weight, target, prior), "L-BFGS-B", True, bounds=bounds,
                    options=options)  # fmt: skip


def stream(seed, n, K, n_targets=1, rare=0.3, alike=0.0):
    """Scores of candidates, some good, some bad, some against the truth; ``alike``: what they have in common."""
    rng = np.random.default_rng(seed)
    target = np.repeat(np.arange(n_targets), n)
    positive = rng.random(n * n_targets) < rare
    good = rng.uniform(-0.5, 2.0, size=K)
    shared = rng.normal(size=(len(target), 1))
    scores = np.outer(positive - rare, good) + (1 - alike) * rng.normal(size=(len(target), K)) + alike * shared
    return scores, positive, rng.choice([0.2, 1.0, 3.0], len(target)), target, rng.choice([0.25, 0.5, 1.0], K)


@every_pair(n=[6, 60, 2000], K=[1, 2, 4, 7], n_targets=[1, 3], alike=[0.0, 0.6, 0.97])
def test_stacked_weights_are_the_minimiser(n, K, n_targets, alike):
    for seed in range(6):
        data = stream(seed, n, K, n_targets, alike=alike)
        found, best = fit_weights(*data), least(*data)
        assert (found >= 0).all()
        assert np.isfinite(found).all()
        # The intercepts follow from the weights.
        free = minimize(
            lambda b, w=found, d=data: value(np.concatenate([w, b]), *d)[0], best.x[K:], method="BFGS",
            options={"gtol": 1e-8},
        )  # fmt: skip
        assert free.fun <= best.fun + 1e-5 * n * n_targets
        if n_targets * n > 100:
            np.testing.assert_allclose(found, best.x[:K], atol=0.01 * max(1.0, found.sum()))


def test_few_rows_leave_the_prior_and_many_choose():
    """One candidate is informative, the other is not: its weight is near the prior at first, and near 0 later."""
    rng, prior = np.random.default_rng(0), np.array([1.0, 3.0])
    share = {}
    for n in (10, 60, 400, 3000):
        found = []
        for _ in range(20):
            positive = np.arange(n) < max(2, n // 10)
            scores = np.column_stack([positive + 0.5 * rng.normal(size=n), rng.normal(size=n)])
            scores = (scores - scores.mean(axis=0)) / scores.std(axis=0)
            weights = fit_weights(scores, positive, np.ones(n), np.zeros(n), prior)
            found.append(weights[1] / weights.sum())
        share[n] = np.mean(found)
    assert 0.75 > share[10] > share[60] > share[400] > share[3000]
    assert share[10] > 0.3
    assert share[3000] < 0.03


def test_candidates_with_equal_scores_share_as_in_the_prior():
    scores, positive, weight, target, _ = stream(3, 400, 1)
    found = fit_weights(np.repeat(scores, 3, axis=1), positive, weight, target, np.array([1.0, 1.0, 2.0]))
    np.testing.assert_allclose(found / found.sum(), [0.25, 0.25, 0.5], atol=1e-6)


def test_scores_that_separate_the_classes_give_finite_weights():
    scores = np.array([[-1.0, -1.0], [-2.0, -1.0], [1.0, 1.0], [2.0, 1.0]])
    found = fit_weights(scores, np.array([False, False, True, True]), np.ones(4), np.zeros(4), np.ones(2))
    assert np.isfinite(found).all()
    assert (found > 0).all()


def test_the_scale_of_the_weights_of_rows_does_not_matter():
    scores, positive, weight, target, prior = stream(5, 300, 3)
    one, other = (fit_weights(scores, positive, scale * weight, target, prior) for scale in (1.0, 1e6))
    np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)


def test_all_against_the_truth_leaves_the_prior():
    rng = np.random.default_rng(0)
    positive = rng.random(3000) < 0.5
    scores = -np.outer(positive - 0.5, [1.0, 2.0]) + 0.1 * rng.normal(size=(3000, 2))
    found = fit_weights(scores, positive, np.ones(3000), np.zeros(3000), np.ones(2))
    assert (found == 0).all()
    np.testing.assert_array_equal(drop_negligible(found, np.array([1.0, 3.0])), [0.25, 0.75])


def test_negligible_weights_are_dropped():
    weights = np.array([1.0, MIN_SHARE * 1.009, MIN_SHARE * 1.03, 0.0])
    kept = drop_negligible(weights, np.ones(4))
    np.testing.assert_array_equal(kept, [1.0, 0.0, weights[2], 0.0])


# Outliers.


def test_outliers_are_compressed_and_keep_their_order():
    scores = np.array([-1e6, -40.0, -4.0, -1.0, 0.0, 3.9, 4.1, 1e30])
    clipped = soft_clip(scores)
    assert (np.diff(clipped) > 0).all()
    np.testing.assert_array_equal(clipped[2:6], scores[2:6])
    np.testing.assert_allclose(clipped[[0, 1, 6]], [-4 - np.log(1e6 - 3), -4 - np.log(37), 4 + np.log(1.1)])
    np.testing.assert_array_equal(soft_clip(scores[2:6]), scores[2:6])
    assert soft_clip(np.zeros((0, 2))).shape == (0, 2)
