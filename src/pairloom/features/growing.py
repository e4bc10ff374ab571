"""Random Fourier features whose number grows with the stream."""

from bisect import bisect_right
from dataclasses import dataclass, replace
from math import ceil, log, sqrt

import numpy as np

from pairloom.base.tree import cast, node
from pairloom.base.typing import Array
from pairloom.features.base import Change, FeatureMap
from pairloom.features.fourier import FourierState, RandomFourier, cos_sin


@node
class GrowingState(FourierState):
    """A Fourier map of the blocks so far; ``seed`` (0-d): from it come all blocks, also those still to come."""

    seed: Array


@dataclass(frozen=True)
class Growing(RandomFourier):
    """:class:`RandomFourier` in blocks of frequencies, more of them as rows come: D(t) = sqrt(t) ln t, at most the cap.

    Row t is learned with B(t) = ceil(D(t) / block) blocks. When one comes, phi' = sqrt(B / (B + 1)) [phi, phi_new] and
    w' = [sqrt((B + 1) / B) w, 0]: every score stays as it was, and ||phi'(x)|| = 1. The length of the stream need not
    be known, and the frequencies of a block depend on the seed alone. ||w||, which penalties see, grows with sqrt(B).

    For a ``Learner`` whose memory keeps past rows: their raw x is kept, so that phi'(x) can be taken.

    Parameters
    ----------
    n_components : the largest D, a multiple of ``block``.
    kernel : the kernel, with its width rule. More rows support a narrower one.
    block : components, an even number, that come at once.
    scale : as for RandomFourier.

    Cost: as RandomFourier with the present D; for S slots, S d numbers more, and S rows mapped anew when a block comes.

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

    @property
    def grows(self) -> bool:
        return True

    def n_outputs(self, n_features: int) -> int:
        """D of the first row."""
        return self.block

    def n_blocks(self, t: int) -> int:
        """B(t): blocks with which row t, counted from 1, is learned."""
        return min(self.n_components // self.block, max(1, ceil(sqrt(t) * log(t) / self.block)))

    def fix(self, n_features: int, rows: Array | None, rng: np.random.Generator) -> GrowingState:
        scaler, gamma = self.kernel.fit(self.scale, n_features, rows)
        seed = np.asarray(rng.integers(2**63))
        return self.grow(GrowingState(scaler, gamma, np.zeros((n_features, 0)), np.zeros(0), seed), 1)

    def blocks_of(self, state: GrowingState) -> int:
        """The blocks that ``state`` has."""
        return 2 * state.offset.size // self.block

    def grow(self, state: GrowingState, n_blocks: int) -> GrowingState:
        """``state``, in float64, with so many blocks; those that it has stay as they are."""
        scaler, d = state.scaler, len(state.projection)
        projections, offsets = [state.projection], [state.offset]
        for b in range(self.blocks_of(state), n_blocks):
            rng = np.random.default_rng((int(state.seed), b))
            q = self._frequencies(state.gamma, d, self.block // 2, rng)
            offsets.append((scaler.shift / scaler.scale) @ q)
            projections.append(q / scaler.scale[:, None])
        return replace(state, projection=np.concatenate(projections, axis=1), offset=np.concatenate(offsets))

    def next_change(self, state: GrowingState, t: int) -> int:
        """The last row that is learned with the features of the present, or one before it."""
        if self.blocks_of(state) != self.n_blocks(t + 1):
            return t
        rows = range(t + 1, 2 * t + 64)
        return t + bisect_right(rows, self.n_blocks(t + 1), key=self.n_blocks)

    def change(self, state: GrowingState, t: int, targets: Array, exact: bool = False) -> "Widened":
        """Every score stays as it was."""
        before, after = self.blocks_of(state), self.n_blocks(t + 1)
        grown = self.grow(cast(state, np.float64), after)
        return Widened(grown, sqrt(after / before), (after - before) * self.block)

    def apply(self, state: FourierState, X: Array) -> Array:
        """[cos, sin] of the first block, then of the next: a growth leaves what is there in its place."""
        return cos_sin(self._angles(state, X), self.block // 2)


@dataclass(frozen=True)
class Widened(Change):
    """More features, so that all are shorter by ``up``."""

    up: float
    more: int

    def weights(self, w: Array) -> Array:
        return np.pad((self.up * w).astype(w.dtype), ((0, 0), (0, self.more), (0, 0)))

    def squares(self, squares: Array) -> Array:
        """As if these features had been there from the start: each gradient is shorter by up."""
        return np.pad((squares / self.up**2).astype(squares.dtype), ((0, 0), (0, self.more), (0, 0)))


def refuse_growing(features: FeatureMap, who: str) -> None:
    """Raise ValueError if ``features`` grow, for what needs one space from the first row to the last."""
    if features.grows:
        raise ValueError(
            f"{who} needs features that stay as they are; got {features}. Features that grow are for Learner, FPOGD, "
            "OGD, OLP, OAM, PairwiseRanker and PairwiseRegressor"
        )
