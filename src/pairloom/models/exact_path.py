"""The all-pairs minimiser for many penalties at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from pairloom.base.batch import Batch, Scored
from pairloom.base.checks import check_count, check_numbers
from pairloom.base.clock import next_solution
from pairloom.base.typing import Array
from pairloom.engines.base import Engine
from pairloom.engines.state import State
from pairloom.models.base import Mapped, Trouble, linear_scores
from pairloom.models.exact import ExactLearner, solved, start_moments
from pairloom.pairs import OppositeClass


@dataclass(frozen=True, kw_only=True)
class ExactPath(Mapped):
    """An :class:`ExactLearner` for each penalty ``alphas``, in units of trace(G) / t.

    Weights and scores have the targets of the first penalty first. One eigendecomposition serves all penalties; for the
    test-then-train scores there are two in every doubling of the stream.

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
        return replace(self, alphas=(self.alphas[index],))

    def only(self, index: int, state: State) -> tuple[State, Array]:
        """What one of the models has learned, and the columns of its scores."""
        size = len(self.pairs.targets)
        rows = index * size + np.arange(size)
        moments = replace(state.memory, solved=None)
        return replace(state, memory=moments, w=state.w[rows], w_bar=state.w_bar[rows]), rows

    def init(self, n_features: int, first: Batch | None) -> State:
        return self.begin(n_features, first, lambda phi, rows: start_moments(self, n_features, self.max_bytes))

    def run(self, state: State, batch: Batch) -> Scored:
        due = next_solution(state.t) == state.t + len(batch)
        scored = self.learn(state, batch)
        if due:
            state.w[:] = self.solve(state)
        return scored

    def solve(self, state: State) -> Array:
        """The minimisers for all rows so far."""
        moments = state.memory.folded()
        problems = [moments.of(int(k)) for k in self.pairs.targets]
        unit = np.array(self.alphas) / max(1.0, float(moments.counts.sum()))
        paths = [problem.path(unit * np.trace(problem.G)) for problem in problems]
        return np.stack(paths, axis=1).reshape(-1, paths[0].shape[1]).astype(state.w.dtype)

    def coef(self, state: State) -> Array:
        """``solve``, once for the same rows."""
        return solved(self, state)

    def score(self, state: State, X: Any) -> Array:
        """<w, phi(x)> of each row, with the minimisers for all rows so far."""
        return linear_scores(self.features, state, self.coef(state), X)

    def next_row(self, state: State) -> int:
        return min(next_solution(state.t), state.t + int(state.memory.room))

    def check_room(self, state: State | None, n: int) -> None:
        """There is room for every row."""

    def trouble(self, state: State, told: float) -> Trouble | None:
        """None: there are no steps."""
        return None
