"""`pairloom fit`: rows of files and pipes in, a model out."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import typer

from pairloom.cli.bad_rows import BadRow, BadRows
from pairloom.cli.checkpoints import Run
from pairloom.cli.ending import message_of
from pairloom.cli.intake import Intake
from pairloom.cli.labels import LabelReader
from pairloom.cli.outputs import Outputs
from pairloom.cli.parameters import estimator
from pairloom.cli.saying import Progress, finite, result
from pairloom.cli.signals import Stop
from pairloom.cli.taken import Taken, label_faults, readable
from pairloom.data.readers import Faults, InputError, Piece, files_in, in_halves, readers
from pairloom.persist import save

WINDOW = "of the newest 4,096 rows, each scored before it was learned"


@dataclass(frozen=True)
class Asked:
    """The options of the command."""

    files: Sequence[str]
    model: Path
    system: str
    settings: Sequence[str]
    label: str | None
    positive: str | None
    weight: str | None
    drop: Sequence[str]
    format: str
    width: int | None
    chunk: int
    checkpoint: Path | None
    every: int
    resume: bool
    half_life: float | None
    log: Path | None
    skip: bool
    quarantine: Path | None
    json: bool
    quiet: bool

    @property
    def fixed(self) -> dict[str, Any]:
        """What decides which model comes out, besides the rows."""
        names = ("system", "settings", "label", "positive", "weight", "drop", "width", "chunk", "half_life", "skip")
        return {name: list(v) if isinstance(v := asdict(self)[name], (list, tuple)) else v for name in names}


class Fit:
    """A run: a model, its place in the stream, and a digest of the rows before it."""

    def __init__(self, asked: Asked, gate: Stop, outputs: Outputs) -> None:
        self.asked, self.gate, self.progress = asked, gate, Progress(asked.quiet)
        more: dict[str, Any] = {} if asked.positive is None else {"pos_label": LabelReader(asked.positive).positive}
        if asked.half_life is not None:
            more["half_life"] = int(asked.half_life) if asked.half_life.is_integer() else asked.half_life
        self.model = estimator(asked.system, asked.settings, **more)
        self.outputs, self.out, self.log = outputs, outputs.new(asked.model), outputs.add(asked.log)
        self.bad = BadRows(asked.skip, outputs.add(asked.quarantine), asked.quiet)
        self.labels = LabelReader(asked.positive)
        self.position, self.start, self.began = 0, 0, monotonic()
        self.expected: dict[str, Any] | None = None
        self.digest, self.columns = hashlib.blake2b(digest_size=16), hashlib.blake2b(digest_size=16)
        self.source: str | None = None
        self.refused: dict[Any, str] = {}
        self.run = None if asked.checkpoint is None else Run(asked.checkpoint, asked.every, asked.fixed, asked.resume)
        if self.run is not None:
            self._go_on(self.run)
        self.intake = Intake(self.model, label=asked.label, weight=asked.weight, drop=asked.drop, strict=True)

    def _go_on(self, run: Run) -> None:
        """From the newest checkpoint, if there is one."""
        found = run.newest()
        if found is None:
            return
        self.model, self.start, record = found
        self.expected = record
        self.bad.count = record["bad"]
        for output, size in ((self.bad.quarantine, record["quarantined"]), (self.log, record.get("logged"))):
            if output is not None:
                output.resume(size)
        self.labels = LabelReader(self.asked.positive, record["labels"])
        self.progress.note(f"Going on after row {self.start:,}.")

    def learn(self) -> None:
        """All rows, until the end, a malformed one, or a signal."""
        asked = self.asked
        try:
            for reader in readers(
                asked.files, asked.format, most=asked.chunk, gate=self.gate, width=asked.width or self.intake.width
            ):
                self.intake.open(reader)
                self.source = None
                for piece in reader.pieces():
                    self._learn(piece)
                    if self.gate.closed:
                        return
        finally:
            self.progress.clear()
        if self.position < self.start and not self.gate.closed:
            raise ValueError(f"the input ends at row {self.position:,}, before the checkpoint, row {self.start:,}")

    def _learn(self, piece: Piece) -> None:
        """A piece; what lies before the checkpoint is only looked at."""
        low = min(max(0, self.start - self.position), len(piece))
        self._advance(piece, 0, low)
        if low == len(piece):
            return
        before = self.position
        self.intake.begin(piece)
        self.refused.clear()
        try:
            self.bad.through(
                piece,
                lambda: self.intake.take(piece, low, len(piece)),
                lambda: self._sift(piece, low),
                self._attempt,
            )
        except BadRow as bad:
            self._advance(piece, low, bad.row)
            raise
        self._advance(piece, low, len(piece))
        self._tell()
        if self.run is not None and self.run.due(before, self.position):
            self.checkpoint()

    def _sift(self, piece: Piece, low: int) -> tuple[Taken, Faults]:
        taken, faults = self.intake.sift(piece, low, len(piece))
        self._look_at_labels(taken)
        strange = label_faults(taken, self.labels.read)
        return taken[~np.isin(taken.rows, list(strange))], {**strange, **faults}

    def _look_at_labels(self, taken: Taken) -> None:
        """The first labels say of which kind all are; those that cannot be read say nothing."""
        if self.labels.unsure:
            found: list[Any] = []
            in_halves(
                0, len(taken), lambda low, high: found.append(readable(taken.labels[low:high])), lambda *bad: None
            )
            self.labels.look(found)

    def _attempt(self, taken: Taken) -> Faults:
        """Learn rows, or raise ValueError and change nothing.

        A label that the model has refused once it would refuse again: such rows are left out, and returned.
        """
        self._look_at_labels(taken)
        y = self.labels.read(taken.labels)
        if self.refused:
            known = np.isin(y, list(self.refused))
            faults = {
                row: self.refused[label]
                for row, label in zip(taken.rows[known].tolist(), y[known].tolist(), strict=True)
            }
            taken, y = taken[~known], y[~known]
        else:
            faults = {}
        if len(y) == 0:
            return faults
        classes = None if self.started else self.labels.classes
        try:
            self.model.partial_fit(taken.X, y, classes=classes, sample_weight=taken.weight)
        except ValueError as error:
            [label, *others] = y.tolist()
            if not others and str(error).startswith(f"label {label!r} "):
                self.refused[label] = message_of(error)
            raise
        return faults

    def _advance(self, piece: Piece, low: int, high: int) -> None:
        """Rows that are behind; at the checkpoint they must be those that were behind it."""
        if low < high:
            if self.run is not None:
                if self.source is None:  # the first row of a file
                    self.columns.update(piece.columns)
                    self.source = piece.name
                piece.records.feed(self.digest, low, high)
            self.position += high - low
            if self.position == self.start and self.expected is not None:
                self._compare(piece.name, self.expected)
                self.expected = None

    def _compare(self, name: str, expected: dict[str, Any]) -> None:
        """Rows and columns up to the checkpoint must be those that it has learned."""
        for what, digest in (("digest", self.digest), ("columns", self.columns)):
            if expected.get(what, digest.hexdigest()) != digest.hexdigest():
                words = f"the first {self.start:,} rows" if what == "digest" else "the columns, by name and order,"
                raise ValueError(
                    f"{name}: {words} are not those that the checkpoint has learned: --resume needs the same input "
                    "from the start; or name another folder"
                )

    def checkpoint(self) -> None:
        """Save the run, if it has a folder, unless it has been there."""
        if self.run is not None and self.position > self.start:
            sizes = [0 if one is None else one.sync() for one in (self.bad.quarantine, self.log)]
            record = {"digest": self.digest.hexdigest(), "columns": self.columns.hexdigest(), "bad": self.bad.count}
            record |= {"quarantined": sizes[0], "logged": sizes[1], "labels": self.labels.kind}
            self.run.save(self.model, self.position, record)

    def finish(self) -> None:
        """Save the run and the model, and replace the files that are there."""
        self.checkpoint()
        self.save()
        self.outputs.commit()

    def save(self) -> None:
        """Write the model, not yet in its place."""
        self.out.save(lambda path: save(self.model, path))

    def keep(self, error: Exception) -> None:
        """Save what was learned before a failure, in MODEL.partial; the error says so."""
        if not self.started or self.expected is not None:
            return
        try:
            self.save()
            if isinstance(error, InputError):
                self.checkpoint()
        except OSError as another:
            error.add_note(f"What was learned before it could not be saved: {another}")
            return
        what = f"The {self.position:,} rows before it are" if isinstance(error, InputError) else "What was learned is"
        old = f" {self.asked.model} is unchanged." if self.asked.model.exists() else ""
        error.add_note(f"{what} in {self.out.partial}.{old}")

    @property
    def started(self) -> bool:
        """Whether the model has seen a row."""
        return hasattr(self.model, "stream_")

    @property
    def speed(self) -> float:
        """Rows per second, of this process."""
        return max(0, self.position - self.start) / max(monotonic() - self.began, 1e-9)

    def _tell(self) -> None:
        if self.log is None and not self.progress.due:
            return
        if not self.started:
            return
        auc = self.model.auc_
        if self.log is not None:
            line = {"row": self.position, "auc": auc.value, "low": auc.low, "high": auc.high, "bad": self.bad.count}
            line |= {"bytes": self.model.nbytes_, "rows_per_second": round(self.speed)}
            self.log.write(json.dumps(finite(line)) + "\n")
        if self.progress.due:
            self.progress.say(f"{self.position:,} rows  AUC {auc}  {self.speed:,.0f} rows/s")

    def report(self) -> None:
        """The result."""
        auc, size = self.model.auc_, self.asked.model.stat().st_size
        classes = [one.item() for one in self.model.classes_]
        values = {
            "rows": self.position, "learned": self.model.n_seen_, "bad": self.bad.count, "classes": classes,
            "auc": {"value": auc.value, "low": auc.low, "high": auc.high}, "rows_per_second": round(self.speed),
            "model": str(self.asked.model), "bytes": size, "stopped": self.gate.code,
        }  # fmt: skip
        skipped = f", {self.bad.count:,} skipped" if self.bad.count else ""
        lines = [
            ("rows", f"{self.position:,}{skipped}; {self.speed:,.0f} per second"),
            ("AUC", f"{auc} {WINDOW}"),
            ("model", f"{self.asked.model}, {size / 1e6:.3g} MB"),
        ]
        result(lines, values, self.asked.json)


def run(asked: Asked) -> None:
    """Learn, save, and say what came of it."""
    files_in(asked.files)
    with Stop() as gate, Outputs() as outputs:
        fit = Fit(asked, gate, outputs)
        try:
            fit.learn()
        except Exception as error:
            fit.keep(error)
            raise
        if not fit.started:
            if gate.code is None:
                raise InputError(f"{', '.join(asked.files)}: there are no rows to learn from")
            raise typer.Exit(gate.code)
        fit.finish()
    if len(fit.model.classes_) < 2:
        fit.progress.note(f"pairloom: warning: all labels are {fit.model.classes_[0]}: there is nothing to rank yet")
    fit.report()
    if gate.code is not None:
        also = f" and a checkpoint in {asked.checkpoint}" if asked.checkpoint else ""
        fit.progress.note(f"Stopped after row {max(fit.position, fit.start):,}: the model is in {asked.model}{also}.")
        raise typer.Exit(gate.code)
