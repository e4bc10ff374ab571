import numpy as np
import pytest

from pairloom.engines.fused_steps import apply_step
from pairloom.steps import L2, Ball, Constant, ElasticNet, Horizon, Polynomial, Sqrt
from pairloom.steps.schedules import averaging_rate

T = np.arange(1, 50)


def test_schedules():
    np.testing.assert_array_equal(Constant(0.5).at(T), 0.5)
    np.testing.assert_allclose(Sqrt(0.5).at(T), 0.5 / np.sqrt(T), rtol=1e-15)
    np.testing.assert_allclose(Polynomial(0.5, power=0.6).at(T), 0.5 * T**-0.6, rtol=1e-14)


@pytest.mark.parametrize("schedule", [Constant(0.3), Sqrt(0.3), Polynomial(0.3)])
def test_a_block_of_steps_has_the_bits_of_single_steps(schedule):
    t = np.arange(1, 5000)
    np.testing.assert_array_equal(schedule.at(t), [float(schedule.at(np.array([i]))[0]) for i in t])


@pytest.mark.parametrize("average", ["mean", "poly"])
def test_a_block_of_averaging_rates_has_the_bits_of_single_rates(average):
    t = np.arange(1, 5000)
    np.testing.assert_array_equal(averaging_rate(average, t), [float(averaging_rate(average, np.array(i))) for i in t])


def test_l2_forms_agree_to_second_order():
    for eta in (1e-2, 1e-3):
        (keep, rate, _), (keep_p, rate_p, _) = L2(1.0).at(np.array(eta)), L2(1.0, "proximal").at(np.array(eta))
        assert abs(keep - keep_p) < 2 * eta**2
        assert abs(rate - rate_p) < 2 * eta**2


@pytest.mark.parametrize("penalty", [L2(2.0, "proximal"), ElasticNet(2.0, l1=0.5), ElasticNet(0.0, l1=3.0)])
def test_proximal_step_minimises_its_objective(penalty):
    """On the line of a one-dimensional model, by the compiled step."""
    eta, l1 = 0.4, getattr(penalty, "l1", 0.0)
    for w, v in ((0.7, -1.3), (0.7, 1.9), (-0.2, 0.1), (0.3, 0.6)):
        keep, rate, threshold = penalty.at(np.array(eta))
        best = np.array([w])
        apply_step(best, np.array([v]), float(keep), float(rate), float(threshold), np.inf)
        grid = best + np.array([-1e-3, 0, 1e-3])
        objective = 0.5 * (grid - (w - eta * v)) ** 2 + eta * (penalty.alpha / 2 * grid**2 + l1 * np.abs(grid))
        assert objective.argmin() == 1


def test_elastic_net_without_l1_is_the_proximal_l2():
    for ours, theirs in zip(ElasticNet(0.3).at(T * 0.1), L2(0.3, "proximal").at(T * 0.1), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_ball_keeps_the_norm():
    w = np.array([3.0, 4.0])
    apply_step(w, np.zeros(2), 1.0, 1.0, 0.0, Ball(1.0).bound)
    np.testing.assert_allclose(w, [0.6, 0.8])
    apply_step(w, np.zeros(2), 1.0, 1.0, 0.0, Ball(2.0).bound)
    np.testing.assert_allclose(w, [0.6, 0.8])


def test_horizon_is_constant_and_needs_the_length():
    np.testing.assert_array_equal(Horizon(0.5, horizon=100).at(T), 0.05)
    with pytest.raises(ValueError, match="the expected length of the stream, must be an integer"):
        Horizon(0.5)


def test_averages_are_the_averages_they_are_named_after():
    w = np.random.default_rng(0).normal(size=len(T))
    for average, weights in (("mean", np.ones(len(T))), ("poly", T * (T + 1.0) * (T + 2.0))):
        w_bar = 0.0
        for t, w_t in zip(T, w, strict=True):
            w_bar += averaging_rate(average, np.asarray(t)) * (w_t - w_bar)
        assert w_bar == pytest.approx(np.average(w, weights=weights), rel=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Constant(0.0), "eta must be a number above 0; got 0.0"),
        (lambda: Constant(np.nan), "eta must be"),
        (lambda: Sqrt("fast"), "eta must be"),
        (lambda: Polynomial(0.1, power=2.0), "power must be a number above 0 and at most 1; got 2.0"),
        (lambda: L2(-1.0), "alpha must be a number at least 0; got -1.0"),
        (lambda: L2(1.0, "implicit"), "l2 must be one of 'explicit', 'proximal'; got 'implicit'"),
    ],
)
def test_bad_values_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
