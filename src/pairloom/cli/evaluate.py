"""`pairloom evaluate`: measure how well a model ranks labelled rows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pairloom.base.typing import Array
from pairloom.cli.bad_rows import BadRows
from pairloom.cli.console import Progress, print_result
from pairloom.cli.errors import EXIT_REQUIREMENT
from pairloom.cli.labels import LabelReader
from pairloom.cli.outputs import Outputs
from pairloom.cli.predict import load_classifier, score_files
from pairloom.cli.requirements import parse_requirement, requirement_lines
from pairloom.cli.rows import RowReader
from pairloom.cli.signals import SignalGate
from pairloom.metrics.auc import weighted_auc
from pairloom.metrics.curve import average_precision, partial_auc, precision_at
from pairloom.metrics.intervals import Area, delong

MAX_FPR = 0.1
PRECISION_AT = (10, 100, 1000, 10_000)


def run(
    path: Path, files: Sequence[str], *, label: str | None, weight: str | None, format_: str, chunk_rows: int,
    on_bad_row: str, quarantine: Path | None, figure: Path | None, require: Sequence[str], as_json: bool, quiet: bool,
) -> int | None:  # fmt: skip
    """Score rows and print metrics of the ranking. Return the exit code of a signal or a failed requirement."""
    requirements = [parse_requirement(text) for text in require]
    model = load_classifier(path)
    labels, progress = LabelReader.of(model), Progress(quiet)
    reader = RowReader(model, label=label, weight=weight, missing=on_bad_row == "missing")

    def read_positive(column: Any) -> Array:
        return is_positive(model, labels.read(column))

    with SignalGate() as gate, Outputs() as outputs:
        bad = BadRows(on_bad_row, outputs.add_optional(quarantine), quiet)
        found = [
            (scores, read_positive(batch.labels), batch.weight)
            for batch, scores in score_files(
                model, reader, files, format_, chunk_rows, bad, progress, gate, read_positive
            )
        ]
        scores, positive, weights = _concatenate(found, ", ".join(files))
        values = compute_metrics(scores, positive, weights)
        values |= {"rows": len(scores), "positive": int(positive.sum()), "bad": bad.count}
        values |= {"malformed": dict(bad.malformed)}
        values |= {"requirements": [one.check(scores, positive, weights) for one in requirements]}
        if figure is not None:
            from pairloom.cli.figures import draw_curves

            title = f"{path.name} on {values['rows']:,} rows, {values['positive']:,} positive"
            draw_curves(scores, positive, weights, figure, title)
        outputs.commit()
    bad.note(progress)
    print_result(_lines(values, figure), values, as_json)
    failed = not all(one["passed"] for one in values["requirements"])
    return gate.exit_code or (EXIT_REQUIREMENT if failed else None)


def _concatenate(found: list[tuple[Array, Array, Array | None]], name: str) -> tuple[Array, Array, Array]:
    """Return scores, classes and weights of all rows with positive weight, which must be of both classes."""
    if not found:
        raise ValueError(f"{name}: all rows are malformed")
    scores, positive = np.concatenate([one[0] for one in found]), np.concatenate([one[1] for one in found])
    weights = np.concatenate([np.ones(len(one[0])) if one[2] is None else one[2] for one in found])
    weighted = weights > 0
    scores, positive, weights = scores[weighted], positive[weighted], weights[weighted]
    n = int(positive.sum())
    if not 0 < n < len(positive):
        raise ValueError(f"{name}: AUC requires rows of both classes; {n:,} of {len(scores):,} rows are positive")
    return scores, positive, weights


def is_positive(model: Any, labels: Array) -> Array:
    """Return which rows are positive; raise ValueError for an unknown label."""
    known = model.classes_.tolist()
    unknown = [label for label in np.unique(labels).tolist() if label not in known]
    if unknown:
        raise ValueError(f"label {unknown[0]!r} is not one of {known}, the classes of this model")
    return np.asarray(labels == model.pos_label_)


def compute_metrics(scores: Array, positive: Array, weights: Array) -> dict[str, Any]:
    """Return metrics of a ranking."""
    area = Area(float(weighted_auc(scores[:, None], positive, weights)[0]), *delong(scores, positive, weights))
    return {
        "auc": {"value": area.value, "low": area.low, "high": area.high},
        "partial_auc": {"max_fpr": MAX_FPR, "value": partial_auc(scores, positive, weights, MAX_FPR)},
        "average_precision": average_precision(scores, positive, weights),
        "precision_at": {k: precision_at(scores, positive, weights, k) for k in PRECISION_AT if k <= len(scores)},
        "base_rate": min(1.0, float(weights[positive].sum() / weights.sum())),
    }


def _lines(values: dict[str, Any], figure: Path | None) -> list[tuple[str, str]]:
    skipped = f"; {values['bad']:,} skipped" if values["bad"] else ""
    lines = [
        ("rows", f"{values['rows']:,}, {values['positive']:,} positive{skipped}"),
        ("AUC", str(Area(**values["auc"]))),
        (f"partial AUC (FPR <= {MAX_FPR:g})", f"{values['partial_auc']['value']:.4f}"),
        ("average precision", f"{values['average_precision']:.4f} (chance: {values['base_rate']:.4f})"),
    ]
    lines += [(f"precision at {k:,}", f"{value:.4f}") for k, value in values["precision_at"].items()]
    lines += requirement_lines(values["requirements"])
    return [*lines, ("figure", str(figure))] if figure is not None else lines
