"""The all-pairs minimiser for many penalties at once."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pairloom.checks import check_number
from pairloom.state import RECENT, Recent, State
from pairloom.systems.exact_auc import ExactLearner
from pairloom.typing import Array


@dataclass(eq=False, kw_only=True)
class ExactPath(ExactLearner):
    """An :class:`ExactLearner` with one model for each penalty ``alphas``, in units of trace(G) / t.

    Weights and scores have the models of the first penalty first. One eigendecomposition serves all penalties; for the
    test-then-train scores there are two in every doubling of the stream.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> path = ExactPath(alphas=(1e-3, 1e-1)).partial_fit(X, np.where(X[:, 0] > 1, 1, -1))
    >>> path.coef.shape, path.only([1]).alphas
    ((2, 3), (0.1,))
    """

    alphas: tuple[float, ...] = (0.01, 0.1, 1.0, 4.0, 16.0, 64.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        for alpha in self.alphas:
            check_number("alphas", alpha, 0)

    def __len__(self) -> int:
        return len(self.alphas)

    def only(self, models: list[int]) -> "ExactPath":
        """Some of the models, which go on where these are."""
        picked = replace(self, alphas=tuple(self.alphas[i] for i in models))
        if self.state is not None:
            size = len(self.pairs.models)
            rows = np.concatenate([i * size + np.arange(size) for i in models])
            recent = self.state.recent
            picked.state = replace(
                self.state, w=self.state.w[rows], w_bar=self.state.w_bar[rows],
                recent=Recent(recent.scores[:, rows], recent.labels, recent.weights, recent.count),
            )  # fmt: skip
        return picked

    def next_solution(self, t: int) -> int:
        if t < 4:
            return t + 1
        half = 1 << (t.bit_length() - 2)
        return half * (t // half + 1)

    def _initial(self, n_features: int, rows: Any) -> State:
        one = super()._initial(n_features, rows)
        w = np.tile(one.w, (len(self.alphas), 1))
        return replace(one, w=w, w_bar=w.copy(), recent=Recent(np.zeros((RECENT, len(w)))))

    def _solve(self, state: State) -> Array:
        moments = state.memory.folded()
        problems = [moments.of(int(k)) for k in self.pairs.models]
        unit = np.array(self.alphas) / max(1.0, float(moments.counts.sum()))
        paths = [problem.path(unit * np.trace(problem.G)) for problem in problems]
        return np.stack(paths, axis=1).reshape(-1, paths[0].shape[1]).astype(state.w.dtype)
