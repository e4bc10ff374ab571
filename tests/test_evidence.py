"""The windows of a race: when they close, their AUC, and which of them are used."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from pairloom.metrics.auc import weighted_auc
from pairloom.race.evidence import (
    MAX_CLASS_ROWS,
    MAX_WINDOWS,
    USED_SHARE,
    WINDOW_CLASS_ROWS,
    WINDOW_ROWS,
    Evidence,
    ScoredWindow,
)

ONE = np.array([1])


def areas_of(window, targets):
    """``ScoredWindow.auc`` by scikit-learn."""
    return np.array(
        [
            np.mean(
                [
                    roc_auc_score(window.labels == c, window.scores[:, m, k], sample_weight=window.weights)
                    for k, c in enumerate(targets)
                ]
            )
            for m in range(window.scores.shape[1])
        ]
    )


def rows_of(rng, n, share=0.3, n_models=2):
    """Scores of models, the later ones worse, with labels 0 and 1."""
    labels = (rng.random(n) < share).astype(float)
    noise = rng.normal(size=(n, n_models, 1)) * np.arange(1, n_models + 1)[:, None]
    return labels[:, None, None] + noise, labels, np.ones(n)


def closed(n_windows, n_models=3, seed=0):
    """Evidence with so many closed windows, of different shares of the rarer class."""
    evidence, rng = Evidence(ONE, n_models), np.random.default_rng(seed)
    for k in range(n_windows):
        assert evidence.add(*rows_of(rng, WINDOW_ROWS, 0.1 + 0.05 * (k % 9), n_models))
    return evidence


def test_weighted_areas_are_scikit_learns():
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 6, size=(200, 3)).astype(float)
    positive, weights = rng.random(200) < 0.3, rng.choice([0.1, 1.0, 7.0], 200)
    expected = [roc_auc_score(positive, column, sample_weight=weights) for column in scores.T]
    np.testing.assert_allclose(weighted_auc(scores, positive, weights), expected, rtol=1e-12)


def test_three_classes_are_each_against_the_rest_and_too_few_rows_say_nothing():
    rng = np.random.default_rng(1)
    window = ScoredWindow(rng.normal(size=(60, 2, 3)), rng.integers(0, 3, 60).astype(float), rng.random(60) + 0.1)
    np.testing.assert_allclose(window.auc(np.arange(3)), areas_of(window, range(3)), rtol=1e-12)
    window.labels[window.labels == 2] = 0.0
    window.labels[:2] = 2.0
    two = replace(window, scores=window.scores[:, :, :2])
    np.testing.assert_allclose(window.auc(np.arange(3)), areas_of(two, range(2)), rtol=1e-12)


def test_the_rarest_class_that_is_there_is_counted():
    window = ScoredWindow(np.zeros((6, 1, 3)), np.array([0.0, 0, 0, 2, 2, 0]), np.ones(6))
    assert window.rare == 2
    assert replace(window, labels=np.zeros(6)).rare == 0
    assert replace(window, labels=np.array([0.0, 1, 2, 2, 2, 0])).rare == 1


def test_windows_close_at_512_rows_and_ten_of_the_rarer_class():
    assert (WINDOW_ROWS, WINDOW_CLASS_ROWS) == (512, 10)
    evidence, rng = Evidence(ONE, 2), np.random.default_rng(0)
    scores, labels, weights = rows_of(rng, 512, 0.0)
    labels[:9] = 1.0
    assert not evidence.add(scores[:511], labels[:511], weights[:511])
    assert evidence.mean_auc()[0][0] == evidence.open[0].auc(ONE)[0]
    assert evidence.mean_auc()[1] == 9
    assert not evidence.add(scores[511:], labels[511:], weights[511:])
    assert evidence.add(scores[:1], np.ones(1), np.ones(1))
    assert evidence.closed == len(evidence.raw) == 1
    assert not evidence.open
    assert not evidence.add(*rows_of(rng, 511, 0.5))
    assert evidence.used()[0] == evidence.raw
    assert evidence.add(*rows_of(rng, 1, 0.5))


def test_windows_do_not_wait_for_a_class_that_has_gone():
    evidence, rng = Evidence(np.arange(3.0), 1), np.random.default_rng(0)
    for k in range(40):
        labels = rng.integers(0, 2, 128).astype(float)
        if k == 0:
            labels[:4] = 2.0
        evidence.add(rng.normal(size=(128, 1, 3)), labels, np.ones(128))
    assert evidence.closed > 1


def test_nothing_is_said_without_three_rows_of_each_class():
    evidence = Evidence(ONE, 2)
    scores, labels, weights = rows_of(np.random.default_rng(0), 40, 0.0)
    for positives in range(3):
        assert evidence.used()[0] == []
        assert (evidence.mean_auc()[0] == 0.5).all()
        assert evidence.mean_auc()[1] == 0.0
        evidence.add(scores, np.where(np.arange(40) == positives, 1.0, labels), weights)
    assert len(evidence.used()[0]) == 1
    assert evidence.mean_auc()[1] == 3.0


def test_an_open_window_keeps_the_newest_rows_of_each_class():
    evidence, rng = Evidence(ONE, 2), np.random.default_rng(0)
    for _ in range(100):
        evidence.add(*rows_of(rng, 128, 0.0))
    scores, labels, weights = rows_of(rng, 5, 1.0)
    evidence.add(scores, labels, weights)
    for _ in range(20):
        newest = rows_of(rng, 128, 0.0)
        evidence.add(*newest)
    (window,) = evidence.open
    assert len(window.labels) == MAX_CLASS_ROWS + 5
    np.testing.assert_array_equal(window.scores[window.labels == 1], scores)
    np.testing.assert_array_equal(window.scores[-128:], newest[0])
    assert evidence.closed == 0


@pytest.mark.parametrize(("n", "newer"), [(1, 1), (2, 2), (3, 2), (5, 3), (10, 6), (16, 10), (25, 15), (30, 16)])
def test_six_tenths_of_the_windows_have_a_say_and_at_most_sixteen(n, newer):
    assert (USED_SHARE, MAX_WINDOWS) == (0.6, 16)
    evidence = closed(n)
    assert evidence.closed == n
    assert len(evidence.raw) == len(evidence.areas) == min(n, MAX_WINDOWS)
    windows, areas = evidence.used()
    assert len(windows) == len(areas) == newer
    assert windows == evidence.raw[-newer:]
    np.testing.assert_array_equal(areas, [window.auc(ONE) for window in windows])


def test_the_verdict_weighs_windows_by_their_rows_of_the_rarer_class():
    evidence = closed(8)
    windows = evidence.raw[-5:]
    rare = [min((window.labels == 1).sum(), (window.labels == 0).sum()) for window in windows]
    expected = sum(r * areas_of(window, [1]) for r, window in zip(rare, windows, strict=True)) / sum(rare)
    means, total = evidence.mean_auc()
    np.testing.assert_allclose(means, expected, rtol=1e-12)
    assert total == sum(rare)
    assert len(set(rare)) > 1
    assert (np.diff(means) < 0).all()


def test_the_open_window_has_no_say_once_one_was_closed():
    evidence = closed(1)
    before = evidence.mean_auc()
    evidence.add(*rows_of(np.random.default_rng(5), 300, n_models=3))
    np.testing.assert_array_equal(evidence.mean_auc()[0], before[0])
    assert evidence.mean_auc()[1] == before[1]


def test_forgetting_models_keeps_the_rest_as_it_was():
    evidence = closed(6)
    evidence.add(*rows_of(np.random.default_rng(5), 100, n_models=3))
    before, open_before = evidence.mean_auc(), evidence.open[0].scores.copy()
    raw = [window.scores.copy() for window in evidence.raw]
    evidence.keep_models([0, 2])
    assert evidence.n_models == 2
    np.testing.assert_array_equal(evidence.mean_auc()[0], before[0][[0, 2]])
    assert evidence.mean_auc()[1] == before[1]
    np.testing.assert_array_equal(evidence.open[0].scores, open_before[:, [0, 2]])
    for window, scores in zip(evidence.raw, raw, strict=True):
        np.testing.assert_array_equal(window.scores, scores[:, [0, 2]])
    assert evidence.add(*rows_of(np.random.default_rng(6), 512, n_models=2))
    assert evidence.areas.shape == (7, 2)
