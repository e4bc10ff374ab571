"""Capabilities that parts of several kinds share: a kind has a property for each, None or the part itself."""

from typing import Any, Protocol

import numpy as np

from pairloom.base.typing import Array

MIN_MASS = 1e-100
"""Weights that have decayed to this decay no further: below it, ratios of weights would lose digits."""


class Forgets(Protocol):
    """A map, memory, rule or model that can reduce the weight of the rows so far (``forgetting``)."""

    def forget(self, state: Any, keep: float) -> None:
        """Multiply the weight of the rows so far by ``keep``, 0 < keep < 1, as if there had been fewer of them."""


class Limited(Protocol):
    """A memory or model that grows up to a limit and then rejects further rows (``limited``)."""

    def check_room(self, state: Any, n: int) -> None:
        """Raise ValueError unless ``n`` more rows fit; ``state`` is None before the first row. Changes nothing."""


class MayBeLimited:
    """Base of the kinds of parts that may have both capabilities."""

    @property
    def limited(self) -> Limited | None:
        """The part, if it grows up to a limit and then rejects further rows."""
        return None

    @property
    def forgetting(self) -> Forgets | None:
        """The part, if it can reduce the weight of past rows; some parts retain nothing of them."""
        return None


def decay_factors(mass: Array, keep: float) -> Array:
    """Return the factors by which weights ``mass`` decay: ``keep``, or less decay where ``MIN_MASS`` is reached.

    >>> decay_factors(np.array([8.0, 1.0, 0.0]), 0.5)
    array([0.5, 0.5, 1. ])
    """
    return np.clip(MIN_MASS / np.maximum(mass, MIN_MASS), keep, 1.0)
