"""The all-pairs minimiser for many penalties at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from pairloom.base.batch import Batch, Scored
from pairloom.base.checks import check_count, check_numbers
from pairloom.base.clock import is_solution, next_solution
from pairloom.base.typing import Array
from pairloom.engines.base import Engine
from pairloom.engines.state import State
from pairloom.features.linear_sum import LinearSum
from pairloom.models.base import Mapped, Trouble, linear_scores
from pairloom.models.exact import ExactLearner, solved, start_moments
from pairloom.models.many import Many
from pairloom.pairs import OppositeClass

MANY, TURN = 256, 32
"""Features from which on penalties take turns, so many rows apart."""

LARGE_APART = 512
"""Rows between two solutions with so many features, at least, in a stream that has changed."""


@dataclass(frozen=True, kw_only=True)
class ExactPath(Mapped, Many):
    """An :class:`ExactLearner` for each penalty ``alphas``, in units of trace(G) / t.

    Weights and scores have the targets of the first penalty first. For the test-then-train scores it is solved for a
    few times in every doubling of the stream; with many features the penalties take turns, so that no row waits for all
    of them.

    Parameters
    ----------
    alphas : the penalties.
    since : the row before which it is not solved for, and scores are 0.
    turn : penalties that take their turn before these.
    max_bytes : of the moments.

    >>> from pairloom import Stream
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> path = Stream(ExactPath(alphas=(1e-3, 1e-1))).partial_fit(X, np.where(X[:, 0] > 1, 1, -1))
    >>> path.coef.shape, path.only(1).model.alphas
    ((2, 3), (0.1,))
    """

    engines: ClassVar[Mapping[str, Sequence[Engine]]] = ExactLearner.engines
    large_products: ClassVar[bool] = True

    pairs: OppositeClass = field(default_factory=OppositeClass)
    alphas: tuple[float, ...] = (0.01, 0.1, 1.0, 4.0, 16.0, 64.0)
    since: int = 0
    turn: int = 0
    max_bytes: int = 2**30

    def __post_init__(self) -> None:
        super().__post_init__()
        check_numbers("alphas", self.alphas, 0)
        check_count("max_bytes", self.max_bytes)

    def __len__(self) -> int:
        return len(self.alphas)

    @property
    def n_vectors(self) -> int:
        return len(self.alphas) * len(self.pairs.targets)

    @property
    def needs_data(self) -> bool:
        return self.features.needs_data

    def pick(self, index: int) -> "ExactPath":
        """The path of one penalty."""
        return replace(self, alphas=(self.alphas[index],), turn=self.turn + range(len(self))[index])

    def only(self, index: int, state: State) -> tuple[State, Array]:
        """What one of the models has learned, and the columns of its scores."""
        size = len(self.pairs.targets)
        rows = index * size + np.arange(size)
        moments = replace(state.memory, solved=None, summed=None)
        return replace(state, memory=moments, w=state.w[rows], w_bar=state.w_bar[rows]), rows

    def init(self, n_features: int, first: Batch | None) -> State:
        return self.begin(n_features, first, lambda phi, rows: start_moments(self, n_features, self.max_bytes))

    def run(self, state: State, batch: Batch) -> Scored:
        scored, size = self.learn(state, batch), len(self.pairs.targets)
        clock = self._clock(state)
        due = [
            k for k, turn in enumerate(self._turns(state))
            if is_solution(state.t - turn, *clock) and state.t >= self.since
        ]  # fmt: skip
        if due:
            made = self._solve(state, [self.alphas[k] for k in due])
            state.w.reshape(len(self), size, -1)[due] = made
            state.memory.summed = None
        return scored

    def _turns(self, state: State) -> list[int]:
        """How long after a solution's row each penalty is solved for."""
        return [TURN * (self.turn + k) if state.w.shape[1] > MANY else 0 for k in range(len(self))]

    def _clock(self, state: State) -> tuple[int, int]:
        """Rows that do not count for the clock of solutions, and the least rows between two."""
        if state.since is None:
            return 0, 1
        return int(state.since), LARGE_APART if state.w.shape[1] > MANY else 1

    def _solve(self, state: State, alphas: Sequence[float]) -> Array:
        """The minimisers for all rows so far: (penalties, targets, D)."""
        moments = state.memory.folded()
        problems = [moments.of(int(k)) for k in self.pairs.targets]
        unit = np.array(alphas) / max(1.0, float(moments.counts.sum()))
        return np.stack([problem.path(unit * np.trace(problem.G)) for problem in problems], axis=1)

    def solve(self, state: State) -> Array:
        """The minimisers for all rows so far, one row for each penalty and target."""
        return self._solve(state, self.alphas).reshape(self.n_vectors, -1).astype(state.w.dtype)

    def coef(self, state: State) -> Array:
        """``solve``, once for the same rows."""
        return solved(self, state)

    def score(self, state: State, X: Any) -> Array:
        """<w, phi(x)> of each row, with the minimisers for all rows so far."""
        return linear_scores(self.features, state, self.coef(state), X)

    def next_row(self, state: State) -> int:
        clock = self._clock(state)
        turns = [turn + next_solution(max(0, state.t - turn), *clock) for turn in self._turns(state)]
        return min(*turns, state.t + int(state.memory.room))

    def quick(self, state: State, X: Any) -> Array:
        """``score`` with the minimisers as they were last solved for on the stream's clock."""
        return linear_scores(self.features, state, state.w, X)

    def linear_sum(self, state: State, slopes: Array) -> LinearSum | None:
        """Of the minimisers as in ``quick``: made once for the same minimisers and slopes."""
        known: tuple[Array, LinearSum] | None = state.memory.summed
        if known is not None and np.array_equal(known[0], slopes):
            return known[1]
        total = self.features.linear_sum(state.phi, state.w.reshape(*slopes.shape, -1), slopes)
        state.memory.summed = None if total is None else (slopes.copy(), total)
        return total

    def check_room(self, state: State | None, n: int) -> None:
        """There is room for every row."""

    def trouble(self, state: State, told: float) -> Trouble | None:
        """None: there are no steps."""
        return None

    @property
    def forgets(self) -> bool:
        return True

    def forget(self, state: State, keep: float) -> None:
        """The moments weigh less; the minimiser is the same until new rows come."""
        state.forget(keep)
        state.memory.forget(keep)
