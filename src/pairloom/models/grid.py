"""Many models, one pass: on a stream there is no cross-validation, so candidates learn side by side."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from pairloom.base.batch import Batch, Scored
from pairloom.base.checks import check_count
from pairloom.base.threads import on_one_thread
from pairloom.base.tree import copy
from pairloom.base.typing import Array
from pairloom.engines import blocked
from pairloom.engines.base import Engine, EngineName, run_engine
from pairloom.engines.blocked import GridState
from pairloom.engines.lanes import Lanes, arrange
from pairloom.engines.state import WORST, State
from pairloom.features import FeatureMap
from pairloom.features.growing import refuse_growing
from pairloom.features.linear_sum import Member, Share
from pairloom.memory import Memory
from pairloom.models.base import Dtype, Model, Trouble, linear_scores
from pairloom.models.learner import Learner
from pairloom.models.many import Many
from pairloom.pairs import Pairs

SHARED = ("features", "pairs", "memory", "dtype", "seed")
"""What the learners of a grid have in common."""

MOST_SLOTS = 4096
"""A grid keeps the inner products of all pairs of slots."""


@dataclass(frozen=True, repr=False)
class Grid(Model, Many):
    """Many learners over one feature map and one memory, for the price of a few.

    What the memory keeps does not depend on a model, so that mapping, clustering and inner products are done once for
    all. Every model is what it would be alone, up to rounding (relative 1e-10 in float64, 1e-5 in float32).

    Parameters
    ----------
    learners : learners that differ only in loss, step, penalty (L2) and average.
    block_rows : rows whose products are taken together; by default 128, or 256 for 64 models and more.

    Rows are learned in blocks that begin at multiples of ``block_rows`` of the stream, however it is cut into calls;
    the rows of the block that is still open are kept. Whoever asks for weights or scores gets those after all rows:
    the open block is then evaluated on a copy. So the bits do not depend on the cuts, nor on who looked when.
    A model whose weights leave the range of numbers (beyond 1e15, or not finite) is put back to the start of its block
    and frozen, with a StabilityWarning; the others do not notice.

    Learn with ``Stream(grid)``: ``stream.score(X)`` has a column for each model, ``stream.auc()`` an area, and
    ``stream.only(i)`` is the stream of model i alone, which goes on where the grid is.

    Cost: see :mod:`pairloom.engines.blocked`. For G models, S slots and b rows in a block, besides what one learner
    keeps: (G + G_averaged) D + S^2 + 4096 G + b d numbers.

    >>> from dataclasses import replace
    >>> from pairloom import Constant, Gaussian, RandomFourier, Stream
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
        size = default_rows(len(learners) * len(one.pairs.targets)) if block_rows is None else block_rows
        values = {"learners": learners, "block_rows": size, "features": one.features, "pairs": one.pairs}
        for name, value in {**values, "memory": one.memory, "dtype": one.dtype, "seed": one.seed}.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"<Grid of {len(self)} models like {self.learners[0]}>"

    def __len__(self) -> int:
        return len(self.learners)

    @cached_property
    def lanes(self) -> Lanes:
        """The weight vectors in the order in which they lie side by side."""
        return arrange(self.learners, len(self.pairs.targets))

    @property
    def n_vectors(self) -> int:
        return len(self.lanes)

    @property
    def needs_data(self) -> bool:
        return self.learners[0].needs_data

    @property
    def takes_nan(self) -> bool:
        return self.learners[0].takes_nan

    def warm_rows(self, n_features: int) -> int:
        return self.learners[0].warm_rows(n_features)

    def init(self, n_features: int, first: Batch | None) -> GridState:
        one = self.learners[0].init(n_features, first)
        n, n_slots, dim, kind = len(self.lanes), len(one.memory.slots.mass), one.w.shape[1], one.w.dtype
        if n_slots > MOST_SLOTS:
            raise ValueError(
                f"a grid keeps the inner products of all pairs of slots and takes at most {MOST_SLOTS} of them; "
                f"{self.memory} has {n_slots}"
            )
        return GridState(
            one.phi, one.memory, one.rng, np.zeros((n, dim), kind), np.zeros((self.lanes.n_averaged, dim), kind),
            tally=np.zeros((len(one.tally), n)), gram=np.zeros((n_slots, n_slots), kind), frozen=np.zeros(n, np.int64),
        )  # fmt: skip

    def run(self, state: GridState, batch: Batch) -> Scored | None:
        """Learn the block that these rows fill, or keep them."""
        rows = batch if state.open is None else Batch.join([state.open, batch])
        if len(rows) < self.block_rows:
            state.ahead, state.open = None, rows.copy() if rows is batch else rows
            return None
        scores = self._learn(state, rows)
        state.ahead = state.open = None
        return Scored(state.t, scores, rows.y, rows.weight, rows.query)

    def waiting(self, state: GridState) -> Scored | None:
        """Scores of the rows of the open block."""
        if state.open is None:
            return None
        rows = state.open
        return Scored(state.t + len(rows), self._ahead(state)[1], rows.y, rows.weight, rows.query)

    def coef(self, state: GridState) -> Array:
        """The output iterates: one row per model, or with more than two classes one for each of its classes."""
        now, n = self._now(state), self.lanes.n_averaged
        return np.concatenate([now.w_bar[:n], now.w[n:]])[self.lanes.order]

    def score(self, state: GridState, X: Any) -> Array:
        """Scores of each row by each model."""
        return linear_scores(self.features, state, self.coef(state), X)

    def freeze(self, state: GridState, slopes: Array, share: Share) -> Member | None:
        """The sum over all weights; rows are scored model by model, as when they are learned."""
        w = self.coef(state).reshape(*slopes.shape, -1)
        total = self.features.linear_sum(state.phi, w, slopes)
        return None if total is None else total.frozen(share)

    def shaped(self, scores: Array) -> Array:
        """(rows, models), or (rows, models, classes) for more than two classes."""
        n = len(self.pairs.targets)
        return scores.reshape((len(scores), len(self), n) if n > 1 else (len(scores), len(self)))

    def next_row(self, state: GridState) -> int:
        """The end of the open block."""
        return state.t + self.block_rows

    def check_room(self, state: GridState | None, n: int) -> None:
        waiting = 0 if state is None or state.open is None else len(state.open)
        self.memory.check_room(None if state is None else state.memory, waiting + n)

    def trouble(self, state: GridState, told: float) -> Trouble | None:
        """The models that are frozen, if there are more than there were.

        Not the steps that were cut: in a grid some are too long on purpose, and ``stream.only(i)`` tells.
        """
        frozen = self._frozen(state)
        if not frozen or -len(frozen) >= told:
            return None
        named = ", ".join(f"{i} (row {row:,})" for i, row in frozen.items())
        return Trouble(
            -len(frozen),
            f"the weights of these models left the range of numbers, and they are frozen: {named}. "
            "Lower their eta, or scale the columns.",
        )

    @property
    def forgets(self) -> bool:
        return any(learner.forgets for learner in self.learners)

    def forget(self, state: GridState, keep: float) -> None:
        """At once, or where a block is open, when its rows so far are learned."""
        if state.open is None:
            self._fade(state, keep)
            return
        before = np.zeros((0, 2)) if state.faded is None else state.faded
        state.faded, state.ahead = np.vstack([before, [len(state.open), keep]]), None

    def frozen(self, state: GridState) -> dict[int, int]:
        """The models that are frozen, each with the row at which it was."""
        return self._frozen(self._now(state))

    def pick(self, index: int) -> Learner:
        """One of the learners."""
        return self.learners[index]

    def only(self, index: int, state: GridState) -> tuple[State, Array]:
        """What one of the learners has learned, and the columns of its scores."""
        now, n = self._now(state), len(self.pairs.targets)
        columns = range(len(self))[index] * n + np.arange(n)
        lanes = self.lanes.order[columns]
        w = now.w[lanes]
        tally = now.tally[:, lanes].sum(axis=1)
        tally[WORST] = now.tally[WORST, lanes].max()
        w_bar = now.w_bar[lanes] if lanes[0] < self.lanes.n_averaged else np.zeros_like(w)
        return copy(State(now.phi, now.memory, now.rng, w, w_bar, now.t, tally, since=now.since)), columns

    def _learn(self, state: GridState, rows: Batch) -> Array:
        """Learn the rows of a block, cut where something is forgotten; their scores."""
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
        self.memory.forget(state.memory, keep)

    def _now(self, state: GridState) -> GridState:
        """The state after all rows, those of the open block too."""
        return state if state.open is None else self._ahead(state)[0]

    @on_one_thread
    def _ahead(self, state: GridState) -> tuple[GridState, Array]:
        """The state after the rows of the open block, and their scores."""
        known: tuple[GridState, Array] | None = state.ahead
        if known is None:
            assert state.open is not None
            # Another thread may ask at the same time, or this one be interrupted: it is shown when it is complete.
            ahead = copy(state)
            known = ahead, self._learn(ahead, state.open)
            ahead.open = None
            state.ahead = known
        return known

    def _frozen(self, state: GridState) -> dict[int, int]:
        rows = state.frozen[self.lanes.order].reshape(len(self), -1).max(axis=1)
        return {int(i): int(rows[i]) for i in np.flatnonzero(rows)}


def check_learners(learners: tuple[Learner, ...]) -> None:
    """Raise unless these can learn side by side."""
    if not learners:
        raise ValueError("a grid needs at least one learner")
    for name in SHARED:
        different = {repr(getattr(learner, name)) for learner in learners}
        if len(different) > 1:
            raise ValueError(
                f"the learners of a grid have one {name}, got {', '.join(sorted(different))}: make them by "
                "replace(learner, step=..., penalty=..., loss=..., average=...)"
            )
    refuse_growing(learners[0].features, "a grid")
    if learners[0].features.sparse:
        raise ValueError(f"a grid multiplies dense features; got {learners[0].features}: learn them one by one")
    if learners[0].memory.weighting == "sum":
        raise ValueError(f"a grid takes weights that are shares, not sums; got {learners[0].memory}")
    for learner in learners:
        if not learner.penalty.only_shrinks:
            raise ValueError(f"a grid takes penalty=L2(...), explicit or proximal; got {learner.penalty}")
        if learner.step.sequential:
            raise ValueError(f"a grid takes gradient steps; got {learner.step}")
        if learner.step.per_coordinate:
            raise ValueError(
                f"a grid keeps inner products in place of weights, which needs one step for all coordinates; got "
                f"{learner.step}"
            )
        if learner.by_specification:
            raise ValueError("a grid has its own engine: leave engine='auto'")


def default_rows(n_vectors: int) -> int:
    """Rows of a block: few make small products, many make many coefficients."""
    return 128 if n_vectors < 64 else 256
