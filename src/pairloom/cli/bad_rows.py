"""Malformed rows: report them with their position, skip and quarantine them, or treat their values as missing."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import typer

from pairloom.cli.console import Progress
from pairloom.cli.errors import error_message
from pairloom.cli.outputs import Output
from pairloom.cli.row_batch import RowBatch
from pairloom.data.readers.base import PARSE_ERRORS, Chunk, RowErrors, bisect_rows
from pairloom.data.readers.opening import FileError

MAX_PRINTED = 5
"""Skipped rows that are printed one by one."""


class BadRow(FileError):
    """A malformed row that stops a command. ``row``: its number in the chunk."""

    def __init__(self, text: str, row: int) -> None:
        super().__init__(text)
        self.row = row


class BadRows:
    """Handler of malformed rows: stops at the first one, or counts them and copies them to a file.

    ``count``: number of rows skipped. ``malformed``: numbers of values that were treated as missing, by column.
    """

    def __init__(self, action: str, quarantine: Output | None, quiet: bool = False) -> None:
        self.skip = action == "skip"
        if quarantine is not None and not self.skip:
            raise ValueError("--quarantine requires --on-bad-row skip")
        self.quarantine, self.quiet, self.count = quarantine, quiet, 0
        self.malformed = Counter[str]()

    def process(
        self, chunk: Chunk, read: Callable[[], RowBatch], read_valid: Callable[[], tuple[RowBatch, RowErrors]],
        attempt: Callable[[RowBatch], RowErrors | None],
    ) -> None:  # fmt: skip
        """Call ``attempt`` for all valid rows of a chunk in order, or for those before the first malformed row.

        ``read`` returns all rows or raises ValueError; ``read_valid``, which is slower, returns the valid ones.
        ``attempt`` returns errors of rows that it left out.
        """

        def accept(batch: RowBatch) -> RowErrors:
            left_out = attempt(batch) or {}
            taken = batch[~np.isin(batch.rows, list(left_out))] if left_out else batch
            self.malformed.update(taken.malformed_counts)
            return left_out

        try:
            accept(read())
            return
        except PARSE_ERRORS:
            batch, errors = read_valid()
        if errors and not self.skip:
            batch = batch[batch.rows < min(errors)]

        def on_error(place: int, error: ValueError) -> None:
            if not self.skip:
                self.report(chunk, int(batch.rows[place]), error_message(error))
            errors[int(batch.rows[place])] = error_message(error)

        bisect_rows(0, len(batch), lambda low, high: errors.update(accept(batch[low:high])), on_error)
        for row in sorted(errors):
            self.report(chunk, row, errors[row])

    def note(self, progress: Progress) -> None:
        """Print how many values were treated as missing."""
        if self.malformed:
            counts = ", ".join(f"{name!r} {count:,}" for name, count in self.malformed.items())
            progress.note(f"pairloom: warning: malformed values treated as missing, by column: {counts}")

    def report(self, chunk: Chunk, row: int, message: str) -> None:
        """Stop at a malformed row, or skip it."""
        self.count += 1
        if not self.skip or (not self.quiet and self.count <= MAX_PRINTED):
            text = f"{chunk.name}:{chunk.records.line_of(row)}: {message}"
            if not self.skip:
                raise BadRow(text, row)
            last = "; further rows are counted only" if self.count == MAX_PRINTED else ""
            typer.echo(f"{text} (skipped{last})", err=True)
        if self.quarantine is not None:
            header = b"" if self.quarantine.size() else chunk.header
            self.quarantine.write(header + chunk.records.record(row))
