"""Hooks: see each row's score before the row is learned, and act at chosen row numbers."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np

from pairloom.base.batch import Scored
from pairloom.base.clock import NEVER
from pairloom.base.merging import RowCounts, pooled
from pairloom.base.spec import Count, StateSpec, return_type
from pairloom.base.tree import copy, node
from pairloom.base.typing import Array
from pairloom.models.base import Model
from pairloom.stream.state import StreamState

N_RECENT = 4096
"""Newest rows whose test-then-train scores are kept."""


@dataclass(frozen=True)
class Hook:
    """Base class of hooks: frozen values, whose state is made by ``init`` and passed to each method as ``own``.

    While data-dependent settings may change, the first rows are learned several times, and ``see`` is called each time.
    """

    name: ClassVar[str]
    """The key of its state in ``StreamState.observed``."""

    requires: ClassVar[tuple[type["Hook"], ...]] = ()
    """Hooks whose state this hook reads; they must precede it."""

    on_arrival: ClassVar[bool] = False
    """Whether the hook uses each row's score on arrival, before data-dependent settings were fixed with the row."""

    optional: ClassVar[bool] = False
    """Whether older files load without its state; it then starts at the row of the file."""

    def init(self, model: Model) -> Any:
        """Return its state before the first row."""

    def see(self, own: Any, scored: Scored) -> None:
        """Update its state with new scores."""

    def next_row(self, t: int) -> int:
        """Return the first row after row t at which ``tick`` is called."""
        return NEVER

    def tick(self, own: Any, state: StreamState, model: Model) -> None:
        """Act after row ``next_row``."""

    def merge(self, base: Any, parts: list[Any], rows: RowCounts, state: StreamState, model: Model) -> Any:
        """Return its state for the merged stream ``state``, whose rings of scores are merged already.

        Without a rule of its own, a hook continues from its state in the base.
        """
        return copy(base)

    def check(self, own: Any, state: StreamState, model: Model) -> None:
        """Raise ValueError unless ``own``, read from a file, is a possible state."""

    def state_spec(self) -> StateSpec:
        """Return the specification of its state in files."""
        return StateSpec(return_type(type(self).init), optional=self.optional)


def check_hooks(hooks: Sequence[Hook]) -> None:
    """Raise ValueError unless all are hooks with different names, each preceded by those that it requires."""
    names: set[str] = set()
    for hook in hooks:
        if not isinstance(hook, Hook):
            raise ValueError(f"each of hooks must be a Hook, such as Forgetting(1000); got {hook!r}")
        missing = [kind.__name__ for kind in hook.requires if kind.name not in names]
        if missing:
            first = ", ".join(f"{name}()" for name in missing)
            raise ValueError(f"{hook!r} requires {first} before it: hooks=[{first}, {hook!r}]")
        if hook.name in names:
            raise ValueError(f"there are two hooks with the name {hook.name!r}")
        names.add(hook.name)


def write_newest(ring: Array, values: Array, end: int) -> None:
    """Write the values of the newest rows up to row ``end`` to a ring of ``N_RECENT`` places."""
    n = len(values)
    if n == 1:
        ring[(end - 1) % N_RECENT] = values[0]
        return
    if n > N_RECENT:
        n, values = N_RECENT, values[-N_RECENT:]
    start = (end - n) % N_RECENT
    room = N_RECENT - start
    if n <= room:
        ring[start : start + n] = values
    else:
        ring[start:], ring[: n - room] = values[:room], values[room:]


def pooled_rings(base: Any, parts: list[Any], rows: RowCounts, names: tuple[str, ...]) -> list[Array]:
    """Return rings of the newest rows of all parts in turn, after older rows of the base if there is room for them."""
    part, age = pooled(rows.new, N_RECENT)
    n_old = min(rows.base, N_RECENT - len(part))
    source = np.concatenate([np.zeros(n_old, np.int64), part + 1])
    back = np.concatenate([np.arange(n_old)[::-1], age])
    to = np.arange(rows.total - len(source), rows.total) % N_RECENT
    counts = np.array([rows.base, *rows.parts])
    places = (counts[source] - 1 - back) % N_RECENT
    made = []
    for name in names:
        ring = np.zeros_like(getattr(base, name))
        for k, state in enumerate((base, *parts)):
            own = np.flatnonzero(source == k)
            ring[to[own]] = getattr(state, name)[places[own]]
        made.append(ring)
    return made


@node
class Recent:
    """Test-then-train scores of the newest rows, with labels and weights: a ring buffer."""

    scores: Annotated[Array, f"f8 {N_RECENT} v"]
    labels: Annotated[Array, f"label {N_RECENT}"] = field(default_factory=lambda: np.zeros(N_RECENT))
    weights: Annotated[Array, f"f8 {N_RECENT} 0:1e101"] = field(default_factory=lambda: np.zeros(N_RECENT))
    count: Count = 0

    def add(self, scored: Scored) -> None:
        """Add scores; the place of a score depends on its row number only."""
        write_newest(self.scores, scored.scores, scored.end)
        write_newest(self.labels, scored.labels, scored.end)
        write_newest(self.weights, scored.weights, scored.end)
        self.count = scored.end

    def view(self) -> tuple[Array, Array, Array]:
        """Return scores (n, vectors), labels and weights, in the order of the ring."""
        return self.scores[: self.count], self.labels[: self.count], self.weights[: self.count]

    def with_scores(self) -> tuple[Array, Array, Array]:
        """Return ``view`` without the rows of weight 0, which were used to build the feature map and have no score."""
        scores, labels, weights = self.view()
        there = weights > 0
        return scores[there], labels[there], weights[there]

    def in_order(self) -> tuple[Array, Array, Array]:
        """Return ``with_scores`` in the order of the rows."""
        scores, labels, weights = (np.roll(array, -self.count, axis=0) for array in self.view())
        there = weights > 0
        return scores[there], labels[there], weights[there]

    def columns(self, columns: Array) -> "Recent":
        """Return a copy with the scores of some vectors."""
        return Recent(self.scores[:, columns], self.labels.copy(), self.weights.copy(), self.count)


@dataclass(frozen=True)
class RecentScores(Hook):
    """Keep the newest 4,096 scores; every stream has this hook."""

    name: ClassVar[str] = "recent"

    def init(self, model: Model) -> Recent:
        return Recent(np.zeros((N_RECENT, model.n_vectors)))

    def see(self, own: Recent, scored: Scored) -> None:
        own.add(scored)

    def merge(self, base: Recent, parts: list[Recent], rows: RowCounts, state: StreamState, model: Model) -> Recent:
        """Keep the newest scores of all parts in turn, each by the model of its part."""
        scores, labels, weights = pooled_rings(base, parts, rows, ("scores", "labels", "weights"))
        return Recent(scores, labels, weights, rows.total)

    def check(self, own: Recent, state: StreamState, model: Model) -> None:
        scored = model.n_scored(state.learned, state.t)
        if not (scored or 0) <= own.count <= (state.t if scored is None else scored):
            raise ValueError(f"must have the scores of {scored} rows")


@node
class Arrivals:
    """Scores of the newest rows on arrival, in the same places as in ``Recent``; ``count`` rows so far.

    ``query`` (4,096,): the query of each row, or empty.
    """

    scores: Annotated[Array, f"f8 {N_RECENT} v"]
    query: Annotated[Array, f"i8 {N_RECENT} | i8 0"]
    count: Count = 0


@dataclass(frozen=True)
class ArrivalScores(Hook):
    """Keep the scores that the newest 4,096 rows had on arrival, which the user saw.

    ``queries``: whether to keep the query of each row as well.
    """

    name: ClassVar[str] = "arrivals"
    on_arrival: ClassVar[bool] = True

    queries: bool = False

    def init(self, model: Model) -> Arrivals:
        query = np.zeros(N_RECENT if self.queries else 0, np.int64)
        return Arrivals(np.zeros((N_RECENT, model.n_vectors)), query)

    def see(self, own: Arrivals, scored: Scored) -> None:
        new = min(scored.end - own.count, N_RECENT)
        if new <= 0:
            return
        scores = scored.scores if scored.first is None else scored.first
        write_newest(own.scores, scores if len(scores) == new else scores[-new:], scored.end)
        if self.queries and scored.query is not None:
            write_newest(own.query, scored.query[-new:], scored.end)
        own.count = scored.end

    def merge(
        self, base: Arrivals, parts: list[Arrivals], rows: RowCounts, state: StreamState, model: Model
    ) -> Arrivals:
        """Keep the newest scores of all parts in turn; the places are those of ``RecentScores``."""
        scores, query = pooled_rings(base, parts, rows, ("scores", "query") if self.queries else ("scores", "scores"))
        return Arrivals(scores, query if self.queries else base.query.copy(), rows.total)

    def check(self, own: Arrivals, state: StreamState, model: Model) -> None:
        # Scores of rows that wait in an open block may have been shown already.
        counted = (model.n_scored(state.learned, state.t) or 0) <= own.count <= state.t
        if not counted or len(own.query) != (N_RECENT if self.queries else 0):
            raise ValueError(f"must have the scores of the newest of {state.t} rows")
