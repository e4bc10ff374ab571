"""Several models that learn as one: the candidates of a race, and what a race asks of them."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from pairloom.base.csr import is_sparse
from pairloom.base.typing import Array
from pairloom.features.linear_sum import LinearSum, Member, Share
from pairloom.models.base import Model


class Many(ABC):
    """What a :class:`Model` has besides if it is several models. Scores have all classes of the first model first.

    A race asks for scores that are weighted over the models, and for what is left of them if they only predict. Both
    have defaults; a model whose scores are linear in the features of a map passes ``linear_sum`` on to that map.
    ``slopes`` and ``shifts`` are (models, classes).
    """

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def pick(self, index: int) -> Model:
        """One of them."""

    @abstractmethod
    def only(self, index: int, state: Any) -> tuple[Any, Array]:
        """What one of them has learned, and the columns of its scores."""

    @abstractmethod
    def score(self, state: Any, X: Any) -> Array:
        """As of any model: (rows, vectors)."""

    def quick(self, state: Any, X: Any) -> Array:
        """``score``, by what was last computed on the stream's clock where that saves time."""
        return self.score(state, X)

    def linear_sum(self, state: Any, slopes: Array) -> LinearSum | None:
        """The sum over models m of slopes_m s_m by one loop over dense rows, if there is one."""
        return None

    def mixed_scores(self, state: Any, X: Any, slopes: Array, shifts: Array) -> Array:
        """The sum over models m of slopes_m (s_m - shifts_m): (rows, classes)."""
        total = None if is_sparse(X) else self.linear_sum(state, slopes)
        if total is None:
            scores = self.quick(state, X).reshape(X.shape[0], *slopes.shape)
            return np.asarray(((scores - shifts) * slopes).sum(axis=1))
        out = np.empty((X.shape[0], slopes.shape[1]))
        out[:] = -(slopes * shifts).sum(axis=0)
        total.add(X, out)
        return out

    def freeze(self, state: Any, slopes: Array, share: Share) -> Member | None:
        """What ``mixed_scores`` is without its offset, in arrays of its own; None if there is no such form."""
        total = self.linear_sum(state, slopes)
        return None if total is None else total.frozen(share)
