"""Labels of files, which are text, as labels of a model."""

from typing import Any

import numpy as np

from pairloom.base.extras import needed
from pairloom.base.typing import Array

NAMES = {"b": "true and false", "i": "whole numbers", "f": "numbers", "U": "text"}


class LabelReader:
    """Makes labels of what a file has in its place.

    ``positive``: rows with this label are positive, all others negative; the classes are it and "not" it. None: labels
    are true and false, whole numbers, numbers or text, by those of the first rows.
    """

    def __init__(self, positive: str | None = None, kind: str | None = None) -> None:
        self.positive = None if positive is None else plain(positive)
        self.kind = kind

    @classmethod
    def of(cls, model: Any, positive: str | None = None) -> "LabelReader":
        """For a model that has learned, and so has classes."""
        known = model.classes_
        if positive is None and model.pos_label is not None and f"not {model.pos_label}" in known.tolist():
            positive = model.pos_label
        kind = known.dtype.kind
        return cls(positive, {"u": "i", "O": "U"}.get(kind, kind))

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
        if None in values:
            raise ValueError("the label is missing")
        if self.positive is not None:
            names = [self.positive if value == self.positive else f"not {self.positive}" for value in values]
            return np.array(names)[codes]
        made = [_value(str(value), self.kind or "U") for value in values]
        return np.array(made)[codes]


def texts(column: Any) -> tuple[list[str | None], Array]:
    """The different labels of a column, as text, and which one each row has."""
    if isinstance(column, np.ndarray):
        found, codes = np.unique(column, return_inverse=True)
        return [plain(value) for value in found.tolist()], codes
    pyarrow = needed("pyarrow", "io", "Reading labels")
    if pyarrow.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    encoded = pyarrow.chunked_array(column).combine_chunks().dictionary_encode(null_encoding="encode")
    return [plain(value) for value in encoded.dictionary.to_pylist()], encoded.indices.to_numpy(zero_copy_only=False)


def plain(value: Any) -> str | None:
    """A label as text, the same for all formats; None if it is missing.

    >>> plain(1.0), plain("1.0"), plain("+1"), plain(True), plain("FALSE"), plain(" fraud "), plain(""), plain(0.5)
    ('1', '1', '1', 'true', 'false', 'fraud', None, '0.5')
    """
    if value is None or value != value:
        return None
    text = str(value).strip()
    if text.lower() in ("true", "false"):
        return text.lower()
    try:
        number = float(text)
    except ValueError:
        return text or None
    if number != number:
        return None
    return str(int(number)) if number.is_integer() else repr(number)


def kind_of(found: list[str]) -> str:
    """What labels are: "b", "i", "f" or "U", as NumPy has them."""
    if all(text in ("true", "false") for text in found):
        return "b"
    for kind in "if":
        try:
            for text in found:
                _value(text, kind)
        except ValueError:
            continue
        return kind
    return "U"


def _value(text: str, kind: str) -> Any:
    try:
        if kind == "b":
            return {"true": True, "false": False}[text]
        return {"i": int, "f": float, "U": str}[kind](text)
    except (KeyError, ValueError):
        raise ValueError(f"the label is {text!r}, but labels before it were {NAMES[kind]}: --positive VALUE") from None
