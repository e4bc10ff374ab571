"""What engines change: arrays, counters and one random generator."""

from dataclasses import field
from typing import Any

import numpy as np

from pairloom.base.tree import OPTIONAL, SHARED, Rounded, node
from pairloom.base.typing import Array

STEPS, PAIRS, LOSS, WORST, CUT, SKIPPED, LONG = range(7)
"""The tally: weight of the steps taken, pairs used, weighted sum of the steps' losses, largest instability, steps cut,
steps skipped, steps that moved w far though nothing tells whether they are stable."""


@node
class LazyModel:
    """w = sigma w_hat and w_bar = a w_hat + b u_hat of each vector, ``factors`` being (sigma, a, b, ...) of each.

    The points of the slots are lists of their entries: ``columns`` and ``values`` (slots, room), ``counts`` in use.
    ``stale``: slots whose dense points are out of date. ``squares``: as in ``State``, in float64. It is what the engine
    for CSR rows keeps between calls, so that the cuts between them do not show in the bits; the arrays of ``State`` are
    written from it at the end of each.
    """

    w_hat: Array
    u_hat: Array
    factors: Array
    columns: Array
    values: Rounded
    counts: Array
    stale: Array
    squares: Array | None = field(default=None, metadata=OPTIONAL)


@node
class State:
    """One pass so far: the map phi, what is kept of the past, and the weights.

    ``w`` and ``w_bar`` have one row per target of the pairs (one row but for more than two classes). ``totals``
    (targets, 2): weight of the rows so far that are not, and that are, of the class of each target; empty unless the
    weights of pairs are sums. ``csr``: whether CSR rows have come that no map makes dense;
    all rows after them go the same way. ``lazy``: the weights and points in the form that these rows need.
    ``squares``: sums of squared gradients, one for each weight, where steps are per coordinate. ``cells`` (slots, m):
    the points, in place of ``lazy``, where that is done over a map of cells. ``since``: rows that no longer count,
    once something was forgotten.
    """

    phi: Any = field(metadata=SHARED)
    memory: Any
    rng: np.random.Generator
    w: Rounded
    w_bar: Rounded
    t: int = 0
    tally: Array = field(default_factory=lambda: np.zeros(7))
    totals: Array = field(default_factory=lambda: np.zeros((0, 2)))
    csr: bool = False
    lazy: LazyModel | None = None
    squares: Rounded | None = field(default=None, metadata=OPTIONAL)
    cells: Array | None = field(default=None, metadata=OPTIONAL)
    since: float | None = field(default=None, metadata=OPTIONAL)

    @property
    def counted(self) -> float:
        """Rows that count: what steps and averages go by."""
        return self.t if self.since is None else self.t - self.since

    @property
    def age(self) -> int:
        """``counted`` in whole rows."""
        return int(self.counted)

    def ages(self, n: int) -> Array:
        """``counted`` after each of the next n rows; row by row, so that the cut into calls does not show."""
        t = np.arange(self.t + 1, self.t + n + 1)
        return t if self.since is None else t - self.since

    def forget(self, keep: float) -> None:
        """Let the rows so far count ``keep`` times as much, in all that does not belong to the map or the memory."""
        self.since = self.t - keep * self.counted
        self.totals = keep * self.totals
        if self.squares is not None:
            self.squares *= self.squares.dtype.type(keep)
        if self.lazy is not None and self.lazy.squares is not None:
            self.lazy.squares *= keep
