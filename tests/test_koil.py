"""KOIL: the step against a naive double loop, its invariants, and the compiled loop against the specification."""

import copy
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from pairloom import Stream
from pairloom.base.randomness import generator
from pairloom.features import Gaussian, Identity
from pairloom.features.compiled_kernels import exact_kernel
from pairloom.losses import LOSSES
from pairloom.pairs import OppositeClass
from pairloom.steps import Constant
from pairloom.stream import StabilityWarning
from pairloom.systems import KOIL
from pairloom.systems.koil import Budgeted
from tests.conftest import STREAMS, make_stream
from tests.covering import every_pair
from tests.generic import assert_expansions_agree
from tests.test_multiclass import three_classes

VARIANTS = pytest.mark.parametrize("variant", KOIL.variants.values(), ids=KOIL.variants)
ENGINES = pytest.mark.parametrize("engine", ["reference", "fused"])
GAMMA, ETA, C = 0.2, 0.05, 3.0


def k(a, b):
    return np.exp(-GAMMA * np.square(np.subtract(a, b)).sum())


def make(**changes):
    return Stream(Budgeted(**{
        "kernel": Gaussian(GAMMA), "step": Constant(ETA), "C": C, "policy": "fifo", "budget": 8, "n_neighbors": 3,
        "dtype": "float64", "seed": 0, **changes,
    }))  # fmt: skip


def sides(stream, model=0):
    """The kept examples and coefficients of the rest and of the class of a model, oldest slots first."""
    memory, size = stream.learned.memory, stream.model.budget
    used = [slice(c * size, c * size + min(memory.stored[model, c], size)) for c in (0, 1)]
    return [(memory.supports[model, s], memory.coef[model, s]) for s in used]


def f(buffers, x):
    return sum(a * k(p, x) for points, coef in buffers for p, a in zip(points, coef, strict=True))


class Naive:
    """The paper's step on lists, f by double loops, without caches."""

    def __init__(self, policy, plus_plus, loss, select, C, budget=8, n_neighbors=3):
        self.policy, self.plus_plus, self.loss, self.select, self.C = policy, plus_plus, LOSSES[loss], select, C
        self.budget, self.n_neighbors = budget, n_neighbors
        self.kept, self.seen = {-1: [], 1: []}, {-1: 0.0, 1: 0.0}

    def score(self, x):
        return sum(a * k(p, x) for y in (-1, 1) for p, a in self.kept[y])

    def learn(self, x, y, weight, u):
        eta = ETA * weight
        self.seen[y] += weight
        own, other = self.kept[y], self.kept[-y]
        margin = [y * (self.score(x) - self.score(p)) for p, _ in other]
        near = sorted(range(len(other)), key=lambda i: -k(other[i][0], x))
        if self.select == "neighbours":
            near = near[: self.n_neighbors]
        V = [i for i in near if margin[i] < 1][: self.n_neighbors]
        slope = {i: float(self.loss.derivative(margin[i])) for i in V}
        alpha = -eta * self.C * y * sum(slope.values())
        if not other or (not own and not V):
            alpha = eta * self.C * y
        for side in (own, other):
            side[:] = [(p, (1 - eta) * a) for p, a in side]
        for i in V:
            other[i] = (other[i][0], other[i][1] + eta * self.C * y * slope[i])
        if alpha:
            self.store(own, x, y, alpha, weight, u)

    def store(self, own, x, y, alpha, weight, u):
        if len(own) < self.budget:
            own.append((x, alpha))
            return
        if self.policy == "fifo":
            lost = own.pop(0)
            own.append((x, alpha))
        else:
            place = int(u * max(self.seen[y] / weight, self.budget))
            lost = (x, alpha)
            if place < self.budget:
                lost, own[place] = own[place], lost
        if self.plus_plus:
            c = max(range(len(own)), key=lambda j: k(own[j][0], lost[0]))
            own[c] = (own[c][0], own[c][1] + lost[1])


@VARIANTS
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("select", ["violators", "neighbours"])
def test_it_is_the_naive_loop(variant, loss, select):
    n = 110
    X, y = make_stream("random", n, 3)
    weight = np.random.default_rng(0).choice([0.5, 1.0, 2.0], n)
    naive = Naive(**{"plus_plus": True, **variant}, loss=loss, select=select, C=1.5)
    draws = generator(0).random((n, 1)) if variant["policy"] == "rs" else np.zeros((n, 1))
    expected = []
    for t in range(n):
        expected.append(naive.score(X[t]))
        naive.learn(X[t], int(y[t]), weight[t], draws[t, 0])
    final = [naive.score(x) for x in X]
    for engine in ("reference", "fused"):
        stream = make(**variant, loss=LOSSES[loss], select=select, engine=engine, C=1.5).partial_fit(X, y, weight)
        np.testing.assert_allclose(stream.state.observed["recent"].scores[:n, 0], expected, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(stream.score(X), final, rtol=1e-10, atol=1e-12)
        assert [len(points) for points, _ in sides(stream)] == [8, 8]


@every_pair(
    variant=KOIL.variants, kind=STREAMS, loss=["hinge", "squared_hinge"], select=["violators", "neighbours"],
    kernel=["gaussian", "laplace", "linear"],
)  # fmt: skip
def test_the_compiled_loop_is_the_specification(variant, kind, loss, select, kernel):
    X, y = make_stream(kind, 120, 5)
    parts = {"kernel": exact_kernel(kernel, 0.1), "loss": LOSSES[loss], "select": select, **KOIL.variants[variant]}
    fast = make(**parts)
    if kernel == "linear":
        fast = Stream(replace(fast.model, step=Constant(0.001)))
    truth = Stream(replace(fast.model, engine="reference")).partial_fit(X, y)
    assert_agree(fast.partial_fit(X, y), truth)


assert_agree = partial(assert_expansions_agree, exact=("supports", "stored", "seen"), atol=1e-12)


@VARIANTS
def test_three_classes_weights_and_rules_on_data(variant):
    X, y = three_classes(150, 4)
    weight = np.random.default_rng(1).gamma(1.0, size=150)
    parts = {"kernel": Gaussian("median"), "features": Identity(scale="standard"), "pairs": OppositeClass(3)}
    fast = make(**parts, **variant).partial_fit(X, y, weight)
    truth = Stream(replace(fast.model, engine="reference")).partial_fit(X, y, weight)
    assert_agree(fast, truth)
    assert fast.score(X).shape == (150, 3)


@ENGINES
def test_more_classes_are_one_binary_stream_each(engine):
    X, y = three_classes(200, 4)
    together = make(pairs=OppositeClass(3), engine=engine).partial_fit(X, y)
    for model in range(3):
        alone = make(engine=engine).partial_fit(X, np.where(y == model, 1, -1))
        np.testing.assert_allclose(together.score(X)[:, model], alone.score(X), rtol=1e-12, atol=1e-14)


@VARIANTS
def test_float32_is_close(variant):
    X, y = make_stream("random", 600, 5)
    single, double = (make(dtype=dtype, **variant).partial_fit(X, y) for dtype in ("float32", "float64"))
    np.testing.assert_allclose(single.score(X), double.score(X), atol=1e-4)


def test_f_at_the_supports_is_carried_along():
    X, y = make_stream("random", 20_000, 4)
    stream = make(budget=20, policy="rs").partial_fit(X, y)
    memory = stream.learned.memory
    K = Gaussian()(memory.gamma, memory.supports[0], memory.supports[0])
    np.testing.assert_allclose(memory.gram[0], K, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(memory.values[0], K @ memory.coef[0], rtol=1e-9, atol=1e-11)


def test_slots_that_are_not_in_use_hold_nothing():
    """Otherwise the bits of the state would depend on the chunking."""
    X, y = three_classes(60, 4)
    memory = make(budget=50, pairs=OppositeClass(3)).partial_fit(X, y).learned.memory
    for k in range(3):
        unused = np.concatenate([c * 50 + np.arange(memory.stored[k, c], 50) for c in (0, 1)])
        assert len(unused) > 20
        for values in (
            memory.gram[k, unused],
            memory.gram[k][:, unused],
            memory.values[k, unused],
            memory.coef[k, unused],
        ):
            assert not values.any()


# The paper's invariants.


@ENGINES
@VARIANTS
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_coefficients_have_the_sign_of_their_class(engine, variant, loss):
    X, y = make_stream("random", 150, 3)
    stream = make(engine=engine, loss=LOSSES[loss], **variant)
    for t in range(150):
        stream.partial_fit(X[t : t + 1], y[t : t + 1])
        (_, negative), (_, positive) = sides(stream)
        assert (negative <= 0).all()
        assert (positive >= 0).all()


@ENGINES
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_step_only_shrinks_the_sum_of_the_coefficients(engine, loss):
    """The gradient adds nothing; but the first example of each class enters unconditionally."""
    X, y = make_stream("one_class_first", 60, 3)
    stream = make(budget=100, engine=engine, loss=LOSSES[loss])
    total, both = 0.0, False
    for t in range(60):
        forced = not both and len(set(y[: t + 1])) < 2
        stream.partial_fit(X[t : t + 1], y[t : t + 1])
        new = stream.learned.memory.coef.sum()
        np.testing.assert_allclose(new, (1 - ETA) * total + (ETA * C * y[t] if forced else 0.0), atol=1e-14)
        total, both = new, not forced
    assert both


@ENGINES
@pytest.mark.parametrize("policy", ["fifo", "rs"])
def test_what_plus_plus_does_to_the_function(engine, policy):
    """The class sum is kept, and f moves by 2 alpha^2 (1 - k(x_r, x_c)) in the squared norm of the space."""
    X, y = make_stream("random", 400, 3)
    before = make(policy=policy, engine=engine).partial_fit(X[:200], y[:200])
    moved = 0
    for t in range(200, 400):
        with_, without = copy.deepcopy(before), Stream(replace(before.model, plus_plus=False))
        without.state = copy.deepcopy(before.state)
        row = X[t : t + 1], y[t : t + 1]
        with_.partial_fit(*row)
        without.partial_fit(*row)
        own = int(y[t] > 0)
        lost_mass = sides(with_)[own][1].sum() - sides(without)[own][1].sum()
        if lost_mass == 0:
            before = with_
            continue
        # The lost term: the old support that is gone, shrunk, or the new row itself.
        old_points, old_coef = sides(before)[own]
        gone = [j for j, p in enumerate(old_points) if not (sides(with_)[own][0] == p).all(axis=1).any()]
        x_r = old_points[gone[0]] if gone else X[t]
        if gone:
            np.testing.assert_allclose(lost_mass, (1 - ETA) * old_coef[gone[0]], rtol=1e-12)
        near = [k(x_r, p) for p in sides(with_)[own][0]]
        # ||f_with - (f_without + alpha_r k(x_r, .))||^2, by the Gram matrix of all terms.
        points = np.vstack([*(p for p, _ in sides(with_)), *(p for p, _ in sides(without)), x_r[None]])
        coef = np.concatenate([*(a for _, a in sides(with_)), *(-a for _, a in sides(without)), [-lost_mass]])
        K = np.exp(-GAMMA * np.square(points[:, None] - points).sum(axis=2))
        np.testing.assert_allclose(coef @ K @ coef, 2 * lost_mass**2 * (1 - max(near)), rtol=1e-8, atol=1e-14)
        moved += 1
        before = with_
    assert moved > 20


@ENGINES
def test_with_room_for_all_the_four_forms_coincide(engine):
    X, y = make_stream("random", 150, 3)
    models = [make(budget=150, engine=engine, **variant).partial_fit(X, y) for variant in KOIL.variants.values()]
    for other in models[1:]:
        np.testing.assert_array_equal(other.score(X), models[0].score(X))


@ENGINES
def test_the_cold_start(engine):
    """Rows without a pair enter with eta C y; a row without violators does not enter."""
    X = np.array([[0.0], [0.1], [40.0], [40.0]])
    stream = make(engine=engine, C=30.0).partial_fit(X[:2], [-1, -1])
    a = ETA * 30.0
    np.testing.assert_allclose(sides(stream)[0][1], [-(1 - ETA) * a, -a])
    # Far from all others f = 0: margins are those of f(x_i) < -1, so there is no violator and x enters unconditionally.
    stream.partial_fit(X[2:3], [1])
    np.testing.assert_allclose(sides(stream)[1][1], [a])
    stored = stream.learned.memory.stored.copy()
    stream.partial_fit(X[3:], [1])
    np.testing.assert_array_equal(stream.learned.memory.stored, stored)
    np.testing.assert_allclose(sides(stream)[1][1], [(1 - ETA) * a])
    assert stream.learned.memory.seen.tolist() == [[2.0, 2.0]]


@ENGINES
def test_the_nearest_violators_learn(engine):
    """Of five partners with margins -, the two nearest; with select="neighbours" only those of them that violate."""
    X = np.array([[1.0], [2.0], [3.0], [4.0], [5.0]])
    for select, n, expected in (("violators", 2, [0, 1]), ("neighbours", 2, [0, 1]), ("violators", 9, [0, 1, 2, 3, 4])):
        stream = make(engine=engine, select=select, n_neighbors=n, C=0.1).partial_fit(X, -np.ones(5))
        before = sides(stream)[0][1].copy()
        stream.partial_fit(np.zeros((1, 1)), [1])
        change = sides(stream)[0][1] - (1 - ETA) * before
        np.testing.assert_allclose(change, np.where(np.isin(np.arange(5), expected), -ETA * 0.1, 0.0), atol=1e-15)
        np.testing.assert_allclose(sides(stream)[1][1], [ETA * 0.1 * len(expected)])


@ENGINES
def test_random_replacement_is_a_reservoir_if_every_row_enters(engine):
    """With tiny coefficients all margins are below 1, so every row has violators; then each is kept alike."""
    X = np.arange(24.0)[:, None]
    y = np.where(np.arange(24) % 2, 1, -1)
    seeds, kept = 1500 if engine == "fused" else 150, np.zeros(24)
    for seed in range(seeds):
        stream = make(policy="rs", budget=4, C=1e-6, engine=engine, seed=seed).partial_fit(X, y)
        for points, _ in sides(stream):
            kept[points[:, 0].astype(int)] += 1
    assert kept.sum() == seeds * 8
    np.testing.assert_allclose(kept / seeds, 4 / 12, atol=4.5 * np.sqrt(2 / 9 / seeds))


def test_a_row_is_kept_in_proportion_to_its_weight():
    X, weight = np.arange(7.0)[:, None], np.array([1.0, 1.0, 1.0, 1.0, 2.0, 1.0, 3.0])
    kept = np.zeros(7)
    for seed in range(3000):
        stream = make(policy="rs", budget=3, seed=seed).partial_fit(X, -np.ones(7), weight)
        kept[sides(stream)[0][0][:, 0].astype(int)] += 1
    # The last row has 3 of 10: it is kept with probability 3 * 3 / 10; the one before with 3 / 7 * (1 - 0.9 / 3).
    np.testing.assert_allclose(kept[-2:] / 3000, [3 / 7 * 0.7, 0.9], atol=4 / np.sqrt(4 * 3000))


def test_fifo_keeps_the_newest():
    X = np.arange(24.0)[:, None]
    stream = make(budget=4, C=1e-6).partial_fit(X, np.where(np.arange(24) % 2, 1, -1))
    assert sorted(sides(stream)[0][0][:, 0]) == [16, 18, 20, 22]
    assert sorted(sides(stream)[1][0][:, 0]) == [17, 19, 21, 23]


# Steps that would diverge.


@ENGINES
def test_an_unstable_step_of_the_squared_hinge_is_cut(engine):
    X, y = make_stream("random", 200, 3)
    stream = make(loss=LOSSES["squared_hinge"], C=1e4, engine=engine)
    with pytest.warns(StabilityWarning, match=r"eta=0\.05 is too long"):
        stream.partial_fit(X, y)
    assert np.isfinite(stream.score(X)).all()
    assert np.abs(stream.score(X)).max() < 1e3
    hinge = make(C=1e4, engine=engine).partial_fit(X, y)
    assert np.isfinite(hinge.score(X)).all()


@ENGINES
def test_a_step_that_overflows_is_skipped(engine):
    X, y = make_stream("random", 50, 3)
    stream = make(C=1e200, engine=engine)
    with pytest.warns(StabilityWarning, match="steps were skipped"):
        stream.partial_fit(X, y)
    assert stream.model.terms(stream.learned.memory)[0][1].size == 0
    assert stream.learned.memory.seen.sum() == 50


def test_a_weight_scales_the_step():
    X, y = make_stream("random", 30, 3)
    heavy = make().partial_fit(X, y, np.full(30, 2.0))
    long = make(step=Constant(2 * ETA)).partial_fit(X, y)
    np.testing.assert_allclose(heavy.score(X), long.score(X), rtol=1e-12)
    # A weight so large that the past would vanish.
    model = make().partial_fit(X, y).partial_fit(X[:1], y[:1], [1e3])
    assert np.isfinite(model.score(X)).all()
    rare = make(policy="rs", budget=2).partial_fit(X, y, np.where(np.arange(30) % 2, 1e-300, 1.0))
    assert np.isfinite(rare.score(X)).all()
