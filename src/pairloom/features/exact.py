"""Kernels without random features: the values of one row with many, compiled, and the linear kernel.

Each kernel is written twice: as a NumPy class (the specification) and as one branch of the compiled ``kernel_row``.
"""

from dataclasses import dataclass
from math import exp, sqrt
from typing import Any, ClassVar

import numpy as np

from pairloom.base.compiled import compiled, dot
from pairloom.base.csr import is_sparse
from pairloom.base.typing import Array
from pairloom.features.sparse import as_csr


@dataclass(frozen=True)
class Linear:
    """k = <x, x'>. Not shift-invariant: it has no width, no random frequencies, and k(x, x) = ||x||^2.

    Cost of the matrix: n m d flops (CSR: one sparse product).

    >>> Linear()(np.asarray(1.0), np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[11.]])
    """

    name: ClassVar[str] = "linear"
    code: ClassVar[int] = 5
    gamma: ClassVar[None] = None

    def width_of(self, n_features: int, rows: Any, scaler: Any) -> Array:
        """1: there is none."""
        return np.asarray(1.0)

    def __call__(self, gamma: Array, X: Any, Y: Any) -> Array:
        """The kernel matrix between the rows of X and of Y, dense or CSR, in float64."""
        if is_sparse(X) or is_sparse(Y):
            return np.asarray((as_csr(X) @ as_csr(Y).T).toarray())
        # Not BLAS: there, equal rows may differ in the last bit, and ties would be broken by chance.
        return np.asarray(np.einsum("id,jd->ij", X, Y, dtype=float))


@compiled
def kernel_row(code: int, gamma: float, x: Array, supports: Array, out: Array) -> None:
    """k(x, support) of every support, for the kernel with this code.

    One support after the other, by the same instructions: equal supports have equal values, wherever they are.
    """
    g = x.dtype.type(gamma)
    zero, one = x.dtype.type(0), x.dtype.type(1)
    for j in range(supports.shape[0]):
        row = supports[j]
        if code == 5:
            out[j] = dot(x, row)
        elif code == 1:
            total = zero
            for c in range(x.shape[0]):
                total += abs(x[c] - row[c])
            out[j] = exp(-g * total)
        elif code == 2:
            product = one
            for c in range(x.shape[0]):
                u = g * (x[c] - row[c])
                product *= one + u * u
            out[j] = one / product
        else:
            total = zero
            for c in range(x.shape[0]):
                total += (x[c] - row[c]) * (x[c] - row[c])
            out[j] = isotropic(code, g * total)


@compiled
def isotropic(code: int, r2: float) -> float:
    """k as a function of r^2, for the Gaussian and the two Matern kernels."""
    if code == 0:
        return exp(-r2)
    r2 = min(r2, 1e30)  # infinity times exp(-infinity) is no number
    if code == 3:
        s = sqrt(6.0 * r2)
        return (1.0 + s) * exp(-s)
    s = sqrt(10.0 * r2)
    return (1.0 + s + s * s / 3.0) * exp(-s)


@compiled
def kernel_with_itself(code: int, x: Array) -> float:
    """k(x, x)."""
    return float(dot(x, x)) if code == 5 else 1.0
