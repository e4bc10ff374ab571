"""Despite rounding, bounds contain the exact number, and shares are in [0, 1]. Checked by rational arithmetic."""

import os
from fractions import Fraction

import numpy as np
import pytest

from pairloom.metrics import StreamingAUC, WindowAUC
from pairloom.metrics.alerts import threshold_at
from pairloom.metrics.auc import weighted_auc
from pairloom.metrics.intervals import mean_area

SCORES = {
    "apart": lambda z, y: np.abs(z) + 10.0 * y,
    "the wrong way": lambda z, y: np.abs(z) - 10.0 * y,
    "nearly apart": lambda z, y: np.where(np.arange(len(z)) == 1, 99.0, np.abs(z) + 10.0 * y),
    "ties": lambda z, y: np.round(z + y),
    "all alike": lambda z, y: np.zeros(len(z)),
    "any": lambda z, y: z + y,
}
WEIGHTS = {
    "whole": lambda rng, n: rng.integers(1, 9, n).astype(float),
    "tenths": lambda rng, n: rng.choice([0.1, 0.2, 0.7, 1.0], n),
    "random": lambda rng, n: rng.exponential(size=n),
    "wide": lambda rng, n: 10.0 ** rng.uniform(-300, 300, n),
}
SEEDS = range(8)


def streams(scores, weights, seeds=SEEDS):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 50))
        y = rng.random(n) < 0.4
        y[:2] = [True, False]
        yield y, SCORES[scores](rng.normal(size=n), y), WEIGHTS[weights](rng, n)


def exact_area(y, s, w):
    """Pair by pair, in integers: 2^400 times any weight in use is one."""
    mass = [int(Fraction(weight) * 2**400) for weight in np.clip(w, 1e-100, 1e100).tolist()]
    own, other = ([(float(s[i]), mass[i]) for i in np.flatnonzero(side)] for side in (y, ~y))
    twice = sum(a * b * (2 * (high > low) + (high == low)) for high, a in own for low, b in other)
    return Fraction(twice, 2 * sum(a for _, a in own) * sum(b for _, b in other))


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("scores", SCORES)
def test_the_bounds_of_a_stream_hold_its_exact_area(scores, weights):
    assert_bounds_hold(scores, weights, SEEDS)


def assert_bounds_hold(scores, weights, seeds):
    for y, s, w in streams(scores, weights, seeds):
        exact = exact_area(y, s, w)
        for max_bytes in (168, 672, 100_000):
            auc = StreamingAUC(max_bytes).update(y, s, w)
            low, high = auc.bounds
            assert 0 <= low <= exact <= high <= 1
            assert low <= auc.value <= high
        assert high - low < 1e-12
        if weights == "whole":
            assert high <= np.nextafter(low, 2)
        one, other = (StreamingAUC(672).update(y[k::2], s[k::2], w[k::2]) for k in (0, 1))
        low, high = one.merge(other).bounds
        assert low <= exact <= high


def test_weights_whose_rounded_sums_look_whole_are_not_taken_for_exact():
    """0.1 + 0.2 + 0.7 is 1.0 in doubles, but the exact sum is slightly larger."""
    y, s, w = np.arange(6) > 2, np.array([1.0, 1.0, 1.0, 2.0, 2.0, 0.0]), np.array([0.1, 0.2, 0.7, 0.5, 0.5, 1.0])
    auc = StreamingAUC().update(y, s, w)
    assert auc.bounds[0] <= exact_area(y, s, w) <= auc.bounds[1]
    assert auc.bounds[0] < 0.5 < auc.bounds[1]
    assert StreamingAUC().merge(auc).bounds[0] < 0.5


@pytest.mark.soak
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("scores", SCORES)
def test_the_bounds_of_many_streams_hold_their_exact_areas(scores, weights):
    first = 300 * int(os.environ.get("PAIRLOOM_SOAK_SEED", "0"))
    assert_bounds_hold(scores, weights, range(first, first + 300))


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("scores", SCORES)
def test_all_that_a_window_says_is_a_share(scores, weights):
    for y, s, w in streams(scores, weights):
        auc, exact = WindowAUC(len(y)).update(y, s, w), exact_area(y, s, w)
        assert abs(auc.value - exact) <= 1e-13 * exact
        assert auc.value == 1 or scores != "apart"
        low, high = auc.interval()
        assert 0 <= low <= auc.value <= high <= 1
        shares = [auc.value, auc.average_precision, auc.precision_at(3), *auc.top(0.1), *auc.top(0.97)]
        for share in (*shares, auc.partial(1e-4), auc.partial(0.3), auc.partial(1.0)):
            assert 0 <= share <= 1


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("scores", SCORES)
def test_estimates_lie_between_their_bounds(scores, weights):
    for y, s, w in streams(scores, weights):
        w = np.clip(w, 1e-100, 1e100)
        for cut in np.quantile(s, [0.1, 0.5, 0.97, 1.0]):
            made = threshold_at(cut, y, s, w)
            for value, low, high in (made.precision, made.recall, made.alert_rate):
                assert 0 <= low <= value <= high <= 1 or (np.isnan(value) and (low, high) == (0, 1))
        labels = np.where(y, 2.0, np.arange(len(y)) % 2)
        area = mean_area(np.column_stack([s, -s, s]), labels, w, np.array([2.0, 1.0, 0.0]))
        assert 0 <= area.low <= area.value <= area.high <= 1


def test_a_share_of_next_to_nothing_has_a_lower_bound_of_no_less_than_0():
    made = threshold_at(0.5, np.array([True, False]), np.array([0.9, 0.1]), np.array([1e-20, 1.0]))
    assert made.precision.low >= 0
    assert made.alert_rate.low == 0 < made.alert_rate.value < 1e-19


@pytest.mark.parametrize("positive", [True, False])
def test_one_class_has_no_area(positive):
    y, s, w = np.full(9, positive), np.arange(9.0), 10.0 ** np.linspace(-300, 300, 9)
    streaming, window = StreamingAUC(168).update(y, s, w), WindowAUC(9).update(y, s, w)
    area = mean_area(s[:, None], y.astype(float), np.ones(9), np.ones(1))
    assert np.isnan([streaming.value, *streaming.bounds, window.value, *window.interval(), *area]).all()


def test_a_random_search_once_found_a_bound_above_1():
    y, s, w = np.arange(40) >= 20, np.arange(40.0), np.array([0.1, 3.0, 1.0, 0.1])[np.arange(40) % 4]
    for max_bytes in (168, 672, 100_000):
        low, high = StreamingAUC(max_bytes).update(y, s, w).bounds
        assert low <= 1.0 == high
    assert weighted_auc(s[:, None], y, w)[0] == 1.0
