"""All past examples: the exact gradient, up to a maximum number of rows."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from pairloom.base.capabilities import decay_factors
from pairloom.base.checks import check_count
from pairloom.base.spec import StateSpec
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.memory.base import Grouped
from pairloom.memory.merging import Places, merge_history
from pairloom.memory.slots import Example, MemoryState, Plan, Slots


def check_rows(who: str, max_rows: int, seen: int, n: int, instead: str) -> None:
    """Raise ValueError if ``n`` more rows, after ``seen``, exceed ``max_rows``; ``who`` keeps all rows."""
    if seen + n > max_rows:
        raise ValueError(
            f"{who} keeps every row, at most max_rows={max_rows}: it has {seen}, so {max_rows - seen} more fit, not "
            f"{n}. Raise max_rows, or use {instead}"
        )


@node
class HistoryState(MemoryState):
    """``seen``: the number of rows kept, an array of one number."""

    seen: Annotated[Array, "i8 1 0:S+1"]


@dataclass(frozen=True)
class WholeHistory(Grouped):
    """Keep every example: v = (1 / W) sum_i w_i grad l(w; z_t, z_i) over all partners i < t, without sampling.

    The other memories estimate this gradient. The buffer grows with the stream, up to ``max_rows`` rows: a call that
    would exceed the limit raises an error and changes nothing.

    Parameters
    ----------
    max_rows : the largest number of rows.
    by : weights are relative to the paired "class", or to all rows ("joint").
    normalization : "sum" for sums over the history instead of means; by default given by ``by``.

    Cost: ``max_rows`` slots, allocated at the start; O(t D) flops for row t.

    Reference: Boissier et al., Fast Convergence of Online Pairwise Learning Algorithms, AISTATS 2016, for all pairs.
    """

    max_rows: int = 10_000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("max_rows", self.max_rows)

    @property
    def limited(self) -> "WholeHistory":
        return self

    def check_room(self, state: HistoryState | None, n: int) -> None:
        """Raise ValueError unless ``n`` more rows can be added; changes nothing."""
        instead = "a memory of fixed size, such as Strata() or RSx()"
        check_rows("WholeHistory", self.max_rows, 0 if state is None else int(state.seen[0]), n, instead)

    def start(self, dim: int, u_dim: int, n_classes: int, dtype: np.dtype, points: Array | None) -> HistoryState:
        return HistoryState(Slots.empty(self.max_rows, dim, dtype), np.zeros(1, np.int64))

    def forget(self, state: HistoryState, keep: float) -> None:
        """Reduce the weights of all rows."""
        state.slots.mass *= decay_factors(state.slots.mass, keep)

    def state_spec(self, n_classes: int) -> StateSpec:
        return StateSpec(HistoryState, {"S": self.max_rows})

    @property
    def merging(self) -> "WholeHistory":
        return self

    def merge(
        self, base: HistoryState, parts: list[HistoryState], contents: list[Array], rng: np.random.Generator
    ) -> tuple[HistoryState, Places]:
        """Return the merged memory, and where its slots come from."""
        return merge_history(self, base, parts)

    def observe(self, state: HistoryState, example: Example) -> None:
        self.check_room(state, 1)
        state.slots.write(int(state.seen[0]), example, blend=1.0, mass=example.weight)
        state.seen[0] += 1

    def plan(self, state: HistoryState, U: Array, y: Array, weight: Array, draws: Array) -> Plan:
        n = len(y)
        self.check_room(state, n)
        slot = state.seen[0] + np.arange(n)
        state.seen[0] += n
        return Plan(np.arange(n + 1), slot, np.ones(n), weight)
