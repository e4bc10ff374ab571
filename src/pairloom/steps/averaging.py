"""Which iterate is the model."""

from typing import Literal

import numpy as np

from pairloom.base.typing import Array

Average = Literal["last", "mean", "poly"]


def constant(like: Array, value: float) -> Array:
    """An array of one value, as long as ``like``; np.full costs three times as much for one row."""
    made: Array = np.empty(like.shape)
    made.fill(value)
    return made


def averaging_rate(average: Average, t: Array) -> Array:
    """rho_t of the output iterate w_bar <- w_bar + rho_t (w_t - w_bar).

    ``mean`` is the plain average; ``poly`` forgets the start (weights grow like t^3); ``last`` is w_t itself.
    """
    if average == "mean":
        return 1.0 / np.asarray(t, dtype=float)
    if average == "poly":
        return 4.0 / (np.asarray(t, dtype=float) + 3.0)
    return constant(t, 1.0)
