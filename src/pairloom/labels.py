"""Class labels on a stream: which two there are, and which is coded -1."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pairloom.typing import Array


@dataclass(frozen=True)
class Labels:
    """The labels known so far.

    Inside the learner the first label seen is -1 and the other +1, whatever their order: a stream may show one
    class for long, and swapping the classes only turns the sign of w. ``sign`` turns scores to speak for
    ``classes[1]``.
    """

    classes: Array
    first: Any
    codes: dict[Any, float] = field(init=False)

    def __post_init__(self) -> None:
        codes = {label: -1.0 if label == self.first else 1.0 for label in self.classes.tolist()}
        object.__setattr__(self, "codes", codes)

    @property
    def sign(self) -> float:
        """+1 if ``classes[1]`` is coded +1, else -1."""
        return -1.0 if len(self.classes) == 2 and self.classes[1] == self.first else 1.0

    @property
    def groups(self) -> list[int]:
        """The learner's group (0 for code -1, 1 for code +1) of each class."""
        return [int(code > 0) for code in self.codes.values()]

    def encode(self, y: Array) -> Array:
        """Codes of known labels."""
        return np.where(y == self.first, -1.0, 1.0)


def learn_labels(known: Labels | None, y: Array, classes: Any) -> Labels:
    """The labels after a batch; raises if it brings a third, or one that ``classes`` does not name."""
    if classes is not None:
        declared = np.unique(np.asarray(classes))
        if len(declared) != 2:
            raise ValueError(f"Only binary classification is supported: classes= names {len(declared)} labels, not 2.")
        if known is not None and not np.isin(known.classes, declared).all():
            raise ValueError(
                f"classes={declared.tolist()} does not contain the labels seen so far, {known.classes.tolist()}."
            )
    elif known is not None and len(known.classes) == 2:
        declared = known.classes
    else:
        declared = np.unique(y if known is None else np.concatenate([known.classes, y]))
        if len(declared) > 2:
            seen = [] if known is None else known.classes.tolist()
            for row, label in enumerate(y.tolist()):
                if label not in seen and len(seen) == 2:
                    raise ValueError(
                        f"Only binary classification is supported: {label!r} at row {row} is a third label "
                        f"after {seen}. Name the two with classes=."
                    )
                seen += [label] * (label not in seen)
    strange = np.flatnonzero(~np.isin(y, declared))
    if strange.size:
        row = strange[0]
        raise ValueError(
            f"Only binary classification is supported: the label {y[row].item()!r} at row {row} is not one of "
            f"{declared.tolist()}, the classes of this model."
        )
    first = y[:1].tolist()[0] if known is None else known.first
    return Labels(declared, first)
