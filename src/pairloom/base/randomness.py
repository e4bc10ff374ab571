"""Seeds: one number from whatever users pass as random_state, never from the global generator."""

from copy import deepcopy
from typing import Any

import numpy as np
from numpy.random import SeedSequence


def seed_of(random_state: Any) -> int | None:
    """A seed; None stays None, which takes fresh entropy."""
    if random_state is None:
        return None
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**32))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if isinstance(random_state, (int, np.integer)) and random_state >= 0:
        return int(random_state)
    raise ValueError(
        f"random_state must be None, a whole number >= 0, a Generator or a RandomState; got {random_state!r}"
    )


def next_seed(random_state: Any) -> int | None:
    """What ``seed_of`` will give; a generator does not advance."""
    return seed_of(deepcopy(random_state))


def generator(seed: int) -> np.random.Generator:
    """The learner's generator.

    Not ``default_rng(seed)``: users draw synthetic rows from that, with the same seed, and these rows would be the very
    numbers of which random frequencies are made.
    """
    return np.random.default_rng((seed, 0x9A17))


def fresh_seed() -> int:
    """A seed from the system's entropy."""
    return int(SeedSequence().generate_state(1)[0])
