"""Random Fourier features."""

from dataclasses import dataclass, field

import numpy as np

from pairloom.checks import check_count
from pairloom.features.base import FeatureMap
from pairloom.features.kernels import Gaussian, Kernel
from pairloom.features.scaling import Scaler, fit_scaler
from pairloom.typing import Array


@dataclass
class FourierState:
    """Arrays of a fixed Fourier map: cos and sin of X @ projection - offset."""

    scaler: Scaler
    gamma: Array
    projection: Array
    offset: Array


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

    Cost: d D flops and D/2 sines and cosines per row; d D/2 numbers.

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

    @property
    def needs_data(self) -> bool:
        return super().needs_data or self.kernel.gamma == "median"

    def n_outputs(self, n_features: int) -> int:
        return self.n_components + self.n_components % 2

    def fix(self, n_features: int, rows: Array | None, rng: np.random.Generator) -> FourierState:
        scaler = fit_scaler(self.scale, n_features, rows)
        gamma = self.kernel.width(n_features, None if rows is None else scaler.apply(rows))
        q = self.kernel.frequencies(gamma, n_features, self.n_outputs(n_features) // 2, rng)
        return FourierState(scaler, gamma, q / scaler.scale[:, None], (scaler.shift / scaler.scale) @ q)

    def apply(self, state: FourierState, X: Array) -> Array:
        angles = project(X, state.projection)
        if self.scale is not None:
            angles -= state.offset
        half = angles.shape[1]
        Z = np.empty((len(X), 2 * half), dtype=angles.dtype)
        np.cos(angles, out=Z[:, :half])
        np.sin(angles, out=Z[:, half:])
        Z *= np.sqrt(1.0 / half, dtype=Z.dtype)
        return Z


def project(X: Array, Q: Array) -> Array:
    """X @ Q, with the same bits for a row however the rows are cut into calls.

    BLAS picks its code path by the shape of a product, and the paths differ in the last bit. So every product has
    one shape, (rows, d) x (d, m), a function of Q alone: the rows are padded with zeros to whole blocks.
    """
    d, m = Q.shape
    # Small products have a fast path of their own; beyond it, more rows make better use of the cache.
    rows = 8 if 8 * d * m <= 1_000_000 else 16
    n = len(X)
    blocks = -(-n // rows)
    padded = np.zeros((blocks * rows, d), dtype=Q.dtype)
    padded[:n] = X
    product: Array = np.matmul(padded.reshape(blocks, rows, d), Q).reshape(blocks * rows, m)[:n]
    return product
