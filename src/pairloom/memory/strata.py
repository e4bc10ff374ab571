"""The paper's online stratified sampling (OSS): one representative for each cluster of the past."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from pairloom.base.aging import aged
from pairloom.base.checks import check_choice, check_count, check_number
from pairloom.base.csr import Rows
from pairloom.base.tree import OPTIONAL, Rounded, node
from pairloom.base.typing import Array
from pairloom.memory.allocation import (
    Allocation,
    Seats,
    check_allocation,
    due,
    masses,
    observe_seats,
    plan_seats,
    share_out,
)
from pairloom.memory.base import By, Example, Memory, MemoryState, Normalization, Plan, Slots, Space
from pairloom.memory.strata_csr import LazyCenters, plan_rows, write_centers
from pairloom.memory.strata_dense import plan_strata

Representative = Literal["fifo", "reservoir", "centroid"]

REPRESENTATIVES = {"fifo": 0, "reservoir": 1, "centroid": 2}

SPARE = 0.5
"""A stratum may be given away when what is left of it is less than this part of a row."""

TIE = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-10}
"""Distances closer than this, relative to (1 + ||u||^2) / 2, count as equal: rounding must not choose a stratum."""


@node
class StrataState(MemoryState):
    """The clusters. Stratum j of group g is row g * max_strata + j; ``used[g]`` strata of a group are in use.

    ``scatter`` is the running sum of squares inside each stratum. A stratum has the slot of its own number, whose
    mass is its count n_j, or ``seats``. ``lazy`` is there once CSR points have come. ``spare`` is there once something
    was forgotten: an example that is far from all centres, with all strata in use, founds one in the place of the
    lightest, if that weighs less than this part of the example.
    """

    centers: Rounded
    scatter: Array
    used: Array
    eps: float
    tie: float
    seats: Seats | None = None
    lazy: LazyCenters | None = None
    spare: float | None = field(default=None, metadata=OPTIONAL)

    @property
    def counts(self) -> Array:
        """n_j."""
        return self.slots.mass if self.seats is None else self.seats.count

    def dense_centers(self) -> Array:
        """The centres, also of points that are always CSR, which have no other dense form."""
        if self.lazy is None or self.centers.shape[1]:
            return self.centers
        return np.asarray((self.lazy.factors * self.lazy.c_hat).T)


@dataclass(frozen=True)
class Strata(Memory):
    """Keep clusters of the past and representatives of each; weights are the clusters' shares of the history.

    An example joins its nearest cluster j if ||u - c_j||^2 <= eps or if all ``max_strata`` are in use, else it
    founds one. On joining, n_j <- n_j + 1, c_j <- c_j + step (u - c_j), and the representative follows its rule.

    Parameters
    ----------
    eps : largest squared distance at which an example joins; "auto" is half the mean squared distance of two
        points of the start of the stream; 0 joins duplicates only; infinity makes one stratum; a negative
        number never joins.
    max_strata : clusters per clustering.
    representative : "fifo" the newest member; "reservoir" a uniform member; "centroid" the moving mean of the members'
        features. In a kernel space a reservoir is a trap: the model stores its margin at the long-kept points and
        learns nothing elsewhere.
    centroid_step : a number in (0, 1], or "mean" for 1 / n_j.
    by : one clustering per "class", or one for all ("joint", the printed algorithm).
    cluster_in : cluster phi(x) ("features", the paper) or x ("input": d instead of D numbers per centre).
    normalization : weights n_j / N of the paired class ("class"), n_j / (t - 1) ("history", the printed algorithm), or
        n_j ("sum").
    allocation : one representative for each stratum ("equal", the paper), or ``slots`` of them in all, more where
        n_j sigma_j is large ("neyman"), sigma_j^2 = scatter_j / n_j; shared out anew every 256 examples of the
        clustering. "fifo" then keeps the newest members of a stratum; "reservoir" independent draws, and the variance
        of the gradient at a fixed w, sum_j p_j^2 Var_j / m_j, is near the least that ``slots`` draws can have.
    slots : representatives per clustering for "neyman", at least ``max_strata``; by default twice as many.

    Cost: 3 s D flops per example and 2 s D numbers for s strata; (s + slots) D numbers with "neyman".

    Reference: AlQuabeh, Mukhoty and Gu, Variance Reduced Online Gradient Descent for Kernelized Pairwise Learning with
    Limited Memory, ACML 2023, section 4.
    """

    eps: float | Literal["auto"] = "auto"
    max_strata: int = 16
    representative: Representative = "fifo"
    centroid_step: float | Literal["mean"] = 0.05
    by: By = "class"
    cluster_in: Space = "features"
    normalization: Normalization = "class"
    allocation: Allocation = "equal"
    slots: int | None = None

    def __post_init__(self) -> None:
        if self.eps != "auto" and not (isinstance(self.eps, (int, float, np.number)) and self.eps == self.eps):
            raise ValueError(f"eps must be a number or 'auto'; got {self.eps!r}")
        check_count("max_strata", self.max_strata)
        check_choice("representative", self.representative, Representative)
        if self.centroid_step != "mean":
            check_number("centroid_step, if not 'mean',", self.centroid_step, 0, 1, open_low=True)
        check_choice("strata", self.by, By)
        check_choice("cluster_in", self.cluster_in, Space)
        check_choice("normalization", self.normalization, Normalization)
        if self.by == "joint" and self.normalization != "history":
            raise ValueError(
                "joint strata mix the classes, so their weights are shares of the whole history: "
                "use normalization='history', or strata per class"
            )
        if self.by == "joint" and self.representative == "centroid":
            raise ValueError(
                "the centroid of a joint stratum has no label: use representative='fifo' or 'reservoir', "
                "or strata per class"
            )
        check_allocation(self.allocation, self.slots, self.max_strata, self.representative)

    @property
    def n_slots(self) -> int:
        """Slots per clustering."""
        if self.allocation == "equal":
            return self.max_strata
        return 2 * self.max_strata if self.slots is None else self.slots

    @property
    def draws(self) -> int:
        if self.representative != "reservoir":
            return 0
        return 1 if self.allocation == "equal" else self.n_slots

    @property
    def needs_data(self) -> bool:
        return self.eps == "auto"

    @property
    def space(self) -> Space:
        return self.cluster_in

    @property
    def holds_rows(self) -> bool:
        return self.cluster_in == "input" and self.representative != "centroid"

    @property
    def blends(self) -> bool:
        return self.representative == "centroid"

    @property
    def joint(self) -> bool:
        return self.by == "joint"

    @property
    def weighting(self) -> Normalization:
        return self.normalization

    def start(self, dim: int, u_dim: int, n_classes: int, dtype: np.dtype, points: Array | None) -> StrataState:
        groups = 1 if self.joint else n_classes
        count = groups * self.max_strata
        return StrataState(
            slots=Slots.empty(groups * self.n_slots, dim, dtype),
            centers=np.zeros((count, u_dim), dtype),
            scatter=np.zeros(count),
            used=np.zeros(groups, dtype=np.int64),
            eps=self._radius(points),
            tie=TIE[np.dtype(dtype)],
            seats=None if self.allocation == "equal" else Seats.empty(groups, self.max_strata, self.n_slots),
        )

    def start_csr(self, dim: int, u_dim: int, n_classes: int, dtype: np.dtype, points: Array | None) -> StrataState:
        if self.space == "input":
            return self.start(0, u_dim, n_classes, dtype, points)
        state = self.start(0, 0, n_classes, dtype, points)
        state.lazy = LazyCenters.of(np.zeros((len(state.centers), u_dim), dtype), state.used, np.zeros(0))
        return state

    def _radius(self, points: Array | None) -> float:
        if self.eps != "auto":
            return float(self.eps)
        return 0.5 * mean_squared_distance(points) if points is not None else 0.0

    @property
    def forgets(self) -> bool:
        return True

    def forget(self, state: MemoryState, keep: float) -> None:
        """Counts and scatter fade; of a stratum that nothing joins, others may take the place (``spare``)."""
        assert isinstance(state, StrataState)
        factors = aged(state.counts, keep)
        state.scatter *= factors
        state.spare = SPARE
        if state.seats is None:
            state.slots.mass *= factors
            return
        state.seats.count *= factors
        for g in range(len(state.used)):
            own = slice(g * self.n_slots, (g + 1) * self.n_slots)
            state.slots.mass[own] = masses(state.seats.count, state.seats.owner[g], state.seats.slot[g])

    def observe(self, state: MemoryState, example: Example) -> None:
        assert isinstance(state, StrataState)
        g = 0 if self.joint else int(example.y)
        j, n, step = self._join(state, g, example)
        if state.seats is not None:
            state.seats.count[j] = n
            queue, fading = self.representative == "fifo", state.spare is not None
            observe_seats(state.seats, state.slots, g, j, example, queue, fading)
            if due(state.seats.rows[g]):
                state.slots.mass[g * self.n_slots :][: self.n_slots] = self._share_out(state, g)
        elif self.representative == "fifo":
            state.slots.write(j, example, 1.0, n)
        elif self.representative == "reservoir":
            state.slots.write(j, example, float(example.draws[0] < example.weight / n), n)
        else:
            state.slots.write(j, example, step, n)

    def _join(self, state: StrataState, g: int, example: Example) -> tuple[int, float, float]:
        """The stratum that an example joins or founds, its new count, and the step of its centre."""
        u, weight = example.u, example.weight
        first, used = g * self.max_strata, state.used[g]
        distances = np.square(u - state.centers[first : first + used]).sum(axis=1)
        tol = state.tie * (1.0 + u @ u) / 2.0
        near = int(np.argmax(distances <= distances.min() + tol)) if used else 0
        far = not used or state.eps < 0 or distances[near] - tol > state.eps
        place = self._room(state, g, weight) if far else None
        if place is not None:
            j = first + place
            state.used[g] = max(used, place + 1)
            state.centers[j], state.scatter[j] = u, 0.0
            return j, weight, 1.0
        j = first + near
        n = state.counts[j] + weight
        # A row of weight k moves a centre, and adds to the scatter, as k equal rows would.
        if self.centroid_step == "mean":
            step = weight / n
            spread = weight * (1.0 - step)
        else:
            e = self.centroid_step
            step = 1.0 - (1.0 - e) ** weight
            spread = (1.0 - e) / (e * (2.0 - e)) * step * (2.0 - step)
        state.scatter[j] += spread * distances[near]
        state.centers[j] += step * (u - state.centers[j])
        return j, n, step

    def _room(self, state: StrataState, g: int, weight: float) -> int | None:
        """Where a row of this weight may found a stratum: free room, or that of one of which little is left."""
        counts = state.counts[g * self.max_strata :][: self.max_strata]
        if state.used[g] < self.max_strata:
            return int(state.used[g])
        lightest = int(np.argmin(counts))
        return lightest if counts[lightest] < (state.spare or 0.0) * weight else None

    def _share_out(self, state: StrataState, g: int) -> Array:
        """Give the strata of a clustering their seats anew; the masses of its slots after that."""
        assert state.seats is not None
        own = slice(g * self.max_strata, g * self.max_strata + state.used[g])
        rounding = state.tie * (1.0 + self._squares(state, own)) / 2.0
        return share_out(state.seats, g, own, state.scatter[own], rounding, state.tie, self.representative == "fifo")

    def _squares(self, state: StrataState, own: slice) -> Array:
        """||c_j||^2."""
        if state.lazy is not None and not state.centers.shape[1]:
            return state.lazy.squares[own]
        return np.asarray(np.square(state.centers[own]).sum(axis=1, dtype=float))

    def plan(self, state: MemoryState, U: Array, y: Array, weight: Array, draws: Array) -> Plan:
        assert isinstance(state, StrataState)
        if state.seats is None:
            return self._cluster(state, U, y, weight, draws, REPRESENTATIVES[self.representative])
        group = np.zeros(len(y), np.int64) if self.joint else y.astype(np.int64)
        return plan_seats(
            state.seats, state.slots.mass, group, weight, draws, self.representative == "fifo", state.spare is not None,
            lambda rows: self._cluster(state, U[rows], y[rows], weight[rows], draws[rows], 0),
            lambda g: self._share_out(state, g),
        )  # fmt: skip

    def plan_csr(self, state: MemoryState, U: Rows, y: Array, weight: Array, draws: Array, center: Array) -> Plan:
        assert isinstance(state, StrataState)
        strata = state
        strata.lazy = strata.lazy or LazyCenters.of(strata.centers, strata.used, center)
        if strata.seats is None:
            return self._cluster_csr(strata, U, y, weight, draws, REPRESENTATIVES[self.representative])

        def share_out(g: int) -> Array:
            self.settle(strata, center)
            return self._share_out(strata, g)

        group = np.zeros(len(y), np.int64) if self.joint else y.astype(np.int64)
        return plan_seats(
            strata.seats, strata.slots.mass, group, weight, draws, self.representative == "fifo",
            strata.spare is not None,
            lambda part: self._cluster_csr(strata, U[part], y[part], weight[part], draws[part], 0), share_out,
        )  # fmt: skip

    def settle(self, state: MemoryState, center: Array) -> None:
        assert isinstance(state, StrataState)
        if state.lazy is not None and state.centers.shape[1]:
            write_centers(state.centers, center, state.lazy.c_hat, state.lazy.factors, state.lazy.stale)

    def _cluster(self, state: StrataState, U: Array, y: Array, weight: Array, draws: Array, rule: int) -> Plan:
        """The stratum of each row, its count after it, and how far a representative by ``rule`` moves."""
        n = len(y)
        plan = Plan(np.arange(n + 1), np.empty(n, np.int64), np.empty(n), np.empty(n))
        plan_strata(
            U, y, weight, draws, self._rule(state, rule),
            (state.scatter, state.used, state.counts.copy()), state.centers, tuple(plan),
        )  # fmt: skip
        return plan

    def _cluster_csr(self, state: StrataState, U: Rows, y: Array, weight: Array, draws: Array, rule: int) -> Plan:
        """``_cluster`` for CSR points."""
        assert state.lazy is not None
        n, lazy = len(y), state.lazy
        plan = Plan(np.arange(n + 1), np.empty(n, np.int64), np.empty(n), np.empty(n))
        plan_rows(
            (U.data, U.indices, U.indptr), y, weight, draws, self._rule(state, rule),
            (state.scatter, state.used, state.counts.copy()),
            (lazy.c_hat, lazy.factors, lazy.squares, lazy.stale), tuple(plan),
        )  # fmt: skip
        return plan

    def _rule(self, state: StrataState, representative: int) -> tuple[Any, ...]:
        """``ClusterRule`` as a plain tuple."""
        step = 0.0 if self.centroid_step == "mean" else float(self.centroid_step)
        return self.joint, representative, step, float(state.eps), state.tie, state.spare or 0.0


def mean_squared_distance(points: Array) -> float:
    """Mean of ||u - u'||^2 over all pairs of different rows, by the variances; 0 for one row."""
    spread = np.square(points - points.mean(axis=0, dtype=float)).sum()
    return float(2.0 * spread / max(1, len(points) - 1))
