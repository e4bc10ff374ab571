"""Malformed rows: found by halving, told with their place, or put aside."""

from collections.abc import Callable

import typer

from pairloom.cli.ending import message_of
from pairloom.cli.outputs import Output
from pairloom.data.readers import InputError, Piece

MOST_TOLD = 5
"""Rows that are told one by one where they are skipped."""


class BadRow(InputError):
    """A row that stops a command. ``row``: its place in the piece."""

    def __init__(self, text: str, row: int) -> None:
        super().__init__(text)
        self.row = row


def in_halves(
    low: int, high: int, attempt: Callable[[int, int], None], on_bad: Callable[[int, ValueError], None]
) -> None:
    """Attempt rows as a whole; where that raises ValueError, and so changes nothing, each half of them in turn.

    Rows are attempted in order, and those before a bad one have been when it is told. b bad rows of n cost about
    2 b log2(n / b) attempts more.

    >>> def attempt(low, high):
    ...     if low <= 5 < high:
    ...         raise ValueError("five")
    ...     print("rows", low, "to", high)
    >>> in_halves(0, 8, attempt, lambda row, error: print(error, "is row", row))
    rows 0 to 4
    rows 4 to 5
    five is row 5
    rows 6 to 8
    """
    if low >= high:
        return
    try:
        attempt(low, high)
    except ValueError as error:
        if high - low == 1:
            on_bad(low, error)
            return
    else:
        return
    middle = (low + high) // 2
    in_halves(low, middle, attempt, on_bad)
    in_halves(middle, high, attempt, on_bad)


class BadRows:
    """What becomes of them: the first stops the command, or all are counted, and put into a file as they were."""

    def __init__(self, skip: bool, quarantine: Output | None, quiet: bool = False) -> None:
        if quarantine is not None and not skip:
            raise ValueError("--quarantine is for rows that are skipped: --on-bad-row skip")
        self.skip, self.quarantine, self.quiet, self.count = skip, quarantine, quiet, 0

    def tell(self, piece: Piece, row: int, error: ValueError) -> None:
        """A row that cannot be taken."""
        text = f"{piece.name}:{piece.records.line_of(row)}: {message_of(error)}"
        if not self.skip:
            raise BadRow(text, row)
        self.count += 1
        if not self.quiet and self.count <= MOST_TOLD:
            last = "; the next ones are counted" if self.count == MOST_TOLD else ""
            typer.echo(f"{text} (skipped{last})", err=True)
        if self.quarantine is not None:
            header = b"" if self.quarantine.size() else piece.header
            self.quarantine.write(header + piece.records.record(row))
