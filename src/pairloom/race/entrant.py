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

    ``large``: features of the space to which it has gone on; 0 if it has not. ``runner`` is what these stand for.
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
    def recent(self) -> Recent:
        """Test-then-train scores: the columns of the first model, then those of the next."""
        ring: Recent = self.stream.observed[RecentScores.name]
        return ring

    def score(self, X: Any, slopes: Array, shifts: Array) -> Array:
        """Its score of valid rows: the sum over models m of slopes_m (s_m - shifts_m), (rows, classes)."""
        scores: Array = self.model.mixed_scores(self.stream.learned, X, slopes, shifts)
        return scores
