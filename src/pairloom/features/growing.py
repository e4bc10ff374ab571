"""Random Fourier features whose number grows with the stream."""

from bisect import bisect_right
from dataclasses import dataclass, replace
from math import ceil, log, sqrt
from typing import Annotated

import numpy as np

from pairloom.base.graph import Value
from pairloom.base.spec import StateSpec
from pairloom.base.tree import cast, node
from pairloom.base.typing import Array
from pairloom.features.capabilities import Change, GrowingMap
from pairloom.features.fourier import FourierState, RandomFourier, cos_sin_onnx


@node
class GrowingState(FourierState):
    """A Fourier map of the blocks so far; all blocks, past and future, are drawn from ``seed`` (0-d)."""

    seed: Annotated[Array, "i8 0:SEED"]


@dataclass(frozen=True)
class Growing(GrowingMap, RandomFourier):
    """:class:`RandomFourier` in blocks of frequencies whose number grows: D(t) = sqrt(t) ln t, up to ``n_components``.

    Row t is learned with B(t) = ceil(D(t) / block) blocks. When a block is added, phi' = sqrt(B / (B + 1)) [phi,
    phi_new] and w' = [sqrt((B + 1) / B) w, 0]: scores do not change, and ||phi'(x)|| = 1. The stream length need not
    be known, and the frequencies of a block depend on the seed alone. ||w||, which penalties use, grows with sqrt(B).

    It requires a ``Learner`` whose memory keeps past rows: the raw x are kept to compute phi'(x).

    Parameters
    ----------
    n_components : the largest D, a multiple of ``block``.
    kernel : the kernel, with its width rule. More rows support a narrower kernel.
    block : components added at a time, an even number.
    scale : as for RandomFourier.

    Cost: as for RandomFourier with the current D; for S slots, S d more numbers, and S rows remapped for every new
    block.

    Reference: AlQuabeh, Mukhoty and Gu, Variance Reduced Online Gradient Descent for Kernelized Pairwise Learning with
    Limited Memory, ACML 2023, for D = sqrt(T) ln T.

    >>> phi = Growing(2048, block=256)
    >>> [256 * phi.n_blocks(t) for t in (1, 10_000, 20_000, 40_000)]
    [256, 1024, 1536, 2048]
    """

    n_components: int = 8192
    block: int = 512

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.block, (int, np.integer)) or self.block < 2 or self.block % 2:
            raise ValueError(f"block must be an even number of components, such as 512; got {self.block!r}")
        if self.n_components % self.block:
            nearest = ceil(self.n_components / self.block) * self.block
            raise ValueError(
                f"n_components must be a multiple of block={self.block}, such as {nearest}; got {self.n_components}"
            )

    def n_outputs(self, n_features: int) -> int:
        """Return D for the first row."""
        return self.block

    def n_blocks(self, t: int) -> int:
        """Return B(t), the number of blocks with which row t, counted from 1, is learned."""
        return min(self.n_components // self.block, max(1, ceil(sqrt(t) * log(t) / self.block)))

    def fix(self, n_features: int, rows: Array | None, rng: np.random.Generator) -> GrowingState:
        scaler, gamma = self.kernel.fit(self.scale, n_features, rows)
        seed = np.asarray(rng.integers(2**63))
        return self.grow(GrowingState(scaler, gamma, np.zeros((n_features, 0)), np.zeros(0), seed), 1)

    def state_spec(self, n_features: int, t: int, n_targets: int) -> StateSpec:
        spec = super().state_spec(n_features, t, n_targets)
        D = self.block * self.n_blocks(max(1, t))
        return replace(spec, symbols={**spec.symbols, "D": D, "h": D // 2})

    def blocks_of(self, state: GrowingState) -> int:
        """Return the number of blocks of ``state``."""
        return 2 * state.offset.size // self.block

    def grow(self, state: GrowingState, n_blocks: int) -> GrowingState:
        """Return ``state``, in float64, with ``n_blocks`` blocks; existing blocks do not change."""
        scaler, d = state.scaler, len(state.projection)
        projections, offsets = [state.projection], [state.offset]
        for b in range(self.blocks_of(state), n_blocks):
            rng = np.random.default_rng((int(state.seed), b))
            q = self._frequencies(state.gamma, d, self.block // 2, rng)
            offsets.append((scaler.shift / scaler.scale) @ q)
            projections.append(q / scaler.scale[:, None])
        return replace(state, projection=np.concatenate(projections, axis=1), offset=np.concatenate(offsets))

    def next_change(self, state: GrowingState, t: int) -> int:
        """Return the last row that is learned with the current features, or an earlier one."""
        if self.blocks_of(state) != self.n_blocks(t + 1):
            return t
        rows = range(t + 1, 2 * t + 64)
        return t + bisect_right(rows, self.n_blocks(t + 1), key=self.n_blocks)

    def change(self, state: GrowingState, t: int, targets: Array, exact: bool = False) -> "Widened":
        """Return the map with more blocks. Scores do not change."""
        before, after = self.blocks_of(state), self.n_blocks(t + 1)
        grown = self.grow(cast(state, np.float64), after)
        return Widened(grown, sqrt(after / before), (after - before) * self.block)

    def apply(self, state: FourierState, X: Array) -> Array:
        """Return [cos, sin] of the first block, then of the next, so that new blocks are appended."""
        return self._waves(state, X, self.block // 2)

    def to_onnx(self, state: FourierState, x: Value) -> Value:
        return cos_sin_onnx(self._angles_onnx(state, x), state.offset.size, self.block // 2)


@dataclass(frozen=True)
class Widened(Change):
    """``n_new`` more features; all others are divided by ``factor``."""

    factor: float
    n_new: int

    def weights(self, w: Array) -> Array:
        return np.pad((self.factor * w).astype(w.dtype), ((0, 0), (0, self.n_new), (0, 0)))

    def squares(self, squares: Array) -> Array:
        """Return the sums as if the new features had existed from the start: gradients are divided by ``factor``."""
        return np.pad((squares / self.factor**2).astype(squares.dtype), ((0, 0), (0, self.n_new), (0, 0)))
