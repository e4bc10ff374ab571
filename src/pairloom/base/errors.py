"""The error for invalid data: what is wrong, at which row, and what to do. Imports nothing that is slow to load."""

from typing import Any

MAX_REPR = 60
"""Characters of a value that a message shows."""


class InvalidDataError(ValueError):
    """A ValueError whose message other interfaces, which number rows differently, can compose differently.

    ``str(error)`` is ``what``, the row, ``then`` and the advice for Python. The attribute ``what`` leaves out the row
    and the advice; ``for_command`` adds the advice that names command-line options.

    >>> error = InvalidDataError("column 'a' has text", row=3, python=": pass columns=", command=": use --set columns.a=")
    >>> str(error), error.what, error.for_command
    ("column 'a' has text at row 3: pass columns=", "column 'a' has text", "column 'a' has text: use --set columns.a=")
    """  # noqa: E501

    def __init__(
        self, what: str, *, row: int | None = None, then: str = "", python: str = "", command: str = ""
    ) -> None:
        super().__init__(what + ("" if row is None else f" at row {row}") + then + python)
        self.what = what + then
        self.for_command = what + then + command


def short_repr(value: Any) -> str:
    """Return a value for a message: at most 60 characters, containers by their type only.

    >>> short_repr("a" * 100)[:8], short_repr([[[1]]]), short_repr(3)
    ("'aaaaaaa", 'a list', '3')
    """
    if isinstance(value, (list, tuple, dict, set, frozenset)):
        return f"a {type(value).__name__}"
    try:
        return f"{value!r:.{MAX_REPR}}"
    except ValueError:  # an integer with more digits than Python prints
        return "an integer with thousands of digits"
