"""Class labels on a stream: which there are, and how the learner codes them."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pairloom.typing import Array


@dataclass(frozen=True)
class Labels:
    """The labels known so far.

    Of two classes, the learner codes the first one seen 0 and the other 1, whatever their order: a stream may show one
    class for long, and swapping the classes only turns the sign of w. ``sign`` turns scores to speak for
    ``classes[1]``. More than two classes are coded by their place in ``classes``.
    """

    classes: Array
    first: Any
    codes: dict[Any, float] = field(init=False)

    def __post_init__(self) -> None:
        self.classes.flags.writeable = False
        known = self.classes.tolist()
        if len(known) > 2:
            codes = {label: float(k) for k, label in enumerate(known)}
        else:
            codes = {label: float(label != self.first) for label in known}
        object.__setattr__(self, "codes", codes)

    @property
    def sign(self) -> float:
        """-1 if ``classes[1]`` is coded 0, else +1."""
        return -1.0 if len(self.classes) == 2 and self.classes[1] == self.first else 1.0

    @property
    def groups(self) -> list[int]:
        """The learner's code of each class, as an index."""
        return [int(code) for code in self.codes.values()]

    def covers(self, y: Array) -> bool:
        """Whether both of two classes are known and every label is one of them, of the same kind."""
        if len(self.classes) != 2 or y.dtype.kind != self.classes.dtype.kind:
            return False
        return bool(((y == self.classes[0]) | (y == self.classes[1])).all())

    def encode(self, y: Array) -> Array:
        """Codes of known labels."""
        if len(self.classes) > 2:
            return np.searchsorted(self.classes, y).astype(float)
        return np.asarray(y != self.first, dtype=float)


def learn_labels(known: Labels | None, y: Array, classes: Any, *, whole: bool) -> Labels:
    """The labels after a batch; raises if it brings one too many, or one that ``classes`` does not name.

    ``whole``: the batch is all there is, and its labels are the classes; else, without ``classes``, the first two.
    """
    present = _unique("y", y)
    if classes is not None:
        declared = _unique("classes", np.asarray(classes))
        if len(declared) < 2:
            raise ValueError(f"classes= must name at least two labels; got {declared.tolist()}")
        if known is not None and not set(known.classes.tolist()) <= set(declared.tolist()):
            seen = known.classes.tolist()
            raise ValueError(f"classes={declared.tolist()} does not contain the labels known so far, {seen}")
    elif known is not None and len(known.classes) > 1:
        declared = known.classes
    elif whole:
        declared = present
    else:
        declared = _first_two(known, y, present)
    allowed = set(declared.tolist())
    if not set(present.tolist()) <= allowed:
        row, label = next((i, label) for i, label in enumerate(y.tolist()) if label not in allowed)
        raise ValueError(
            f"label {label!r} at row {row} is not one of {declared.tolist()}, the classes of this model; "
            "name all labels with classes= in the first call of partial_fit"
        )
    if known is not None and len(known.classes) == len(declared):
        return known
    return Labels(declared, y[:1].tolist()[0] if known is None else known.first)


def _first_two(known: Labels | None, y: Array, present: Array) -> Array:
    """The first two distinct labels of the stream, in order; one, if no more were seen."""
    seen = [] if known is None else known.classes.tolist()
    extra = set(present.tolist()) - set(seen)
    if len(seen) + len(extra) > 2:
        for label in y.tolist():
            if label in extra and len(seen) < 2:
                extra.discard(label)
                seen.append(label)
    else:
        seen += list(extra)
    mixed = len({isinstance(label, str) for label in seen}) > 1
    return _unique("y", np.asarray(seen, dtype=object if mixed else None))


def _unique(name: str, values: Array) -> Array:
    """Sorted distinct labels, all of them numbers or all of them text."""
    try:
        return np.unique(values)
    except TypeError:
        raise ValueError(f"{name} mixes labels that cannot be ordered, such as text and numbers") from None
