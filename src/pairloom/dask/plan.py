"""Which rows are learned where: the first rows of all partitions by the base, the rest by shards, in rounds."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

SAMPLE_ROWS, SAMPLE_SHARE = 2048, 0.05
"""Rows that no part has learned, by which a merge chooses the length of steps: at most so many, and this share of a
shard. After the last merge, the merged model learns them."""


@dataclass(frozen=True)
class Segment:
    """Rows ``start`` to ``stop`` of a partition; the ``sample`` rows after them are returned, not learned."""

    partition: int
    start: int
    stop: int
    sample: int = 0


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


def pieces_of(
    shard: Sequence[int], sizes: Sequence[int], heads: Sequence[int], rounds: int, sample: int
) -> list[list[Segment]]:
    """Return the segments of each round: the rows of a shard after its head, without those held back at its end.

    >>> pieces_of([0, 1], [100, 100], [20, 0], 2, 4)
    [[Segment(partition=0, start=20, stop=100, sample=0), Segment(partition=1, start=0, stop=8, sample=4)], \
[Segment(partition=1, start=8, stop=96, sample=4)]]
    """
    total = sum(sizes[k] - heads[k] for k in shard)
    last = next((k for k in reversed(shard) if sizes[k] > heads[k]), shard[-1])
    sample = min(sample, int(SAMPLE_SHARE * total), sizes[last] - heads[last])
    bounds = [r * (total - sample) // rounds for r in range(rounds + 1)]
    made: list[list[Segment]] = []
    for low, high in pairwise(bounds):
        piece, at = [], 0
        for k in shard:
            start, stop = max(low - at, 0), min(high - at, sizes[k] - heads[k])
            if start < stop:
                ends = at + stop == high
                left = sizes[k] - heads[k] - stop
                piece.append(Segment(k, heads[k] + start, heads[k] + stop, min(sample, left) if ends else 0))
            at += sizes[k] - heads[k]
        made.append(piece)
    return made
