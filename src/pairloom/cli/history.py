"""What `inspect` prints about the past of a model: its files, drift, and alerts."""

from dataclasses import asdict
from typing import Any

from pairloom.cli.console import list_names
from pairloom.stream.drift import DriftWatch

MAX_ROWS = 10
"""Maximum number of changes that are listed."""


def file_values(model: Any) -> dict[str, Any] | None:
    """Return the columns of the files besides the features; None if the model does not know them."""
    return None if model._file_columns is None else asdict(model._file_columns)


def file_line(values: dict[str, Any]) -> str:
    """Return the label, weight and dropped columns.

    >>> file_line({"label": "fraud", "weight": None, "dropped": ["id"]})
    "label 'fraud', without 'id'"
    """
    parts = [f"label {values['label']!r}"]
    parts += [f"weight {values['weight']!r}"] if values["weight"] is not None else []
    parts += [f"without {list_names(values['dropped'])}"] if values["dropped"] else []
    return ", ".join(parts)


def drift_values(model: Any) -> dict[str, Any] | None:
    """Return the rows at which drift was detected, and the row at which the last change began; None without ``drift``.

    ``since``: None if no drift was detected.
    """
    watched = model.stream_.state.observed.get(DriftWatch.name)
    if watched is None:
        return None
    changes = model.changes_
    return {"changes": changes, "since": watched.since if changes else None}


def drift_line(values: dict[str, Any] | None) -> str:
    """Return what is known about drift.

    >>> drift_line({"changes": [2048, 5120], "since": 5007})
    'detected at rows 2,048, 5,120; the last change began at about row 5,007'
    """
    if values is None:
        return "not monitored"
    rows = values["changes"]
    if not rows:
        return "none detected"
    older = f"{len(rows) - MAX_ROWS:,} earlier, then " if len(rows) > MAX_ROWS else ""
    listed = ", ".join(f"{row:,}" for row in rows[-MAX_ROWS:])
    return f"detected at rows {older}{listed}; the last change began at about row {values['since']:,}"


def alert_values(model: Any) -> dict[str, Any] | None:
    """Return the alert budget: what was requested and what was realised; None without a budget."""
    budget = model._alerts
    if budget is None:
        return None
    requested = {"rate": budget.rate, "per_hour": budget.per_hour}
    return {**requested, "realised": budget.realised, "alerts": budget.n_alerts, "rows": budget.n_seen}


def alert_line(values: dict[str, Any] | None) -> str:
    """Return the requested and the realised rate.

    >>> alert_line({"rate": 0.01, "per_hour": None, "realised": 0.0125, "alerts": 5, "rows": 400})
    'requested 0.01 per row, realised 0.0125: 5 of 400 rows'
    """
    if values is None:
        return "no budget"
    per_row = values["per_hour"] is None
    requested = f"{values['rate']:g} per row" if per_row else f"{values['per_hour']:g} per hour"
    if not values["rows"]:
        return f"requested {requested}; no row so far"
    return f"requested {requested}, realised {values['realised']:.4g}: {values['alerts']:,} of {values['rows']:,} rows"
