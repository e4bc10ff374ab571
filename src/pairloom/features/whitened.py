"""Whitened features: preconditioned gradient descent as a feature map."""

from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np

from pairloom.base.checks import check_count
from pairloom.base.csr import is_sparse
from pairloom.base.graph import Value
from pairloom.base.spec import StateSpec
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.features.base import FeatureMap
from pairloom.features.capabilities import Cost, RacingMap, cost_of
from pairloom.features.fourier import RandomFourier, project
from pairloom.features.scaling import WrapperState

MIN_VARIANCE = 1e-6
"""Smallest variance used, relative to the largest: smaller variances are rounding errors in float32."""

MAX_ROWS = 2048
"""Number of rows for computing variances, unless ``warm_rows`` is larger."""

BLOCK_SIZE = 1 << 17
"""Number of values of CSR rows made dense at a time."""


@node
class WhitenedState(WrapperState):
    """Arrays of a fixed whitened map: factor ((z - mean) - (z - mean) @ directions @ cut).

    ``directions`` (D, k) and ``cut`` (k, D) are padded with zeros; ``factor`` has one number.
    """

    mean: Annotated[Array, "R D finite"]
    directions: Annotated[Array, "R D k finite"]
    cut: Annotated[Array, "R k D finite"]
    factor: Annotated[Array, "R 1 finite"]

    @property
    def gamma(self) -> Any:
        """The inner map's kernel width; None if it has none."""
        return getattr(self.inner, "gamma", None)


@dataclass(frozen=True)
class Whitened(RacingMap):
    """phi(x) = c ((z - m) - U diag(1 - sqrt(l_{k+1} / l_i)) U' (z - m)), with z the features of an inner map.

    The mean m, the k largest variances l and their directions U are those of the first rows of the stream, and c scales
    their mean squared norm to 1. So the k largest variances become l_{k+1}, and gradient descent is no longer slow
    along directions of small variance. If the rows span fewer than k + 1 directions, fewer are cut; for one row, or
    equal rows, phi is the inner map.

    Parameters
    ----------
    inner : the inner map; its ``scale`` is the scaling of the input columns.
    rank : k.

    Cost: that of the inner map and 4 k D flops per row; 2 k D numbers; once, a randomised singular value
    decomposition of at most 2,048 rows of features. The features of CSR rows are dense, even those of Identity.

    Reference: Ma and Belkin, Diving into the Shallows: a Computational Perspective on Large-Scale Shallow Learning,
    NIPS 2017.

    >>> from pairloom.features import Identity
    >>> X = np.random.default_rng(0).normal(size=(500, 3)) * [100.0, 10.0, 1.0]
    >>> phi = Whitened(Identity(), rank=2)
    >>> Z = phi.apply(phi.fix(3, X, np.random.default_rng(0)), X)
    >>> np.cov(Z.T, bias=True).round(6) + 0.0
    array([[0.333333, 0.      , 0.      ],
           [0.      , 0.333333, 0.      ],
           [0.      , 0.      , 0.333333]])
    """

    inner: FeatureMap = field(default_factory=RandomFourier)
    rank: int = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.inner, FeatureMap):
            raise ValueError(f"inner must be a feature map, such as RandomFourier(512); got {self.inner!r}")
        if self.inner.sparse is not None:
            raise ValueError(f"a sparse map has too many features to be whitened; got {self.inner!r}")
        check_count("rank", self.rank)
        if self.scale is not None:
            raise ValueError(f"the inner map scales the columns: pass scale={self.scale!r} to it")

    @property
    def needs_data(self) -> bool:
        return True

    @property
    def warm_rows(self) -> int:
        return max(self.inner.warm_rows, 2 * self.rank)

    def n_outputs(self, n_features: int) -> int:
        return self.inner.n_outputs(n_features)

    def cost(self, n_features: int) -> Cost:
        inner, size = cost_of(self.inner, n_features), self.rank * self.n_outputs(n_features)
        return Cost(inner.flops + 4.0 * size, inner.numbers + 2 * size)

    def check(self, n_features: int) -> None:
        self.inner.check(n_features)

    def fix(self, n_features: int, rows: Array | None, rng: np.random.Generator) -> WhitenedState:
        inner = self.inner.fix(n_features, rows, rng)
        seed = int(rng.integers(1 << 31))
        D = self.n_outputs(n_features)
        k = min(self.rank, D)
        state = WhitenedState(inner, np.zeros(D), np.zeros((D, k)), np.zeros((k, D)), np.ones(1))
        if rows is not None and rows.shape[0] > 1:
            self._measure(state, rows, seed)
        return state

    def state_spec(self, n_features: int, t: int, n_targets: int) -> StateSpec:
        spec, inner = super().state_spec(n_features, t, n_targets), self.inner.state_spec(n_features, t, n_targets)
        spec.symbols["k"] = min(self.rank, spec.symbols["D"])
        return replace(spec, parts={"inner": inner})

    def _measure(self, state: WhitenedState, rows: Any, seed: int) -> None:
        """Set mean, directions, cut and factor from the inner features of ``rows``."""
        rows = (rows.tocsr() if is_sparse(rows) else rows)[: max(MAX_ROWS, self.warm_rows)].astype(float)
        Z = self._inner(state, rows)
        mean, power = Z.mean(axis=0), np.square(Z).sum()
        Z -= mean
        if np.square(Z).sum() <= MIN_VARIANCE**2 * power:
            return
        # Imported here: loading scikit-learn would slow down every start.
        from sklearn.utils.extmath import randomized_svd

        k = state.directions.shape[1]
        _, roots, directions = randomized_svd(Z, min(k + 1, *Z.shape), random_state=seed)
        last = int(np.sum(np.square(roots) > MIN_VARIANCE * np.square(roots[0]))) - 1
        state.mean = mean
        state.directions[:, :last] = directions[:last].T
        state.cut[:last] = (1.0 - roots[last] / roots[:last])[:, None] * directions[:last]
        Z -= Z @ state.directions @ state.cut
        state.factor[0] = np.sqrt(len(Z) / np.square(Z).sum())

    def apply(self, state: WhitenedState, X: Any) -> Array:
        Z = self._inner(state, X)
        Z -= state.mean
        Z -= project(project(Z, state.directions), state.cut)
        Z *= state.factor
        return Z

    def to_onnx(self, state: WhitenedState, x: Value) -> Value:
        z = self.inner.to_onnx(state.inner, x).to("f8") - state.mean
        return (z - z @ state.directions @ state.cut) * state.factor

    def _inner(self, state: WhitenedState, X: Any) -> Array:
        """Return the inner features, dense."""
        if not (is_sparse(X) and self.inner.keeps_csr):
            return self.inner.apply(state.inner, X)
        X = X.tocsr()
        n, d = X.shape
        Z = np.empty((n, d), dtype=state.mean.dtype)
        rows = max(1, BLOCK_SIZE // d)
        for start in range(0, n, rows):
            part = slice(start, start + rows)
            Z[part] = self.inner.apply(state.inner, X[part].toarray())
        return Z
