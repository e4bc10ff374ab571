"""Strata of dense points: the compiled loop."""

from typing import Any

import numpy as np

from pairloom.base.compiled import compiled, dot, move, squared_distances_to
from pairloom.base.typing import Array
from pairloom.memory.base import Plan
from pairloom.memory.strata_csr import ClusterRule, center_step, find_room


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
    U: Array, y: Array, weight: Array, draws: Array, rule_: Any, strata: Any, centers: Array, plan_: Any
) -> None:  # fmt: skip
    """``Strata.observe`` over the rows of a block; changes centers and ``strata``: their scatter, number and mass.

    Fills in a ``Plan`` of one event for each row. Groups come as plain tuples.
    """
    rule, plan, (scatter, used, mass) = ClusterRule(*rule_), Plan(*plan_), strata
    cap = centers.shape[0] // used.shape[0]
    distances = np.empty(cap)
    for i in range(y.shape[0]):
        u = U[i]
        g = 0 if rule.joint else int(y[i])
        first = g * cap
        tol = rule.tie * (1.0 + dot(u, u)) / 2.0
        near, distance = nearest(u, centers[first : first + used[g]], tol, distances)
        j = first + near
        far = used[g] == 0 or rule.eps < 0 or distance - tol > rule.eps
        place = find_room(mass[first : first + cap], used[g], rule.spare * weight[i]) if far else -1
        if place >= 0:
            j = first + place
            used[g] = max(used[g], place + 1)
            mass[j] = weight[i]
            scatter[j] = 0.0
            plan.blend[i] = 1.0
            centers[j] = u
        else:
            mass[j] += weight[i]
            share = weight[i] / mass[j]
            step, spread = center_step(rule.constant_step, weight[i], share)
            scatter[j] += spread * distance
            move(centers[j], u, step)
            if rule.representative == 0:
                plan.blend[i] = 1.0
            elif rule.representative == 1:
                plan.blend[i] = 1.0 if draws[i, 0] < share else 0.0
            else:
                plan.blend[i] = step
        plan.slot[i] = j
        plan.mass[i] = mass[j]
