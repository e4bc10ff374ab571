"""Forgetting: the weight of old rows decays, with a half-life in rows or in time."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar

import numpy as np

from pairloom.base.batch import TimeColumn
from pairloom.base.checks import check_number
from pairloom.base.clock import TIME_DECAY_ROWS, decay_rows, next_multiple
from pairloom.base.merging import RowCounts, cannot_merge
from pairloom.base.spec import Finite
from pairloom.base.tree import OPTIONAL, node
from pairloom.models.base import Model
from pairloom.stream.hooks import Hook
from pairloom.stream.state import StreamState

HalfLife = float | tuple[str | int, str | timedelta | float] | None
"""Rows; or a time column, by name or index, and a duration, or a number in the units of the column."""

SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
DURATION = re.compile(r"\s*(\d+(?:\.\d*)?)\s*([smhdw])\s*")

FADE_BELOW = 0.95
"""With a half-life in time, rows decay once the factor is at most this, so that most ticks cost nothing."""

MIN_FACTOR = 2.0**-64
"""Smallest factor of one decay."""


@node
class Faded:
    """``time``: up to which rows have decayed; None before the first tick, and with a half-life in rows."""

    time: Finite | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True)
class Forgetting(Hook):
    """Multiply the weight of rows by 2^(-age / half_life), with the age in rows or in time.

    With a half-life in rows, the statistics of the model decay at multiples of a power of two near a 16th of the
    half-life (at most 2,048 rows). With a half-life in time, the current time is that of the newest row so far, so that
    rows may be out of order; it is checked every 256 rows, and the statistics decay once the factor differs from 1 by 5
    %. A row ages from the first such row after it.

    While the first rows are kept for data-dependent settings they are learned several times, and nothing decays: these
    rows (up to row 1,024 for most models) have full weight, and start to age together when the settings are final.

    Statistics of all rows so far decay: counts, sums, averages, and the age of the stream in decreasing step sizes. The
    weights used for scoring do not shrink. The newest 4,096 scores, used for log-odds and ``auc_``, do not decay, nor
    do the counts of ``class_weight="balanced"`` and the statistics of columns.

    Parameters
    ----------
    half_life : in rows; in seconds; or in the units of a numeric time column.
    time : the time column; None: a half-life in rows.

    Cost: one pass over the statistics of the model, 16 times per half-life.

    >>> from pairloom import Learner, Stream
    >>> stream = Stream(Learner(seed=0), hooks=[Forgetting(100)])
    >>> Forgetting(100).next_row(0), Forgetting(1_000_000).next_row(0)
    (8, 2048)
    """

    name: ClassVar[str] = "forgetting"

    half_life: float
    time: TimeColumn | None = None

    def __post_init__(self) -> None:
        check_number("half_life", self.half_life, 0, open_low=True)

    def init(self, model: Model) -> Faded:
        return Faded()

    def next_row(self, t: int) -> int:
        return next_multiple(t, decay_rows(self.half_life) if self.time is None else TIME_DECAY_ROWS)

    def merge(self, base: Faded, parts: list[Faded], rows: RowCounts, state: StreamState, model: Model) -> Faded:
        """Raise TypeError: each part would count the age of a row from a newest row of its own."""
        raise cannot_merge("a model with half_life", "each part has a newest row of its own. Use half_life=None")

    def tick(self, own: Faded, state: StreamState, model: Model) -> None:
        starts = self.time is not None and own.time is None
        if state.kept is not None or starts:
            own.time = state.time
            return
        passed: float = decay_rows(self.half_life)
        if self.time is not None:
            assert state.time is not None
            assert own.time is not None
            passed = state.time - own.time
        keep = float(max(MIN_FACTOR, 2.0 ** (-passed / self.half_life)))
        if self.time is None or keep <= FADE_BELOW:
            own.time = state.time
            state.forget(model, keep)


def forgetting_by(half_life: Any) -> tuple[Forgetting, ...]:
    """Return the hooks for an estimator's ``half_life``: one or none; ValueError if it is invalid.

    >>> forgetting_by(("when", "1.5h"))
    (Forgetting(half_life=5400.0, time=TimeColumn(column='when', dates=True)),)
    """
    if half_life is None:
        return ()
    if not isinstance(half_life, tuple | list):
        if isinstance(half_life, str | timedelta):
            raise ValueError(f'half_life={half_life!r} is a duration: name the time column, half_life=("when", "7d")')
        check_number("half_life, in rows,", half_life, 0, open_low=True)
        return (Forgetting(float(half_life)),)
    named = len(half_life) == 2 and isinstance(half_life[0], str | int | np.integer)
    if not named or isinstance(half_life[0], bool) or (not isinstance(half_life[0], str) and half_life[0] < 0):
        raise ValueError(
            "half_life must be a number of rows, or the name or the index of a time column and a duration, as in "
            f'half_life=("when", "7d"); got {half_life!r}'
        )
    column, length = half_life
    column = column if isinstance(column, str) else int(column)
    dates = isinstance(length, str | timedelta)
    if dates:
        length = seconds_of(length)
    check_number(f"the duration in half_life={half_life!r}", length, 0, open_low=True)
    return (Forgetting(float(length), TimeColumn(column, dates)),)


def time_column_of(hooks: Sequence[Any]) -> TimeColumn | None:
    """Return the time column of a ``Forgetting`` hook; None without one."""
    return next((one.time for one in hooks if isinstance(one, Forgetting)), None)


def seconds_of(length: str | timedelta) -> float:
    """Return a duration in seconds.

    >>> seconds_of("90s"), seconds_of("2w")
    (90.0, 1209600.0)
    """
    if isinstance(length, timedelta):
        return length.total_seconds()
    found = DURATION.fullmatch(length)
    if found is None:
        raise ValueError(
            f'half_life has {length!r}, which is not a duration: write "90s", "15m", "12h", "7d" or "2w", or pass a '
            "datetime.timedelta; for a numeric column, a number in its units"
        )
    return float(found[1]) * SECONDS[found[2]]
