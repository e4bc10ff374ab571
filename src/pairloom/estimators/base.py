"""What every estimator over a learner shares: rows in, one at a time or many, and counters out."""

from abc import ABC, abstractmethod
from dataclasses import field, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags, check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from pairloom.base.checks import check_choice
from pairloom.base.times import TimeColumn
from pairloom.base.tree import OPTIONAL, node
from pairloom.base.typing import Array
from pairloom.base.validation import as_rows, check_finite, checked_rows, row_of
from pairloom.columns import ColumnReport, ColumnsLike
from pairloom.columns.encoder import Encoder
from pairloom.columns.frames import Table, is_named
from pairloom.columns.incoming import (
    Incoming,
    by_place,
    check_plain,
    check_unpinned,
    first_row,
    named_columns,
    one_row,
)
from pairloom.columns.kinds import columns_of
from pairloom.columns.state import CODES, ColumnsState
from pairloom.columns.times import time_of_row, times_of_array, times_of_frame
from pairloom.engines.state import LOSS, PAIRS, STEPS
from pairloom.estimators.card import Card
from pairloom.estimators.class_labels import Labels
from pairloom.estimators.class_weight import ClassCounts
from pairloom.models.base import Dtype
from pairloom.stream import Arrivals, ArrivalScores, Recent, RecentScores, Stream, StreamState
from pairloom.stream.forgetting import HalfLife, clock_of, forgetting_by


@node
class EstimatorState:
    """What an estimator has learned: the names of its columns, its seed, its classes, and the state of its stream.

    ``columns``: what is known of named columns, if rows were frames or mappings.
    ``class_counts``: what ``class_weight="balanced"`` has counted; None with other weights.
    """

    names: list[str] | None
    seed: int | None
    labels: Labels | None
    stream: StreamState
    columns: ColumnsState | None = field(default=None, metadata=OPTIONAL)
    class_counts: ClassCounts | None = field(default=None, metadata=OPTIONAL)


class StreamEstimator(BaseEstimator, ABC):
    """An estimator over a :class:`~pairloom.Stream`, ``stream_``: the one base of all of them.

    Rows are a dense array, CSR or a data frame; one row is a sequence or a mapping from column names. Named columns may
    hold numbers, categories, dates and gaps (:mod:`pairloom.columns`). Nothing here changes the model but
    ``_remember_columns``.
    """

    variants: ClassVar[dict[str, dict[str, Any]]] = {"": {}}
    """Parameters of the published forms of a system, by what is added to its name; each is tested and tabulated."""

    added: ClassVar[dict[str, Any]] = {"columns": None, "half_life": None}
    """Parameters that older files do not have, and what they stand for there."""

    local: ClassVar[tuple[str, ...]] = ()
    """Parameters that no file holds: they are of one machine, and a loaded model has their defaults."""

    dtype: Dtype
    columns: ColumnsLike = None
    half_life: HalfLife = None
    random_state: Any
    stream_: Stream
    _labels: Any = None
    _encoder: Encoder | None = None
    _class_counts: ClassCounts | None = None

    @abstractmethod
    def _stream_of(self, labels: Labels | None, seed: int | None) -> Stream:
        """The stream that the parameters stand for, before its first row."""

    @property
    @abstractmethod
    def card(self) -> Card:
        """Its line in the table of systems."""

    @property
    def n_seen_(self) -> int:
        """Rows learned."""
        check_is_fitted(self)
        return self.stream_.n_seen

    @property
    def n_pairs_(self) -> int:
        """Pairs the model has learned from."""
        return int(self._learned.tally[PAIRS])

    @property
    def loss_(self) -> float:
        """Mean loss of the rows against their partners, each taken before its step; NaN before the first."""
        tally = self._learned.tally
        return float(tally[LOSS] / tally[STEPS]) if tally[STEPS] else float("nan")

    @property
    def nbytes_(self) -> int:
        """Bytes of all arrays that the model holds."""
        check_is_fitted(self)
        return self.stream_.nbytes + (0 if self._encoder is None else self._encoder.nbytes)

    @property
    def columns_(self) -> ColumnReport | None:
        """What is known of the columns, by name; None if they have none."""
        check_is_fitted(self)
        return None if self._encoder is None else ColumnReport.of(self._encoder)

    @property
    def state_(self) -> EstimatorState:
        """All that was learned, as one tree: :func:`pairloom.base.tree.flatten` makes named arrays and values of it."""
        check_is_fitted(self)
        assert self.stream_.state is not None
        names = getattr(self, "feature_names_in_", None)
        return EstimatorState(
            None if names is None else names.tolist(), self.stream_.model.seed, self._labels, self.stream_.state,
            None if self._encoder is None else self._encoder.state,
            self._class_counts,
        )  # fmt: skip

    def with_state(self, state: EstimatorState) -> Self:
        """An estimator with these parameters that has learned what another one with the same parameters had."""
        made: Self = clone(self)
        made.stream_ = made._stream_of(state.labels, state.seed)
        made.stream_.resume(state.stream)
        made.n_features_in_ = state.stream.n_features
        if state.columns is not None:
            made._encoder = Encoder(columns_of(self.columns), state.columns)
            made.n_features_in_ = len(state.columns.names)
        if state.labels is not None:
            made._labels, made._class_counts = state.labels, state.class_counts
        if state.names is not None:
            made.feature_names_in_ = np.asarray(state.names, dtype=object)
        return made

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text = str(super().__repr__(N_CHAR_MAX=N_CHAR_MAX))
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
        """Whether values of a row may be missing: the map must take them, and nobody cluster rows by them."""
        if self._started:
            return self.stream_.model.takes_nan
        by_input = "input" in (getattr(self, "cluster_in", None), getattr(getattr(self, "memory", None), "space", None))
        return getattr(getattr(self, "features", None), "takes_nan", False) and not by_input

    @property
    def _layout(self) -> int | None:
        """How named columns become numbers: as they are for a model that takes missing values."""
        return CODES if self._takes_nan else None

    @property
    def _started(self) -> bool:
        return hasattr(self, "stream_")

    @property
    def _learned(self) -> Any:
        """What the model has learned."""
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
        """Scores that the newest rows had when they came, with labels and weights."""
        recent = self._recent
        assert self.stream_.state is not None
        arrivals: Arrivals = self.stream_.state.observed[ArrivalScores.name]
        n = min(arrivals.count, recent.count)
        return arrivals.scores[:n], recent.labels[:n], recent.weights[:n]

    def _clock(self, *, first: bool) -> TimeColumn | None:
        """The column that tells the time of rows, if they fade by it."""
        return clock_of(forgetting_by(self.half_life)) if first else self.stream_.clock

    def _row_to_learn(self, x: Any) -> Incoming:
        """One valid example, to be learned, with its time."""
        row, clock = self._checked_row(x), self._clock(first=not self._started)
        if clock is None:
            return row
        return replace(row, time=time_of_row(clock, x, None if row.encoder is None else row.encoder.state.names))

    def _checked_row(self, x: Any) -> Incoming:
        """One valid example."""
        if not self._started:
            check_choice("dtype", self.dtype, Dtype)
            named = first_row(x, self.dtype, self.columns, self._layout)
            return named or Incoming(row_of(x, None, None, self.dtype, nan=self._takes_nan), self.dtype)
        dtype, encoder = self.stream_.model.dtype, self._encoder
        if encoder is not None:
            return Incoming(encoder.read(one_row(encoder, x), dtype), dtype, encoder)
        return Incoming(row_of(x, self.n_features_in_, None, dtype, nan=self._takes_nan), dtype)

    def _row(self, x: Any) -> Array:
        """One example to be scored, as a valid (1, d) array of the model's dtype."""
        if self._encoder is not None:
            return self._encoder.encode(one_row(self._encoder, x), self.stream_.model.dtype)
        row: Array = self._checked_row(x).rows
        return row

    def _rows_to_learn(self, X: Any, *, first: bool) -> Incoming:
        """Rows to be learned, with their times."""
        rows, clock = self._checked_rows(X, first=first), self._clock(first=first)
        if clock is None:
            return rows
        named = isinstance(rows.rows, Table) and is_named(X)
        names = None if rows.encoder is None else rows.encoder.state.names
        return replace(rows, time=times_of_frame(clock, X) if named else times_of_array(clock, X, names))

    def _checked_rows(self, X: Any, *, first: bool) -> Incoming:
        """Rows, dense, CSR or of named columns; unless it is the first call, with the columns that the model knows."""
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
            return Incoming(by_place(encoder, rows), dtype, encoder)
        return Incoming(rows, dtype)

    def _read(self, incoming: Incoming) -> Incoming:
        """Rows of positive weight, with valid values."""
        return incoming.read(self.columns, self._layout)

    def _rows_to_score(self, X: Any) -> Any:
        """Valid rows with the columns that the model knows, as numbers."""
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
        """Whether rows need no more than a check for finite values.

        scikit-learn's validation costs as much as learning a hundred rows.
        """
        return (
            type(X) is np.ndarray
            and X.dtype in (np.float32, np.float64)
            and X.ndim == 2
            and len(X) > 0
            and X.shape[1] == self.n_features_in_
            and not hasattr(self, "feature_names_in_")
        )

    def _remember_columns(self, row: Incoming) -> None:
        """Take the number and the names of the columns from the first row, given alone."""
        self._encoder = row.encoder
        self.n_features_in_ = row.shape[1]
        if row.encoder is not None:
            names = row.encoder.state.names
            self.n_features_in_, self.feature_names_in_ = len(names), np.asarray(names, dtype=object)
