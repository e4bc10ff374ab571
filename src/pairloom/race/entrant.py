"""One candidate in a race: what it is, and what it has learned."""

from dataclasses import dataclass, field
from typing import Any

from pairloom.base.tree import DERIVED, node
from pairloom.base.typing import Array
from pairloom.race.portfolio import Candidate
from pairloom.stream import Recent, RecentScores, StreamState


@dataclass(frozen=True)
class Runner:
    """A candidate, and the models that learn."""

    candidate: Candidate
    model: Any


@node
class Entrant:
    """A candidate that learns, by its ``name``; ``stage``: the row at which its rules were fixed, 0 without rules.

    ``large``: landmarks of the space to which it has gone on; 0 if it has not. ``runner`` is what these stand for.
    """

    name: str
    stage: int
    large: int
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
        return len(self.model)

    @property
    def size(self) -> int:
        """Vectors of a model."""
        return len(self.model.pairs.targets)

    @property
    def recent(self) -> Recent:
        """Test-then-train scores: the columns of the first model, then those of the next."""
        ring: Recent = self.stream.observed[RecentScores.name]
        return ring

    def score(self, X: Any) -> Array:
        """Scores of valid rows by each model: (rows, models, classes)."""
        score = getattr(self.model, "quick", self.model.score)
        scores: Array = score(self.stream.learned, X)
        return scores.reshape(len(scores), len(self), self.size)
