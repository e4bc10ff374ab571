"""`pairloom inspect A B`: what differs between two models, such as those of two nights."""

from pathlib import Path
from typing import Any

from pairloom.cli.columns import change_lines
from pairloom.cli.console import print_result
from pairloom.cli.history import drift_line
from pairloom.cli.inspect import describe
from pairloom.cli.predict import load_classifier
from pairloom.metrics.intervals import Area

MIN_MISSING = 0.02
"""Smallest difference between the shares of missing values that is reported."""


def run(paths: tuple[Path, Path], as_json: bool) -> None:
    """Print the rows, AUC, members and columns of two models side by side."""
    first, second = (describe(load_classifier(path), path) for path in paths)
    columns = changed_columns(first, second)
    later = [one for one in second["changes"] if one["changed"] and one["row"] > first["rows"]]
    values = {"models": [{"file": str(path), **own} for path, own in zip(paths, (first, second), strict=True)]}
    lines = [("", tuple(map(str, paths))), *_lines(first, second)]
    width = max(len(left) for _, (left, _) in lines)
    printed = [(name, f"{left.ljust(width)}  {right}".rstrip()) for name, (left, right) in lines]
    found = [f"{one['column']!r}: {one['what']}" for one in columns] + change_lines(later)
    printed += [("columns" if k == 0 else "", text) for k, text in enumerate(found or ["no change"])]
    print_result(printed, {**values, "columns": columns, "changes": later}, as_json)


def changed_columns(first: dict[str, Any], second: dict[str, Any]) -> list[dict[str, str]]:
    """Return the columns that only one model has, or whose kinds or shares of missing values differ.

    >>> older, newer = {"columns": {"a": "number"}, "missing": {}}, {"columns": {"a": "date"}, "missing": {"a": 0.1}}
    >>> changed_columns(older, newer)
    [{'column': 'a', 'what': 'number -> date, 0 -> 10 % missing'}]
    """
    kinds = [one["columns"] or {} for one in (first, second)]
    found = []
    for name in dict.fromkeys((*kinds[0], *kinds[1])):
        old, new = (own.get(name, "absent") for own in kinds)
        gaps = [one["missing"].get(name, 0.0) for one in (first, second)]
        what = [f"{old} -> {new}"] if old != new else []
        if abs(gaps[1] - gaps[0]) >= MIN_MISSING:
            what.append(f"{100 * gaps[0]:.2g} -> {100 * gaps[1]:.2g} % missing")
        if what:
            found.append({"column": name, "what": ", ".join(what)})
    return found


def _lines(first: dict[str, Any], second: dict[str, Any]) -> list[tuple[str, tuple[str, str]]]:
    def both(text: Any) -> tuple[str, str]:
        return text(first), text(second)

    lines = [
        ("system", both(lambda one: one["system"])),
        ("rows", both(lambda one: f"{one['rows']:,}")),
        ("AUC", both(lambda one: str(Area(**one["auc"])))),
        ("size", both(lambda one: f"{one['file_bytes'] / 1e6:.3g} MB")),
    ]
    for name in dict.fromkeys((*first["parameters"], *second["parameters"])):
        pair = both(lambda one, name=name: str(one["parameters"].get(name, "default")))
        lines += [(name, pair)] if pair[0] != pair[1] else []
    shares = [{member["name"]: member["share"] for member in one.get("race", [])} for one in (first, second)]
    for name in dict.fromkeys((*shares[0], *shares[1])):
        left, right = (f"share {own[name]:.3f}" if name in own else "absent" for own in shares)
        lines.append((f"  {name}", (left, right)))
    if first["drift"] != second["drift"]:
        lines.append(("drift", both(lambda one: drift_line(one["drift"]))))
    return lines
