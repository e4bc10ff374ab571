"""`pairloom fit`: fit a model on rows of files and pipes."""

import hashlib
from collections import Counter
from time import monotonic
from typing import Any

import numpy as np
import typer

from pairloom.cli.bad_rows import BadRow, BadRows
from pairloom.cli.checkpoints import FitCheckpoints
from pairloom.cli.columns import useless_lines, useless_values
from pairloom.cli.console import AUC_WINDOW, Progress, print_result, to_json
from pairloom.cli.errors import error_message
from pairloom.cli.fit_options import FitOptions
from pairloom.cli.labels import LabelReader
from pairloom.cli.model_file import digest_of
from pairloom.cli.monitor import finish_monitor, set_monitor
from pairloom.cli.outputs import Outputs
from pairloom.cli.row_batch import RowBatch
from pairloom.cli.rows import RowReader
from pairloom.cli.signals import SignalGate
from pairloom.cli.starting import first_model, malformed_values
from pairloom.data.readers import readers
from pairloom.data.readers.base import Chunk, RowErrors
from pairloom.data.readers.opening import FileError, list_files
from pairloom.estimators.saving import FileColumns
from pairloom.persist import save


class Fit:
    """A run: the model, its position in the input, and a digest of the rows before it."""

    def __init__(self, options: FitOptions, gate: SignalGate, outputs: Outputs) -> None:
        self.options, self.gate, self.progress = options, gate, Progress(options.quiet)
        self.model, self.labels = first_model(options)
        self.before, self.malformed = self._learned_rows, Counter(malformed_values(self.model))
        self.outputs, self.out, self.log = outputs, outputs.add(options.model), outputs.add_optional(options.log)
        self.bad = BadRows(options.on_bad_row, outputs.add_optional(options.quarantine), options.quiet)
        self.position, self.start, self.started_at = 0, 0, monotonic()
        self.expected: dict[str, Any] | None = None
        self.digest, self.columns = hashlib.blake2b(digest_size=16), hashlib.blake2b(digest_size=16)
        self.source: str | None = None
        self.rejected_labels: dict[Any, str] = {}
        self.checkpoints: FitCheckpoints | None = None
        if options.checkpoint is not None:
            self.checkpoints = FitCheckpoints(options.checkpoint, options.every, options.fixed, options.resume)
            self._resume(self.checkpoints)
        set_monitor(self.model, options.monitor)
        known: FileColumns | None = self.model._file_columns
        self.reader = RowReader(
            self.model, label=options.label, weight=options.weight or (known.weight if known else None),
            drop=options.drop, strict=True, missing=options.on_bad_row == "missing",
        )  # fmt: skip

    def _resume(self, checkpoints: FitCheckpoints) -> None:
        """Continue from the newest checkpoint, if there is one."""
        found = checkpoints.newest()
        if found is None:
            return
        self.model, self.start, record = found
        self.expected = record
        self.bad.count = record["bad"]
        self.bad.malformed.update(Counter(malformed_values(self.model)) - self.malformed)
        for output, size in ((self.bad.quarantine, record["quarantined"]), (self.log, record.get("logged"))):
            if output is not None:
                output.resume(size)
        if self.options.start is None:
            self.labels = LabelReader(self.options.positive, record["labels"])
        self.progress.note(f"Resuming after row {self.start:,}.")

    def learn(self) -> None:
        """Learn all rows until the end of the input, a malformed row, or a signal."""
        options, width = self.options, self.options.width or self.reader.width
        try:
            for reader in readers(options.files, options.format, chunk_rows=options.chunk, gate=self.gate, width=width):
                self.reader.open(reader)
                self.source = None
                for chunk in reader.chunks():
                    self._learn_chunk(chunk)
                    if self.gate.closed:
                        return
        finally:
            self.progress.clear()
        if self.position < self.start and not self.gate.closed:
            raise ValueError(f"the input ends at row {self.position:,}, before the checkpoint at row {self.start:,}")

    def _learn_chunk(self, chunk: Chunk) -> None:
        """Learn a chunk; rows before the checkpoint only update the digest."""
        low = min(max(0, self.start - self.position), len(chunk))
        self._advance(chunk, 0, low)
        if low == len(chunk):
            return
        self.reader.start_chunk(chunk)
        self.rejected_labels.clear()
        try:
            self.bad.process(
                chunk,
                lambda: self.reader.read(chunk, low, len(chunk)),
                lambda: self.reader.read_valid(chunk, low, len(chunk), self.labels.read),
                self._learn_batch,
            )
        except BadRow as bad:
            self._advance(chunk, low, bad.row)
            raise
        self._advance(chunk, low, len(chunk))
        self._report_progress()
        if self.checkpoints is not None and self.checkpoints.checkpoints.due(self.position):
            self.checkpoint()

    def _learn_batch(self, batch: RowBatch) -> RowErrors:
        """Learn rows, or raise ValueError and change nothing.

        Rows with a label that the model has rejected before are left out, and their errors are returned.
        """
        y = self.labels.read(batch.labels)
        errors: RowErrors = {}
        if self.rejected_labels:
            rejected = np.isin(y, list(self.rejected_labels))
            pairs = zip(batch.rows[rejected].tolist(), y[rejected].tolist(), strict=True)
            errors = {row: self.rejected_labels[label] for row, label in pairs}
            batch, y = batch[~rejected], y[~rejected]
        if len(y) == 0:
            return errors
        classes = None if hasattr(self.model, "stream_") else self.labels.classes
        try:
            self.model.partial_fit(batch.X, y, classes=classes, sample_weight=batch.weight)
        except ValueError as error:
            [label, *others] = y.tolist()
            if not others and str(error).startswith(f"label {label!r} "):
                self.rejected_labels[label] = error_message(error)
            raise
        self.model._file_columns = self._file_columns
        if batch.malformed_counts:
            self.model._encoder.count_malformed(batch.malformed_counts)
        return errors

    def _advance(self, chunk: Chunk, low: int, high: int) -> None:
        """Advance the position and the digest; at the checkpoint, compare the digest with its record."""
        if low == high:
            return
        if self.checkpoints is not None:
            if self.source is None:  # the first row of a file
                self.columns.update(chunk.columns)
                self.source = chunk.name
            chunk.records.feed(self.digest, low, high)
        self.position += high - low
        if self.position == self.start and self.expected is not None:
            self._compare(chunk.name, self.expected)
            self.expected = None

    def _compare(self, name: str, expected: dict[str, Any]) -> None:
        digests = {f"first {self.start:,} rows": ("digest", self.digest), "columns": ("columns", self.columns)}
        for what, (key, digest) in digests.items():
            if expected.get(key, digest.hexdigest()) != digest.hexdigest():
                raise ValueError(
                    f"{name}: the {what} differ from those of the checkpoint; --resume needs the same input from the "
                    "start"
                )

    def checkpoint(self) -> None:
        """Save a checkpoint, unless there is no folder or no new row."""
        if self.checkpoints is not None and self.position > self.start:
            sizes = [0 if one is None else one.sync() for one in (self.bad.quarantine, self.log)]
            record = {"digest": self.digest.hexdigest(), "columns": self.columns.hexdigest(), "bad": self.bad.count}
            record |= {"quarantined": sizes[0], "logged": sizes[1], "labels": self.labels.kind}
            self.checkpoints.save(self.model, self.position, record)

    def finish(self) -> None:
        """Save the checkpoint and the model, replace all outputs, and write the last monitor page."""
        self.checkpoint()
        self.save()
        if self.stays:
            return
        if self.checkpoints is not None:
            self.checkpoints.saved_model(digest_of(self.out.partial))
        self.outputs.commit()
        finish_monitor(self.model)

    def save(self) -> None:
        """Write the model to NAME.partial."""
        self.out.save(lambda path: save(self.model, path))

    def save_partial(self, error: Exception) -> None:
        """Save the model learned before an error to NAME.partial, and add a note to the error."""
        if not self.has_learned or self.expected is not None:
            return
        try:
            self.save()
            if isinstance(error, FileError):
                self.checkpoint()
        except OSError as another:
            error.add_note(f"The partial model could not be saved: {another}")
            return
        rows = f" of the first {self.position:,} rows" if isinstance(error, FileError) else ""
        unchanged = f"; {self.options.model} is unchanged" if self.options.model.exists() else ""
        error.add_note(f"Partial model{rows}: {self.out.partial}{unchanged}")

    @property
    def stays(self) -> bool:
        """Whether a signal stopped a run in place: a model with some of these rows could not learn them all later."""
        return self.gate.exit_code is not None and self.options.in_place

    @property
    def saved(self) -> str:
        """What the run has written."""
        model = f"{self.out.partial}; {self.options.model} is unchanged" if self.stays else str(self.options.model)
        return f"{model}{f' and a checkpoint in {self.options.checkpoint}' if self.options.checkpoint else ''}"

    @property
    def has_learned(self) -> bool:
        """Whether the model has learned a row of this input."""
        return self.start > 0 or self._learned_rows > self.before

    @property
    def _learned_rows(self) -> int:
        """Number of rows learned; -1 before the first call."""
        return self.model.n_seen_ if hasattr(self.model, "stream_") else -1

    @property
    def _file_columns(self) -> FileColumns | None:
        """The columns of the files besides the features; None for LIBSVM."""
        reader = self.reader
        if reader.label is None:
            return None
        return FileColumns(reader.label, reader.weight, sorted({*reader.drop, *reader.ignored}))

    @property
    def speed(self) -> float:
        """Rows per second of this process."""
        return max(0, self.position - self.start) / max(monotonic() - self.started_at, 1e-9)

    def _report_progress(self) -> None:
        if (self.log is None and not self.progress.due) or not self.has_learned:
            return
        auc = self.model.auc_
        if self.log is not None:
            line = {"row": self.position, "auc": auc.value, "low": auc.low, "high": auc.high, "bad": self.bad.count}
            line |= {"bytes": self.model.nbytes_, "rows_per_second": round(self.speed)}
            self.log.write(to_json(line) + "\n")
        if self.progress.due:
            self.progress.update(f"{self.position:,} rows  AUC {auc}  {self.speed:,.0f} rows/s")

    def print_result(self) -> None:
        path = self.out.partial if self.stays else self.options.model
        auc, size = self.model.auc_, path.stat().st_size
        classes = [one.item() for one in self.model.classes_]
        values = {
            "rows": self.position, "learned": self.model.n_seen_, "bad": self.bad.count, "classes": classes,
            "auc": {"value": auc.value, "low": auc.low, "high": auc.high}, "rows_per_second": round(self.speed),
            "model": str(path), "bytes": size, "stopped": self.gate.exit_code,
            "malformed": dict(self.bad.malformed), **useless_values(self.model),
        }  # fmt: skip
        skipped = f", {self.bad.count:,} skipped" if self.bad.count else ""
        continued = f"; {self.model.n_seen_:,} learned in all" if self.options.start is not None else ""
        lines = [
            ("rows", f"{self.position:,}{skipped}; {self.speed:,.0f} per second{continued}"),
            ("AUC", f"{auc} {AUC_WINDOW}"),
            ("model", f"{path}, {size / 1e6:.3g} MB"),
        ]
        print_result(lines, values, self.options.json)


def run(options: FitOptions) -> None:
    """Fit a model, save it, and print the result."""
    list_files(options.files)
    with SignalGate() as gate, Outputs() as outputs:
        fit = Fit(options, gate, outputs)
        try:
            fit.learn()
        except Exception as error:
            fit.save_partial(error)
            raise
        if not fit.has_learned:
            if gate.exit_code is None:
                raise FileError(f"{', '.join(options.files)}: no rows to learn from")
            raise typer.Exit(gate.exit_code)
        fit.finish()
    if len(fit.model.classes_) < 2:
        fit.progress.note(f"pairloom: warning: only one class so far, {fit.model.classes_[0]}: nothing to rank yet")
    fit.bad.note(fit.progress)
    for text in useless_lines(fit.model):
        fit.progress.note(text)
    fit.print_result()
    if gate.exit_code is not None:
        fit.progress.note(f"Stopped after row {max(fit.position, fit.start):,}; saved {fit.saved}.")
        raise typer.Exit(gate.exit_code)
