"""A stream that changes: who finds out, and what is forgotten then."""

from math import log

import numpy as np
import pytest

import pairloom
from pairloom import AUCClassifier, Stream
from pairloom.base.tree import flatten, same, unflatten
from pairloom.race import Race
from pairloom.race.state import MANY, Standing, thinned
from pairloom.stream.drift import FEWEST, OTHERS, RARELY, ROOM, DriftWatch, Watched, change_in, new_errors
from pairloom.stream.observers import RECENT, Arrivals, Recent
from pairloom.systems import FPOGD, ExactAUC


def reversed_stream(n, at, seed=0, d=4, positive=0.2):
    """A linear rule whose signs are all reversed after row ``at``."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(np.float32)
    score = X @ rng.normal(size=d) * np.where(np.arange(n) < at, 1.0, -1.0)
    return X, (score > np.quantile(score, 1 - positive)).astype(int)


def rings(scores, labels):
    """What a stream keeps of these rows."""
    n = len(labels)
    recent, arrivals = Recent(np.zeros((RECENT, scores.shape[1]))), Arrivals(np.zeros((RECENT, scores.shape[1])), [])
    places = np.arange(n) % RECENT
    recent.labels[places], recent.weights[places], arrivals.scores[places] = labels, 1.0, scores
    recent.count = arrivals.count = n
    return recent, arrivals


@pytest.mark.parametrize("n", [300, 5000])
def test_an_error_is_the_share_of_pairs_with_the_newest_others_in_the_wrong_order(n):
    rng = np.random.default_rng(n)
    scores, labels = rng.integers(0, 20, (n, 1)).astype(float), (rng.random(n) < 0.1).astype(float)
    own = Watched(seen=n - 128)
    errors, rows = new_errors(own, *rings(scores, labels), np.array([1.0]))
    rest = scores[labels == 0, 0][-OTHERS:]
    wanted = [np.mean((rest > scores[r - 1, 0]) + 0.5 * (rest == scores[r - 1, 0])) for r in rows]
    np.testing.assert_allclose(errors, wanted, rtol=1e-12)
    assert rows.tolist() == [r for r in range(n - 127, n + 1) if labels[r - 1] == 1]


def test_of_two_classes_the_rarer_one_is_looked_at_whichever_it_is():
    rng = np.random.default_rng(0)
    scores, labels = rng.normal(size=(400, 1)), (rng.random(400) < 0.9).astype(float)
    errors, rows = new_errors(Watched(), *rings(scores, labels), np.array([1.0]))
    assert (labels[rows - 1] == 0).all()
    assert len(errors) == (labels == 0).sum()
    turned = new_errors(Watched(), *rings(-scores, 1 - labels), np.array([1.0]))
    np.testing.assert_allclose(turned[0], errors, rtol=1e-12)


def test_with_three_classes_every_row_has_the_error_of_its_own_class():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 300).astype(float)
    scores = 3.0 * (labels[:, None] == np.arange(3)) + rng.normal(size=(300, 3))
    errors, rows = new_errors(Watched(seen=200), *rings(scores, labels), np.arange(3.0))
    assert rows.tolist() == list(range(201, 301))
    assert errors.mean() < 0.1


def test_what_does_not_change_is_not_called_changed():
    """Also if most errors are 0 and a few are 1: 300 streams of as many errors as are remembered."""
    draws = np.random.default_rng(0).random((100, ROOM))
    for kind in (draws, draws**8, (draws < 0.03).astype(float)):
        assert not any(change_in(errors[:n]) for errors in kind for n in range(64, ROOM + 1, 128))


def test_what_changes_is_found_and_its_length_told():
    rng = np.random.default_rng(0)
    for more in (12, 48, 300):
        errors = np.concatenate([rng.random(1000) ** 8, rng.uniform(0.4, 1.0, more)])
        assert more / 2 <= change_in(errors) <= 2 * more
    assert change_in(np.concatenate([rng.uniform(0.4, 1.0, 1000), rng.random(200) ** 8])) == 0  # it got better


def test_the_bound_is_bennetts():
    """At the edge: errors of 0 and e, so that mean and variance are plain numbers."""
    old = np.zeros(4 * FEWEST)
    sizes = [FEWEST << k for k in range(16) if FEWEST << k <= 5 * FEWEST // 2]
    sure = log(len(sizes) / RARELY)
    v = 1.0 / len(old)
    up = np.sqrt(2.0 * v * sure / len(old)) + 2.0 * sure / (3.0 * len(old))

    def surprise(e):
        x = max(0.0, e - up) / v
        return FEWEST * v * ((1.0 + x) * np.log1p(x) - x)

    grid = np.linspace(0.0, 1.0, 2001)
    edge = grid[np.argmax([surprise(e) > sure for e in grid])] if surprise(1.0) > sure else 1.0
    found = [change_in(np.concatenate([old, np.full(FEWEST, e)])) for e in (edge - 0.002, min(1.0, edge + 0.002))]
    assert found == ([0, FEWEST] if surprise(1.0) > sure else [0, 0])


def test_a_model_forgets_what_was_before_the_change():
    X, y = reversed_stream(4000, 2000)
    model = ExactAUC(random_state=0, drift="auto").fit(X, y)
    watched = model.stream_.state.observed["drift"]
    assert len(watched.alarms) == 1
    assert 2000 < watched.alarms[0] <= 2256
    assert abs(watched.since - 2000) < 200
    assert model.stream_.learned.memory.counts.sum() < 2300  # 2,000 new rows, and as many old ones as made the alarm
    plain = ExactAUC(random_state=0).fit(X, y)
    late = slice(3000, None)
    assert pairloom.metrics.roc_auc(y[late], model.stream_.recent()[0][late]) > 0.95 > 0.5 > pairloom.metrics.roc_auc(
        y[late], plain.stream_.recent()[0][late]
    )
