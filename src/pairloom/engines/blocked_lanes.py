"""The order of models side by side, and their step sizes."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from pairloom.base.typing import Array
from pairloom.engines.base import Parts
from pairloom.engines.reference import MAX_SUBSTEPS, MAX_WEIGHT
from pairloom.features import FeatureMap
from pairloom.losses import Loss, loss_key
from pairloom.memory import Memory
from pairloom.pairs import Pairs
from pairloom.steps.schedules import averaging_rate

TILE_WIDTH = 128
"""Models per tile: enough for vector instructions, few enough that their coefficients stay in the cache."""

Places = dict[Any, list[int]]
"""The positions in a tile at which each distinct part is used."""


@dataclass(frozen=True)
class Tile:
    """Weight vectors ``start`` to ``stop``, which are updated by the same instructions.

    They have the same ``target`` and loss, and either all of them are averaged or none is. ``steady``: the step table
    of a row of weight 1, if it is the same for all rows.
    """

    start: int
    stop: int
    target: int
    loss: Loss
    averaging: bool
    steps: Places
    penalties: Places
    averages: Places
    steady: Array | None

    def step_table(self, t: Array, weight: Array) -> Array:
        """Return keep and rate of each row's step, then of one substep of a heavy row.

        (4, rows, models), or (4, 1, models) if they are the same for all rows.
        """
        if self.steady is not None and (weight == 1).all():
            return self.steady
        return step_table(self.steps, self.penalties, self.stop - self.start, t, weight)

    def rate_table(self, t: Array) -> Array:
        """Return rho of each row; empty without averages."""
        rho = np.empty((len(t) if self.averaging else 0, self.stop - self.start))
        for average, places in self.averages.items():
            rho[:, places] = averaging_rate(average, t[: len(rho)])[:, None]
        return rho


@dataclass(frozen=True)
class Lanes:
    """The weight vectors of many learners, in the order in which they are stored.

    ``order``: the positions of target 0 of learner 0, its target 1, ..., target 0 of learner 1, ... The first
    ``n_averaged`` vectors have an average.
    """

    tiles: list[Tile]
    order: Array
    n_averaged: int

    def __len__(self) -> int:
        return len(self.order)


class SideBySide(Protocol):
    """The interface of a grid for the blocked engine: the parts that its learners share, and their lanes."""

    @property
    def features(self) -> FeatureMap: ...
    @property
    def pairs(self) -> Pairs: ...
    @property
    def memory(self) -> Memory: ...
    @property
    def lanes(self) -> Lanes: ...


def arrange(learners: Sequence[Parts], n_targets: int) -> Lanes:
    """Group weight vectors of the same kind, and split them into tiles."""
    kinds: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for v in range(len(learners) * n_targets):
        learner = learners[v // n_targets]
        kinds[learner.average == "last", v % n_targets, *loss_key(learner.pair_loss)].append(v)
    tiles: list[Tile] = []
    placed: list[int] = []
    for (_, target, *_), vectors in sorted(kinds.items()):
        for first in range(0, len(vectors), TILE_WIDTH):
            part = vectors[first : first + TILE_WIDTH]
            tiles.append(_tile([learners[v // n_targets] for v in part], len(placed), target))
            placed += part
    n_averaged = sum(tile.stop - tile.start for tile in tiles if tile.averaging)
    return Lanes(tiles, np.argsort(placed), n_averaged)


def step_table(steps: Places, penalties: Places, width: int, t: Array, weight: Array) -> Array:
    """Return keep and rate of each row's step, then of one substep of a heavy row."""
    eta = np.empty((len(t), width))
    for step, places in steps.items():
        eta[:, places] = (step.at(t) * np.minimum(weight, MAX_WEIGHT))[:, None]
    table = np.ones((4, *eta.shape))
    substeps = np.minimum(np.ceil(weight), MAX_SUBSTEPS)
    for at, divisor in ((0, np.ones(len(t))), (2, substeps)):
        if at == 0 or weight.max() > 1:
            for penalty, places in penalties.items():
                keep, rate, _ = penalty.at(eta[:, places] / divisor[:, None])
                table[at][:, places], table[at + 1][:, places] = keep, rate
    table[2, substeps == MAX_SUBSTEPS] = np.maximum(0.0, table[2, substeps == MAX_SUBSTEPS])
    return table


def _tile(learners: Sequence[Parts], start: int, target: int) -> Tile:
    one, width = learners[0], len(learners)
    steps, penalties, averages = (
        _places([getattr(learner, name) for learner in learners]) for name in ("step", "penalty", "average")
    )
    is_steady = all(step.steady for step in steps)
    steady = step_table(steps, penalties, width, np.ones(1), np.ones(1)) if is_steady else None
    return Tile(
        start, start + width, target, one.pair_loss, one.average != "last", steps, penalties, averages, steady
    )  # fmt: skip


def _places(parts: list[Any]) -> Places:
    places = defaultdict(list)
    for place, part in enumerate(parts):
        places[part].append(place)
    return dict(places)
