"""`pairloom predict`: score rows."""

import csv
import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scipy.special import expit

from pairloom.base.typing import Array
from pairloom.cli.alerts import Alerts
from pairloom.cli.bad_rows import BadRows
from pairloom.cli.console import Progress
from pairloom.cli.outputs import Outputs
from pairloom.cli.row_batch import RowBatch
from pairloom.cli.rows import RowReader
from pairloom.cli.signals import SignalGate
from pairloom.data.readers import readers
from pairloom.data.readers.base import Chunk
from pairloom.data.readers.opening import FileError


def load_classifier(path: Path) -> Any:
    """Load a model; raise ValueError unless it is a fitted classifier."""
    from pairloom.estimators.classifier import PairwiseClassifier
    from pairloom.persist import load

    try:
        model = load(path)
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}") from error
    if not isinstance(model, PairwiseClassifier) or not hasattr(model, "stream_"):
        raise ValueError(f"{path}: expected a fitted classifier, got {type(model).__name__}")
    return model


def score_files(
    model: Any, reader: RowReader, files: Sequence[str], format_: str, chunk_rows: int, bad: BadRows,
    progress: Progress, gate: SignalGate, read_labels: Callable[[Any], Array] | None = None,
) -> Iterator[tuple[RowBatch, Array]]:  # fmt: skip
    """Yield valid rows and their scores, until the end of the input or a signal.

    ``read_labels`` raises ValueError for an invalid label.
    """
    count = 0
    for source in readers(files, format_, chunk_rows=chunk_rows, gate=gate, width=reader.width):
        reader.open(source)
        for chunk in source.chunks():
            reader.start_chunk(chunk)
            yield from _score_chunk(model, reader, chunk, bad, read_labels)
            count += len(chunk)
            if progress.due:
                progress.update(f"{count:,} rows")
            if gate.closed:
                break
        if gate.closed:
            break
    progress.clear()
    if gate.exit_code is not None:
        progress.note(f"Stopped after row {count:,}.")
    elif not count:
        raise FileError(f"{', '.join(files)}: no rows")


def _score_chunk(
    model: Any, reader: RowReader, chunk: Chunk, bad: BadRows, read_labels: Callable[[Any], Array] | None
) -> Iterator[tuple[RowBatch, Array]]:
    found: list[tuple[RowBatch, Array]] = []

    def attempt(batch: RowBatch) -> None:
        if read_labels is not None:
            read_labels(batch.labels)
        found.append((batch, model.score_many(batch.X)))

    n = len(chunk)
    try:
        bad.process(
            chunk, lambda: reader.read(chunk, 0, n), lambda: reader.read_valid(chunk, 0, n, read_labels), attempt
        )
    except FileError:
        yield from found
        raise
    yield from found


class Wanted(NamedTuple):
    """What to write for each row: probabilities, alerts at a rate, kept columns, and a number of reasons."""

    proba: bool
    alert_rate: float | None
    keep: Sequence[str]
    explain: int | None


def run(
    path: Path, files: Sequence[str], out: Path | None, wanted: Wanted, *, format_: str, chunk_rows: int,
    on_bad_row: str, quarantine: Path | None, as_json: bool, quiet: bool,
) -> int | None:  # fmt: skip
    """Write the kept columns, the score or probability, the alert and the main reasons of each row.

    The alert budget in the file of the model does not change. Return the exit code of a signal, or None.
    """
    model = load_classifier(path)
    keep, explain = wanted.keep, wanted.explain
    alerts = None if wanted.alert_rate is None else Alerts(model, wanted.alert_rate)
    names = [*keep, "probability" if wanted.proba else "score", *(["alert"] if alerts is not None else [])]
    if explain is not None:
        names += ["reasons"] if as_json else [f"reason_{k + 1}" for k in range(explain)]
    progress = Progress(quiet)
    reader = RowReader(model, keep=keep, labelled=False, missing=on_bad_row == "missing")
    with SignalGate() as gate, Outputs() as outputs:
        to: Any = sys.stdout if out is None else outputs.add(out)
        bad = BadRows(on_bad_row, outputs.add_optional(quarantine), quiet)
        if not as_json:
            to.write(_csv([names]))
        for batch, scores in score_files(model, reader, files, format_, chunk_rows, bad, progress, gate):
            columns = [] if batch.kept is None else [column.to_pylist() for column in batch.kept.columns]
            columns.append((expit(scores) if wanted.proba else scores).tolist())
            if alerts is not None:
                columns.append(alerts.flags(scores).astype(int).tolist())
            if explain is not None:
                columns += _reasons(model.explain(batch.X, top=explain).top(), explain, as_json)
            rows = zip(*columns, strict=True)
            to.write(_json_lines(names, rows) if as_json else _csv(rows))
        outputs.commit()
    if alerts is not None:
        alerts.note(progress)
    if bad.count:
        progress.note(f"Skipped {bad.count:,} malformed rows.")
    bad.note(progress)
    return gate.exit_code


def _reasons(found: list[list[str]], n: int, as_json: bool) -> list[list[Any]]:
    """Return the reasons of the rows as one column of lists, or as n columns."""
    return [list(found)] if as_json else [[one[k] if k < len(one) else "" for one in found] for k in range(n)]


def _csv(rows: Iterable[Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _json_lines(names: Sequence[str], rows: Iterable[Any]) -> str:
    return "".join(json.dumps(dict(zip(names, row, strict=True)), default=str) + "\n" for row in rows)
