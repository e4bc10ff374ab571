"""Convert labels of files, which are text, to labels of a model."""

import re
from decimal import Decimal
from math import isfinite
from typing import Any

import numpy as np

from pairloom.base.errors import InvalidDataError, short_repr
from pairloom.base.extras import import_extra
from pairloom.base.typing import Array
from pairloom.columns.values import text_of
from pairloom.data.readers.base import bisect_rows

KIND_NAMES = {"b": "true and false", "i": "integers", "u": "integers", "f": "numbers", "U": "text"}
DTYPES = {"b": "bool", "i": "int64", "u": "uint64", "f": "float64"}
INTEGER_RANGES = {"i": (-(2**63), 2**63 - 1), "u": (0, 2**64 - 1)}
NUMBER = re.compile(r"[-+]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
MAX_NUMBER_LENGTH = 400


class LabelReader:
    """Converter of the labels of a file.

    Parameters
    ----------
    positive : rows with this label are positive; all others have the class "not ...". None: labels stay as they are.
    kind : "b", "i", "u", "f" or "U", as in NumPy; None: inferred from the first rows.
    advice : what to do about a label of another kind.
    """

    def __init__(
        self, positive: str | None = None, kind: str | None = None, advice: str = ": use --positive VALUE"
    ) -> None:
        self.positive = None if positive is None else normalize_label(positive)
        self.kind, self.advice = kind, advice

    @classmethod
    def of(cls, model: Any) -> "LabelReader":
        """Return the reader for a fitted model."""
        known, positive = model.classes_, None
        if model.pos_label is not None and f"not {model.pos_label}" in known.tolist():
            positive = model.pos_label
        kind = known.dtype.kind
        return cls(positive, kind if kind in KIND_NAMES else "U", advice="")

    @property
    def classes(self) -> list[str] | None:
        """Both classes, if they are known before the first row."""
        return None if self.positive is None else [self.positive, f"not {self.positive}"]

    def read(self, column: Any) -> Array:
        """Return the labels of rows; raise ValueError if one is missing or of another kind."""
        if self.positive is None and self.kind is None:
            self._infer_kind(column)
        texts, codes = distinct_labels(column)
        labels = [self._label(text) for text in texts]
        return np.array(labels, dtype=None if self.positive is not None else DTYPES.get(self.kind or "U"))[codes]

    def read_one(self, value: Any) -> Any:
        """Return the label of one row as a Python object."""
        return self._label(_label_text(value))

    def _infer_kind(self, column: Any) -> None:
        """Infer the kind of labels from those that can be read."""
        texts: list[str | None] = []
        bisect_rows(
            0, len(column), lambda low, high: texts.extend(distinct_labels(column[low:high])[0]), lambda *error: None
        )
        present = [text for text in texts if text is not None]
        self.kind = _kind_of(present) if present else None

    def _label(self, text: str | None) -> Any:
        if text is None:
            raise ValueError("the label is missing")
        if self.positive is not None:
            return self.positive if normalize_label(text) == self.positive else f"not {self.positive}"
        try:
            return _convert(text, self.kind or "U")
        except ValueError:
            what = f"the label is {short_repr(text)}, but the labels before it are {KIND_NAMES[self.kind or 'U']}"
            raise InvalidDataError(what, command=self.advice) from None


def distinct_labels(column: Any) -> tuple[list[str | None], Array]:
    """Return the distinct labels of a column as text, and the index of the label of each row."""
    if isinstance(column, np.ndarray):
        found, codes = np.unique(column, return_inverse=True)
        return [_label_text(value) for value in found.tolist()], codes
    pyarrow = import_extra("pyarrow", "io", "Reading labels")
    if pyarrow.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pyarrow.types.is_nested(column.type):
        raise ValueError(f"the label has type {column.type}; expected a number, text or boolean")
    encoded = pyarrow.chunked_array(column).combine_chunks().dictionary_encode(null_encoding="encode")
    texts = [_label_text(value) for value in encoded.dictionary.to_pylist()]
    return texts, encoded.indices.to_numpy(zero_copy_only=False)


def _label_text(value: Any) -> str | None:
    """Return a label as text, the same for all formats; None if it is missing. The text "nan" is a label."""
    if value is None or value != value:
        return None
    try:
        return text_of(value).strip() or None
    except ValueError:
        raise ValueError(f"the label is {short_repr(value)}; expected a number, text or boolean") from None


def normalize_label(text: str) -> str:
    """Return a label as text, with one spelling for equal numbers and for booleans.

    >>> [normalize_label(text) for text in ("1.0", "+1", "01", "1_0", "True", "FALSE", " nan ", "0.5")]
    ['1', '1', '01', '1_0', 'true', 'false', 'nan', '0.5']
    """
    text = text.strip()
    number = parse_number(text)
    if number is None:
        return text.lower() if text.lower() in ("true", "false") else text
    return str(number)


def parse_number(text: str) -> int | float | None:
    """Return the number that a label spells; None if it is text.

    Integers may be spelled 1, +1, 1.0 and 1e0, but not 01, which is a code. Other numbers have one spelling, the
    shortest: 1.10 is text.

    >>> [parse_number(text) for text in ("9007199254740993", "1.0", "01", "1_0", "1.1", "1.10", "nan")]
    [9007199254740993, 1, None, None, 1.1, None, None]
    """
    if len(text) > MAX_NUMBER_LENGTH or not NUMBER.fullmatch(text):
        return None
    value = float(text)
    if not isfinite(value):
        return None
    if value.is_integer() and (exact := Decimal(text)) == exact.to_integral_value():
        return int(exact)
    return value if repr(value) == text.removeprefix("+") else None


def _kind_of(texts: list[str]) -> str:
    """Return the kind of labels: "b", "i", "f" or "U"."""
    for kind in "bif":
        try:
            for text in texts:
                _convert(text, kind)
        except ValueError:
            continue
        return kind
    return "U"


def _convert(text: str, kind: str) -> Any:
    """Return a label of this kind; raise ValueError if it is of another kind."""
    if kind == "U":
        return text
    if kind == "b":
        if text.lower() not in ("true", "false"):
            raise ValueError
        return text.lower() == "true"
    number = parse_number(text)
    if kind == "f" and number is not None and (isinstance(number, float) or abs(number) <= 2**53):
        return float(number)
    low, high = INTEGER_RANGES.get(kind, (1, 0))
    if isinstance(number, int) and low <= number <= high:
        return number
    raise ValueError
