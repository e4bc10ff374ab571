"""AlertBudget: alerts on a stream, at a rate that holds whatever the scores do."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, field
from math import inf, nan, sqrt
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

STEP = 0.5
"""How far an alert moves the level, in spreads of the scores."""

MEMORY = 1000
"""Rows over which mean and spread of the scores, and the expected alerts of a row, are averaged."""

START_ROWS = 500
"""First rows without alerts, whose scores set the level."""

MARGIN = 1.0
"""How far the level may leave the range of quantiles, in spreads: mean and spread are estimates."""

MAX_SCORE = 1e100
"""Largest score whose square is a float64 with room for sums."""

MIN_SHARE = 1e-9
"""Smallest share of alerts for which the range of quantiles is computed."""


@node
class BudgetState:
    """The level as ``offset``: in spreads of the scores above their mean.

    ``first``: the scores so far, until there is a level (``started``). ``share``: expected alerts per row.
    ``time``: of the newest row; ``hours``: in which alerts were expected, both for ``per_hour``.
    """

    first: Annotated[Array, "f8 _n finite"] = field(default_factory=lambda: np.zeros(0))
    started: bool = False
    offset: Finite = 0.0
    mean: Finite = 0.0
    variance: Annotated[float, "0:1e300"] = 0.0
    share: Annotated[float, "0:2"] = 0.0
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

    A row raises an alert if its score is above the level. Each row moves the level: up after an alert, and slowly down
    otherwise. With e_t the alerts expected of row t, its ``rate`` or ``per_hour`` times the hours since the row before
    (at most 1), and m and v the running mean and standard deviation of the scores over about 1,000 rows,

    .. math:: \text{level}_t = m_t + v_t z_t, \qquad z_{t+1} = z_t + 0.5\, ([s_t > \text{level}_t] - e_t)

    so alerts are kept on budget for any scores: steady or drifting, through alarms, refits and new scales of a model.
    By Cantelli's inequality the quantile of any distribution of scores that leaves a share r above it lies between
    m - v sqrt(r / (1 - r)) and m + v sqrt((1 - r) / r). More than one v beyond this range, no row and every row raises
    an alert, respectively. Thus, on any stream whatsoever and in any stretch of n rows after the first 500,

    .. math:: \Bigl|\text{alerts} - r n\Bigr| \le 2 \Bigl(\frac{1}{\sqrt{r (1 - r)}} + 2.5\Bigr),

    25 alerts at a rate of 1 %.

    Parameters
    ----------
    rate
        Requested alerts per row, above 0 and at most 1.
    per_hour
        Requested alerts per hour; then each call needs the times of the rows. A row has at most one alert, so hours
        without rows are not made up for. Exactly one of the two must be given.

    Attributes
    ----------
    level : the current level; infinity before the first 500 rows, which raise no alert, and where the budget is spent.
    n_seen, n_alerts : numbers of rows and of alerts.
    realised : alerts per row, or per hour, so far: next to ``rate`` or ``per_hour``.

    Notes
    -----
    The result does not depend on how rows are cut into calls. Cost: 0.4 microseconds per row of a large call; 4 kB
    during the first 500 rows, then 100 bytes. It can be saved with :func:`pairloom.save`; ``model.alert_budget`` is the
    budget that a model carries. Where all scores are equal, rows are chosen by their place alone.

    References
    ----------
    Gibbs and Candès, Adaptive Conformal Inference Under Distribution Shift, NeurIPS 2021; Angelopoulos, Candès and
    Tibshirani, Conformal PID Control for Time Series Prediction, NeurIPS 2023 (quantile tracking).

    >>> rng = np.random.default_rng(0)
    >>> budget = AlertBudget(rate=0.01)
    >>> flags = budget(rng.normal(size=20_000))
    >>> later = budget(100.0 + 7.0 * rng.normal(size=20_000))  # a model on a new scale
    >>> int(flags.sum()), int(later.sum()), budget.realised
    (196, 200, 0.0099)
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
        low, high = limits(own.share)
        if not own.started or own.offset > high:
            return inf
        return -inf if own.offset < low else own.mean + own.offset * sqrt(own.variance)

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
        own.mean, own.variance, own.share = float(newest.mean()), float(newest.var()), share
        level = float(np.nextafter(alert_threshold(scores, share), -inf))
        own.offset = (level - own.mean) / sqrt(own.variance) if own.variance > 0 else 0.0
        own.offset = float(np.clip(own.offset, *limits(share)))
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
    offset, mean, variance, share = own.offset, own.mean, own.variance, own.share
    low, high = limits(share)
    pace, flags = 1.0 / MEMORY, []
    for score, wanted in zip(scores, expected, strict=True):
        flag = (score > mean + offset * sqrt(variance) or offset < low) and offset <= high
        flags.append(flag)
        offset += STEP * (flag - wanted)
        away = score - mean
        mean += pace * away
        variance = (1.0 - pace) * (variance + pace * away * away)
        if wanted != share:
            share += pace * (wanted - share)
            low, high = limits(share)
    own.offset, own.mean, own.variance, own.share = offset, mean, variance, share
    return flags


def limits(share: float) -> tuple[float, float]:
    """Return the range of a quantile with this share of the rows above it, in spreads, by Cantelli's inequality.

    >>> [round(limit, 2) for limit in limits(0.01)]
    [-1.1, 10.95]
    """
    share = min(max(share, MIN_SHARE), 1.0 - MIN_SHARE)
    odds = share / (1.0 - share)
    return -sqrt(odds) - MARGIN, sqrt(1.0 / odds) + MARGIN


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
