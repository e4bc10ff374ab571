"""Digest: the distribution of scores in bounded memory, as a tree of intervals that is coarse where weight is low.

Scores become 64-bit integers in the same order, their keys. A node (start, level) is the interval of the 2^level keys
from start, a multiple of 2^level, with the weight that lies somewhere in it; a row is a node of level 0. Any two
nodes are nested or disjoint. Nodes are sorted by start, larger nodes first, so that the nodes inside any interval of
the tree are adjacent.
"""

from dataclasses import field

import numpy as np

from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.metrics.inputs import with_room

NODES_PER_ROW = 4
"""Nodes for each waiting row."""

NODE_BYTES, ROW_BYTES = 8 + 1 + 8, 8 + 8

DIGEST_BYTES = NODES_PER_ROW * NODE_BYTES + ROW_BYTES
"""Maximum bytes of a digest per row of ``room``."""

POWERS = np.uint64(1) << np.arange(64, dtype=np.uint64)
REST = np.append(POWERS - np.uint64(1), ~np.uint64(0))
"""By level: the bits in which the keys of a node may differ."""

SIGN = POWERS[63]


def keys_of(scores: Array) -> Array:
    """Return integers in the order of the scores, infinite ones too, equal for equal scores.

    The bits of a double, read as an integer, increase with its size: below 0 all are inverted, above 0 the sign bit is
    set. Adding 0.0 turns -0.0 into 0.0.

    >>> [hex(key) for key in keys_of(np.array([-np.inf, -5e-324, -0.0, 0.0, np.inf]))]
    ['0xfffffffffffff', '0x7ffffffffffffffe', '0x8000000000000000', '0x8000000000000000', '0xfff0000000000000']
    """
    bits = (scores + 0.0).view(np.uint64)
    return np.where(bits & SIGN, ~bits, bits | SIGN)


@node
class Digest:
    """Weights of keys in at most 4 ``room`` nodes, and up to ``room`` waiting rows.

    When ``room`` rows are waiting, they become nodes; if there are too many nodes, each of the lightest intervals is
    merged into one. So the state depends on the rows and their order, not on the split into calls. ``sums`` bounds the
    number of additions in the weight of a node; ``whole``: whether all weights are integers, whose sums are exact below
    2^53.

    Cost: at most 84 ``room`` bytes. For each ``room`` rows a sort of 5 ``room`` nodes, and at most 65 passes over them.

    References: Shrivastava, Buragohain, Agrawal and Suri, Medians and beyond: new aggregation techniques for sensor
    networks, SenSys 2004 (q-digest); Agarwal et al., Mergeable summaries, PODS 2012.

    >>> digest = Digest(room=2)
    >>> digest.add(np.arange(12, dtype=np.uint64), np.ones(12))
    >>> digest.start
    array([ 0,  2,  4,  6,  8, 10, 11], dtype=uint64)
    >>> digest.level
    array([1, 1, 1, 1, 1, 0, 0], dtype=uint8)
    >>> digest.weight
    array([2., 2., 2., 2., 2., 1., 1.])
    """

    room: int
    start: Array = field(default_factory=lambda: np.zeros(0, np.uint64))
    level: Array = field(default_factory=lambda: np.zeros(0, np.uint8))
    weight: Array = field(default_factory=lambda: np.zeros(0))
    waiting_keys: Array = field(default_factory=lambda: np.zeros(0, np.uint64))
    waiting_weights: Array = field(default_factory=lambda: np.zeros(0))
    waiting: int = 0
    rows: int = 0
    sums: int = 0
    whole: bool = True

    def add(self, keys: Array, weights: Array) -> None:
        """Add rows, in order."""
        self.whole = self.whole and bool((weights == np.rint(weights)).all())
        at = 0
        while at < len(keys):
            more = min(self.room - self.waiting, len(keys) - at)
            end = self.waiting + more
            self.waiting_keys = with_room(self.waiting_keys, end, self.room)
            self.waiting_weights = with_room(self.waiting_weights, end, self.room)
            self.waiting_keys[self.waiting : end] = keys[at : at + more]
            self.waiting_weights[self.waiting : end] = weights[at : at + more]
            self.waiting, self.rows, at = end, self.rows + more, at + more
            if end == self.room:
                self._fold(*self.nodes())

    def merge(self, other: "Digest") -> None:
        """Add the rows of another digest, which does not change."""
        if other.rows:
            parts = zip(self.nodes(), other.nodes(), strict=True)
            self.rows, self.sums = self.rows + other.rows, max(self.sums, other.sums)
            self.whole = self.whole and other.whole
            self._fold(*(np.concatenate(pair) for pair in parts))

    def nodes(self) -> tuple[Array, Array, Array]:
        """Return starts, levels and weights of the nodes; waiting rows are nodes of level 0."""
        n = self.waiting
        return (
            np.append(self.start, self.waiting_keys[:n]),
            np.append(self.level, np.zeros(n, np.uint8)),
            np.append(self.weight, self.waiting_weights[:n]),
        )

    def _fold(self, start: Array, level: Array, weight: Array) -> None:
        """Sort nodes and merge equal ones; then the lightest, if they are too many."""
        order = np.lexsort((64 - level, start))
        start, level, weight = start[order], level[order], weight[order]
        new = (start[1:] != start[:-1]) | (level[1:] != level[:-1])
        self._put(start, level, weight, new)
        if len(self.start) > NODES_PER_ROW * self.room:
            joins = join_levels(self.start, self.level)
            mass = masses(joins, self.weight)
            apart = mass > np.partition(mass, -NODES_PER_ROW * self.room)[-NODES_PER_ROW * self.room]
            reach = np.append(self.level[:1], np.where(apart, self.level[1:], joins))
            self._put(self.start, reach, self.weight, apart)
        self.waiting_keys[:], self.waiting_weights[:], self.waiting = 0, 0.0, 0

    def _put(self, start: Array, level: Array, weight: Array, apart: Array) -> None:
        """Merge each run of nodes into one of their largest level; ``apart``: whether a run ends after a node."""
        first = np.append(0, np.flatnonzero(apart) + 1)
        self.level = np.maximum.reduceat(level, first)
        self.start = start[first] & ~REST[self.level]
        self.weight = np.add.reduceat(weight, first)
        self.sums += int(np.diff(first, append=len(start)).max()) - 1


def join_levels(start: Array, level: Array) -> Array:
    """Return the level of the smallest interval that contains a node and the next one."""
    lengths = np.searchsorted(POWERS, start[1:] ^ start[:-1], side="right").astype(np.uint8)
    return np.maximum(lengths, level[:-1])


def masses(joins: Array, weight: Array) -> Array:
    """Return the weight in the smallest interval that contains a node and the next one.

    Level by level: neighbours that join at a level are merged for the next.

    >>> masses(np.array([1, 3, 2]), np.array([1.0, 2.0, 4.0, 8.0]))
    array([ 3., 15., 12.])
    """
    mass, pairs = np.empty(len(joins)), np.arange(len(joins))
    for level in np.unique(joins):
        apart = joins > level
        weight = np.add.reduceat(weight, np.append(0, np.flatnonzero(apart) + 1))
        mass[pairs[~apart]] = weight[np.cumsum(apart)[~apart]]
        pairs, joins = pairs[apart], joins[apart]
    return mass
