"""Merging strata: those of the base with what each part added to them, then the new ones, the largest first."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from pairloom.base.merging import added, check_equal
from pairloom.base.typing import Array
from pairloom.memory.clustering import LazyCenters
from pairloom.memory.merging import Places, changed

if TYPE_CHECKING:
    from pairloom.memory.strata import Strata, StrataState


@dataclass
class _Merged:
    """The strata so far: ``points`` are blended only for representatives that are centroids."""

    centers: Array
    scatter: Array
    count: Array
    used: Array
    places: Places
    points: Array | None = field(default=None)

    def blend(self, j: int, center: Array, point: Array | None, share: float) -> None:
        """Move a centre, and the centroid in feature space, by a share towards others."""
        self.centers[j] += share * (center - self.centers[j])
        if self.points is not None and point is not None:
            self.points[j] += share * (point - self.points[j])


def merge_strata(
    memory: "Strata", base: "StrataState", parts: "list[StrataState]", contents: list[Array], rng: np.random.Generator
) -> "tuple[StrataState, Places]":
    """Return at most ``max_strata`` strata per clustering.

    Counts and scatter are sums. A centre is the mean of those of the parts, by their new members. New strata are added
    by decreasing count, as a row would be: one within ``eps`` of a stratum joins it, and so do all once there is no
    room.
    """
    states, size = [base, *parts], memory.max_strata
    check_equal("strata (another radius eps)", base.eps, [part.eps for part in parts])
    dense = [state.dense_centers().astype(float) for state in states]
    blends = memory.representative == "centroid"
    made = _Merged(
        dense[0].copy(), added(base.scatter, [part.scatter for part in parts]),
        added(base.counts, [part.counts for part in parts]), base.used.copy(), Places.of(len(base.counts)),
        base.slots.points.astype(float) if blends else None,
    )  # fmt: skip
    fresh = [changed(memory, states, contents, k) for k in range(1, len(states))]
    for g in range(len(base.used)):
        for j in range(g * size, g * size + int(base.used[g])):
            _grow(memory, made, states, dense, fresh, j, rng)
        new = [
            (-float(part.counts[j]), k, j)
            for k, part in enumerate(parts, start=1)
            for j in range(g * size + int(base.used[g]), g * size + int(part.used[g]))
        ]
        made.count[g * size + int(base.used[g]) : (g + 1) * size] = 0.0
        made.scatter[g * size + int(base.used[g]) : (g + 1) * size] = 0.0
        for _, k, j in sorted(new):
            _join(memory, made, states[k], dense[k], g, k, j, base, rng)
    slots = made.places.slots(states, made.count)
    if made.points is not None:
        slots.points = made.points.astype(slots.points.dtype)
    state = type(base)(
        slots,
        made.centers.astype(base.centers.dtype),
        made.scatter,
        made.used,
        base.eps,
        base.tie,
        None,
        None,
        base.spare,
    )
    if not base.centers.shape[1]:  # points have no dense form
        state.lazy, state.centers = LazyCenters.of(made.centers, made.used, np.zeros(0)), base.centers
    return state, made.places


def _grow(
    memory: "Strata", made: _Merged, states: list[Any], dense: list[Array], fresh: list[Array], j: int,
    rng: np.random.Generator,
) -> None:  # fmt: skip
    """Merge a stratum of the base with what each part added to it."""
    base, parts = states[0], states[1:]
    before, counts = float(base.counts[j]), np.array([float(part.counts[j]) for part in parts])
    new = counts - before
    if not new.sum() > 0:
        return
    # A mean moves by the share of its weight that is new; a centre that forgets is that of the newest members.
    shares = counts / made.count[j] if memory.centroid_step == "mean" else new / new.sum()
    center, point = made.centers[j].copy(), None if made.points is None else made.points[j].copy()
    for k, share in enumerate(shares.tolist(), start=1):
        made.centers[j] += share * (dense[k][j] - center)
        if made.points is not None:
            made.points[j] += share * (states[k].slots.points[j] - point)
    if memory.representative == "reservoir":
        # The new representative of a part stands for all members that it could have been.
        weight = np.append(before, [n if own[j] else 0.0 for n, own in zip(counts, fresh, strict=True)])
        made.places.set(j, int(rng.choice(len(states), p=weight / weight.sum())), j)
    else:
        made.places.set(j, 1 + int(np.argmax(new)), j)


def _join(
    memory: "Strata", made: _Merged, part: "StrataState", centers: Array, g: int, k: int, j: int, base: "StrataState",
    rng: np.random.Generator,
) -> None:  # fmt: skip
    """Add a new stratum of a part, or unite it with the nearest."""
    first, used, count = g * memory.max_strata, int(made.used[g]), float(part.counts[j])
    center, near, distance = centers[j], 0, np.inf
    if used:
        distances = np.square(center - made.centers[first : first + used]).sum(axis=1)
        near, distance = first + int(distances.argmin()), float(distances.min())
    tol = base.tie * (1.0 + float(center @ center)) / 2.0
    far = used == 0 or base.eps < 0 or distance - tol > base.eps
    point = None if made.points is None else part.slots.points[j].astype(float)
    if far and used < memory.max_strata:
        to = first + used
        made.used[g] = used + 1
        made.centers[to], made.scatter[to], made.count[to] = center, part.scatter[j], count
        made.places.set(to, k, j)
        if made.points is not None and point is not None:
            made.points[to] = point
        return
    total = float(made.count[near]) + count
    made.scatter[near] += part.scatter[j] + float(made.count[near]) * count / total * distance
    made.blend(near, center, point, count / total)
    made.count[near] = total
    if memory.representative == "reservoir" and rng.random() < count / total:
        made.places.set(near, k, j)
