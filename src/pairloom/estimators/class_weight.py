"""Class weights as in scikit-learn, computed row by row."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

import numpy as np

from pairloom.base.checks import check_number
from pairloom.base.spec import WrongState
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.base.validation import MAX_WEIGHT, MIN_WEIGHT
from pairloom.estimators.class_labels import Labels

ClassWeight = Mapping[Any, float] | Literal["balanced"] | None

MIN_SHARE = 1e-9
"""A class with at most this share of its weight left, after rows were subtracted, is treated as unseen."""

SUM_RTOL = 1e-6
"""Relative tolerance between two sums of the same weights."""


@node
class ClassCounts:
    """Weight of the rows so far: ``mass`` by class code, and their ``total``, summed row by row."""

    mass: Annotated[Array, "f8 C 0:MASS"]
    total: Annotated[float, "0:MASS"] = 0.0

    def check_with(self, labels: Labels) -> None:
        """Raise ValueError unless only known classes have mass, and ``total`` is its sum."""
        n = len(labels.classes)
        whole = not self.mass[n:].any() and self.total > 0
        if not whole or not np.isclose(self.mass.sum(), self.total, rtol=SUM_RTOL, atol=0.0):
            raise WrongState("must be the rows of each class, and their sum", "class_counts")

    @classmethod
    def start(cls, labels: Labels) -> Self:
        """Return the counts before the first row."""
        return cls(np.zeros(max(2, len(labels.classes))))

    def updated(self, codes: Array, weight: Array) -> tuple["ClassCounts", Array]:
        """Return the counts after more rows, and the factor n / (k n_y) of each row.

        Weights are summed row by row, so that the sums are bitwise identical for any split of the rows into calls.
        """
        mass, own, groups = self.mass.copy(), np.empty(len(codes)), codes.astype(int)
        new = np.zeros(len(codes))
        for group in np.unique(groups):
            rows = np.flatnonzero(groups == group)
            own[rows] = np.cumsum(np.append(mass[group], weight[rows]))[1:]
            new[rows[0]] = mass[group] == 0
            mass[group] = own[rows[-1]]
        total = np.cumsum(np.append(self.total, weight))[1:]
        n_classes = np.count_nonzero(self.mass) + np.cumsum(new)
        return ClassCounts(mass, float(total[-1])), total / (n_classes * own)

    def recent_factors(self, codes: Array, weight: Array) -> Array:
        """Return the factors that the newest rows had, from their weights: the inverse of ``updated``.

        Rows of weight 0 have factor 1.
        """
        mass, total = self.mass.copy(), self.total
        factors, least = np.ones(len(codes)), MIN_SHARE * self.mass
        for row in reversed(np.flatnonzero(weight > 0).tolist()):
            group = int(codes[row])
            if mass[group] <= least[group]:  # these weights exceed the counts: earlier rows are unknown
                break
            factors[row] = total / (np.count_nonzero(mass > least) * mass[group])
            own = min(weight[row] / factors[row], mass[group])
            mass[group] -= own
            total -= own
        return factors


def with_class_weight(class_weight: ClassWeight, y: Array | Sequence[Any], weight: Array) -> Array:
    """Multiply weights by those of a ``class_weight`` mapping; raise ValueError if ``class_weight`` is invalid.

    Products of positive weights are clipped to the range of valid weights.
    """
    check_class_weight(class_weight)
    if not isinstance(class_weight, Mapping):
        return weight
    labels = y.tolist() if isinstance(y, np.ndarray) else y
    return _product(weight, np.array([class_weight.get(label, 1.0) for label in labels], dtype=float))


def with_balanced_weight(
    class_weight: ClassWeight, counts: ClassCounts | None, labels: Labels, codes: Array, weight: Array
) -> tuple[ClassCounts | None, Array]:
    """Return the counts after these rows, and their balanced weights; (None, weight) unless balancing is on."""
    if not is_balanced(class_weight):
        return None, weight
    counts, factors = (counts or ClassCounts.start(labels)).updated(codes, weight)
    return counts, _product(weight, factors)


def without_class_weight(
    class_weight: ClassWeight, counts: ClassCounts | None, labels: Labels, codes: Array, weight: Array
) -> Array:
    """Return the weights of the newest rows, in order, without the factors of their classes."""
    if isinstance(class_weight, Mapping):
        by_code = {code: float(class_weight.get(label, 1.0)) or 1.0 for label, code in labels.codes.items()}
        return np.asarray(weight / np.array([by_code[code] for code in codes.tolist()]))
    if counts is not None and is_balanced(class_weight):
        return np.asarray(weight / counts.recent_factors(codes, weight))
    return weight


def is_balanced(class_weight: ClassWeight) -> bool:
    """Whether class weights are computed from counts."""
    return isinstance(class_weight, str) and class_weight == "balanced"


def check_class_weight(class_weight: Any) -> None:
    """Raise ValueError unless ``class_weight`` is a mapping to weights, "balanced" or None."""
    if class_weight is None or is_balanced(class_weight):
        return
    if not isinstance(class_weight, Mapping):
        raise ValueError(
            f'class_weight must be a mapping from labels to weights, "balanced" or None; got {class_weight!r}'
        )
    for label, weight in class_weight.items():
        check_number(f"class_weight[{label!r}]", weight, 0.0)


def check_class_weight_labels(class_weight: ClassWeight, labels: Labels) -> None:
    """Raise ValueError if a mapping has a label that is not a class, once two classes are known.

    Labels of weight 0 are exempt: their rows are skipped, so they may never become known.
    """
    if not isinstance(class_weight, Mapping) or len(labels.classes) < 2:
        return
    unknown = [label for label, weight in class_weight.items() if label not in labels.codes and weight != 0]
    if unknown:
        raise ValueError(f"class_weight names {unknown}, which are not among the classes, {labels.classes.tolist()}")


def _product(weight: Array, factors: Array) -> Array:
    with np.errstate(over="ignore", under="ignore"):
        return np.where((weight > 0) & (factors > 0), np.clip(weight * factors, MIN_WEIGHT, MAX_WEIGHT), 0.0)
