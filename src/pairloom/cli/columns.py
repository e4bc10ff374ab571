"""What commands print about the columns of a model."""

from dataclasses import asdict
from typing import Any

from pairloom.cli.console import list_names
from pairloom.columns.changes import ColumnChange
from pairloom.columns.report import USELESS, useless_columns
from pairloom.estimators.column_changes import changes_shown

ADVICE = {"free_text": ", or replace them by columns of hashed words, as scikit-learn's HashingVectorizer makes them"}


def useless_values(model: Any) -> dict[str, list[str]]:
    """Return the columns that are of little use to a model after a fit, by field of the report."""
    return {what: [] for what in USELESS} if model._encoder is None else useless_columns(model._encoder)


def useless_lines(model: Any) -> list[str]:
    """Return a line for each group of columns that are of little use to a model."""
    return [
        f"pairloom: warning: {USELESS[what]}: {list_names(names)}; leave out with --drop{ADVICE.get(what, '')}"
        for what, names in useless_values(model).items()
        if names
    ]


def column_values(model: Any) -> dict[str, Any]:
    """Return the report on the columns of a model for JSON."""
    names, report = ("missing", "malformed", "effects", *USELESS), model.columns_
    if report is None:
        return {"columns": None, "n_columns": model.n_features_in_, **{name: [] for name in names}}
    values = {name: getattr(report, name) for name in names}
    return {"columns": report.kinds, "n_columns": model.n_features_in_, **values}


def column_lines(values: dict[str, Any]) -> list[str]:
    """Return the lines of a report: the columns of each kind, their missing and malformed values, and categories."""
    kinds = values["columns"]
    if kinds is None:
        return [f"{values['n_columns']:,}, without names"]
    gaps = {name: _gaps(values["missing"].get(name, 0.0), values["malformed"].get(name, 0)) for name in kinds}
    lines = [
        f"{kind}: {list_names([name for name, own in kinds.items() if own == kind], gaps)}"
        for kind in sorted(set(kinds.values()))
    ]
    for name, effects in values["effects"].items():
        lines.append(f"{name}: {', '.join(f'{category!r} {value:+.2f}' for category, value in effects.items())}")
    return lines + [f"{text}: {list_names(values[what])}" for what, text in USELESS.items() if values[what]]


def change_values(model: Any) -> list[dict[str, Any]]:
    """Return the newest change of each column of a model, and the report on its scores, for JSON."""
    return [asdict(change) for change in changes_shown(model)]


def change_lines(changes: list[dict[str, Any]]) -> list[str]:
    """Return a table of changes, the newest first."""
    rows = [{**one.cells, "column": repr(one.column)} for one in (ColumnChange(**values) for values in changes)]
    table = [list(rows[0]), *(list(row.values()) for row in rows)] if rows else []
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in table]


def _gaps(missing: float, malformed: int) -> str:
    """Return what to say of the missing values of a column.

    >>> _gaps(0.0123, 3), _gaps(0.0, 0)
    (' (1.2 % missing, 3 malformed)', '')
    """
    parts = [f"{100 * missing:.2g} % missing"] if missing else []
    parts += [f"{malformed:,} malformed"] if malformed else []
    return f" ({', '.join(parts)})" if parts else ""
