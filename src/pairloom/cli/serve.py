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

from scipy.special import expit

from pairloom.base.refusal import shown, what_of
from pairloom.cli.labels import LabelReader
from pairloom.cli.lines import LONGEST, lines_of
from pairloom.cli.outputs import Outputs
from pairloom.cli.predict import classifier
from pairloom.cli.saying import Progress
from pairloom.cli.signals import Stop
from pairloom.data.readers.jsonl import parsed
from pairloom.persist import Checkpointer, save

REPLY = ("score", "probability", "learned", "late", "unknown", "error", "line")
"""Keys of replies, besides the id."""


@dataclass
class Pending:
    """Rows that were scored and wait for their labels, the oldest first; at most ``most``.

    As many ids of rows that had to go are remembered, so that a late label is distinguished from one of an unknown row.
    Keys are ids as JSON writes them: 1, 1.0, true and "1" are four.
    """

    most: int
    rows: "OrderedDict[str, Any]" = field(default_factory=OrderedDict)
    gone: "OrderedDict[str, None]" = field(default_factory=OrderedDict)

    def add(self, key: str, row: Any) -> None:
        """A row that was scored; one with the same id takes the place of an older one."""
        self.rows.pop(key, None)
        self.rows[key] = row
        if len(self.rows) > self.most:
            self.gone[self.rows.popitem(last=False)[0]] = None
        if len(self.gone) > self.most:
            self.gone.popitem(last=False)


class Server:
    """A model between two pipes."""

    def __init__(self, model: Any, id_name: str, label: str, pending: int) -> None:
        names = getattr(model, "feature_names_in_", None)
        if names is None:
            raise ValueError(
                "serve takes rows by the names of their columns, and this model learned LIBSVM: columns without"
            )
        if id_name in REPLY:
            raise ValueError(f"--id {id_name}: replies have keys {', '.join(REPLY)} of their own: name another")
        self.model, self.id_name, self.label = model, id_name, label
        self.names = [str(name) for name in names]
        self.labels, self.pending = LabelReader.of(model), Pending(pending)
        self.counts = dict.fromkeys(("scored", "learned", "late", "unknown", "errors"), 0)

    def answer(self, line: bytes | None, number: int) -> str:
        """The reply to a line, as JSON. None: the line was too long."""
        reply: dict[str, Any] = {}
        try:
            if line is None:
                raise ValueError(f"the line is longer than {LONGEST >> 20} MB")
            given = parsed(line)
            reply = self._id(given.get(self.id_name))
            return json.dumps(reply | self._answer(given, json.dumps(reply)), allow_nan=False)
        except ValueError as error:
            self.counts["errors"] += 1
            return json.dumps({**reply, "error": what_of(error), "line": number}, allow_nan=False)

    def _id(self, key: Any) -> dict[str, Any]:
        """What a reply begins with: the id, if there is one."""
        try:
            if isinstance(key, (dict, list)):
                raise ValueError
            json.dumps(key, allow_nan=False)
        except ValueError:
            raise ValueError(f"the id {self.id_name!r} must be a number or text") from None
        return {} if key is None else {self.id_name: key}

    def _answer(self, given: dict[str, Any], key: str) -> dict[str, Any]:
        """What is said of a row, a label or both; all is checked before anything changes."""
        label = given.get(self.label)
        row = {name: given.get(name) for name in self.names} if any(name in given for name in self.names) else None
        if row is None and label is None:
            raise ValueError(f"neither a row, {self.names[:3]} ..., nor a label, {self.label!r}")
        y = None if label is None else self._label(label)
        if row is None:
            return self._learn_later(key, y)
        score = self.model.score_one(row)
        reply = {"score": score, "probability": float(expit(score))}
        if y is not None:
            reply |= self._learn(row, y)
        elif given.get(self.id_name) is not None:
            self.pending.add(key, row)
        self.counts["scored"] += 1
        return reply

    def _learn_later(self, key: str, y: Any) -> dict[str, Any]:
        if key in self.pending.rows:
            reply = self._learn(self.pending.rows[key], y)
            del self.pending.rows[key]
            return reply
        what = "late" if key in self.pending.gone else "unknown"
        self.counts[what] += 1
        return {what: True}

    def _learn(self, row: dict[str, Any], y: Any) -> dict[str, Any]:
        self.model.learn_one(row, y)
        self.counts["learned"] += 1
        return {"learned": self.model.n_seen_}

    def _label(self, label: Any) -> Any:
        y, known = self.labels.read_one(label), self.model.classes_.tolist()
        if y not in known and len(known) > 1:
            raise ValueError(f"label {shown(y)} is not one of {known}, the classes of this model")
        return y


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
    with Stop() as gate, Outputs() as outputs:
        later, failed = outputs.add(out), True
        try:
            for number, line in lines_of(stdin, gate):
                print(server.answer(line, number), flush=True)
                if checkpoints is not None:
                    checkpoints.after(model, model.n_seen_)
            failed = False
        except BrokenPipeError:  # nobody reads the answers any more: the stream ends here
            failed = False
            raise
        finally:
            if later is not None:
                later.save(lambda path: save(model, path))
            if checkpoints is not None and model.n_seen_ > max(checkpoints.positions(), default=0):
                checkpoints.save(model, model.n_seen_)
            if not failed:
                outputs.commit()
    counts = {**server.counts, "pending": len(server.pending.rows)}
    progress.note(", ".join(f"{count:,} {name}" for name, count in counts.items()))
    return gate.code
