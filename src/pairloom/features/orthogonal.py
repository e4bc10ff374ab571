"""Orthogonal random features."""

from dataclasses import dataclass

import numpy as np

from pairloom.base.typing import Array
from pairloom.features.fourier import RandomFourier
from pairloom.features.kernels import DRAWN, KERNELS, Isotropic

TALL, LARGE = 4, 1 << 22
"""From so many times more columns than frequencies, and from so many numbers in all (32 MB), memory comes first."""


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

    def fixing(self, n_features: int) -> int:
        """The frequencies; unless they are tall, also their transpose, and of one block the copies that QR makes."""
        count = self.n_outputs(n_features) // 2
        numbers, block = self.numbers(n_features), min(n_features, count)
        if is_tall(n_features, count):
            return 8 * (numbers + 3 * block * block)
        return 8 * (numbers + max(numbers, 4 * block * n_features))

    def _frequencies(self, gamma: Array, n_features: int, count: int, rng: np.random.Generator) -> Array:
        assert isinstance(self.kernel, Isotropic)
        if is_tall(n_features, count):
            return tall_frequencies(self.kernel, gamma, n_features, count, rng)
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
    Q *= np.copysign(np.linalg.norm(rows, axis=1), np.diag(R))
    return np.asarray(Q.T)


def is_tall(n_features: int, count: int) -> bool:
    """Whether QR's four copies matter, and the frequencies are so few that their Gram matrix is well conditioned."""
    return n_features >= TALL * count and n_features * count > LARGE


def tall_frequencies(kernel: Isotropic, gamma: Array, n_features: int, count: int, rng: np.random.Generator) -> Array:
    """One block of orthogonal frequencies, made where it stays: nothing else is as large."""
    q, rest = np.empty((n_features, count)), np.empty((count, kernel.two_nu))
    parts = [slice(start, start + DRAWN) for start in range(0, count, DRAWN)]
    for part in parts:
        normals = rng.standard_normal((len(rest[part]), n_features + kernel.two_nu))
        q[:, part], rest[part] = normals[:, :n_features].T, normals[:, n_features:]
    orthogonalise(q)
    for part in parts:
        q[:, part] = kernel.from_normals(gamma, np.concatenate([q[:, part].T, rest[part]], axis=1))
    return q


def orthogonalise(columns: Array) -> None:
    """``orthogonal`` in place, for few long columns: with G = L L' their Gram matrix, the columns times L'^-1."""
    gram = columns.T @ columns
    mixing = np.linalg.inv(np.linalg.cholesky(gram)).T * np.sqrt(np.diag(gram))
    for start in range(0, len(columns), DRAWN):
        part = slice(start, start + DRAWN)
        columns[part] = columns[part] @ mixing
