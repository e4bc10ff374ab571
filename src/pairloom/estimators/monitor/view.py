"""What there is to see of a model and its stream."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from pairloom.base.typing import Array
from pairloom.estimators.class_weight import is_balanced, unweighed
from pairloom.metrics.area import Area
from pairloom.race.state import Standing
from pairloom.stream import DriftWatch
from pairloom.stream.history import ALERT_RATE, StreamHistory, Timeline

if TYPE_CHECKING:
    from pairloom.estimators.auc import AUCClassifier


@dataclass(frozen=True)
class View:
    """A stream so far, and how its model stands now; scores and alerts speak for the positive class.

    ``names``: of the positive class and of the others, as ``scores`` (points, 2, 5) has them. ``alerts``: (points, 2),
    alerts and rows. ``alarms``: rows at which drift was found, if it is ``watched`` for. ``members``: who makes the
    predictions now, and their shares. ``positives``: rows of the positive class by their own weights, and their share.
    What is not known yet is None.
    """

    rows: int = 0
    at: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    areas: Array = field(default_factory=lambda: np.zeros((0, 3)))
    alerts: Array = field(default_factory=lambda: np.zeros((0, 2)))
    scores: Array = field(default_factory=lambda: np.zeros((0, 2, 5)))
    names: tuple[str, str] = ("", "")
    alarms: Sequence[int] = ()
    watched: bool = False
    standings: Sequence[Standing] = ()
    members: Sequence[tuple[str, float]] = ()
    area: Area | None = None
    positives: tuple[float, float] | None = None
    threshold: float | None = None


def view_of(model: "AUCClassifier") -> View:
    """What there is to see; nothing before the first row."""
    if not model._started:
        return View()
    state = model.stream_.state
    assert state is not None
    line: Timeline = state.observed.get(StreamHistory.name) or Timeline()
    drift = state.observed.get(DriftWatch.name)
    points, positive = slice(line.count), _positive_code(model)
    mirrored = len(model.classes_) <= 2 and positive == 0.0
    scores, alerts = line.scores[points], line.alerts[points]
    area = model.auc_
    return View(
        rows=model.n_seen_,
        at=line.rows[points],
        areas=line.areas[points],
        alerts=alerts[:, [1 if mirrored else 0, 2]],
        scores=-scores[:, ::-1, ::-1] if mirrored else scores,
        names=_names(model, positive),
        alarms=() if drift is None else tuple(drift.alarms.tolist()),
        watched=drift is not None,
        standings=model._learned.standings,
        members=_members(model),
        area=None if np.isnan(area.value) else area,
        positives=_positives(model, positive),
        threshold=_threshold(model),
    )


def _positive_code(model: "AUCClassifier") -> float | None:
    """The learner's code of the positive class; None if that is not known, or there is none."""
    try:
        code: float | None = model._labels.codes.get(model.pos_label_)
    except AttributeError:  # one class so far, or more than two of which none was named
        return None
    return code


def _names(model: "AUCClassifier", positive: float | None) -> tuple[str, str]:
    """Of the class for which scores speak, and of the others."""
    labels = model._labels
    by_code = {code: str(label) for label, code in labels.codes.items()}
    if len(labels.classes) > 2:
        return ("all rows", "") if positive is None else (by_code[positive], "all others")
    if positive == 0.0:
        return by_code[0.0], by_code.get(1.0, "")
    return by_code.get(1.0, ""), by_code[0.0]


def _members(model: "AUCClassifier") -> list[tuple[str, float]]:
    """Names and shares, the largest first; shares are those of the last weighing."""
    standings: list[Standing] = model._learned.standings
    last = {one.name: one.share for one in standings}  # the newest of each name
    return [(name, last.get(name, np.nan)) for name in model.mixture_]


def _positives(model: "AUCClassifier", positive: float | None) -> tuple[float, float] | None:
    if positive is None:
        return None
    labels = model._labels
    if is_balanced(model.class_weight) and model._class_counts is not None:
        mass = model._class_counts.mass
    else:
        codes = np.array(sorted(labels.codes.values()))
        mass = unweighed(model.class_weight, None, labels, codes, model._learned.counts[codes.astype(int)])
    own = float(mass[int(positive)])
    return own, own / float(mass.sum())


def _threshold(model: "AUCClassifier") -> float | None:
    try:
        return float(model.threshold(alert_rate=ALERT_RATE))
    except ValueError:  # one class so far, or more than two
        return None
