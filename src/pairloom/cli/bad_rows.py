"""Malformed rows: reported with their place, or put aside."""

from collections.abc import Callable

import typer

from pairloom.cli.ending import message_of
from pairloom.cli.outputs import Output
from pairloom.cli.taken import Taken
from pairloom.data.readers import Faults, InputError, Piece, in_halves
from pairloom.data.readers.sifting import REFUSED

MOST_REPORTED = 5
"""Skipped rows that are printed one by one."""


class BadRow(InputError):
    """A row that stops a command. ``row``: its place in the piece."""

    def __init__(self, text: str, row: int) -> None:
        super().__init__(text)
        self.row = row


class BadRows:
    """What becomes of them: the first stops the command, or all are counted, and put into a file as they were."""

    def __init__(self, skip: bool, quarantine: Output | None, quiet: bool = False) -> None:
        if quarantine is not None and not skip:
            raise ValueError("--quarantine is for rows that are skipped: --on-bad-row skip")
        self.skip, self.quarantine, self.quiet, self.count = skip, quarantine, quiet, 0

    def through(
        self, piece: Piece, taken: Callable[[], Taken], sifted: Callable[[], tuple[Taken, Faults]],
        attempt: Callable[[Taken], Faults | None],
    ) -> None:  # fmt: skip
        """Attempt rows of a piece, in order: all that can be taken, or up to the first that cannot, which is reported.

        ``taken`` gives all rows or raises ValueError; ``sifted``, which takes longer, those that can be taken. What
        ``attempt`` returns are faults of rows that it left out.
        """
        try:
            attempt(taken())
            return
        except REFUSED:
            rows, faults = sifted()
        if faults and not self.skip:
            rows = rows[rows.rows < min(faults)]

        def on_bad(place: int, error: ValueError) -> None:
            if not self.skip:
                self.report(piece, int(rows.rows[place]), message_of(error))
            faults[int(rows.rows[place])] = message_of(error)

        in_halves(0, len(rows), lambda low, high: faults.update(attempt(rows[low:high]) or {}), on_bad)
        for row in sorted(faults):
            self.report(piece, row, faults[row])

    def report(self, piece: Piece, row: int, fault: str) -> None:
        """A row that cannot be taken."""
        self.count += 1
        if not self.skip or (not self.quiet and self.count <= MOST_REPORTED):
            text = f"{piece.name}:{piece.records.line_of(row)}: {fault}"
            if not self.skip:
                raise BadRow(text, row)
            last = "; the next ones are counted" if self.count == MOST_REPORTED else ""
            typer.echo(f"{text} (skipped{last})", err=True)
        if self.quarantine is not None:
            header = b"" if self.quarantine.size() else piece.header
            self.quarantine.write(header + piece.records.record(row))
