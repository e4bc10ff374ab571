"""Online stratified sampling (OSS): representatives of clusters of the past."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np

from pairloom.base.capabilities import decay_factors
from pairloom.base.checks import check_choice, check_count, check_number
from pairloom.base.csr import CSRRows
from pairloom.base.spec import Finite, Size, StateSpec
from pairloom.base.tree import OPTIONAL, node
from pairloom.base.typing import Array
from pairloom.memory.allocation import (
    Allocation,
    Seats,
    check_allocation,
    is_due,
    masses,
    observe_seats,
    plan_seats,
    reallocate,
)
from pairloom.memory.base import By, CSRMemory, Normalization, Space, grouped_spec, groups_of
from pairloom.memory.clustering import LazyCenters, plan_strata, plan_strata_csr, plan_wide_strata, write_centers
from pairloom.memory.merging import Places
from pairloom.memory.merging_strata import merge_strata
from pairloom.memory.slots import Example, MemoryState, Plan, Slots

Representative = Literal["fifo", "reservoir", "centroid"]

REPRESENTATIVES = {"fifo": 0, "reservoir": 1, "centroid": 2}

WIDE = 384
"""Number of coordinates from which products of several rows with all centres are faster than distances."""

MIN_STRATUM_WEIGHT = 0.5
"""After forgetting, a stratum lighter than this, relative to a row, may be replaced."""

TIE_TOLERANCE = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-10}
"""Tolerance for equal distances, relative to (1 + ||u||^2) / 2, so that rounding errors do not matter."""


@node
class StrataState(MemoryState):
    """The clusters. Stratum j of group g is row g * max_strata + j; ``used[g]`` strata of a group are in use.

    ``scatter`` is the running sum of squares inside each stratum. Stratum j has slot j, whose mass is its count n_j, or
    ``seats``. ``lazy`` is set with the first CSR points. ``spare`` is set by the first ``forget``: if all strata are in
    use, an example that is far from all centres then replaces the lightest stratum, if the weight of that stratum is
    below this share of the example's weight.
    """

    centers: Annotated[Array, "R c q finite"]
    scatter: Annotated[Array, "f8 c finite"]
    used: Annotated[Array, "i8 g 0:cap+1"]
    eps: Size
    tie: Size
    seats: Seats | None = None
    lazy: LazyCenters | None = None
    spare: Finite | None = field(default=None, metadata=OPTIONAL)

    @property
    def counts(self) -> Array:
        """Counts n_j."""
        return self.slots.mass if self.seats is None else self.seats.count

    def dense_centers(self) -> Array:
        """Return the centres as a dense array, even if points are always CSR."""
        if self.lazy is None or self.centers.shape[1]:
            return self.centers
        return np.asarray((self.lazy.factors * self.lazy.c_hat).T)


@dataclass(frozen=True)
class Strata(CSRMemory):
    """Keep representatives of clusters of the past; weights are the shares of the clusters in the history.

    An example joins its nearest cluster j if ||u - c_j||^2 <= eps or if all ``max_strata`` are in use; otherwise it
    founds a new cluster. When it joins, n_j <- n_j + 1, c_j <- c_j + step (u - c_j), and the representative is updated.

    Parameters
    ----------
    eps : largest squared distance at which an example joins a cluster. "auto": half the mean squared distance between
        two points at the start of the stream. 0: only duplicates join. Infinity: a single stratum. Negative: examples
        join only if all clusters are in use.
    max_strata : clusters per clustering.
    representative : "fifo": the newest member; "reservoir": a uniformly drawn member; "centroid": the moving mean of
        the members' features. Avoid "reservoir" in a kernel space: the model overfits the points that stay for a long
        time and learns nothing elsewhere.
    centroid_step : a number in (0, 1], or "mean" for 1 / n_j.
    by : one clustering per "class", or one for all ("joint", the printed algorithm).
    cluster_in : cluster phi(x) ("features", the paper) or x ("input": d instead of D numbers per centre).
    normalization : weights n_j / N of the paired class ("class"), n_j / (t - 1) ("history", the printed algorithm), or
        n_j ("sum").
    allocation : one representative per stratum ("equal", the paper), or ``slots`` representatives in total, more for
        strata with large n_j sigma_j ("neyman"), sigma_j^2 = scatter_j / n_j; reallocated every 256 examples of the
        clustering. "fifo" then keeps the newest members of a stratum, "reservoir" keeps independent draws; with these,
        the variance of the gradient at a fixed w, sum_j p_j^2 Var_j / m_j, is close to the minimum for ``slots`` draws.
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
        """Number of slots per clustering."""
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
        eps: Any = self.eps
        if eps == "auto":
            eps = 0.0 if points is None else 0.5 * mean_squared_distance(points)
        return StrataState(
            slots=Slots.empty(groups * self.n_slots, dim, dtype),
            centers=np.zeros((count, u_dim), dtype),
            scatter=np.zeros(count),
            used=np.zeros(groups, dtype=np.int64),
            eps=float(eps),
            tie=TIE_TOLERANCE[np.dtype(dtype)],
            seats=None if self.allocation == "equal" else Seats.empty(groups, self.max_strata, self.n_slots),
        )

    def start_csr(self, u_dim: int, n_classes: int, dtype: np.dtype, points: Array | None) -> StrataState:
        if self.space == "input":
            return self.start(0, u_dim, n_classes, dtype, points)
        state = self.start(0, 0, n_classes, dtype, points)
        state.lazy = LazyCenters.of(np.zeros((len(state.centers), u_dim), dtype), state.used, np.zeros(0))
        return state

    def state_spec(self, n_classes: int) -> StateSpec:
        spec = grouped_spec(self, n_classes, self.n_slots)
        strata = {"c": spec.symbols["g"] * self.max_strata, "cap": self.max_strata}
        return StateSpec(spec.kind, {**spec.symbols, **strata}, check=self._check_state)

    def _check_state(self, state: StrataState) -> None:
        if (state.seats is not None) != (self.allocation == "neyman"):
            raise ValueError(f"must {'' if state.seats is None else 'not '}have seats")

    @property
    def forgetting(self) -> "Strata":
        return self

    def forget(self, state: StrataState, keep: float) -> None:
        """Reduce counts and scatter; strata that become light may be replaced (``spare``)."""
        factors = decay_factors(state.counts, keep)
        state.scatter *= factors
        state.spare = MIN_STRATUM_WEIGHT
        if state.seats is None:
            state.slots.mass *= factors
            return
        state.seats.count *= factors
        for g in range(len(state.used)):
            own = slice(g * self.n_slots, (g + 1) * self.n_slots)
            state.slots.mass[own] = masses(state.seats.count, state.seats.owner[g], state.seats.slot[g])

    @property
    def merging(self) -> "Strata | None":
        return self if self.allocation == "equal" else None

    def merge(
        self, base: StrataState, parts: list[StrataState], contents: list[Array], rng: np.random.Generator
    ) -> tuple[StrataState, Places]:
        """Return the merged memory, and where its slots come from."""
        return merge_strata(self, base, parts, contents, rng)

    def observe(self, state: StrataState, example: Example) -> None:
        g = 0 if self.joint else int(example.y)
        j, n, step = self._join(state, g, example)
        if state.seats is not None:
            state.seats.count[j] = n
            queue, fading = self.representative == "fifo", state.spare is not None
            observe_seats(state.seats, state.slots, g, j, example, queue, fading)
            if is_due(state.seats.rows[g]):
                state.slots.mass[g * self.n_slots :][: self.n_slots] = self._reallocate(state, g)
        elif self.representative == "fifo":
            state.slots.write(j, example, 1.0, n)
        elif self.representative == "reservoir":
            state.slots.write(j, example, float(example.draws[0] < example.weight / n), n)
        else:
            state.slots.write(j, example, step, n)

    def _join(self, state: StrataState, g: int, example: Example) -> tuple[int, float, float]:
        """Return the stratum that an example joins or founds, its new count, and the step of its centre."""
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
        # A row of weight k updates the centre and the scatter as k equal rows would.
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
        """Return the index for a new stratum: a free one, or that of a light stratum; None if there is none."""
        counts = state.counts[g * self.max_strata :][: self.max_strata]
        if state.used[g] < self.max_strata:
            return int(state.used[g])
        lightest = int(np.argmin(counts))
        return lightest if counts[lightest] < (state.spare or 0.0) * weight else None

    def _reallocate(self, state: StrataState, g: int) -> Array:
        """Reallocate the seats of a clustering, and return the masses of its slots."""
        assert state.seats is not None
        own = slice(g * self.max_strata, g * self.max_strata + state.used[g])
        if state.lazy is not None and not state.centers.shape[1]:
            squares = state.lazy.squares[own]
        else:
            squares = np.asarray(np.square(state.centers[own]).sum(axis=1, dtype=float))
        rounding = state.tie * (1.0 + squares) / 2.0
        return reallocate(state.seats, g, own, state.scatter[own], rounding, state.tie, self.representative == "fifo")

    def plan(self, state: StrataState, U: Array, y: Array, weight: Array, draws: Array) -> Plan:
        return self._plan(state, U, y, weight, draws, None)

    def plan_csr(self, state: StrataState, U: CSRRows, y: Array, weight: Array, draws: Array, center: Array) -> Plan:
        state.lazy = state.lazy or LazyCenters.of(state.centers, state.used, center)
        return self._plan(state, U, y, weight, draws, center)

    def settle(self, state: StrataState, center: Array) -> None:
        if state.lazy is not None and state.centers.shape[1]:
            write_centers(state.centers, center, state.lazy.c_hat, state.lazy.factors, state.lazy.stale)

    def _plan(
        self, state: StrataState, U: Any, y: Array, weight: Array, draws: Array, center: Array | None
    ) -> Plan:  # fmt: skip
        """Plan dense points, or CSR points and their ``center``."""
        if state.seats is None:
            return self._cluster(state, U, y, weight, draws, REPRESENTATIVES[self.representative])

        def reallocated(g: int) -> Array:
            if center is not None:
                self.settle(state, center)
            return self._reallocate(state, g)

        return plan_seats(
            state.seats, state.slots.mass, groups_of(self, y), weight, draws, self.representative == "fifo",
            state.spare is not None,
            lambda rows: self._cluster(state, U[rows], y[rows], weight[rows], draws[rows], 0), reallocated,
        )  # fmt: skip

    def _cluster(self, state: StrataState, U: Any, y: Array, weight: Array, draws: Array, representative: int) -> Plan:
        """Return the stratum of each row, its new count, and the step of its representative."""
        n = len(y)
        plan = Plan(np.arange(n + 1), np.empty(n, np.int64), np.empty(n), np.empty(n))
        step = 0.0 if self.centroid_step == "mean" else float(self.centroid_step)
        rule = self.joint, representative, step, float(state.eps), state.tie, state.spare or 0.0
        strata = state.scatter, state.used, state.counts.copy()
        if isinstance(U, CSRRows):
            assert state.lazy is not None
            lazy = state.lazy.c_hat, state.lazy.factors, state.lazy.squares, state.lazy.stale
            plan_strata_csr((U.data, U.indices, U.indptr), y, weight, draws, rule, strata, lazy, tuple(plan))
        else:
            plan_dense = plan_wide_strata if U.shape[1] >= WIDE else plan_strata
            plan_dense(U, y, weight, draws, rule, strata, state.centers, tuple(plan))
        return plan


def mean_squared_distance(points: Array) -> float:
    """Return the mean of ||u - u'||^2 over all pairs of different rows, from the variances; 0 for one row."""
    spread = np.square(points - points.mean(axis=0, dtype=float)).sum()
    return float(2.0 * spread / max(1, len(points) - 1))
