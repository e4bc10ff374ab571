"""Input that is refused: what is wrong, at which row, and what to do about it, each by itself."""

from typing import Any

LONGEST = 60
"""Letters of a value that a message shows."""


class Refusal(ValueError):
    """A ValueError whose text is for Python, and whose parts are for others, who know rows by other names.

    ``str(error)`` is ``what``, the row, ``then`` and the advice for Python. ``what`` alone leaves out row and advice;
    ``for_command`` adds the advice that names options of the command line.

    >>> error = Refusal("column 'a' holds text", row=3, python=": pass columns=", command=": --set columns.a=category")
    >>> str(error), error.what, error.for_command
    ("column 'a' holds text at row 3: pass columns=", "column 'a' holds text", "column 'a' holds text: --set columns.a=category")
    """  # noqa: E501

    def __init__(
        self, what: str, *, row: int | None = None, then: str = "", python: str = "", command: str = ""
    ) -> None:
        super().__init__(what + ("" if row is None else f" at row {row}") + then + python)
        self.what = what + then
        self.for_command = what + then + command


def what_of(error: ValueError) -> str:
    """What is wrong, without row and advice where an error has them apart."""
    return error.what if isinstance(error, Refusal) else str(error)


def shown(value: Any) -> str:
    """A value in a message: short, and never deeper than it is safe to look.

    >>> shown("a" * 100)[:8], shown([[[1]]]), shown(3)
    ("'aaaaaaa", 'a list', '3')
    """
    if isinstance(value, (list, tuple, dict, set, frozenset)):
        return f"a {type(value).__name__}"
    try:
        return f"{value!r:.{LONGEST}}"
    except ValueError:  # a whole number of more digits than Python prints
        return "a number of thousands of digits"
