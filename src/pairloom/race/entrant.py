"""One candidate in a race: what it is, and what it has learned."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pairloom.base.batch import Batch
from pairloom.base.tree import DERIVED, node
from pairloom.base.typing import Array
from pairloom.models.base import Model, linear_scores
from pairloom.race.mixing import Price
from pairloom.race.portfolio import Candidate
from pairloom.stream import Recent, RecentScores, Stream, StreamState

ALL = -1
"""In place of the number of a model: all of the candidate's models still learn."""


@dataclass(frozen=True)
class Runner:
    """A candidate, and what learns: all its models, or the one that is left."""

    candidate: Candidate
    model: Any


@node
class Entrant:
    """A candidate that learns, by its ``name`` among the scouts or the finalists; ``only``: the model that is left.

    ``runner`` is what these three stand for.
    """

    name: str
    finalist: bool
    only: int
    stream: StreamState
    runner: Runner | None = field(default=None, repr=False, metadata=DERIVED)

    @property
    def candidate(self) -> Candidate:
        """What it is."""
        assert self.runner is not None
        return self.runner.candidate

    @property
    def model(self) -> Any:
        """What learns."""
        assert self.runner is not None
        return self.runner.model

    def __len__(self) -> int:
        return len(self.model) if self.only == ALL else 1

    @property
    def size(self) -> int:
        """Vectors of a model."""
        return len(self.model.pairs.targets)

    @property
    def recent(self) -> Recent:
        """Test-then-train scores: the columns of the first model, then those of the next."""
        ring: Recent = self.stream.observed[RecentScores.name]
        return ring

    def score(self, index: int, X: Any) -> Array:
        """Scores of valid rows by one model: (rows, classes)."""
        learned = self.stream.learned
        coef = self.model.coef(learned)[index * self.size : (index + 1) * self.size]
        return linear_scores(self.model.features, learned, coef, X)

    def price(self, n_features: int) -> Price:
        """Of one of its models."""
        return Price(self.candidate.microseconds(n_features), self.candidate.features.n_outputs(n_features))

    def left_with(self, index: int) -> "Entrant":
        """The entrant with one of its models, which goes on where it is."""
        if self.only != ALL:
            return self
        learned, columns = self.model.only(index, self.stream.learned)
        now = self.stream
        stream = StreamState(now.t, now.n_features, learned, None, {RecentScores.name: self.recent.columns(columns)})
        return Entrant(self.name, self.finalist, index, stream, Runner(self.candidate, self.model.pick(index)))

    def scales(self, index: int) -> tuple[Array, Array]:
        """Mean and spread of the newest scores of a model, for each class."""
        scores = self.recent.view()[0][:, index * self.size : (index + 1) * self.size]
        if len(scores) == 0:
            return np.zeros(self.size), np.ones(self.size)
        spread = scores.std(axis=0)
        return scores.mean(axis=0), np.where(spread > 0, spread, 1.0)


def enter(candidate: Candidate, finalist: bool, model: Model, first: Batch) -> Entrant:
    """A candidate before its first row, with its rules on data fixed for good."""
    stream = Stream(model)
    stream.start_with(first)
    assert stream.state is not None
    return Entrant(candidate.name, finalist, ALL, stream.state, Runner(candidate, model))
