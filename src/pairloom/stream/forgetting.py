"""Half-lives: rows fade, so that the model is of the newer ones."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar

import numpy as np

from pairloom.base.batch import Scored
from pairloom.base.checks import check_number
from pairloom.base.clock import FADING, fading_rows, next_multiple
from pairloom.base.times import TimeColumn
from pairloom.base.tree import OPTIONAL, node
from pairloom.models.base import Model
from pairloom.stream.state import StreamState

HalfLife = float | tuple[str | int, str | timedelta | float] | None
"""Rows; or a column that tells the time, by name or place, and a length of time, or a number in its units."""

SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
LENGTH = re.compile(r"\s*(\d+(?:\.\d*)?)\s*([smhdw])\s*")

WORTH = 0.95
"""By time, rows fade once they are to count this much: so that most looks at the time cost nothing."""

LITTLE = 2.0**-64
"""The least that is kept at once: beside one new row, all before it are nothing."""


@node
class Faded:
    """``time``: up to which rows have faded; None before the first look, and by rows."""

    time: float | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True)
class Forgetting:
    """Lets a row count half as much after ``half_life`` rows, or after so much time: 2^(-age / half_life).

    By rows, all that the model keeps of rows fades at multiples of a power of two near a 16th of the half-life (2,048
    at most), and is as it was in between. By time, the time is that of the newest row so far, so that rows out of order
    do no harm; it is looked at every 256 rows, and what has passed since the last fading counts once it is worth 5 %.
    A row ages from the first such row on that comes after it.

    While the first rows are kept for rules on data they are learned again and again, and nothing fades: these rows (up
    to row 1,024 for most models) count in full, and begin to age together when the last rule is fixed.

    What fades is what a model keeps of all rows so far: counts and sums, averages, the age of the stream by which steps
    grow shorter. Weights that score do not shrink, the newest 4,096 scores behind log-odds and ``auc_`` are what they
    are, and so are the counts of ``class_weight="balanced"`` and what is known of columns.

    Parameters
    ----------
    half_life : in rows; in seconds; or in the units of a column of numbers.
    time : the column that tells the time; None: rows do.

    Cost: one pass over what the model keeps, 16 times in a half-life.

    >>> from pairloom import Learner, Stream
    >>> stream = Stream(Learner(seed=0), observers=[Forgetting(100)])
    >>> Forgetting(100).next_row(0), Forgetting(1_000_000).next_row(0)
    (8, 2048)
    """

    name: ClassVar[str] = "forgetting"
    on_arrival: ClassVar[bool] = False

    half_life: float
    time: TimeColumn | None = None

    def __post_init__(self) -> None:
        check_number("half_life", self.half_life, 0, open_low=True)

    def init(self, model: Model) -> Faded:
        return Faded()

    def see(self, own: Faded, scored: Scored) -> None:
        """Scores do not matter."""

    def next_row(self, t: int) -> int:
        return next_multiple(t, fading_rows(self.half_life) if self.time is None else FADING)

    def tick(self, own: Faded, state: StreamState, model: Model) -> None:
        begins = self.time is not None and own.time is None
        if state.kept is not None or begins:
            own.time = state.time
            return
        keep = self._keep(own, state)
        if self.time is None or keep <= WORTH:
            own.time = state.time
            model.forget(state.learned, keep)

    def _keep(self, own: Faded, state: StreamState) -> float:
        """What rows are to count, of what they count now."""
        passed: float = fading_rows(self.half_life)
        if self.time is not None:
            assert state.time is not None
            assert own.time is not None
            passed = state.time - own.time
        return float(max(LITTLE, 2.0 ** (-passed / self.half_life)))


def forgetting_by(half_life: Any) -> tuple[Forgetting, ...]:
    """What an estimator's ``half_life`` stands for: one observer, or none; ValueError if it is no half-life.

    >>> forgetting_by(("when", "1.5h"))
    (Forgetting(half_life=5400.0, time=TimeColumn(column='when', dates=True)),)
    """
    if half_life is None:
        return ()
    if not isinstance(half_life, tuple | list):
        if isinstance(half_life, str | timedelta):
            raise ValueError(
                f'half_life={half_life!r} is a length of time: name the column that tells it, half_life=("when", "7d")'
            )
        check_number("half_life, in rows,", half_life, 0, open_low=True)
        return (Forgetting(float(half_life)),)
    named = len(half_life) == 2 and isinstance(half_life[0], str | int | np.integer)
    if not named or isinstance(half_life[0], bool) or (not isinstance(half_life[0], str) and half_life[0] < 0):
        raise ValueError(
            "half_life must be a number of rows, or the name or the place of a column that tells the time, and a "
            f'length of time, as in half_life=("when", "7d"); got {half_life!r}'
        )
    column, length = half_life
    column = column if isinstance(column, str) else int(column)
    dates = isinstance(length, str | timedelta)
    if dates:
        length = seconds_of(length)
    check_number(f"the length of time in half_life={half_life!r}", length, 0, open_low=True)
    return (Forgetting(float(length), TimeColumn(column, dates)),)


def clock_of(observers: Sequence[Any]) -> TimeColumn | None:
    """The column that tells the time, if there is one."""
    return next((one.time for one in observers if isinstance(one, Forgetting)), None)


def seconds_of(length: str | timedelta) -> float:
    """Seconds of a length of time.

    >>> seconds_of("90s"), seconds_of("2w")
    (90.0, 1209600.0)
    """
    if isinstance(length, timedelta):
        return length.total_seconds()
    found = LENGTH.fullmatch(length)
    if found is None:
        raise ValueError(
            f'half_life has {length!r}, which is no length of time: write "90s", "15m", "12h", "7d" or "2w", or pass a '
            "datetime.timedelta; for a column of numbers, a number in its units"
        )
    return float(found[1]) * SECONDS[found[2]]
