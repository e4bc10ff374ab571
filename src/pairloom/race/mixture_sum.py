"""The score of a race as a sum over its members, which can compute the contributions of columns."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pairloom.base.typing import Array
from pairloom.features.contributions import Contrast, Explainable
from pairloom.race.mixing import CLIP_FROM, soft_clip

NEARLY_EQUAL = 1e-9
"""Difference of scores below which the slope of the clipping is that at one point."""


@dataclass(frozen=True)
class MemberSum:
    """A member with its weight and the constant part of its score; ``part``: the columns of a row that it reads."""

    inner: Explainable
    weight: float
    offset: Array
    part: slice

    def read(self, X: Array) -> Array:
        """Return the columns that the member reads."""
        return np.ascontiguousarray(X[:, self.part])

    def score(self, X: Array) -> Array:
        """Return the score of the member, without clipping, of rows that it has ``read``."""
        out = np.empty((len(X), len(self.offset)))
        out[:] = self.offset
        self.inner.add(X, out)
        return out


@dataclass(frozen=True)
class MixtureSum:
    r"""The weighted sum of the clipped scores of members.

    Clipping is not additive. For each background row, the contributions to the score u of a member, which are exact,
    are multiplied by the slope between the two scores,

    .. math::

        \frac{\psi(u(x)) - \psi(u(b))}{u(x) - u(b)} \in (0, 1],

    so that they add up to the difference of the clipped scores. It is 1 if neither score is clipped, and never large,
    not even if the scores are nearly equal: it is then the derivative of the clipping.
    """

    members: Sequence[MemberSum]

    def add(self, X: Array, out: Array) -> None:
        for one in self.members:
            out += one.weight * soft_clip(one.score(one.read(X)))

    def contribute(self, contrast: Contrast, out: Array) -> None:
        for one in self.members:
            rows, background = one.read(contrast.rows), one.read(contrast.background)
            slopes = clipping_slopes(one.score(rows)[:, None], one.score(background)[None])
            weights = contrast.weights * (one.weight * slopes)
            one.inner.contribute(Contrast(rows, background, contrast.players[one.part], weights), out)


def clipping_slopes(u: Array, v: Array) -> Array:
    """Return the slopes of ``soft_clip`` between scores u and v.

    >>> clipping_slopes(np.array([3.0, 40.0, 40.0]), np.array([-2.0, 4.0, 40.0])).round(3)
    array([1.   , 0.1  , 0.027])
    """
    difference = u - v
    equal = np.abs(difference) < NEARLY_EQUAL
    derivative = 1.0 / (1.0 + np.maximum(np.abs(u) - CLIP_FROM, 0.0))
    return np.where(equal, derivative, (soft_clip(u) - soft_clip(v)) / np.where(equal, 1.0, difference))
