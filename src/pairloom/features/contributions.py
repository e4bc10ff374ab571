"""Contributions of columns: Shapley values of a sum, between rows and a background."""

from typing import NamedTuple, Protocol

import numpy as np

from pairloom.base.compiled import compiled
from pairloom.base.typing import Array


class Contrast(NamedTuple):
    """Rows to explain, and the background rows that they are compared with, as a sum reads them.

    ``rows`` (n, d) and ``background`` (m, d). ``players`` (d,): the player of each column; several columns may belong
    to one player, such as the parts of a date. ``weights`` (n, m, classes): by how much the Shapley values of each pair
    count in the sum over background rows.
    """

    rows: Array
    background: Array
    players: Array
    weights: Array


class Explainable(Protocol):
    r"""A sum whose Shapley values can be computed exactly, or to rounding errors.

    The value of a set of players S, for a row x and a background row b, is the score of the row that has the columns of
    S from x and all others from b. The Shapley value of player i is

    .. math::

        \phi_i = \sum_{S \not\ni i} \frac{|S|!\,(P - |S| - 1)!}{P!} \bigl(s(S \cup \{i\}) - s(S)\bigr),

    and the values of all P players add up to s(x) - s(b). They are linear in s: those of a sum of terms are the sums of
    those of the terms.

    Reference: Lundberg and Lee, A Unified Approach to Interpreting Model Predictions, NIPS 2017.
    """

    def add(self, X: Array, out: Array) -> None:
        """Add the sum for each dense row to ``out`` (rows, classes)."""

    def contribute(self, contrast: Contrast, out: Array) -> None:
        """Add the weighted sums over the background of the Shapley values to ``out`` (rows, players, classes)."""


@compiled
def contribute_columns(
    X: Array, background: Array, players: Array, weights: Array, shift: Array, reach: Array, scale: Array, w: Array,
    out: Array,
) -> None:  # fmt: skip
    """Add those of a linear model of scaled columns to ``out``: w_c times the difference of column c."""
    Z, V = scaled(X, shift, reach, scale), scaled(background, shift, reach, scale)
    for i in range(X.shape[0]):
        for k in range(w.shape[1]):
            for c in range(X.shape[1]):
                difference = 0.0
                for b in range(V.shape[0]):
                    difference += weights[i, b, k] * (Z[i, c] - V[b, c])
                out[i, players[c], k] += w[c, k] * difference


@compiled
def scaled(X: Array, shift: Array, reach: Array, scale: Array) -> Array:
    """Return scaled columns, rounded to the type of the rows as in their scores."""
    out = np.empty(X.shape)
    for i in range(X.shape[0]):
        for c in range(X.shape[1]):
            x = X[i, c]
            if reach.shape[0]:
                x = min(max(x, shift[c] - reach[c]), shift[c] + reach[c])
            out[i, c] = (x - shift[c]) / scale[c]
    return out
