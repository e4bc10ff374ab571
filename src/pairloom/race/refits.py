"""Rules on data, fixed anew: what is made then takes in the rows before it while the stream goes on."""

from typing import TYPE_CHECKING

from pairloom.base.clock import CATCH_UP, REFITS, refit_before
from pairloom.features import FeatureMap
from pairloom.race.entrant import Entrant
from pairloom.race.portfolio import Candidate
from pairloom.race.state import RaceState
from pairloom.race.telling import log
from pairloom.stream import RecentScores
from pairloom.stream.stream import advance

if TYPE_CHECKING:
    from pairloom.race.race import Race

ENLARGE, PAYS = 1024, 0.05
"""The row at which the best of a family may go on to a larger space, and the family's share for which that pays."""


def refit(race: "Race", state: RaceState) -> None:
    """Fix rules anew where that is due; let what was made last catch up, and take over."""
    t, row = state.t, refit_before(state.t)
    if state.kept is None or row == 0:
        return
    if t == row:
        if not race.budget.keeps(row, state.n_features, race.itemsize):
            state.kept = None
            return
        known = {one.name: one.features for one in race.admitted(state.n_features)}
        state.coming = [second(race, state, one, known[one.name]) for one in renewed(race, state)]
    end = REFITS[row]
    if t > end or t % min(row, CATCH_UP):
        return
    due = end if t == end else end * (t - row) // (end - row)
    for one in state.coming if due else ():
        advance(one.model, (RecentScores(),), one.stream, state.kept.rows(one.stream.t, due))
    if t == end:
        take_over(race, state)


def renewed(race: "Race", state: RaceState) -> list[Candidate]:
    """The candidates whose rules are fixed anew; at row 1,024 of each family that can grow the best, if it pays."""
    if state.t < ENLARGE:
        return [one for one in race.admitted(state.n_features) if one.refits]
    running, weights, found = race.running(state), state.mixture.weights, []
    total = weights.sum()
    for family in dict.fromkeys(one.candidate.family for one in running if one.candidate.refits):
        own = [i for i, one in enumerate(running) if one.candidate.family == family]
        best = running[max(own, key=lambda i: weights[i])].candidate
        if best.large is None:
            found += [running[i].candidate for i in own]
        elif weights[own].sum() >= PAYS * total:
            others = [one.candidate for one in running if one.candidate.family != family]
            n = state.n_features
            large = race.budget.enlarged(best, others, n, race.pairs.n_classes, race.itemsize)
            found += [] if large is None else [large]
    return found


def second(race: "Race", state: RaceState, candidate: Candidate, known: FeatureMap) -> Entrant:
    """What a candidate is with rules fixed by the rows so far, before its first row."""
    assert state.kept is not None
    row = state.t
    large = 0 if known == candidate.features else candidate.features.n_outputs(state.n_features)
    learned = race.make(candidate, row).init(state.n_features, state.kept.all())
    return race.entrant(candidate, row, state.n_features, learned, large)


def take_over(race: "Race", state: RaceState) -> None:
    """Put what was made in the place of the entrants with the same names; a family that has grown is that alone."""
    places = {one.name: i for i, one in enumerate(state.entrants)}
    for one in state.coming:
        if one.name in places:
            old = state.entrants[places[one.name]]
            one.stream.observed = old.stream.observed  # scores are those that rows came with
            state.entrants[places[one.name]] = one
        else:
            state.entrants.append(one)
    grown = {one.candidate.family for one in state.coming if one.large}
    if grown:
        race.keep(state, [one.large > 0 or one.candidate.family not in grown for one in race.running(state)])
        state.evidence.restart()  # what a small space was worth says little of the large one
        for one in state.coming:
            if one.large:
                log.info("row %s: %s has %s features now", f"{state.t:,}", one.name, f"{one.large:,}")
    state.coming = []
    if not any(row > state.t for row in REFITS):
        state.kept = None
