"""Drift detection: whether the newest rows of the rare class are ranked as high as earlier ones."""

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np

from pairloom.base.clock import next_multiple
from pairloom.base.merging import RowCounts
from pairloom.base.randomness import generator
from pairloom.base.spec import Count
from pairloom.base.tree import OPTIONAL, copy, node
from pairloom.base.typing import Array
from pairloom.models.base import Model
from pairloom.stream.hooks import N_RECENT, Arrivals, ArrivalScores, Hook, Recent, RecentScores
from pairloom.stream.state import StreamState

TEST_ROWS = 128
"""Rows between two tests: the scores of a race are known at multiples of this."""

BLOCK_ROWS = 32
"""Rows whose placements are averaged before they are tested, so that repeated rows count once."""

MAX_PARTNERS, MIN_PARTNERS = 512, 8
"""Number of newest rows of the other classes with which a row is compared, and how many there must be."""

MIN_WEIGHT = 1e-12
"""Smallest weight of a row, relative to the largest: sums of weights must not be 0."""

MAX_PAST = 600
"""Number of earlier means kept, a uniform sample."""

EXPONENTS = np.array([0.2, 0.35, 0.5, 0.65, 0.8, 0.9])
"""A bet on small p-values is e p^(e - 1), for each of these e."""

FALSE_ALARM_ROWS = 1_000_000
"""Mean number of rows until a false alarm, at least."""

MIN_PAST_WEIGHT, MAX_PAST_WEIGHT = 1 / 16, 1 / 2
"""Weight of all rows before a change, relative to the rows since: the more, the less the AUC fell."""

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
class Bets:
    """Bets against the hypothesis that the means of placements are exchangeable.

    ``past`` (600,): a sample of the means since the last change. ``wealth`` (6,): of each exponent, at least that of a
    bet which starts now; ``starts`` (6,): the row at which it started. ``rng`` breaks ties and draws the sample.
    """

    past: Annotated[Array, f"f8 {MAX_PAST} 0:2"] = field(default_factory=lambda: np.zeros(MAX_PAST))
    wealth: Annotated[Array, f"f8 {len(EXPONENTS)} 0:LATE"] = field(default_factory=lambda: np.ones(len(EXPONENTS)))
    starts: Annotated[Array, f"i8 {len(EXPONENTS)} 0:BIG"] = field(
        default_factory=lambda: np.zeros(len(EXPONENTS), np.int64)
    )
    rng: np.random.Generator = field(default_factory=lambda: generator(0))

    def add(self, mean: float, row: int, count: int) -> None:
        """Bet on a mean, the first of whose rows is ``row``, and add it to the sample of the ``count`` earlier ones."""
        past = self.past[: min(count, MAX_PAST)]
        tie, place = self.rng.random(), int(self.rng.integers(count + 1))
        p = ((past < mean).sum() + tie * (1 + (past == mean).sum())) / (1 + len(past))
        self.starts[self.wealth <= 1.0] = row
        self.wealth = np.maximum(self.wealth, 1.0) * EXPONENTS * max(p, 1e-300) ** (EXPONENTS - 1.0)
        place = count if count < MAX_PAST else place
        if place < MAX_PAST:
            self.past[place] = mean


@node
class Watched:
    """What the detector knows: ``count`` means since the last change, and the bets on them.

    ``seen``: the last row that was tested. ``alarms``: the rows at which a change was detected. ``since``: the
    estimated row of the last change. ``side``: with two classes, that whose rows are placed among those of the other:
    the rarer one after the last change; None before it is known. ``errors`` and ``rows``: of older files, not used.
    ``fixed``: nothing is tested until parts of a model are merged.
    """

    count: Count = 0
    seen: Count = 0
    since: Count = 0
    alarms: Annotated[Array, "i8 _n 0:BIG"] = field(default_factory=lambda: np.zeros(0, np.int64))
    bets: Bets | None = field(default=None, metadata=OPTIONAL)
    side: Annotated[int, "0:2"] | None = field(default=None, metadata=OPTIONAL)
    errors: Annotated[Array, "f8 2048 0:2"] | None = field(default=None, metadata=OPTIONAL)
    rows: Annotated[Array, "i8 2048 0:BIG"] | None = field(default=None, metadata=OPTIONAL)
    fixed: bool | None = field(default=None, metadata=OPTIONAL)

    def __post_init__(self) -> None:
        if self.bets is None:  # in a new state and in one from an older file
            self.restart(self.since)

    def restart(self, since: int) -> None:
        """Forget everything before row ``since``."""
        rng = generator(0) if self.bets is None else self.bets.rng
        self.count, self.since, self.side, self.errors, self.rows = 0, since, None, None, None
        self.bets = Bets(rng=rng)


@dataclass(frozen=True)
class DriftWatch(Hook):
    r"""Detect drift, and let the model forget the rows before it.

    The placement of a row is the share of the newest 512 rows of the other classes whose scores on arrival are lower
    than its own, by weight; ties count half. With two classes, only rows of the rarer one are placed. The mean
    placement is the AUC. Placements are averaged over blocks of 32 rows. While nothing changes, these means are
    exchangeable, so that the p-value of a mean x, its rank among the earlier means x_1, ..., x_n,

    .. math:: p = \frac{\#\{x_i < x\} + u (1 + \#\{x_i = x\})}{n + 1}, \qquad u \sim U(0, 1),

    is uniform on [0, 1] whatever their distribution, and the bet :math:`e p^{e - 1}`, 0 < e < 1, has mean 1. For each
    of six exponents e the wealth W becomes max(W, 1) times the bet. There is an alarm when the mean of the six exceeds
    c, which takes at least c blocks on average if nothing changes; c is such that these have a million rows. Only low
    placements increase the wealth: a model that improves raises no alarm.

    The change is dated to the row at which the wealth began to increase. After an alarm, everything the model has
    learned before that row is weighted down, to between 1/16 and 1/2 of the weight of the rows since: half of the share
    of the past excess of the AUC over 0.5 that is left. So past rows count more if the model still ranks well.

    Parameters
    ----------
    detector : a :class:`Detector` to use instead, which receives the error of every row, 1 minus its placement.
        None: the test above.

    Cost: about a microsecond per row, and 5 KB.

    References: Volkhonskiy, Burnaev, Nouretdinov, Gammerman and Vovk, Inductive conformal martingales for change-point
    detection, COPA 2017. Shin, Ramdas and Rinaldo, E-detectors, NEJSDS 2023.
    """

    name: ClassVar[str] = "drift"
    requires: ClassVar[tuple[type[Hook], ...]] = (ArrivalScores,)

    detector: Any = None

    def init(self, model: Model) -> Watched:
        return Watched()

    def next_row(self, t: int) -> int:
        return next_multiple(t, TEST_ROWS)

    def tick(self, own: Watched, state: StreamState, model: Model) -> None:
        if own.fixed:
            return
        recent, arrivals = state.observed[RecentScores.name], state.observed[ArrivalScores.name]
        found = placements(own, recent, arrivals, model.pairs.targets)
        start = self._change(own, state.t, *found)
        own.seen = arrivals.count
        if start is not None:
            share = past_weight(own, *found, start)
            keep = share * (state.t - start) / max(1, state.t - own.since)
            own.alarms = np.append(own.alarms[1 - MAX_ALARMS :], state.t)
            own.restart(start)
            state.forget(model, min(keep, share))

    def merge(self, base: Watched, parts: list[Watched], rows: RowCounts, state: StreamState, model: Model) -> Watched:
        """Continue from the base with the first row after the merge."""
        for k, part in enumerate(parts):
            if not np.array_equal(part.alarms, base.alarms):
                raise ValueError(
                    f"part {k} has detected drift and forgotten rows of the base: let parts continue from "
                    "base.fork(n), which does not test for drift, or use drift=None"
                )
        own = copy(base)
        own.seen, own.fixed = rows.total, None
        return own

    def check(self, own: Watched, state: StreamState, model: Model) -> None:
        """Check that tests, changes and alarms are of rows seen, in order."""
        assert own.bets is not None
        newest = max(own.seen, own.since, own.count, *own.bets.starts, *own.alarms)
        if newest > state.t or len(own.alarms) > MAX_ALARMS or not (np.diff(own.alarms) > 0).all():
            raise ValueError(f"must be of {state.t} rows, with at most {MAX_ALARMS} alarms, in order")

    def _change(self, own: Watched, t: int, placed: Array, weights: Array, rows: Array) -> int | None:
        """Return the last row before a change; None without a change."""
        new = rows > own.seen
        if self.detector is not None:
            alarm = False
            for error in (1.0 - placed[new]).tolist():
                self.detector.update(error)
                alarm |= bool(self.detector.drift_detected)
            return int(rows[-DETECTOR_ERRORS:][0]) - 1 if alarm else None
        assert own.bets is not None
        for mean, row in zip(*block_means(placed[new], weights[new], rows[new]), strict=True):
            own.bets.add(mean, row, own.count)
            own.count += 1
            if own.bets.wealth.mean() * (t - own.since) > FALSE_ALARM_ROWS * own.count:
                return int(own.bets.starts[own.bets.wealth.argmax()]) - 1
        return None


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


def placements(own: Watched, recent: Recent, arrivals: Arrivals, targets: Array) -> tuple[Array, Array, Array]:
    """Return the placements of the newest rows, in order, with the weights and numbers of these rows."""
    n = min(recent.count, arrivals.count, N_RECENT)
    rows = np.arange(arrivals.count - n + 1, arrivals.count + 1)
    rows = rows[recent.weights[(rows - 1) % N_RECENT] > 0]  # rows used to grow a forest have no score
    places = (rows - 1) % N_RECENT
    weights = np.maximum(recent.weights[places] / (recent.weights.max() or 1.0), MIN_WEIGHT)
    found = [(np.zeros(0), np.zeros(0), np.zeros(0, np.int64))]
    for mine, score in sides(own, recent.labels[places], arrivals.scores[places], targets):
        others = np.flatnonzero(~mine)[-MAX_PARTNERS:]
        if len(others) >= MIN_PARTNERS:
            found.append((share_below(score[mine], score[others], weights[others]), weights[mine], rows[mine]))
    placed, weight, at = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.argsort(at, kind="stable")
    return placed[order], weight[order], at[order]


def past_weight(own: Watched, placed: Array, weights: Array, rows: Array, start: int) -> float:
    """Return the weight of all rows before row ``start``, relative to those since, from the AUC before and since.

    >>> own = Watched()
    >>> own.count, own.bets.past[:2] = 2, 0.9
    >>> round(past_weight(own, np.array([0.5, 0.7]), np.ones(2), np.array([10, 20]), 15), 3)  # AUC 0.9, then 0.7
    0.25
    """
    new = rows > start
    if not own.count or not weights[new].any():
        return MAX_PAST_WEIGHT
    assert own.bets is not None
    before = own.bets.past[: min(own.count, MAX_PAST)].mean() - 0.5
    since = np.average(placed[new], weights=weights[new]) - 0.5
    left = since / before if before > 0.0 else 1.0
    return float(np.clip(0.5 * left, MIN_PAST_WEIGHT, MAX_PAST_WEIGHT))


def share_below(scores: Array, others: Array, weights: Array) -> Array:
    """Return the share of the others with lower scores, by weight; ties count half.

    >>> share_below(np.array([2.0, 5.0]), np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 2.0]))
    array([0.375, 1.   ])
    """
    order = np.argsort(others, kind="stable")
    below = np.append(0.0, np.cumsum(weights[order]))
    first, last = (np.searchsorted(others[order], scores, side=side) for side in ("left", "right"))
    return np.asarray(0.5 * (below[first] + below[last]) / below[-1])


def block_means(placed: Array, weights: Array, rows: Array) -> tuple[list[float], list[int]]:
    """Return the weighted mean of each block of 32 rows that has any, and the first row of the block with one.

    >>> block_means(np.array([0.5, 1.0, 0.25]), np.ones(3), np.array([3, 32, 40]))
    ([0.75, 0.25], [3, 40])
    """
    first = np.flatnonzero(np.diff((rows - 1) // BLOCK_ROWS, prepend=-1))
    if not len(first):
        return [], []
    mass = np.add.reduceat(weights, first)
    return (np.add.reduceat(weights * placed, first) / mass).tolist(), rows[first].tolist()


def sides(own: Watched, labels: Array, scores: Array, targets: Array) -> list[tuple[Array, Array]]:
    """Return, for each target, a mask of the rows that are placed, and scores that should be high for them.

    With two classes, only rows of the rarer one: many rows of the other one would be compared with the same few.
    """
    if len(targets) > 1:
        return [(labels == target, scores[:, k]) for k, target in enumerate(targets)]
    positive = labels == targets[0]
    if own.side is None:
        own.side = int(2 * positive.sum() <= len(positive))
    return [(positive, scores[:, 0]) if own.side else (~positive, -scores[:, 0])]
