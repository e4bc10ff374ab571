"""Strata(allocation="neyman"): more slots where n_j sigma_j is large, the same p_j, less variance."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

from pairloom import Learner, Stream
from pairloom.features import Gaussian, Identity, RandomFourier
from pairloom.memory import Strata
from pairloom.memory.allocation import REALLOCATION_ROWS, Seats, allocate, reallocate
from pairloom.pairs import OppositeClass
from pairloom.steps import Constant
from pairloom.stream import StabilityWarning
from tests.conftest import STREAMS, make_stream
from tests.covering import Configurations

OPTIONS = {
    "stream": list(STREAMS),
    "eps": ["auto", 0.0, 0.3, 2.0, np.inf, -1.0],
    "max_strata": [1, 3, 8],
    "extra": [None, 0, 1, 9],
    "representative": ["fifo", "reservoir"],
    "centroid_step": [0.05, 1.0, "mean"],
    "by": ["class", "joint"],
    "cluster_in": ["features", "input"],
    "features": ["linear", "fourier"],
    "weights": [False, True],
}
FEATURES = {"linear": Identity(), "fourier": RandomFourier(24, Gaussian(0.2))}


def make(config, **parts):
    names = ("eps", "max_strata", "representative", "centroid_step", "by", "cluster_in")
    memory = Strata(
        **{name: config[name] for name in names},
        normalization="class" if config["by"] == "class" else "history",
        allocation="neyman",
        slots=None if config["extra"] is None else config["max_strata"] + config["extra"],
    )
    return Learner(memory=memory, features=FEATURES[config["features"]], step=Constant(0.005), seed=2, **parts)


def rows(config, n):
    X, y = make_stream(config["stream"], n, 4, seed=5)
    weight = np.random.default_rng(6).integers(0, 4, size=n) + 0.5 * (np.arange(n) % 2)
    return X, y, weight if config["weights"] else np.ones(n)


def learn(learner, X, y, weight, cuts=()):
    stream = Stream(learner)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StabilityWarning)
        for part in np.split(np.arange(len(y)), list(cuts)):
            stream.partial_fit(X[part], y[part], weight[part])
    return stream.learned


def assert_sound(memory, state):
    """Slots weigh what their strata count; every stratum has a seat; a slot belongs to one stratum."""
    seats, size = state.seats, memory.n_slots
    for g in range(len(seats.rows)):
        owner, slot = seats.owner[g], seats.slot[g]
        mass = state.slots.mass[g * size : (g + 1) * size]
        first = g * memory.max_strata
        for j in range(first, first + state.used[g]):
            assert (owner == j).any()
            own = np.unique(slot[(owner == j) & (slot >= 0)])
            assert mass[own].sum() == pytest.approx(seats.count[j], rel=1e-12)
            assert not np.isin(own, slot[owner != j]).any()
        assert mass.sum() == pytest.approx(seats.count[first : first + memory.max_strata].sum(), rel=1e-12)
        np.testing.assert_array_equal(mass > 0, np.isin(np.arange(size), slot))


@pytest.mark.parametrize(("dtype", "tol"), [("float64", 1e-10), ("float32", 1e-4)])
@pytest.mark.parametrize("seed", range(2))
def test_engines_agree(seed, dtype, tol):
    for config in Configurations(OPTIONS).draws(12, seed):
        data = rows(config, 700)
        start = make(config, dtype=dtype)
        ours, truth = learn(start, *data), learn(replace(start, engine="reference"), *data)
        for key, value in vars(truth.memory.seats).items():
            np.testing.assert_array_equal(getattr(ours.memory.seats, key), value, err_msg=f"{key} {config}")
        np.testing.assert_array_equal(ours.memory.slots.mass, truth.memory.slots.mass)
        np.testing.assert_array_equal(ours.memory.slots.labels, truth.memory.slots.labels)
        for a, b in ((ours.memory.slots.points, truth.memory.slots.points), (ours.w, truth.w)):
            np.testing.assert_allclose(a, b, rtol=0, atol=tol * max(1.0, np.abs(b).max()))
        assert_sound(start.memory, ours.memory)


@pytest.mark.parametrize("representative", ["fifo", "reservoir"])
@pytest.mark.parametrize("cuts", [[1, 2, 255, 256, 257, 700]])
def test_the_cut_of_the_stream_changes_no_bit(representative, cuts):
    X, y = make_stream("one_class_first", 800, 4)
    memory = Strata(eps=0.5, max_strata=5, representative=representative, allocation="neyman")
    start = Learner(memory=memory, features=FEATURES["fourier"], step=Constant(0.01), seed=0)
    whole, cut = learn(start, X, y, np.ones(800)), learn(start, X, y, np.ones(800), cuts)
    np.testing.assert_array_equal(whole.w, cut.w)
    np.testing.assert_array_equal(whole.memory.slots.points, cut.memory.slots.points)
    np.testing.assert_array_equal(whole.memory.slots.mass, cut.memory.slots.mass)
    for key, value in vars(whole.memory.seats).items():
        np.testing.assert_array_equal(getattr(cut.memory.seats, key), value)


def test_several_classes():
    X, _ = make_stream("random", 1500, 4)
    y = np.random.default_rng(0).integers(0, 3, size=1500)
    memory = Strata(eps=1.0, max_strata=3, representative="reservoir", allocation="neyman")
    start = Learner(
        memory=memory, pairs=OppositeClass(3), features=Identity(), step=Constant(1e-4), dtype="float64", seed=0
    )
    ours = learn(start, X, y, np.ones(1500))
    truth = learn(replace(start, engine="reference"), X, y, np.ones(1500))
    np.testing.assert_allclose(ours.w, truth.w, rtol=0, atol=1e-10)
    assert_sound(memory, ours.memory)
    np.testing.assert_array_equal(ours.memory.seats.rows, np.bincount(y))


def test_one_slot_for_each_is_the_equal_allocation():
    X, y = make_stream("random", 600, 4)
    for representative in ("fifo", "reservoir"):
        equal = Strata(eps=np.inf, max_strata=1, representative=representative)
        one = replace(equal, allocation="neyman", slots=1)
        start = Learner(memory=equal, features=FEATURES["fourier"], step=Constant(0.01), seed=0)
        a, b = learn(start, X, y, np.ones(600)), learn(replace(start, memory=one), X, y, np.ones(600))
        np.testing.assert_array_equal(a.w, b.w)


def test_the_greedy_rule_comes_close_to_the_least_variance():
    """sum_j need_j^2 / m_j, against all other allocations; the best greedy rule divides by sqrt(m (m + 1))."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        need = rng.exponential(size=3) * rng.integers(0, 3, size=3)
        m = allocate(need, 9, 1e-10)
        others = [(a, b, 9 - a - b) for a in range(1, 8) for b in range(1, 9 - a)]
        best = min(np.square(need) @ (1 / np.array(other)) for other in others)
        assert np.square(need) @ (1 / m) <= 1.15 * best
        assert m.sum() == (9 if need.any() else 3)
        assert (m[need == 0] == 1).all()
    np.testing.assert_array_equal(allocate(np.array([1.0, 1.0 + 1e-12, 1.0 - 1e-12]), 4, 1e-10), [2, 1, 1])


# --- a stream with a narrow and a wide stratum


def two_clusters(T, seed=0):
    """Negatives around (-4, 0), narrow, and around (4, 0), wide: with eps=9, two strata founded by the first rows."""
    rng = np.random.default_rng(seed)
    wide = rng.random(T) < 0.5
    wide[:2] = False, True
    X = np.where(wide, 4.0, -4.0)[:, None] * [1.0, 0.0] + np.where(wide, 1.0, 0.05)[:, None] * rng.uniform(
        -1, 1, size=(T, 2)
    )
    return X, wide.astype(int)


def seats_of(memory, X, seed):
    """The row in each slot (-1: none yet) and the state, by the plan alone; all rows in one clustering."""
    T = len(X)
    state = memory.start(1, X.shape[1], 1, np.dtype(float), None)
    draws = np.random.default_rng(seed).random((T, memory.draws))
    plan = memory.plan(state, X, np.zeros(T), np.ones(T), draws)
    held, new = np.full(memory.n_slots, -1), plan.blend == 1
    held[plan.slot[new]] = np.repeat(np.arange(T), np.diff(plan.start))[new]  # the last write remains
    state.slots.mass[plan.slot] = plan.mass
    return held, state


def memory_of(representative):
    rules = {"representative": representative, "centroid_step": "mean", "allocation": "neyman"}
    return Strata(eps=9.0, max_strata=2, slots=6, **rules)


@pytest.mark.parametrize("representative", ["fifo", "reservoir"])
def test_the_wide_stratum_gets_the_slots(representative):
    X, stratum = two_clusters(3 * REALLOCATION_ROWS)
    for T in (2, REALLOCATION_ROWS - 1, REALLOCATION_ROWS, REALLOCATION_ROWS + 20, 3 * REALLOCATION_ROWS):
        memory = memory_of(representative)
        _, state = seats_of(memory, X[:T], seed=1)
        assert_sound(memory, state)
        owned = [(state.seats.owner[0] == j).sum() for j in (0, 1)]
        assert owned == ([1, 1] if T < REALLOCATION_ROWS else [1, 5])
        np.testing.assert_array_equal(state.seats.count, np.bincount(stratum[:T]))


def test_slots_go_by_count_times_deviation():
    """Strata of 60, 30 and 10 percent of the rows, the rarest the widest; m_j as a hand-written greedy rule gives."""
    rng = np.random.default_rng(0)
    stratum = np.concatenate([[0, 1, 2], rng.choice(3, size=4 * REALLOCATION_ROWS - 3, p=[0.6, 0.3, 0.1])])
    X = 20.0 * stratum[:, None] + np.array([0.5, 1.5, 4.0])[stratum, None] * rng.uniform(
        -1, 1, size=(4 * REALLOCATION_ROWS, 1)
    )
    memory = replace(memory_of("reservoir"), eps=100.0, max_strata=3, slots=12)
    _, state = seats_of(memory, X, seed=0)
    need = [len(X[stratum == j]) * X[stratum == j].std() for j in range(3)]
    m = [1, 1, 1]
    while sum(m) < 12:
        m[int(np.argmax([need[j] / m[j] for j in range(3)]))] += 1
    assert np.bincount(state.seats.owner[0]).tolist() == m


def test_opened_seats_copy_the_others_in_turn():
    seats = Seats.empty(1, 1, 4)
    seats.count[0], seats.owner[0, :2], seats.slot[0, :2] = 10.0, 0, [2, 3]
    mass = reallocate(seats, 0, slice(0, 1), np.ones(1), np.zeros(1), 1e-10, queue=False)
    assert mass.tolist() == [0, 0, 5, 5]


def test_a_queue_holds_the_newest_members():
    X, stratum = two_clusters(REALLOCATION_ROWS + 60)
    for T in (REALLOCATION_ROWS - 1, REALLOCATION_ROWS, REALLOCATION_ROWS + 3, REALLOCATION_ROWS + 60):
        held, state = seats_of(memory_of("fifo"), X[:T], seed=0)
        later = np.flatnonzero(stratum[REALLOCATION_ROWS:T] == 1) + REALLOCATION_ROWS
        last = (
            np.flatnonzero(stratum[:REALLOCATION_ROWS] == 1)[-1:]
            if T >= REALLOCATION_ROWS
            else np.flatnonzero(stratum[:T] == 1)[-1:]
        )
        expected = np.concatenate([last, later])[-5:]
        mine = (state.seats.owner[0] == 1) & (state.seats.slot[0] >= 0)
        assert sorted(held[state.seats.slot[0][mine]]) == expected.tolist()


def test_seats_are_handed_over_when_the_spread_changes_and_when_a_stratum_is_founded():
    """First a single stratum has all seats, then a second one gets a seat, then the wider one gets most."""
    rng = np.random.default_rng(0)
    for representative in ("fifo", "reservoir"):
        X = np.concatenate(
            [
                rng.uniform(-0.5, 0.5, size=(REALLOCATION_ROWS, 1)),
                [[10.0]],
                rng.uniform(8, 12, size=(3 * REALLOCATION_ROWS, 1)),
            ]
        )
        memory = memory_of(representative)
        owned = []
        for T in (REALLOCATION_ROWS, REALLOCATION_ROWS + 1, 4 * REALLOCATION_ROWS):
            _, state = seats_of(memory, X[:T], seed=0)
            assert_sound(memory, state)
            owned.append([int((state.seats.owner[0] == j).sum()) for j in (0, 1)])
        assert owned == [[6, 0], [5, 1], [1, 5]]


# --- laws


RUNS = 3000


def pair_gradient(X):
    """Of the square loss, for one positive at a fixed w."""
    w, z = np.array([0.2, -0.3]), np.array([1.0, 2.0])
    d = z - X
    return (-2 * (1 - d @ w))[:, None] * d


def seats_over_seeds(X, runs):
    """Owners of the 6 seats, which do not depend on the draws; the rows in them; v by the masses of the slots."""
    found, v = np.empty((runs, 6), np.int64), np.empty((runs, 2))
    f = pair_gradient(X)
    for seed in range(runs):
        held, state = seats_of(memory_of("reservoir"), X, seed)
        found[seed] = held[state.seats.slot[0]]
        v[seed] = state.slots.mass @ f[held] / len(X)
    return state.seats.owner[0], found, v


@pytest.fixture(scope="module")
def drawn():
    """After 640 rows."""
    X, stratum = two_clusters(640)
    return X, stratum, *seats_over_seeds(X, RUNS)


def test_every_seat_is_uniform_on_its_stratum(drawn):
    _, stratum, owner, found, _ = drawn
    for seat in range(6):
        members = np.flatnonzero(stratum == owner[seat])
        assert np.isin(found[:, seat], members).all()
        # Twenty runs of members in order of arrival: a wrong probability favours old or new members.
        bins = np.searchsorted(members, found[:, seat]) * 20 // len(members)
        expected = RUNS * np.bincount(np.arange(len(members)) * 20 // len(members)) / len(members)
        assert np.square(np.bincount(bins, minlength=20) - expected).dot(1 / expected) < chi2.isf(1e-4, 19)


def test_seats_are_independent_but_for_the_copies_that_are_left(drawn):
    """Two seats of a stratum, one opened as a copy at n0: Cov = (n0 / n)^2 Var of the first n0 members."""
    X, stratum, owner, found, _ = drawn
    members, f = np.flatnonzero(stratum == 1), pair_gradient(X)
    n0 = np.count_nonzero(members < REALLOCATION_ROWS)
    shared = (n0 / len(members)) ** 2 * np.var(f[members[:n0]], axis=0).sum()
    a, b = np.flatnonzero(owner == 1)[[1, 3]]
    for left, right in ((a, b), (np.flatnonzero(owner == 1)[0], b)):
        F, G = f[found[:, left]], f[found[:, right]]
        covariance = ((F - F.mean(axis=0)) * (G - G.mean(axis=0))).sum(axis=1)
        assert abs(covariance.mean() - shared) < 4.5 * covariance.std() / np.sqrt(RUNS)


def test_gradients_are_unbiased_with_the_exact_variance(drawn):
    """sum_j p_j^2 Var_j / m_j, and the copies' covariance as above; with m_j = 1 it is more than four times as much."""
    X, stratum, owner, _, v = drawn
    f, p = pair_gradient(X), np.bincount(stratum) / len(stratum)
    assert (np.abs(v.mean(axis=0) - f.mean(axis=0)) < 4.5 * v.std(axis=0) / np.sqrt(RUNS)).all()

    within = np.array([np.var(f[stratum == j], axis=0).sum() for j in (0, 1)])
    m = np.bincount(owner)
    independent = p**2 * within / m
    members = np.flatnonzero(stratum == 1)
    n0 = np.count_nonzero(members < REALLOCATION_ROWS)
    copies = p[1] ** 2 * (1 - 1 / m[1]) * (n0 / len(members)) ** 2 * np.var(f[members[:n0]], axis=0).sum()
    measured = np.var(v, axis=0).sum()
    assert measured == pytest.approx(independent.sum() + copies, rel=0.08)
    assert measured < 0.5 * (p**2 @ within)  # one seat each


def test_the_copies_decorrelate_and_neyman_beats_six_equal_slots():
    """After 20 allocations the variance is sum_j p_j^2 Var_j / m_j, below that of three slots for each stratum."""
    X, stratum = two_clusters(20 * REALLOCATION_ROWS)
    f, p = pair_gradient(X), np.bincount(stratum) / len(stratum)
    owner, _, v = seats_over_seeds(X, 600)
    within = np.array([np.var(f[stratum == j], axis=0).sum() for j in (0, 1)])
    measured = np.var(v, axis=0).sum()
    assert measured == pytest.approx(p**2 @ (within / np.bincount(owner)), rel=0.15)
    assert measured < 0.75 * (p**2 @ (within / 3))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"allocation": "optimal"}, "allocation must be one of 'equal', 'neyman'; got 'optimal'"),
        ({"slots": 32}, "slots=32 is for allocation='neyman': equal strata have one slot each"),
        ({"allocation": "neyman", "slots": 15}, "slots must be at least max_strata=16; got 15"),
        ({"allocation": "neyman", "slots": 20.5}, "slots must be an integer >= 1; got 20.5"),
        ({"allocation": "neyman", "representative": "centroid"}, "a centroid has no sampling variance"),
    ],
)
def test_bad_values_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        Strata(**changes)


def test_default_slots():
    assert Strata(allocation="neyman", max_strata=5).n_slots == 10
    assert Strata(allocation="neyman", max_strata=5, slots=7, representative="reservoir").draws == 7
    assert Strata(max_strata=5, representative="reservoir").draws == 1
