"""Requirements of `evaluate --require`: figures that a model must reach, as a gate for pipelines."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pairloom.base.typing import Array
from pairloom.metrics.auc import weighted_auc
from pairloom.metrics.curve import average_precision, partial_auc, precision_at

NAMES = "auc, pauc@FPR (0 < FPR <= 1), ap, precision@K"
PATTERN = re.compile(r"\s*([a-z]+)(?:@([^\s>=]+))?\s*>=\s*(\S+)\s*")

Figure = Callable[[Array, Array, Array], float]


@dataclass(frozen=True)
class Requirement:
    """A ``figure`` of scores, classes and weights that must be at least ``minimum``; ``name`` as it was written."""

    name: str
    minimum: float
    figure: Figure

    def check(self, scores: Array, positive: Array, weights: Array) -> dict[str, Any]:
        """Return the value of the figure, and whether it is large enough; NaN is not."""
        value = float(self.figure(scores, positive, weights))
        return {"name": self.name, "minimum": self.minimum, "value": value, "passed": value >= self.minimum}


def parse_requirement(text: str) -> Requirement:
    """Return a requirement; raise ValueError if it is malformed.

    >>> found = parse_requirement("pauc@0.01>=0.6")
    >>> found.name, found.minimum
    ('pauc@0.01', 0.6)
    """
    match = PATTERN.fullmatch(text)
    figure = None if match is None else _figure(match[1], match[2])
    minimum = None if match is None else _number(match[3])
    if match is None or figure is None or minimum is None or not 0.0 <= minimum <= 1.0:
        raise ValueError(f"--require {text!r}: expected NAME>=X with X from 0 to 1, such as auc>=0.9; names: {NAMES}")
    return Requirement(match[1] if match[2] is None else f"{match[1]}@{match[2]}", minimum, figure)


def requirement_lines(checked: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return a line for each requirement.

    >>> requirement_lines([{"name": "auc", "minimum": 0.9, "value": 0.88, "passed": False}])
    [('auc >= 0.9', '0.8800 failed')]
    """
    return [
        (f"{one['name']} >= {one['minimum']:g}", f"{one['value']:.4f} {'passed' if one['passed'] else 'failed'}")
        for one in checked
    ]


def _figure(name: str, at: str | None) -> Figure | None:
    """Return the figure of a name; None if there is none."""
    number = None if at is None else _number(at)
    if name == "auc" and at is None:
        return lambda scores, positive, weights: float(weighted_auc(scores[:, None], positive, weights)[0])
    if name == "ap" and at is None:
        return average_precision
    if name == "pauc" and number is not None and 0.0 < number <= 1.0:
        return lambda scores, positive, weights: partial_auc(scores, positive, weights, number)
    if name == "precision" and number is not None and number >= 1 and number.is_integer():
        return lambda scores, positive, weights: _precision(scores, positive, weights, int(number))
    return None


def _precision(scores: Array, positive: Array, weights: Array, k: int) -> float:
    if k > len(scores):
        raise ValueError(f"--require precision@{k}: there are only {len(scores):,} rows")
    return precision_at(scores, positive, weights, k)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
