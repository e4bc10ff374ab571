"""A uniform sample of the past, without replacement."""

from dataclasses import dataclass

import numpy as np

from pairloom.base.aging import aged
from pairloom.base.checks import check_count
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.memory.base import Example, Grouped, MemoryState, Plan, Slots


@node
class ReservoirState(MemoryState):
    """Of each group: rows so far, their total weight, and the mass of a row kept by chance (1 without weights)."""

    seen: Array
    total: Array
    unit: Array


@dataclass(frozen=True)
class Reservoir(Grouped):
    """Keep a uniform sample of ``size`` past examples, of each class or of all: no example is in it twice.

    While there is room a row is appended. Then row N is kept with probability size / N, in the place of a uniformly
    chosen one, so that every row of the past is kept with probability min(1, size / N). The gradient at a fixed w is
    unbiased, with variance (sigma^2 / size) (N - size) / (N - 1), sigma^2 the variance of the pair gradient over N.

    Parameters
    ----------
    size : examples kept, of each class or in all.
    by : one sample per "class", or one for all ("joint").
    normalization : "sum" for sums over the history in place of means; by default as ``by`` says.

    With weights, W their total so far: a row is kept with probability a = min(1, size w / W), and its mass is its
    weight over the probability that it is still there, up to a common factor (Horvitz and Thompson). So a row of
    weight k stands for k equal rows on average, and while all rows fit their masses are their weights.

    With more than two classes and a sample of each, the full samples of two classes weigh the same, whatever the
    sizes of the classes: take ``by="joint"`` for shares of the history.

    In a kernel space a reservoir is a trap: the model stores its margin at the long-kept points and learns nothing
    elsewhere. There, prefer ``Strata`` with "fifo" or "centroid" representatives, or ``Latest``.

    Cost: ``size`` slots, or so many per class; one random number per example.

    References: Vitter, Random Sampling with a Reservoir, ACM TOMS 1985; Chao, A General Purpose Unequal Probability
    Sampling Plan, Biometrika 1982; Zhao et al., Online AUC Maximization, ICML 2011.
    """

    size: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("size", self.size)

    @property
    def draws(self) -> int:
        return 1

    def start(self, dim: int, u_dim: int, n_classes: int, dtype: np.dtype, points: Array | None) -> ReservoirState:
        groups = 1 if self.joint else n_classes
        slots = Slots.empty(groups * self.size, dim, dtype)
        return ReservoirState(slots, np.zeros(groups, np.int64), np.zeros(groups), np.zeros(groups))

    @property
    def forgets(self) -> bool:
        return True

    def forget(self, state: MemoryState, keep: float) -> None:
        """New rows find a place more easily, as in a shorter stream.

        While all rows fit, masses are weights, and fade. Of a full sample only their ratios count; but where its rows
        now weigh less than a fresh one would, they are set to what they weigh.
        """
        assert isinstance(state, ReservoirState)
        factors = aged(state.total, keep)
        state.total *= factors
        full = state.seen > self.size
        unit = np.where(full, np.minimum(state.unit, state.total / self.size), factors * state.unit)
        ratio = np.divide(unit, state.unit, out=np.ones(len(unit)), where=state.unit > 0)
        state.slots.mass *= np.repeat(ratio, self.size)
        state.unit = unit

    def observe(self, state: MemoryState, example: Example) -> None:
        assert isinstance(state, ReservoirState)
        g, weight = 0 if self.joint else int(example.y), example.weight
        before = state.total[g]
        state.seen[g] += 1
        state.total[g] = total = before + weight
        if state.seen[g] <= self.size:
            state.unit[g] = total / state.seen[g]
            state.slots.write(g * self.size + state.seen[g] - 1, example, blend=1.0, mass=weight)
            return
        # Rows that share a place or lose it by chance keep their masses relative to W; only a row too heavy to be
        # left out changes them, and instead of lowering all others it raises the unit.
        state.unit[g] *= max(1.0, (1.0 - 1.0 / self.size) * (total / before))
        # Not a whole number yet: where a row is a tiny part of the total, its place is beyond all whole numbers.
        place = int(min(example.draws[0] * max(total / weight, self.size), self.size))
        if place < self.size:
            mass = state.unit[g] * max(1.0, self.size * weight / total)
            state.slots.write(g * self.size + place, example, blend=1.0, mass=mass)

    def plan(self, state: MemoryState, U: Array, y: Array, weight: Array, draws: Array) -> Plan:
        assert isinstance(state, ReservoirState)
        n = len(y)
        group = np.zeros(n, np.int64) if self.joint else y.astype(np.int64)
        place, mass = np.empty(n, np.int64), np.empty(n)
        for g in np.unique(group):
            own = np.flatnonzero(group == g)
            place[own], mass[own] = self._places(state, g, weight[own], draws[own, 0])
        kept = place < self.size
        start = np.concatenate([[0], np.cumsum(kept)])
        return Plan(start, (group * self.size + place)[kept], np.ones(start[-1]), mass[kept])

    def _places(self, state: ReservoirState, g: int, weight: Array, draws: Array) -> tuple[Array, Array]:
        """The place of each row of a group (``size`` or more: it is not kept) and its mass there."""
        seen = state.seen[g] + 1 + np.arange(len(weight))
        total = np.cumsum(np.concatenate([state.total[g : g + 1], weight]))
        before, total = total[:-1], total[1:]
        full = seen > self.size
        unit = np.full(len(weight), state.unit[g])
        if not full.all():
            unit[:] = total[~full][-1] / seen[~full][-1]
        growth = np.maximum(1.0, (1.0 - 1.0 / self.size) * (total[full] / before[full]))
        unit[full] = np.cumprod(np.concatenate([unit[:1], growth]))[1:]
        state.seen[g], state.total[g], state.unit[g] = seen[-1], total[-1], unit[-1]
        place = np.minimum(draws * np.maximum(total / weight, self.size), self.size).astype(np.int64)
        mass = unit * np.maximum(1.0, self.size * weight / total)
        return np.where(full, place, seen - 1), np.where(full, mass, weight)
