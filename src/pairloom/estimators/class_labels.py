"""Class labels of a stream: the labels known so far, and their codes."""

from collections.abc import Hashable, Set
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from pairloom.base.errors import InvalidDataError, short_repr
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.base.validation import check_unmasked, is_missing

UNORDERED_MESSAGE = "{} mixes labels that cannot be ordered, such as text and numbers"


@node
class Labels:
    """The labels known so far, and the label of the first row.

    With two classes, the label of the first row has code 0 and the other has code 1, regardless of their sort order: a
    stream may contain only one class for a long time, and swapping classes only changes the sign of w. ``sign`` times
    a score ranks ``classes[1]`` first. With more than two classes, the code is the index in ``classes``.
    """

    classes: Array
    first: Any

    def __post_init__(self) -> None:
        self.classes.flags.writeable = False
        known = self.classes.tolist()
        if len(known) > 2:
            codes = {label: float(k) for k, label in enumerate(known)}
        else:
            codes = {label: float(label != self.first) for label in known}
        self.codes: dict[Any, float] = codes
        self.sign = -1.0 if len(known) == 2 and known[1] == self.first else 1.0
        """-1 if ``classes[1]`` has code 0, else +1."""

    def check(self) -> None:
        rises = (self.classes[1:] > self.classes[:-1]).all() if self.classes.ndim == 1 else False
        if not rises or self.first not in self.classes.tolist():
            raise ValueError("must be different labels, in order")

    @property
    def groups(self) -> list[int]:
        """Code of each class, as an index."""
        return [int(code) for code in self.codes.values()]

    def covers(self, y: Array) -> bool:
        """Whether there are two classes, both known, and every label is one of them, of the same dtype kind."""
        if len(self.classes) != 2 or y.dtype.kind != self.classes.dtype.kind:
            return False
        return bool(((y == self.classes[0]) | (y == self.classes[1])).all())

    def encode(self, y: Array) -> Array:
        """Return the codes of known labels."""
        if len(self.classes) > 2:
            return np.searchsorted(self.classes, y).astype(float)
        return np.asarray(y != self.first, dtype=float)


def learn_labels(known: Labels | None, y: Array, classes: Any, pos_label: Any = None, *, whole: bool) -> Labels:
    """Return the labels known after a batch; raise ValueError for a label that is not one of the classes.

    Without ``classes``, the classes are all labels of the batch if it is the ``whole`` data, else the first two labels
    of the stream. ``pos_label``, if given, must be one of them.
    """
    present = _unique("y", y)
    if not isinstance(pos_label, Hashable):
        raise ValueError(f"pos_label must be one label; got {pos_label!r}")
    if classes is not None:
        declared = declared_classes(classes)
        _check_unchanged(known, declared)
    elif known is not None and len(known.classes) > 1:
        declared = known.classes
    else:
        declared = present if whole else _first_two(known, y, present)
        if len(declared) == 1 and pos_label is not None and pos_label not in declared.tolist():
            declared = _unique("pos_label and y", np.asarray([*declared.tolist(), pos_label], dtype=object))
    allowed = set(declared.tolist())
    if not set(present.tolist()) <= allowed:
        row, label = next((i, label) for i, label in enumerate(y.tolist()) if label not in allowed)
        raise InvalidDataError(
            f"label {short_repr(label)}", row=row,
            then=f" is not one of {declared.tolist()}, the classes of this model",
            python="; pass all labels as classes= in the first call of partial_fit",
            command="; name one against all others, --positive VALUE",
        )  # fmt: skip
    if pos_label is not None and len(declared) > 1 and pos_label not in allowed:
        raise ValueError(f"pos_label={pos_label!r} is not one of the classes {declared.tolist()}")
    if known is not None and len(known.classes) == len(declared):
        return known
    return Labels(declared, y[:1].tolist()[0] if known is None else known.first)


def declared_classes(classes: Any) -> Array:
    """Return the distinct labels of ``classes=``, an array, a list or a set."""
    declared = _unique("classes", np.asarray(exact_labels(list(classes) if isinstance(classes, Set) else classes)))
    if len(declared) < 2:
        raise ValueError(f"classes= must name at least two labels; got {declared.tolist()}")
    return declared


def _check_unchanged(known: Labels | None, declared: Array) -> None:
    """Raise ValueError if ``classes=`` contradicts the labels known so far."""
    if known is None:
        return
    now, before = set(declared.tolist()), known.classes.tolist()
    if len(before) > 1:
        if now == set(before):
            return
        raise ValueError(
            f"classes={declared.tolist()}, but this model has the classes {before}: they cannot change. Fit a new model"
        )
    if not set(before) <= now:
        raise ValueError(f"classes={declared.tolist()} does not contain the label known so far, {before[0]!r}")
    if len(now) > 2:
        raise ValueError(
            f"classes={declared.tolist()} names {len(now)} labels, but this model began with two: name them all in the "
            "first call of partial_fit. Fit a new model"
        )


def exact_labels(labels: Any) -> Any:
    r"""Convert a list of labels to an array without changing any of them; return anything else as it is.

    NumPy alone would round integers if one exceeds 2^63, convert a missing label to the string "nan", and drop a
    trailing NUL character.

    >>> exact_labels([0, 2**64 - 1])
    array([                   0, 18446744073709551615], dtype=uint64)
    >>> exact_labels(["a", "a" + chr(0)])
    array(['a', 'a\x00'], dtype=object)
    """
    try:
        made = np.asarray(labels) if isinstance(labels, (list, tuple)) else None
    except ValueError:  # lists of different lengths: scikit-learn reports them
        return labels
    if made is None or made.ndim != 1:
        return labels
    exact = True
    if made.dtype.kind == "f":
        if all(isinstance(label, int) and label >= 0 for label in labels):
            return np.array(labels, dtype=np.uint64)
        exact = not any(isinstance(label, int) and abs(label) > 2**53 for label in labels)
    elif made.dtype.kind in "US":
        exact = all(label == own for label, own in zip(labels, made.tolist(), strict=True))
    return made if exact else np.array(labels, dtype=object)


def check_class_labels(y: Any, estimator_name: str) -> Array:
    """Return the labels as a one-dimensional array; raise ValueError if one is missing or infinite."""
    if y is None:
        raise ValueError(f"{estimator_name} requires y to be passed, but the target y is None")
    check_unmasked("y", y)
    y = column_or_1d(exact_labels(y), warn=True)
    _check_finite(y)
    try:
        check_classification_targets(y)
    except TypeError:
        raise ValueError(UNORDERED_MESSAGE.format("y")) from None
    return np.asarray(y)


def _check_finite(y: Array) -> None:
    """Raise ValueError with the first row whose label is missing or infinite."""
    if y.dtype.kind in "fM":
        bad_rows = np.flatnonzero(~np.isfinite(y))
    elif y.dtype.kind == "O":
        bad_rows = np.flatnonzero([is_missing(label) or label in (np.inf, -np.inf) for label in y])
    else:
        return
    if bad_rows.size:
        label = y[bad_rows[0]]
        infinite = not is_missing(label) and label in (np.inf, -np.inf)
        what = "infinity or a value too large for dtype('float64')" if infinite else "NaN"
        raise ValueError(f"Input y contains {'None' if label is None else what}. It is at row {bad_rows[0]}")


def _first_two(known: Labels | None, y: Array, present: Array) -> Array:
    """Return the first two distinct labels of the stream, in order; one if there is only one so far."""
    seen = [] if known is None else known.classes.tolist()
    extra = set(present.tolist()) - set(seen)
    if len(seen) + len(extra) > 2:
        for label in y.tolist():
            if label in extra and len(seen) < 2:
                extra.discard(label)
                seen.append(label)
    else:
        seen += list(extra)
    return _unique("y", np.asarray(seen, dtype=object))


def _unique(name: str, values: Array) -> Array:
    """Return the sorted distinct labels, all numbers or all text, with a dtype that depends on the labels alone."""
    try:
        found = np.unique(values)
    except TypeError:
        raise ValueError(UNORDERED_MESSAGE.format(name)) from None
    labels = [label.item() if isinstance(label, np.generic) else label for label in found.tolist()]
    plain = found.dtype.kind in "biufUS" or all(isinstance(label, (str, int, float)) for label in labels)
    return np.asarray(exact_labels(labels)) if plain and len(labels) else found
