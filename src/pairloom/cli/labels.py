"""Labels of files, which are text, as labels of a model."""

import re
from decimal import Decimal
from math import isfinite
from typing import Any

import numpy as np

from pairloom.base.exact import text_of
from pairloom.base.extras import needed
from pairloom.base.refusal import Refusal, shown
from pairloom.base.typing import Array

NAMES = {"b": "true and false", "i": "whole numbers", "u": "whole numbers", "f": "numbers", "U": "text"}
DTYPES = {"b": "bool", "i": "int64", "u": "uint64", "f": "float64"}
WHOLE = {"i": (-(2**63), 2**63 - 1), "u": (0, 2**64 - 1)}
SPELLED = re.compile(r"[-+]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
LONGEST = 400
"""Letters of a number."""


class LabelReader:
    """Makes labels of what a file has in its place.

    ``positive``: rows with this label are positive, all others negative; the classes are it and "not" it. None: labels
    are true and false, whole numbers, numbers or text, by those of the first rows. ``advice``: what to do about a label
    of another kind.
    """

    def __init__(
        self, positive: str | None = None, kind: str | None = None, advice: str = ": --positive VALUE"
    ) -> None:
        self.positive = None if positive is None else plain(positive)
        self.kind, self.advice = kind, advice

    @classmethod
    def of(cls, model: Any, positive: str | None = None) -> "LabelReader":
        """For a model that has learned, and so has classes."""
        known = model.classes_
        if positive is None and model.pos_label is not None and f"not {model.pos_label}" in known.tolist():
            positive = model.pos_label
        kind = known.dtype.kind
        return cls(positive, kind if kind in NAMES else "U", advice="")

    @property
    def classes(self) -> list[str] | None:
        """Both classes, if they are known before the first row."""
        return None if self.positive is None else [self.positive, f"not {self.positive}"]

    @property
    def unsure(self) -> bool:
        """Whether the kind of labels is still to be told."""
        return self.positive is None and self.kind is None

    def look(self, columns: list[Any]) -> None:
        """Tell the kind of labels from the first ones."""
        found = [text for column in columns for text in texts(column)[0] if text is not None]
        self.kind = kind_of(found) if found else None

    def read(self, column: Any) -> Array:
        """The labels of rows; ValueError if one is missing, or of another kind."""
        values, codes = texts(column)
        made = [self._label(value) for value in values]
        return np.array(made, dtype=None if self.positive is not None else DTYPES.get(self.kind or "U"))[codes]

    def read_one(self, value: Any) -> Any:
        """The label of one row, as Python has it."""
        return self._label(_text(value))

    def _label(self, text: str | None) -> Any:
        if text is None:
            raise ValueError("the label is missing")
        if self.positive is not None:
            return self.positive if plain(text) == self.positive else f"not {self.positive}"
        try:
            return _value(text, self.kind or "U")
        except ValueError:
            what = f"the label is {shown(text)}, but labels before it were {NAMES[self.kind or 'U']}"
            raise Refusal(what, command=self.advice) from None


def texts(column: Any) -> tuple[list[str | None], Array]:
    """The different labels of a column, as text, and which one each row has."""
    if isinstance(column, np.ndarray):
        found, codes = np.unique(column, return_inverse=True)
        return [_text(value) for value in found.tolist()], codes
    pyarrow = needed("pyarrow", "io", "Reading labels")
    if pyarrow.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pyarrow.types.is_nested(column.type):
        raise ValueError(f"the label has the type {column.type}: a label is a number, text, true or false")
    encoded = pyarrow.chunked_array(column).combine_chunks().dictionary_encode(null_encoding="encode")
    return [_text(value) for value in encoded.dictionary.to_pylist()], encoded.indices.to_numpy(zero_copy_only=False)


def _text(value: Any) -> str | None:
    """A label as text, the same for all formats; None if it is missing. The text "nan" is a label like any other."""
    if value is None or value != value:
        return None
    try:
        return text_of(value).strip() or None
    except ValueError:
        raise ValueError(f"the label is {shown(value)}: a label is a number, text, true or false") from None


def plain(text: str) -> str:
    """A label as text, of which numbers, true and false have one spelling.

    >>> [plain(text) for text in ("1.0", "+1", "01", "1_0", "True", "FALSE", " nan ", "0.5")]
    ['1', '1', '01', '1_0', 'true', 'false', 'nan', '0.5']
    """
    text = text.strip()
    number = number_in(text)
    if number is None:
        return text.lower() if text.lower() in ("true", "false") else text
    return str(number)


def number_in(text: str) -> int | float | None:
    """The number that a label spells; None if it is text.

    Whole numbers may be spelled 1, +1, 1.0 and 1e0, but not 01: that is a code. Other numbers have one spelling, the
    shortest: 1.10 is not 1.1.

    >>> [number_in(text) for text in ("9007199254740993", "1.0", "01", "1_0", "1.1", "1.10", "nan")]
    [9007199254740993, 1, None, None, 1.1, None, None]
    """
    if len(text) > LONGEST or not SPELLED.fullmatch(text):
        return None
    value = float(text)
    if not isfinite(value):
        return None
    if value.is_integer() and (exact := Decimal(text)) == exact.to_integral_value():
        return int(exact)
    return value if repr(value) == text.removeprefix("+") else None


def kind_of(found: list[str]) -> str:
    """What labels are: "b", "i", "f" or "U", as NumPy has them."""
    for kind in "bif":
        try:
            for text in found:
                _value(text, kind)
        except ValueError:
            continue
        return kind
    return "U"


def _value(text: str, kind: str) -> Any:
    """A label of this kind; ValueError if it is of another."""
    if kind == "U":
        return text
    if kind == "b":
        if text.lower() not in ("true", "false"):
            raise ValueError
        return text.lower() == "true"
    number = number_in(text)
    if kind == "f" and number is not None and (isinstance(number, float) or abs(number) <= 2**53):
        return float(number)
    low, high = WHOLE.get(kind, (1, 0))
    if isinstance(number, int) and low <= number <= high:
        return number
    raise ValueError
