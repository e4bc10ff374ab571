"""AlertBudget: alerts on a stream, at a rate that holds whatever the scores do."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, field
from math import inf, nan, pi, sqrt, tan
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from pairloom.base.checks import check_number
from pairloom.base.saving import Savable, StateReader
from pairloom.base.spec import Count, Finite, Size, StateSpec
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.columns.times import DAY_SECONDS
from pairloom.columns.values import days_of
from pairloom.metrics.alerts import alert_threshold
from pairloom.metrics.inputs import check_scores, one_column

LIMIT = 8.0
"""Excess of alerts, and lack of alerts, at which no row and every row raises one."""

GAIN = 0.25
"""How far half this excess moves the level, in spreads of the scores."""

PACE = 0.05
"""How fast the running quantile of the scores moves."""

MEMORY = 1000
"""Rows over which mean and spread of the scores are averaged."""

START_ROWS = 500
"""First rows without alerts, whose scores set the level."""

MAX_SCORE = 1e100
"""Largest score whose square is a float64 with room for sums."""


@node
class BudgetState:
    """The level: ``mean`` and ``variance`` of the scores, their ``quantile`` in spreads above the mean, and ``excess``.

    ``excess``: alerts minus expected alerts since there is a level (``started``); ``first``: the scores before.
    ``time``: of the newest row; ``hours``: in which alerts were expected, both for ``per_hour``.
    """

    first: Annotated[Array, "f8 _n finite"] = field(default_factory=lambda: np.zeros(0))
    started: bool = False
    mean: Finite = 0.0
    variance: Annotated[float, "0:1e300"] = 0.0
    quantile: Finite = 0.0
    excess: Annotated[float, "-10:10"] = 0.0
    time: Finite | None = None
    hours: Size = 0.0
    n_seen: Count = 0
    n_alerts: Count = 0

    def check(self) -> None:
        if self.n_alerts > self.n_seen:
            raise ValueError("must have at most one alert per row")


@node
class AlertBudget(Savable):
    r"""Decide which rows of a stream raise an alert, such that the rate of alerts is the requested one.

    A row raises an alert if its score is above the level. The level is a running quantile of the scores, raised after
    too many alerts and lowered after too few. With e the alerts expected of a row (its ``rate``, or ``per_hour`` times
    the hours since the row before, at most 1), D the alerts so far minus those expected, and m and v the mean and the
    standard deviation of the scores over about 1,000 rows,

    .. math:: \text{level} = m + v\, \bigl(q + \tfrac14 \tan\tfrac{\pi D}{16}\bigr), \qquad
        q \leftarrow q + 0.05\, ([s > m + v q] - e)

    At D >= 8 no row raises an alert, at D <= -8 every row does. So in any stretch of any stream after the first 500
    rows, the number of alerts differs from the expected one by at most 17: whether scores are steady or drift, through
    alarms, refits and new scales of a model. At a rate of 1 %, 5,000 rows have 33 to 67 alerts.

    Parameters
    ----------
    rate
        Requested alerts per row, above 0 and at most 1.
    per_hour
        Requested alerts per hour; then each call needs the times of the rows. A row has at most one alert, so hours
        without rows are not made up for. Exactly one of the two must be given.

    Attributes
    ----------
    level : the current level; infinity during the first 500 rows, and after 8 alerts too many.
    n_seen, n_alerts : numbers of rows and of alerts.
    realised : alerts per row, or per hour, so far: next to ``rate`` or ``per_hour``.

    Notes
    -----
    The result does not depend on how rows are cut into calls. Cost: 0.4 microseconds per row of a large call; 4 kB
    during the first 500 rows, then 100 bytes. It can be saved with :func:`pairloom.save`; ``model.alert_budget`` is the
    budget that a model carries. Where all scores are equal, rows are chosen by their place alone.

    References
    ----------
    Angelopoulos, Candès and Tibshirani, Conformal PID Control for Time Series Prediction, NeurIPS 2023: quantile
    tracking, and a tangent of the excess, which bounds it on any stream.

    >>> rng = np.random.default_rng(0)
    >>> budget = AlertBudget(rate=0.01)
    >>> flags = budget(rng.normal(size=20_000))
    >>> later = budget(100.0 + 7.0 * rng.normal(size=20_000))  # a model on a new scale
    >>> int(flags.sum()), int(later.sum()), budget.realised
    (196, 198, 0.00985)
    >>> budget(0.3), budget(1e6)
    (False, True)
    """

    local: ClassVar[tuple[str, ...]] = ("state",)

    rate: float | None = None
    _: KW_ONLY
    per_hour: float | None = None
    state: BudgetState = field(default_factory=BudgetState, repr=False)

    def __post_init__(self) -> None:
        given = [name for name in ("rate", "per_hour") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(
                f"AlertBudget takes exactly one of rate= and per_hour=; got {' and '.join(given) or 'none'}"
            )
        check_number(given[0], getattr(self, given[0]), 0.0, 1.0 if given == ["rate"] else inf, open_low=True)
        setattr(self, given[0], float(getattr(self, given[0])))

    def __call__(self, score: Any, times: Any = None) -> Any:
        """Return whether each row raises an alert: a bool for one score, an array for many; an error changes nothing.

        ``times``: with ``per_hour``, of the rows: dates, or numbers of seconds.
        """
        scores = check_scores(score)
        wrong = ~(np.abs(scores) <= MAX_SCORE)
        if wrong.any():
            row = int(wrong.argmax())
            raise ValueError(f"score is {scores[row]} at row {row}: it must be finite, from -1e100 to 1e100")
        hours, newest = self._hours(times, len(scores))
        if len(scores):
            self.state.time = newest
        flags = self._follow(scores, hours)
        return bool(flags[0]) if np.ndim(score) == 0 else flags

    def start(self, scores: Any) -> Self:
        """Set the level by scores of earlier rows, so that the first rows can raise alerts; with ``rate`` only.

        >>> AlertBudget(rate=0.25).start([1.0, 2.0, 3.0, 4.0])([5.0, 0.5]).tolist()
        [True, False]
        """
        if self.rate is None:
            raise ValueError("start needs rate=: with per_hour=, the level depends on the times of rows to come")
        scores = check_scores(scores)
        if not len(scores) or not (np.abs(scores) <= MAX_SCORE).all():
            raise ValueError("start needs at least one score, and all of them finite, from -1e100 to 1e100")
        self._set_level(scores, self.rate)
        return self

    @property
    def level(self) -> float:
        """The score above which the next row raises an alert."""
        own = self.state
        if not own.started or own.excess >= LIMIT:
            return inf
        return own.mean + sqrt(own.variance) * (own.quantile + shift(own.excess)) if own.excess > -LIMIT else -inf

    @property
    def n_seen(self) -> int:
        """Number of rows so far."""
        return self.state.n_seen

    @property
    def n_alerts(self) -> int:
        """Number of alerts so far."""
        return self.state.n_alerts

    @property
    def realised(self) -> float:
        """Alerts per row, or per hour, so far; NaN without rows."""
        total = self.state.hours if self.rate is None else self.n_seen
        return self.n_alerts / total if total else nan

    def _hours(self, times: Any, n: int) -> tuple[Array, float | None]:
        """Return the hours before each row that count, and the time of the newest row; none with ``rate``."""
        if self.per_hour is None:
            if times is not None:
                raise ValueError("times are for per_hour=; this budget has rate=")
            return np.zeros(n), None
        if times is None:
            raise ValueError("with per_hour=, pass the times of the rows: budget(scores, times)")
        seconds = seconds_of(times)
        if len(seconds) != n:
            raise ValueError(f"times has {len(seconds)} rows, but score has {n}")
        before = seconds[:1] if self.state.time is None else [self.state.time]
        newest = np.maximum.accumulate(np.append(before, seconds))  # rows may arrive out of order
        return np.minimum(np.diff(newest) / 3600.0, 1.0 / self.per_hour), float(newest[-1]) if n else None

    def _follow(self, scores: Array, hours: Array) -> Array:
        """Return the flags of rows, and move the level."""
        own, flags = self.state, np.zeros(len(scores), bool)
        first = 0 if own.started else min(len(scores), START_ROWS - len(own.first))
        own.first = np.append(own.first, scores[:first])
        total = np.cumsum(np.append(own.hours, hours))  # in order: the cuts of calls must not matter
        own.hours = float(total[-1])
        if not own.started and len(own.first) == START_ROWS:
            self._set_level(own.first, self.rate or (self.per_hour or 0.0) * float(total[first]) / (START_ROWS - 1))
        if own.started:
            expected = np.full(len(scores), self.rate) if self.per_hour is None else hours * self.per_hour
            flags[first:] = track(own, scores[first:].tolist(), expected[first:].tolist())
        own.n_seen += len(scores)
        own.n_alerts += int(flags.sum())
        return flags

    def _set_level(self, scores: Array, share: float) -> None:
        """Start with the level that this share of the scores exceeds."""
        own, newest = self.state, scores[-MEMORY:]
        own.mean, own.variance = float(newest.mean()), float(newest.var())
        level = float(np.nextafter(alert_threshold(scores, share), -inf))
        own.quantile = (level - own.mean) / sqrt(own.variance) if own.variance > 0 else 0.0
        own.started, own.first = True, np.zeros(0)

    def _saved_params(self) -> Mapping[str, Any]:
        return {"rate": self.rate, "per_hour": self.per_hour}

    def _saved_state(self) -> tuple[Any, list[str] | None]:
        return self.state, None

    def _state_spec(self, reader: StateReader) -> StateSpec:
        return StateSpec(BudgetState)

    def _restored(self, state: Any, names: Any) -> Self:
        self.state = state
        return self


def track(own: BudgetState, scores: list[float], expected: list[float]) -> list[bool]:
    """Return which rows raise an alert, given the expected alerts of each, and move the level."""
    quantile, excess, mean, variance = own.quantile, own.excess, own.mean, own.variance
    pace, flags = 1.0 / MEMORY, []
    for score, wanted in zip(scores, expected, strict=True):
        spread, away = sqrt(variance), score - mean
        flag = excess <= -LIMIT or (excess < LIMIT and score > mean + spread * (quantile + shift(excess)))
        flags.append(flag)
        excess += flag - wanted
        quantile += PACE * ((away > spread * quantile) - wanted)
        mean += pace * away
        variance = (1.0 - pace) * (variance + pace * away * away)
    own.quantile, own.excess, own.mean, own.variance = quantile, excess, mean, variance
    return flags


def shift(excess: float) -> float:
    """Return how far the level is moved by an excess of alerts, in spreads.

    >>> [round(shift(excess), 2) for excess in (0.0, 4.0, -4.0, 7.9)]
    [0.0, 0.25, -0.25, 12.73]
    """
    return GAIN * tan(0.5 * pi * excess / LIMIT)


def seconds_of(times: Any) -> Array:
    """Return times as seconds since 1970, or as they are if they are numbers; ValueError for a missing one.

    >>> seconds_of(["1970-01-01T00:01", "1970-01-01T01:00"]), seconds_of(7)
    (array([  60., 3600.]), array([7.]))
    """
    values = one_column("times", np.asarray(times))
    if values.dtype.kind in "iuf":
        seconds = values.astype(float)
    elif values.dtype.kind == "M":
        days = values.astype("M8[D]")
        seconds = DAY_SECONDS * days.astype(float) + (values - days) / np.timedelta64(1, "s")
        seconds[np.isnat(values)] = nan
    else:
        try:
            seconds = np.array([DAY_SECONDS * float(days_of(value)) for value in values.tolist()])
        except ValueError:
            raise ValueError("times must be dates, or numbers of seconds") from None
    wrong = ~np.isfinite(seconds)
    if wrong.any():
        raise ValueError(f"times is missing or infinite at row {int(wrong.argmax())}")
    return seconds
