"""Merging races: each entrant by its model, and the evidence of all parts."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pairloom.base.merging import RowCounts, added
from pairloom.race.evidence import MAX_WINDOWS, Evidence, ScoredWindow
from pairloom.race.state import HOOKS, Mixture, RaceState
from pairloom.stream.merging import merge_streams

if TYPE_CHECKING:
    from pairloom.race.race import Race


def merge_entrants(race: "Race", base: RaceState, parts: Sequence[RaceState]) -> RaceState:
    """Return the merged state of a race, with the mixture of the base; the parts have learned all their rows."""
    check_races(base, parts)
    total, entrants = RowCounts(base.t, tuple(part.t for part in parts)).total, []
    for state in (base, *parts):
        race.entrants(state)
    settled = race.settle(base)[0]
    for i, one in enumerate(race.entrants(settled)):
        streams = [part.entrants[i].stream for part in parts]
        entrants.append(replace(one, stream=merge_streams(one.model, HOOKS, one.stream, streams)))
    mixture = Mixture(base.mixture.weights.copy(), base.mixture.slopes.copy(), base.mixture.shifts.copy())
    return RaceState(
        base.n_features, entrants, merge_evidence(base.evidence, [part.evidence for part in parts]),
        added(base.counts, [part.counts for part in parts]), mixture, None,
        t=total, evaluated=total, standings=list(base.standings), since=base.since,
    )  # fmt: skip


def check_races(base: RaceState, parts: Sequence[RaceState]) -> None:
    """Raise ValueError unless settings are final, no row was forgotten, and all parts have the entrants of the base."""
    if base.kept is not None or base.coming:
        raise ValueError(
            f"the base has learned {base.t:,} rows, and its data-dependent settings change until row 2,048: let it "
            "learn so many rows before its parts continue"
        )
    mine = [(one.name, one.stage, one.large) for one in base.entrants]
    for k, part in enumerate(parts):
        if part.since != base.since:
            raise ValueError(f"part {k} has forgotten rows of the base: let parts continue from base.fork(n)")
        if [(one.name, one.stage, one.large) for one in part.entrants] != mine:
            its = ", ".join(one.name for one in part.entrants)
            raise ValueError(
                f"part {k} has other candidates than the base ({its}): let parts continue from base.fork(n), in which "
                "no candidate is dropped"
            )


def merge_evidence(base: Evidence, parts: Sequence[Evidence]) -> Evidence:
    """Return the newest windows of all parts in turn; rows of open windows of several parts are compared together."""
    opened, closed = ([shared(window) for window in windows] for windows in (base.open, base.raw))
    made = Evidence(base.targets, base.n_models, opened, closed, base.areas.copy(), base.closed)
    new = [min(part.closed - base.closed, len(part.raw)) for part in parts]
    for back in range(max(new, default=0), 0, -1):
        for part, n in zip(parts, new, strict=True):
            if back <= n:
                made.raw = [*made.raw[1 - MAX_WINDOWS :], shared(part.raw[-back])]
                made.areas = np.vstack([made.areas[1 - MAX_WINDOWS :], part.areas[-back]])
    made.closed += sum(part.closed - base.closed for part in parts)
    for part in parts:
        for window in part.open:
            known = len(base.open[0].labels) if base.open and part.closed == base.closed else 0
            more = ScoredWindow(window.scores[known:], window.labels[known:], window.weights[known:])
            if len(more.labels):
                made.add(more.scores, more.labels, more.weights)
    return made


def shared(window: ScoredWindow) -> ScoredWindow:
    """Return a window with the same arrays: dropped models are removed from a window by new arrays."""
    return ScoredWindow(window.scores, window.labels, window.weights)
