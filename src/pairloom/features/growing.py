"""Random Fourier features whose number grows with the stream."""

from dataclasses import dataclass, replace
from math import ceil, log, sqrt

import numpy as np

from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.features.base import FeatureMap
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

    grows = True

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

    def apply(self, state: FourierState, X: Array) -> Array:
        """[cos, sin] of the first block, then of the next: a growth leaves what is there in its place."""
        return cos_sin(self._angles(state, X), self.block // 2)


def refuse_growing(features: FeatureMap, who: str) -> None:
    """Raise ValueError if ``features`` grow, for what needs one space from the first row to the last."""
    if isinstance(features, Growing):
        raise ValueError(
            f"{who} needs features of fixed size: use RandomFourier({features.n_components}). Growing features are for "
            "Learner, FPOGD, OGD, OLP, OAM, PairwiseRanker and PairwiseRegressor"
        )
