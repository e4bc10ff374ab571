"""Which rows are learned where: the first rows of all partitions by the base, the rest by shards, in rounds."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np


@dataclass(frozen=True)
class Segment:
    """Rows ``start`` to ``stop`` of a partition."""

    partition: int
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start


def even_sizes(available: Sequence[int], total: int) -> list[int]:
    """Return numbers of rows, as equal as possible, that sum to ``total`` or to all that are available.

    >>> even_sizes([2, 0, 9, 9], 12), even_sizes([2, 1], 12)
    ([2, 0, 5, 5], [2, 1])
    """
    taken = [0] * len(available)
    left = min(total, sum(available))
    for k in sorted(range(len(available)), key=lambda k: (available[k], k)):
        remaining = sum(1 for j in range(len(available)) if (available[j], j) >= (available[k], k))
        taken[k] = min(available[k], left // remaining)
        left -= taken[k]
    return taken


def shards_of(sizes: Sequence[int], most: int) -> list[list[int]]:
    """Return the partitions of each shard: consecutive ones, with about the same number of rows in each shard.

    Empty partitions belong to no shard.

    >>> shards_of([5, 0, 5, 10, 10], 3)
    [[0, 2], [3], [4]]
    """
    known = [k for k, size in enumerate(sizes) if size]
    if len(known) <= most:
        return [[k] for k in known]
    ends = np.cumsum([sizes[k] for k in known])
    middle = ends - np.array([sizes[k] for k in known]) / 2
    group = np.minimum((middle * most / ends[-1]).astype(int), most - 1)
    return [[known[i] for i in np.flatnonzero(group == g)] for g in np.unique(group)]


def pieces_of(shard: Sequence[int], sizes: Sequence[int], heads: Sequence[int], rounds: int) -> list[list[Segment]]:
    """Return the segments of each round: the rows of a shard after the heads of its partitions, in equal parts.

    >>> pieces_of([0, 1], [100, 100], [20, 0], 2)  # doctest: +NORMALIZE_WHITESPACE
    [[Segment(partition=0, start=20, stop=100), Segment(partition=1, start=0, stop=10)],
     [Segment(partition=1, start=10, stop=100)]]
    """
    total = sum(sizes[k] - heads[k] for k in shard)
    made: list[list[Segment]] = []
    for low, high in pairwise(r * total // rounds for r in range(rounds + 1)):
        piece, at = [], 0
        for k in shard:
            start, stop = max(low - at, 0), min(high - at, sizes[k] - heads[k])
            if start < stop:
                piece.append(Segment(k, heads[k] + start, heads[k] + stop))
            at += sizes[k] - heads[k]
        made.append(piece)
    return made


def pace_of(sizes: Sequence[int]) -> float:
    """Return the effective number of parts of these sizes, by which the steps of each are multiplied.

    >>> pace_of([100, 100]), pace_of([100, 0])
    (2.0, 1.0)
    """
    return sum(sizes) ** 2 / max(1, sum(size**2 for size in sizes))
