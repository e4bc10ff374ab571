"""Reservoir, RS-x and the whole history: the engines agree, samples have their laws, gradients their variances."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

from pairloom import Gaussian, Identity, Learner, RandomFourier, StabilityWarning, Strata, Stream
from pairloom.losses import LOSSES
from pairloom.memory import Reservoir, RSx, WholeHistory, rsx
from pairloom.pairs import Difference, OppositeClass
from pairloom.steps import Ball, Constant, Sqrt
from tests.conftest import STREAMS, make_stream

MEMORIES = {
    "reservoir": Reservoir(7),
    "reservoir of one": Reservoir(1),
    "reservoir, joint": Reservoir(12, by="joint"),
    "reservoir, never full": Reservoir(500),
    "rsx": RSx(12),
    "rsx of one": RSx(1),
    "rsx per class": RSx(5, by="class"),
    "rsx, never full": RSx(500, by="class"),
    "history": WholeHistory(300),
    "history, joint": WholeHistory(300, by="joint"),
}


def make(memory, **parts):
    defaults = {"features": RandomFourier(20, Gaussian(0.2)), "step": Constant(0.02), "dtype": "float64", "seed": 4}
    return Learner(memory=memory, **{**defaults, **parts})


def weights_of(kind, n):
    rng = np.random.default_rng(8)
    if kind == "heavy":
        return np.exp(3 * rng.normal(size=n))
    return None if kind == "none" else rng.integers(0, 4, size=n).astype(float)


def learn(learner, X, y, weight=None, cuts=()):
    stream = Stream(learner)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StabilityWarning)
        for rows in np.split(np.arange(len(y)), list(cuts)):
            stream.partial_fit(X[rows], y[rows], None if weight is None else weight[rows])
    return stream


def arrays(state):
    """Everything a memory keeps."""
    slots = state.slots
    own = {name: value for name, value in vars(state).items() if isinstance(value, np.ndarray)}
    return {"points": slots.points, "labels": slots.labels, "mass": slots.mass, **own}


@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("weights", ["none", "counts", "heavy"])
@pytest.mark.parametrize(("dtype", "tol"), [("float64", 1e-10), ("float32", 1e-4)])
def test_engines_agree(kind, weights, dtype, tol):
    X, y = make_stream(kind, 150, 4, seed=1)
    weight = weights_of(weights, 150)
    for name, memory in MEMORIES.items():
        start = make(memory, dtype=dtype, step=Constant(0.002 if weights == "heavy" else 0.02))
        ours = learn(start, X, y, weight).learned
        truth = learn(replace(start, engine="reference"), X, y, weight).learned
        for key, value in arrays(truth.memory).items():
            scale = max(1.0, np.abs(value).max())
            np.testing.assert_allclose(arrays(ours.memory)[key], value, rtol=0, atol=tol * scale, err_msg=name)
        np.testing.assert_array_equal(ours.memory.slots.mass, truth.memory.slots.mass, err_msg=name)
        np.testing.assert_allclose(ours.w, truth.w, rtol=0, atol=tol * max(1.0, np.abs(truth.w).max()), err_msg=name)
        assert np.abs(truth.w).max() > 1e-4


@pytest.mark.parametrize("name", MEMORIES)
@pytest.mark.parametrize("cuts", [[1, 2, 50, 51, 120], range(1, 300)])
@pytest.mark.parametrize("weights", ["none", "heavy"])
def test_the_cut_of_the_stream_changes_no_bit(name, cuts, weights):
    X, y = make_stream("one_class_first", 300, 4)
    weight = weights_of(weights, 300)
    start = make(MEMORIES[name], features=Identity(), step=Constant(1e-4))
    whole, cut = learn(start, X, y, weight), learn(start, X, y, weight, cuts)
    np.testing.assert_array_equal(whole.learned.w, cut.learned.w)
    for key, value in arrays(whole.learned.memory).items():
        np.testing.assert_array_equal(arrays(cut.learned.memory)[key], value)


@pytest.mark.parametrize(
    "memory", [Reservoir(3), RSx(3, by="class"), WholeHistory(200), RSx(9), Reservoir(9, by="joint")]
)
def test_engines_agree_on_several_classes_and_on_labels_that_are_none(memory):
    X, _ = make_stream("random", 200, 4)
    grade = np.random.default_rng(0).integers(0, 4, size=200)
    many = [OppositeClass(4), Difference()] if memory.joint else [OppositeClass(4)]
    for pairs in many:
        start = make(memory, pairs=pairs)
        ours, truth = learn(start, X, grade), learn(replace(start, engine="reference"), X, grade)
        np.testing.assert_allclose(ours.learned.w, truth.learned.w, rtol=0, atol=1e-10)


# --- laws


def contents(memory, y, seed, weight=None):
    """Which row lies in each slot after the stream, by the plan alone, and the memory's state."""
    n = len(y)
    state = memory.start(1, 1, 2, np.dtype(float), None)
    weight = np.ones(n) if weight is None else weight
    plan = memory.plan(state, np.zeros((n, 1)), y, weight, np.random.default_rng(seed).random((n, memory.draws)))
    rows, new = np.full(len(state.slots.mass), -1), plan.blend == 1
    rows[plan.slot[new]] = np.repeat(np.arange(n), np.diff(plan.start))[new]  # the last one written stays
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
    runs, T, size = 6000, 15, 4
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
    runs, T, size = 8000, 6, 3
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


@pytest.mark.parametrize("T", [4, 5, 8])
def test_draws_of_rsx_are_uniform_and_independent(T):
    runs, size = 6000, 3
    pairs, single = joint_table(T, size, runs)
    assert all(fits(row, runs / T) for row in single)
    assert all(fits(table.ravel(), runs / T**2) for table in pairs)


@pytest.mark.parametrize("T", [4, 5, 8])
def test_without_the_repopulation_draws_of_rsx_are_dependent(T, monkeypatch):
    def carry_on(mass, weight, draws):
        return np.where(draws < weight / (mass.sum() + weight), len(mass), np.arange(len(mass)))

    monkeypatch.setattr(rsx, "repopulate", carry_on)
    pairs, _ = joint_table(T, 3, 6000)
    assert not any(fits(table.ravel(), 6000 / T**2) for table in pairs)


def test_weights_are_multiplicities_in_rsx():
    """Each draw takes row i with probability w_i / W."""
    weight = np.array([3.0, 1.0, 2.0, 0.5, 4.0, 1.5])
    hits = np.zeros(6)
    for seed in range(5000):
        rows, state = contents(RSx(2), np.zeros(6), seed, weight)
        np.add.at(hits, rows[state.pointer[0]], 1)
    expected = 10_000 * weight / weight.sum()
    assert np.square(hits - expected).dot(1 / expected) < chi2.isf(1e-4, 5)


@pytest.mark.parametrize(
    "weight", [[3.0, 1.0, 2.0, 0.5, 4.0, 1.5], [1.0, 1.0, 1.0, 30.0, 1.0, 1.0], 2.0 ** np.arange(6)]
)
def test_a_reservoir_estimates_weighted_sums(weight):
    """Horvitz and Thompson: E mass_i = c w_i, c the probability that a row of the start is still there."""
    weight, mass = np.array(weight), np.zeros((8000, 6))
    for seed in range(8000):
        rows, state = contents(Reservoir(3, by="joint"), np.zeros(6), seed, weight)
        mass[seed, rows] = state.slots.mass
    c = np.prod(1 - np.minimum(1, 3 * weight / np.cumsum(weight))[3:] / 3)
    error = mass.std(axis=0) / np.sqrt(8000)
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
    runs, size = 5000, 5
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


# --- systems


def iterates(learner, X, y, weight=None):
    stream, path = Stream(learner), []
    for i in range(len(y)):
        stream.partial_fit(X[i : i + 1], y[i : i + 1], None if weight is None else weight[i : i + 1])
        path.append(stream.learned.w[0].copy())
    return np.array(path)


@pytest.mark.parametrize("engine", ["reference", "fused"])
@pytest.mark.parametrize("loss", LOSSES)
def test_while_all_rows_fit_olp_is_all_pairs_descent(engine, loss):
    """v = (1 / (t - 1)) sum over all earlier rows, steps eta / sqrt(t), written out as a double loop."""
    T, size = 60, 59
    X, y = make_stream("random", T, 4)
    parts = {"features": Identity(), "loss": LOSSES[loss], "penalty": Ball(0.05), "step": Sqrt(0.05)}
    path = iterates(make(RSx(size), engine=engine, **parts), X, y)
    w = np.zeros(4)
    for t in range(T):  # the last row still meets all size rows before it; then the sample is drawn anew
        v = np.zeros(4)
        for i in range(t):
            if y[i] != y[t]:
                d = X[t] - X[i]
                v += y[t] * float(LOSSES[loss].derivative(y[t] * (w @ d))) * d / t
        w = w - 0.05 / np.sqrt(t + 1) * v
        w *= min(1, 0.05 / max(1e-300, np.linalg.norm(w)))
        np.testing.assert_allclose(path[t], w, rtol=0, atol=1e-12)
    assert np.linalg.norm(path, axis=1).max() == pytest.approx(0.05)


@pytest.mark.parametrize("engine", ["reference", "fused"])
@pytest.mark.parametrize("weights", ["none", "counts"])
def test_samples_with_room_for_all_are_the_whole_history(engine, weights):
    X, y = make_stream("one_class_first", 120, 4)
    weight = weights_of(weights, 120)
    for by in ("joint", "class"):
        truth = iterates(make(WholeHistory(120, by=by), engine=engine), X, y, weight)
        for memory in (RSx(120, by=by), Reservoir(120, by=by)):
            path = iterates(make(memory, engine=engine), X, y, weight)
            np.testing.assert_allclose(path, truth, rtol=0, atol=1e-12)
    strata = Strata(eps=-1.0, max_strata=120)
    np.testing.assert_allclose(iterates(make(strata, engine=engine), X, y, weight), truth, rtol=0, atol=1e-12)
    assert np.abs(truth[-1]).max() > 0.01


@pytest.mark.parametrize("engine", ["reference", "fused"])
def test_the_whole_history_refuses_the_row_that_does_not_fit(engine):
    X, y = make_stream("random", 60, 3)
    memory = WholeHistory(50)
    stream = Stream(make(memory, engine=engine)).partial_fit(X[:45], y[:45])
    with pytest.raises(ValueError, match=r"at most max_rows=50: it has 45, so 5 more can come, not 6. .* Strata\(\)"):
        memory.check_room(stream.learned.memory, 6)
    with pytest.raises(ValueError, match="at most max_rows=50: it has 0, so 50 more can come, not 51"):
        memory.check_room(None, 51)
    stream.partial_fit(X[45:50], y[45:50])
    with pytest.raises(ValueError, match="so 0 more can come"):
        stream.partial_fit(X[50:51], y[50:51])
    assert stream.learned.memory.seen[0] == 50


@pytest.mark.parametrize("engine", ["reference", "fused"])
@pytest.mark.parametrize("gamma", [0.2, "median"])
def test_a_refused_call_changes_nothing(engine, gamma):
    """Nor the rows kept while a rule on data is not settled."""
    X, y = make_stream("random", 60, 3)
    start = make(WholeHistory(50), engine=engine, features=RandomFourier(20, Gaussian(gamma)))
    stream = Stream(start).partial_fit(X[:45], y[:45])
    w, t = stream.learned.w.copy(), stream.state.t
    with pytest.raises(ValueError, match="not 15"):
        stream.partial_fit(X[45:], y[45:])
    np.testing.assert_array_equal(stream.learned.w, w)
    assert (stream.state.t, stream.learned.memory.seen[0]) == (t, 45)
    whole = Stream(start).partial_fit(X[:50], y[:50])
    np.testing.assert_array_equal(stream.partial_fit(X[45:50], y[45:50]).learned.w, whole.learned.w)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Reservoir(0), "size must be a whole number of at least 1; got 0"),
        (lambda: Reservoir(by="label"), "by must be one of 'class', 'joint'; got 'label'"),
        (lambda: RSx(2.5), "size must be a whole number of at least 1; got 2.5"),
        (lambda: RSx(by="all"), "by must be one of 'class', 'joint'; got 'all'"),
        (lambda: WholeHistory(0), "max_rows must be a whole number of at least 1; got 0"),
        (lambda: WholeHistory(by="row"), "by must be one of 'class', 'joint'; got 'row'"),
        (lambda: Learner(pairs=Difference(), memory=WholeHistory()), "WholeHistory keeps slots for each class"),
    ],
)
def test_bad_values_are_named(build, message):
    with pytest.raises(ValueError, match=message):
        build()
