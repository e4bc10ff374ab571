import numpy as np
import pytest

from pairloom.losses import LOSSES, Hinge, Logistic, Square, SquaredHinge, loss_slope, loss_terms, loss_value

MARGINS = np.array([-1e6, -30.0, -1.5, -0.3, 0.0, 0.4, 0.999, 1.001, 2.5, 30.0, 1e6])


@pytest.fixture(params=LOSSES.values(), ids=LOSSES.keys())
def loss(request):
    return request.param


def test_values_at_known_points():
    m = np.array([-1.0, 0.0, 1.0, 3.0])
    np.testing.assert_array_equal(Square().value(m), [4, 1, 0, 4])
    np.testing.assert_array_equal(Hinge().value(m), [2, 1, 0, 0])
    np.testing.assert_array_equal(SquaredHinge().value(m), [4, 1, 0, 0])
    np.testing.assert_allclose(Logistic().value(m), np.log1p(np.exp(-m)), rtol=1e-15)


def test_derivative_is_the_slope_of_the_value(loss):
    m, h = MARGINS[np.abs(MARGINS) < 100], 1e-6
    slope = (loss.value(m + h) - loss.value(m - h)) / (2 * h)
    np.testing.assert_allclose(loss.derivative(m), slope, rtol=1e-6, atol=1e-6)


def test_compiled_equals_numpy(loss):
    # 1e-15 relative: the compiled code may fuse a multiply and an add.
    for m in MARGINS:
        assert loss_value(loss.code, m) == pytest.approx(float(loss.value(m)), rel=1e-15)
        assert loss_slope(loss.code, m) == pytest.approx(float(loss.derivative(m)), rel=1e-15)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_many_margins_at_once(loss, dtype):
    m = np.concatenate([MARGINS, np.linspace(-750, 750, 3001), np.linspace(-3, 3, 601)]).astype(dtype)
    value, slope = np.empty_like(m), np.empty_like(m)
    loss_terms(loss.code, m, value, slope)
    # exp(-m) is m times as uncertain as m itself; underflow counts as 0.
    known, least = np.finfo(dtype).eps * (4 + np.abs(m)), {"float32": 1e-37, "float64": 1e-300}[dtype]
    for ours, truth in ((value, loss.value(m.astype(float))), (slope, loss.derivative(m.astype(float)))):
        assert (np.abs(ours - truth) <= known * np.abs(truth) + least).all()


def test_a_loss_without_a_loop_of_its_own_is_taken_margin_by_margin():
    value, slope = np.empty(3), np.empty(3)
    loss_terms(99, np.array([-1.0, 0.0, 2.0]), value, slope)
    assert slope.tolist() == [loss_slope(99, m) for m in (-1.0, 0.0, 2.0)]
    assert value.tolist() == [loss_value(99, m) for m in (-1.0, 0.0, 2.0)]


def test_stable_at_huge_margins(loss):
    with np.errstate(all="raise", under="ignore"):
        value, slope = loss.value(MARGINS), loss.derivative(MARGINS)
    assert np.isfinite(value).all()
    assert np.isfinite(slope).all()
    assert (value >= 0).all()


def test_logistic_at_huge_margins():
    assert Logistic().value(np.array(-1e6)) == 1e6
    assert Logistic().derivative(np.array(-1e6)) == -1.0
    assert Logistic().derivative(np.array(1e6)) == 0.0


def test_smoothness_bounds_the_change_of_the_derivative(loss):
    m = np.linspace(-4, 4, 4001)
    steepest = np.abs(np.diff(loss.derivative(m)) / np.diff(m)).max()
    if np.isinf(loss.smoothness):
        assert steepest > 100
    else:
        assert steepest <= loss.smoothness * (1 + 1e-9)
        assert steepest >= loss.smoothness * (1 - 1e-3)


def test_hinge_takes_zero_at_its_kink():
    assert Hinge().derivative(np.array(1.0)) == 0.0
    assert loss_slope(Hinge.code, 1.0) == 0.0
