"""The state that engines update: arrays, counters and one random generator."""

from dataclasses import field
from typing import Annotated, Any

import numpy as np

from pairloom.base.spec import Count, Finite, WrongState
from pairloom.base.tree import OPTIONAL, SHARED, node
from pairloom.base.typing import Array

STEPS, PAIRS, LOSS, WORST, CUT, SKIPPED, LONG = range(7)
"""Entries of the tally: weight of the steps taken, pairs used, weighted sum of the steps' losses, largest instability,
steps cut, steps skipped, and very long steps on a non-smooth loss."""


@node
class LazyModel:
    """The lazy form w = sigma w_hat, w_bar = a w_hat + b u_hat of each vector; ``factors``: its (sigma, a, b, ...).

    The points of the slots are lists of their entries: ``columns`` and ``values`` (slots, room), ``counts`` in use.
    ``stale``: slots whose dense points are out of date. ``squares``: as in ``State``, in float64. The engine for CSR
    rows keeps this form between calls, so that results are bitwise identical for any split into calls; it writes the
    arrays of ``State`` at the end of each call.
    """

    w_hat: Annotated[Array, "f8 v D"]
    u_hat: Annotated[Array, "f8 v a"]
    factors: Annotated[Array, "f8 v 6"]
    columns: Annotated[Array, "i4 l _R 0:D"]
    values: Annotated[Array, "R l _R"]
    counts: Annotated[Array, "i8 l 0:_R+1"]
    stale: Annotated[Array, "b1 l"]
    squares: Annotated[Array, "f8 v D 0:1e38"] | None = field(default=None, metadata=OPTIONAL)

    def check(self) -> None:
        rises = self.columns[:, 1:] > self.columns[:, :-1]
        if not (rises | (np.arange(1, self.columns.shape[1]) >= self.counts[:, None])).all():
            raise ValueError("must have the columns of each point in order, each once")


@node
class Combination:
    """Weight vectors w = factor (base + sum_j coef_j B_j), with B_j the points of the slots; see ``engines.gram``.

    ``scores``: <w, B_j>. ``gram``: <B_i, B_j>. The engine keeps this form between calls, and writes w after each.
    """

    base: Annotated[Array, "R v D"]
    coef: Annotated[Array, "f8 v S"]
    factor: Annotated[Array, "f8 v"]
    scores: Annotated[Array, "f8 v S"]
    gram: Annotated[Array, "R S S"]


@node
class State:
    """The state of one pass: the map phi, the memory, and the weights.

    ``w`` and ``w_bar`` have one row per target of the pairs (one row unless there are more than two classes).
    ``totals`` (targets, 2): weight of the rows so far outside and inside the class of each target; empty unless pair
    weights are sums. ``csr``: whether there were CSR rows that the map does not make dense; all later rows are then
    learned in the same way. ``lazy``: the weights and points in the form for these rows. ``squares``: sums of squared
    gradients, one per weight, if steps are per coordinate. ``cells`` (slots, m): the points, instead of ``lazy``, for
    such steps over a map of cells. ``since``: the number of forgotten rows, which no longer count.
    ``combination``: the weights as a combination of the points.
    ``pace``: the factor of the steps of a part, until it is merged.
    """

    phi: Annotated[Any, "@phi"] = field(metadata=SHARED)
    memory: Annotated[Any, "@memory"]
    rng: np.random.Generator
    w: Annotated[Array, "R v D"]
    w_bar: Annotated[Array, "R v D"]
    t: Count = 0
    tally: Annotated[Array, "f8 7 0:LATE"] = field(default_factory=lambda: np.zeros(7))
    totals: Annotated[Array, "f8 o 2 0:MASS"] = field(default_factory=lambda: np.zeros((0, 2)))
    csr: bool = False
    lazy: LazyModel | None = None
    squares: Annotated[Array, "R v D 0:1e38"] | None = field(default=None, metadata=OPTIONAL)
    cells: Annotated[Array, "i4 S m 0:D"] | None = field(default=None, metadata=OPTIONAL)
    since: Finite | None = field(default=None, metadata=OPTIONAL)
    combination: Combination | None = field(default=None, metadata=OPTIONAL)
    pace: Annotated[float, "positive"] | None = field(default=None, metadata=OPTIONAL)

    def check_rows(self, t: int) -> None:
        """Raise ValueError unless this is a state after t rows."""
        if self.t != t:
            raise ValueError(f"must have learned {t} rows, not {self.t}")
        if self.since is not None and not 0 <= self.since <= t:
            raise ValueError(f"must have forgotten some of {t} rows")

    def check_plain(self, t: int) -> None:
        """``check_rows``, and raise unless only the fields of every model are there."""
        self.check_rows(t)
        self.check_absent(squares=True, cells=True, lazy=True, combination=True)

    def check_absent(self, **absent: bool) -> None:
        """Raise ValueError unless exactly the expected fields are None."""
        for name, nothing in absent.items():
            if (getattr(self, name) is None) != nothing:
                raise WrongState("must be absent" if nothing else "must be an array", name)

    @property
    def counted(self) -> float:
        """Number of rows that count in schedules and averages."""
        return self.t if self.since is None else self.t - self.since

    def ages(self, n: int) -> Array:
        """Return ``counted`` after each of the next n rows."""
        t = np.arange(self.t + 1, self.t + n + 1)
        return t if self.since is None else t - self.since

    def forget(self, keep: float) -> None:
        """Multiply the weight of the rows so far by ``keep``, except in the map and the memory."""
        self.since = self.t - keep * self.counted
        self.totals = keep * self.totals
        if self.squares is not None:
            self.squares *= self.squares.dtype.type(keep)
        if self.lazy is not None and self.lazy.squares is not None:
            self.lazy.squares *= keep
