"""Whether what the observers of a stream remember, in a file, is something that they could."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pairloom.persist.walk import Scope, Walk
from pairloom.stream import ArrivalScores, DriftWatch, Forgetting, Observer, RecentScores
from pairloom.stream.calibration import Calibration
from pairloom.stream.drift import MOST, ROOM
from pairloom.stream.history import POINTS, StreamHistory

OBSERVED: dict[type, str] = {
    RecentScores: "Recent", ArrivalScores: "Arrivals", Calibration: "Fit", Forgetting: "Faded", DriftWatch: "Watched",
    StreamHistory: "Timeline",
}  # fmt: skip

YOUNG = (StreamHistory,)
"""Observers that older files do not know; they begin when such a file is loaded."""


def check_observed(
    walk: Walk, path: str, observers: Sequence[Observer], scope: Scope, t: int, scored: int | None
) -> None:  # fmt: skip
    """Take what they remember after t rows; the model has given the scores of ``scored`` of them, if that is known."""
    there = [one for one in observers if not isinstance(one, YOUNG) or f"{path}.{one.name}" in walk.flat]
    walk.branch(path, "dict " + "|".join(observer.name for observer in there))
    for observer in there:
        own = f"{path}.{observer.name}"
        walk.take(own, OBSERVED.get(type(observer), "any"), scope, {})
        counts: dict[str, Any] = {name: walk.flat.values.get(f"{own}.{name}") for name in ("count", "row")}
        if isinstance(observer, (RecentScores, ArrivalScores)):
            # Scores of rows that wait in an open block may have been shown already.
            most = scored if isinstance(observer, RecentScores) and scored is not None else t
            if not (0 if scored is None else scored) <= counts["count"] <= most:
                raise walk.refuse(f"{own}.count", f"must be the number of rows with a score, {most}")
        if isinstance(observer, Calibration) and (counts["row"] or 0) > t:
            raise walk.refuse(f"{own}.row", f"must be one of {t} rows")
        if isinstance(observer, StreamHistory):
            _check_timeline(walk, own, t)
        if isinstance(observer, DriftWatch):
            _check_watched(walk, own, t)


def _check_timeline(walk: Walk, path: str, t: int) -> None:
    """The points that are there have rows in order, and as many ticks as they should; the others are empty."""
    values: Any = walk.flat.values
    count, each, last = (values[f"{path}.{name}"] for name in ("count", "each", "open"))
    rows = walk.flat.arrays[f"{path}.rows"]
    fits = count <= POINTS and each.bit_count() == 1 and (0 < last <= each if count else last == 0)
    fits = fits and max(0, count - 1) * each + last <= t
    if not fits or (np.diff(rows[:count]) <= 0).any() or rows[count:].any() or rows.max() > t:
        raise walk.refuse(path, "must be points in the order of their rows")


def _check_watched(walk: Walk, path: str, t: int) -> None:
    """Errors, changes and alarms are of rows that have come; the errors that are there are in order."""
    values: Any = walk.flat.values
    rows, alarms = (walk.flat.arrays[f"{path}.{name}"] for name in ("rows", "alarms"))
    newest = max(values[f"{path}.seen"], values[f"{path}.since"], *rows, *alarms)
    count = values[f"{path}.count"]
    there = rows[np.arange(count - min(count, ROOM), count) % ROOM]
    ordered = (np.diff(alarms) > 0).all() and (np.diff(there) >= 0).all() and (there > 0).all()
    if newest > t or len(alarms) > MOST or not ordered:
        raise walk.refuse(path, f"must be of {t} rows, with the newest {MOST} alarms at most, in order")
