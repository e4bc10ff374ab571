"""Whitened features: preconditioned descent, told as a feature map."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pairloom.base.checks import check_count
from pairloom.base.csr import is_sparse
from pairloom.base.tree import Rounded, node
from pairloom.base.typing import Array
from pairloom.features.base import FeatureMap
from pairloom.features.fourier import RandomFourier, project
from pairloom.features.scaling import Scaler

FLOOR = 1e-6
"""Least variance that counts as one, relative to the largest: below it float32 holds rounding errors only."""

MOST_ROWS = 2048
"""Rows of which variances are taken, unless ``warm_rows`` asks for more."""

BLOCK = 1 << 17
"""Entries of CSR rows that are dense at a time."""


@node
class WhitenedState:
    """Arrays of a fixed whitened map: factor ((z - mean) - (z - mean) @ directions @ cut).

    ``directions`` (D, k) and ``cut`` (k, D) are padded with zeros; ``factor`` has one number.
    """

    inner: Any
    mean: Rounded
    directions: Rounded
    cut: Rounded
    factor: Rounded

    @property
    def scaler(self) -> Scaler:
        """The inner map's scaling of the input columns."""
        scaler: Scaler = self.inner.scaler
        return scaler

    @property
    def gamma(self) -> Any:
        """The inner map's kernel width; None if it has none."""
        return getattr(self.inner, "gamma", None)


@dataclass(frozen=True)
class Whitened(FeatureMap):
    """phi(x) = c ((z - m) - U diag(1 - sqrt(l_{k+1} / l_i)) U' (z - m)), with z the features of another map.

    m, the k largest variances l and their directions U are those of the first rows of the stream, and c makes their
    mean square length 1. So the k largest variances become l_{k+1}, and gradient steps no longer crawl along all
    directions but the largest. Where there are fewer directions than k + 1 in the rows, fewer are cut; of one row,
    or of equal rows, nothing is known and phi is the inner map.

    Parameters
    ----------
    inner : the other map; its ``scale`` is the scaling of the input columns.
    rank : k.

    Cost: that of the inner map and 4 k D flops per row; 2 k D numbers; once, a randomised singular value
    decomposition of at most 2,048 rows of features. The features of CSR rows are dense, those of Identity too.

    Reference: Ma and Belkin, Diving into the Shallows: a Computational Perspective on Large-Scale Shallow Learning,
    NIPS 2017.

    >>> from pairloom import Identity
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
        if self.inner.sparse:
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

    def flops(self, n_features: int) -> float:
        return self.inner.flops(n_features) + 4.0 * self.rank * self.n_outputs(n_features)

    def numbers(self, n_features: int) -> int:
        return self.inner.numbers(n_features) + 2 * self.rank * self.n_outputs(n_features)

    def fixing(self, n_features: int) -> int:
        """That of the inner map, then the features of the first rows, three times."""
        features = max(MOST_ROWS, self.warm_rows) * self.n_outputs(n_features)
        return max(self.inner.fixing(n_features), 8 * (self.numbers(n_features) + 3 * features))

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

    def _measure(self, state: WhitenedState, rows: Any, seed: int) -> None:
        """Write what is known of the inner features of ``rows`` into ``state``."""
        rows = (rows.tocsr() if is_sparse(rows) else rows)[: max(MOST_ROWS, self.warm_rows)].astype(float)
        Z = self._inner(state, rows)
        mean, power = Z.mean(axis=0), np.square(Z).sum()
        Z -= mean
        if np.square(Z).sum() <= FLOOR**2 * power:
            return
        # Imported here: the parts do without scikit-learn.
        from sklearn.utils.extmath import randomized_svd

        k = state.directions.shape[1]
        _, roots, directions = randomized_svd(Z, min(k + 1, *Z.shape), random_state=seed)
        last = int(np.sum(np.square(roots) > FLOOR * np.square(roots[0]))) - 1
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

    def _inner(self, state: WhitenedState, X: Any) -> Array:
        """The inner features, dense."""
        if not (is_sparse(X) and self.inner.keeps_csr):
            return self.inner.apply(state.inner, X)
        X = X.tocsr()
        n, d = X.shape
        Z = np.empty((n, d), dtype=state.mean.dtype)
        rows = max(1, BLOCK // d)
        for start in range(0, n, rows):
            part = slice(start, start + rows)
            Z[part] = self.inner.apply(state.inner, X[part].toarray())
        return Z
