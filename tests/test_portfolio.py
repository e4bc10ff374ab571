"""Budgets, portfolios and pins: what takes part in a race."""

from dataclasses import replace

import numpy as np
import pytest

from pairloom import Identity, RandomFourier
from pairloom.base.batch import Batch
from pairloom.base.tree import nbytes
from pairloom.losses import LOSSES
from pairloom.pairs import NO_QUERY, OppositeClass
from pairloom.race import Budget, Candidate, Descent, Exact, OneMap, Portfolio, pinned
from pairloom.race.budget import largest_first
from tests.test_race import SMALL


def batch_of(X):
    """Rows of one class."""
    return Batch(X, np.zeros(len(X)), np.ones(len(X)), np.full(len(X), NO_QUERY))


def test_budgets_bound_time_and_memory():
    assert Budget().limit(100) == 57.0
    assert Budget(microseconds=3).limit(100) == 3
    assert Budget().sized(Portfolio(), 20, 2) == Portfolio()
    slow = Budget(microseconds=5.0).sized(Portfolio(), 20, 2)
    assert slow.n_components < 8192
    assert min(c.microseconds(20) for c in slow.finalists("wide", 1.0)) <= 5.0
    small = Budget(bytes=2**22).sized(Portfolio(), 20, 2)
    assert sum(c.space(20, 2) for c in small.finalists("wide", 1.0)) <= 2**22
    assert small.n_components < 8192
    least = Budget(bytes=1).sized(Portfolio(), 20, 2)
    assert least.n_components == 128
    assert Budget(bytes=1).sized(SMALL, 20, 2) == SMALL
    odd = replace(SMALL, n_components=130, rank=1, exact_rank=1, whitening=(1, 1), n_landmarks=(1, 1))
    for candidate in Budget(bytes=1).sized(odd, 20, 2).finalists("wide", 1.0):
        assert candidate.learner(OppositeClass(), seed=0).init(20, batch_of(np.eye(20))).t == 0


def test_kept_rows_are_a_power_of_two_in_a_quarter_of_the_memory():
    assert Budget().warm_rows(Portfolio(), 20) == Portfolio().warm_rows == 2048
    assert Budget(bytes=16 * 20 * 1000).warm_rows(Portfolio(), 20) == 512
    assert Budget(bytes=1).warm_rows(Portfolio(), 20) == 256
    assert replace(SMALL, n_landmarks=(64, 1500)).warm_rows == 2048


def test_admitted_are_those_that_fit_in_order():
    candidates = SMALL.finalists("wide", 1.0)
    need = [c.nbytes(4, 2) for c in candidates]
    assert Budget().admit(candidates, 4, 2) == candidates
    assert Budget(bytes=1).admit(candidates, 4, 2) == candidates[:1]
    assert Budget(bytes=need[0] + need[1]).admit(candidates, 4, 2) == candidates[:2]
    assert Budget(bytes=4 * (need[0] + need[2])).admit(candidates, 4, 2, share=0.25) == [candidates[0], candidates[2]]
    cheap = Budget(microseconds=candidates[2].microseconds(4) / 4)
    assert cheap.admit(candidates, 4, 2) == candidates[:3]
    assert Budget().admit([], 4, 2) == []
    room = Budget(bytes=2 * sum(need))
    assert room.admit(candidates, 4, 2, held=candidates) == candidates
    assert room.admit(candidates, 4, 2, held=[*candidates, candidates[0]]) == candidates[:3]
    assert candidates[0].space(4, 2, itemsize=8) == 2 * candidates[0].space(4, 2)


def test_very_many_columns_leave_room_for_maps_in_the_making():
    d, budget = 47_236, Budget()
    scouts = Portfolio().scouts(d)[1:6]
    finalists = budget.sized(Portfolio(), d, 2).finalists("wide", 1.0)
    admitted = budget.admit(finalists, d, 2, held=scouts)
    assert 1 < len(admitted) < len(finalists)
    total = sum(one.nbytes(d, 2) for one in [*scouts, *admitted])
    assert total <= budget.bytes
    ordered = largest_first(admitted, d)
    assert total + ordered[-1].features.fixing(d) <= 1.125 * budget.bytes
    assert ordered[0].features.fixing(d) == max(one.features.fixing(d) for one in admitted)


def test_candidates_are_as_large_as_they_say():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 500))
    for candidate in [*Portfolio().scouts(500)[:2], *replace(SMALL, n_components=512).finalists("wide", 1.0)]:
        state = candidate.learner(OppositeClass(), seed=0).init(500, batch_of(X))
        assert candidate.space(500, 2) == pytest.approx(nbytes(state), rel=0.25)


def test_the_first_scout_is_exact_only_where_its_moments_fit():
    assert Budget().exact(Portfolio(), 2) == Portfolio()
    few = Budget(bytes=8 * 2 * 20**2).exact(Portfolio(), 2)
    assert isinstance(few.scouts(20)[0].head, Exact)
    assert isinstance(few.scouts(21)[0].head, Descent)
    with pytest.raises(ValueError, match="max_bytes"):
        Candidate("", Identity(), Exact()).learner(OppositeClass(), max_bytes=100, seed=0).init(20, None)


@pytest.mark.parametrize(("name", "value"), [("bytes", 0), ("bytes", 1.5), ("microseconds", 0), ("microseconds", "a")])
def test_budgets_refuse_what_is_none(name, value):
    with pytest.raises(ValueError, match=name):
        Budget(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"), [("n_landmarks", ()), ("whitening", (1,)), ("widths", ()), ("near_widths", ()), ("scales", ())]
)
def test_portfolios_refuse_what_cannot_race(name, value):
    with pytest.raises(ValueError, match=name):
        replace(SMALL, **{name: value})


def test_pins_leave_what_has_the_value():
    default = Portfolio()
    assert pinned(default) is default
    gamma = pinned(default, gamma=0.3)
    assert {c.features.kernel.gamma for c in gamma.scouts(5)[1:]} == {0.3}
    assert {c.factor for c in [*gamma.scouts(5)[1:], *gamma.finalists("wide", 1.0)]} == {1.0}
    assert {c.features.scale for c in pinned(default, scale=None).scouts(5)} == {None}
    strata = pinned(default, max_strata=7)
    assert {c.head.max_strata for c in strata.finalists("wide", 1.0) if isinstance(c.head, Descent)} == {7}
    cut = pinned(default, n_components=20)
    assert max(c.features.n_outputs(5) for c in [*cut.scouts(5), *cut.finalists("wide", 1.0)]) == 20
    fourier = RandomFourier(32)
    one = pinned(replace(default, max_exact=31), features=fourier)
    assert isinstance(one, OneMap)
    assert [c.head.representative for c in one.scouts(5)] == ["centroid", "fifo"]
    assert all(c.features is fourier for c in one.scouts(5))
    assert isinstance(replace(one, max_exact=32).scouts(5)[0].head, Exact)
    assert one.finalists(None, 1.0) == []


@pytest.mark.parametrize("loss", ["square", "hinge", "squared_hinge", "logistic"])
def test_a_pinned_loss_is_that_of_all(loss):
    portfolio = pinned(Portfolio(), loss=loss)
    for candidate in [*portfolio.scouts(1000), *portfolio.finalists("wide", 1.0)]:
        if isinstance(candidate.head, Exact):
            assert loss == "square"
        else:
            learners = candidate.learner(OppositeClass(), seed=0).learners
            assert {one.loss for one in learners} == {LOSSES[loss]}
            assert len({one.step.eta for one in learners}) == 3
