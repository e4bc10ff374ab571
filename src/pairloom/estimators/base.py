"""The base of all estimators: validation of rows, one at a time or many, and the counters of a stream."""

from abc import abstractmethod
from dataclasses import field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import Tags, check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from pairloom.base.batch import TimeColumn
from pairloom.base.checks import check_choice
from pairloom.base.compact import CODE
from pairloom.base.randomness import RandomState, next_seed
from pairloom.base.tree import nbytes
from pairloom.base.typing import Array
from pairloom.base.validation import as_rows, check_finite, checked_rows, row_of
from pairloom.columns import ColumnReport, ColumnsLike
from pairloom.columns.encoder import Encoder
from pairloom.columns.frames import Table, is_named
from pairloom.columns.incoming import (
    Incoming,
    check_plain,
    check_unpinned,
    first_row,
    named_columns,
    one_row,
    table_by_position,
)
from pairloom.columns.kinds import columns_of
from pairloom.columns.newest import NewestRows
from pairloom.columns.report import report_of, warn_of_ignored
from pairloom.columns.state import COMPACT, MARKED, PLAIN, ColumnsState, Layouts
from pairloom.columns.times import time_of_row, times_of_array, times_of_frame
from pairloom.columns.windows import ColumnWindows
from pairloom.engines.base import EngineName
from pairloom.engines.state import LOSS, PAIRS, STEPS
from pairloom.estimators.card import Card
from pairloom.estimators.class_labels import Labels
from pairloom.estimators.class_weight import ClassCounts
from pairloom.estimators.column_changes import changes_found, newest_by_column
from pairloom.estimators.parameters import estimator
from pairloom.estimators.saving import FileColumns, SavableEstimator
from pairloom.features.encoding import Encoding
from pairloom.models.base import Dtype, Model
from pairloom.stream import AlertBudget, ArrivalScores, Hook, RecentScores, Stream
from pairloom.stream.drift import watch_of
from pairloom.stream.forgetting import HalfLife, forgetting_by, time_column_of
from pairloom.stream.hooks import Arrivals, Recent


@estimator
class StreamEstimator(SavableEstimator):
    """Base class of all estimators: a scikit-learn estimator around a :class:`~pairloom.Stream`.

    Rows are a dense array, a CSR matrix or a data frame; a single row is a sequence, or a mapping from column names to
    values. Named columns may hold numbers, categories, dates and missing values (:mod:`pairloom.columns`).

    Parameters
    ----------
    dtype : "float32" or "float64": type of features and weights. Counts and moments are always float64.
    random_state : seed of all randomness: an int, a Generator or RandomState, or None for a fresh seed.
    engine : "auto" (the fastest that fits), "fused" (compiled) or "reference" (the specification in NumPy, slow).
    columns : kinds of named columns, such as {"device": "category"}, or a :class:`~pairloom.columns.Columns`. None
        infers them from the types of the columns.
    half_life : number of rows after which the weight of a row is halved, such as 10_000; or a time column and a
        duration, such as ("when", "7d") with the units s, m, h, d and w, or a datetime.timedelta. The duration of a
        numeric time column is a number in the units of the column; without column names, pass the column's index.
        None: weights do not decay. See :class:`~pairloom.stream.Forgetting`.

    Attributes
    ----------
    stream_ : the :class:`~pairloom.Stream`: ``stream_.model`` holds the parts, ``stream_.state`` the arrays.
    n_seen_ : number of rows learned.
    n_pairs_ : number of pairs that the model has learned from.
    loss_ : mean loss of the rows against their partners, each taken before its own step.
    nbytes_ : bytes of all arrays of the model.
    columns_ : report on the named columns; None if the rows have no names.
    """

    variants: ClassVar[dict[str, dict[str, Any]]] = {"": {}}
    """Parameters of the published variants of a system, by name suffix; each variant is tested and tabulated."""

    dtype: Dtype = "float32"
    random_state: RandomState = None
    engine: EngineName = "auto"
    columns: ColumnsLike = None
    half_life: HalfLife = None

    stream_: Stream = field(init=False)
    _labels: Any = field(default=None, init=False)
    _declared: Array | None = field(default=None, init=False)
    _encoder: Encoder | None = field(default=None, init=False)
    _class_counts: ClassCounts | None = field(default=None, init=False)
    _alerts: AlertBudget | None = field(default=None, init=False)
    _windows: ColumnWindows | None = field(default=None, init=False)
    _newest: NewestRows | None = field(default=None, init=False)
    _file_columns: FileColumns | None = field(default=None, init=False)

    def _new_stream(self, labels: Labels | None, rows: Incoming) -> Stream:
        """Return a stream initialized for rows with these columns; raise ValueError if a part does not fit."""
        columns = None if rows.encoder is None else rows.encoder.state
        stream = self._stream_of(labels, next_seed(self.random_state), columns)
        stream.start(rows.shape[1])
        return stream

    @property
    @abstractmethod
    def card(self) -> Card:
        """The entry of this estimator in the table of systems."""

    @property
    def n_seen_(self) -> int:
        """Number of rows learned."""
        check_is_fitted(self)
        return self.stream_.n_seen

    @property
    def n_pairs_(self) -> int:
        """Number of pairs that the model has learned from."""
        return int(self._learned.tally[PAIRS])

    @property
    def loss_(self) -> float:
        """Mean loss of the rows against their partners, each taken before its own step; NaN before the first step."""
        tally = self._learned.tally
        return float(tally[LOSS] / tally[STEPS]) if tally[STEPS] else float("nan")

    @property
    def nbytes_(self) -> int:
        """Bytes of all arrays of the model."""
        check_is_fitted(self)
        return (
            self.stream_.nbytes
            + nbytes((self._windows, self._newest))
            + (0 if self._encoder is None else self._encoder.nbytes)
        )

    @property
    def columns_(self) -> ColumnReport | None:
        """Report on the named columns; None if the rows have no names."""
        check_is_fitted(self)
        if self._encoder is None:
            return None
        encoding, state, report = self.stream_.encoding, self.stream_.state, report_of(self._encoder)
        report.changes.update(newest_by_column(changes_found(self)))
        if encoding is not None and state is not None and state.encoding is not None:
            places = self._encoder.state.places
            hidden = {*report.id_like, *report.free_text} - dict(self._encoder.part.kinds).keys()
            for name, known in report.categories.items():
                if name in hidden:
                    continue
                report.effects[name] = encoding.effects(state.encoding, places[name], known)
        return report

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text = super().__repr__(N_CHAR_MAX)
        if not self._started:
            return text
        seen = f"{self.n_seen_:,} rows, {self.n_pairs_:,} pairs, loss {self.loss_:.4g}, {self.nbytes_ / 1e6:.3g} MB"
        return f"{text}  # {seen}"

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._takes_nan
        return tags

    @property
    def _takes_nan(self) -> bool:
        """Whether rows may have missing values: the map supports them, and the memory does not cluster by input."""
        if self._started:
            return self.stream_.model.takes_nan
        by_input = "input" in (getattr(self, "cluster_in", None), getattr(getattr(self, "memory", None), "space", None))
        return getattr(getattr(self, "features", None), "takes_nan", False) and not by_input

    @property
    def _layouts(self) -> Layouts:
        """The layout of columns that are all numbers, and that of mixed columns."""
        return (COMPACT, COMPACT) if self._takes_nan or columns_of(self.columns).reserve else (PLAIN, MARKED)

    def _reading(self, model: Model, columns: ColumnsState | None) -> tuple[Model, Encoding | None]:
        """Return the model for rows with these columns, and what it receives of them."""
        if columns is None or columns.layout != COMPACT or (model.takes_nan and CODE not in columns.compact_kinds):
            return model, None
        targets = tuple(map(float, model.pairs.targets)) if model.pairs.n_groups else ()
        n_codes = sum(columns_of(self.columns).n_codes(columns.n_columns, compact=True))
        encoding = Encoding(columns.compact_kinds, targets, model.form, n_codes)
        return model.reading(encoding), encoding

    @property
    def _started(self) -> bool:
        return hasattr(self, "stream_")

    @property
    def _learned(self) -> Any:
        """The state of the model."""
        check_is_fitted(self)
        return self.stream_.learned

    @property
    def _recent(self) -> Recent:
        """The newest test-then-train scores."""
        check_is_fitted(self)
        assert self.stream_.state is not None
        ring: Recent = self.stream_.state.observed[RecentScores.name]
        return ring

    def _arrivals(self) -> tuple[Array, Array, Array]:
        """Return scores of the newest rows, each computed on arrival, with their labels and weights."""
        recent = self._recent
        assert self.stream_.state is not None
        arrivals: Arrivals = self.stream_.state.observed[ArrivalScores.name]
        n = min(arrivals.count, recent.count)
        return arrivals.scores[:n], recent.labels[:n], recent.weights[:n]

    def _time_column(self, *, first: bool) -> TimeColumn | None:
        """Return the column with the time of each row, if ``half_life`` is a duration."""
        return time_column_of(forgetting_by(self.half_life)) if first else self.stream_.time_column

    def _row_to_learn(self, x: Any) -> Incoming:
        """Validate one row to learn, with its time."""
        row, column = self._checked_row(x), self._time_column(first=not self._started)
        if row.encoder is not None:
            warn_of_ignored(row.encoder, row.rows, stacklevel=4)
        if column is None:
            return row
        return replace(row, time=time_of_row(column, x, None if row.encoder is None else row.encoder.state.names))

    def _checked_row(self, x: Any) -> Incoming:
        """Validate one row."""
        if not self._started:
            check_choice("dtype", self.dtype, Dtype)
            named = first_row(x, self.dtype, self.columns, self._layouts)
            return named or Incoming(row_of(x, None, None, self.dtype, nan=self._takes_nan), self.dtype)
        dtype, encoder = self.stream_.model.dtype, self._encoder
        if encoder is not None:
            return Incoming(encoder.read(one_row(encoder, x), dtype), dtype, encoder)
        return Incoming(row_of(x, self.n_features_in_, None, dtype, nan=self._takes_nan), dtype)

    def _row(self, x: Any) -> Array:
        """Validate one row to score: an array (1, d) of the model's dtype."""
        if self._encoder is not None:
            return self._encoder.encode(one_row(self._encoder, x), self.stream_.model.dtype)
        row: Array = self._checked_row(x).rows
        return row

    def _rows_to_learn(self, X: Any, *, first: bool) -> Incoming:
        """Validate rows to learn, with their times."""
        rows, column = self._checked_rows(X, first=first), self._time_column(first=first)
        if column is None:
            return rows
        named = isinstance(rows.rows, Table) and is_named(X)
        names = None if rows.encoder is None else rows.encoder.state.names
        return replace(rows, time=times_of_frame(column, X) if named else times_of_array(column, X, names))

    def _checked_rows(self, X: Any, *, first: bool) -> Incoming:
        """Validate dense rows, CSR rows or named columns; after the first call, with the columns of the model."""
        check_choice("dtype", self.dtype, Dtype)
        dtype, encoder = (self.dtype, None) if first else (self.stream_.model.dtype, self._encoder)
        table = named_columns(X, self.columns, encoder) if first or encoder is not None else None
        if table is not None:
            if not first:
                validate_data(self, X, reset=False, skip_check_array=True)
            return Incoming(table, dtype, encoder)
        if not first and self._is_plain(X):
            rows = as_rows(X, dtype)
        else:
            check = partial(check_array, estimator=self)
            rows = as_rows(checked_rows(X, dtype, check, nan=self._takes_nan), dtype)
            if not first:
                validate_data(self, X, reset=False, skip_check_array=True)
        check_finite(rows, dtype, X, nan=self._takes_nan)
        if first:
            check_unpinned(self.columns)
        elif encoder is not None and isinstance(rows, np.ndarray):
            return Incoming(table_by_position(encoder, rows), dtype, encoder)
        return Incoming(rows, dtype)

    def _rows_to_score(self, X: Any) -> Any:
        """Validate rows to score, with the columns of the model, and encode them as numbers."""
        check_is_fitted(self)
        encoder, dtype = self._encoder, self.stream_.model.dtype
        table = None if encoder is None else named_columns(X, encoder.part, encoder)
        if encoder is not None and table is not None:
            validate_data(self, X, reset=False, skip_check_array=True)
            return encoder.encode(table, dtype)
        rows = checked_rows(X, dtype, partial(validate_data, self, reset=False), nan=self._takes_nan)
        if encoder is not None:
            check_plain(encoder)
        return rows

    def _is_plain(self, X: Any) -> bool:
        """Whether a check for finite values is enough: scikit-learn's validation costs as much as learning 100 rows."""
        return (
            type(X) is np.ndarray
            and X.dtype in (np.float32, np.float64)
            and X.ndim == 2
            and len(X) > 0
            and X.shape[1] == self.n_features_in_
            and not hasattr(self, "feature_names_in_")
        )

    def _remember_columns(self, row: Incoming) -> None:
        """Store the number and the names of the columns of a first row that was passed to ``learn_one``."""
        self._encoder = row.encoder
        self.n_features_in_ = row.shape[1]
        if row.encoder is not None:
            self._name_columns(row.encoder.state.names)
        self._windows, self._newest = self._new_windows(), None

    def _name_columns(self, names: list[str]) -> None:
        self.n_features_in_, self.feature_names_in_ = len(names), np.asarray(names, dtype=object)

    def _name_arrivals(self) -> None:
        """Store the names of the columns again if a new one has arrived."""
        if self._encoder is not None and len(self._encoder.state.names) != self.n_features_in_:
            self._name_columns(self._encoder.state.names)


def forgetting_of(
    name: str, model: Model, half_life: Any = None, drift: Any = None, needs_all_rows: bool = False
) -> tuple[Hook, ...]:
    """Return the hooks for ``half_life`` and ``drift``; raise ValueError if the model has nothing to forget.

    >>> from pairloom.systems import ExactAUC
    >>> forgetting_of("ExactAUC", ExactAUC().to_model(), half_life=5_000)
    (Forgetting(half_life=5000.0, time=None),)
    """
    found = forgetting_by(half_life), () if drift is None else (watch_of(drift),)
    for parameter, value in zip(("half_life", "drift"), found, strict=True):
        instead = f"leave {parameter}=None, or use a system that forgets, such as FPOGD, SPAM or ExactAUC"
        if value and needs_all_rows:
            raise ValueError(f"{parameter}= is for streams, and {name} needs all rows at once: {instead}")
        if value and model.forgetting is None:
            raise ValueError(
                f"{parameter}= fades statistics of all rows so far, and {name} with these parameters keeps none: its "
                "steps do not shrink, it does not average or count rows, and every new row moves it equally. So "
                f"{instead}"
            )
    return (*found[0], *found[1])
