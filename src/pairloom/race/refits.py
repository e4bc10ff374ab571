"""Refits: candidates whose data-dependent settings are fixed again, and that catch up while the stream continues."""

from functools import partial
from typing import TYPE_CHECKING

from pairloom.base.clock import CATCH_UP_ROWS, REFIT_ROWS, last_refit
from pairloom.base.parallel import run_all
from pairloom.features import FeatureMap
from pairloom.race.portfolio import Candidate
from pairloom.race.standings import log
from pairloom.race.state import Entrant, RaceState

if TYPE_CHECKING:
    from pairloom.race.race import Race

ENLARGE_ROW, MIN_FAMILY_SHARE = 1024, 0.05
"""The row at which the best of a family may be enlarged, and the share of the mixture that its family needs."""


def refit(race: "Race", state: RaceState) -> None:
    """Refit candidates when due; let refitted ones catch up, and replace the old ones."""
    t, row = state.t, last_refit(state.t)
    if state.kept is None or row == 0:
        return
    if t == row:
        if not race.budget.keeps(row, state.n_features, race.itemsize):
            state.kept = None
            return
        known = {one.name: one.features for one in race.admitted(state.n_features)}
        found = candidates_to_refit(race, state)
        state.coming = run_all([partial(refitted, race, state, one, known[one.name]) for one in found])
    end = REFIT_ROWS[row]
    if t > end or t % min(row, CATCH_UP_ROWS):
        return
    due = end if t == end else end * (t - row) // (end - row)
    if due:
        run_all([partial(one.learn, state.kept.rows(one.stream.t, due)) for one in state.coming])
    if t == end:
        replace_entrants(race, state)


def candidates_to_refit(race: "Race", state: RaceState) -> list[Candidate]:
    """Return the candidates to refit; from row 1,024 on, the best of a large family that can be enlarged."""
    if state.t < ENLARGE_ROW:
        return [one for one in race.admitted(state.n_features) if one.refits]
    entrants, weights, found = race.entrants(state), state.mixture.weights, []
    total = weights.sum()
    for family in dict.fromkeys(one.candidate.family for one in entrants if one.candidate.refits):
        own = [i for i, one in enumerate(entrants) if one.candidate.family == family]
        best = entrants[max(own, key=lambda i: weights[i])].candidate
        if best.large is None:
            found += [entrants[i].candidate for i in own]
        elif weights[own].sum() >= MIN_FAMILY_SHARE * total:
            others = [one.candidate for one in entrants if one.candidate.family != family]
            n = state.n_features
            large = race.budget.enlarged(best, others, n, race.pairs.n_classes, race.itemsize)
            found += [] if large is None else [large]
    return found


def refitted(race: "Race", state: RaceState, candidate: Candidate, original: FeatureMap) -> Entrant:
    """Return a candidate with settings fixed from the rows so far, before its first row."""
    assert state.kept is not None
    row = state.t
    large = 0 if original == candidate.features else candidate.features.n_outputs(candidate.width(state.n_features))
    learned = race.make_model(candidate, row).init(candidate.width(state.n_features), candidate.read(state.kept.all()))
    return race.new_entrant(candidate, row, state.n_features, learned, large)


def replace_entrants(race: "Race", state: RaceState) -> None:
    """Replace entrants by the refitted ones of the same names; an enlarged one replaces its whole family."""
    places = {one.name: i for i, one in enumerate(state.entrants)}
    for one in state.coming:
        if one.name in places:
            old = state.entrants[places[one.name]]
            one.stream.observed = old.stream.observed  # test-then-train scores are those of the old one
            state.entrants[places[one.name]] = one
        else:
            state.entrants.append(one)
    enlarged = {one.candidate.family for one in state.coming if one.large}
    if enlarged:
        kept = [one.large > 0 or one.candidate.family not in enlarged for one in race.entrants(state)]
        race.keep_entrants(state, kept)
        state.evidence.clear()  # scores in the small space say little about the large one
        for one in state.coming:
            if one.large:
                log.info("row %s: %s has %s features now", f"{state.t:,}", one.name, f"{one.large:,}")
    state.coming = []
    if not any(row > state.t for row in REFIT_ROWS):
        state.kept = None
