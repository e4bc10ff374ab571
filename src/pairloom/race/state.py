"""State of a race: entrants, mixture, and the form that only predicts."""

from collections.abc import Iterator
from dataclasses import field
from typing import Annotated, Any

import numpy as np

from pairloom.base.batch import Batch
from pairloom.base.csr import is_sparse
from pairloom.base.graph import Value
from pairloom.base.spec import Count
from pairloom.base.tree import DERIVED, OPTIONAL, node
from pairloom.base.typing import Array
from pairloom.features.capabilities import FrozenShare, FrozenSum
from pairloom.features.encoding import Encoding
from pairloom.models.base import Many
from pairloom.race.evidence import Evidence
from pairloom.race.mixing import soft_clip, soft_clip_onnx
from pairloom.race.mixture_sum import MemberSum, MixtureSum
from pairloom.race.portfolio import Candidate
from pairloom.race.standings import Standing
from pairloom.stream.hooks import Recent, RecentScores
from pairloom.stream.loop import run
from pairloom.stream.state import Kept, StreamState

MAX_DENSE_VALUES = 1 << 24
"""Values of CSR rows made dense at a time while they are scored."""


HOOKS = (RecentScores(),)


@node
class Entrant:
    """A candidate that takes part, by its ``name``, with the state of its own stream.

    ``stage``: the row at which its data-dependent settings were fixed, 0 without any. ``large``: the number of features
    if it was enlarged, else 0. ``candidate`` and ``model`` follow from these; :meth:`Race.entrants` sets them.
    """

    name: str
    stage: Count
    large: Count
    stream: Annotated[StreamState, "@stream"]
    candidate: Candidate = field(default=None, repr=False, metadata=DERIVED)  # type: ignore[assignment]
    model: Many = field(default=None, repr=False, metadata=DERIVED)  # type: ignore[assignment]

    def __len__(self) -> int:
        """The number of its models."""
        return len(self.model)

    @property
    def recent(self) -> Recent:
        """Test-then-train scores: the columns of the first model, then those of the next."""
        ring: Recent = self.stream.observed[RecentScores.name]
        return ring

    def learn(self, batch: Batch) -> None:
        """Learn the columns of the rows that it reads, and keep the scores that they had before."""
        run(self.model, HOOKS, self.stream, self.candidate.read(batch), self.stream.t)
        self.stream.t += len(batch)

    def freeze(self, weight: float, slopes: Array, shifts: Array) -> FrozenSum:
        """Return what is needed to predict; ValueError if its features have no such form."""
        share = FrozenShare(self.name, weight, -(slopes * shifts).sum(axis=0))
        member = self.model.freeze(self.stream.learned, slopes, share)
        if member is None:
            raise ValueError(
                f"frozen() is for linear models, Landmarks, forests and maps with a linear_sum; {self.name!r} has "
                f"features={self.candidate.features}"
            )
        member.form = self.candidate.form
        return member


@node
class Mixture:
    """Weights that combine the scores of all models into one score.

    The score of entrant e is u_e = sum over its models m of slopes_m (s_m - shifts_m), that of the race is the sum of
    weights_e soft_clip(u_e). ``weights`` (entrants,), ``slopes`` and ``shifts`` (models, classes).
    """

    weights: Annotated[Array, "f8 _e 0:LATE"]
    slopes: Annotated[Array, "f8 _m v"]
    shifts: Annotated[Array, "f8 _m v"]

    def check(self) -> None:
        if len(self.weights) and not self.weights.any():
            raise ValueError("must have a weight above 0")

    @classmethod
    def empty(cls, n_vectors: int) -> "Mixture":
        """Return the mixture before the first evaluation."""
        return cls(np.zeros(0), np.zeros((0, n_vectors)), np.zeros((0, n_vectors)))


@node
class RaceState:
    """The entrants, the evidence and the mixture.

    ``coming``: refitted entrants, which are still learning earlier rows; each then replaces the entrant with its
    name. ``kept``: the first rows, for these. ``counts``: weight of the rows of each class. ``evaluated``: the last row
    whose score is in the evidence. ``since``: rows up to this one have been forgotten. ``waiting``: the newest rows,
    which steady entrants have not learned yet. ``due``: the next row at which the race acts, and they learn them.
    ``fixed``: no entrant is dropped until parts of a model are merged.
    """

    n_features: Count
    entrants: list[Entrant]
    evidence: Evidence
    counts: Annotated[Array, "f8 C 0:MASS"]
    mixture: Mixture
    kept: Kept | None
    coming: list[Entrant] = field(default_factory=list)
    t: Count = 0
    evaluated: Count = 0
    standings: list[Standing] = field(default_factory=list)
    since: Count | None = field(default=None, metadata=OPTIONAL)
    waiting: Kept | None = field(default=None, metadata=OPTIONAL)
    fixed: bool | None = field(default=None, metadata=OPTIONAL)
    due: int | None = field(default=None, metadata=DERIVED)

    @property
    def n_waiting(self) -> int:
        """Rows that steady entrants have not learned."""
        return 0 if self.waiting is None else self.waiting.count

    @property
    def age(self) -> int:
        """Rows that were not forgotten."""
        return self.t - (self.since or 0)

    def members(self) -> Iterator[tuple[Entrant, Any, Array, Array]]:
        """Yield each entrant of the mixture with its weight, and the slopes and shifts of its models."""
        first, mixture = 0, self.mixture
        for entrant, weight in zip(self.entrants, mixture.weights, strict=False):
            own = slice(first, first + len(entrant))
            first = own.stop
            if weight > 0:
                yield entrant, weight, mixture.slopes[own], mixture.shifts[own]

    def explainable(self, encoding: Encoding | None) -> MixtureSum | None:
        """Return the score as a sum that can compute the contributions of columns; None if a member cannot."""
        members = []
        for one, weight, slopes, shifts in self.members():
            inner, part = one.model.explainable_sum(one.stream.learned, slopes), slice(None)
            if inner is None:
                return None
            if encoding is not None:
                part = encoding.columns(one.candidate.form)
            members.append(MemberSum(inner, float(weight), -(slopes * shifts).sum(axis=0), part))
        return MixtureSum(members)

    def freeze(self) -> "FrozenState":
        """Return the state that only predicts; ValueError if an entrant has no such form."""
        members = [entrant.freeze(float(weight), *scaling) for entrant, weight, *scaling in self.members()]
        return FrozenState(self.n_features, self.t, self.counts.copy(), members, list(self.standings))


@node
class FrozenState:
    """A race that only predicts: the members of the mixture, each with one weight vector in place of many."""

    n_features: Count
    t: Count
    counts: Annotated[Array, "f8 C 0:MASS"]
    members: list[Annotated[FrozenSum, "@member"]]
    standings: list[Standing]

    def score(self, X: Any, n_vectors: int, encoding: Encoding | None = None) -> Array:
        """Return the scores of the race that was frozen."""
        if is_sparse(X):
            rows, csr = max(1, MAX_DENSE_VALUES // self.n_features), X.tocsr()
            starts = range(0, X.shape[0], rows)
            parts = [self.score(csr[start : start + rows].toarray(), n_vectors) for start in starts]
            return np.concatenate(parts) if parts else np.zeros((0, n_vectors))
        total = np.zeros((X.shape[0], n_vectors))
        for member in self.members:
            out = np.empty(total.shape)
            out[:] = member.offset
            member.add(X if encoding is None else encoding.part(X, member.form), out)
            total += member.weight * soft_clip(out)
        return total

    def explainable(self, encoding: Encoding | None) -> MixtureSum | None:
        """Return the score as a sum that can compute the contributions of columns; None if a member cannot."""
        members = []
        for one in self.members:
            if one.explainable is None:
                return None
            part = slice(None) if encoding is None else encoding.columns(one.form)
            members.append(MemberSum(one.explainable, float(one.weight), one.offset, part))
        return MixtureSum(members)

    def to_onnx(self, x: Value, n_vectors: int, encoding: Encoding | None = None) -> Value:
        """Return the scores in an ONNX graph: f8."""
        total = None
        for member in self.members:
            own = member.to_onnx(x if encoding is None else encoding.part_onnx(x, member.form)) + member.offset
            share = soft_clip_onnx(own) * member.weight
            total = share if total is None else total + share
        return x.zeros(n_vectors) if total is None else total
