"""A covering array: few configurations in which every pair of option values occurs."""

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pytest

Config = dict[str, Any]


def random_config(options: dict[str, list[Any]], rng: np.random.Generator, valid: Callable[[Config], bool]) -> Config:
    """A valid configuration drawn at random."""
    sizes = [len(values) for values in options.values()]
    while True:
        draws = rng.integers(sizes).tolist()
        config = {name: values[k] for (name, values), k in zip(options.items(), draws, strict=True)}
        if valid(config):
            return config


def covering_array(options: dict[str, list[Any]], valid: Callable[[Config], bool], seed: int = 0) -> Iterator[Config]:
    """Greedy: the best of 60 random configurations, until 200 in a row bring no new pair."""
    rng = np.random.default_rng(seed)
    numbers: dict[tuple[str, Any], int] = {}
    for option, values in options.items():
        for value in values:
            numbers.setdefault((option, value), len(numbers))
    first, second = np.array(list(combinations(range(len(options)), 2))).T
    new = np.ones((len(numbers), len(numbers)), dtype=bool)

    def pairs_of(config: Config) -> tuple[np.ndarray, np.ndarray]:
        """The pairs of option values in a configuration."""
        chosen = np.array([numbers[item] for item in config.items()])
        return chosen[first], chosen[second]

    idle = 0
    while idle < 200:
        best = max((random_config(options, rng, valid) for _ in range(60)), key=lambda c: new[pairs_of(c)].sum())
        if not new[pairs_of(best)].any():
            idle += 60
            continue
        idle = 0
        new[pairs_of(best)] = False
        yield best


def every_pair(indirect: tuple[str, ...] = (), **options: Any) -> pytest.MarkDecorator:
    """``parametrize`` by few combinations of the options, in which every pair of their values occurs.

    ``indirect``: those that are parameters of a fixture.
    """
    values = {name: list(found) for name, found in options.items()}
    numbers = {name: list(range(len(found))) for name, found in values.items()}
    chosen = covering_array(numbers, lambda config: True)
    cases = [tuple(values[name][k] for name, k in config.items()) for config in chosen]
    return pytest.mark.parametrize(tuple(options), cases, indirect=indirect)
