"""The kernel's own values at landmarks, made independent one after the other."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_triangular

from pairloom.base.compiled import compiled, exp_minus
from pairloom.base.tree import Rounded, node
from pairloom.base.typing import Array
from pairloom.features.kernels import Gaussian
from pairloom.features.linear_sum import Member, Share, combined
from pairloom.features.nystroem import FLOOR, Nystroem, NystroemState


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
        r2[:] = squares
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
class FrozenKernel(Member):
    """A weight ``beta`` (m, classes) for each landmark; the other arrays are those of a NystroemState."""

    shift: Rounded
    reach: Rounded
    widths: Rounded
    center: Rounded
    landmarks: Rounded
    squares: Rounded
    beta: Array

    def add(self, X: Array, out: Array) -> None:
        sum_gaussians(
            X, self.shift, self.reach, self.widths, self.center, self.landmarks, self.squares, self.beta, out
        )  # fmt: skip


@dataclass(frozen=True)
class GaussianSum:
    """Models of Gaussian kernels at landmarks: ``beta`` (m, classes), the weight of each."""

    phi: NystroemState
    beta: Array

    def add(self, X: Array, out: Array) -> None:
        sum_gaussians(X, *self._arrays(), self.beta, out)

    def frozen(self, share: Share) -> FrozenKernel:
        shift, reach, widths, center, landmarks, squares = (array.copy() for array in self._arrays())
        return FrozenKernel(*share, shift, reach, widths, center, landmarks, squares, self.beta.copy())

    def _arrays(self) -> tuple[Array, Array, Array, Array, Array, Array]:
        phi = self.phi
        return phi.scaler.shift, phi.scaler.reach, phi.widths, phi.center, phi.landmarks, phi.squares[0]


@dataclass(frozen=True)
class Landmarks(Nystroem):
    """phi(x) = C^-1 k(L, x), with L the first rows of the stream and k(L, L) + 1e-6 I = C C'.

    The features of :class:`Nystroem`, turned, and made in a tenth of the time: no eigenvalues. Coordinate j is what
    landmark j knows that the landmarks before it do not. <phi(x), phi(x')> is the best approximation of k(x, x') in
    the span of the landmarks, but for 1e-6. ||phi(x)|| <= 1.

    Parameters
    ----------
    n_landmarks : m = D, the most rows taken as landmarks.
    kernel : the kernel, with its width rule.
    scale : scaling of the input columns.

    Cost: as Nystroem; once, m^3 flops.

    Reference: Fine and Scheinberg, Efficient SVM Training Using Low-Rank Kernel Representations, JMLR 2001.

    >>> from pairloom import Gaussian
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> phi = Landmarks(3, Gaussian(0.5))
    >>> Z = phi.apply(phi.fix(1, X, np.random.default_rng(0)), X)
    >>> bool(np.allclose(Z @ Z.T, np.exp(-0.5 * np.square(X - X.T)), atol=1e-5))
    True
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rank is not None:
            raise ValueError(f"Landmarks keeps all directions: for rank={self.rank}, use Nystroem")

    def _mixing(self, K: Array, size: int) -> Array:
        C = np.linalg.cholesky(K + FLOOR * np.eye(len(K)))
        mixing = np.zeros((len(K), size))
        mixing[:, : len(K)] = solve_triangular(C, np.eye(len(K)), lower=True).T
        return mixing

    def halved(self) -> "Landmarks | None":
        return replace(self, n_landmarks=self.n_landmarks // 2) if self.n_landmarks >= 64 else None

    def linear_sum(self, state: NystroemState, w: Array, slopes: Array) -> GaussianSum | None:
        """For the Gaussian kernel."""
        if not isinstance(self.kernel, Gaussian):
            return None
        return GaussianSum(state, state.mixing.astype(float) @ combined(w, slopes))
