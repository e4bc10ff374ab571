"""Weights of classes, as in scikit-learn, row by row."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np

from pairloom.base.checks import check_number
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.base.validation import HEAVIEST, LIGHTEST
from pairloom.estimators.class_labels import Labels

ClassWeight = Mapping[Any, float] | Literal["balanced"] | None

GONE = 1e-9
"""A class of which no larger share is left, after rows were taken back, had not come yet."""


@node
class ClassCounts:
    """The rows so far by weight: ``mass`` of each class, by its code, and their ``total``, added up row by row."""

    mass: Array
    total: float = 0.0

    @classmethod
    def start(cls, labels: Labels) -> Self:
        """Before the first row."""
        return cls(np.zeros(max(2, len(labels.classes))))

    def after(self, codes: Array, weight: Array) -> tuple["ClassCounts", Array]:
        """The counts after more rows, and the factor of each: the total over its class's, both up to the row.

        Sums are taken one row after another, so that they have the same bits however the rows are cut into calls.
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

    def factors_before(self, codes: Array, weight: Array) -> Array:
        """The factors that the newest rows had, in order, from their weights: ``after`` the other way round.

        A row of weight 0 is passed over.
        """
        mass, total = self.mass.copy(), self.total
        factors, least = np.ones(len(codes)), GONE * self.mass
        for row in reversed(np.flatnonzero(weight > 0).tolist()):
            group = int(codes[row])
            if mass[group] <= least[group]:  # more was counted than these rows say: those before are not known
                break
            factors[row] = total / (np.count_nonzero(mass > least) * mass[group])
            own = min(weight[row] / factors[row], mass[group])
            mass[group] -= own
            total -= own
        return factors


def weighed(class_weight: ClassWeight, y: Array | Sequence[Any], weight: Array) -> Array:
    """Weights of rows times those that a mapping has for their labels; ValueError if that is no such parameter.

    A weight of 0 stays 0, and makes the row one of weight 0; others stay in the bounds of weights.
    """
    check_class_weight(class_weight)
    if not isinstance(class_weight, Mapping):
        return weight
    labels = y.tolist() if isinstance(y, np.ndarray) else y
    return _product(weight, np.array([class_weight.get(label, 1.0) for label in labels], dtype=float))


def balanced(
    class_weight: ClassWeight, counts: ClassCounts | None, labels: Labels, codes: Array, weight: Array
) -> tuple[ClassCounts | None, Array]:
    """The counts after these rows, and their weights; as they are, and no counts, unless classes are to be balanced."""
    if not is_balanced(class_weight):
        return None, weight
    counts, factors = (counts or ClassCounts.start(labels)).after(codes, weight)
    return counts, _product(weight, factors)


def unweighed(
    class_weight: ClassWeight, counts: ClassCounts | None, labels: Labels, codes: Array, weight: Array
) -> Array:
    """The weights that the newest rows, in order, had of their own, without those of their classes."""
    if isinstance(class_weight, Mapping):
        by_code = {code: float(class_weight.get(label, 1.0)) or 1.0 for label, code in labels.codes.items()}
        return np.asarray(weight / np.array([by_code[code] for code in codes.tolist()]))
    if counts is not None and is_balanced(class_weight):
        return np.asarray(weight / counts.factors_before(codes, weight))
    return weight


def is_balanced(class_weight: ClassWeight) -> bool:
    """Whether the weights follow from counts."""
    return isinstance(class_weight, str) and class_weight == "balanced"


def check_class_weight(class_weight: Any) -> None:
    """Raise ValueError unless it is a mapping to weights, "balanced" or None."""
    if class_weight is None or is_balanced(class_weight):
        return
    if not isinstance(class_weight, Mapping):
        raise ValueError(
            f'class_weight must be a mapping from labels to weights, "balanced" or None; got {class_weight!r}'
        )
    for label, weight in class_weight.items():
        check_number(f"class_weight[{label!r}]", weight, 0.0)


def check_names(class_weight: ClassWeight, labels: Labels) -> None:
    """Raise ValueError if a mapping names a label that is none, once two classes are known.

    A label of weight 0 need not be one: its rows are skipped, and it may never become known.
    """
    if not isinstance(class_weight, Mapping) or len(labels.classes) < 2:
        return
    unknown = [label for label, weight in class_weight.items() if label not in labels.codes and weight != 0]
    if unknown:
        raise ValueError(f"class_weight names {unknown}, which are not among the classes, {labels.classes.tolist()}")


def _product(weight: Array, factors: Array) -> Array:
    with np.errstate(over="ignore", under="ignore"):
        return np.where((weight > 0) & (factors > 0), np.clip(weight * factors, LIGHTEST, HEAVIEST), 0.0)
