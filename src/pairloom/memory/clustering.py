"""Compiled loops that assign rows to strata, for dense and CSR points.

With CSR points, the cost of a row per stratum is linear in its stored entries, not in the number of columns: an update
multiplies all columns of a centre, for which a factor is stored, and adds the row.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from pairloom.base.compiled import compiled, dot, squared_distances_to
from pairloom.base.csr import MIN_SCALE
from pairloom.base.products import ROWS, products
from pairloom.base.tree import Rounded, node
from pairloom.base.typing import Array
from pairloom.memory.slots import Plan


class ClusterRule(NamedTuple):
    """Clustering parameters: whether classes share a clustering, representative, centre step (0: the mean), radius.

    ``tie``: distances that differ by less are treated as equal. ``spare``: a stratum lighter than this share of a row's
    weight may be replaced.
    """

    joint: bool
    representative: int
    constant_step: float
    eps: float
    tie: float
    spare: float


@compiled
def center_step(constant_step: float, weight: float, share: float) -> tuple[float, float]:
    """Return the step of a centre (constant_step 0: the mean) and the factor of squared distances in the scatter."""
    if constant_step == 0:
        return share, weight * (1.0 - share)
    step = 1.0 - (1.0 - constant_step) ** weight
    return step, (1.0 - constant_step) / (constant_step * (2.0 - constant_step)) * step * (2.0 - step)


@compiled
def find_room(mass: Array, first: int, cap: int, used: int, limit: float) -> int:
    """Return the index for a new stratum: a free one, or the lightest if below ``limit``; -1 if there is none."""
    if used < cap:
        return used
    lightest = 0
    for j in range(1, cap):
        if mass[first + j] < mass[first + lightest]:
            lightest = j
    return lightest if mass[first + lightest] < limit else -1


@compiled
def nearest(distances: Array, count: int, tol: float) -> int:
    """Return the first of ``count`` centres within ``tol`` of the smallest squared distance."""
    smallest = np.inf
    for j in range(count):
        smallest = min(smallest, distances[j])
    for j in range(count):
        if distances[j] <= smallest + tol:
            return j
    return 0


@compiled
def plan_strata(
    U: Array, y: Array, weight: Array, draws: Array, rule_: Any, strata: Any, centers: Array, plan_: Any
) -> None:  # fmt: skip
    """Apply ``Strata.observe`` to the rows of a block; update centres and ``strata``: their scatter, number and mass.

    Fills a ``Plan`` of one event per row. Named tuples are passed as plain tuples.
    """
    rule, plan, used = ClusterRule(*rule_), Plan(*plan_), strata[1]
    cap = centers.shape[0] // used.shape[0]
    distances = np.empty(cap)
    for i in range(y.shape[0]):
        u, g = U[i], 0 if rule.joint else int(y[i])
        first, square = g * cap, float(dot(u, u))
        squared_distances_to(u, centers[first : first + used[g]], distances)
        near = nearest(distances, used[g], rule.tie * (1.0 + square) / 2.0)
        join(u, i, square, near, distances[near], g, weight[i], draws, rule, strata, centers, plan)


@compiled
def plan_wide_strata(
    U: Array, y: Array, weight: Array, draws: Array, rule_: Any, strata: Any, centers: Array, plan_: Any
) -> None:  # fmt: skip
    """Do the same for points with many coordinates.

    Groups do not affect each other, so they are planned in turn, and four rows are multiplied with all centres at once;
    after that only with those that have moved. Distances are ||u||^2 - 2 <u, c_j> + ||c_j||^2, and that of the nearest
    centre is computed again, without cancellation.
    """
    rule, plan, used = ClusterRule(*rule_), Plan(*plan_), strata[1]
    cap, rows = centers.shape[0] // used.shape[0], np.empty_like(plan.slot)
    block, fresh = np.empty((ROWS, centers.shape[0]), U.dtype), np.empty((ROWS, centers.shape[0]), U.dtype)
    own, moved = np.empty(cap, np.int64), np.empty(ROWS, np.int64)
    distances, squares, stale = np.empty(cap), np.empty(cap), np.empty(cap, np.bool_)
    for g in range(used.shape[0]):
        n, first = rows_of_group(y, g, rule.joint, rows), g * cap
        for k in range(cap):
            own[k], stale[k] = first + k, True
        for e in range(n):
            i, place = rows[e], e % ROWS
            u, h, count = U[i], block[place], place if place else used[g]
            # The only call, so that a product does not depend on whether a row is the first of four.
            products(
                U, rows, e, e if place else n - 1, centers, moved if place else own, count, fresh if place else block
            )
            for k in range(place):
                h[moved[k]] = fresh[0, moved[k]]
            square = float(dot(u, u))
            for k in range(used[g]):
                if stale[k]:
                    squares[k], stale[k] = float(dot(centers[first + k], centers[first + k])), False
                distances[k] = square - 2.0 * float(h[first + k]) + squares[k]
            near = nearest(distances, used[g], rule.tie * (1.0 + square) / 2.0)
            distance = squared_distance(u, centers[first + near])
            j = join(u, i, square, near, distance, g, weight[i], draws, rule, strata, centers, plan)
            moved[place], stale[j - first] = j, True


@compiled
def rows_of_group(y: Array, g: int, joint: bool, chosen: Array) -> int:
    """Fill ``chosen`` with the rows of a group; return their number."""
    count = 0
    for i in range(y.shape[0]):
        chosen[count] = i
        count += 1 if joint or int(y[i]) == g else 0
    return count


@compiled
def squared_distance(a: Array, b: Array) -> float:
    """Return ||a - b||^2."""
    total = a.dtype.type(0)
    for c in range(a.shape[0]):
        total += (a[c] - b[c]) * (a[c] - b[c])
    return float(total)


@compiled
def join(
    u: Array, i: int, square: float, near: int, distance: float, g: int, weight: float, draws: Array,
    rule: ClusterRule, strata: Any, centers: Array, plan: Plan,
) -> int:  # fmt: skip
    """Let row i join the nearest stratum of its group, or found one; return the index of the stratum."""
    scatter, used, mass = strata
    cap = centers.shape[0] // used.shape[0]
    first, j = g * cap, int(g * cap + near)
    far = used[g] == 0 or rule.eps < 0 or distance - rule.tie * (1.0 + square) / 2.0 > rule.eps
    room = find_room(mass, first, cap, used[g], rule.spare * weight) if far else -1
    blend = 1.0
    if room >= 0:
        j = first + room
        used[g] = max(used[g], room + 1)
        mass[j], scatter[j] = weight, 0.0
        for c in range(u.shape[0]):
            centers[j, c] = u[c]
    else:
        mass[j] += weight
        share = weight / mass[j]
        step, spread = center_step(rule.constant_step, weight, share)
        scatter[j] += spread * distance
        e = u.dtype.type(step)
        for c in range(u.shape[0]):
            centers[j, c] += e * (u[c] - centers[j, c])
        if rule.representative == 1:
            blend = 1.0 if draws[i, 0] < share else 0.0
        elif rule.representative == 2:
            blend = step
    plan.slot[i], plan.blend[i], plan.mass[i] = j, blend, mass[j]
    return j


@node
class LazyCenters:
    """Centres c_j = factor_j c_hat[:, j]; ``squares``: ||c_j||^2; ``stale``: whether dense centres are out of date."""

    c_hat: Annotated[Array, "f8 u c"]
    factors: Annotated[Array, "f8 c"]
    squares: Annotated[Array, "f8 c"]
    stale: Annotated[Array, "b1 c"]

    @classmethod
    def of(cls, centers: Rounded, used: Array, center: Array) -> "LazyCenters":
        """Return the lazy form of the centres in use; ``center`` is the point that is subtracted from dense rows."""
        c_hat = np.zeros(centers.shape[::-1])
        cap = len(centers) // len(used)
        for j in (g * cap + k for g in range(len(used)) for k in range(used[g])):
            c_hat[:, j] = centers[j] + center if center.size else centers[j]
        squares = np.square(c_hat).sum(axis=0)
        return cls(c_hat, np.ones(len(centers)), squares, np.zeros(len(centers), bool))


@compiled
def plan_strata_csr(
    rows: Any, y: Array, weight: Array, draws: Array, rule_: Any, strata: Any, centers: Any, plan_: Any
) -> None:  # fmt: skip
    """Plan CSR rows (data, indices, indptr) as ``plan_strata`` does; ``centers``: the fields of ``LazyCenters``."""
    rule, plan = ClusterRule(*rule_), Plan(*plan_)
    (data, indices, indptr), (scatter, used, mass), (c_hat, factors, squares, stale) = rows, strata, centers
    cap = factors.shape[0] // used.shape[0]
    inner = np.empty(cap)
    for i in range(y.shape[0]):
        cols, vals = indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]]
        g = 0 if rule.joint else int(y[i])
        first = g * cap
        square = 0.0
        for e in range(vals.shape[0]):
            square += float(vals[e]) * float(vals[e])
        tol = rule.tie * (1.0 + square) / 2.0
        near, distance = nearest_row(cols, vals, square, c_hat, factors, squares, first, used[g], tol, inner)
        j = first + near
        far = used[g] == 0 or rule.eps < 0 or distance - tol > rule.eps
        place = find_room(mass, first, cap, used[g], rule.spare * weight[i]) if far else -1
        if place >= 0:
            j = first + place
            if place < used[g]:
                c_hat[:, j] = 0.0
                factors[j] = 1.0
            used[g] = max(used[g], place + 1)
            mass[j] = weight[i]
            scatter[j] = 0.0
            plan.blend[i] = 1.0
            squares[j] = square
            for e in range(cols.shape[0]):
                c_hat[cols[e], j] = vals[e]
        else:
            mass[j] += weight[i]
            share = weight[i] / mass[j]
            step, spread = center_step(rule.constant_step, weight[i], share)
            scatter[j] += spread * distance
            move_center(c_hat, factors, squares, j, cols, vals, square, inner[near], step)
            if rule.representative == 0:
                plan.blend[i] = 1.0
            elif rule.representative == 1:
                plan.blend[i] = 1.0 if draws[i, 0] < share else 0.0
            else:
                plan.blend[i] = step
        stale[j] = True
        plan.slot[i] = j
        plan.mass[i] = mass[j]


@compiled
def nearest_row(
    cols: Array, vals: Array, square: float, c_hat: Array, factors: Array, squares: Array,
    first: int, count: int, tol: float, products: Array,
) -> tuple[int, float]:  # fmt: skip
    """Return the ``nearest`` centre by ||u||^2 - 2 <u, c_j> + ||c_j||^2; fill ``products`` <u, c_j>."""
    products[:count] = 0.0
    for e in range(cols.shape[0]):
        x, row = float(vals[e]), c_hat[cols[e], first : first + count]
        for j in range(count):
            products[j] += x * row[j]
    smallest = np.inf
    for j in range(count):
        products[j] *= factors[first + j]
        smallest = min(smallest, square - 2.0 * products[j] + squares[first + j])
    for j in range(count):
        distance = square - 2.0 * products[j] + squares[first + j]
        if distance <= smallest + tol:
            return j, max(0.0, distance)
    return 0, np.inf


@compiled
def move_center(
    c_hat: Array, factors: Array, squares: Array, j: int, cols: Array, vals: Array, square: float, product: float,
    step: float,
) -> None:  # fmt: skip
    """Set c_j to c_j + step (u - c_j), given ||u||^2 and <u, c_j>; a step of 1 visits all columns."""
    stay = 1.0 - step
    squares[j] = max(0.0, stay * stay * squares[j] + 2.0 * step * stay * product + step * step * square)
    factors[j] *= stay
    if factors[j] < MIN_SCALE:
        for c in range(c_hat.shape[0]):
            c_hat[c, j] *= factors[j]
        factors[j] = 1.0
    by = step / factors[j]
    for e in range(cols.shape[0]):
        c_hat[cols[e], j] += by * vals[e]


@compiled
def write_centers(centers: Array, center: Array, c_hat: Array, factors: Array, stale: Array) -> None:
    """Update the stale dense centres, minus the point ``center`` that is subtracted from dense rows."""
    js = np.flatnonzero(stale)
    for c in range(c_hat.shape[0]):
        m = center[c] if center.shape[0] > 0 else 0.0
        for j in js:
            centers[j, c] = factors[j] * c_hat[c, j] - m
    stale[:] = False
