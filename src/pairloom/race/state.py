"""What a race keeps."""

from dataclasses import field

import numpy as np

from pairloom.base.tree import OPTIONAL, node
from pairloom.base.typing import Array
from pairloom.race.entrant import Entrant
from pairloom.race.evidence import Evidence
from pairloom.stream import Kept

MANY = 2048
"""Standings that are kept; a stream that does not change has fewer after a billion rows."""


@node
class Standing:
    """At ``row``, the area under the curve of a candidate in the newer windows, and its share of the mixture."""

    row: int
    name: str
    auc: float
    share: float


def thinned(standings: list[Standing]) -> list[Standing]:
    """Standings, of every second row alone if there are many: the last and the first stay."""
    if len(standings) <= MANY:
        return standings
    rows = list(dict.fromkeys(one.row for one in standings))
    kept = {rows[0], *rows[::-2]}
    return [one for one in standings if one.row in kept]


@node
class Mixture:
    """How scores become one: entrant e says u_e = sum over its models m of slopes_m (s_m - shifts_m); see ``tame``.

    ``weights`` (entrants,): the score of the race is the sum of weights_e tame(u_e). ``slopes`` and ``shifts``
    (models, classes).
    """

    weights: Array
    slopes: Array
    shifts: Array

    @classmethod
    def empty(cls, n_vectors: int) -> "Mixture":
        """Before anyone has a score."""
        return cls(np.zeros(0), np.zeros((0, n_vectors)), np.zeros((0, n_vectors)))


@node
class RaceState:
    """Who takes part, the evidence, and the mixture that speaks for all.

    ``coming``: what was made when rules were last fixed anew, while it takes in the rows before; each takes the place
    of the entrant with its name. ``kept``: the first rows, for these. ``counts``: weight of the rows of each class.
    Scores up to row ``evaluated`` are in the evidence.
    """

    n_features: int
    entrants: list[Entrant]
    evidence: Evidence
    counts: Array
    mixture: Mixture
    kept: Kept | None
    coming: list[Entrant] = field(default_factory=list)
    t: int = 0
    evaluated: int = 0
    standings: list[Standing] = field(default_factory=list)
    since: int | None = field(default=None, metadata=OPTIONAL)

    @property
    def age(self) -> int:
        """Rows that count."""
        return self.t - (self.since or 0)
