"""What is known about the columns of a stream, and the columns that are of little use to a model."""

import warnings
from dataclasses import dataclass, field
from string import punctuation

import numpy as np

from pairloom.columns.changes import ColumnChange
from pairloom.columns.encoder import Encoder
from pairloom.columns.kinds import ColumnsWarning
from pairloom.columns.loops import CATEGORY, COUNT, DROP, HIGH, ID_ROWS, LOW, MISSING, REPEATS, looks_like_id
from pairloom.columns.reading import Values

MIN_ROWS = ID_ROWS
"""Rows after which a column may be reported as free text, and after which warnings are given."""

MIN_WORDS = 3
"""Mean number of words from which values that hardly ever repeat are free text."""


USELESS = {"constant": "constant so far", "id_like": "look like ids", "free_text": "free text"}
"""Fields of the report that list columns of little use, and what they mean."""


@dataclass(frozen=True)
class ColumnReport:
    """What is known about the columns of a stream.

    ``kinds``: by name; "open" for a column with missing values only. ``missing``: shares of missing values, malformed
    ones included. ``malformed``: numbers of malformed values that were treated as missing, of columns that have any.
    ``categories``: those that are stored. ``effects``: for each category column of a model, the five categories
    that matter most, with the log-odds of the target relative to all rows (of real labels, the difference of means).
    ``ignored``: number of values of new names for which no spare column was left (``Columns(reserve=)``).
    ``changes``: the newest change of each column that has changed, of an ``AUCClassifier``
    (:class:`~pairloom.columns.changes.ColumnChange`).

    Columns of little use to a model, which columns={name: "drop"} drops: ``constant``, with at most one distinct value
    so far; ``id_like``, which look like ids; ``free_text``, whose values are sentences.
    """

    kinds: dict[str, str]
    categories: dict[str, list[str]]
    constant: list[str]
    id_like: list[str]
    free_text: list[str]
    missing: dict[str, float]
    malformed: dict[str, int]
    ignored: int = 0
    effects: dict[str, dict[str, float]] = field(default_factory=dict)
    changes: dict[str, ColumnChange] = field(default_factory=dict)


def report_of(encoder: Encoder) -> ColumnReport:
    """Return the report on the columns.

    After 256 rows with a value, a column looks like an id if it has categories that hardly ever repeat, or integers
    that always increase or always decrease. It is free text if its categories have at least three words on average, and
    repeat less than once on average.
    """
    state = encoder.state
    n_malformed = np.zeros(len(state.names)) if state.malformed is None else state.malformed
    ignored = 0 if state.reserve is None else state.reserve.ignored
    report = ColumnReport(state.kind_names, {}, [], [], [], {}, {}, ignored)
    for j, (name, kind, known) in enumerate(zip(state.names, state.plain_kinds, state.categories, strict=True)):
        column = state.statistics[:, j]
        if known:
            report.categories[name] = list(known)
        if kind == DROP:
            continue
        report.missing[name] = float(column[MISSING] / max(column[MISSING] + column[COUNT], 1.0))
        if n_malformed[j]:
            report.malformed[name] = int(n_malformed[j])
        if column[COUNT] == 0 or column[LOW] == column[HIGH]:
            report.constant.append(name)
        if column[COUNT] < MIN_ROWS:
            continue
        if kind == CATEGORY and column[REPEATS] < len(known) and _mean_words(known) >= MIN_WORDS:
            report.free_text.append(name)
        elif looks_like_id(kind, column, encoder.n_named):
            report.id_like.append(name)
    return report


def _mean_words(texts: list[str]) -> float:
    """Return the mean number of words of letters only.

    >>> _mean_words(["call me back, please", "order no 2024-17"])
    3.0
    """
    return sum(word.strip(punctuation).isalpha() for text in texts for word in text.split()) / len(texts)


def useless_columns(encoder: Encoder) -> dict[str, list[str]]:
    """Return the columns to report after a fit, by field of the report; columns whose kind is set are left out."""
    report, pinned = report_of(encoder), dict(encoder.part.kinds)
    rows = encoder.state.statistics[COUNT] + encoder.state.statistics[MISSING]
    known = {name for name, n in zip(encoder.state.names, rows, strict=True) if n >= MIN_ROWS and name not in pinned}
    return {what: [name for name in getattr(report, what) if name in known] for what in USELESS}


def warn_of_ignored(encoder: Encoder, row: Values, stacklevel: int) -> None:
    """Warn, the first time, that a row has a new name for which no spare column is left."""
    reserve = encoder.state.reserve
    if row.ignored and reserve is not None and not reserve.ignored:
        warnings.warn(
            f"the new column {row.ignored[0]!r} is ignored: all {reserve.size} spare columns are in use. Its values, "
            "and those of other new names, are counted in columns_.ignored; Columns(reserve=) sets the number",
            ColumnsWarning, stacklevel=stacklevel,
        )  # fmt: skip


def warn_of_columns(encoder: Encoder | None, stacklevel: int) -> None:
    """Warn once about all columns that are of little use to the model."""
    found = {} if encoder is None else useless_columns(encoder)
    named = [name for names in found.values() for name in names]
    if not named:
        return
    listed = "; ".join(f"{USELESS[what]}: {', '.join(map(repr, names))}" for what, names in found.items() if names)
    drop = ", ".join(f'{name!r}: "drop"' for name in named)
    text = f"columns of little use to the model ({listed}): leave them out, columns={{{drop}}}, or set their kinds"
    if found["free_text"]:
        text += "; free text can be passed as columns of hashed words, as scikit-learn's HashingVectorizer makes them"
    warnings.warn(text, ColumnsWarning, stacklevel=stacklevel)
