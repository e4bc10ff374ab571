"""The newest examples, whatever their labels: the memory for queries, whose rows come together."""

from dataclasses import dataclass

import numpy as np

from pairloom.base.checks import check_count
from pairloom.base.typing import Array
from pairloom.memory.base import Example, Memory, MemoryState, Plan, Slots
from pairloom.memory.latest import LatestState


@dataclass(frozen=True)
class Window(Memory):
    """Pair each example with those of the ``size`` just before it that make a pair, all alike.

    p_j = mass_j / (mass of the partners): as ``Latest("previous", size)``, but a row's step is the mean over its own
    partners, so that it is as long in a query of 3 rows as in one of 300.

    Parameters
    ----------
    size : examples kept; best at least the length of a query.

    Cost: ``size`` slots.

    >>> Window(4).weighting, Window(4).joint
    ('class', True)
    """

    size: int = 64

    def __post_init__(self) -> None:
        check_count("size", self.size)

    @property
    def joint(self) -> bool:
        return True

    def start(self, dim: int, u_dim: int, n_classes: int, dtype: np.dtype, points: Array | None) -> LatestState:
        return LatestState(Slots.empty(self.size, dim, dtype), np.zeros(1, np.int64))

    def observe(self, state: MemoryState, example: Example) -> None:
        assert isinstance(state, LatestState)
        state.slots.write(int(state.seen[0]) % self.size, example, blend=1.0, mass=example.weight)
        state.seen[0] += 1

    def plan(self, state: MemoryState, U: Array, y: Array, weight: Array, draws: Array) -> Plan:
        assert isinstance(state, LatestState)
        n = len(y)
        slot = (state.seen[0] + np.arange(n)) % self.size
        state.seen[0] += n
        return Plan(np.arange(n + 1), slot, np.ones(n), weight)
