"""Kernel values at landmarks, orthogonalised by a Cholesky factorisation."""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
from scipy.linalg import cholesky
from scipy.linalg.lapack import dtrtri

from pairloom.base.compiled import compiled, copy_to, exp_minus
from pairloom.base.graph import Value
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.features.capabilities import FrozenShare, FrozenSum, summed_weights
from pairloom.features.contributions import Contrast
from pairloom.features.kernel_contributions import contribute_kernels
from pairloom.features.kernels import Gaussian
from pairloom.features.nystroem import Nystroem, NystroemState
from pairloom.features.scaling import Scaler

RIDGE = 1e-6
"""Added to the diagonal of the kernel matrix, so that its Cholesky factorisation exists."""


@compiled
def sum_gaussians(
    X: Array, shift: Array, reach: Array, widths: Array, center: Array, landmarks: Array, squares: Array, beta: Array,
    out: Array,
) -> None:  # fmt: skip
    """Add to ``out`` (rows, targets) the sum over landmarks of beta (m, targets) k(x, l); arrays of a NystroemState."""
    d, m = landmarks.shape
    r2 = np.empty(m, landmarks.dtype)
    for i in range(X.shape[0]):
        length = landmarks.dtype.type(0)
        copy_to(r2, squares)
        for c in range(d):
            x = X[i, c]
            if reach.shape[0]:
                x = min(max(x, shift[c] - reach[c]), shift[c] + reach[c])
            u = x * widths[c] - center[c]
            length += u * u
            twice = u + u
            for j in range(m):
                r2[j] -= twice * landmarks[c, j]
        for j in range(m):
            r2[j] = exp_minus(max(landmarks.dtype.type(0), r2[j] + length))
        for k in range(beta.shape[1]):
            total = 0.0
            for j in range(m):
                total += beta[j, k] * r2[j]
            out[i, k] += total


@node
class FrozenKernel(FrozenSum):
    """Weights ``beta`` (m, classes) of the landmarks; the other arrays are those of a NystroemState."""

    shift: Annotated[Array, "R d finite"]
    reach: Annotated[Array, "R d finite | R 0"]
    widths: Annotated[Array, "R d finite"]
    center: Annotated[Array, "R d finite"]
    landmarks: Annotated[Array, "R d _M finite"]
    squares: Annotated[Array, "R _M finite"]
    beta: Annotated[Array, "f8 _M v"]

    def add(self, X: Array, out: Array) -> None:
        sum_gaussians(
            X, self.shift, self.reach, self.widths, self.center, self.landmarks, self.squares, self.beta, out
        )  # fmt: skip

    @property
    def explainable(self) -> "FrozenKernel":
        return self

    def contribute(self, contrast: Contrast, out: Array) -> None:
        arrays = self.shift, self.reach, self.widths, self.center, self.landmarks
        contribute_gaussians(contrast, arrays, self.beta, out)

    def to_onnx(self, x: Value) -> Value:
        u = Scaler(self.shift, np.ones_like(self.shift), self.reach).clip_onnx(x) * self.widths - self.center
        r2 = (u * u).sum() - 2.0 * (u @ self.landmarks) + self.squares
        # Weights of close landmarks nearly cancel: in float32, the sum would not be accurate.
        return (-r2.at_least(0.0)).exp().to("f8") @ self.beta


@dataclass(frozen=True)
class GaussianSum:
    """A sum of Gaussian kernels at landmarks with weights ``beta`` (m, classes)."""

    phi: NystroemState
    beta: Array

    def add(self, X: Array, out: Array) -> None:
        sum_gaussians(X, *self._arrays(), self.beta, out)

    @property
    def explainable(self) -> "GaussianSum":
        return self

    def contribute(self, contrast: Contrast, out: Array) -> None:
        contribute_gaussians(contrast, self._arrays()[:5], self.beta, out)

    def frozen(self, share: FrozenShare) -> FrozenKernel:
        shift, reach, widths, center, landmarks, squares = (array.copy() for array in self._arrays())
        return FrozenKernel(*share, shift, reach, widths, center, landmarks, squares, self.beta.copy())

    def _arrays(self) -> tuple[Array, Array, Array, Array, Array, Array]:
        phi = self.phi
        return phi.scaler.shift, phi.scaler.reach, phi.widths, phi.center, phi.landmarks, phi.squares[0]


def contribute_gaussians(
    contrast: Contrast, arrays: tuple[Array, Array, Array, Array, Array], beta: Array, out: Array
) -> None:
    """Add the contributions of columns to a sum of Gaussians; ``arrays``: those of a NystroemState, in order."""
    shift, reach, widths, center, landmarks = arrays
    rows, background = (
        (X if not reach.size else np.clip(X, shift - reach, shift + reach)) * widths - center
        for X in (contrast.rows, contrast.background)
    )
    contribute_kernels(contrast._replace(rows=rows, background=background), Gaussian.code, landmarks, beta, out)


@dataclass(frozen=True)
class Landmarks(Nystroem):
    """phi(x) = C^-1 k(L, x), with L the first rows of the stream and k(L, L) + 1e-6 I = C C'.

    These are the features of :class:`Nystroem`, up to a rotation, fixed in a tenth of the time, without eigenvalues.
    Coordinate j is the part of landmark j that is orthogonal to the previous landmarks. <phi(x), phi(x')> is the best
    approximation of k(x, x') in the span of the landmarks, up to 1e-6. ||phi(x)|| <= 1.

    Parameters
    ----------
    n_landmarks : m = D, the maximum number of landmarks.
    kernel : the kernel, with its width rule.
    scale : scaling of the input columns.

    Cost: as for Nystroem; once, m^3 flops.

    Reference: Fine and Scheinberg, Efficient SVM Training Using Low-Rank Kernel Representations, JMLR 2001.

    >>> from pairloom.features import Gaussian
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> phi = Landmarks(3, Gaussian(0.5))
    >>> Z = phi.apply(phi.fix(1, X, np.random.default_rng(0)), X)
    >>> bool(np.allclose(Z @ Z.T, np.exp(-0.5 * np.square(X - X.T)), atol=1e-5))
    True
    """

    upper: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rank is not None:
            raise ValueError(f"Landmarks keeps all directions: for rank={self.rank}, use Nystroem")

    def _mixing(self, K: Array, size: int) -> Array:
        heavier = K.copy()
        heavier.flat[:: len(K) + 1] += RIDGE
        upper = cholesky(heavier.T, overwrite_a=True, check_finite=False)  # C'; .T: not copied
        mixing = np.zeros((len(K), size))
        mixing[:, : len(K)] = dtrtri(upper, overwrite_c=1)[0]
        return mixing

    def halved(self) -> "Landmarks | None":
        return replace(self, n_landmarks=self.n_landmarks // 2) if self.n_landmarks >= 64 else None

    def linear_sum(self, state: NystroemState, w: Array, slopes: Array) -> GaussianSum | None:
        """Return the sum as one loop, for the Gaussian kernel."""
        if not self.kernel.is_gaussian:
            return None
        return GaussianSum(state, state.mixing.astype(float) @ summed_weights(w, slopes))
