"""What every estimator over a learner shares: rows in, one at a time or many, and counters out."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags, check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from pairloom.base.checks import check_choice
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.base.validation import as_rows, check_finite, checked_rows, named_row, row_of
from pairloom.columns import ColumnsLike
from pairloom.engines.state import LOSS, PAIRS, STEPS
from pairloom.estimators.card import Card
from pairloom.estimators.class_labels import Labels
from pairloom.models.base import Dtype
from pairloom.stream import Arrivals, ArrivalScores, Recent, RecentScores, Stream, StreamState


@node
class EstimatorState:
    """What an estimator has learned: the names of its columns, its seed, its classes, and the state of its stream."""

    names: list[str] | None
    seed: int | None
    labels: Labels | None
    stream: StreamState


class StreamEstimator(BaseEstimator, ABC):
    """An estimator over a :class:`~pairloom.Stream`, ``stream_``: the one base of all of them.

    Rows are a dense array, CSR or a data frame; one row is a sequence or a mapping from column names. Nothing here
    changes the model but ``_remember_columns``.
    """

    variants: ClassVar[dict[str, dict[str, Any]]] = {"": {}}
    """Parameters of the published forms of a system, by what is added to its name; each is tested and tabulated."""

    added: ClassVar[dict[str, Any]] = {"columns": None}
    """Parameters that older files do not have, and what they stand for there."""

    dtype: Dtype
    columns: ColumnsLike
    random_state: Any
    stream_: Stream
    _labels: Any = None

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
        return self.stream_.nbytes

    @property
    def state_(self) -> EstimatorState:
        """All that was learned, as one tree: :func:`pairloom.base.tree.flatten` makes named arrays and values of it."""
        check_is_fitted(self)
        assert self.stream_.state is not None
        names = getattr(self, "feature_names_in_", None)
        return EstimatorState(
            None if names is None else names.tolist(), self.stream_.model.seed, self._labels, self.stream_.state
        )

    def with_state(self, state: EstimatorState) -> Self:
        """An estimator with these parameters that has learned what another one with the same parameters had."""
        made: Self = clone(self)
        made.stream_ = made._stream_of(state.labels, state.seed)
        made.stream_.state = state.stream
        made.n_features_in_ = state.stream.n_features
        if state.labels is not None:
            made._labels = state.labels
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

    def _row(self, x: Any) -> Array:
        """One example as a valid (1, d) array of the model's dtype."""
        if self._started:
            names = getattr(self, "feature_names_in_", None)
            return row_of(x, self.n_features_in_, names, self.stream_.model.dtype, nan=self._takes_nan)
        check_choice("dtype", self.dtype, Dtype)
        x = named_row(x)
        if isinstance(x, Mapping) and not all(isinstance(name, str) for name in x):
            raise ValueError(f"the columns of a row given as a mapping must be named by text, got {list(x)}")
        return row_of(x, None, list(x) if isinstance(x, Mapping) else None, self.dtype, nan=self._takes_nan)

    def _rows_to_learn(self, X: Any, *, first: bool) -> Any:
        """Valid rows, dense or CSR; unless it is the first call, with the columns that the model knows."""
        check_choice("dtype", self.dtype, Dtype)
        dtype = self.dtype if first else self.stream_.model.dtype
        if not first and self._is_plain(X):
            rows = as_rows(X, dtype)
        else:
            check = partial(check_array, estimator=self)
            rows = as_rows(checked_rows(X, dtype, check, nan=self._takes_nan), dtype)
            if not first:
                validate_data(self, X, reset=False, skip_check_array=True)
        check_finite(rows, dtype, X, nan=self._takes_nan)
        return rows

    def _rows_to_score(self, X: Any) -> Any:
        """Valid rows with the columns that the model knows."""
        check_is_fitted(self)
        check = partial(validate_data, self, reset=False)
        return checked_rows(X, self.stream_.model.dtype, check, nan=self._takes_nan)

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

    def _remember_columns(self, x: Any, n_features: int) -> None:
        """Take the number and the names of the columns from the first row, given alone."""
        self.n_features_in_ = n_features
        x = named_row(x)
        if isinstance(x, Mapping):
            self.feature_names_in_ = np.asarray(list(x), dtype=object)
