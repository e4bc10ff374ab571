"""Changes of columns and scores of an estimator: those found on its stream, and those in rows that it has not learned."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pairloom.base.csr import is_sparse
from pairloom.columns.changes import ASPECTS, NEW_VALUES, SCORE, ColumnChange
from pairloom.columns.incoming import named_columns, table_by_position
from pairloom.columns.loops import NUMBER
from pairloom.columns.windows import BLOCK, WIDEST
from pairloom.stream.score_changes import ScoreChanges, ScoreWindows, one_score

if TYPE_CHECKING:
    from pairloom.estimators.base import StreamEstimator

MAX_NAMES = 5
"""Names of new categories in a report."""


def names_of(model: "StreamEstimator") -> list[str]:
    """Return the names of the columns; those of an array are x0, x1, ..."""
    names = getattr(model, "feature_names_in_", None)
    return [f"x{j}" for j in range(model.n_features_in_)] if names is None else list(map(str, names))


def changes_found(model: "StreamEstimator") -> list[ColumnChange]:
    """Return the newest changes of columns and scores found on the stream, in the order of their rows."""
    found: list[ColumnChange] = []
    if model._windows is not None:
        known = [[]] * model.n_features_in_ if model._encoder is None else model._encoder.state.categories
        names, numbers = names_of(model), _are_numbers(model)
        log = model._windows.found
        for (row, j, changed, low, high), values in zip(log.places.tolist(), log.values.tolist(), strict=True):
            new = known[j][low : min(high, low + MAX_NAMES)] if changed & NEW_VALUES else []
            found.append(_change(names[j], row, changed, values, numbers[j], new))
    scores = _score_windows(model)
    if scores is not None:
        log = scores.windows.found
        for (row, _, changed, *_), values in zip(log.places.tolist(), log.values.tolist(), strict=True):
            found.append(_change(SCORE, row, changed, values, True, []))
    return sorted(found, key=lambda change: change.row)


def newest_by_column(changes: Iterable[ColumnChange]) -> dict[str, ColumnChange]:
    """Return the newest change of each column that has one, the newest first."""
    newest = {change.column: change for change in changes}
    return dict(sorted(newest.items(), key=lambda item: -item[1].row))


def compare_rows(model: "StreamEstimator", X: Any) -> dict[str, ColumnChange]:
    """Compare rows with those learned, by column, and their scores."""
    windows = model._windows
    if windows is None:
        raise ValueError(f"at most {WIDEST} columns are compared; this model has {model.n_features_in_:,}")
    if windows.t < BLOCK:
        raise ValueError(f"rows are compared with at least {BLOCK} rows that the model has learned, not {windows.t}")
    rows, row, encoder = model._rows_to_score(X), model.n_seen_, model._encoder
    new: Sequence[list[str]] = [[]] * model.n_features_in_
    if encoder is None:
        changed, values = windows.compare_with(np.asarray(rows.toarray() if is_sparse(rows) else rows, float))
    else:
        table = named_columns(X, encoder.part, encoder) or table_by_position(encoder, rows)
        read = encoder.read(table, model.stream_.model.dtype)
        changed, values = encoder.compare(windows, read)
        new = [_unknown(one, known) for one, known in zip(read.columns, encoder.state.slots, strict=True)]
    columns = zip(names_of(model), changed.tolist(), values.tolist(), _are_numbers(model), new, strict=True)
    report = {name: _change(name, row, *rest) for name, *rest in columns}
    own = _score_windows(model)
    if own is not None and own.windows.t >= BLOCK:
        scores = model.stream_.score_rows(rows).reshape(rows.shape[0], -1).astype(float)
        changed, values = own.windows.compare_with(one_score(scores, _positive(model))[:, None])
        report[SCORE] = _change(SCORE, row, *changed.tolist(), *values.tolist(), True, [])
    return report


def _change(name: str, row: int, changed: int, values: list[float], number: bool, new: list[str]) -> ColumnChange:
    """Return a change with the ``values`` of :class:`~pairloom.columns.windows.Found`."""
    psi, *shares = values[:5]
    low, high, low_new, high_new = values[5:]
    ranges = ((low, high), (low_new, high_new)) if number and low <= high and low_new <= high_new else None
    what = tuple(aspect for bit, aspect in ASPECTS.items() if changed & bit)
    return ColumnChange(name, row, what, psi, (shares[0], shares[1]), (shares[2], shares[3]), tuple(new), ranges)


def _are_numbers(model: "StreamEstimator") -> list[bool]:
    if model._encoder is None:
        return [True] * model.n_features_in_
    return [kind == NUMBER for kind in model._encoder.state.plain_kinds]


def _unknown(column: Any, known: dict[str, int]) -> list[str]:
    """Return the first categories of a column that are not known."""
    if type(column) is not list:
        return []
    return list(dict.fromkeys(value for value in column if value is not None and value not in known))[:MAX_NAMES]


def _score_windows(model: "StreamEstimator") -> ScoreWindows | None:
    state = model.stream_.state
    return None if state is None else state.observed.get(ScoreChanges.name)


def _positive(model: "StreamEstimator") -> int | None:
    """Return the class whose scores are compared."""
    return next(hook.positive for hook in model.stream_.hooks if isinstance(hook, ScoreChanges))
