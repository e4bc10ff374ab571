"""Random Fourier features."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pairloom.base.checks import check_count
from pairloom.base.csr import is_sparse
from pairloom.base.tree import Rounded, node
from pairloom.base.typing import Array
from pairloom.features.base import FeatureMap
from pairloom.features.kernels import Gaussian, Kernel
from pairloom.features.scaling import Scaler


@node
class FourierState:
    """Arrays of a fixed Fourier map: cos and sin of X @ projection - offset."""

    scaler: Scaler
    gamma: Rounded
    projection: Rounded
    offset: Rounded


@dataclass(frozen=True)
class RandomFourier(FeatureMap):
    """phi(x) = sqrt(2/D) [cos(q_1 x) ... cos(q_{D/2} x), sin(q_1 x) ... sin(q_{D/2} x)].

    The frequencies q are drawn once, before the stream, from the law that makes E <phi(x), phi(x')> = k(x, x');
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
        if not isinstance(self.kernel, Kernel):
            raise ValueError(f"kernel must be a Kernel, such as Gaussian('median'); got {self.kernel!r}")

    @property
    def needs_data(self) -> bool:
        return super().needs_data or self.kernel.gamma == "median"

    def n_outputs(self, n_features: int) -> int:
        return self.n_components + self.n_components % 2

    def flops(self, n_features: int) -> float:
        return (n_features + 50.0) * self.n_outputs(n_features)

    def numbers(self, n_features: int) -> int:
        return n_features * self.n_outputs(n_features) // 2

    def check(self, n_features: int) -> None:
        self.kernel.width(n_features, None)

    def fix(self, n_features: int, rows: Array | None, rng: np.random.Generator) -> FourierState:
        scaler, gamma = self.kernel.fit(self.scale, n_features, rows)
        q = self._frequencies(gamma, n_features, self.n_outputs(n_features) // 2, rng)
        offset = (scaler.shift / scaler.scale) @ q
        # In place: with very many columns the frequencies are all the memory there is.
        q /= scaler.scale[:, None]
        return FourierState(scaler, gamma, q, offset)

    def _frequencies(self, gamma: Array, n_features: int, count: int, rng: np.random.Generator) -> Array:
        return self.kernel.frequencies(gamma, n_features, count, rng)

    def apply(self, state: FourierState, X: Array) -> Array:
        return cos_sin(self._angles(state, X), state.offset.size)

    def _angles(self, state: FourierState, X: Array) -> Array:
        angles = project(state.scaler.near(X), state.projection)
        if self.scale is not None:
            angles -= state.offset
        return angles


def cos_sin(angles: Array, block: int) -> Array:
    """The features of a row's angles, of length 1: the cosines of a block of them, its sines, then the next block."""
    n, count = angles.shape
    angles = angles.reshape(n, count // block, block)
    Z = np.empty((n, count // block, 2, block), dtype=angles.dtype)
    np.cos(angles, out=Z[:, :, 0])
    np.sin(angles, out=Z[:, :, 1])
    Z *= np.sqrt(1.0 / count, dtype=Z.dtype)
    return Z.reshape(n, 2 * count)


ROWS = 8
"""Rows of a product."""

ONE_THREAD = 1 << 18
"""Multiplications up to which BLAS never starts a second thread."""

DEEP = 512
"""Rows of Q above which a block of its columns is too narrow to be fast."""


def project(X: Any, Q: Array) -> Array:
    """X @ Q, with the same bits for a row however the rows are cut into calls; X may be CSR.

    BLAS picks its code path by the shape of a product and the number of threads, and the paths differ in the last bit.
    So every product has one shape, a function of Q alone, small enough for one thread: 8 rows, padded with zeros, by
    a block of columns of Q, or, where these are long, by blocks of its rows, added up in order. This is also about as
    fast as one large product. SciPy's CSR product adds up the rows of Q that one row of X names, in order, and is safe
    as it is.
    """
    if is_sparse(X):
        return np.ascontiguousarray(X.tocsr().astype(Q.dtype, copy=False) @ Q)
    d, m = Q.shape
    n = len(X)
    blocks = -(-n // ROWS)
    padded = np.zeros((blocks, ROWS, d), dtype=Q.dtype)
    padded.reshape(blocks * ROWS, d)[:n] = X
    columns = max(16, ONE_THREAD // (ROWS * d) // 16 * 16)
    if columns >= m:
        return np.asarray(np.matmul(padded, Q).reshape(blocks * ROWS, m)[:n])
    product = np.zeros((blocks, ROWS, m), dtype=Q.dtype)
    if d > DEEP:
        _add_deep(padded, Q, product)
    else:
        for start in range(0, m, columns):
            np.matmul(padded, Q[:, start : start + columns], out=product[:, :, start : start + columns])
    return product.reshape(blocks * ROWS, m)[:n]


def _add_deep(padded: Array, Q: Array, product: Array) -> None:
    """``product`` += ``padded`` @ Q, a block of rows of Q at a time: a block is read from one stretch of memory."""
    d, m = Q.shape
    columns = min(m, ONE_THREAD // (ROWS * 16))
    rows = ONE_THREAD // (ROWS * columns) // 16 * 16
    for left in range(0, m, columns):
        total = product[:, :, left : left + columns]
        for top in range(0, d, rows):
            total += padded[:, :, top : top + rows] @ Q[top : top + rows, left : left + columns]
