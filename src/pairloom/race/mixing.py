"""Which models to mix, by their areas under the curve in windows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from pairloom.base.typing import Array

LARGEST, SETTLED = 5, 3
"""Members of a mixture at most, while candidates race and when the race is settled."""

MANY = 4
"""Windows from which on a standard error means something."""

Areas = Callable[[Sequence[int]], Array]
"""From models to the area of their mixture in each window."""


def grown(areas: Areas, models: Sequence[int]) -> list[int]:
    """The first model, and one after the other what helps most, until nothing helps."""
    mixture = list(models[:1])
    now = areas(mixture)
    while len(mixture) < LARGEST:
        trials = {model: areas([*mixture, model]) for model in models if model not in mixture}
        best = max(trials, key=lambda model: float(trials[model].sum()), default=None)
        if best is None or not helps(trials[best], now):
            break
        mixture, now = [*mixture, best], trials[best]
    return mixture


@dataclass(frozen=True)
class Price:
    """What a model costs, and the number of features of its space."""

    cost: float
    size: int


def affordable(areas: Areas, prices: Mapping[int, Price], limit: float) -> list[int]:
    """The best mixture around one model that costs no more than ``limit``; the cheapest model, if none does.

    That model is, of all that are no more than one standard error behind the best, the one with the largest space: it
    gains most from more rows, where a mixture that is better now may not last.

    >>> sizes = {(0,): [0.9], (1,): [0.8], (2,): [0.7], (0, 2): [0.95], (1, 2): [0.96], (0, 1, 2): [0.99]}
    >>> prices = {0: Price(3.0, 10), 1: Price(2.0, 10), 2: Price(1.0, 10)}
    >>> affordable(lambda found: np.array(sizes.get(tuple(found), [0.0])), prices, 4.0)
    [0, 2]
    """
    single = {model: areas([model]) for model, price in prices.items() if price.cost <= limit}
    if not single:
        return [min(prices, key=lambda model: prices[model].cost)]
    best = max(single, key=lambda model: float(single[model].sum()))
    ties = [model for model in single if model == best or helps(single[model], single[best])]
    center = max(ties, key=lambda model: (prices[model].size, float(single[model].sum())))
    others = [model for model in single if model != center]
    mixtures = [
        [center, *rest]
        for count in range(SETTLED)
        for rest in combinations(others, count)
        if prices[center].cost + sum(prices[model].cost for model in rest) <= limit
    ]
    return mixtures[int(np.argmax([areas(mixture).sum() for mixture in mixtures]))]


def pruned(areas: Areas, models: Sequence[int]) -> list[int]:
    """Without the members that do not help."""
    mixture = list(models)
    while len(mixture) > 1:
        now = areas(mixture)
        trials = {model: areas([other for other in mixture if other != model]) for model in mixture}
        worst = max(trials, key=lambda model: float(trials[model].sum()))
        if helps(now, trials[worst]):
            break
        mixture.remove(worst)
    return mixture


def helps(new: Array, old: Array) -> bool:
    """Whether areas in windows speak for a larger mixture: on average no more than one standard error below the old.

    A mixture wins where evidence is undecided. Of fewer than four windows there is no error to speak of, and the new
    ones must be better.

    >>> helps(np.array([0.9, 0.8, 0.9, 0.8]), np.array([0.9, 0.9, 0.8, 0.81])), helps(np.array([0.8]), np.array([0.9]))
    (True, False)
    """
    if len(new) < MANY:
        return bool(new.sum() > old.sum())
    gain = new - old
    return bool(gain.mean() >= -gain.std(ddof=1) / np.sqrt(len(gain)))
