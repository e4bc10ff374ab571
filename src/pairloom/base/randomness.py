"""Seeds from ``random_state``, never from the global generator."""

from copy import deepcopy
from typing import Any

import numpy as np
from numpy.random import SeedSequence

RandomState = int | np.random.Generator | np.random.RandomState | None


def seed_of(random_state: Any) -> int | None:
    """Return a seed; None, for fresh entropy, is returned unchanged."""
    if random_state is None:
        return None
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**32))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if isinstance(random_state, (int, np.integer)) and random_state >= 0:
        return int(random_state)
    raise ValueError(f"random_state must be None, an integer >= 0, a Generator or a RandomState; got {random_state!r}")


def next_seed(random_state: Any) -> int | None:
    """Return the seed that ``seed_of`` would return, without advancing a generator."""
    return seed_of(deepcopy(random_state))


def generator(seed: int) -> np.random.Generator:
    """Return the random generator of a learner.

    Not ``default_rng(seed)``: users draw synthetic rows from that generator with the same seed, and the random
    frequencies would consist of the same numbers as the rows.
    """
    return np.random.default_rng((seed, 0x9A17))


def fresh_seed() -> int:
    """Return a seed from the system's entropy."""
    return int(SeedSequence().generate_state(1)[0])
