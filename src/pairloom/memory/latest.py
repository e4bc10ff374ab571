"""The newest examples."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from pairloom.base.checks import check_choice, check_count
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.memory.base import Example, Memory, MemoryState, Normalization, Plan, Slots

Partner = Literal["previous", "opposite"]


@node
class LatestState(MemoryState):
    """``seen``: examples of each group so far."""

    seen: Array


@dataclass(frozen=True)
class Latest(Memory):
    """Pair each example with those just before it, or with the newest of each other class.

    Parameters
    ----------
    partner : "previous" (a pair of equal labels teaches nothing) or "opposite".
    size : how many are kept, in all or of each class.

    Cost: ``size`` slots, or so many per class.

    Reference: Yang et al., Simple Stochastic and Online Gradient Descent Algorithms for Pairwise Learning,
    NeurIPS 2021, for one.
    """

    partner: Partner = "opposite"
    size: int = 1

    def __post_init__(self) -> None:
        check_choice("partner", self.partner, Partner)
        check_count("size", self.size)

    @property
    def joint(self) -> bool:
        return self.partner == "previous"

    @property
    def weighting(self) -> Normalization:
        return "history" if self.joint else "class"

    def start(self, dim: int, u_dim: int, n_classes: int, dtype: np.dtype, points: Array | None) -> LatestState:
        groups = 1 if self.joint else n_classes
        return LatestState(Slots.empty(groups * self.size, dim, dtype), np.zeros(groups, np.int64))

    def observe(self, state: MemoryState, example: Example) -> None:
        assert isinstance(state, LatestState)
        g = 0 if self.joint else int(example.y)
        slot = g * self.size + state.seen[g] % self.size
        state.seen[g] += 1
        state.slots.write(slot, example, blend=1.0, mass=example.weight)

    def plan(self, state: MemoryState, U: Array, y: Array, weight: Array, draws: Array) -> Plan:
        assert isinstance(state, LatestState)
        n = len(y)
        group = np.zeros(n, np.int64) if self.joint else y.astype(np.int64)
        slot = np.empty(n, np.int64)
        for g in np.unique(group):
            own = np.flatnonzero(group == g)
            slot[own] = g * self.size + (state.seen[g] + np.arange(len(own))) % self.size
            state.seen[g] += len(own)
        return Plan(np.arange(n + 1), slot, np.ones(n), weight)
