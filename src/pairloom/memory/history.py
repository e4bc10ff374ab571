"""Everything: the exact gradient, as long as it fits."""

from dataclasses import dataclass

import numpy as np

from pairloom.base.aging import aged
from pairloom.base.checks import check_count
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.memory.base import Example, Grouped, MemoryState, Plan, Slots


def check_rows(who: str, max_rows: int, seen: int, n: int, instead: str) -> None:
    """Raise ValueError unless what keeps every row, ``seen`` so far, can take ``n`` more."""
    if seen + n > max_rows:
        raise ValueError(
            f"{who} keeps every row and takes at most max_rows={max_rows}: it has {seen}, so {max_rows - seen} more "
            f"can come, not {n}. Raise max_rows, or use {instead}"
        )


@node
class HistoryState(MemoryState):
    """``seen``: rows kept, an array of one number."""

    seen: Array


@dataclass(frozen=True)
class WholeHistory(Grouped):
    """Keep every example: v = (1 / W) sum_i w_i grad l(w; z_t, z_i) over all partners i < t, with no sampling at all.

    What the other memories estimate. It grows with the stream, so it takes ``max_rows`` rows and refuses the next:
    a call that would pass the limit changes nothing.

    Parameters
    ----------
    max_rows : rows it can take, in all.
    by : weights relative to the paired "class", or to all rows ("joint").
    normalization : "sum" for sums over the history in place of means; by default as ``by`` says.

    Cost: ``max_rows`` slots, taken at the start; O(t D) flops for row t.

    Reference: Boissier et al., Fast Convergence of Online Pairwise Learning Algorithms, AISTATS 2016, for all pairs.
    """

    grows = True

    max_rows: int = 10_000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("max_rows", self.max_rows)

    def check_room(self, state: MemoryState | None, n: int) -> None:
        """Raise ValueError unless ``n`` more rows can be taken in; changes nothing."""
        assert state is None or isinstance(state, HistoryState)
        instead = "a memory of fixed size, such as Strata() or RSx()"
        check_rows("WholeHistory", self.max_rows, 0 if state is None else int(state.seen[0]), n, instead)

    def start(self, dim: int, u_dim: int, n_classes: int, dtype: np.dtype, points: Array | None) -> HistoryState:
        return HistoryState(Slots.empty(self.max_rows, dim, dtype), np.zeros(1, np.int64))

    @property
    def forgets(self) -> bool:
        return True

    def forget(self, state: MemoryState, keep: float) -> None:
        """All rows stay, and weigh less."""
        state.slots.mass *= aged(state.slots.mass, keep)

    def observe(self, state: MemoryState, example: Example) -> None:
        assert isinstance(state, HistoryState)
        self.check_room(state, 1)
        state.slots.write(int(state.seen[0]), example, blend=1.0, mass=example.weight)
        state.seen[0] += 1

    def plan(self, state: MemoryState, U: Array, y: Array, weight: Array, draws: Array) -> Plan:
        assert isinstance(state, HistoryState)
        n = len(y)
        self.check_room(state, n)
        slot = state.seen[0] + np.arange(n)
        state.seen[0] += n
        return Plan(np.arange(n + 1), slot, np.ones(n), weight)
