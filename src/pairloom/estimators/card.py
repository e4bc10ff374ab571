"""The entry of a system in the table of systems."""

from dataclasses import dataclass
from typing import Literal

Scheme = Literal["online", "offline"]
Growth = Literal["bounded", "grows"]
ModelKind = Literal["linear", "kernel"]


@dataclass(frozen=True)
class Card:
    """Properties of a system: the columns of the paper's Table 1, and settings of the generic tests.

    ``time`` (per example) and ``space`` (of the model) are costs in terms of d input columns, D features (d for a
    linear model), s kept examples, t examples so far, rank r, and n rows in total.
    ``scheme``: "online" systems learn row by row (``partial_fit``, ``learn_one``), "offline" ones need all rows.
    ``memory``: "bounded", or "grows" with the stream up to a limit, beyond which more rows raise ValueError.
    ``settled``: the row after which the size of a bounded model no longer changes.
    """

    reference: str
    time: str
    space: str
    problem: Literal["AUC", "general", "pointwise"] = "AUC"
    model: ModelKind = "linear"
    variance_reduction: str = "no"
    scheme: Scheme = "online"
    memory: Growth = "bounded"
    settled: int = 1024


def model_kind(kernel: str) -> ModelKind:
    """Return the kind of model that the parameter ``kernel`` describes."""
    return "linear" if kernel == "linear" else "kernel"
