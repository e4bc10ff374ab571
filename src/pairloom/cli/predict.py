"""`pairloom predict`: rows in, scores out, in the same order."""

import csv
import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from pairloom.base.typing import Array
from pairloom.cli.bad_rows import BadRows
from pairloom.cli.intake import Intake
from pairloom.cli.outputs import Outputs
from pairloom.cli.saying import Progress
from pairloom.cli.signals import Stop
from pairloom.cli.taken import Taken, label_faults
from pairloom.data.readers import Faults, InputError, Piece, readers


def classifier(path: Path) -> Any:
    """The model of a file, which must be a classifier that has learned."""
    from pairloom.estimators.classifier import PairwiseClassifier
    from pairloom.persist import load

    try:
        model = load(path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    if not isinstance(model, PairwiseClassifier) or not hasattr(model, "stream_"):
        raise ValueError(f"{path}: a {type(model).__name__} that has learned nothing, or no classifier, scores no rows")
    return model


def scored(
    model: Any, intake: Intake, files: Sequence[str], format_: str, chunk: int, bad: BadRows, progress: Progress,
    gate: Stop, check: Callable[[Any], Array] | None = None,
) -> Iterator[tuple[Taken, Array]]:  # fmt: skip
    """All rows of files that can be taken, a few at a time, with their scores, until the end or a signal.

    ``check`` reads labels, and may raise ValueError.
    """
    count = 0
    for reader in readers(files, format_, most=chunk, gate=gate, width=intake.width):
        intake.open(reader)
        for piece in reader.pieces():
            intake.begin(piece)
            yield from _piece(model, intake, piece, bad, check)
            count += len(piece)
            if progress.due:
                progress.say(f"{count:,} rows")
            if gate.closed:
                break
        if gate.closed:
            break
    progress.clear()
    if gate.code is not None:
        progress.note(f"Stopped after row {count:,}.")
    elif not count:
        raise InputError(f"{', '.join(files)}: there are no rows")


def _piece(
    model: Any, intake: Intake, piece: Piece, bad: BadRows, check: Callable[[Any], Array] | None
) -> Iterator[tuple[Taken, Array]]:
    found: list[tuple[Taken, Array]] = []

    def attempt(taken: Taken) -> None:
        if check is not None:
            check(taken.labels)
        found.append((taken, model.score_many(taken.X)))

    def sifted() -> tuple[Taken, Faults]:
        taken, faults = intake.sift(piece, 0, len(piece))
        strange = {} if check is None else label_faults(taken, check)
        return taken[~np.isin(taken.rows, list(strange))], {**strange, **faults}

    try:
        bad.through(piece, lambda: intake.take(piece, 0, len(piece)), sifted, attempt)
    except InputError:
        yield from found
        raise
    yield from found


def run(
    path: Path, files: Sequence[str], out: Path | None, *, proba: bool, alert_rate: float | None, keep: Sequence[str],
    format_: str, chunk: int, skip: bool, quarantine: Path | None, as_json: bool, quiet: bool,
) -> int | None:  # fmt: skip
    """Write the kept columns, the score or probability, and whether it is an alert, for each row.

    Returns the exit code of a signal that ended it.
    """
    model = classifier(path)
    border = None if alert_rate is None else model.threshold(alert_rate=alert_rate)
    name = "probability" if proba else "score"
    names = [*keep, name, *(["alert"] if border is not None else [])]
    progress, intake = Progress(quiet), Intake(model, keep=keep, labelled=False)
    with Stop() as gate, Outputs() as outputs:
        to: Any = sys.stdout if out is None else outputs.new(out)
        bad = BadRows(skip, outputs.add(quarantine), quiet)
        if not as_json:
            to.write(_csv([names]))
        for taken, scores in scored(model, intake, files, format_, chunk, bad, progress, gate):
            shown = expit(scores) if proba else scores
            columns = [] if taken.kept is None else [column.to_pylist() for column in taken.kept.columns]
            columns.append(shown.tolist())
            if border is not None:
                columns.append((scores >= border).astype(int).tolist())
            rows = zip(*columns, strict=True)
            to.write(_json_lines(names, rows) if as_json else _csv(rows))
        outputs.commit()
    if border is not None:
        progress.note(f"alerts where the score is at least {border}")
    if bad.count:
        progress.note(f"{bad.count:,} malformed rows were skipped")
    return gate.code


def _csv(rows: Iterable[Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _json_lines(names: Sequence[str], rows: Iterable[Any]) -> str:
    return "".join(json.dumps(dict(zip(names, row, strict=True)), default=str) + "\n" for row in rows)
