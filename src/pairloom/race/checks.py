"""Checks of a race read from a file."""

from typing import TYPE_CHECKING

import numpy as np

from pairloom.base.clock import CATCH_UP_ROWS, REFIT_ROWS, last_refit, next_evaluation
from pairloom.base.spec import WrongState
from pairloom.race.portfolio import Portfolio
from pairloom.race.standings import Standing
from pairloom.race.state import Entrant, FrozenState, RaceState

if TYPE_CHECKING:
    from pairloom.race.race import Race

MAX_CANDIDATES, MAX_MODELS, MAX_STANDINGS = 100, 10_000, 10_000
"""Limits that no valid race exceeds."""


def check_portfolio_size(portfolio: Portfolio) -> None:
    """Raise ValueError if a portfolio has too many candidates or models."""
    descent = portfolio.descent
    models = len(portfolio.steps.etas) + len(descent.steps) * len(descent.penalties)
    models += len(portfolio.exact.alphas) if portfolio.exact else 0
    if len(portfolio.forests) + len(portfolio.kernels) > MAX_CANDIDATES or models > MAX_MODELS:
        raise ValueError("the portfolio in the file has too many candidates")


def check_entrant(race: "Race", name: str, stage: int, large: int, n_features: int) -> None:
    """Raise ValueError unless an entrant is one of the candidates, at a possible stage and of a possible size."""
    known = {one.name: one for one in race.admitted(n_features)}.get(name)
    if known is None or stage not in {*REFIT_ROWS, 0} or (stage > 0) != known.refits:
        raise ValueError(f"{name[:40]!r} is not a candidate of this race")
    if large and large not in known.larger(n_features):
        raise ValueError(f"{name!r} has no such size")


def check_state(race: "Race", n_features: int, t: int, state: RaceState | FrozenState) -> None:
    """Raise ValueError unless this is a possible state of the race after t rows."""
    if state.n_features != n_features or state.t != t:
        raise ValueError(f"must have {t} rows of {n_features} columns")
    _check_standings(state.standings, t)
    if isinstance(state, RaceState):
        _check_rows(state)
        _check_entrants(race, state)
        _check_models(race, state)


def _check_standings(standings: list[Standing], t: int) -> None:
    if len(standings) > MAX_STANDINGS:
        raise WrongState(f"must be at most {MAX_STANDINGS}", "standings")
    last = 0
    for i, one in enumerate(standings):
        if not last <= one.row <= t:
            raise WrongState(f"must be of one of {t} rows, in order", f"standings.{i}")
        last = one.row


def _check_rows(state: RaceState) -> None:
    """Check the rows at which something happened."""
    t, evaluated = state.t, state.evaluated
    if not evaluated <= t < next_evaluation(evaluated):  # after a merge, it may be any row
        raise WrongState("must be the row of the last evaluation", "evaluated")
    if (state.since or 0) > t:
        raise WrongState(f"must be one of {t} rows", "since")
    if state.n_waiting > t - evaluated:
        raise WrongState("must be the rows since the last evaluation, or some of them", "waiting")
    if state.kept is not None and (state.kept.count != t or t >= max(REFIT_ROWS.values())):
        raise WrongState(f"must be the first {t} rows, up to row {max(REFIT_ROWS.values())}", "kept")


def _check_entrants(race: "Race", state: RaceState) -> None:
    """Check that each candidate takes part once, and that refitted entrants have caught up as far as they should."""
    t = state.t
    race.entrants(state)
    for name in ("entrants", "coming"):
        entrants: list[Entrant] = getattr(state, name)
        if len({one.name for one in entrants}) < len(entrants):
            raise WrongState("names a candidate twice", name)
        if any(one.stream.n_features != one.candidate.width(state.n_features) for one in entrants):
            raise WrongState(f"must have the columns of {state.n_features} that they read", name)
    waiting = state.n_waiting
    if any(one.stream.t != (t - waiting if one.model.steady else t) for one in state.entrants) or (
        not state.entrants and t >= next_evaluation(0)
    ):
        raise WrongState(f"must have learned {t} rows", "entrants")
    row = last_refit(t)
    end, last = REFIT_ROWS.get(row, 0), t - t % CATCH_UP_ROWS
    if state.coming and (t >= end or state.kept is None):
        raise WrongState("must have replaced the old entrants", "coming")
    if any(one.stage != row or one.stream.t != end * (last - row) // (end - row) for one in state.coming):
        raise WrongState(f"must have caught up by row {t}", "coming")


def _check_models(race: "Race", state: RaceState) -> None:
    """Check that evidence and mixture are of the models of the entrants; before the first evaluation, of none."""
    due = state.t >= next_evaluation(0)
    sizes = [len(one) for one in race.entrants(state)] if due else []
    n_models = sum(sizes) if due else sum(len(race.make_model(one)) for one in race.admitted(state.n_features))
    if state.evidence.n_models != n_models or not np.array_equal(state.evidence.targets, race.pairs.targets):
        raise WrongState(f"must be of {n_models} models, and of targets {race.pairs.targets.tolist()}", "evidence")
    mixture = state.mixture
    if len(mixture.weights) != len(sizes) or len(mixture.slopes) != sum(sizes):
        raise WrongState(f"must be of {len(sizes)} entrants and {sum(sizes)} models", "mixture")
    used = np.repeat(mixture.weights > 0, sizes)
    if not np.isfinite(mixture.slopes[used]).all() or not np.isfinite(mixture.shifts[used]).all():
        raise WrongState("must be finite for entrants with a weight above 0", "mixture")
