"""A system's line in the table of systems."""

from dataclasses import dataclass
from typing import Literal

Scheme = Literal["online", "offline"]
Growth = Literal["bounded", "grows"]


@dataclass(frozen=True)
class Card:
    """What a system is, in the columns of the paper's Table 1, and what its tests may ask of it.

    ``scheme``: "online" systems learn row by row (``partial_fit``, ``learn_one``), "offline" ones need all rows.
    ``memory``: "bounded" whatever the length of the stream, or "grows" with it up to a limit and refuses the next row.
    ``settled``: the row from which on the size of a bounded model does not change.
    ``time`` and ``space`` are true costs, of one example and of the model: d input columns, D features (d in linear
    mode), s kept examples, t examples so far, r rank, n rows in all.
    """

    reference: str
    time: str
    space: str
    problem: Literal["AUC", "general", "pointwise"] = "AUC"
    model: Literal["linear", "kernel"] = "linear"
    variance_reduction: str = "no"
    scheme: Scheme = "online"
    memory: Growth = "bounded"
    settled: int = 1024
