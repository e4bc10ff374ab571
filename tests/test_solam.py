"""SOLAM: the published steps, and its parameters."""

import numpy as np
import pytest

from pairloom.models.rule import Row
from pairloom.steps import Ball
from pairloom.systems import SOLAM
from tests.conftest import make_stream


def saddle(X, y, w, a, b, beta, p):
    """F of each row."""
    s, plus = X @ w, y > 0
    square = np.where(plus, (1 - p) * (s - a) ** 2, p * (s - b) ** 2)
    return square + 2 * (1 + beta) * np.where(plus, -(1 - p) * s, p * s) - p * (1 - p) * beta**2


@pytest.mark.parametrize("rare", [0.5, 0.03])
def test_the_saddle_value_is_the_loss_over_all_pairs(rare):
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(300, 5)), rng.normal(size=5)
    y = np.where(np.arange(300) < 300 * rare, 1, -1)
    p, a, b = (y > 0).mean(), X[y > 0].mean(axis=0) @ w, X[y < 0].mean(axis=0) @ w
    margins = ((X[y > 0] @ w)[:, None] - X[y < 0] @ w).ravel()
    value = 1 + saddle(X, y, w, a, b, b - a, p).mean() / (p * (1 - p))
    assert value == pytest.approx(np.square(1 - margins).mean(), rel=1e-12)


@pytest.mark.parametrize("label", [1.0, -1.0])
def test_steps_follow_the_finite_differences_of_the_saddle(label):
    rng = np.random.default_rng(2)
    model = SOLAM(dtype="float64", engine="reference", radius=100.0).fit(*make_stream("random", 60, 4))
    state, rule = model.stream_.learned, model.stream_.model.rule
    x, w, point, rate = rng.normal(size=4), rng.normal(size=4), rng.normal(size=3), 1e-6
    state.w[0], state.memory.point[0], state.memory.kappa[0] = w, point, 100.0
    rule.step(state, 0, Row(x, label, 1.0, rate, 1.0, rate, 0.0, np.empty(0)), Ball(100.0))
    p = state.memory.counts[0, 1] / state.memory.counts[0].sum()
    at = np.concatenate([w, point])

    def value(v):
        return saddle(x[None], np.array([label]), v[:4], *v[4:], p)[0]

    h = 1e-5
    slope = np.array([(value(at + h * e) - value(at - h * e)) / (2 * h) for e in np.eye(7)])
    direction = np.array([-1.0] * 6 + [1.0])
    moved = (np.concatenate([state.w[0], state.memory.point[0]]) - at) / rate
    np.testing.assert_allclose(moved, direction * slope, atol=1e-6)


def test_projections_hold_whatever_the_step():
    X, y = make_stream("random", 500, 4)
    model, truth = (
        SOLAM(eta=1e3, radius=0.5, average="last", dtype="float64", engine=e).fit(X, y) for e in ("auto", "reference")
    )
    kept = model.stream_.learned.memory
    np.testing.assert_allclose(kept.point, truth.stream_.learned.memory.point, rtol=1e-9)
    assert np.linalg.norm(model.coef_) <= 0.5 + 1e-12
    assert kept.kappa[0] == pytest.approx(np.linalg.norm(X, axis=1).max(), rel=1e-12)
    assert (np.abs(kept.point[0]) <= 0.5 * kept.kappa[0] * np.array([1, 1, 2]) + 1e-12).all()


def test_the_output_is_the_weighted_average_of_the_iterates_before_each_step():
    X, y = make_stream("random", 80, 3)
    weight = np.random.default_rng(0).choice([0.5, 1.0, 3.0], 80)
    last, before = SOLAM(average="last", dtype="float64"), [np.zeros(3)]
    for x, label, by in zip(X, y, weight, strict=True):
        last.learn_one(x, label, by)
        before.append(last.stream_.coef[0].copy())
    gamma = 0.1 * weight / np.sqrt(np.arange(1, 81))
    averaged = SOLAM(dtype="float64").fit(X, y, weight)
    np.testing.assert_allclose(averaged.stream_.coef[0], gamma @ np.array(before[:-1]) / gamma.sum(), rtol=1e-10)


def test_nothing_moves_before_both_classes_are_there():
    X, y = make_stream("one_class_first", 90, 3)
    model = SOLAM().partial_fit(X[:5], y[:5])
    assert not model.coef_.any()
    assert not model.stream_.learned.memory.point.any()
