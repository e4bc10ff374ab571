"""Why a mixture ranks the newest rows worse than one of its candidates, if it does by more than chance."""

from typing import Any

import numpy as np

from pairloom.base.clock import mixes_at, next_evaluation
from pairloom.base.typing import Array
from pairloom.metrics.auc import weighted_auc
from pairloom.metrics.intervals import Estimate, paired_difference
from pairloom.race.mixing import soft_clip
from pairloom.race.race import Race
from pairloom.race.state import RaceState
from pairloom.stream.hooks import N_RECENT, ArrivalScores

LEVEL = 0.95
"""Level of the intervals of all candidates together."""

MIN_CLASS_ROWS = 20
"""Rows of each class: with fewer, DeLong's intervals are too short."""


def mixture_values(model: Any) -> dict[str, Any] | None:
    """Return the AUC of the mixture and of each candidate on the same rows: the newest 4,096, before they were learned.

    ``better``: the candidates that beat the mixture by more than chance, with the difference. ``present``: the mixture
    with the present weights; ``follows``: whether that is as good as the best candidate. ``fitted``, ``next``: the rows
    at which the weights were and will be fitted. None if there is no mixture, and for more than two classes.
    """
    race, state = model.stream_.model, model.stream_.learned
    if not isinstance(race, Race) or not isinstance(state, RaceState) or race.n_vectors > 1:
        return None
    if not len(state.mixture.weights):
        return None
    entrants, recent, arrivals = race.entrants(state), model._recent, model.stream_.state.observed[ArrivalScores.name]
    rows = np.arange(max(0, state.t - N_RECENT), min(arrivals.count, recent.count)) % N_RECENT
    rows = rows[recent.weights[rows] > 0]
    positive, weights = recent.labels[rows] == race.pairs.targets[0], recent.weights[rows]
    if min(positive.sum(), (~positive).sum()) < MIN_CLASS_ROWS:
        return None
    own = _candidate_scores(state, entrants, rows)
    then, now = arrivals.scores[rows, 0], own @ state.mixture.weights
    level = 1.0 - (1.0 - LEVEL) / len(entrants)
    areas = [_auc(column, positive, weights) for column in own.T]
    gaps = [paired_difference(column, then, positive, weights, level) for column in own.T]
    best = int(np.argmax(areas))
    return {
        "rows": len(rows), "auc": _auc(then, positive, weights), "present": _auc(now, positive, weights),
        "candidates": {one.name: area for one, area in zip(entrants, areas, strict=True)},
        "better": {one.name: gap._asdict() for one, gap in zip(entrants, gaps, strict=True) if gap.low > 0.0},
        "follows": paired_difference(own[:, best], now, positive, weights, level).low <= 0.0,
        "fitted": max((one.row for one in state.standings), default=0), "next": _next_fit(state),
    }  # fmt: skip


def mixture_lines(values: dict[str, Any] | None, race: list[dict[str, Any]], high: float) -> list[str]:
    """Explain a mixture that is below one of its candidates.

    ``race``: the standings, whose AUC is that in the windows of the race; ``high``: the upper bound of the AUC of the
    mixture.
    """
    if values is None:
        return []
    same, rows = values["candidates"], f"the newest {values['rows']:,} rows"
    lines = [
        f"below {name!r} on {rows} by more than chance: AUC {values['auc']:.4f} against {same[name]:.4f}, "
        f"difference {Estimate(**gap)}"
        for name, gap in values["better"].items()
    ]
    if not lines:
        above = [one for one in race if one["auc"] > high and one["name"] in same]
        return [
            f"not below {one['name']!r} by more than chance on {rows}: {values['auc']:.4f} against "
            f"{same[one['name']]:.4f}; the windows of the race, with {one['auc']:.4f}, are of other rows"
            for one in above
        ]
    present = f"the present weights, fitted at row {values['fitted']:,}, give {values['present']:.4f} on these rows"
    if values["follows"]:
        return [*lines, f"because earlier weights scored them: {present}"]
    why = "weights minimise the log-loss in windows of earlier rows, and change at a few rows only"
    return [*lines, f"because {why}: {present}; the next fit is at row {values['next']:,}"]


def _candidate_scores(state: RaceState, entrants: list[Any], rows: Array) -> Array:
    """Return the scores (rows, candidates) as the mixture adds them."""
    first, found = 0, []
    for one in entrants:
        own = slice(first, first := first + len(one))
        scaled = (one.recent.scores[rows] - state.mixture.shifts[own, 0]) * state.mixture.slopes[own, 0]
        found.append(soft_clip(scaled.sum(axis=1)))
    return np.asarray(np.nan_to_num(np.column_stack(found)))


def _auc(scores: Array, positive: Array, weights: Array) -> float:
    return float(weighted_auc(scores[:, None], positive, weights)[0])


def _next_fit(state: RaceState) -> int:
    row = next_evaluation(state.t)
    while not mixes_at(row, state.since or 0):
        row = next_evaluation(row)
    return row
