"""Changes of columns and scores: those found on the stream of an estimator, and those in rows that it did not learn."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pairloom.base.csr import is_sparse
from pairloom.columns.changes import ASPECTS, NEW_VALUES, SCORE, ColumnChange
from pairloom.columns.incoming import named_columns, table_by_position
from pairloom.columns.loops import NUMBER
from pairloom.columns.windows import BLOCK, compare_values
from pairloom.stream.history import StreamHistory
from pairloom.stream.hooks import N_RECENT, Arrivals, ArrivalScores

if TYPE_CHECKING:
    from pairloom.estimators.base import StreamEstimator

MAX_NAMES = 5
"""Names of new categories in a report."""


def names_of(model: "StreamEstimator") -> list[str]:
    """Return the names of the columns; those of an array are x0, x1, ..."""
    names = getattr(model, "feature_names_in_", None)
    return [f"x{j}" for j in range(model.n_features_in_)] if names is None else list(map(str, names))


def changes_found(model: "StreamEstimator") -> list[ColumnChange]:
    """Return the newest changes of columns found on the stream, in the order of their rows."""
    if model._windows is None:
        return []
    known = [[]] * model.n_features_in_ if model._encoder is None else model._encoder.state.categories
    names, numbers, found, log = names_of(model), _are_numbers(model), [], model._windows.found
    for (row, j, changed, low, high), values in zip(log.places.tolist(), log.values.tolist(), strict=True):
        new = known[j][low : min(high, low + MAX_NAMES)] if changed & NEW_VALUES else []
        found.append(_change(names[j], row, changed, values, numbers[j], new))
    return found


def newest_by_column(changes: Iterable[ColumnChange]) -> dict[str, ColumnChange]:
    """Return the newest change of each column that has one, the newest first."""
    newest = {change.column: change for change in changes}
    return dict(sorted(newest.items(), key=lambda item: -item[1].row))


def changes_shown(model: "StreamEstimator") -> list[ColumnChange]:
    """Return the newest change of each column, and the report on the scores."""
    return [*newest_by_column(changes_found(model)).values(), *_score_report(model, None)]


def compare_rows(model: "StreamEstimator", X: Any) -> dict[str, ColumnChange]:
    """Compare rows with those learned, by column, and their scores; None: the newest rows."""
    rows = None if X is None else model._rows_to_score(X)
    report = [*_column_reports(model, X, rows), *_score_report(model, rows)]
    return {one.column: one for one in report}


def _column_reports(model: "StreamEstimator", X: Any, rows: Any) -> Iterator[ColumnChange]:
    windows, encoder = model._windows, model._encoder
    if windows is None:
        return
    if windows.t < BLOCK:
        raise ValueError(f"rows are compared with at least {BLOCK} rows that the model has learned, not {windows.t}")
    new: Sequence[list[str]] = [[]] * model.n_features_in_
    if rows is None:
        changed, values = windows.compare_newest(None if encoder is None else encoder.state.kinds[: windows.n_columns])
    elif encoder is None:
        changed, values = windows.compare_with(np.asarray(rows.toarray() if is_sparse(rows) else rows, float))
    else:
        table = named_columns(X, encoder.part, encoder) or table_by_position(encoder, rows)
        read = encoder.read(table, model.stream_.model.dtype)
        changed, values = encoder.compare(windows, read)
        new = [_unknown(one, known) for one, known in zip(read.columns, encoder.state.slots, strict=True)]
    n = windows.n_columns  # late columns are not compared
    names, numbers = names_of(model)[:n], _are_numbers(model)[:n]
    for name, *rest in zip(names, changed.tolist(), values.tolist(), numbers, new[:n], strict=True):
        yield _change(name, model.n_seen_, *rest)


def _score_report(model: "StreamEstimator", rows: Any) -> Iterator[ColumnChange]:
    """Compare the scores of rows with those that the newest rows had on arrival; None: the newest half with the other.

    Nothing if the model records no history, or has fewer than 1,024 scores.
    """
    history = next((hook for hook in model.stream_.hooks if isinstance(hook, StreamHistory)), None)
    state = model.stream_.state
    if history is None or state is None:
        return
    arrivals: Arrivals = state.observed[ArrivalScores.name]
    n = min(arrivals.count, N_RECENT)
    if n < 2 * BLOCK:
        return
    older = history.one_score(arrivals.scores[np.arange(arrivals.count - n, arrivals.count) % N_RECENT])
    if rows is None:
        older, newer = older[: n // 2], older[n // 2 :]
    else:
        newer = history.one_score(model.stream_.score_rows(rows).reshape(rows.shape[0], -1))
    values = compare_values(older, newer.astype(float))
    yield _change(SCORE, model.n_seen_, 0, values.tolist(), True, [])


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
