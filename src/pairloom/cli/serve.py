"""`pairloom serve`: score JSON lines as they arrive, and learn from their labels when these arrive.

in   {"id": 7, "amount": 12.5, "channel": "web"}      out  {"id": 7, "score": -3.1, "probability": 0.043}
in   {"id": 7, "label": 1}                            out  {"id": 7, "learned": 1041}
in   {"id": 8, "amount": 3.0, "channel": "app", "label": 0}: both at once

With --alert-rate, the reply to a row has "alert": true or false.
"""

import json
import sys
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scipy.special import expit

from pairloom.base.errors import short_repr
from pairloom.cli.alerts import Alerts
from pairloom.cli.checkpoints import open_checkpoints
from pairloom.cli.console import Progress
from pairloom.cli.labels import LabelReader
from pairloom.cli.monitor import finish_monitor, start_monitor
from pairloom.cli.outputs import Outputs
from pairloom.cli.predict import load_classifier
from pairloom.cli.signals import SignalGate
from pairloom.data.readers.jsonl import parse_object
from pairloom.data.readers.opening import Gate
from pairloom.persist import save

REPLY_KEYS = ("score", "probability", "alert", "reasons", "learned", "late", "unknown", "error", "line")
"""Keys of replies, besides the id."""

MAX_LINE_BYTES = 1 << 23
"""Longer lines are discarded and answered with an error."""


@dataclass
class Pending:
    """Rows that wait for their labels, the oldest first; at most ``max_rows``.

    The ids of discarded rows, at most the same number, distinguish a late label from an unknown id. Keys are
    ids as JSON: 1, 1.0, true and "1" are four keys.
    """

    max_rows: int
    rows: "OrderedDict[str, Any]" = field(default_factory=OrderedDict)
    discarded: "OrderedDict[str, None]" = field(default_factory=OrderedDict)

    def add(self, key: str, row: Any) -> None:
        """Add a row, in place of one with the same id."""
        self.rows.pop(key, None)
        self.rows[key] = row
        if len(self.rows) > self.max_rows:
            self.discarded[self.rows.popitem(last=False)[0]] = None
        if len(self.discarded) > self.max_rows:
            self.discarded.popitem(last=False)


class Server:
    """Server that answers lines with a model."""

    def __init__(
        self,
        model: Any,
        id_name: str,
        label: str,
        pending: int,
        alert_rate: float | None = None,
        explain: int | None = None,
    ) -> None:
        names = getattr(model, "feature_names_in_", None)
        if names is None:
            raise ValueError("serve requires a model with column names; this one was fitted on LIBSVM")
        if id_name in REPLY_KEYS:
            raise ValueError(f"--id {id_name}: choose another key; replies use {', '.join(REPLY_KEYS)}")
        self.model, self.id_name, self.label = model, id_name, label
        self.names = [str(name) for name in names]
        self.labels, self.pending = LabelReader.of(model), Pending(pending)
        self.alerts = None if alert_rate is None else Alerts(model, alert_rate)
        self.explain = explain
        self.counts = dict.fromkeys(("scored", "learned", "late", "unknown", "errors"), 0)

    def answer(self, line: bytes | None, number: int) -> str:
        """Return the reply to a line as JSON. ``line`` None: it was too long."""
        reply: dict[str, Any] = {}
        try:
            if line is None:
                raise ValueError(f"the line is longer than {MAX_LINE_BYTES >> 20} MB")
            given = parse_object(line)
            reply = self._id(given.get(self.id_name))
            return json.dumps(reply | self._answer(given, json.dumps(reply)), allow_nan=False)
        except ValueError as error:
            self.counts["errors"] += 1
            return json.dumps({**reply, "error": getattr(error, "what", str(error)), "line": number}, allow_nan=False)

    def _id(self, key: Any) -> dict[str, Any]:
        """Return the start of a reply: the id, if there is one."""
        try:
            if isinstance(key, (dict, list)):
                raise ValueError
            json.dumps(key, allow_nan=False)
        except ValueError:
            raise ValueError(f"the id {self.id_name!r} must be a number or text") from None
        return {} if key is None else {self.id_name: key}

    def _answer(self, given: dict[str, Any], key: str) -> dict[str, Any]:
        """Answer a row, a label or both; everything is checked before anything changes."""
        label = given.get(self.label)
        row = {name: given.get(name) for name in self.names} if any(name in given for name in self.names) else None
        if row is None and label is None:
            raise ValueError(f"expected a row ({', '.join(self.names[:3])}, ...) or a label ({self.label})")
        y = None if label is None else self._read_label(label)
        if row is None:
            return self._learn_pending(key, y)
        score = self.model.score_one(row)
        reply = {"score": score, "probability": float(expit(score))}
        # With its label, a row may change the model before it is known whether it raises an alert.
        early = self._reasons(row) if y is not None else {}
        if y is not None:
            reply |= self._learn(row, y)
        elif given.get(self.id_name) is not None:
            self.pending.add(key, row)
        if self.alerts is not None:
            reply["alert"] = bool(self.alerts.flags(score))
        if reply.get("alert", self.alerts is None):
            reply |= early or self._reasons(row)
        self.counts["scored"] += 1
        return reply

    def _reasons(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return the main reasons for the score of a row, if they were requested and there is something to compare."""
        if self.explain is None or len(self.model.classes_) < 2:
            return {}
        return {"reasons": self.model.explain(row, top=self.explain).top()[0]}

    def _learn_pending(self, key: str, y: Any) -> dict[str, Any]:
        if key in self.pending.rows:
            reply = self._learn(self.pending.rows[key], y)
            del self.pending.rows[key]
            return reply
        status = "late" if key in self.pending.discarded else "unknown"
        self.counts[status] += 1
        return {status: True}

    def _learn(self, row: dict[str, Any], y: Any) -> dict[str, Any]:
        self.model.learn_one(row, y)
        self.counts["learned"] += 1
        return {"learned": self.model.n_seen_}

    def _read_label(self, label: Any) -> Any:
        y, known = self.labels.read_one(label), self.model.classes_.tolist()
        if y not in known and len(known) > 1:
            raise ValueError(f"label {short_repr(y)} is not one of {known}, the classes of this model")
        return y


def read_lines(stream: Any, gate: Gate) -> Iterator[tuple[int, bytes | None]]:
    """Yield line numbers (from 1) and lines as soon as they are complete; None in place of a line that is too long.

    Blank lines are skipped, and so is an incomplete line when the gate closes.
    """
    number, rest, too_long = 1, b"", False
    while block := gate.read(stream):
        *complete, last = block.split(b"\n")
        for line in complete:
            line, rest = rest + line, b""
            if too_long or len(line) > MAX_LINE_BYTES:
                yield number, None
            elif line.strip():
                yield number, line
            number, too_long = number + 1, False
            if gate.closed:
                return
        rest += last
        if len(rest) > MAX_LINE_BYTES:
            rest, too_long = b"", True
    if not gate.closed and (too_long or rest.strip()):
        yield number, None if too_long else rest


def run(
    path: Path, *, id_name: str, label: str, pending: int, out: Path | None, checkpoint: Path | None, every: int,
    resume: bool, alert_rate: float | None, explain: int | None, monitor: Path | None, quiet: bool,
) -> int | None:  # fmt: skip
    """Serve until the input ends or a signal arrives; return the exit code of the signal, or None."""
    model = load_classifier(path)
    checkpoints = None if checkpoint is None else open_checkpoints(checkpoint, every, resume)
    if checkpoints is not None:
        model = (checkpoints.newest() or (model, 0))[0]
    server, progress = Server(model, id_name, label, pending, alert_rate, explain), Progress(quiet)
    start_monitor(model, monitor)
    stdin = open(sys.stdin.fileno(), "rb", buffering=0, closefd=False)  # noqa: SIM115  stdin stays open
    with SignalGate() as gate, Outputs() as outputs:
        output, failed = outputs.add_optional(out), True
        try:
            for number, line in read_lines(stdin, gate):
                print(server.answer(line, number), flush=True)
                if checkpoints is not None:
                    checkpoints.after(model, model.n_seen_)
            failed = False
            finish_monitor(model)
        except BrokenPipeError:  # the reader of the replies has closed the pipe
            failed = False
            raise
        finally:
            if output is not None:
                output.save(lambda path: save(model, path))
            if checkpoints is not None and model.n_seen_ > max(checkpoints.positions(), default=0):
                checkpoints.save(model, model.n_seen_)
            if not failed:
                outputs.commit()
    counts = {**server.counts, "pending": len(server.pending.rows)}
    progress.note(", ".join(f"{count:,} {name}" for name, count in counts.items()))
    if server.alerts is not None:
        server.alerts.note(progress)
    return gate.exit_code
