"""Compiled kernel values, and the linear kernel.

Each kernel is written twice: as a NumPy class (the specification) and as a branch of the compiled ``kernel_row``.
"""

from dataclasses import dataclass
from math import exp, sqrt
from typing import Any, ClassVar

import numpy as np

from pairloom.base.checks import check_choice
from pairloom.base.compiled import compiled, dot
from pairloom.base.csr import is_sparse
from pairloom.base.graph import Value
from pairloom.base.typing import Array
from pairloom.features.kernels import KERNELS, Gaussian, Kernel
from pairloom.features.scaling import as_csr


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
        """Return 1: the kernel has no width."""
        return np.asarray(1.0)

    def __call__(self, gamma: Array, X: Any, Y: Any) -> Array:
        """Return the kernel matrix between the rows of X and Y, dense or CSR, in float64."""
        if is_sparse(X) or is_sparse(Y):
            return np.asarray((as_csr(X) @ as_csr(Y).T).toarray())
        # Not BLAS: there, equal rows may differ in the last bit, which would break ties at random.
        return np.asarray(np.einsum("id,jd->ij", X, Y, dtype=float))

    def to_onnx(self, gamma: Array, x: Value, Y: Array) -> Value:
        """Return the products of dense rows with the rows of Y in an ONNX graph: f8."""
        return x.to("f8") @ Y.T


def exact_kernel(kernel: str, gamma: Any) -> Kernel | Linear:
    """Return the kernel with this name; the linear kernel has no width."""
    check_choice("kernel", kernel, {**KERNELS, "linear": Linear})
    described = KERNELS.get(kernel, Gaussian)(gamma)
    return Linear() if kernel == "linear" else described


@compiled
def kernel_row(code: int, gamma: float, x: Array, supports: Array, out: Array) -> None:
    """Fill ``out`` with k(x, support) of every support, for the kernel with this code.

    Supports are processed one by one with the same instructions: equal supports have equal values at any position.
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
    """Return k as a function of r^2, for the Gaussian and the two Matern kernels."""
    if code == 0:
        return exp(-r2)
    r2 = min(r2, 1e30)  # infinity times exp(-infinity) is NaN
    if code == 3:
        s = sqrt(6.0 * r2)
        return (1.0 + s) * exp(-s)
    s = sqrt(10.0 * r2)
    return (1.0 + s + s * s / 3.0) * exp(-s)


@compiled
def kernel_with_itself(code: int, x: Array) -> float:
    """Return k(x, x)."""
    return float(dot(x, x)) if code == 5 else 1.0
