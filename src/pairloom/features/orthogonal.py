"""Orthogonal random features."""

from dataclasses import dataclass

import numpy as np

from pairloom.features.fourier import RandomFourier
from pairloom.features.kernels import KERNELS, Isotropic
from pairloom.typing import Array


@dataclass(frozen=True)
class OrthogonalFourier(RandomFourier):
    """:class:`RandomFourier` whose frequencies are orthogonal in blocks of d: a smaller kernel error at equal D.

    Each frequency has the law that the kernel asks for, so E <phi(x), phi(x')> = k(x, x') still; only those of one
    block are made orthogonal to each other (before per-column widths), which keeps them from telling the same twice.
    For the isotropic kernels only: the law of their frequencies is the same in every direction.

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
        if not isinstance(self.kernel, Isotropic):
            known = ", ".join(sorted(kernel.__name__ for kernel in KERNELS.values() if kernel.isotropic))
            raise ValueError(
                f"orthogonal features need an isotropic kernel ({known}); got {type(self.kernel).__name__}, "
                "for which RandomFourier works"
            )

    def _frequencies(self, gamma: Array, n_features: int, count: int, rng: np.random.Generator) -> Array:
        assert isinstance(self.kernel, Isotropic)
        normals = rng.standard_normal((count, n_features + self.kernel.two_nu))
        for start in range(0, count, n_features):
            block = normals[start : start + n_features, :n_features]
            block[:] = orthogonal(block)
        return self.kernel.from_normals(gamma, normals)


def orthogonal(rows: Array) -> Array:
    """Gram-Schmidt: the rows made orthogonal in order, each with the length it had.

    The length of a normal vector is independent of its direction, and Gram-Schmidt looks at directions alone: so
    normal rows give a uniformly random frame with independent chi-distributed lengths.
    """
    Q, R = np.linalg.qr(rows.T)
    # LAPACK leaves the signs open; with R's diagonal positive Q is what Gram-Schmidt gives.
    lengths = np.copysign(np.linalg.norm(rows, axis=1), np.diag(R))
    return np.asarray((Q * lengths).T)
