"""Weights that fade: what was counted so far comes to count less."""

import numpy as np

from pairloom.base.typing import Array

LEAST = 1e-100
"""What has faded to this fades no further: beyond it ratios of weights would lose their digits."""


def aged(mass: Array, keep: float) -> Array:
    """The factors of weights that are to count ``keep`` times as much: ``keep``, or as far down as ``LEAST``.

    >>> aged(np.array([8.0, 1.0, 0.0]), 0.5)
    array([0.5, 0.5, 1. ])
    """
    return np.clip(LEAST / np.maximum(mass, LEAST), keep, 1.0)
