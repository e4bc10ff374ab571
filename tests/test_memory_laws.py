"""Reservoir and RS-x: distributions of samples, and variances of gradients, over thousands of seeds."""

import numpy as np
import pytest
from scipy.stats import chi2

from pairloom.memory import Reservoir, RSx, rsx
from tests.conftest import make_stream


def contents(memory, y, seed, weight=None):
    """The row in each slot after the stream, by the plan alone, and the memory's state."""
    n = len(y)
    state = memory.start(1, 1, 2, np.dtype(float), None)
    weight = np.ones(n) if weight is None else weight
    plan = memory.plan(state, np.zeros((n, 1)), y, weight, np.random.default_rng(seed).random((n, memory.draws)))
    rows, new = np.full(len(state.slots.mass), -1), plan.blend == 1
    rows[plan.slot[new]] = np.repeat(np.arange(n), np.diff(plan.start))[new]  # the last write remains
    state.slots.mass[plan.slot] = plan.mass
    return rows, state


def draws_of(memory, T, seed):
    """The rows of an RS-x sample, one for each draw."""
    rows, state = contents(memory, np.zeros(T), seed)
    np.testing.assert_array_equal(np.bincount(state.pointer[0], minlength=memory.size), state.slots.mass)
    return rows[state.pointer[0]]


def fits(hits, expected):
    """Pearson's test: a true law is rejected once in 10,000."""
    return np.square(hits - expected).sum() / expected < chi2.isf(1e-4, hits.size - 1)


@pytest.mark.parametrize("by", ["class", "joint"])
def test_a_reservoir_keeps_every_row_with_probability_size_over_n(by):
    runs, T, size = 2000, 15, 4
    y = (np.arange(T) % 3 == 0).astype(float)
    hits = np.zeros(T)
    for seed in range(runs):
        rows, state = contents(Reservoir(size, by=by), y, seed)
        kept = rows[state.slots.mass > 0]
        assert len(np.unique(kept)) == len(kept)
        hits[kept] += 1
    for own in [y == 0, y == 1] if by == "class" else [y >= 0]:
        probability = min(1, size / own.sum())
        spread = np.sqrt(runs * probability * (1 - probability))
        assert (np.abs(hits[own] - runs * probability) < 4.5 * spread).all()


def test_every_set_of_rows_is_as_likely_in_a_reservoir():
    runs, T, size = 2000, 6, 3
    sets = np.zeros(2**T)
    for seed in range(runs):
        rows, _ = contents(Reservoir(size), np.zeros(T), seed)
        sets[np.sum(2 ** rows[:size])] += 1
    hits = sets[sets > 0]
    assert len(hits) == 20  # 6 over 3
    assert fits(hits, runs / 20)


def joint_table(T, size, runs):
    """How often draws a and b of a sample are rows (i, j), over pairs of draws; the draws' own table."""
    pairs, single = np.zeros((3, T, T)), np.zeros((size, T))
    for seed in range(runs):
        drawn = draws_of(RSx(size), T, seed)
        for k, (a, b) in enumerate([(0, 1), (0, 2), (1, 2)]):
            pairs[k, drawn[a], drawn[b]] += 1
        single[np.arange(size), drawn] += 1
    return pairs, single


RUNS = 2000
LENGTHS = pytest.mark.parametrize("T", [4, pytest.param(5, marks=pytest.mark.soak), 8])


@LENGTHS
def test_draws_of_rsx_are_uniform_and_independent(T):
    runs, size = RUNS, 3
    pairs, single = joint_table(T, size, runs)
    assert all(fits(row, runs / T) for row in single)
    assert all(fits(table.ravel(), runs / T**2) for table in pairs)


@LENGTHS
def test_without_the_repopulation_draws_of_rsx_are_dependent(T, monkeypatch):
    def carry_on(mass, weight, draws):
        return np.where(draws < weight / (mass.sum() + weight), len(mass), np.arange(len(mass)))

    monkeypatch.setattr(rsx, "repopulate", carry_on)
    pairs, _ = joint_table(T, 3, RUNS)
    assert not any(fits(table.ravel(), RUNS / T**2) for table in pairs)


def test_weights_are_multiplicities_in_rsx():
    """Each draw takes row i with probability w_i / W."""
    weight = np.array([3.0, 1.0, 2.0, 0.5, 4.0, 1.5])
    hits = np.zeros(6)
    for seed in range(2000):
        rows, state = contents(RSx(2), np.zeros(6), seed, weight)
        np.add.at(hits, rows[state.pointer[0]], 1)
    expected = 4000 * weight / weight.sum()
    assert np.square(hits - expected).dot(1 / expected) < chi2.isf(1e-4, 5)


@pytest.mark.parametrize(
    "weight", [[3.0, 1.0, 2.0, 0.5, 4.0, 1.5], [1.0, 1.0, 1.0, 30.0, 1.0, 1.0], 2.0 ** np.arange(6)]
)
def test_a_reservoir_estimates_weighted_sums(weight):
    """Horvitz and Thompson: E mass_i = c w_i, c the probability that a row of the start is still there."""
    weight, mass = np.array(weight), np.zeros((2500, 6))
    for seed in range(2500):
        rows, state = contents(Reservoir(3, by="joint"), np.zeros(6), seed, weight)
        mass[seed, rows] = state.slots.mass
    c = np.prod(1 - np.minimum(1, 3 * weight / np.cumsum(weight))[3:] / 3)
    error = mass.std(axis=0) / np.sqrt(2500)
    assert (np.abs(mass.mean(axis=0) - c * weight) < 4.5 * error + 1e-12).all()


# --- gradients at a fixed w


def pair_gradients(seed=3, T=24):
    """Square-loss gradients of one positive against T rows at a fixed w; pairs of equal labels have none."""
    X, y = make_stream("random", T, 3, seed=seed)
    w, z = np.array([0.3, -0.2, 0.5]), np.array([1.0, 0.5, -1.0])
    d = z - X
    return (-2 * (1 - d @ w))[:, None] * d * (y < 0)[:, None], (y > 0).astype(float)


def total_variance(values):
    """The trace of the covariance of a whole population."""
    return np.var(values, axis=0).sum()


def estimates(memory, gradients, y, runs):
    """sum_j p_j grad_j over the slots (those of class 0, if there are slots of each), over seeds."""
    found = np.empty((runs, gradients.shape[1]))
    for seed in range(runs):
        rows, state = contents(memory, y, seed)
        mass = state.slots.mass if memory.joint else state.slots.mass[: memory.size]
        found[seed] = (mass / mass.sum()) @ gradients[rows[: len(mass)]]
    return found


@pytest.mark.parametrize("by", ["class", "joint"])
@pytest.mark.parametrize("kind", [Reservoir, RSx])
def test_gradients_are_unbiased_with_the_exact_variance(kind, by):
    runs, size = 2000, 5
    gradients, y = pair_gradients()
    population = gradients if by == "joint" else gradients[y == 0]
    N = len(population)
    found = estimates(kind(size, by=by), gradients, y, runs)
    error = found.std(axis=0) / np.sqrt(runs)
    assert (np.abs(found.mean(axis=0) - population.mean(axis=0)) < 4.5 * error).all()
    exact = total_variance(population) / size
    if kind is Reservoir:  # without replacement
        exact *= (N - size) / (N - 1)
    assert total_variance(found) == pytest.approx(exact, rel=0.07)
