"""Nystroem features: the kernel's own values at landmarks."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pairloom.base.checks import check_count
from pairloom.base.csr import is_sparse
from pairloom.base.tree import Rounded, node
from pairloom.base.typing import Array
from pairloom.features.base import FeatureMap
from pairloom.features.fourier import project
from pairloom.features.kernels import Gaussian, Isotropic, Kernel
from pairloom.features.scaling import Scaler
from pairloom.features.sparse import scale_columns

ONE = np.asarray(1.0)

FLOOR = 1e-6
"""Least eigenvalue in use, relative to the largest: below it 1 / sqrt(lambda) would blow up float32's rounding."""

BLOCK = 1 << 18
"""Kernel values held at a time (1 MB in float32)."""


@node
class NystroemState:
    """Arrays of a fixed Nystroem map: k(X, landmarks) @ mixing.

    ``widths``: what a column is multiplied by, so that the kernel has width 1. ``center``: of the multiplied
    landmarks; 0 unless the kernel is isotropic. ``landmarks`` (d, m): multiplied and centred, a column for each.
    ``squares`` (2, m): their squared lengths, centred and not. ``mixing`` (m, D): V lambda^-1/2 (of
    :class:`~pairloom.Landmarks`: C'^-1), then zeros.
    """

    scaler: Scaler
    gamma: Rounded
    widths: Rounded
    center: Rounded
    landmarks: Rounded
    squares: Rounded
    mixing: Rounded


@dataclass(frozen=True)
class Nystroem(FeatureMap):
    """phi(x) = k(x, L) V lambda^-1/2, with L the first rows of the stream and k(L, L) = V diag(lambda) V'.

    <phi(x), phi(x')> is the best approximation of k(x, x') in the span of the landmarks, exact between landmarks if
    none is cut; with ``rank``, only the largest eigenvalues are used. Eigenvalues below 1e-6 of the largest are cut
    always. ||phi(x)|| <= 1. Columns that are not in use are 0: D does not depend on the rows seen.

    Parameters
    ----------
    n_landmarks : m, the most rows taken as landmarks.
    kernel : the kernel, with its width rule.
    rank : D; None is m.
    scale : scaling of the input columns.

    Cost: m d + m D flops and m exponentials per row (CSR: m per stored entry; Laplace and Cauchy: m d terms of the
    kernel, in float64); m (d + D) numbers; once, 10 m^3 flops or so for the eigenvalues.

    Reference: Williams and Seeger, Using the Nystroem Method to Speed Up Kernel Machines, NIPS 2000.

    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> phi = Nystroem(3, Gaussian(0.5))
    >>> Z = phi.apply(phi.fix(1, X, np.random.default_rng(0)), X)
    >>> bool(np.allclose(Z @ Z.T, np.exp(-0.5 * np.square(X - X.T))))
    True
    """

    n_landmarks: int = 1024
    kernel: Kernel = field(default_factory=Gaussian)
    rank: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("n_landmarks", self.n_landmarks)
        if not isinstance(self.kernel, Kernel):
            raise ValueError(f"kernel must be a Kernel, such as Gaussian('median'); got {self.kernel!r}")
        if self.rank is not None:
            check_count("rank, if not None,", self.rank)
            if self.rank > self.n_landmarks:
                raise ValueError(f"rank must be at most n_landmarks={self.n_landmarks}; got {self.rank}")

    @property
    def needs_data(self) -> bool:
        return True

    @property
    def warm_rows(self) -> int:
        return self.n_landmarks

    def n_outputs(self, n_features: int) -> int:
        return self.n_landmarks if self.rank is None else self.rank

    def flops(self, n_features: int) -> float:
        return 2.0 * self.n_landmarks * (n_features + self.n_outputs(n_features) + 10.0)

    def numbers(self, n_features: int) -> int:
        return self.n_landmarks * (n_features + self.n_outputs(n_features))

    def fixing(self, n_features: int) -> int:
        """Landmarks twice, and for the eigenvalues a few kernel matrices."""
        m = self.n_landmarks
        return 8 * (2 * m * n_features + 5 * m * m)

    def check(self, n_features: int) -> None:
        self.kernel.width(n_features, None)

    def fix(self, n_features: int, rows: Array | None, rng: np.random.Generator) -> NystroemState:
        scaler, gamma = self.kernel.fit(self.scale, n_features, rows)
        widths = self.kernel.factors(gamma) / scaler.scale
        points = scale_columns(self._first(n_features, rows), widths)
        mixing = self._mixing(self.kernel(ONE, points, points), self.n_outputs(n_features))
        # CSR rows become columns before they become dense, so that there is one dense copy.
        landmarks = points.T.toarray(order="C") if is_sparse(points) else np.ascontiguousarray(points.T)
        center = landmarks.mean(axis=1) if isinstance(self.kernel, Isotropic) else np.zeros(n_features)
        squares = np.empty((2, landmarks.shape[1]))
        squares[1] = np.einsum("dm,dm->m", landmarks, landmarks)
        # In place: with very many columns the landmarks are all the memory there is.
        landmarks -= center[:, None]
        squares[0] = np.einsum("dm,dm->m", landmarks, landmarks)
        return NystroemState(scaler, gamma, widths, center, landmarks, squares, mixing)

    def _mixing(self, K: Array, size: int) -> Array:
        """What makes features of kernel values: (m, D)."""
        return inverse_root(K, size)

    def _first(self, n_features: int, rows: Any) -> Any:
        """The rows that are landmarks, float64, dense or CSR; before the first row, the origin."""
        if rows is None:
            return np.zeros((1, n_features))
        return (rows.tocsr() if is_sparse(rows) else rows)[: self.n_landmarks].astype(float)

    def apply(self, state: NystroemState, X: Any) -> Array:
        m, D = state.mixing.shape
        X = X.tocsr() if is_sparse(X) else X
        Z = np.empty((X.shape[0], D), dtype=state.mixing.dtype)
        rows = max(8, BLOCK // m)
        for start in range(0, len(Z), rows):
            part = slice(start, start + rows)
            Z[part] = project(self._values(state, X[part]), state.mixing)
        return Z

    def _values(self, state: NystroemState, X: Any) -> Array:
        """k(x, l) of each row and each landmark."""
        U = scale_columns(state.scaler.near(X), state.widths)
        if isinstance(self.kernel, Isotropic):
            return self.kernel.profile(squared_distances(state, U))
        return self.kernel(ONE, U, np.ascontiguousarray(state.landmarks.T)).astype(state.mixing.dtype)


def inverse_root(K: Array, rank: int) -> Array:
    """V lambda^-1/2 of the ``rank`` largest eigenvalues, largest first; columns of zeros for those not in use."""
    values, V = np.linalg.eigh(K)
    values, V = values[::-1][:rank], V[:, ::-1][:, :rank]
    used = int(np.sum(values > FLOOR * values[0]))
    root = np.zeros((len(K), rank))
    root[:, :used] = V[:, :used] / np.sqrt(values[:used])
    return root


def squared_distances(state: NystroemState, U: Any) -> Array:
    """||u - l||^2 between rows and landmarks, both multiplied, from ||u||^2 - 2 <u, l> + ||l||^2.

    The centre is taken out first, against cancellation, and from CSR rows, which it would make dense, not at all:
    <u, l - c> and ||u||^2 - 2 <u, c> are sums over their entries. A row's bits do not depend on the other rows.
    """
    if is_sparse(U):
        U.sum_duplicates()
        distances = project(U, state.landmarks)
        U.data = U.data * (U.data - 2.0 * state.center[U.indices])
        squares = project(U, np.ones((U.shape[1], 1), dtype=U.dtype))
    else:
        U -= state.center
        distances = project(U, state.landmarks)
        squares = np.square(U).sum(axis=1, keepdims=True)
    distances *= -2.0
    distances += squares
    distances += state.squares[1 if is_sparse(U) else 0]
    return np.maximum(distances, 0.0, out=distances)
