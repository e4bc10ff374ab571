"""Many models, one pass: on a stream there is no cross-validation, so candidates learn side by side."""

import warnings
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np

from pairloom.checks import check_count
from pairloom.engines.blocked import GridState, learn_block
from pairloom.engines.lanes import arrange
from pairloom.features.growing import refuse_growing
from pairloom.learner import Learner
from pairloom.memory import MemoryState
from pairloom.onepass import OnePass, StabilityWarning
from pairloom.pairs import OppositeClass
from pairloom.state import WORST, Batch, Recent, State, nbytes
from pairloom.steps import L2
from pairloom.threads import on_one_thread
from pairloom.typing import Array

SHARED = ("features", "pairs", "memory", "dtype", "seed")
"""What the learners of a grid have in common."""

MOST_SLOTS = 4096
"""A grid keeps the inner products of all pairs of slots."""


class Grid(OnePass):
    """Many learners over one feature map and one memory, for the price of a few.

    What the memory keeps does not depend on a model, so that mapping, clustering and inner products are done once for
    all. Every model is what it would be alone, up to rounding (relative 1e-10 in float64, 1e-5 in float32).

    Parameters
    ----------
    learners : learners that differ only in loss, step, penalty (L2) and average; they themselves stay as they are.
    block_rows : rows whose products are taken together; by default 128, or 256 for 64 models and more.

    Rows are learned in blocks that begin at multiples of ``block_rows`` of the stream, however it is cut into calls;
    the rows of the block that is still open are kept. Whoever asks for weights or scores gets those after all rows:
    the open block is then evaluated on a copy. So the bits do not depend on the cuts, nor on who looked when.
    A model whose weights leave the range of numbers (beyond 1e15, or not finite) is put back to the start of its block
    and frozen, with a StabilityWarning; the others do not notice.

    Attributes
    ----------
    learners : as given: ``grid.learners[i].step.eta`` is the step of model i.
    n_seen : rows learned.
    frozen : the models that are frozen, each with the row at which it was.
    nbytes : bytes of all arrays that the grid holds.

    Cost: see :mod:`pairloom.engines.blocked`. For G models, S slots and b rows in a block, besides what one learner
    keeps: (G + G_averaged) D + S^2 + 4096 G + b d numbers.

    >>> from pairloom import Constant, Gaussian, RandomFourier
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(3000, 2)), np.ones(3000)
    >>> y[(X ** 2).sum(axis=1) > 2] = -1
    >>> one = Learner(features=RandomFourier(64, Gaussian("median")), seed=0)
    >>> grid = Grid([replace(one, step=Constant(eta)) for eta in (0.001, 0.01, 0.1)]).partial_fit(X, y)
    >>> best = int(grid.auc().argmax())
    >>> best, bool(grid.learner(best).score(X[y > 0]).mean() > grid.learner(best).score(X[y < 0]).mean())
    (2, True)
    """

    large_products = True

    state: GridState | None

    def __init__(self, learners: Sequence[Learner], block_rows: int | None = None) -> None:
        self.learners = list(learners)
        check_learners(self.learners)
        if block_rows is not None:
            check_count("block_rows", block_rows)
        one = self.learners[0]
        self.features, self.pairs, self.memory = one.features, one.pairs, one.memory
        self.dtype, self.seed, self.engine = one.dtype, one.seed, one.engine
        self.lanes = arrange(self.learners, len(self.pairs.models))
        self.block_rows = default_rows(len(self.lanes)) if block_rows is None else block_rows
        self.state = self.kept = None
        self._ahead: tuple[int, GridState] | None = None
        self._n_warned = 0

    def __repr__(self) -> str:
        return f"<Grid of {len(self)} models like {self.learners[0]}, {self.n_seen:,} rows>"

    def __len__(self) -> int:
        return len(self.learners)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_ahead": None}

    @property
    def needs_data(self) -> bool:
        return self.learners[0].needs_data

    @property
    def n_seen(self) -> int:
        return 0 if self.state is None else self.state.t + sum(map(len, self.state.open))

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return nbytes(self.held)

    @property
    def held(self) -> list[Any]:
        return [*super().held, None if self._ahead is None else self._ahead[1]]

    @property
    def coef(self) -> Array:
        """The output iterates: one row per model, or with more than two classes one for each of its classes."""
        now, n = self._now(), self.lanes.n_averaged
        return np.concatenate([now.w_bar[:n], now.w[n:]])[self.lanes.order]

    @property
    def frozen(self) -> dict[int, int]:
        """The models that are frozen, each with the row at which it was."""
        return {} if self.state is None else self._frozen(self._now())

    def _score_rows(self, X: Any) -> Array:
        """Scores of each row by each model: (rows, models), or (rows, models, classes) for more than two classes."""
        if self.state is None:
            return self._by_model(np.zeros((X.shape[0], len(self.lanes))))
        return self._by_model(super()._score_rows(X))

    def recent(self) -> tuple[Array, Array, Array]:
        """Scores of the newest 4,096 rows, each given before its row was learned, with labels and weights, in order."""
        if self.state is None:
            return self._by_model(np.zeros((0, len(self.lanes)))), np.zeros(0), np.zeros(0)
        recent = self._now().recent
        scores, labels, weights = (np.roll(a, -recent.count, axis=0) for a in recent.view())
        return self._by_model(scores), labels, weights

    def auc(self) -> Array:
        """AUC of each model's ``recent`` scores; with more than two classes, the mean over classes against the rest.

        NaN until a class and its rest were both seen.
        """
        from sklearn.metrics import roc_auc_score

        if not isinstance(self.pairs, OppositeClass):
            raise ValueError(f"AUC is for classes; {type(self.pairs).__name__} pairs have none")
        scores, labels, weights = self.recent()
        scores = scores.reshape(len(labels), len(self), -1)
        seen = [k for k, target in enumerate(self.pairs.models) if 0 < (labels == target).sum() < len(labels)]
        if not seen:
            return np.full(len(self), np.nan)
        areas = [
            [roc_auc_score(labels == self.pairs.models[k], scores[:, i, k], sample_weight=weights) for k in seen]
            for i in range(len(self))
        ]
        return np.asarray(np.mean(areas, axis=1))

    def learner(self, index: int) -> Learner:
        """Model ``index`` as a learner of its own, which goes on where the grid is; the grid does not notice."""
        picked = replace(self.learners[index])
        if self.state is None:
            return picked
        now, n = self._now(), len(self.pairs.models)
        columns = range(len(self))[index] * n + np.arange(n)
        lanes = self.lanes.order[columns]
        w = now.w[lanes]
        tally = now.tally[:, lanes].sum(axis=1)
        tally[WORST] = now.tally[WORST, lanes].max()
        recent = Recent(now.recent.scores[:, columns], now.recent.labels, now.recent.weights, now.recent.count)
        w_bar = now.w_bar[lanes] if lanes[0] < self.lanes.n_averaged else np.zeros_like(w)
        picked.state = deepcopy(State(now.phi, now.memory, now.rng, w, w_bar, recent, now.t, tally))
        picked.kept = deepcopy(self.kept)
        return picked

    def check_room(self, n: int) -> None:
        """Raise ValueError unless the memory can take ``n`` more rows."""
        waiting = 0 if self.state is None else self.n_seen - self.state.t
        self.memory.check_room(None if self.state is None else self.state.memory, waiting + n)

    def warn_if_unstable(self, stacklevel: int = 3) -> None:
        """Warn of models that were frozen since the last warning.

        Not of steps that were cut: in a grid some are too long on purpose. ``learner(i).warn_if_unstable()`` tells.
        """
        frozen = {} if self.state is None else self._frozen(self.state)
        if len(frozen) > self._n_warned:
            named = ", ".join(f"{i} (row {row:,})" for i, row in frozen.items())
            warnings.warn(
                f"the weights of these models left the range of numbers, and they are frozen: {named}. "
                "Lower their eta, or scale the columns.",
                StabilityWarning,
                stacklevel=stacklevel,
            )
        self._n_warned = len(frozen)

    def _start_memory(self, n_features: int, phi: Any, rows: Any) -> MemoryState:
        return self.learners[0]._start_memory(n_features, phi, rows)

    def _initial(self, n_features: int, rows: Any) -> GridState:
        one = super()._initial(n_features, rows)
        n, n_slots, dim, kind = len(self.lanes), len(one.memory.slots.mass), one.w.shape[1], one.w.dtype
        if n_slots > MOST_SLOTS:
            raise ValueError(
                f"a grid keeps the inner products of all pairs of slots and takes at most {MOST_SLOTS} of them; "
                f"{self.memory} has {n_slots}"
            )
        return GridState(
            one.phi, one.memory, one.rng, np.zeros((n, dim), kind), np.zeros((self.lanes.n_averaged, dim), kind),
            Recent(np.zeros((len(one.recent.scores), n))), tally=np.zeros((len(one.tally), n)),
            gram=np.zeros((n_slots, n_slots), kind), frozen=np.zeros(n, np.int64),
        )  # fmt: skip

    def _run(self, batch: Batch) -> Array:
        assert self.state is not None
        return learn_block(self, self.state, batch)

    def _run_and_remember(self, batch: Batch) -> None:
        """Learn the blocks that these rows fill, and keep the rest."""
        assert self.state is not None
        self._ahead = None
        rows = Batch.join([*self.state.open, batch])
        whole = len(rows) - len(rows) % self.block_rows
        for start in range(0, whole, self.block_rows):
            super()._run_and_remember(rows[start : start + self.block_rows])
        self.state.open = [rows[whole:].copy()] if whole < len(rows) else []

    @on_one_thread
    def _now(self) -> GridState:
        """The state after all rows, those of the open block too."""
        assert self.state is not None, "no rows seen yet"
        if not self.state.open:
            return self.state
        known = self._ahead
        if known is None or known[0] != self.n_seen:
            # Another thread may ask at the same time, or this one be interrupted: it is shown when it is complete.
            known = self.n_seen, deepcopy(self.state)
            rows = Batch.join(known[1].open)
            known[1].recent.add(learn_block(self, known[1], rows), rows)
            self._ahead = known
        return known[1]

    def _frozen(self, state: GridState) -> dict[int, int]:
        rows = state.frozen[self.lanes.order].reshape(len(self), -1).max(axis=1)
        return {int(i): int(rows[i]) for i in np.flatnonzero(rows)}

    def _by_model(self, values: Array) -> Array:
        """(n, vectors) as (n, models), or (n, models, classes)."""
        n = len(self.pairs.models)
        return values.reshape((len(values), len(self), n) if n > 1 else (len(values), len(self)))


def check_learners(learners: list[Learner]) -> None:
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
    if learners[0].memory.weighting == "sum":
        raise ValueError(f"a grid takes weights that are shares, not sums; got {learners[0].memory}")
    for learner in learners:
        if not isinstance(learner.penalty, L2):
            raise ValueError(f"a grid takes penalty=L2(...), explicit or proximal; got {learner.penalty}")
        if learner.step.sequential:
            raise ValueError(f"a grid takes gradient steps; got {learner.step}")
        if learner.engine == "reference":
            raise ValueError("a grid has its own engine: leave engine='auto'")


def default_rows(n_vectors: int) -> int:
    """Rows of a block: few make small products, many make many coefficients."""
    return 128 if n_vectors < 64 else 256
