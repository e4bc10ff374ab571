"""The panels of a monitor as data, which both the figure and the page draw."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

import numpy as np

from pairloom.base.typing import Array
from pairloom.estimators.monitor.view import View
from pairloom.metrics.intervals import Z_95
from pairloom.race.standings import COLOURS, shares_over_time
from pairloom.stream.history import ALERT_RATE
from pairloom.stream.hooks import N_RECENT

AUC_COLOUR, ALERT_COLOUR, CHANCE_COLOUR, DRIFT_COLOUR = "#333333", "#009e73", "#6b6b6b", "#aa3377"
POSITIVE_COLOUR, NEGATIVE_COLOUR = "#d55e00", "#0072b2"

NOISY_SHARE = 0.05
"""Points within this first share of the rows do not stretch an axis: they come from few rows."""

CHANCE = 0.5
"""The AUC of scores that say nothing; the AUC axis always shows it."""

AUC_MARGIN = 0.02
"""An AUC axis that ends closer to 1 than this ends at 1, and it shows this much around 0.5."""

AXIS_LIMIT = 1e9
"""Largest absolute value on an axis."""


@dataclass(frozen=True)
class Band:
    """The area between ``low`` and ``high``; with ``steps``, each value holds up to the next x."""

    x: Array
    low: Array
    high: Array
    colour: str
    strength: float
    steps: bool = False


@dataclass(frozen=True)
class Line:
    """A line through points; NaN is a gap."""

    x: Array
    y: Array
    colour: str
    dashed: bool = False


@dataclass(frozen=True)
class Panel:
    """Bands and lines over them; ``span`` is that of the y axis, ``key`` the legend: names and colours."""

    title: str
    about: str
    height: float
    span: tuple[float, float]
    bands: Sequence[Band] = ()
    lines: Sequence[Line] = ()
    key: Sequence[tuple[str, str]] = ()
    percent: bool = False

    @property
    def ticks(self) -> dict[float, str]:
        """Ticks of the y axis and their labels, all with the same number of digits."""
        found = ticks(*self.span, 5 if self.height > 1.2 else 3)
        factor, unit = (100.0, " %") if self.percent else (1.0, "")
        digits = max(len(f"{factor * tick:.9f}".rstrip("0").partition(".")[2]) for tick in found)
        return {tick: f"{factor * tick:.{digits}f}{unit}".replace("-", "\N{MINUS SIGN}") for tick in found}


def panels_of(view: View) -> list[Panel]:
    """Return the panels: AUC, alert rate, scores by class, and mixture."""
    return [_area(view), _alerts(view), _scores(view), _members(view)]


def ticks(low: float, high: float, most: int) -> list[float]:
    """Return round numbers from ``low`` to ``high``, at most ``most`` steps apart.

    >>> ticks(0.0, 300.0, 6), [round(tick, 2) for tick in ticks(0.871, 1.0, 4)]
    ([0.0, 50.0, 100.0, 150.0, 200.0, 250.0, 300.0], [0.9, 0.95, 1.0])
    """
    rough = (high - low) / most
    unit = 10.0 ** floor(log10(rough))
    step = next(unit * factor for factor in (1.0, 2.0, 5.0, 10.0) if unit * factor >= rough * (1.0 - 1e-9))
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [float(k * step) for k in range(first, last + 1)]


def row_ticks(rows: int, most: int = 6) -> list[int]:
    """Return round row numbers, from 0."""
    return [round(tick) for tick in ticks(0.0, max(rows, most), most)]


def _area(view: View) -> Panel:
    value, low, high = view.areas.T
    least, most = _axis_span(view, low, high, 0.02, (0.0, 1.0))
    top = 1.0 if most > 1.0 - AUC_MARGIN else max(most, CHANCE + AUC_MARGIN)
    span = (max(0.0, min(least, CHANCE - AUC_MARGIN)), top)
    whole, chance = np.array([0, view.rows]), np.full(2, CHANCE)
    bands = [Band(view.at, low, high, AUC_COLOUR, 0.18)]
    if view.alarms:  # from the row that the newest change is dated to, to the row where it was found
        newest = np.array([view.since, view.alarms[-1]])
        bands.append(Band(newest, np.full(2, span[0]), np.full(2, span[1]), DRIFT_COLOUR, 0.12))
    return Panel(
        "AUC",
        f"of the newest {N_RECENT:,} rows, with 95 % interval; dashed: chance",
        1.6,
        span,
        bands,
        [Line(view.at, value, AUC_COLOUR), Line(whole, chance, CHANCE_COLOUR, dashed=True)],
    )


def _alerts(view: View) -> Panel:
    at, alerts, n = _merge_small(view.at, *view.alerts.T)
    rate = alerts / n
    # 95 % interval of the difference between these rows and those that set the threshold.
    reach = Z_95 * np.sqrt(ALERT_RATE * (1.0 - ALERT_RATE) * (1.0 / n + 1.0 / np.maximum(n, N_RECENT)))
    low, high = np.maximum(ALERT_RATE - reach, 0.0), ALERT_RATE + reach
    settled = at >= NOISY_SHARE * view.rows
    most = max([2.5 * ALERT_RATE, *1.15 * rate[settled], *1.05 * high[settled]])
    return Panel(
        "Alert rate",
        f"rows above the threshold set for {100 * ALERT_RATE:g} % of earlier rows; shaded: chance{_realised(view)}",
        1.0,
        (0.0, min(1.0, most)),
        [Band(at, low, high, CHANCE_COLOUR, 0.15)],
        [
            Line(np.array([0, view.rows]), np.full(2, ALERT_RATE), CHANCE_COLOUR, dashed=True),
            Line(at, rate, ALERT_COLOUR),
        ],
        percent=True,
    )


def _realised(view: View) -> str:
    """Return the realised rate of the model's alert budget next to the requested one, if there are rows."""
    budget = view.budget
    if budget is None or np.isnan(budget.realised):
        return ""
    if budget.rate is None:
        return f"; budget: {budget.realised:.3g} alerts per hour, requested {budget.per_hour:g}"
    realised = f"{100 * budget.realised:.3g} % of {budget.n_seen:,} rows"
    return f"; budget: alerts on {realised}, requested {100 * budget.rate:g} %"


def _merge_small(at: Array, alerts: Array, rows: Array) -> tuple[Array, Array, Array]:
    """Merge points of few rows until each has half as many rows as the largest."""
    at, alerts, rows = at[rows > 0], alerts[rows > 0], rows[rows > 0]
    if len(rows) == 0:
        return at, alerts, rows
    group = np.ceil(np.cumsum(rows) / (0.5 * rows.max()))
    last = np.append(group[1:] > group[:-1], True)
    first = np.flatnonzero(np.append(True, last[:-1]))
    return at[last], np.add.reduceat(alerts, first), np.add.reduceat(rows, first)


def _scores(view: View) -> Panel:
    bands: list[Band] = []
    lines: list[Line] = []
    key: list[tuple[str, str]] = []
    for side, colour in ((1, NEGATIVE_COLOUR), (0, POSITIVE_COLOUR)):
        q5, q25, q50, q75, q95 = view.scores[:, side].T
        if np.isnan(q50).all():
            continue
        bands += [Band(view.at, q5, q95, colour, 0.15), Band(view.at, q25, q75, colour, 0.25)]
        lines.append(Line(view.at, q50, colour))
        key.insert(0, (view.names[side], colour))
    low, high = view.scores[:, :, 0], view.scores[:, :, -1]
    return Panel(
        "Log-odds by class",
        "on arrival: median, middle half, and 5 to 95 %",
        1.6,
        _axis_span(view, low, high, 0.5, (-1.0, 1.0)),
        bands,
        lines,
        key,
    )


def _members(view: View) -> Panel:
    names, rows, shares = shares_over_time(view.standings)
    # The newest shares hold up to the last row.
    rows, shares = np.append(rows, view.rows), np.column_stack([shares, shares[:, -1:]])
    tops = np.cumsum(shares, axis=0)
    colours = [COLOURS[k % len(COLOURS)] for k in range(len(names))]
    bands = [
        Band(rows, top - share, top, colour, 0.65, steps=True)
        for share, top, colour in zip(shares, tops, colours, strict=True)
    ]
    return Panel(
        "Mixture",
        "shares of its members",
        1.2,
        (0.0, 1.0),
        bands,
        key=list(zip(names, colours, strict=True)),
        percent=True,
    )


def _axis_span(view: View, low: Array, high: Array, least: float, empty: tuple[float, float]) -> tuple[float, float]:
    """Return the span of an axis that shows ``low`` to ``high`` after the noisy first rows; at least ``least`` long."""
    settled = view.at >= NOISY_SHARE * view.rows
    low, high = (side[settled][np.isfinite(side[settled])] for side in (low, high))
    if len(low) == 0 or len(high) == 0:
        return empty
    bottom, top = max(float(low.min()), -AXIS_LIMIT), min(float(high.max()), AXIS_LIMIT)
    margin = max(0.05 * (top - bottom), 0.5 * (least - (top - bottom)))
    return bottom - margin, top + margin
