"""`pairloom inspect`: what is in a model file."""

from pathlib import Path
from typing import Any

import numpy as np

from pairloom.base.typing import Array
from pairloom.cli.intake import shortened
from pairloom.cli.predict import classifier
from pairloom.cli.saying import result


def run(path: Path, figure: Path | None, as_json: bool) -> None:
    """Say what a model is, what it knows of its columns and labels, and what it holds."""
    model = classifier(path)
    values = told(model, path)
    if figure is not None:
        draw(model, values, figure, path.name)
        values["figure"] = str(figure)
    result(_lines(model, values), values, as_json)


def told(model: Any, path: Path) -> dict[str, Any]:
    """What there is to say."""
    defaults = type(model)().get_params(deep=False)
    chosen = {k: v for k, v in model.get_params(deep=False).items() if repr(v) != repr(defaults[k])}
    auc, report = model.auc_, model.columns_
    values: dict[str, Any] = {
        "system": type(model).__name__, "parameters": {name: _plain(value) for name, value in chosen.items()},
        "parts": _parts(model.stream_.model), "rows": model.n_seen_, "pairs": model.n_pairs_,
        "classes": model.classes_.tolist(), "positive": _positive(model),
        "auc": {"value": auc.value, "low": auc.low, "high": auc.high},
        "columns": None if report is None else report.kinds, "n_columns": model.n_features_in_,
        "constant": [] if report is None else report.constant, "id_like": [] if report is None else report.id_like,
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
    """The sizes of a model's strata by class; None if it has none."""
    try:
        sizes = model.strata_sizes_
    except (AttributeError, ValueError):
        return None
    names = [str(label) for label in model.classes_.tolist()] if len(sizes) == len(model.classes_) else ["both"]
    return {name: np.asarray(own, dtype=float) for name, own in zip(names, sizes, strict=False)}


def draw(model: Any, values: dict[str, Any], out: Path, title: str) -> None:
    """What a picture shows best: a race, strata, or else how the newest rows were ranked."""
    from pairloom.cli.figures import draw_curves, draw_race, draw_strata

    if values.get("race"):
        return draw_race(model, out, title)
    if values.get("strata"):
        return draw_strata({name: np.asarray(own) for name, own in values["strata"].items()}, out, title)
    positive, scores, weights = model._scored_positives()
    return draw_curves(scores, positive, weights, out, f"{title}: the newest {len(scores):,} rows")


def _positive(model: Any) -> Any:
    try:
        return model.pos_label_
    except AttributeError:
        return None


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _parts(model: Any) -> dict[str, str]:
    """The parts of a learner, by name; of other models, themselves."""
    names = ("features", "pairs", "loss", "memory", "step", "penalty", "average", "rule", "budget", "portfolio")
    found = {name: str(getattr(model, name)) for name in names if hasattr(model, name)}
    return found or {"model": str(model)}


def _lines(model: Any, values: dict[str, Any]) -> list[tuple[str, str]]:
    from pairloom.metrics.area import Area

    chosen = ", ".join(f"{name}={value}" for name, value in values["parameters"].items())
    lines = [
        ("system", f"{values['system']}({chosen})"),
        ("learned", f"{values['rows']:,} rows, {values['pairs']:,} pairs"),
        ("labels", f"{', '.join(map(str, values['classes']))}; positive: {values['positive']}"),
        ("AUC", f"{Area(**values['auc'])} of the newest 4,096 rows, each scored before it was learned"),
        ("size", f"{values['bytes'] / 1e6:.3g} MB; the file {values['file_bytes'] / 1e6:.3g} MB"),
    ]
    lines += [("columns" if k == 0 else "", text) for k, text in enumerate(_columns(values))]
    lines += [(name, text) for name, text in values["parts"].items() if name != "portfolio"]
    for name, own in values.get("strata", {}).items():
        shares = np.sort(np.asarray(own))[::-1] / max(np.sum(own), 1e-300)
        lines.append((f"strata of {name}", " ".join(f"{share:.3f}" for share in shares)))
    for one in values.get("race", []):
        lines.append((f"  {one['name']}", f"AUC {one['auc']:.4f}, share {one['share']:.3f}"))
    return lines + ([("figure", values["figure"])] if "figure" in values else [])


def _columns(values: dict[str, Any]) -> list[str]:
    if values["columns"] is None:
        return [f"{values['n_columns']:,}, without names"]
    kinds = sorted(set(values["columns"].values()))
    found = [f"{kind}: {shortened([k for k, v in values['columns'].items() if v == kind])}" for kind in kinds]
    for what, words in (("constant", "constant so far"), ("id_like", "look like ids")):
        found += [f"{words}: {shortened(values[what])}"] if values[what] else []
    return found
