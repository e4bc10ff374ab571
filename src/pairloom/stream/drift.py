"""Drift detection: the share of discordant pairs, monitored while the stream runs."""

from copy import deepcopy
from dataclasses import dataclass, field
from math import log
from typing import Annotated, Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np

from pairloom.base.clock import next_multiple
from pairloom.base.spec import Count
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.models.base import Model
from pairloom.stream.hooks import N_RECENT, Arrivals, ArrivalScores, Hook, Recent, RecentScores
from pairloom.stream.state import StreamState

TEST_ROWS = 128
"""Rows between two tests: the scores of a race are known at multiples of this."""

PARTNER_ROWS = 128
"""Number of newest rows of the other classes with which a row is paired."""

MAX_ERRORS = 2048
"""Newest errors kept."""

MIN_ERRORS = 8
"""Errors needed to detect a change."""

FALSE_ALARM_RATE = 1e-4
"""Probability that a test reports a change in a stream without one."""

DISCOUNT = 4
"""After a change, past statistics get 1 / 4 of the weight of the rows since the change: most of them are outdated."""

MAX_ALARMS = 1024
"""Newest alarms kept."""

DETECTOR_ERRORS = 32
"""Number of newest errors assumed to follow the change, if a custom detector reports one."""


@runtime_checkable
class Detector(Protocol):
    """A drift detector with the interface of river, which receives numbers one by one."""

    drift_detected: bool

    def update(self, x: float) -> Any:
        """Add a number."""


Drift = Literal["auto"] | Detector | None


@node
class Watched:
    """Ring buffers of the newest errors and of their rows; ``count``: number of errors since the last change.

    ``seen``: the last row whose error is included. ``alarms``: the rows at which a change was detected. ``since``: the
    estimated row of the last change.
    """

    errors: Annotated[Array, f"f8 {MAX_ERRORS} 0:2"] = field(default_factory=lambda: np.zeros(MAX_ERRORS))
    rows: Annotated[Array, f"i8 {MAX_ERRORS} 0:BIG"] = field(default_factory=lambda: np.zeros(MAX_ERRORS, np.int64))
    count: Count = 0
    seen: Count = 0
    since: Count = 0
    alarms: Annotated[Array, "i8 _n 0:BIG"] = field(default_factory=lambda: np.zeros(0, np.int64))

    def add(self, errors: Array, rows: Array) -> None:
        """Add errors and their rows."""
        places = (self.count + np.arange(len(errors))) % MAX_ERRORS
        self.errors[places], self.rows[places] = errors, rows
        self.count += len(errors)

    def newest(self) -> tuple[Array, Array]:
        """Return errors and their rows, in order."""
        n = min(self.count, MAX_ERRORS)
        places = np.arange(self.count - n, self.count) % MAX_ERRORS
        return self.errors[places], self.rows[places]

    def keep_newest(self, n: int) -> None:
        """Drop all errors but the newest n."""
        errors, rows = self.newest()
        self.count = 0
        self.add(errors[len(errors) - n :], rows[len(rows) - n :])


@dataclass(frozen=True)
class DriftWatch(Hook):
    """Detect drift, and let the model forget the rows before it.

    The error of a row is the share of its pairs with the newest 128 rows of the other classes whose scores on arrival
    are in the wrong order; with two classes, only rows of the rarer one have an error. Its mean is 1 - AUC,
    without the weights of rows. Every 128 rows the newest n of the last 2,048 errors, n = 8, 16, ..., are compared with
    all earlier ones, as in adaptive windowing, but with Bennett's inequality (:func:`change_in`). If they are
    significantly larger, the stream has changed: everything the model has learned is then weighted
    down to a quarter of the weight of the rows since the change.

    Parameters
    ----------
    detector : a :class:`Detector` to use instead, which receives every error; None: the test above.

    Reference: Bifet and Gavalda, Learning from Time-Changing Data with Adaptive Windowing, SDM 2007.
    """

    name: ClassVar[str] = "drift"
    requires: ClassVar[tuple[type[Hook], ...]] = (ArrivalScores,)

    detector: Any = None

    def init(self, model: Model) -> Watched:
        return Watched()

    def next_row(self, t: int) -> int:
        return next_multiple(t, TEST_ROWS)

    def tick(self, own: Watched, state: StreamState, model: Model) -> None:
        recent, arrivals = state.observed[RecentScores.name], state.observed[ArrivalScores.name]
        errors, rows = new_errors(own, recent, arrivals, model.pairs.targets)
        own.add(errors, rows)
        own.seen = arrivals.count
        newer = self._changed(own, errors)
        if newer:
            start = int(own.newest()[1][-newer]) - 1
            keep = (state.t - start) / (DISCOUNT * max(1, state.t - own.since))
            own.alarms = np.append(own.alarms[1 - MAX_ALARMS :], state.t)
            own.since = start
            own.keep_newest(newer)
            state.forget(model, min(keep, 1.0 / DISCOUNT))

    def check(self, own: Watched, state: StreamState, model: Model) -> None:
        """Check that errors, changes and alarms are of rows seen, in order."""
        rows, newest = own.newest()[1], max(own.seen, own.since, *own.rows, *own.alarms)
        ordered = (np.diff(own.alarms) > 0).all() and (np.diff(rows) >= 0).all() and (rows > 0).all()
        if newest > state.t or len(own.alarms) > MAX_ALARMS or not ordered:
            raise ValueError(f"must be of {state.t} rows, with at most {MAX_ALARMS} alarms, in order")

    def _changed(self, own: Watched, errors: Array) -> int:
        """Return the number of errors since the change; 0 without a change."""
        if self.detector is None:
            return change_in(own.newest()[0])
        alarm = False
        for error in errors.tolist():
            self.detector.update(error)
            alarm |= bool(self.detector.drift_detected)
        return min(DETECTOR_ERRORS, own.count) if alarm else 0


def watch_of(drift: Any) -> DriftWatch:
    """Return the hook for an estimator's ``drift``."""
    if drift == "auto":
        return DriftWatch()
    if not isinstance(drift, Detector):
        raise ValueError(
            "drift must be None, 'auto', or a detector with update(x) and drift_detected, such as river.drift.ADWIN(); "
            f"got {drift!r}"
        )
    return DriftWatch(deepcopy(drift))


def new_errors(own: Watched, recent: Recent, arrivals: Arrivals, targets: Array) -> tuple[Array, Array]:
    """Return the errors of the rows since the last test, in order, and the row numbers."""
    n = min(recent.count, arrivals.count, N_RECENT)
    rows = np.arange(arrivals.count - n + 1, arrivals.count + 1)
    rows = rows[recent.weights[(rows - 1) % N_RECENT] > 0]  # rows used to grow a forest have no score
    places = (rows - 1) % N_RECENT
    errors, found = [np.zeros(0)], [np.zeros(0, np.int64)]
    for mine, score in sides(recent.labels[places], arrivals.scores[places], targets):
        new, others = np.flatnonzero(mine & (rows > own.seen)), np.flatnonzero(~mine)[-PARTNER_ROWS:]
        if len(others) >= MIN_ERRORS:
            rest = np.sort(score[others])
            below = 0.5 * (np.searchsorted(rest, score[new]) + np.searchsorted(rest, score[new], side="right"))
            errors.append(1.0 - below / len(rest))
            found.append(rows[new])
    made, at = np.concatenate(errors), np.concatenate(found)
    order = np.argsort(at, kind="stable")
    return made[order], at[order]


def sides(labels: Array, scores: Array, targets: Array) -> list[tuple[Array, Array]]:
    """Return, for each target, a mask of the rows that have an error, and scores that should be high for them.

    With two classes, only rows of the rarer one: many rows of the other one would share the same few pairs.
    """
    if len(targets) > 1:
        return [(labels == target, scores[:, k]) for k, target in enumerate(targets)]
    positive = labels == targets[0]
    if 2 * positive.sum() <= len(positive):
        return [(positive, scores[:, 0])]
    return [(~positive, -scores[:, 0])]


def change_in(errors: Array) -> int:
    """Return how many of the newest errors are significantly larger than those before them; 0 if none are.

    The test uses Bennett's inequality for means of numbers in [0, 1], with the variance v of the older ones: the mean
    of n exceeds theirs by u with probability at most exp(-n v h(u / v)), h(x) = (1 + x) ln(1 + x) - x.
    """
    n = len(errors)
    sizes = np.array([MIN_ERRORS << k for k in range(16) if MIN_ERRORS << k <= n // 2])
    if not len(sizes):
        return 0
    sure = log(len(sizes) / FALSE_ALARM_RATE)
    sums, squares = np.cumsum(errors), np.cumsum(errors * errors)
    old = n - sizes
    mean = sums[old - 1] / old
    variance = np.maximum(squares[old - 1] / old - mean * mean, 0.0) + 1.0 / old
    up = mean + np.sqrt(2.0 * variance * sure / old) + 2.0 * sure / (3.0 * old)
    x = np.maximum((sums[-1] - sums[old - 1]) / sizes - up, 0.0) / variance
    unlikely = sizes * variance * ((1.0 + x) * np.log1p(x) - x)
    best = int(np.argmax(unlikely))
    return int(sizes[best]) if unlikely[best] > sure else 0
