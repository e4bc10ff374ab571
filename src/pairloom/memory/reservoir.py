"""A uniform sample of the past, without replacement."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from pairloom.base.capabilities import decay_factors
from pairloom.base.checks import check_count
from pairloom.base.spec import StateSpec
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.memory.base import Grouped, grouped_spec, groups_of
from pairloom.memory.merging import Places, merge_reservoirs
from pairloom.memory.slots import Example, MemoryState, Plan, Slots


@node
class ReservoirState(MemoryState):
    """For each group: rows so far, their total weight, and the mass of a row kept at random (1 without weights)."""

    seen: Annotated[Array, "i8 g 0:t+1"]
    total: Annotated[Array, "f8 g 0:MASS"]
    unit: Annotated[Array, "f8 g 0:MASS"]


@dataclass(frozen=True)
class Reservoir(Grouped):
    """Keep a uniform sample of ``size`` past examples without replacement, of each class or of all.

    Rows are appended until the sample is full. Then row N is kept with probability size / N and replaces a uniformly
    chosen row, so that every past row is kept with probability min(1, size / N). The gradient at a fixed w is unbiased,
    with variance (sigma^2 / size) (N - size) / (N - 1), where sigma^2 is the variance of the pair gradient over N rows.

    Parameters
    ----------
    size : the number of examples kept, of each class or in all.
    by : one sample per "class", or one for all ("joint").
    normalization : "sum" for sums over the history instead of means; by default given by ``by``.

    With weights, and W their total so far, a row is kept with probability min(1, size w / W), and its mass is its
    weight divided by the probability that it is still in the sample, up to a common factor (Horvitz and Thompson). So a
    row of weight k is equivalent to k equal rows on average, and until the sample is full, masses are weights.

    With more than two classes and one sample per class, the full samples of two classes have the same weight,
    regardless of the sizes of the classes. Use ``by="joint"`` for shares of the history.

    Avoid a reservoir in a kernel space: the model overfits the points that stay for a long time and learns nothing
    elsewhere. Prefer ``Strata`` with "fifo" or "centroid" representatives, or ``Latest``.

    Cost: ``size`` slots, in all or per class; one random number per example.

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

    def forget(self, state: ReservoirState, keep: float) -> None:
        """Keep new rows with a higher probability, as in a shorter stream.

        Until the sample is full, masses are weights, and are reduced. In a full sample only their ratios matter; but a
        mass is never larger than that of a new row of the same weight.
        """
        factors = decay_factors(state.total, keep)
        state.total *= factors
        full = state.seen > self.size
        unit = np.where(full, np.minimum(state.unit, state.total / self.size), factors * state.unit)
        ratio = np.divide(unit, state.unit, out=np.ones(len(unit)), where=state.unit > 0)
        state.slots.mass *= np.repeat(ratio, self.size)
        state.unit = unit

    def state_spec(self, n_classes: int) -> StateSpec:
        return grouped_spec(self, n_classes, self.size)

    @property
    def merging(self) -> "Reservoir":
        return self

    def merge(
        self, base: ReservoirState, parts: list[ReservoirState], contents: list[Array], rng: np.random.Generator
    ) -> tuple[ReservoirState, Places]:
        """Return the merged memory, and where its slots come from."""
        return merge_reservoirs(self, base, parts, contents, rng)

    def observe(self, state: ReservoirState, example: Example) -> None:
        g, weight = 0 if self.joint else int(example.y), example.weight
        before = state.total[g]
        state.seen[g] += 1
        state.total[g] = total = before + weight
        if state.seen[g] <= self.size:
            state.unit[g] = total / state.seen[g]
            state.slots.write(g * self.size + state.seen[g] - 1, example, blend=1.0, mass=weight)
            return
        # Masses relative to W change only if a row is so heavy that it is always kept. Instead of reducing the masses
        # of all other rows, increase the unit.
        state.unit[g] *= max(1.0, (1.0 - 1.0 / self.size) * (total / before))
        # Clip before the conversion: for a row of tiny weight the quotient is too large for an integer.
        place = int(min(example.draws[0] * max(total / weight, self.size), self.size))
        if place < self.size:
            mass = state.unit[g] * max(1.0, self.size * weight / total)
            state.slots.write(g * self.size + place, example, blend=1.0, mass=mass)

    def plan(self, state: ReservoirState, U: Array, y: Array, weight: Array, draws: Array) -> Plan:
        n, group = len(y), groups_of(self, y)
        place, mass = np.empty(n, np.int64), np.empty(n)
        for g in np.unique(group):
            own = np.flatnonzero(group == g)
            place[own], mass[own] = self._places(state, g, weight[own], draws[own, 0])
        kept = place < self.size
        start = np.concatenate([[0], np.cumsum(kept)])
        return Plan(start, (group * self.size + place)[kept], np.ones(start[-1]), mass[kept])

    def _places(self, state: ReservoirState, g: int, weight: Array, draws: Array) -> tuple[Array, Array]:
        """Return the index of each row of a group in the sample (``size`` or more: not kept) and its mass."""
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
