"""`pairloom inspect`: describe a model file."""

from pathlib import Path
from typing import Any

import numpy as np

from pairloom.base.typing import Array
from pairloom.cli.columns import change_lines, change_values, column_lines, column_values
from pairloom.cli.console import AUC_WINDOW, print_result
from pairloom.cli.history import alert_line, alert_values, drift_line, drift_values, file_line, file_values
from pairloom.cli.mixture import mixture_lines, mixture_values
from pairloom.cli.predict import load_classifier
from pairloom.explain.sentences import printable

PARTS = ("features", "pairs", "loss", "memory", "step", "penalty", "average", "rule", "budget", "portfolio")


def run(path: Path, figure: Path | None, as_json: bool, importance: bool = False) -> None:
    """Print a description of a model, and draw it; with ``importance``, which columns matter for its scores."""
    model = load_classifier(path)
    values = describe(model, path)
    if importance:
        values["importance"] = model.importance()
    if figure is not None:
        draw(model, values, figure, path.name)
        values["figure"] = str(figure)
    print_result(_lines(values), values, as_json)


def describe(model: Any, path: Path) -> dict[str, Any]:
    """Return parameters, parts, columns, labels and sizes of a model."""
    defaults = type(model)().get_params(deep=False)
    chosen = {k: v for k, v in model.get_params(deep=False).items() if repr(v) != repr(defaults[k])}
    auc, learner = model.auc_, model.stream_.model
    values: dict[str, Any] = {
        "system": type(model).__name__, "parameters": {name: _plain(value) for name, value in chosen.items()},
        "parts": {name: str(getattr(learner, name)) for name in PARTS if hasattr(learner, name)}
        or {"model": str(learner)},
        "rows": model.n_seen_, "pairs": model.n_pairs_,
        "classes": model.classes_.tolist(), "positive": getattr(model, "pos_label_", None),
        "auc": {"value": auc.value, "low": auc.low, "high": auc.high},
        **column_values(model), "changes": change_values(model), "file_columns": file_values(model),
        "drift": drift_values(model), "alerts": alert_values(model), "mixture": mixture_values(model),
        "bytes": model.nbytes_, "file_bytes": path.stat().st_size,
    }  # fmt: skip
    sizes = strata(model)
    if sizes is not None:
        values["strata"] = {name: own.tolist() for name, own in sizes.items()}
    if hasattr(model, "race_"):
        race = model.race_
        last = race["row"] == race["row"].max(initial=0)
        columns = zip(*(race[name][last].tolist() for name in ("name", "auc", "share")), strict=True)
        values["race"] = [dict(zip(("name", "auc", "share"), row, strict=True)) for row in columns]
    return values


def strata(model: Any) -> dict[str, Array] | None:
    """Return the sizes of a model's strata by class; None if it has none."""
    try:
        sizes = model.strata_sizes_
    except (AttributeError, ValueError):
        return None
    names = [str(label) for label in model.classes_.tolist()] if len(sizes) == len(model.classes_) else ["both"]
    return {name: np.asarray(own, dtype=float) for name, own in zip(names, sizes, strict=False)}


def draw(model: Any, values: dict[str, Any], out: Path, title: str) -> None:
    """Draw the race, the strata, or else the ROC of the last rows."""
    from pairloom.cli.figures import draw_curves, draw_race, draw_strata

    if values.get("race"):
        draw_race(model, out, title)
    elif values.get("strata"):
        draw_strata({name: np.asarray(own) for name, own in values["strata"].items()}, out, title)
    else:
        positive, scores, weights = model._scored_positives()
        draw_curves(scores, positive, weights, out, f"{title}: the last {len(scores):,} rows")


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _lines(values: dict[str, Any]) -> list[tuple[str, str]]:
    from pairloom.metrics.intervals import Area

    chosen = ", ".join(f"{name}={value}" for name, value in values["parameters"].items())
    lines = [
        ("system", f"{values['system']}({chosen})"),
        ("learned", f"{values['rows']:,} rows, {values['pairs']:,} pairs"),
        ("labels", f"{', '.join(map(str, values['classes']))}; positive: {values['positive']}"),
        ("AUC", f"{Area(**values['auc'])} {AUC_WINDOW}"),
        ("size", f"{values['bytes'] / 1e6:.3g} MB in memory, {values['file_bytes'] / 1e6:.3g} MB on disk"),
    ]
    lines += [("files", file_line(values["file_columns"]))] if values["file_columns"] else []
    lines += [("drift", drift_line(values["drift"])), ("alerts", alert_line(values["alerts"]))]
    lines += [("columns" if k == 0 else "", text) for k, text in enumerate(column_lines(values))]
    lines += [("changes" if k == 0 else "", text) for k, text in enumerate(change_lines(values["changes"]))]
    for k, (name, value) in enumerate(values.get("importance", {}).items()):
        lines.append(("importance" if k == 0 else "", f"{value:.3g} {printable(name)}"))
    lines += [(name, text) for name, text in values["parts"].items() if name != "portfolio"]
    for name, own in values.get("strata", {}).items():
        shares = np.sort(np.asarray(own))[::-1] / max(np.sum(own), 1e-300)
        lines.append((f"strata of {name}", " ".join(f"{share:.3f}" for share in shares)))
    for one in values.get("race", []):
        lines.append((f"  {one['name']}", f"AUC {one['auc']:.4f} in the windows of the race, share {one['share']:.3f}"))
    why = mixture_lines(values["mixture"], values.get("race", []), values["auc"]["high"])
    lines += [("mixture" if k == 0 else "", text) for k, text in enumerate(why)]
    return lines + ([("figure", values["figure"])] if "figure" in values else [])
