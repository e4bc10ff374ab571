"""Kinds of columns as types of pyarrow tell them."""

from typing import Any

from pairloom.base.extras import needed

NUMBER = r"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$"
CODE = r"^\s*[-+]?0[0-9xX][0-9a-fA-F]*\s*$"
"""Whole numbers with zeros before them: 01 is not 1 where it is a code, such as that of a place."""

DATE = r"^\s*\d{4}-\d{2}-\d{2}([T ]|\s*$)"

Kinds = dict[str, str | None]
"""What is to be read: names, and of each column "number", "category" (text), "date", or None while nothing is known."""


def kind_of_type(type_: Any) -> str | None:
    """The kind that a type stands for; None for a column without values. Whatever else there is counts as text.

    >>> import pyarrow
    >>> kind_of_type(pyarrow.int8()), kind_of_type(pyarrow.date32()), kind_of_type(pyarrow.time32("s"))
    ('number', 'date', 'category')
    """
    types = needed("pyarrow.types", "io", "Reading columns")
    if types.is_null(type_):
        return None
    if any(is_one(type_) for is_one in (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)):
        return "number"
    return "date" if types.is_timestamp(type_) or types.is_date(type_) else "category"


def kind_of_text(column: Any) -> str:
    """The kind of a column that holds text: "number" or "date" if most of its values are such, else "category".

    So a slip in a column of numbers is found, and does not turn it into one of categories. Codes do: one whole number
    with a zero before it is enough.

    >>> import pyarrow
    >>> kind_of_text(pyarrow.array(["1", "2.5", "x", None])), kind_of_text(pyarrow.array(["A1", "7", "B2"]))
    ('number', 'category')
    >>> kind_of_text(pyarrow.array(["10115", "01067"]))
    'category'
    """
    compute = needed("pyarrow.compute", "io", "Reading columns")
    if has_codes(column):
        return "category"
    for kind, pattern in (("number", NUMBER), ("date", DATE)):
        hits = compute.sum(compute.match_substring_regex(column, pattern)).as_py() or 0
        if hits > 0.5 * (compute.sum(compute.not_equal(column, "")).as_py() or 0):
            return kind
    return "category"


def has_codes(column: Any) -> bool:
    """Whether some text is a whole number with a zero before it, or in hexadecimal digits."""
    compute = needed("pyarrow.compute", "io", "Reading columns")
    return bool(compute.any(compute.match_substring_regex(column, CODE)).as_py())


def as_dates(column: Any) -> Any:
    """Text as times, if all of it is such; else as it is: whoever takes it says which value is none."""
    pyarrow = needed("pyarrow", "io", "Reading columns")
    compute = needed("pyarrow.compute", "io", "Reading columns")
    try:
        return compute.if_else(compute.equal(column, ""), None, column).cast(pyarrow.timestamp("us"))
    except pyarrow.ArrowInvalid:
        return column
