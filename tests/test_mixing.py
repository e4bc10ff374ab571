"""Which models are mixed, given their areas in windows."""

from itertools import combinations

import numpy as np
import pytest

from pairloom.race.mixing import LARGEST, SETTLED, Price, affordable, grown, pruned

RNG = np.random.default_rng(0)
SUBSETS = [subset for size in range(1, 7) for subset in combinations(range(6), size)]
LUCK = {subset: RNG.normal(0, 0.01, size=8) for subset in SUBSETS}


def areas(gain):
    """In eight windows: 0.8 and what each member adds, with a little luck."""

    def found(models):
        return 0.8 + sum(gain[model] for model in models) + LUCK[tuple(sorted(models))]

    return found


def test_a_mixture_grows_by_what_helps_most_and_stops():
    assert grown(areas([0.0, 0.05, 0.09, -0.1, -0.1, -0.1]), range(6)) == [0, 2, 1]
    assert grown(areas([0.0, -0.1, -0.1, -0.1, -0.1, -0.1]), range(6)) == [0]
    assert len(grown(areas([0.03] * 6), range(6))) == LARGEST
    assert grown(areas([0.03] * 6), [4]) == [4]
    assert grown(lambda models: np.zeros(0), range(6)) == [0]  # no evidence at all


def priced(*costs, sizes=None):
    return {k: Price(cost, sizes[k] if sizes else 8) for k, cost in enumerate(costs)}


@pytest.mark.parametrize("limit", [1.0, 2.5, 4.0, 7.0])
def test_the_best_mixture_that_the_budget_can_afford_is_around_the_best_model(limit):
    costs, found = [1.0, 2.0, 3.0, 1.5, 0.5, 6.0], areas([0.02, 0.01, 0.06, -0.02, 0.0, 0.09])
    mixture = affordable(found, priced(*costs), limit)
    fits = [one for one in SUBSETS if len(one) <= SETTLED and sum(costs[k] for k in one) <= limit]
    best = max((one for one in fits if len(one) == 1), key=lambda one: found(one).sum())[0]
    assert mixture[0] == best
    assert found(mixture).mean() == max(found(one).mean() for one in fits if best in one)


def test_of_equals_the_largest_space_is_taken():
    plan = {(0,): [0.9, 0.8, 0.9, 0.8], (1,): [0.8, 0.9, 0.8, 0.89], (2,): [0.7, 0.7, 0.7, 0.7]}
    prices = priced(3.0, 3.0, 3.0, sizes=[10, 20, 30])
    assert affordable(lambda models: np.array(plan[tuple(models)]), prices, 3.0) == [1]


def test_the_cheapest_goes_on_where_none_fits():
    assert affordable(areas([0.0] * 6), priced(3.0, 2.0, 1.0, 4.0, 5.0, 6.0), 0.5) == [2]


def test_members_that_harm_leave_and_the_others_stay():
    assert pruned(areas([0.05, -0.1, 0.04, 0.0, 0.0, 0.0]), [0, 1, 2]) == [0, 2]
    assert pruned(areas([0.05, 0.03, 0.04, 0.0, 0.0, 0.0]), [0, 1, 2]) == [0, 1, 2]
    assert pruned(areas([-0.5] * 6), [3]) == [3]
