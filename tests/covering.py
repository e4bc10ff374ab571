"""Configurations of options: a covering array, in which every pair of option values occurs, and random ones."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import pytest

Config = dict[str, Any]


@dataclass(frozen=True)
class Configurations:
    """The valid configurations of ``options``, the values of each option by name."""

    options: dict[str, list[Any]]
    valid: Callable[[Config], bool] = lambda config: True
    seed: int = 0

    def draw(self, rng: np.random.Generator) -> Config:
        """Draw a valid configuration at random."""
        sizes = [len(values) for values in self.options.values()]
        while True:
            draws = rng.integers(sizes).tolist()
            config = {name: values[k] for (name, values), k in zip(self.options.items(), draws, strict=True)}
            if self.valid(config):
                return config

    def draws(self, n: int, seed: int) -> Iterator[Config]:
        """Draw n valid configurations."""
        rng = np.random.default_rng(seed)
        return (self.draw(rng) for _ in range(n))

    @cached_property
    def covering(self) -> list[Config]:
        """A covering array, greedily: the best of 60 random configurations, until 200 in a row add no new pair."""
        rng = np.random.default_rng(self.seed)
        numbers: dict[tuple[str, Any], int] = {}
        for option, values in self.options.items():
            for value in values:
                numbers.setdefault((option, value), len(numbers))
        first, second = np.array(list(combinations(range(len(self.options)), 2))).T
        new = np.ones((len(numbers), len(numbers)), dtype=bool)

        def pairs_of(config: Config) -> tuple[np.ndarray, np.ndarray]:
            """Return the pairs of option values in a configuration."""
            chosen = np.array([numbers[item] for item in config.items()])
            return chosen[first], chosen[second]

        found, idle = [], 0
        while idle < 200:
            best = max((self.draw(rng) for _ in range(60)), key=lambda c: new[pairs_of(c)].sum())
            if not new[pairs_of(best)].any():
                idle += 60
                continue
            idle = 0
            new[pairs_of(best)] = False
            found.append(best)
        return found


in_four_parts = pytest.mark.parametrize("part", range(4))
"""For tests of a long covering array: each case takes every fourth configuration."""


def soak_in_both_dtypes(test: Callable[..., None]) -> Callable[..., None]:
    """Run a test of random configurations in `make soak` only, for ten seeds and both dtypes."""
    for mark in (
        pytest.mark.parametrize("seed", range(10)), pytest.mark.parametrize("dtype", ["float64", "float32"]),
        pytest.mark.soak,
    ):  # fmt: skip
        test = mark(test)
    return test


def every_pair(indirect: tuple[str, ...] = (), **options: Any) -> pytest.MarkDecorator:
    """Parametrize by few combinations of the options, in which every pair of their values occurs.

    ``indirect``: those that are parameters of a fixture.
    """
    values = {name: list(found) for name, found in options.items()}
    numbers = Configurations({name: list(range(len(found))) for name, found in values.items()})
    cases = [tuple(values[name][k] for name, k in config.items()) for config in numbers.covering]
    return pytest.mark.parametrize(tuple(options), cases, indirect=indirect)
