"""The paper's online stratified sampling (OSS): one representative for each cluster of the past."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from pairloom.checks import check_choice, check_count, check_number
from pairloom.compiled import compiled, dot, move, squared_distances_to
from pairloom.memory.base import Example, Memory, MemoryState, Normalization, Plan, Slots, Space
from pairloom.typing import Array

By = Literal["class", "joint"]
Representative = Literal["fifo", "reservoir", "centroid"]

REPRESENTATIVES = {"fifo": 0, "reservoir": 1, "centroid": 2}

TIE = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-10}
"""Distances closer than this, relative to (1 + ||u||^2) / 2, count as equal: rounding must not choose a stratum."""


@dataclass
class StrataState(MemoryState):
    """The clusters. Slot j of group g is row g * max_strata + j; ``used[g]`` slots of a group are in use.

    ``scatter`` is the running sum of squares inside each stratum; ``slots.mass`` its count n_j.
    """

    centers: Array
    scatter: Array
    used: Array
    eps: float
    tie: float


@dataclass(frozen=True)
class Strata(Memory):
    """Keep clusters of the past and one representative of each; weights are the clusters' shares of the history.

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
    normalization : weights n_j / N of the paired class ("class"), or n_j / (t - 1) ("history", the printed algorithm).

    Cost: 3 s D flops per example and 2 s D numbers for s strata.

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
        if self.by == "joint" and self.normalization == "class":
            raise ValueError(
                "joint strata mix the classes, so their weights are shares of the whole history: "
                "use normalization='history', or strata per class"
            )
        if self.by == "joint" and self.representative == "centroid":
            raise ValueError(
                "the centroid of a joint stratum has no label: use representative='fifo' or 'reservoir', "
                "or strata per class"
            )

    @property
    def draws(self) -> int:
        return int(self.representative == "reservoir")

    @property
    def needs_data(self) -> bool:
        return self.eps == "auto"

    @property
    def space(self) -> Space:
        return self.cluster_in

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
            slots=Slots.empty(count, dim, dtype),
            centers=np.zeros((count, u_dim), dtype),
            scatter=np.zeros(count),
            used=np.zeros(groups, dtype=np.int64),
            eps=self._radius(points),
            tie=TIE[np.dtype(dtype)],
        )

    def _radius(self, points: Array | None) -> float:
        if self.eps != "auto":
            return float(self.eps)
        return 0.5 * mean_squared_distance(points) if points is not None else 0.0

    def observe(self, state: MemoryState, example: Example) -> None:
        assert isinstance(state, StrataState)
        u, weight = example.u, example.weight
        g = 0 if self.joint else int(example.y)
        first, used = g * self.max_strata, state.used[g]
        distances = np.square(u - state.centers[first : first + used]).sum(axis=1)
        tol = state.tie * (1.0 + u @ u) / 2.0
        near = int(np.argmax(distances <= distances.min() + tol)) if used else 0
        far = not used or state.eps < 0 or distances[near] - tol > state.eps
        if far and used < self.max_strata:
            state.used[g] += 1
            state.centers[first + used] = u
            state.slots.write(first + used, example, blend=1.0, mass=weight)
            return
        j = first + near
        n = state.slots.mass[j] + weight
        # A row of weight k moves a centre as k equal rows would.
        step = weight / n if self.centroid_step == "mean" else 1.0 - (1.0 - self.centroid_step) ** weight
        state.scatter[j] += weight * (1.0 - step) * distances[near]
        state.centers[j] += step * (u - state.centers[j])
        if self.representative == "fifo":
            blend = 1.0
        elif self.representative == "reservoir":
            blend = float(example.draws[0] < weight / n)
        else:
            blend = step
        state.slots.write(j, example, blend, n)

    def plan(self, state: MemoryState, U: Array, y: Array, weight: Array, draws: Array) -> Plan:
        assert isinstance(state, StrataState)
        n = len(y)
        plan = Plan(np.arange(n + 1), np.empty(n, np.int64), np.empty(n), np.empty(n))
        plan_strata(
            U, y, weight, draws, self.joint, REPRESENTATIVES[self.representative],
            0.0 if self.centroid_step == "mean" else float(self.centroid_step), float(state.eps), state.tie,
            state.centers, state.scatter, state.used, state.slots.mass.copy(), plan.slot, plan.blend, plan.mass,
        )  # fmt: skip
        return plan


def mean_squared_distance(points: Array) -> float:
    """Mean of ||u - u'||^2 over all pairs of different rows, by the variances; 0 for one row."""
    spread = np.square(points - points.mean(axis=0, dtype=float)).sum()
    return float(2.0 * spread / max(1, len(points) - 1))


@compiled
def nearest(u: Array, centers: Array, tol: float, distances: Array) -> tuple[int, float]:
    """The first center within ``tol`` of the smallest squared distance, and its distance."""
    n = centers.shape[0]
    squared_distances_to(u, centers, distances)
    smallest = np.inf
    for j in range(n):
        smallest = min(smallest, distances[j])
    for j in range(n):
        if distances[j] <= smallest + tol:
            return j, distances[j]
    return 0, np.inf


@compiled
def plan_strata(
    U: Array, y: Array, weight: Array, draws: Array, joint: bool, representative: int,
    constant_step: float, eps: float, tie: float,
    centers: Array, scatter: Array, used: Array, mass: Array, slot: Array, blend: Array, new_mass: Array,
) -> None:  # fmt: skip
    """``Strata.observe`` over the rows of a block; changes centers, scatter, used and mass."""
    cap = centers.shape[0] // used.shape[0]
    distances = np.empty(cap)
    for i in range(y.shape[0]):
        u = U[i]
        g = 0 if joint else int(y[i])
        first = g * cap
        tol = tie * (1.0 + dot(u, u)) / 2.0
        near, distance = nearest(u, centers[first : first + used[g]], tol, distances)
        j = first + near
        far = used[g] == 0 or eps < 0 or distance - tol > eps
        if far and used[g] < cap:
            j = first + used[g]
            used[g] += 1
            mass[j] = weight[i]
            blend[i] = 1.0
            centers[j] = u
        else:
            mass[j] += weight[i]
            share = weight[i] / mass[j]
            step = share if constant_step == 0.0 else 1.0 - (1.0 - constant_step) ** weight[i]
            scatter[j] += weight[i] * (1.0 - step) * distance
            move(centers[j], u, step)
            if representative == 0:
                blend[i] = 1.0
            elif representative == 1:
                blend[i] = 1.0 if draws[i, 0] < share else 0.0
            else:
                blend[i] = step
        slot[i] = j
        new_mass[i] = mass[j]
