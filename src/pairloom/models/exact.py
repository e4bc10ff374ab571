"""The exact minimiser of the square loss over all pairs, for one penalty or for several."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from pairloom.base.batch import Batch, Scored
from pairloom.base.checks import check_count, check_number, check_numbers
from pairloom.base.clock import is_solution, next_calibration, next_solution
from pairloom.base.compiled import row_dots
from pairloom.base.graph import Value
from pairloom.base.spec import StateSpec
from pairloom.base.threads import on_one_thread
from pairloom.base.typing import Array
from pairloom.engines.base import Engine, engines_of
from pairloom.engines.state import State
from pairloom.features.base import dense_features
from pairloom.features.capabilities import LinearSum, check_not_growing, rows_used_to_grow, scores_onnx
from pairloom.features.contributions import Explainable
from pairloom.models.base import Many
from pairloom.models.class_moments import BLOCK_ROWS, ClassMoments
from pairloom.models.mapped import Mapped, explainable_scores, linear_scores
from pairloom.models.merging import merge_moments, merge_states
from pairloom.pairs import OppositeClass

MIN_ROWS_APART = 64
"""Minimum number of rows between two solutions after rows were forgotten."""

LARGE_DIM = 256
"""With more features than this, a solution takes a long time."""

TURN_ROWS, LARGE_DIM_ROWS_APART = 32, 512
"""With many features: number of rows between the turns of two penalties; minimum number of rows between two solutions
of one penalty after rows were forgotten."""


@dataclass(frozen=True)
class Folding:
    """Score rows with the last solution, then add them to the moments, ``rows`` at a time."""

    rows: int
    double: bool
    any_part: bool

    def takes(self, model: "FromMoments", state: State, batch: Batch) -> bool:
        return True

    def run(self, model: "FromMoments", state: State, batch: Batch) -> Array:
        Z = dense_features(model.features, state.phi, batch.X)
        scores = np.column_stack([row_dots(Z, w) for w in state.w]).astype(float)
        kept, n = state.memory, len(batch)
        new = slice(int(kept.filled[0]), int(kept.filled[0]) + n)
        kept.rows[new], kept.labels[new], kept.weights[new] = Z, batch.y, batch.weight
        kept.filled[0] += n
        state.t += n
        if kept.filled[0] == self.rows:
            kept.fold()
        return scores


@dataclass(frozen=True, kw_only=True)
class FromMoments(Mapped):
    """A model whose weights are computed from the moments of the classes.

    For the test-then-train scores, the weights are computed only at some rows.
    """

    engines: ClassVar[Mapping[str, Sequence[Engine]]] = {
        "reference": (Folding(1, double=True, any_part=True),),
        "fused": (Folding(BLOCK_ROWS, double=False, any_part=False),),
    }
    large_products: ClassVar[bool] = True

    pairs: OppositeClass = field(default_factory=OppositeClass)
    max_bytes: int = 2**30

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("max_bytes", self.max_bytes)

    @abstractmethod
    def solve(self, state: State) -> Array:
        """Return the minimisers for all rows so far, one row for each penalty and target."""

    @property
    def block_rows(self) -> int:
        """Number of rows added to the moments at once."""
        rows: int = engines_of(self)[0].rows  # type: ignore[attr-defined]
        return rows

    def init(self, n_features: int, first: Batch | None) -> State:
        D, C, rows = self.features.n_outputs(n_features), self.pairs.n_groups, self.block_rows
        need = 8 * C * D * D
        if need > self.max_bytes:
            raise ValueError(
                f"ExactAUC keeps {C} matrices of {D:,} x {D:,} numbers, {need / 1e9:.3g} GB; max_bytes="
                f"{self.max_bytes} allows {int((self.max_bytes / (8 * C)) ** 0.5):,} columns. Raise max_bytes, map the "
                "rows to fewer features, such as features=RandomFourier(1024), or use SPAM(), which keeps a few vectors"
            )
        moments = ClassMoments(
            np.zeros(C), np.zeros((C, D)), np.zeros((C, D, D)), np.zeros((rows, D), self.dtype),
            np.zeros(rows), np.zeros(rows), np.zeros(1, np.int64),
        )  # fmt: skip
        return self.begin(n_features, first, lambda phi, rows: moments)

    @on_one_thread
    def coef(self, state: State) -> Array:
        """Return ``solve(state)``, cached for the same rows; the cache is not part of the state."""
        known: tuple[int, Array] | None = state.memory.solved
        if known is None or known[0] != state.t:
            state.memory.solved = known = (state.t, self.solve(state))
        return known[1]

    def score(self, state: State, X: Any) -> Array:
        """Return <w, phi(x)> of each row, with the minimisers for all rows so far."""
        return linear_scores(self.features, state, self.coef(state), X)

    def explainable(self, state: State) -> Explainable | None:
        return explainable_scores(self.features, state, self.coef(state))

    def to_onnx(self, state: State, x: Value) -> Value:
        return scores_onnx(self.features, state.phi, self.coef(state), x)

    def memory_spec(self, n_features: int, dim: int) -> StateSpec:
        return StateSpec(ClassMoments, {"s": self.block_rows})

    def check_state(self, t: int, state: State) -> None:
        state.check_plain(t)
        if state.memory.filled[0] > max(0, t - rows_used_to_grow(self.features, state.phi)):  # a merge ends the block
            raise ValueError(f"must have some of {t} rows in the open block")

    def merge(self, base: State, parts: Sequence[State]) -> State:
        """Add the moments that each part has added to those of the base, and solve."""
        state = merge_states(self, base, parts)
        state.memory = merge_moments(base.memory, [part.memory for part in parts])
        with np.errstate(over="ignore"):
            state.w = self.coef(state)
        return state

    @property
    def forgetting(self) -> Self:
        return self

    def forget(self, state: State, keep: float) -> None:
        """Reduce the weight of the moments; the minimisers stay the same until new rows arrive."""
        state.forget(keep)
        state.memory.forget(keep)


@dataclass(frozen=True, kw_only=True)
class ExactLearner(FromMoments):
    """The minimiser of the square loss over all pairs, with the penalty (``alpha`` / 2) ||w||^2."""

    alpha: float = 1e-4

    def __post_init__(self) -> None:
        super().__post_init__()
        check_not_growing(self.features, type(self).__name__)
        check_number("alpha", self.alpha, 0)

    def run(self, state: State, batch: Batch) -> Scored:
        due = self._next_solution(state) == state.t + len(batch)
        scored = self.learn(state, batch)
        if due:
            state.w[:] = self.solve(state)
        return scored

    def solve(self, state: State) -> Array:
        moments = state.memory.folded()
        made = [moments.of(int(k)).minimiser(self.alpha) for k in self.pairs.targets]
        return np.array(made).astype(state.w.dtype)

    def next_row(self, state: State) -> int:
        return min(self._next_solution(state), state.t + int(state.memory.room))

    def _next_solution(self, state: State) -> int:
        if state.since is None:
            return next_calibration(state.t)
        return next_calibration(state.t, int(state.since), MIN_ROWS_APART)


@dataclass(frozen=True, kw_only=True)
class ExactPath(FromMoments, Many):
    """An :class:`ExactLearner` for each penalty ``alphas``, in units of trace(G) / t.

    In weights and scores, the targets of the first penalty come first. For the test-then-train scores, the minimisers
    are computed a few times per doubling of the stream; with many features the penalties take turns, so that no row
    waits for all of them.

    Parameters
    ----------
    alphas : the penalties.
    since : the row before which no minimiser is computed, and scores are 0.
    turn : number of penalties that take their turn before these.
    max_bytes : largest size of the moments.

    >>> from pairloom import Stream
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> path = Stream(ExactPath(alphas=(1e-3, 1e-1))).partial_fit(X, np.where(X[:, 0] > 1, 1, -1))
    >>> path.coef.shape, path.only(1).model.alphas
    ((2, 3), (0.1,))
    """

    steady: ClassVar[bool] = True

    alphas: tuple[float, ...] = (0.01, 0.1, 1.0, 4.0, 16.0, 64.0)
    since: int = 0
    turn: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_numbers("alphas", self.alphas, 0)

    def __len__(self) -> int:
        return len(self.alphas)

    @property
    def n_vectors(self) -> int:
        return len(self.alphas) * len(self.pairs.targets)

    def shaped(self, scores: Array) -> Array:
        """Reshape scores for users: a column per penalty and target, or one dimension if there is only one."""
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def pick(self, index: int) -> "ExactPath":
        """Return the path of one penalty."""
        return replace(self, alphas=(self.alphas[index],), turn=self.turn + range(len(self))[index])

    def only(self, index: int, state: State) -> tuple[State, Array]:
        """Return the state of one of the models, and the columns of its scores."""
        size = len(self.pairs.targets)
        rows = index * size + np.arange(size)
        moments = replace(state.memory, solved=None, summed=None)
        return replace(state, memory=moments, w=state.w[rows], w_bar=state.w_bar[rows]), rows

    def run(self, state: State, batch: Batch) -> Scored:
        scored, size = self.learn(state, batch), len(self.pairs.targets)
        clock = self._clock(state)
        due = [
            k for k, turn in enumerate(self._turns(state))
            if is_solution(state.t - turn, *clock) and state.t >= self.since
        ]  # fmt: skip
        if due:
            made = self._solve(state, [self.alphas[k] for k in due])
            with np.errstate(over="ignore"):  # tiny columns: a race ignores models with infinite weights
                state.w.reshape(len(self), size, -1)[due] = made
            state.memory.summed = None
        return scored

    def _turns(self, state: State) -> list[int]:
        """Return the delay of each penalty's solution, in rows."""
        return [TURN_ROWS * (self.turn + k) if state.w.shape[1] > LARGE_DIM else 0 for k in range(len(self))]

    def _clock(self, state: State) -> tuple[int, int]:
        """Return ``since`` and ``apart`` for the schedule of solutions."""
        if state.since is None:
            return 0, 1
        return int(state.since), LARGE_DIM_ROWS_APART if state.w.shape[1] > LARGE_DIM else 1

    def _solve(self, state: State, alphas: Sequence[float]) -> Array:
        """Return the minimisers for all rows so far: (penalties, targets, D)."""
        moments = state.memory.folded()
        problems = [moments.of(int(k)) for k in self.pairs.targets]
        unit = np.array(alphas) / max(1.0, float(moments.counts.sum()))
        return np.stack([problem.path(unit * np.trace(problem.G)) for problem in problems], axis=1)

    def solve(self, state: State) -> Array:
        return self._solve(state, self.alphas).reshape(self.n_vectors, -1).astype(state.w.dtype)

    def next_row(self, state: State) -> int:
        clock = self._clock(state)
        turns = [turn + next_solution(max(0, state.t - turn), *clock) for turn in self._turns(state)]
        return min(*turns, state.t + int(state.memory.room))

    def quick(self, state: State, X: Any) -> Array:
        """Return the scores by the minimisers last computed during learning."""
        return linear_scores(self.features, state, state.w, X)

    def linear_sum(self, state: State, slopes: Array) -> LinearSum | None:
        """Return the sum of the minimisers of ``quick``, cached for the same minimisers and slopes."""
        known: tuple[Array, LinearSum] | None = state.memory.summed
        if known is not None and np.array_equal(known[0], slopes):
            return known[1]
        racing = self.features.racing
        total = None if racing is None else racing.linear_sum(state.phi, state.w.reshape(*slopes.shape, -1), slopes)
        state.memory.summed = None if total is None else (slopes.copy(), total)
        return total
