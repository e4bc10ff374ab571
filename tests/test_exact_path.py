"""Exact minimisers for many penalties: their values, when they are computed, and each of them on its own."""

import pickle

import numpy as np
import pytest

from pairloom import Stream
from pairloom.base.clock import is_solution
from pairloom.features import Identity, RandomFourier
from pairloom.models.class_moments import TwoClasses
from pairloom.models.exact import LARGE_DIM, TURN_ROWS, ExactPath
from pairloom.pairs import OppositeClass
from tests.conftest import make_stream

ALPHAS = (0.01, 1.0, 10.0)


def problem(rng, D, zeros=()):
    """Random moments of two classes; ``zeros``: coordinates that are 0 in all rows."""
    rows = rng.normal(size=(3 * D, D))
    delta = rng.normal(size=D)
    rows[:, zeros], delta[list(zeros)] = 0.0, 0.0
    return TwoClasses(rows.T @ rows / (3 * D) + np.outer(delta, delta), delta)


def moments(X, y, weight):
    """G and delta by NumPy."""
    cov = [np.cov(X[y == c].T, aweights=weight[y == c], ddof=0) for c in (1, -1)]
    delta = np.subtract(*(np.average(X[y == c], axis=0, weights=weight[y == c]) for c in (1, -1)))
    return cov[0] + cov[1] + np.outer(delta, delta), delta


def solved(X, y, alpha, weight=None):
    weight = np.ones(len(y)) if weight is None else weight
    G, delta = moments(X, y, weight)
    return np.linalg.solve(G + 0.5 * alpha * np.trace(G) / weight.sum() * np.eye(len(G)), delta)


@pytest.mark.parametrize("D", [1, 2, 30])
def test_a_path_is_the_solution_for_each_penalty(D):
    two = problem(np.random.default_rng(D), D)
    alphas = np.array([1e-9, 1e-3, 0.5, 30.0])
    expected = [np.linalg.solve(two.G + 0.5 * alpha * np.eye(D), two.delta) for alpha in alphas]
    np.testing.assert_allclose(two.path(alphas), expected, rtol=1e-8, atol=1e-12)
    np.testing.assert_array_equal(two.path(alphas[1:2])[0], two.minimiser(1e-3))


def test_coordinates_that_are_always_0_stay_0_and_change_nothing():
    rng = np.random.default_rng(0)
    two, alphas = problem(rng, 8, [0, 5]), np.array([0.0, 0.1, 2.0])
    used = [1, 2, 3, 4, 6, 7]
    small = TwoClasses(two.G[np.ix_(used, used)], two.delta[used])
    found = two.path(alphas)
    assert (found[:, [0, 5]] == 0).all()
    np.testing.assert_array_equal(found[:, used], small.path(alphas))
    np.testing.assert_allclose(found[0, used], np.linalg.solve(small.G, small.delta), rtol=1e-8)
    assert (TwoClasses(np.zeros((3, 3)), np.zeros(3)).path(alphas) == 0).all()


def test_directions_without_data_are_no_harm():
    """More columns than rows, and no penalty: the minimum-norm minimiser."""
    rng = np.random.default_rng(0)
    rows, delta = rng.normal(size=(3, 6)), rng.normal(size=6)
    two = TwoClasses(rows.T @ rows + np.outer(delta, delta), delta)
    found = two.path(np.array([0.0]))[0]
    assert two.loss(found) == pytest.approx(two.loss(np.linalg.lstsq(two.G, two.delta)[0]), abs=1e-9)
    np.testing.assert_allclose(found, np.linalg.pinv(two.G) @ delta, rtol=1e-6)


def test_a_stream_has_the_minimiser_for_each_penalty_in_units_of_the_trace():
    X, y = make_stream("random", 700, 5)
    weight = np.random.default_rng(0).choice([0.5, 1.0, 2.0], 700)
    path = Stream(ExactPath(dtype="float64", alphas=(0.0, 0.1, 4.0))).partial_fit(X, y, weight)
    for alpha, w in zip(path.model.alphas, path.coef, strict=True):
        np.testing.assert_allclose(w, solved(X, y, alpha, weight), rtol=1e-9)


def wide(n, d=LARGE_DIM + 4, seed=0):
    """Rows of more columns than LARGE_DIM, with both classes from the start."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(np.arange(n) % 2 == 0, 1.0, -1.0)


def test_with_many_features_each_penalty_is_solved_at_its_own_rows():
    X, y = wide(150)
    path = ExactPath(alphas=ALPHAS, dtype="float64")
    stream, moved, last = Stream(path), [set(), set(), set()], np.zeros((3, X.shape[1]))
    for t in range(1, 151):
        stream.partial_fit(X[t - 1 : t], y[t - 1 : t])
        for k in range(3):
            if (stream.learned.w[k] != last[k]).any():
                moved[k].add(t)
        last = stream.learned.w.copy()
    for k, rows in enumerate(moved):
        assert rows == {t for t in range(2, 151) if is_solution(t - k * TURN_ROWS)}
        # With fewer rows than columns only the penalty determines the solution.
        np.testing.assert_allclose(last[k], solved(X[: max(rows)], y[: max(rows)], ALPHAS[k]), rtol=1e-6, atol=1e-9)


def test_with_few_features_all_are_solved_at_once():
    X, y = wide(100, 6)
    stream = Stream(ExactPath(alphas=ALPHAS, dtype="float64")).partial_fit(X, y)
    for w, alpha in zip(stream.learned.w, ALPHAS, strict=True):
        np.testing.assert_allclose(w, solved(X[:64], y[:64], alpha), rtol=1e-9)


@pytest.mark.parametrize(("n_classes", "d"), [(2, 3), (3, 3), (2, LARGE_DIM + 4), (3, LARGE_DIM + 4)])
def test_a_model_of_a_path_goes_on_bit_for_bit(n_classes, d):
    X, y = wide(420, d)
    y = y if n_classes == 2 else np.digitize(X[:, 0], [-0.5, 0.5])
    path = ExactPath(pairs=OppositeClass(n_classes), alphas=ALPHAS, seed=0)
    whole = Stream(path).partial_fit(X[:250], y[:250])
    picked = [pickle.loads(pickle.dumps(whole)).only(index) for index in (2, 0, 1)]
    assert [one.model.alphas for one in picked] == [(10.0,), (0.01,), (1.0,)]
    size = len(path.pairs.targets)
    for _ in range(2):
        for one, index in zip(picked, (2, 0, 1), strict=True):
            rows = index * size + np.arange(size)
            np.testing.assert_array_equal(one.learned.w, whole.learned.w[rows])
            np.testing.assert_array_equal(one.coef, whole.coef[rows])
            scores = whole.state.observed["recent"].scores[:, rows]
            np.testing.assert_array_equal(one.state.observed["recent"].scores, scores)
        for stream in (whole, *picked):
            stream.partial_fit(X[250:], y[250:])


def test_one_picked_from_one_that_was_picked_keeps_its_turn():
    path = ExactPath(alphas=ALPHAS)
    assert path.pick(2).turn == path.pick(-1).turn == 2
    assert path.pick(1).pick(0).turn == 1


@pytest.mark.parametrize("since", [1, 50, 64, 65, 130])
def test_before_a_row_nothing_is_solved_and_then_nothing_is_different(since):
    X, y = make_stream("random", 300, 4)
    late, early = (Stream(ExactPath(alphas=ALPHAS, since=row)) for row in (since, 0))
    first = next(t for t in range(since, 300) if is_solution(t))
    for stream in (late, early):
        stream.partial_fit(X[: first - 1], y[: first - 1])
    assert not late.learned.w.any()
    assert (late.recent()[0] == 0).all()
    np.testing.assert_array_equal(late.coef, early.coef)
    for stream in (late, early):
        stream.partial_fit(X[first - 1 :], y[first - 1 :])
    np.testing.assert_array_equal(late.learned.w, early.learned.w)
    np.testing.assert_array_equal(late.recent()[0][first:], early.recent()[0][first:])


@pytest.mark.parametrize("features", [Identity(scale="standard"), RandomFourier(32)], ids=repr)
def test_quick_scores_are_those_of_the_last_solution(features):
    X, y = make_stream("random", 600, 4)
    X = X.astype(np.float32)
    path = ExactPath(features=features, alphas=ALPHAS, seed=0)
    stream = Stream(path)
    stream.start_with(stream.check(X[:100], y[:100]))
    stream.partial_fit(X[:512], y[:512])
    known = path.score(stream.learned, X)
    np.testing.assert_array_equal(path.quick(stream.learned, X), known)
    stream.partial_fit(X[512:], y[512:])
    np.testing.assert_array_equal(path.quick(stream.learned, X), known)
    assert (path.score(stream.learned, X) != known).any()
    # The score of a row before it was learned does not change.
    np.testing.assert_allclose(stream.recent()[0][512:], known[512:], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("d", [3, LARGE_DIM + 4])
def test_cuts_into_calls_do_not_matter(d):
    X, y = wide(330, d)
    whole, parts = (Stream(ExactPath(alphas=ALPHAS)) for _ in range(2))
    whole.partial_fit(X, y)
    for rows in np.array_split(np.arange(330), [1, 33, 34, 96, 97, 255, 257, 300]):
        parts.partial_fit(X[rows], y[rows])
    np.testing.assert_array_equal(whole.learned.w, parts.learned.w)
    np.testing.assert_array_equal(whole.recent()[0], parts.recent()[0])


def test_penalties_below_0_are_refused():
    with pytest.raises(ValueError, match="alphas"):
        ExactPath(alphas=(1.0, -1.0))
