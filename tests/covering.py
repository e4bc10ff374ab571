"""A covering array: few configurations in which every pair of option values occurs."""

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import numpy as np

Config = dict[str, Any]


def random_config(options: dict[str, list[Any]], rng: np.random.Generator, valid: Callable[[Config], bool]) -> Config:
    """A valid configuration drawn at random."""
    while True:
        config = {name: values[rng.integers(len(values))] for name, values in options.items()}
        if valid(config):
            return config


def pairs_of(config: Config) -> set[tuple[Any, ...]]:
    """The pairs of option values in a configuration."""
    return {(a, repr(config[a]), b, repr(config[b])) for a, b in combinations(sorted(config), 2)}


def covering_array(options: dict[str, list[Any]], valid: Callable[[Config], bool], seed: int = 0) -> Iterator[Config]:
    """Greedy: the best of 60 random configurations, until 200 in a row bring no new pair."""
    rng = np.random.default_rng(seed)
    covered: set[tuple[Any, ...]] = set()
    idle = 0
    while idle < 200:
        best = max((random_config(options, rng, valid) for _ in range(60)), key=lambda c: len(pairs_of(c) - covered))
        if pairs_of(best) <= covered:
            idle += 60
            continue
        idle = 0
        covered |= pairs_of(best)
        yield best
