"""Budgets and portfolios: the candidates of a race, and their nominal costs."""

from dataclasses import replace

import numpy as np
import pytest

from pairloom import Stream
from pairloom.base.batch import Batch
from pairloom.base.tree import nbytes
from pairloom.features import Compressed, Forest, Identity, Landmarks, RandomFourier
from pairloom.losses import LOSSES
from pairloom.pairs import NO_QUERY, OppositeClass
from pairloom.race import Boosted, Budget, Candidate, Descent, Exact, OneMap, Portfolio, Race, Steps
from pairloom.race.portfolio import pinned
from tests.generic import SMALL


def batch_of(X):
    """Rows of two classes."""
    return Batch(X, np.arange(len(X)) % 2.0, np.ones(len(X)), np.full(len(X), NO_QUERY))


def cost(candidates, d):
    return sum(one.microseconds(d) for one in candidates)


def size(candidates, d, n_classes=2):
    return sum(one.nbytes(d, n_classes) for one in candidates)


# Portfolios.


def test_the_default_candidates_are_few_and_of_different_kinds():
    candidates = Portfolio().candidates(20)
    assert [one.family for one in candidates[:3]] == ["linear", "boosted", "forest, renewed"]
    assert {one.family for one in candidates[3:]} == {"kernel"}
    assert [one.name for one in candidates[3:]] == [f"kernel, width {f:g}, {s}" for s, f in Portfolio().kernels]
    assert [one.refits for one in candidates] == [True, False, False, *[True] * len(Portfolio().kernels)]


def test_names_are_different_even_of_forests_that_grow_alike():
    twins = replace(SMALL, forests=(Forest(8, growth="renewed"), Forest(9, growth="renewed")))
    names = [one.name for one in twins.candidates(3)]
    assert len(set(names)) == len(names)


def test_a_linear_model_of_many_columns_learns_by_steps():
    assert isinstance(Portfolio().candidates(200)[0].head, Exact)
    assert isinstance(Portfolio().candidates(201)[0].head, Descent)
    without = replace(SMALL, exact=None).candidates(5)
    assert isinstance(without[0].head, Descent)
    assert not any(one.family == "kernel" for one in without)


def with_landmarks(features, n):
    """Return the map of a kernel candidate with another number of landmarks."""
    return replace(features, inner=replace(features.inner, n_landmarks=n))


def test_trees_are_not_grown_from_very_many_columns_and_these_are_taken_as_they_are():
    few, many = (Portfolio().candidates(d) for d in (2000, 2001))
    assert {one.family.split(",")[0] for one in few} == {"linear", "boosted", "forest", "kernel"}
    assert {one.family for one in many} == {"linear"}
    earlier = replace(Portfolio(), **Portfolio.added)  # files of versions without max_kernel
    assert "kernel" in {one.family for one in earlier.candidates(2001)}
    assert [one.features for one in many if one.family == "linear"] == [
        Compressed(Identity(scale="wide")), Identity()
    ]  # fmt: skip
    assert len([one for one in few if one.family == "linear"]) == 1
    assert len([one for one in replace(Portfolio(), scale=None).candidates(2001) if one.family == "linear"]) == 1


def test_a_larger_space_only_where_it_is_larger():
    assert all(one.large is None for one in replace(SMALL, large_landmarks=16).candidates(4))
    kernel = SMALL.candidates(4)[-1]
    assert kernel.larger(4) == {32: replace(kernel, features=with_landmarks(kernel.features, 32), large=None)}
    assert SMALL.candidates(4)[0].larger(4) == {}


def test_maps_are_halved_down_to_small_ones():
    assert Forest(100).halved() == Forest(50)
    assert Forest(50).halved() == Forest(25)
    assert Forest(49).halved() is None
    assert Landmarks(64).halved() == Landmarks(32)
    assert Landmarks(63).halved() is None
    assert Identity().halved() is None
    assert Candidate("", "", Identity(), Exact()).smaller() is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("forests", [Forest(8)]), ("forests", (RandomFourier(8),)), ("kernels", (("wide",),)), ("kernels", ["wide"]),
        ("n_landmarks", 0), ("large_landmarks", 1.5), ("max_exact", -1), ("steps", None), ("descent", Exact()),
        ("exact", Steps()),
    ],
)  # fmt: skip
def test_portfolios_refuse_what_cannot_race(name, value):
    with pytest.raises(ValueError, match=name):
        replace(SMALL, **{name: value})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: replace(SMALL, kernels=(("tall", 1.0),)), "scal"),
        (lambda: replace(SMALL, kernels=(("wide", 0.0),)), "factor of a kernel"),
        (lambda: replace(SMALL, scale="tall"), "scal"),
        (lambda: replace(SMALL, gamma="narrow"), "gamma"),
        (lambda: Exact(alphas=()), "alphas must not be empty"),
        (lambda: Steps(etas=()), "etas must not be empty"),
        (lambda: Steps(etas=(0.0,)), "etas"),
        (lambda: Steps(loss="log"), "loss"),
        (lambda: Steps(partners=0), "partners"),
        (lambda: Descent(steps=()), "steps must be pairs"),
        (lambda: Descent(block_rows=5), "block_rows must divide 16"),
    ],
)
def test_parts_refuse_what_cannot_learn(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# Costs of candidates.


@pytest.mark.parametrize("d", [4, 500])
def test_candidates_are_as_large_as_they_say(d):
    rng = np.random.default_rng(0)
    portfolio = Portfolio(kernels=(("wide", 1.0),), max_exact=100, boosted=None)
    for candidate in portfolio.candidates(d):
        model = candidate.model(OppositeClass(), dtype="float32", seed=0)
        state = model.init(d, batch_of(rng.normal(size=(300, d))))
        if isinstance(candidate.features, Forest):  # trees of the largest size
            state.phi.nodes = state.phi.nodes.with_room(most := candidate.features.max_nodes, most)
        # Labels and weights of rows, which are few, are not counted.
        assert candidate.space(d, 2) == pytest.approx(nbytes(state), rel=0.25, abs=8 * 2 * 4096)
        assert candidate.nbytes(d, 2) > candidate.space(d, 2)


@pytest.mark.parametrize("classes", [2, 3])
def test_boosting_is_never_larger_than_it_says(classes):
    """Its arrays grow up to the size of the ring."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 30))
    candidate = next(c for c in replace(SMALL, forests=()).candidates(30) if c.family == "boosted")
    model = candidate.model(OppositeClass(classes), dtype="float32", seed=0)
    stream = Stream(model).partial_fit(X, rng.integers(0, classes, 600))
    assert 0.5 * candidate.space(30, classes) < nbytes(stream.learned) < candidate.space(30, classes)


def test_a_candidate_says_what_more_features_columns_and_models_cost():
    kernel = Portfolio().candidates(20)[-1]
    assert kernel.larger(20)[1024].microseconds(20) > 10 * kernel.microseconds(20)
    assert kernel.microseconds(2000) > kernel.microseconds(20)
    assert replace(kernel, head=Exact((1.0,))).microseconds(20) < kernel.microseconds(20)
    assert kernel.space(20, 2, itemsize=8) > kernel.space(20, 2)
    assert kernel.scores(3) == 3 * kernel.scores(2)


# Budgets.


def test_a_budget_has_a_limit_by_columns_unless_it_is_given():
    assert Budget().limit(100) == 204.0
    assert Budget(microseconds=3).limit(100) == 3


@pytest.mark.parametrize("d", [20, 100, 500])
def test_by_default_everyone_takes_part(d):
    assert Budget().admit(Portfolio().candidates(d), d, 2) == Portfolio().candidates(d)


@pytest.mark.parametrize("microseconds", [1e-3, 3.0, 10.0, 25.0, 40.0, 60.0, 90.0])
@pytest.mark.parametrize("d", [4, 100, 800])
def test_what_is_admitted_is_within_the_limit_in_the_order_of_the_portfolio(microseconds, d):
    budget, all_of_them = Budget(microseconds=microseconds), Portfolio().candidates(d)
    admitted = budget.admit(Portfolio().candidates(d), d, 2)
    names = [one.name for one in all_of_them]
    assert admitted[0] == all_of_them[0]
    places = [names.index(one.name) for one in admitted]
    assert places == sorted(set(places))
    assert len(admitted) == 1 or cost(admitted, d) <= microseconds
    for place, one in zip(places, admitted, strict=True):
        # It is as large as it can be beside those before it.
        before = [other for at, other in zip(places, admitted, strict=True) if at < place]
        larger = all_of_them[place]
        while larger != one:
            assert cost([*before, larger], d) > microseconds
            larger = larger.smaller()
    for place in set(range(len(names))) - set(places):
        before, smallest = [one for at, one in zip(places, admitted, strict=True) if at < place], all_of_them[place]
        while (less := smallest.smaller()) is not None:
            smallest = less
        assert cost([*before, smallest], d) > microseconds


@pytest.mark.parametrize("bytes_", [1, 10**6, 4 * 10**6, 2**23, 2**24])
def test_what_is_admitted_is_within_half_of_the_bytes(bytes_):
    admitted = Budget(bytes=bytes_).admit(Portfolio().candidates(20), 20, 2)
    assert admitted[0] == Portfolio().candidates(20)[0]
    assert len(admitted) == 1 or size(admitted, 20) <= bytes_ // 2


def test_forests_are_halved_before_they_are_left_out():
    linear, boosted, forest = Portfolio().candidates(20)[:3]
    limit = cost([linear, boosted, forest], 20)
    assert Budget(microseconds=limit).admit(Portfolio().candidates(20), 20, 2)[2] == forest
    half = Budget(microseconds=limit - 1e-6).admit(Portfolio().candidates(20), 20, 2)[2]
    assert half == replace(forest, features=replace(forest.features, n_trees=50))


def test_very_many_columns_leave_out_what_would_keep_too_many_dense_rows():
    """A forest that grows keeps rows dense: 4,096 of 47,236 columns are 0.8 GB."""
    d = 47_236
    admitted = Budget().admit(Portfolio().candidates(d), d, 2)
    assert size(admitted, d) <= 2**29
    assert not any(one.features.sparse is not None for one in admitted)
    stream = Stream(Race(seed=0))
    stream.start(d)
    assert stream.nbytes < 2**29
    assert Budget(bytes=2**33).admit(Portfolio().candidates(d), d, 2) == Portfolio().candidates(d)


def test_three_classes_and_float64_need_more_room():
    one = Portfolio().candidates(20)
    budget = Budget(bytes=2 * size(one, 20) + 1)
    assert budget.admit(Portfolio().candidates(20), 20, 2) == one
    assert budget.admit(Portfolio().candidates(20), 20, 3) != one
    assert budget.admit(Portfolio().candidates(20), 20, 2, itemsize=8) != one


def test_first_rows_are_kept_in_a_quarter_of_the_bytes():
    budget = Budget(bytes=4 * 4 * 10 * 768)
    assert [budget.keeps(row, 10) for row in (8, 128, 512, 1024)] == [True, True, True, False]
    assert not budget.keeps(512, 11)
    assert not budget.keeps(512, 10, itemsize=8)


def test_the_largest_space_that_fits_beside_the_others():
    small = Portfolio().candidates(20)
    kernel, others = small[-1], [one for one in small if one.family != "kernel"]
    sizes = {m: replace(kernel, features=with_landmarks(kernel.features, m), large=None) for m in (1024, 512, 256)}
    free = Budget(microseconds=1e6).enlarged(kernel, others, 20, 2)
    assert free == sizes[1024]
    for limit in (*(cost([*others, one], 20) + e for one in sizes.values() for e in (-1e-6, 1e-6)), 1.0):
        fit = [m for m, one in sizes.items() if cost([*others, one], 20) <= limit]
        found = Budget(microseconds=limit).enlarged(kernel, others, 20, 2)
        assert found == (sizes[max(fit)] if fit else None)
    for m, one in sizes.items():
        budget = Budget(bytes=size([*others, one], 20), microseconds=1e6)
        assert budget.enlarged(kernel, others, 20, 2).features.inner.n_landmarks == m
    odd = replace(kernel, large=with_landmarks(kernel.features, 255))
    assert Budget(microseconds=1e6).enlarged(odd, others, 20, 2) is None  # not twice as many


@pytest.mark.parametrize(("name", "value"), [("bytes", 0), ("bytes", 1.5), ("microseconds", 0), ("microseconds", "a")])
def test_budgets_refuse_what_is_none(name, value):
    with pytest.raises(ValueError, match=name):
        Budget(**{name: value})


# Pins.


def test_pins_leave_what_has_the_value():
    default = Portfolio()
    assert pinned(default) is default
    gamma = [one.features.inner.kernel for one in pinned(default, gamma=0.3).candidates(5)[3:]]
    assert {(kernel.gamma, kernel.factor) for kernel in gamma} == {(0.3, 1.0)}
    assert len(gamma) == len({scale for scale, _ in default.kernels})
    scaled = [one for one in pinned(default, scale=None).candidates(5) if one.family in ("linear", "kernel")]
    assert {one.features.inner.scale for one in scaled} == {None}
    names = [one.name for one in scaled[1:]]
    assert names == list(dict.fromkeys(f"kernel, width {factor:g}, None" for _, factor in default.kernels))
    assert pinned(default, max_strata=7).candidates(1000)[0].head.max_strata == 7
    cut = pinned(default, n_components=20).candidates(5)
    assert {one.features.inner.n_landmarks for one in cut[3:]} == {20}
    assert all(one.large is None for one in cut)
    between = pinned(default, n_components=300).candidates(5)[-1]
    assert (between.features.inner.n_landmarks, between.large.inner.n_landmarks) == (128, 300)


def test_a_pinned_map_is_that_of_all():
    fourier = RandomFourier(32)
    one = pinned(replace(Portfolio(), max_exact=31), features=fourier)
    assert isinstance(one, OneMap)
    assert [candidate.head.representative for candidate in one.candidates(5)] == ["centroid", "fifo"]
    assert all(candidate.features is fourier for candidate in one.candidates(5))
    exact = replace(one, max_exact=32).candidates(5)
    assert isinstance(exact[0].head, Exact)
    assert len({candidate.name for candidate in exact}) == 3
    cells = pinned(Portfolio(), features=Forest(9)).candidates(5)
    assert [type(candidate.head) for candidate in cells] == [Steps]


@pytest.mark.parametrize("loss", ["square", "hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("d", [10, 1000])
def test_a_pinned_loss_is_that_of_all(loss, d):
    for candidate in pinned(Portfolio(), loss=loss).candidates(d):
        model = candidate.model(OppositeClass(), dtype="float32", seed=0)
        if isinstance(candidate.head, Exact):
            assert loss == "square"
        elif isinstance(candidate.head, Steps):
            assert model.learner.loss == LOSSES[loss]
        elif isinstance(candidate.head, Boosted):
            assert loss == "logistic"
        else:
            assert {one.loss for one in model.learners} == {LOSSES[loss]}
            assert len({one.step.eta for one in model.learners}) == 3
