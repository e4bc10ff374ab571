"""What a race keeps."""

from dataclasses import field

from pairloom.base.batch import Batch
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.features.scaling import Scaling
from pairloom.race.entrant import Entrant
from pairloom.race.evidence import Evidence


@node
class Standing:
    """At ``row``, the area under the curve of a candidate's best model, and whether the mixture has it."""

    row: int
    name: str
    auc: float
    mixed: bool


@node
class RaceState:
    """Who is still in the field, the evidence, and the mixture that speaks for all.

    ``chosen`` (models, 2): entrant and model; ``shift`` and ``spread`` (models, classes) standardise their scores.
    ``counts``: weight of the rows of each class. Scores up to row ``evaluated`` are in the evidence. ``first``: the
    rows that the finalists will learn; none but while the scouts learn them. The finalists are those around ``scale``
    and ``factor``, once they are ``racing``.
    """

    n_features: int
    entrants: list[Entrant]
    evidence: Evidence
    counts: Array
    chosen: Array
    shift: Array
    spread: Array
    t: int = 0
    evaluated: int = 0
    standings: list[Standing] = field(default_factory=list)
    first: Batch | None = None
    racing: bool = False
    scale: Scaling = None
    factor: float = 1.0
