"""Synthetic streams: each has its documented property."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import KNeighborsClassifier

from pairloom.data.synthetic import drift, duplicates, imbalanced, sorted_stream

MAKERS = (imbalanced, drift, lambda *a, **k: drift(*a, kind="gradual", **k), duplicates)


@pytest.mark.parametrize("make", MAKERS)
def test_streams_are_fixed_by_their_seed(make):
    X, y = make(300, 4, seed=5)
    assert X.shape == (300, 4)
    assert X.dtype == np.float64
    assert np.all(np.isfinite(X))
    assert np.issubdtype(y.dtype, np.integer)
    assert set(y.tolist()) == {-1, 1}
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    again = make(300, 4, seed=5)
    np.testing.assert_array_equal(X, again[0])
    np.testing.assert_array_equal(y, again[1])
    assert not np.array_equal(X, make(300, 4, seed=6)[0])
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


@pytest.mark.parametrize(("positive", "count"), [(0.05, 50), (0.5, 500), (0, 1), (1, 999), (0.0104, 10)])
def test_imbalance_is_exact_and_leaves_both_classes(positive, count):
    assert np.sum(imbalanced(1_000, positive=positive)[1] == 1) == count


@pytest.mark.parametrize("seed", range(3))
def test_the_rare_class_can_be_learned_but_not_by_a_line(seed):
    X, y = imbalanced(4_000, 4, positive=0.05, seed=seed)
    train, test = slice(0, 2_000), slice(2_000, 4_000)
    line = LogisticRegression().fit(X[train], y[train]).decision_function(X[test])
    near = KNeighborsClassifier(20).fit(X[train], y[train]).predict_proba(X[test])[:, 1]
    assert 0.4 < roc_auc_score(y[test], line) < 0.6
    assert roc_auc_score(y[test], near) > 0.85


def test_rows_are_sorted_by_the_widest_column_and_keep_their_labels():
    X, y = imbalanced(500, 3)
    X = X.round(1) * [1, 5, 2]
    sorted_X, sorted_y = sorted_stream(X, y)
    assert np.all(np.diff(sorted_X[:, 1]) >= 0)
    order = np.argsort(X[:, 1], kind="stable")
    np.testing.assert_array_equal(sorted_X, X[order])
    np.testing.assert_array_equal(sorted_y, y[order])
    for column in (0, 2, -1):
        assert np.all(np.diff(sorted_stream(X, y, column)[0][:, column]) >= 0)


def best_rule(X, y):
    """Difference of the class means: the direction that ranks a linear concept on standard normal rows."""
    return X[y == 1].mean(axis=0) - X[y == -1].mean(axis=0)


@pytest.mark.parametrize(("at", "positive"), [(0.5, 0.5), (0.25, 0.1), (0.8, 0.3)])
def test_a_sudden_change_reverses_the_concept_in_one_row(at, positive):
    X, y = drift(8_000, 5, kind="sudden", at=at, positive=positive)
    change = round(at * 8_000)
    w = best_rule(X[:change], y[:change])
    assert roc_auc_score(y[:change], X[:change] @ w) > 0.98
    assert roc_auc_score(y[change:], X[change:] @ w) < 0.02
    assert roc_auc_score(y[change : change + 100], X[change : change + 100] @ w) < 0.1
    for part in (y[:change], y[change:]):
        assert np.mean(part == 1) == pytest.approx(positive, abs=0.04)
    # The rows themselves do not drift.
    assert np.abs(X[:change].mean(axis=0) - X[change:].mean(axis=0)).max() < 0.15


def test_a_gradual_change_is_a_mixture_that_shifts():
    X, y = drift(20_000, 5, kind="gradual", at=0.5, width=0.4)
    w = best_rule(X[:6_000], y[:6_000])
    right = np.sign(X @ w) == y
    shares = [right[start : start + 2_000].mean() for start in range(0, 20_000, 2_000)]
    assert min(shares[:3]) > 0.95
    assert max(shares[7:]) < 0.05
    np.testing.assert_allclose(shares[3:7], [0.875, 0.625, 0.375, 0.125], atol=0.05)


@pytest.mark.parametrize("distinct", [2, 7, 100])
def test_distinct_rows_are_counted_and_skewed(distinct):
    X, y = duplicates(2_000, 6, distinct=distinct)
    _, which, counts = np.unique(X, axis=0, return_inverse=True, return_counts=True)
    assert len(counts) == distinct
    assert counts.max() > 1.2 * 2_000 / distinct
    both = [len(np.unique(y[which == k])) == 2 for k in range(distinct)]
    assert any(both)
    clean = duplicates(2_000, 6, distinct=distinct, noise=0)[1]
    assert {len(np.unique(clean[which == k])) for k in range(distinct)} == {1}
    assert np.mean(clean != y) == pytest.approx(0.05, abs=0.02)
    assert len(np.unique(duplicates(distinct, 3, distinct=distinct)[0], axis=0)) == distinct


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: imbalanced(0), "n must be an integer"),
        (lambda: imbalanced(1), "n must be at least 2"),
        (lambda: imbalanced(10, 0), "n_features must be an integer"),
        (lambda: imbalanced(10, positive=2), "positive must be a number at least 0 and at most 1"),
        (lambda: drift(10, kind="slow"), "kind must be one of 'sudden', 'gradual'"),
        (lambda: drift(10, positive=0), "positive must be a number above 0 and below 1"),
        (lambda: drift(10, width=0), "width must be a number above 0"),
        (lambda: duplicates(10, distinct=11), "distinct must be at least 2 and at most n = 10"),
        (lambda: sorted_stream(np.eye(3), np.ones(2)), r"got \(3, 3\) and \(2,\)"),
        (lambda: sorted_stream(np.eye(3), np.ones(3), 3), "column must be one of the 3 columns"),
    ],
)
def test_slips_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
