"""`pairloom evaluate`: how well the scores of a model rank rows that it is shown."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pairloom.base.typing import Array
from pairloom.cli.bad_rows import BadRows
from pairloom.cli.intake import Intake
from pairloom.cli.labels import LabelReader
from pairloom.cli.outputs import Outputs
from pairloom.cli.predict import classifier, scored
from pairloom.cli.saying import Progress, result
from pairloom.cli.signals import Stop
from pairloom.metrics.area import Area
from pairloom.metrics.auc import weighted_auc
from pairloom.metrics.curve import average_precision, partial_auc, precision_at
from pairloom.metrics.delong import delong

MAX_FPR = 0.1
PLACES = (10, 100, 1000, 10_000)


def run(
    path: Path, files: Sequence[str], *, label: str | None, weight: str | None, format_: str, chunk: int, skip: bool,
    quarantine: Path | None, figure: Path | None, as_json: bool, quiet: bool,
) -> int | None:  # fmt: skip
    """Score rows and say how well that ranked them; nothing is learned. 17 bytes are kept of each row.

    Returns the exit code of a signal that ended it.
    """
    model = classifier(path)
    labels, progress, intake = LabelReader.of(model), Progress(quiet), Intake(model, label=label, weight=weight)

    def positive_rows(column: Any) -> Array:
        return positives(model, labels.read(column))

    with Stop() as gate, Outputs() as outputs:
        bad = BadRows(skip, outputs.add(quarantine), quiet)
        found = [
            (scores, positive_rows(taken.labels), taken.weight)
            for taken, scores in scored(model, intake, files, format_, chunk, bad, progress, gate, positive_rows)
        ]
        scores, positive, weights = _joined(found, ", ".join(files))
        values = measured(scores, positive, weights)
        values |= {"rows": len(scores), "positive": int(positive.sum()), "bad": bad.count}
        if figure is not None:
            from pairloom.cli.figures import draw_curves

            title = f"{path.name} on {values['rows']:,} rows, {values['positive']:,} of them positive"
            draw_curves(scores, positive, weights, figure, title)
        outputs.commit()
    result(_lines(values, figure), values, as_json)
    return gate.code


def _joined(found: list[tuple[Array, Array, Array | None]], name: str) -> tuple[Array, Array, Array]:
    """Scores, classes and weights of all rows of positive weight, of which there must be both classes."""
    if not found:
        raise ValueError(f"{name}: all rows are malformed")
    scores, positive = np.concatenate([one[0] for one in found]), np.concatenate([one[1] for one in found])
    weights = np.concatenate([np.ones(len(one[0])) if one[2] is None else one[2] for one in found])
    there = weights > 0
    scores, positive, weights = scores[there], positive[there], weights[there]
    n = int(positive.sum())
    if not 0 < n < len(positive):
        raise ValueError(f"{name}: an AUC needs rows of both classes, and {n:,} of {len(scores):,} are positive")
    return scores, positive, weights


def positives(model: Any, labels: Array) -> Array:
    """Which rows are positive; ValueError for a label that the model does not know."""
    known = model.classes_.tolist()
    strange = [label for label in np.unique(labels).tolist() if label not in known]
    if strange:
        raise ValueError(f"label {strange[0]!r} is not one of {known}, the classes of this model")
    return np.asarray(labels == model.pos_label_)


def measured(scores: Array, positive: Array, weights: Array) -> dict[str, Any]:
    """What there is to say of a ranking."""
    area = Area(float(weighted_auc(scores[:, None], positive, weights)[0]), *delong(scores, positive, weights))
    return {
        "auc": {"value": area.value, "low": area.low, "high": area.high},
        "partial_auc": {"max_fpr": MAX_FPR, "value": partial_auc(scores, positive, weights, MAX_FPR)},
        "average_precision": average_precision(scores, positive, weights),
        "precision_at": {k: precision_at(scores, positive, weights, k) for k in PLACES if k <= len(scores)},
        "base_rate": min(1.0, float(weights[positive].sum() / weights.sum())),
    }


def _lines(values: dict[str, Any], figure: Path | None) -> list[tuple[str, str]]:
    skipped = f"; {values['bad']:,} skipped" if values["bad"] else ""
    lines = [
        ("rows", f"{values['rows']:,}, {values['positive']:,} of them positive{skipped}"),
        ("AUC", str(Area(**values["auc"]))),
        (f"partial AUC, FPR up to {MAX_FPR:g}", f"{values['partial_auc']['value']:.4f}"),
        ("average precision", f"{values['average_precision']:.4f}, by chance {values['base_rate']:.4f}"),
    ]
    lines += [(f"precision at {k:,}", f"{value:.4f}") for k, value in values["precision_at"].items()]
    return [*lines, ("figure", str(figure))] if figure is not None else lines
