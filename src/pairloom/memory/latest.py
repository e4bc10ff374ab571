"""The newest example only."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from pairloom.checks import check_choice
from pairloom.memory.base import Memory, MemoryState, Plan, Slots, group_of
from pairloom.typing import Array

Partner = Literal["previous", "opposite"]


@dataclass(frozen=True)
class Latest(Memory):
    """Pair each example with the one before it, or with the last one of the opposite class.

    Parameters
    ----------
    partner : "previous" (a pair of equal labels teaches nothing) or "opposite".

    Cost: one slot, or one per class.

    Reference: Yang et al., Simple Stochastic and Online Gradient Descent Algorithms for Pairwise Learning,
    NeurIPS 2021.
    """

    partner: Partner = "opposite"

    def __post_init__(self) -> None:
        check_choice("partner", self.partner, Partner)

    def start(self, dim: int, u_dim: int, dtype: np.dtype, points: Array | None) -> MemoryState:
        return MemoryState(Slots.empty(1 if self.partner == "previous" else 2, dim, dtype))

    def total(self, state: MemoryState, y: float, t: int) -> float:
        if self.partner == "previous":
            return float(t > 1)
        return float(state.slots.mass[1 - group_of(y)])

    def observe(self, state: MemoryState, z: Array, u: Array, y: float, draws: Array) -> None:
        state.slots.write(0 if self.partner == "previous" else group_of(y), z, y, 1.0, 1.0)

    def plan(self, state: MemoryState, U: Array, y: Array, t: int, draws: Array) -> Plan:
        n = len(y)
        group = (y > 0).astype(np.int64)
        if self.partner == "previous":
            slot = np.zeros(n, dtype=np.int64)
            total = (t + np.arange(n) > 1).astype(float)
        else:
            slot = group
            seen = [np.concatenate([[state.slots.mass[g] > 0], group == g]) for g in (0, 1)]
            before = np.array([np.logical_or.accumulate(s)[:-1] for s in seen], dtype=float)
            total = before[1 - group, np.arange(n)]
        return Plan(total, np.arange(n + 1), slot, np.ones(n), np.ones(n))
