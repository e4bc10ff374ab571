"""Random Fourier features with independent or orthogonal frequencies."""

from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from pairloom.base.checks import check_choice, check_count
from pairloom.base.csr import is_sparse
from pairloom.base.graph import Value, joined
from pairloom.base.spec import StateSpec
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.features.base import FeatureMap, chosen_map
from pairloom.features.capabilities import Cost, RacingMap
from pairloom.features.identity import Identity
from pairloom.features.kernels import DRAW_BLOCK, KERNELS, Gaussian, Isotropic, Kernel, check_kernel
from pairloom.features.scaling import Scaler, Scaling

PRODUCT_ROWS = 8
"""Number of rows of X per product."""

PRODUCT_SIZE = 1 << 18
"""Maximum number of multiplications for which BLAS never uses a second thread."""

TALL_ROWS = 512
"""Number of rows of Q above which a block of its columns is too narrow to be fast."""

TALL_RATIO, LARGE_SIZE = 4, 1 << 22
"""Columns per frequency, and array size (32 MB), above which orthogonal frequencies are computed in place."""


@node
class FourierState:
    """Arrays of a fixed Fourier map: cos and sin of X @ projection - offset."""

    scaler: Scaler
    gamma: Annotated[Array, "R d finite | f8 0:LATE"]
    projection: Annotated[Array, "R d h finite"]
    offset: Annotated[Array, "R h finite"]


@dataclass(frozen=True)
class RandomFourier(RacingMap):
    """phi(x) = sqrt(2/D) [cos(q_1 x) ... cos(q_{D/2} x), sin(q_1 x) ... sin(q_{D/2} x)].

    The frequencies q are drawn once, before the stream, from the distribution for which E <phi(x), phi(x')> = k(x, x').
    ||phi(x)|| = 1 exactly.

    Parameters
    ----------
    n_components : D; an odd number is rounded up.
    kernel : the kernel, with its width rule.
    scale : scaling of the input columns, folded into the frequencies (centring becomes an offset after the projection).

    Cost: d D flops (CSR: D per stored entry) and D/2 sines and cosines per row; d D/2 numbers.

    Reference: Rahimi and Recht, Random Features for Large-Scale Kernel Machines, NIPS 2007.

    >>> phi = RandomFourier(4, Gaussian(0.5))
    >>> z = phi.apply(phi.fix(2, None, np.random.default_rng(0)), np.array([[3.0, 4.0]]))
    >>> z.shape, float((z ** 2).sum().round(12))
    ((1, 4), 1.0)
    """

    n_components: int = 512
    kernel: Kernel = field(default_factory=Gaussian)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("n_components", self.n_components)
        check_kernel(self.kernel)

    @property
    def needs_data(self) -> bool:
        return super().needs_data or self.kernel.gamma == "median"

    def n_outputs(self, n_features: int) -> int:
        return self.n_components + self.n_components % 2

    def cost(self, n_features: int) -> Cost:
        D = self.n_outputs(n_features)
        return Cost((n_features + 50.0) * D, n_features * D // 2)

    def check(self, n_features: int) -> None:
        self.kernel.width(n_features, None)

    def fix(self, n_features: int, rows: Array | None, rng: np.random.Generator) -> FourierState:
        scaler, gamma = self.kernel.fit(self.scale, n_features, rows)
        q = self._frequencies(gamma, n_features, self.n_outputs(n_features) // 2, rng)
        offset = (scaler.shift / scaler.scale) @ q
        # In place: with very many columns, no other array may be as large as the frequencies.
        q /= scaler.scale[:, None]
        return FourierState(scaler, gamma, q, offset)

    def state_spec(self, n_features: int, t: int, n_targets: int) -> StateSpec:
        spec = super().state_spec(n_features, t, n_targets)
        spec.symbols["h"] = spec.symbols["D"] // 2
        return spec

    def _frequencies(self, gamma: Array, n_features: int, count: int, rng: np.random.Generator) -> Array:
        return self.kernel.frequencies(gamma, n_features, count, rng)

    def apply(self, state: FourierState, X: Array) -> Array:
        return cos_sin(self._angles(state, X), state.offset.size)

    def to_onnx(self, state: FourierState, x: Value) -> Value:
        return cos_sin_onnx(self._angles_onnx(state, x), state.offset.size, state.offset.size)

    def _angles_onnx(self, state: FourierState, x: Value) -> Value:
        angles = state.scaler.clip_onnx(x) @ state.projection
        return angles if self.scale is None else angles - state.offset

    def _angles(self, state: FourierState, X: Array) -> Array:
        angles = project(state.scaler.clip(X), state.projection)
        if self.scale is not None:
            angles -= state.offset
        return angles


@dataclass(frozen=True)
class OrthogonalFourier(RandomFourier):
    """:class:`RandomFourier` whose frequencies are orthogonal in blocks of d: a smaller kernel error at equal D.

    Each frequency has the kernel's distribution, so E <phi(x), phi(x')> = k(x, x') still holds. The frequencies of a
    block are orthogonal to each other (before per-column widths) and thus less redundant. Only isotropic kernels are
    supported: their frequencies have the same distribution in every direction.

    Parameters
    ----------
    n_components : D; an odd number is rounded up.
    kernel : Gaussian, Matern32 or Matern52, with its width rule.
    scale : as for RandomFourier.

    Cost: as RandomFourier per row; once, D d min(d, D/2) flops for the orthogonal blocks.

    Reference: Yu, Suresh, Choromanski, Holtmann-Rice and Kumar, Orthogonal Random Features, NIPS 2016.

    >>> phi = OrthogonalFourier(8)
    >>> q = phi.fix(4, None, np.random.default_rng(0)).projection
    >>> bool(np.allclose(q.T @ q, np.diag(np.diag(q.T @ q))))
    True
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kernel.isotropic is None:
            known = ", ".join(sorted(kind.__name__ for kind in KERNELS.values() if kind().isotropic is not None))
            raise ValueError(
                f"orthogonal features need an isotropic kernel ({known}); got {type(self.kernel).__name__}, "
                "for which RandomFourier works"
            )

    def _frequencies(self, gamma: Array, n_features: int, count: int, rng: np.random.Generator) -> Array:
        kernel = self.kernel.isotropic
        assert kernel is not None
        # If the four copies of QR matter, and frequencies are few enough for a well-conditioned Gram matrix.
        if n_features >= TALL_RATIO * count and n_features * count > LARGE_SIZE:
            return tall_frequencies(kernel, gamma, n_features, count, rng)
        normals = rng.standard_normal((count, n_features + kernel.two_nu))
        for start in range(0, count, n_features):
            block = normals[start : start + n_features, :n_features]
            block[:] = orthogonal(block)
        return kernel.from_normals(gamma, normals)


def feature_map(features: FeatureMap | None, kernel: str, gamma: Any, n_components: int, scale: Scaling) -> FeatureMap:
    """Return ``features``, or the map described by the other parameters, which are validated in either case."""
    check_choice("kernel", kernel, {**KERNELS, "linear": Identity})
    described = RandomFourier(n_components, KERNELS.get(kernel, Gaussian)(gamma), scale=scale)
    return chosen_map(features, Identity(scale=scale) if kernel == "linear" else described)


def orthogonal(rows: Array) -> Array:
    """Orthogonalise rows by Gram-Schmidt, in order, without changing their lengths.

    The length of a normal vector is independent of its direction, and Gram-Schmidt depends only on directions. So
    normal rows give a uniformly random frame with independent chi-distributed lengths.
    """
    Q, R = np.linalg.qr(rows.T)
    # LAPACK may choose any signs; with a positive diagonal of R, Q is the result of Gram-Schmidt.
    Q *= np.copysign(np.linalg.norm(rows, axis=1), np.diag(R))
    return np.asarray(Q.T)


def tall_frequencies(kernel: Isotropic, gamma: Array, n_features: int, count: int, rng: np.random.Generator) -> Array:
    """Return one block of orthogonal frequencies, computed in place: no other array is as large."""
    q, rest = np.empty((n_features, count)), np.empty((count, kernel.two_nu))
    parts = [slice(start, start + DRAW_BLOCK) for start in range(0, count, DRAW_BLOCK)]
    for part in parts:
        normals = rng.standard_normal((len(rest[part]), n_features + kernel.two_nu))
        q[:, part], rest[part] = normals[:, :n_features].T, normals[:, n_features:]
    orthogonalise(q)
    for part in parts:
        q[:, part] = kernel.from_normals(gamma, np.concatenate([q[:, part].T, rest[part]], axis=1))
    return q


def orthogonalise(columns: Array) -> None:
    """Orthogonalise a few long columns in place: multiply by L'^-1, where L L' is their Gram matrix."""
    gram = columns.T @ columns
    mixing = np.linalg.inv(np.linalg.cholesky(gram)).T * np.sqrt(np.diag(gram))
    for start in range(0, len(columns), DRAW_BLOCK):
        part = slice(start, start + DRAW_BLOCK)
        columns[part] = columns[part] @ mixing


def cos_sin(angles: Array, block: int) -> Array:
    """Return features of norm 1 from angles: the cosines of a block, its sines, then the next block."""
    n, count = angles.shape
    angles = angles.reshape(n, count // block, block)
    Z = np.empty((n, count // block, 2, block), dtype=angles.dtype)
    np.cos(angles, out=Z[:, :, 0])
    np.sin(angles, out=Z[:, :, 1])
    Z *= np.sqrt(1.0 / count, dtype=Z.dtype)
    return Z.reshape(n, 2 * count)


def cos_sin_onnx(angles: Value, count: int, block: int) -> Value:
    """Return ``cos_sin`` of ``count`` angles in a graph."""
    order = np.arange(2 * count).reshape(2, count // block, block).transpose(1, 0, 2).ravel()
    Z: Value = joined([angles.cos(), angles.sin()]) * np.sqrt(1.0 / count)
    return Z if count == block else Z.take(order)


def project(X: Any, Q: Array) -> Array:
    """Return X @ Q; the result of a row is bitwise independent of the other rows. X may be CSR.

    BLAS chooses its code path by the shape of a product and the number of threads, and the paths differ in the last
    bit. So every product has the same shape, which depends only on Q and is small enough for one thread: 8 rows, padded
    with zeros, times a block of columns of Q, or, if these are long, blocks of rows of Q, summed in order. This is
    about as fast as one large product. SciPy's CSR product adds the rows of Q in the order of a row's entries, so it
    is independent of the other rows as well.
    """
    if is_sparse(X):
        return np.ascontiguousarray(X.tocsr().astype(Q.dtype, copy=False) @ Q)
    d, m = Q.shape
    n = len(X)
    blocks = -(-n // PRODUCT_ROWS)
    padded = np.zeros((blocks, PRODUCT_ROWS, d), dtype=Q.dtype)
    padded.reshape(blocks * PRODUCT_ROWS, d)[:n] = X
    columns = max(16, PRODUCT_SIZE // (PRODUCT_ROWS * d) // 16 * 16)
    if columns >= m:
        return np.asarray(np.matmul(padded, Q).reshape(blocks * PRODUCT_ROWS, m)[:n])
    product = np.zeros((blocks, PRODUCT_ROWS, m), dtype=Q.dtype)
    if d > TALL_ROWS:
        _add_tall(padded, Q, product)
    else:
        for start in range(0, m, columns):
            np.matmul(padded, Q[:, start : start + columns], out=product[:, :, start : start + columns])
    return product.reshape(blocks * PRODUCT_ROWS, m)[:n]


def _add_tall(padded: Array, Q: Array, product: Array) -> None:
    """Add ``padded`` @ Q to ``product``, one contiguous block of rows of Q at a time."""
    d, m = Q.shape
    columns = min(m, PRODUCT_SIZE // (PRODUCT_ROWS * 16))
    rows = PRODUCT_SIZE // (PRODUCT_ROWS * columns) // 16 * 16
    for left in range(0, m, columns):
        total = product[:, :, left : left + columns]
        for top in range(0, d, rows):
            total += padded[:, :, top : top + rows] @ Q[top : top + rows, left : left + columns]
