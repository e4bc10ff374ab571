"""Many models in one pass: cross-validation is impossible on a stream, so candidates learn side by side."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from pairloom.base.batch import Batch, Scored
from pairloom.base.checks import check_count
from pairloom.base.spec import StateSpec
from pairloom.base.threads import on_one_thread
from pairloom.base.tree import copy
from pairloom.base.typing import Array
from pairloom.engines import blocked
from pairloom.engines.base import Engine, EngineName, run_engine
from pairloom.engines.blocked import GridState
from pairloom.engines.blocked_lanes import Lanes, arrange
from pairloom.engines.state import WORST, State
from pairloom.features import FeatureMap
from pairloom.features.capabilities import FrozenShare, FrozenSum, check_not_growing, explainable_of
from pairloom.features.contributions import Explainable
from pairloom.memory import Memory
from pairloom.models.base import Dtype, Instability, Many
from pairloom.models.learner import Learner
from pairloom.models.mapped import linear_scores
from pairloom.models.merging import merge_memories, merge_states
from pairloom.pairs import Pairs

SHARED_PARTS = ("features", "pairs", "memory", "dtype", "seed")
"""Parameters that the learners of a grid share."""

MAX_SLOTS = 4096
"""Maximum number of slots of a grid, which keeps the inner products of all pairs of slots."""


@dataclass(frozen=True, repr=False)
class Grid(Many):
    """Many learners over one feature map and one memory, at the cost of a few.

    The content of the memory does not depend on the model, so that mapping, clustering and inner products are shared.
    Every model learns as it would alone, up to rounding (relative 1e-10 in float64, 1e-5 in float32).

    Parameters
    ----------
    learners : learners that differ only in loss, step, penalty (L2) and average.
    block_rows : rows learned together, in blocks; by default 128, or 256 for 64 models and more.

    Rows are learned in blocks that start at multiples of ``block_rows``, regardless of the split into calls; the rows
    of the open block are kept. Weights and scores always include all rows: to compute them, a copy of the state learns
    the open block. So results are bitwise independent of the split into calls and of when the model is inspected. A
    model that diverges (weights beyond 1e15, or not finite) is reset to the start of its block and stops learning, with
    a StabilityWarning; the others are not affected.

    Learn with ``Stream(grid)``: ``stream.score(X)`` has a column for each model, ``stream.auc()`` an AUC, and
    ``stream.only(i)`` is the stream of model i alone, which continues from the state of the grid.

    Cost: see :mod:`pairloom.engines.blocked`. For G models, S slots and b rows in a block, in addition to the state of
    one learner: (G + G_averaged) D + S^2 + 4096 G + b d numbers.

    >>> from dataclasses import replace
    >>> from pairloom import Stream
    >>> from pairloom.features import Gaussian, RandomFourier
    >>> from pairloom.steps import Constant
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(3000, 2)), np.ones(3000)
    >>> y[(X ** 2).sum(axis=1) > 2] = -1
    >>> one = Learner(features=RandomFourier(64, Gaussian("median")), seed=0)
    >>> grid = Grid([replace(one, step=Constant(eta)) for eta in (0.001, 0.01, 0.1)])
    >>> stream = Stream(grid).partial_fit(X, y)
    >>> best = stream.only(int(stream.auc().argmax()))
    >>> best.model.step, bool(best.score(X[y > 0]).mean() > best.score(X[y < 0]).mean())
    (Constant(eta=0.1), True)
    """

    engine: ClassVar[EngineName] = "auto"
    engines: ClassVar[Mapping[str, Sequence[Engine]]] = {"fused": (blocked,)}
    large_products: ClassVar[bool] = True

    learners: tuple[Learner, ...]
    block_rows: int
    features: FeatureMap = field(compare=False)
    pairs: Pairs = field(compare=False)
    memory: Memory = field(compare=False)
    dtype: Dtype = field(compare=False)
    seed: int | None = field(compare=False)

    def __init__(self, learners: Iterable[Learner], block_rows: int | None = None) -> None:
        learners = tuple(learners)
        check_learners(learners)
        if block_rows is not None:
            check_count("block_rows", block_rows)
        one = learners[0]
        if block_rows is None:
            block_rows = 128 if len(learners) * len(one.pairs.targets) < 64 else 256
        shared = {name: getattr(one, name) for name in SHARED_PARTS}
        for name, value in {"learners": learners, "block_rows": block_rows, **shared}.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"<Grid of {len(self)} models like {self.learners[0]}>"

    def __len__(self) -> int:
        return len(self.learners)

    @cached_property
    def lanes(self) -> Lanes:
        """The weight vectors in the order in which they are stored."""
        return arrange(self.learners, len(self.pairs.targets))

    @property
    def n_vectors(self) -> int:
        return len(self.lanes)

    @property
    def takes_nan(self) -> bool:
        return self.learners[0].takes_nan

    @property
    def warm_rows(self) -> int:
        return self.learners[0].warm_rows

    def init(self, n_features: int, first: Batch | None) -> GridState:
        one = self.learners[0].init(n_features, first)
        n, n_slots, dim, kind = len(self.lanes), len(one.memory.slots.mass), one.w.shape[1], one.w.dtype
        if n_slots > MAX_SLOTS:
            raise ValueError(
                f"a grid keeps the inner products of all pairs of slots and takes at most {MAX_SLOTS} slots; "
                f"{self.memory} has {n_slots}"
            )
        return GridState(
            one.phi, one.memory, one.rng, np.zeros((n, dim), kind), np.zeros((self.lanes.n_averaged, dim), kind),
            tally=np.zeros((len(one.tally), n)), gram=np.zeros((n_slots, n_slots), kind), frozen=np.zeros(n, np.int64),
        )  # fmt: skip

    def run(self, state: GridState, batch: Batch) -> Scored | None:
        """Learn the block that these rows complete, or keep them."""
        rows = batch if state.open is None else Batch.join([state.open, batch])
        if len(rows) < self.block_rows:
            state.ahead, state.open = None, rows.copy() if rows is batch else rows
            return None
        scores = self._learn(state, rows)
        state.ahead = state.open = None
        return Scored(state.t, scores, rows.y, rows.weight, rows.query)

    def n_scored(self, state: GridState, t: int) -> int:
        return state.t

    def waiting(self, state: GridState) -> Scored | None:
        """Return the scores of the rows of the open block."""
        if state.open is None:
            return None
        rows = state.open
        return Scored(state.t + len(rows), self._ahead(state)[1], rows.y, rows.weight, rows.query)

    def coef(self, state: GridState) -> Array:
        """Return the output iterates: one row per model, or one per model and class if there are more than two."""
        now, n = self._now(state), self.lanes.n_averaged
        return np.concatenate([now.w_bar[:n], now.w[n:]])[self.lanes.order]

    def score(self, state: GridState, X: Any) -> Array:
        """Return scores of each row by each model."""
        return linear_scores(self.features, state, self.coef(state), X)

    def freeze(self, state: GridState, slopes: Array, share: FrozenShare) -> FrozenSum | None:
        """Return the sum over all weights; ``mixed_scores`` still sums the models' scores, as learning does."""
        w = self.coef(state).reshape(*slopes.shape, -1)
        racing = self.features.racing
        total = None if racing is None else racing.linear_sum(state.phi, w, slopes)
        return None if total is None else total.frozen(share)

    def explainable_sum(self, state: GridState, slopes: Array) -> Explainable | None:
        w, racing = self.coef(state).reshape(*slopes.shape, -1), self.features.racing
        return None if racing is None else explainable_of(racing.linear_sum(state.phi, w, slopes))

    def state_spec(self, n_features: int, t: int, room: int) -> StateSpec:
        if len(self) * max(1, self.pairs.n_groups) > room:
            raise ValueError(f"{self!r:.80} has more weights than the file has numbers")
        spec = self.learners[0].state_spec(n_features, t, room)
        symbols = {**spec.symbols, "v": self.n_vectors, "a": self.lanes.n_averaged}
        fields = {"w_bar": "R a D", "tally": "f8 7 v 0:LATE"}
        return replace(spec, kind=GridState, symbols=symbols, fields=fields, check=partial(self._check_state, t))

    def _check_state(self, t: int, state: GridState) -> None:
        waiting = 0 if state.open is None else len(state.open)
        if waiting >= self.block_rows:
            raise ValueError(f"must have fewer than {self.block_rows} rows in the open block")
        state.check_plain(t - waiting)
        rows, keep = (np.zeros((0, 2)) if state.faded is None else state.faded).T
        whole = (rows == np.floor(rows)) & (rows >= 1) & (rows <= waiting)
        if not whole.all() or (np.diff(rows) < 0).any() or not ((keep > 0) & (keep <= 1)).all():
            raise ValueError(f"must forget after some of the {waiting} rows of the open block, in order")

    def next_row(self, state: GridState) -> int:
        """Return the end of the open block."""
        return state.t + self.block_rows

    @property
    def limited(self) -> "Grid | None":
        return None if self.memory.limited is None else self

    def check_room(self, state: GridState | None, n: int) -> None:
        waiting = 0 if state is None or state.open is None else len(state.open)
        if self.memory.limited is not None:
            self.memory.limited.check_room(None if state is None else state.memory, waiting + n)

    def instability(self, state: GridState, reported: float) -> Instability | None:
        """Return a warning if more models have diverged.

        Cut steps are not reported: some steps of a grid are too long on purpose, and ``stream.only(i)`` warns.
        """
        diverged = self._diverged(state)
        if not diverged or -len(diverged) >= reported:
            return None
        named = ", ".join(f"{i} (row {row:,})" for i, row in diverged.items())
        text = f"these models diverged and have stopped learning: {named}. Lower their eta, or scale the columns."
        return Instability(-len(diverged), text)

    def settle(self, state: GridState) -> tuple[GridState, Scored | None]:
        return self._now(state), self.waiting(state)

    def merge(self, base: GridState, parts: Sequence[GridState]) -> GridState:
        """Merge the memory, and the weights by the rows of each part; a model that diverged in a part stops."""
        base, *others = (self._now(state) for state in (base, *parts))
        state = merge_states(self, base, others)
        merge_memories(self, state, base, others)
        points = state.memory.slots.points
        state.gram, state.ahead = points @ points.T, None
        state.frozen = np.max([one.frozen for one in (base, *others)], axis=0)
        return state

    @property
    def forgetting(self) -> "Grid | None":
        return self if any(learner.forgetting is not None for learner in self.learners) else None

    def forget(self, state: GridState, keep: float) -> None:
        """Forget at once or, if a block is open, after its current rows are learned."""
        if state.open is None:
            self._fade(state, keep)
            return
        before = np.zeros((0, 2)) if state.faded is None else state.faded
        state.faded, state.ahead = np.vstack([before, [len(state.open), keep]]), None

    def diverged(self, state: GridState) -> dict[int, int]:
        """Return the models that diverged and stopped learning, each with the first row of the block."""
        return self._diverged(self._now(state))

    def pick(self, index: int) -> Learner:
        """Return one of the learners."""
        return self.learners[index]

    def only(self, index: int, state: GridState) -> tuple[State, Array]:
        """Return the state of one of the learners, and the columns of its scores."""
        now, n = self._now(state), len(self.pairs.targets)
        columns = range(len(self))[index] * n + np.arange(n)
        lanes = self.lanes.order[columns]
        w = now.w[lanes]
        tally = now.tally[:, lanes].sum(axis=1)
        tally[WORST] = now.tally[WORST, lanes].max()
        w_bar = now.w_bar[lanes] if lanes[0] < self.lanes.n_averaged else np.zeros_like(w)
        return copy(State(now.phi, now.memory, now.rng, w, w_bar, now.t, tally, since=now.since)), columns

    def _learn(self, state: GridState, rows: Batch) -> Array:
        """Learn the rows of a block, split at the rows where the model forgets; return their scores."""
        faded = [] if state.faded is None else state.faded.tolist()
        state.faded, scores, at = None, [], 0
        for end, keep in [*faded, (len(rows), 1.0)]:
            if end > at:
                scores.append(run_engine(self, state, rows[at : int(end)]))
            if keep < 1:
                self._fade(state, keep)
            at = int(end)
        return np.concatenate(scores)

    def _fade(self, state: GridState, keep: float) -> None:
        state.forget(keep)
        if self.memory.forgetting is not None:
            self.memory.forgetting.forget(state.memory, keep)

    def _now(self, state: GridState) -> GridState:
        """Return the state after all rows, including those of the open block."""
        return state if state.open is None else self._ahead(state)[0]

    @on_one_thread
    def _ahead(self, state: GridState) -> tuple[GridState, Array]:
        """Return the state after the rows of the open block, and their scores."""
        known: tuple[GridState, Array] | None = state.ahead
        if known is None:
            assert state.open is not None
            # Assign the complete result: another thread may read it, or this one may be interrupted.
            ahead = copy(state)
            known = ahead, self._learn(ahead, state.open)
            ahead.open = None
            state.ahead = known
        return known

    def _diverged(self, state: GridState) -> dict[int, int]:
        rows = state.frozen[self.lanes.order].reshape(len(self), -1).max(axis=1)
        return {int(i): int(rows[i]) for i in np.flatnonzero(rows)}


def check_learners(learners: tuple[Learner, ...]) -> None:
    """Raise ValueError unless these learners can learn side by side."""
    if not learners:
        raise ValueError("learners is empty: a grid needs at least one learner")
    for name in SHARED_PARTS:
        different = {repr(getattr(learner, name)) for learner in learners}
        if len(different) > 1:
            raise ValueError(
                f"the learners of a grid must share one {name}; got {', '.join(sorted(different))}: make them with "
                "replace(learner, step=..., penalty=..., loss=..., average=...)"
            )
    check_not_growing(learners[0].features, "a grid")
    if learners[0].features.sparse is not None:
        raise ValueError(f"a grid needs dense features; got {learners[0].features}: learn these models one by one")
    if learners[0].memory.weighting == "sum":
        raise ValueError(f"a grid needs pair weights that are shares, not sums; got {learners[0].memory}")
    for learner in learners:
        if not learner.penalty.only_shrinks:
            raise ValueError(f"a grid takes penalty=L2(...), explicit or proximal; got {learner.penalty}")
        if learner.step.sequential:
            raise ValueError(f"a grid takes gradient steps; got {learner.step}")
        if learner.step.per_coordinate:
            raise ValueError(
                f"a grid needs one step for all coordinates, since it keeps inner products in place of weights; got "
                f"{learner.step}"
            )
        if learner.by_specification:
            raise ValueError("a grid has its own engine: use engine='auto'")
