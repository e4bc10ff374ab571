"""Everything that learning changes: arrays, counters and one random generator."""

from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, TypeVar

import numpy as np

from pairloom.memory import MemoryState
from pairloom.typing import Array

T = TypeVar("T")

RECENT = 4096
"""Test-then-train scores kept."""

STEPS, PAIRS, LOSS, WORST, CUT, SKIPPED = range(6)
"""The tally: steps taken, pairs used, sum of the steps' losses, largest instability, steps cut, steps skipped."""


@dataclass
class Recent:
    """The newest scores, each given before its example was learned, with the labels: a ring of fixed size."""

    scores: Array = field(default_factory=lambda: np.zeros(RECENT))
    labels: Array = field(default_factory=lambda: np.zeros(RECENT))
    count: int = 0

    def add(self, scores: Array, labels: Array) -> None:
        """Keep the newest; the place of a score depends on its row number alone."""
        at = 0
        while at < len(scores):
            place = (self.count + at) % RECENT
            n = min(RECENT - place, len(scores) - at)
            self.scores[place : place + n] = scores[at : at + n]
            self.labels[place : place + n] = labels[at : at + n]
            at += n
        self.count += at

    def view(self) -> tuple[Array, Array]:
        """Scores and labels."""
        return self.scores[: self.count], self.labels[: self.count]


@dataclass
class State:
    """The state of one pass: copy it, store it, and learning goes on as if nothing had happened."""

    phi: Any
    memory: MemoryState
    rng: np.random.Generator
    w: Array
    w_bar: Array
    t: int = 0
    tally: Array = field(default_factory=lambda: np.zeros(6))
    recent: Recent = field(default_factory=Recent)


@dataclass
class Kept:
    """The first rows of the stream, while rules on data are not yet settled."""

    X: Array
    y: Array
    count: int = 0


def cast(tree: T, old: Any, new: Any) -> T:
    """Convert every array of dtype ``old`` in a dataclass of arrays to ``new``."""
    if isinstance(tree, np.ndarray):
        return tree.astype(new) if tree.dtype == old and tree.ndim else tree  # type: ignore[return-value]
    if is_dataclass(tree) and not isinstance(tree, type):
        return type(tree)(**{f.name: cast(getattr(tree, f.name), old, new) for f in fields(tree)})
    return tree


def nbytes(tree: Any) -> int:
    """Bytes of all arrays in a dataclass of arrays."""
    if isinstance(tree, np.ndarray):
        return tree.nbytes
    if is_dataclass(tree):
        return sum(nbytes(getattr(tree, f.name)) for f in fields(tree))
    return 0
