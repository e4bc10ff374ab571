"""What a monitor shows of a model and its stream."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from pairloom.base.typing import Array
from pairloom.columns.changes import ColumnChange
from pairloom.estimators.class_weight import is_balanced, without_class_weight
from pairloom.estimators.column_changes import changes_shown
from pairloom.estimators.explaining import importance_shown
from pairloom.metrics.intervals import Area
from pairloom.race.standings import Standing
from pairloom.stream import AlertBudget, DriftWatch
from pairloom.stream.history import ALERT_RATE, StreamHistory, Timeline

if TYPE_CHECKING:
    from pairloom.estimators.auc import AUCClassifier


@dataclass(frozen=True)
class View:
    """The stream so far and the current model; scores and alerts are for the positive class.

    ``at``: row numbers of the points. ``areas`` (points, 3): AUC and its interval. ``alerts`` (points, 2): alerts and
    rows. ``scores`` (points, 2, 5): quantiles for the positive class and for the others, whose names are in ``names``.
    ``alarms``: rows at which drift was detected, if it is ``watched``; ``since``: the row that the newest change is
    dated to. ``members``: names and shares of the mixture.
    ``positives``: weight and share of the positive rows, without class weights. ``budget``: the alert budget of the
    model. ``changes``: the newest change of each column, and the report on the scores. ``importance``: columns and
    their shares in the contributions to the scores of the newest rows. Values not known yet are None.
    """

    rows: int = 0
    at: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    areas: Array = field(default_factory=lambda: np.zeros((0, 3)))
    alerts: Array = field(default_factory=lambda: np.zeros((0, 2)))
    scores: Array = field(default_factory=lambda: np.zeros((0, 2, 5)))
    names: tuple[str, str] = ("", "")
    alarms: Sequence[int] = ()
    since: int = 0
    watched: bool = False
    standings: Sequence[Standing] = ()
    members: Sequence[tuple[str, float]] = ()
    changes: Sequence[ColumnChange] = ()
    importance: Sequence[tuple[str, float]] = ()
    area: Area | None = None
    positives: tuple[float, float] | None = None
    threshold: float | None = None
    budget: AlertBudget | None = None


def view_of(model: "AUCClassifier", *, with_importance: bool = False) -> View:
    """Return the view of a model; an empty one before the first row. Importance takes some 0.1 s."""
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
        since=0 if drift is None else drift.since,
        watched=drift is not None,
        standings=model._learned.standings,
        members=_members(model),
        changes=tuple(changes_shown(model)),
        importance=importance_shown(model) if with_importance else (),
        area=None if np.isnan(area.value) else area,
        positives=_positives(model, positive),
        threshold=_threshold(model),
        budget=model._alerts,
    )


def _positive_code(model: "AUCClassifier") -> float | None:
    """Return the code of the positive class; None if it is not known or not set."""
    try:
        code: float | None = model._labels.codes.get(model.pos_label_)
    except AttributeError:  # one class so far, or more than two without pos_label
        return None
    return code


def _names(model: "AUCClassifier", positive: float | None) -> tuple[str, str]:
    """Return the names of the positive class and of the others."""
    labels = model._labels
    by_code = {code: str(label) for label, code in labels.codes.items()}
    if len(labels.classes) > 2:
        return ("all rows", "") if positive is None else (by_code[positive], "all others")
    if positive == 0.0:
        return by_code[0.0], by_code.get(1.0, "")
    return by_code.get(1.0, ""), by_code[0.0]


def _members(model: "AUCClassifier") -> list[tuple[str, float]]:
    """Return names and newest shares, the largest first."""
    standings: list[Standing] = model._learned.standings
    last = {one.name: one.share for one in standings}
    return [(name, last.get(name, np.nan)) for name in model.mixture_]


def _positives(model: "AUCClassifier", positive: float | None) -> tuple[float, float] | None:
    if positive is None:
        return None
    labels = model._labels
    if is_balanced(model.class_weight) and model._class_counts is not None:
        mass = model._class_counts.mass
    else:
        codes = np.array(sorted(labels.codes.values()))
        mass = without_class_weight(model.class_weight, None, labels, codes, model._learned.counts[codes.astype(int)])
    own = float(mass[int(positive)])
    return own, own / float(mass.sum())


def _threshold(model: "AUCClassifier") -> float | None:
    try:
        return float(model.threshold(alert_rate=ALERT_RATE))
    except ValueError:  # one class so far, or more than two
        return None
