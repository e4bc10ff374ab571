"""`pairloom serve`: JSON lines in, JSON lines out. Rows are scored at once, and learned when their labels come.

in   {"id": 7, "amount": 12.5, "channel": "web"}      out  {"id": 7, "score": -3.1, "probability": 0.043}
in   {"id": 7, "label": 1}                            out  {"id": 7, "learned": 1041}
in   {"id": 8, "amount": 3.0, "channel": "app", "label": 0}: both at once
"""

import json
import sys
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from pairloom.cli.ending import in_other_words
from pairloom.cli.labels import LabelReader, plain
from pairloom.cli.predict import classifier
from pairloom.cli.saying import Progress
from pairloom.cli.signals import Stop
from pairloom.data.readers.jsonl import parsed
from pairloom.data.readers.records import Cutter, line_ends
from pairloom.persist import Checkpointer, save


@dataclass
class Pending:
    """Rows that were scored and wait for their labels, the oldest first; at most ``most``.

    Of those that had to go, as many ids are remembered: a label that comes too late is told from one that nobody knows.
    """

    most: int
    rows: "OrderedDict[Any, Any]" = field(default_factory=OrderedDict)
    gone: "OrderedDict[Any, None]" = field(default_factory=OrderedDict)

    def add(self, key: Any, row: Any) -> None:
        """A row that was scored; one with the same id takes the place of an older one."""
        self.rows.pop(key, None)
        self.rows[key] = row
        if len(self.rows) > self.most:
            self.gone[self.rows.popitem(last=False)[0]] = None
        if len(self.gone) > self.most:
            self.gone.popitem(last=False)

    def take(self, key: Any) -> Any:
        """The row of an id, which waits no longer; None if there is none."""
        return self.rows.pop(key, None)


class Server:
    """A model between two pipes."""

    def __init__(self, model: Any, id_name: str, label: str, pending: int) -> None:
        names = getattr(model, "feature_names_in_", None)
        if names is None:
            raise ValueError(
                "serve takes rows by the names of their columns, and this model learned LIBSVM: columns without"
            )
        self.model, self.id_name, self.label = model, id_name, label
        self.names = [str(name) for name in names]
        self.labels, self.pending = LabelReader.of(model), Pending(pending)
        self.counts = dict.fromkeys(("scored", "learned", "late", "unknown", "errors"), 0)

    def answer(self, line: bytes, number: int) -> dict[str, Any]:
        """What is said to a line."""
        given: dict[str, Any] = {}
        try:
            given = parsed(line)
            return self._answer(given)
        except ValueError as error:
            self.counts["errors"] += 1
            key = {"id": given[self.id_name]} if self.id_name in given else {}
            return {**key, "error": in_other_words(str(error)), "line": number}

    def _answer(self, given: dict[str, Any]) -> dict[str, Any]:
        key, label = given.get(self.id_name), given.get(self.label)
        if isinstance(key, (dict, list)):
            raise ValueError(f"the id {self.id_name!r} must be a number or text")
        row = {name: given.get(name) for name in self.names} if any(name in given for name in self.names) else None
        if row is None and label is None:
            raise ValueError(f"neither a row, {self.names[:3]} ..., nor a label, {self.label!r}")
        answer: dict[str, Any] = {} if key is None else {"id": key}
        if row is not None:
            y = None if label is None else self._label(label)
            answer |= self._score(row)
            if y is None and key is not None:
                self.pending.add(key, row)
        else:
            y, row = self._label(label), self.pending.take(key)
            if row is None:
                what = "late" if key in self.pending.gone else "unknown"
                self.counts[what] += 1
                return {**answer, what: True}
        if y is not None:
            self.model.learn_one(row, y)
            self.counts["learned"] += 1
            answer["learned"] = self.model.n_seen_
        return answer

    def _label(self, label: Any) -> Any:
        y = self.labels.read(np.array([plain(label) or ""]))[0].item()
        if y not in self.model.classes_.tolist() and len(self.model.classes_) > 1:
            raise ValueError(f"label {y!r} is not one of {self.model.classes_.tolist()}, the classes of this model")
        return y

    def _score(self, row: dict[str, Any]) -> dict[str, Any]:
        score = self.model.score_one(row)
        self.counts["scored"] += 1
        return {"score": score, "probability": float(expit(score))}


def run(
    path: Path, *, id_name: str, label: str, pending: int, out: Path | None, checkpoint: Path | None, every: int,
    resume: bool, quiet: bool,
) -> int | None:  # fmt: skip
    """Serve until the input ends or a signal comes; the exit code of the signal."""
    model = classifier(path)
    checkpoints = None if checkpoint is None else Checkpointer(checkpoint, every)
    if checkpoints is not None and checkpoints.positions():
        if not resume:
            raise ValueError(f"{checkpoint} has checkpoints: --resume goes on from them; or name another folder")
        model = (checkpoints.newest() or (model, 0))[0]
    server, progress = Server(model, id_name, label, pending), Progress(quiet)
    stdin = open(sys.stdin.fileno(), "rb", buffering=0, closefd=False)  # noqa: SIM115  it is not ours to close
    with Stop() as gate:
        try:
            _serve(server, Cutter("stdin", stdin, line_ends, gate), checkpoints)
        finally:  # also where nobody reads the answers any more
            if checkpoints is not None and model.n_seen_ > max(checkpoints.positions(), default=0):
                checkpoints.save(model, model.n_seen_)
            if out is not None:
                save(model, out)
    told = ", ".join(
        f"{count:,} {name}" for name, count in {**server.counts, "pending": len(server.pending.rows)}.items()
    )
    progress.note(told)
    return gate.code


def _serve(server: Server, cutter: Cutter, checkpoints: Checkpointer | None) -> None:
    """Line by line, each answered before the next one is read."""
    while (piece := cutter.piece(1)) is not None:
        print(json.dumps(server.answer(piece.record(0), piece.line_of(0))), flush=True)
        if checkpoints is not None:
            checkpoints.after(server.model, server.model.n_seen_)
