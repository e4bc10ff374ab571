"""Nystroem features: linear combinations of kernel values at landmarks."""

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np

from pairloom.base.checks import check_count
from pairloom.base.compiled import compiled
from pairloom.base.csr import is_sparse
from pairloom.base.graph import Value
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.features.capabilities import Cost, RacingMap
from pairloom.features.distances import MANY_COLUMNS, MIN_SPARSENESS
from pairloom.features.fourier import project
from pairloom.features.kernels import Gaussian, Kernel, check_kernel
from pairloom.features.scaling import Scaler, scale_columns

UNIT_WIDTH = np.asarray(1.0)

MIN_EIGENVALUE = 1e-6
"""Smallest eigenvalue used, relative to the largest: below it 1 / sqrt(lambda) would amplify rounding errors."""

BLOCK_SIZE = 1 << 18
"""Number of kernel values in memory at a time (1 MB in float32)."""


@node
class NystroemState:
    """Arrays of a fixed Nystroem map: k(X, landmarks) @ mixing.

    ``widths``: the factors of the columns that give the kernel width 1. ``center``: the mean of the landmarks times
    these factors; 0 unless the kernel is isotropic. ``landmarks`` (d, m): times the factors, centred, one per column.
    ``squares`` (2, m): their squared norms, with and without centring. ``mixing`` (m, D): V lambda^-1/2 (for
    :class:`~pairloom.features.Landmarks`: C'^-1), then zeros.
    """

    scaler: Scaler
    gamma: Annotated[Array, "R d finite | f8 0:LATE"]
    widths: Annotated[Array, "R d finite"]
    center: Annotated[Array, "R d finite"]
    landmarks: Annotated[Array, "R d _M finite"]
    squares: Annotated[Array, "R 2 _M finite"]
    mixing: Annotated[Array, "R _M D finite"]


@dataclass(frozen=True)
class Nystroem(RacingMap):
    """phi(x) = k(x, L) V lambda^-1/2, with L the first rows of the stream and k(L, L) = V diag(lambda) V'.

    <phi(x), phi(x')> is the best approximation of k(x, x') in the span of the landmarks, exact between landmarks if all
    eigenvalues are used; ``rank`` selects the largest. Eigenvalues below 1e-6 of the largest are never used.
    ||phi(x)|| <= 1. Unused columns are 0, so that D does not depend on the data.

    Parameters
    ----------
    n_landmarks : m, the maximum number of landmarks.
    kernel : the kernel, with its width rule.
    rank : D; None is m.
    scale : scaling of the input columns.

    Cost: m d + m D flops and m exponentials per row (CSR: m per stored entry; Laplace and Cauchy: m d terms of the
    kernel, in float64); m (d + D) numbers; once, about 10 m^3 flops for the eigenvalues.

    Reference: Williams and Seeger, Using the Nystroem Method to Speed Up Kernel Machines, NIPS 2000.

    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> phi = Nystroem(3, Gaussian(0.5))
    >>> Z = phi.apply(phi.fix(1, X, np.random.default_rng(0)), X)
    >>> bool(np.allclose(Z @ Z.T, np.exp(-0.5 * np.square(X - X.T))))
    True
    """

    upper: ClassVar[bool] = False
    """Whether the matrix that maps kernel values to features is 0 below its diagonal."""

    n_landmarks: int = 1024
    kernel: Kernel = field(default_factory=Gaussian)
    rank: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("n_landmarks", self.n_landmarks)
        check_kernel(self.kernel)
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

    def cost(self, n_features: int) -> Cost:
        m, D = self.n_landmarks, self.n_outputs(n_features)
        return Cost(2.0 * m * (n_features + D + 10.0), m * (n_features + D))

    def check(self, n_features: int) -> None:
        self.kernel.width(n_features, None)

    def fix(self, n_features: int, rows: Array | None, rng: np.random.Generator) -> NystroemState:
        scaler, gamma = self.kernel.fit(self.scale, n_features, rows)
        widths = self.kernel.factors(gamma) / scaler.scale
        points = scale_columns(self._first(n_features, rows), widths)
        mixing = self._mixing(self.kernel(UNIT_WIDTH, points, points), self.n_outputs(n_features))
        # CSR rows are transposed before they become dense, so that there is only one dense copy.
        landmarks = points.T.toarray(order="C") if is_sparse(points) else np.ascontiguousarray(points.T)
        center = landmarks.mean(axis=1) if self.kernel.isotropic is not None else np.zeros(n_features)
        squares = np.empty((2, landmarks.shape[1]))
        squares[1] = np.einsum("dm,dm->m", landmarks, landmarks)
        # In place: with very many columns, no other array may be as large as the landmarks.
        landmarks -= center[:, None]
        squares[0] = np.einsum("dm,dm->m", landmarks, landmarks)
        return NystroemState(scaler, gamma, widths, center, landmarks, squares, mixing)

    def _mixing(self, K: Array, size: int) -> Array:
        """Return the matrix (m, D) that maps kernel values to features."""
        return inverse_root(K, size)

    def _first(self, n_features: int, rows: Any) -> Any:
        """Return the landmarks, float64, dense or CSR; before the first row, the origin."""
        if rows is None:
            return np.zeros((1, n_features))
        return (rows.tocsr() if is_sparse(rows) else rows)[: self.n_landmarks].astype(float)

    def apply(self, state: NystroemState, X: Any) -> Array:
        m, D = state.mixing.shape
        X = X.tocsr() if is_sparse(X) else X
        Z = np.empty((X.shape[0], D), dtype=state.mixing.dtype)
        rows = max(8, BLOCK_SIZE // m)
        for start in range(0, len(Z), rows):
            part = slice(start, start + rows)
            Z[part] = project(self._values(state, X[part]), state.mixing, upper=self.upper)
        return Z

    def to_onnx(self, state: NystroemState, x: Value) -> Value:
        u = state.scaler.clip_onnx(x) * state.widths - state.center
        return self.kernel.to_onnx(UNIT_WIDTH, u, state.landmarks.T) @ state.mixing

    def _values(self, state: NystroemState, X: Any) -> Array:
        """Return k(x, l) for all rows and landmarks."""
        U = scale_columns(state.scaler.clip(X), state.widths)
        if self.kernel.isotropic is not None:
            return self.kernel.isotropic.profile(squared_distances(state, U))
        return self.kernel(UNIT_WIDTH, U, np.ascontiguousarray(state.landmarks.T)).astype(state.mixing.dtype)


def inverse_root(K: Array, rank: int) -> Array:
    """Return V lambda^-1/2 for the ``rank`` largest eigenvalues, in decreasing order; unused columns are 0."""
    values, V = np.linalg.eigh(K)
    values, V = values[::-1][:rank], V[:, ::-1][:, :rank]
    used = int(np.sum(values > MIN_EIGENVALUE * values[0]))
    root = np.zeros((len(K), rank))
    root[:, :used] = V[:, :used] / np.sqrt(values[:used])
    return root


def squared_distances(state: NystroemState, U: Any) -> Array:
    """Return ||u - l||^2 between scaled rows and landmarks, as ||u||^2 - 2 <u, l> + ||l||^2.

    The centre is subtracted first to avoid cancellation, except from rows that are mostly 0, CSR or of many columns:
    <u, l - c> and ||u||^2 - 2 <u, c> are sums over their entries. The result of a row is bitwise independent of the
    other rows.
    """
    if is_sparse(U):
        U.sum_duplicates()
        products = project(U, state.landmarks)
        U.data = U.data * (U.data - 2.0 * state.center[U.indices])
        return _distances(products, project(U, np.ones((U.shape[1], 1), dtype=U.dtype)), state.squares[1])
    few = np.zeros(len(U), bool)
    if U.shape[1] > MANY_COLUMNS:
        few = MIN_SPARSENESS * np.count_nonzero(U, axis=1) <= U.shape[1]
    if few.any():
        products, squares = np.zeros((len(U), state.landmarks.shape[1]), U.dtype), np.zeros((len(U), 1), U.dtype)
        sum_entries(U, few, state.landmarks, state.center, products, squares)
        distances = _distances(products, squares, state.squares[1])
        if not few.all():
            distances[~few] = squared_distances(state, U[~few])
        return distances
    U -= state.center
    return _distances(project(U, state.landmarks), np.square(U).sum(axis=1, keepdims=True), state.squares[0])


def _distances(products: Array, squares: Array, own: Array) -> Array:
    """Return ``squares`` - 2 ``products`` + ``own``, in place of the products."""
    products *= -2.0
    products += squares
    products += own
    return np.maximum(products, 0.0, out=products)


@compiled
def sum_entries(U: Array, few: Array, landmarks: Array, center: Array, products: Array, squares: Array) -> None:
    """Add up <u, l> and ||u||^2 - 2 <u, center> over the entries of some rows that are not 0."""
    for i in range(U.shape[0]):
        if few[i]:
            for c in range(U.shape[1]):
                u = U[i, c]
                if u != 0:
                    squares[i, 0] += u * (u - 2 * center[c])
                    for j in range(landmarks.shape[1]):
                        products[i, j] += u * landmarks[c, j]
