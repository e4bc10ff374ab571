"""Many models side by side: in which order, and how long their steps are."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from pairloom.base.typing import Array
from pairloom.engines.base import Parts
from pairloom.engines.reference import HEAVY, PARTS
from pairloom.features import FeatureMap
from pairloom.losses import Loss, loss_key
from pairloom.memory import Memory
from pairloom.pairs import Pairs
from pairloom.steps import averaging_rate

WIDTH = 128
"""Models learned at once: enough to fill vector registers, few enough that their coefficients stay in the cache."""

Places = dict[Any, list[int]]
"""Where in a tile each distinct part is used."""


@dataclass(frozen=True)
class Tile:
    """Weight vectors that are learned by the same instructions: ``start`` to ``stop`` of all.

    They are the vectors ``target`` of learners with one loss, all of them averaged or none. ``steady``: the step table
    of a row of weight 1, if it is the same for all.
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
        """keep and rate of each row's step, then of one of the parts into which its weight is split.

        (4, rows, models), or (4, 1, models) if all rows have the same.
        """
        if self.steady is not None and (weight == 1).all():
            return self.steady
        return step_table(self.steps, self.penalties, self.stop - self.start, t, weight)

    def rate_table(self, t: Array) -> Array:
        """rho of each row, if there are averages."""
        rho = np.empty((len(t) if self.averaging else 0, self.stop - self.start))
        for average, places in self.averages.items():
            rho[:, places] = averaging_rate(average, t[: len(rho)])[:, None]
        return rho


@dataclass(frozen=True)
class Lanes:
    """The weight vectors of many learners in the order in which they lie side by side.

    ``order``: the places of target 0 of learner 0, of its target 1, ..., of target 0 of learner 1, ...
    ``n_averaged``: those with an average are the first.
    """

    tiles: list[Tile]
    order: Array
    n_averaged: int

    def __len__(self) -> int:
        return len(self.order)


class SideBySide(Protocol):
    """What the blocked engine is told of a grid: the parts that its learners share, and their lanes."""

    @property
    def features(self) -> FeatureMap: ...
    @property
    def pairs(self) -> Pairs: ...
    @property
    def memory(self) -> Memory: ...
    @property
    def lanes(self) -> Lanes: ...


def arrange(learners: Sequence[Parts], n_targets: int) -> Lanes:
    """Vectors of a kind next to each other, cut into tiles."""
    kinds: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for v in range(len(learners) * n_targets):
        learner = learners[v // n_targets]
        kinds[learner.average == "last", v % n_targets, *loss_key(learner.pair_loss)].append(v)
    tiles: list[Tile] = []
    placed: list[int] = []
    for (_, target, *_), vectors in sorted(kinds.items()):
        for first in range(0, len(vectors), WIDTH):
            part = vectors[first : first + WIDTH]
            tiles.append(_tile([learners[v // n_targets] for v in part], len(placed), target))
            placed += part
    n_averaged = sum(tile.stop - tile.start for tile in tiles if tile.averaging)
    return Lanes(tiles, np.argsort(placed), n_averaged)


def step_table(steps: Places, penalties: Places, width: int, t: Array, weight: Array) -> Array:
    """keep and rate of each row's step, then of one of the parts into which its weight is split."""
    eta = np.empty((len(t), width))
    for step, places in steps.items():
        eta[:, places] = (step.at(t) * np.minimum(weight, HEAVY))[:, None]
    table = np.ones((4, *eta.shape))
    parts = np.minimum(np.ceil(weight), PARTS)
    for part, divisor in ((0, np.ones(len(t))), (2, parts)):
        if part == 0 or weight.max() > 1:
            for penalty, places in penalties.items():
                keep, rate, _ = penalty.at(eta[:, places] / divisor[:, None])
                table[part][:, places], table[part + 1][:, places] = keep, rate
    table[2, parts == PARTS] = np.maximum(0.0, table[2, parts == PARTS])
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
