"""Whether the world has changed: the share of pairs in the wrong order, watched while the stream runs."""

from copy import deepcopy
from dataclasses import dataclass, field
from math import log
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np

from pairloom.base.batch import Scored
from pairloom.base.clock import next_multiple
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.models.base import Model
from pairloom.stream.observers import RECENT, Arrivals, ArrivalScores, Recent, RecentScores
from pairloom.stream.state import StreamState

EVERY = 128
"""Rows after which scores are looked at: a race has them then."""

OTHERS = 128
"""Rows of the other classes, the newest, with which a row makes pairs."""

ROOM = 2048
"""Errors that are remembered."""

FEWEST = 8
"""Errors that may make a change."""

RARELY = 1e-4
"""The chance that a test calls a stream changed that is not."""

REMAINS = 4
"""All that was learned counts, after a change, as much as a quarter of the rows since: most of it is of before."""

MOST = 1024
"""Alarms that are remembered, the newest."""

SINCE = 32
"""Errors, the newest, that a detector which does not tell is taken to speak of."""


@runtime_checkable
class Detector(Protocol):
    """Whoever is told one number after the other and says whether they have changed: river's, for instance."""

    drift_detected: bool

    def update(self, x: float) -> Any:
        """Take in a number."""


Drift = Literal["auto"] | Detector | None


@node
class Watched:
    """The newest errors and the rows they belong to, two rings, ``count`` so far since the last change.

    ``seen``: the last row whose error is in them. ``alarms``: the rows after which the stream was found to have
    changed. ``since``: the row after which it was last thought to have.
    """

    errors: Array = field(default_factory=lambda: np.zeros(ROOM))
    rows: Array = field(default_factory=lambda: np.zeros(ROOM, np.int64))
    count: int = 0
    seen: int = 0
    since: int = 0
    alarms: Array = field(default_factory=lambda: np.zeros(0, np.int64))

    def add(self, errors: Array, rows: Array) -> None:
        """Write errors down."""
        places = (self.count + np.arange(len(errors))) % ROOM
        self.errors[places], self.rows[places] = errors, rows
        self.count += len(errors)

    def newest(self) -> tuple[Array, Array]:
        """Errors and their rows, in order."""
        n = min(self.count, ROOM)
        places = np.arange(self.count - n, self.count) % ROOM
        return self.errors[places], self.rows[places]

    def only(self, n: int) -> None:
        """Forget all errors but the newest n."""
        errors, rows = self.newest()
        self.count = 0
        self.add(errors[len(errors) - n :], rows[len(rows) - n :])


@dataclass(frozen=True)
class DriftWatch:
    """Finds out whether a stream has changed, and lets the model forget what was before.

    The error of a row is the share of pairs with the newest 128 rows of the other classes that the scores, as they were
    when the rows came, put in the wrong order; with two classes it is taken for rows of the rarer one. So its mean is 1
    less the AUC; weights of rows do not matter. Every 128 rows the newest n of the last 2,048 errors, n = 8, 16, ...,
    are compared with all before them, as in adaptive windowing, but by Bennett's inequality (:func:`change_in`): if
    they are larger by more than chance allows, the stream has changed. Then all that the model has learned counts as
    much as a quarter of the rows since.

    Parameters
    ----------
    detector : another one in its place, which is given every error; None: ours.

    Reference: Bifet and Gavalda, Learning from Time-Changing Data with Adaptive Windowing, SDM 2007.
    """

    name: ClassVar[str] = "drift"
    on_arrival: ClassVar[bool] = False

    detector: Any = None

    def init(self, model: Model) -> Watched:
        return Watched()

    def see(self, own: Watched, scored: Scored) -> None:
        """The newest scores are kept anyway."""

    def next_row(self, t: int) -> int:
        return next_multiple(t, EVERY)

    def tick(self, own: Watched, state: StreamState, model: Model) -> None:
        recent, arrivals = state.observed[RecentScores.name], state.observed[ArrivalScores.name]
        errors, rows = new_errors(own, recent, arrivals, model.pairs.targets)
        own.add(errors, rows)
        own.seen = arrivals.count
        newer = self._changed(own, errors)
        if newer:
            start = int(own.newest()[1][-newer]) - 1
            keep = (state.t - start) / (REMAINS * max(1, state.t - own.since))
            own.alarms = np.append(own.alarms[1 - MOST :], state.t)
            own.since = start
            own.only(newer)
            model.forget(state.learned, min(keep, 1.0 / REMAINS))

    def _changed(self, own: Watched, errors: Array) -> int:
        """The number of errors since the change; 0 if there was none."""
        if self.detector is None:
            return change_in(own.newest()[0])
        alarm = False
        for error in errors.tolist():
            self.detector.update(error)
            alarm |= bool(self.detector.drift_detected)
        return min(SINCE, own.count) if alarm else 0


def watch_of(drift: Any) -> DriftWatch:
    """What ``drift=`` stands for."""
    if drift == "auto":
        return DriftWatch()
    if not isinstance(drift, Detector):
        raise ValueError(
            "drift must be None, 'auto', or a detector with update(x) and drift_detected, such as river.drift.ADWIN(); "
            f"got {drift!r}"
        )
    return DriftWatch(deepcopy(drift))


def new_errors(own: Watched, recent: Recent, arrivals: Arrivals, targets: Array) -> tuple[Array, Array]:
    """Errors of the rows since the last look, in order, and the rows."""
    n = min(recent.count, arrivals.count, RECENT)
    rows = np.arange(arrivals.count - n + 1, arrivals.count + 1)
    rows = rows[recent.weights[(rows - 1) % RECENT] > 0]  # those that grew a forest have no score
    places = (rows - 1) % RECENT
    errors, found = [np.zeros(0)], [np.zeros(0, np.int64)]
    for mine, score in sides(recent.labels[places], arrivals.scores[places], targets):
        new, others = np.flatnonzero(mine & (rows > own.seen)), np.flatnonzero(~mine)[-OTHERS:]
        if len(others) >= FEWEST:
            rest = np.sort(score[others])
            below = 0.5 * (np.searchsorted(rest, score[new]) + np.searchsorted(rest, score[new], side="right"))
            errors.append(1.0 - below / len(rest))
            found.append(rows[new])
    made, at = np.concatenate(errors), np.concatenate(found)
    order = np.argsort(at, kind="stable")
    return made[order], at[order]


def sides(labels: Array, scores: Array, targets: Array) -> list[tuple[Array, Array]]:
    """The rows that have an error, with scores that should be higher than those of the others.

    Of two classes the rarer one: of the other one many rows would share the same few pairs.
    """
    if len(targets) > 1:
        return [(labels == target, scores[:, k]) for k, target in enumerate(targets)]
    positive = labels == targets[0]
    if 2 * positive.sum() <= len(positive):
        return [(positive, scores[:, 0])]
    return [(~positive, -scores[:, 0])]


def change_in(errors: Array) -> int:
    """How many of the newest numbers are larger than those before them, by more than chance allows; 0 if none are.

    By Bennett's inequality for means of numbers from 0 to 1, with the variance v of the older ones: the mean of n is
    above theirs by u with a chance of exp(-n v h(u / v)) at most, h(x) = (1 + x) ln(1 + x) - x.
    """
    n = len(errors)
    sizes = np.array([FEWEST << k for k in range(16) if FEWEST << k <= n // 2])
    if not len(sizes):
        return 0
    sure = log(len(sizes) / RARELY)
    sums, squares = np.cumsum(errors), np.cumsum(errors * errors)
    old = n - sizes
    mean = sums[old - 1] / old
    variance = np.maximum(squares[old - 1] / old - mean * mean, 0.0) + 1.0 / old
    up = mean + np.sqrt(2.0 * variance * sure / old) + 2.0 * sure / (3.0 * old)
    x = np.maximum((sums[-1] - sums[old - 1]) / sizes - up, 0.0) / variance
    unlikely = sizes * variance * ((1.0 + x) * np.log1p(x) - x)
    best = int(np.argmax(unlikely))
    return int(sizes[best]) if unlikely[best] > sure else 0
