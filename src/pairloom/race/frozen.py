"""A race that only predicts: the members of its mixture, each with one weight where it had many."""

from typing import Any

import numpy as np

from pairloom.base.csr import is_sparse
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.features.linear_sum import Member, Share
from pairloom.race.entrant import Entrant
from pairloom.race.mixing import tame
from pairloom.race.state import RaceState, Standing

DENSE = 1 << 24
"""Numbers that CSR rows may take up while they are scored."""


@node
class FrozenState:
    """What is left of a :class:`RaceState`: the members of the mixture, the standings, and what was counted."""

    n_features: int
    t: int
    counts: Array
    members: list[Member]
    standings: list[Standing]

    def score(self, X: Any, n_vectors: int) -> Array:
        """The scores of the race that it was made of."""
        if is_sparse(X):
            rows, at = max(1, DENSE // self.n_features), X.tocsr()
            cuts = range(0, X.shape[0], rows)
            parts = [self.score(at[start : start + rows].toarray(), n_vectors) for start in cuts]
            return np.concatenate(parts) if parts else np.zeros((0, n_vectors))
        total = np.zeros((X.shape[0], n_vectors))
        for member in self.members:
            out = np.empty(total.shape)
            out[:] = member.offset
            member.add(X, out)
            total += member.weight * tame(out)
        return total


def frozen(state: RaceState, entrants: list[Entrant]) -> FrozenState:
    """Only what predicts; ValueError for candidates that have no such form."""
    members, first, mixture = [], 0, state.mixture
    for entrant, weight in zip(entrants, mixture.weights, strict=False):
        own = slice(first, first + len(entrant))
        first = own.stop
        if weight > 0:
            members.append(member_of(entrant, float(weight), mixture.slopes[own], mixture.shifts[own]))
    return FrozenState(state.n_features, state.t, state.counts.copy(), members, list(state.standings))


def member_of(entrant: Entrant, weight: float, slopes: Array, shifts: Array) -> Member:
    """What is left of an entrant."""
    share = Share(entrant.name, weight, -(slopes * shifts).sum(axis=0))
    member: Member | None = entrant.model.freeze(entrant.stream.learned, slopes, share)
    if member is None:
        raise ValueError(
            f"frozen() is for linear models, Landmarks, forests and maps with a linear_sum; {entrant.name!r} has "
            f"features={entrant.candidate.features}"
        )
    return member
