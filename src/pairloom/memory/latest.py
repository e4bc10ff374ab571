"""The newest examples, in total or per class."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from pairloom.base.checks import check_choice, check_count
from pairloom.base.compiled import compiled
from pairloom.base.spec import StateSpec
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.memory.base import Memory, Normalization, grouped_spec, groups_of
from pairloom.memory.merging import Places, merge_newest
from pairloom.memory.slots import Example, MemoryState, Plan, Slots

Partner = Literal["previous", "opposite"]


@node
class LatestState(MemoryState):
    """``seen``: the number of examples of each group so far."""

    seen: Annotated[Array, "i8 g 0:t+1"]


class Newest(Memory):
    """A memory of the newest ``size`` examples of each group."""

    size: int

    @property
    @abstractmethod
    def joint(self) -> bool: ...

    def start(self, dim: int, u_dim: int, n_classes: int, dtype: np.dtype, points: Array | None) -> LatestState:
        groups = 1 if self.joint else n_classes
        return LatestState(Slots.empty(groups * self.size, dim, dtype), np.zeros(groups, np.int64))

    def state_spec(self, n_classes: int) -> StateSpec:
        return grouped_spec(self, n_classes, self.size)

    @property
    def merging(self) -> "Newest":
        return self

    def merge(
        self, base: LatestState, parts: list[LatestState], contents: list[Array], rng: np.random.Generator
    ) -> tuple[LatestState, Places]:
        """Return the merged memory, and where its slots come from."""
        return merge_newest(self, base, parts)

    def observe(self, state: LatestState, example: Example) -> None:
        g = 0 if self.joint else int(example.y)
        slot = g * self.size + state.seen[g] % self.size
        state.seen[g] += 1
        state.slots.write(slot, example, blend=1.0, mass=example.weight)

    def plan(self, state: LatestState, U: Array, y: Array, weight: Array, draws: Array) -> Plan:
        slot = np.empty(len(y), np.int64)
        take_turns(groups_of(self, y), self.size, state.seen, slot)
        return Plan(np.arange(len(y) + 1), slot, np.ones(len(y)), weight)


@compiled
def take_turns(group: Array, size: int, seen: Array, slot: Array) -> None:
    """Fill ``slot`` with the slot of each row: those of a group take turns; count the rows in ``seen``."""
    for i in range(group.shape[0]):
        g = group[i]
        slot[i] = g * size + seen[g] % size
        seen[g] += 1


@dataclass(frozen=True)
class Latest(Newest):
    """Pair each example with the examples just before it, or with the newest of each other class.

    Parameters
    ----------
    partner : "previous" (nothing is learned from a pair of equal labels) or "opposite".
    size : the number of examples kept, in total or per class.

    Cost: ``size`` slots, in total or per class.

    Reference: Yang et al., Simple Stochastic and Online Gradient Descent Algorithms for Pairwise Learning,
    NeurIPS 2021, for ``size=1``.
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


@dataclass(frozen=True)
class Window(Newest):
    """Pair each example with its partners among the previous ``size`` examples, with equal weights.

    This memory suits queries, whose rows arrive together. p_j = mass_j / (mass of the partners): as
    ``Latest("previous", size)``, but the step of a row is the mean over its partners, so that its length does not
    depend on whether a query has 3 rows or 300.

    Parameters
    ----------
    size : the number of examples kept; it should be at least the length of a query.

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
