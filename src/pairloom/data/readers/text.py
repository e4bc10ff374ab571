"""Columns of text of pyarrow: which they are, and their conversion to dates."""

from typing import Any

from pairloom.base.extras import import_extra


def as_dates(column: Any) -> Any:
    """Convert text to timestamps; return it unchanged if a value is not a date, which the model will report."""
    pyarrow = import_extra("pyarrow", "io", "Reading columns")
    compute = import_extra("pyarrow.compute", "io", "Reading columns")
    try:
        return compute.if_else(compute.equal(column, ""), None, column).cast(pyarrow.timestamp("us"))
    except pyarrow.ArrowInvalid:
        return column


def is_text(column: Any) -> bool:
    """Whether a pyarrow column has a type of text."""
    types = import_extra("pyarrow.types", "io", "Reading columns")
    return bool(types.is_string(column.type) or types.is_large_string(column.type))
