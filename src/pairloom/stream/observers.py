"""Who sees each row's score before the row is learned: the newest scores, and whatever else is to be watched."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np

from pairloom.base.batch import Scored
from pairloom.base.clock import NEVER
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.models.base import Model
from pairloom.stream.state import StreamState

RECENT = 4096
"""Test-then-train scores kept."""


class Observer(Protocol):
    """A frozen value that watches a stream; all that it remembers is a tree, made by ``init`` and passed to it.

    While rules on data are open, the first rows are learned again and again, and seen as often.
    """

    @property
    def name(self) -> str:
        """Under which its own tree is found in ``StreamState.observed``."""

    def init(self, model: Model) -> Any:
        """What it remembers before the first row."""

    def see(self, own: Any, scored: Scored) -> None:
        """Take in scores."""

    @property
    def on_arrival(self) -> bool:
        """Whether it must see each new row's score as it was when the row came, before rules were fixed with it."""

    def next_row(self, t: int) -> int:
        """The first row after row t after which it has something to do."""

    def tick(self, own: Any, state: StreamState, model: Model) -> None:
        """Do it."""


@node
class Recent:
    """The newest scores, each given before its example was learned, with labels and weights: a ring of fixed size."""

    scores: Array
    labels: Array = field(default_factory=lambda: np.zeros(RECENT))
    weights: Array = field(default_factory=lambda: np.zeros(RECENT))
    count: int = 0

    def add(self, scored: Scored) -> None:
        """Write scores down; the place of a score depends on its row number alone."""
        n = len(scored.labels)
        at, first = max(0, n - RECENT), scored.end - n
        while at < n:
            place = (first + at) % RECENT
            more = min(RECENT - place, n - at)
            self.scores[place : place + more] = scored.scores[at : at + more]
            self.labels[place : place + more] = scored.labels[at : at + more]
            self.weights[place : place + more] = scored.weights[at : at + more]
            at += more
        self.count = scored.end

    def view(self) -> tuple[Array, Array, Array]:
        """Scores (n, vectors), labels and weights."""
        return self.scores[: self.count], self.labels[: self.count], self.weights[: self.count]

    def taught(self) -> tuple[Array, Array, Array]:
        """``view`` without the rows of weight 0: their labels made the map, and they have no score."""
        scores, labels, weights = self.view()
        there = weights > 0
        return scores[there], labels[there], weights[there]

    def columns(self, columns: Array) -> "Recent":
        """The scores of some vectors alone."""
        return Recent(self.scores[:, columns], self.labels.copy(), self.weights.copy(), self.count)


@dataclass(frozen=True)
class RecentScores:
    """Keeps the newest 4,096 scores; every stream has it."""

    name: ClassVar[str] = "recent"
    on_arrival: ClassVar[bool] = False

    def init(self, model: Model) -> Recent:
        return Recent(np.zeros((RECENT, model.n_vectors)))

    def see(self, own: Recent, scored: Scored) -> None:
        own.add(scored)

    def next_row(self, t: int) -> int:
        return NEVER

    def tick(self, own: Recent, state: StreamState, model: Model) -> None:
        """There is nothing to do."""


@node
class Arrivals:
    """The scores of the newest rows as they were when these came, in the places of ``Recent``; ``count`` rows so far.

    ``query`` (4,096,): the query of each, or nothing.
    """

    scores: Array
    query: Array
    count: int = 0


@dataclass(frozen=True)
class ArrivalScores:
    """Keeps the scores that rows had when they came: what a user was told, whatever the model learned later.

    ``queries``: whether the query of each row is kept as well.
    """

    name: ClassVar[str] = "arrivals"
    on_arrival: ClassVar[bool] = True

    queries: bool = False

    def init(self, model: Model) -> Arrivals:
        return Arrivals(np.zeros((RECENT, model.n_vectors)), np.zeros(RECENT if self.queries else 0, np.int64))

    def see(self, own: Arrivals, scored: Scored) -> None:
        new = min(scored.end - own.count, RECENT)
        if new <= 0:
            return
        places = np.arange(scored.end - new, scored.end) % RECENT
        own.scores[places] = (scored.scores if scored.first is None else scored.first)[-new:]
        if self.queries and scored.query is not None:
            own.query[places] = scored.query[-new:]
        own.count = scored.end

    def next_row(self, t: int) -> int:
        return NEVER

    def tick(self, own: Arrivals, state: StreamState, model: Model) -> None:
        """There is nothing to do."""
