"""Saving and restoring the state of an estimator."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import field, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from pairloom.base.checks import check_count
from pairloom.base.graph import Graph, MLOpset, OnHashed, Value
from pairloom.base.merging import forked
from pairloom.base.saving import CHANGED_AFTER_FIT, Savable, StateReader, checked_names
from pairloom.base.spec import StateSpec, WrongState, field_types
from pairloom.base.tree import OPTIONAL, copy, node
from pairloom.base.typing import Array
from pairloom.columns import ColumnsLike
from pairloom.columns.encoder import Encoder, Keep
from pairloom.columns.graph import encoded
from pairloom.columns.kinds import columns_of
from pairloom.columns.newest import NewestRows
from pairloom.columns.state import COMPACT, ColumnsState
from pairloom.columns.windows import WIDEST, ColumnWindows
from pairloom.estimators.class_labels import Labels, declared_classes
from pairloom.estimators.class_weight import ClassCounts, check_class_weight, is_balanced
from pairloom.estimators.merging import merge_estimators
from pairloom.estimators.scikit_learn import BaseEstimator
from pairloom.models.base import code_of
from pairloom.stream import AlertBudget, Stream
from pairloom.stream.state import StreamState

ROWS = "X"
"""The input of an ONNX model of rows without names."""


@node
class FileColumns:
    """The columns of the files that a model learned from, besides its features: ``label``, ``weight`` and ``dropped``.

    The commands need these to continue a model and to evaluate it; learning does not depend on them.
    """

    label: str
    weight: str | None = None
    dropped: list[str] = field(default_factory=list)


@node
class EstimatorState:
    """The learned state of an estimator: names of columns, seed, classes, and the state of its stream.

    ``columns``: the encoder of named columns, if rows are frames or mappings.
    ``class_counts``: the counts of ``class_weight="balanced"``; None for other weights.
    ``alerts``: the alert budget, if one was requested. ``windows``: the windows in which changes of columns are found,
    if they are. ``file_columns``: if the rows are from files, the columns besides the features. ``newest``: the newest
    rows of each class, with which other rows are compared; None if there are too many columns, or in earlier files.
    """

    names: list[str] | None
    seed: Annotated[int, "0:"] | None
    labels: Labels | None
    stream: Annotated[StreamState, "@stream"]
    columns: ColumnsState | None = field(default=None, metadata=OPTIONAL)
    class_counts: ClassCounts | None = field(default=None, metadata=OPTIONAL)
    alerts: AlertBudget | None = field(default=None, metadata=OPTIONAL)
    windows: ColumnWindows | None = field(default=None, metadata=OPTIONAL)
    file_columns: FileColumns | None = field(default=None, metadata=OPTIONAL)
    newest: NewestRows | None = field(default=None, metadata=OPTIONAL)


class SavableEstimator(Savable, BaseEstimator, ABC):
    """An estimator whose state is one tree, in memory and in files.

    Attributes
    ----------
    state_ : everything learned, as one tree of arrays and values.
    """

    added: ClassVar[dict[str, Any]] = {"columns": None, "half_life": None}
    """Parameters missing from older files, with the values to use for them."""

    local: ClassVar[tuple[str, ...]] = ()
    """Parameters that are specific to one machine and not saved. A loaded model has their defaults."""

    names_classes: ClassVar[bool] = False
    """Whether classes may be declared before the first row."""

    finds_column_changes: ClassVar[bool] = False
    """Whether changes of columns are looked for."""

    columns: ColumnsLike
    n_features_in_: int
    feature_names_in_: Array
    stream_: Stream
    _labels: Any
    _declared: Array | None
    _encoder: Encoder | None
    _class_counts: ClassCounts | None
    _alerts: AlertBudget | None
    _windows: ColumnWindows | None
    _file_columns: FileColumns | None
    _newest: NewestRows | None

    @abstractmethod
    def _stream_of(self, labels: Labels | None, seed: int | None, columns: ColumnsState | None) -> Stream:
        """Return the stream that the parameters describe, for rows with these columns: its model and its hooks."""

    @property
    def state_(self) -> EstimatorState:
        """Everything learned, as one tree; :func:`pairloom.base.tree.flatten` turns it into named arrays and values."""
        check_is_fitted(self)
        assert self.stream_.state is not None
        names = getattr(self, "feature_names_in_", None)
        return EstimatorState(
            None if names is None else names.tolist(), self.stream_.model.seed, self._labels, self.stream_.state,
            None if self._encoder is None else self._encoder.state,
            self._class_counts, self._alerts, self._windows, self._file_columns, self._newest,
        )  # fmt: skip

    def with_state(self, state: EstimatorState) -> Self:
        """Return an estimator with these parameters and the ``state_`` of another one with the same parameters."""
        made: Self = clone(self)
        made.stream_ = made._stream_of(state.labels, state.seed, state.columns)
        made.stream_.resume(state.stream)
        made.n_features_in_ = state.stream.n_features
        if state.columns is not None:
            made._encoder = Encoder(columns_of(self.columns), state.columns)
            made.n_features_in_ = len(state.columns.names)
        if state.labels is not None:
            made._labels, made._class_counts = state.labels, state.class_counts
        made._alerts, made._file_columns = copy(state.alerts), copy(state.file_columns)
        if state.names is not None:
            made.feature_names_in_ = np.asarray(state.names, dtype=object)
        made._windows = made._new_windows() if state.windows is None else state.windows
        made._newest = state.newest
        return made

    def forked(self, number: int, pace: float) -> Self:
        """Return one of the copies of :meth:`fork`; ``pace``: by which its steps are multiplied."""
        made = self.with_state(forked(self.state_, number, pace))
        for name in self.local:
            setattr(made, name, None)
        return made

    def fork(self, n: int) -> list[Self]:
        """Return n copies that learn rows of their own, about as many each, to be merged again.

        This model does not change. Each copy has random numbers of its own, and takes n times the steps of one stream,
        since their weights are averaged. Trees and candidates stay as they are until the merge, and drift is not tested
        for.
        """
        check_is_fitted(self)
        check_count("n", n)
        self.stream_.check_whole()
        return [self.forked(k, n) for k in range(n)]

    def merge(self, parts: Sequence[Self]) -> Self:
        """Return a model that has learned the rows of this one, and those that each of its copies learned beyond them.

        ``parts`` are copies of this model (:meth:`fork`) that continued on rows of their own, all at once, so that
        what this model knows is counted once. Sums over rows are exact up to rounding; weights learned by steps are
        averaged. Recent scores are pooled, and log-odds fitted to them. The history, the alert budget, the windows of
        columns and the test for drift continue from this model. Raises TypeError if the model cannot be merged, and
        ValueError, naming the part, if one is not a copy.

        >>> from pairloom.systems import ExactAUC
        >>> X = np.random.default_rng(0).normal(size=(300, 3))
        >>> base = ExactAUC(random_state=0).fit(X[:100], X[:100, 0] > 0.5)
        >>> parts = base.fork(2)
        >>> for k, part in enumerate(parts):
        ...     rows = X[100 + 100 * k : 200 + 100 * k]
        ...     part = part.partial_fit(rows, rows[:, 0] > 0.5)
        >>> base.merge(parts).n_seen_
        300
        """
        return self.with_state(merge_estimators(self, parts))

    def _new_windows(self) -> ColumnWindows | None:
        """Return empty windows, if changes of columns are looked for and there are not too many columns."""
        n = self.n_features_in_ if self._encoder is None else self._encoder.state.n_first
        return ColumnWindows.empty(n) if self.finds_column_changes and 0 < n <= WIDEST else None

    def _keeper(self, codes: Array) -> Keep | None:
        """Return what keeps the newest of rows of the classes with these codes, all 0 for real labels."""
        if self._newest is None:
            labels = self._labels
            self._newest = NewestRows.empty(1 if labels is None else max(2, len(labels.classes)), self.n_features_in_)
        return None if self._newest is None else partial(self._newest.add, codes)

    def _saved_params(self) -> dict[str, Any]:
        return {name: value for name, value in self.get_params(deep=False).items() if name not in self.local}

    def _saved_state(self) -> tuple[Any, list[str] | None]:
        if not hasattr(self, "stream_"):
            return None if self._declared is None else {"declared": self._declared}, None
        self.stream_.check_whole()
        state = self.state_
        counts = is_balanced(getattr(self, "class_weight", None)) == (state.class_counts is not None)
        same_columns = self._encoder is None or self._encoder.part == columns_of(self.columns)
        described = self._stream_of(state.labels, state.seed, state.columns)
        same_stream = (described.model, described.hooks) == (self.stream_.model, self.stream_.hooks)
        if not (counts and same_columns and same_stream):
            raise ValueError(CHANGED_AFTER_FIT.format(type(self).__name__))
        return replace(state, names=None), None if state.names is None else list(map(str, state.names))

    @abstractmethod
    def _graph_outputs(self, scores: Value) -> dict[str, tuple[Value, int]]:
        """Return the predictions in an ONNX graph for the scores of the model, each with its number of columns."""

    def _graph(self, ml_opset: MLOpset, on_hashed: OnHashed) -> Graph:
        """Return the graph; an output with the name of a column gets an underscore after its name."""
        check_is_fitted(self)
        graph, dtype = Graph(ml_opset), code_of(self.stream_.model.dtype)
        if self._encoder is not None:
            x = encoded(self._encoder, graph, dtype, on_hashed)
        else:
            x = graph.input(ROWS, dtype, self.n_features_in_)
        for name, (value, columns) in self._graph_outputs(self.stream_.to_onnx(x)).items():
            own = name
            while own in graph.inputs:
                own += "_"
            graph.outputs[own] = value if name == "label" else value.to(dtype), columns
        return graph

    def _state_spec(self, reader: StateReader) -> StateSpec:
        if self.names_classes and reader.kind("") == "dict declared":
            return StateSpec()
        names = ("labels", "seed", "columns") if reader.kind("columns") else ("labels", "seed")
        early = {name: reader.read_early(name, field_types(EstimatorState)[name]) for name in names}
        labels, columns = early["labels"], early.get("columns")
        if columns is not None:
            self._check_columns(columns, columns.width)
        stream = self._stream_of(labels, early["seed"], columns)
        symbols = {} if labels is None else {"C": max(2, len(labels.classes))}
        return StateSpec(EstimatorState, symbols, stream._state_spec(reader).parts, check=self._check_state)

    def _restored(self, state: Any, names: Any) -> Self:
        if isinstance(state, dict):
            self._declared = declared_classes(state["declared"])
            return self
        known = None if state.columns is None else state.columns.names
        state.names = checked_names(names, state.stream.n_features if known is None else len(known))
        if known is not None and known != state.names:
            raise ValueError("the names of the columns must be those of the model")
        return self.with_state(state)

    def _check_state(self, state: EstimatorState) -> None:
        """Raise ValueError unless the state of classes and columns fits the parameters."""
        class_weight = getattr(self, "class_weight", None)
        check_class_weight(class_weight)
        counted = is_balanced(class_weight) and state.labels is not None
        if counted != (state.class_counts is not None):
            raise WrongState(f"must be {'present' if counted else 'absent'}", "class_counts")
        if state.names is not None:
            raise WrongState("must be absent: the header has them", "names")
        if state.class_counts is not None and state.labels is not None:
            state.class_counts.check_with(state.labels)
        n_columns = state.stream.n_features if state.columns is None else state.columns.n_first
        if state.windows is not None and (not self.finds_column_changes or state.windows.n_columns != n_columns):
            raise WrongState(f"must be of {n_columns} columns", "windows")
        n_classes = 1 if state.labels is None else max(2, len(state.labels.classes))
        n_columns = n_columns if state.columns is None else len(state.columns.names)
        if state.newest is not None and state.newest.values.shape[::2] != (n_classes, n_columns):
            raise WrongState(f"must be of {n_classes} classes and {n_columns} columns", "newest")
        if state.columns is not None and state.columns.layout != COMPACT:
            self._check_columns(state.columns, state.stream.n_features)

    def _check_columns(self, columns: ColumnsState, n_features: int) -> None:
        """Raise ValueError unless the columns are possible with these parameters and ``n_features`` features."""
        part = columns_of(self.columns)
        named, shared = part.n_codes(columns.n_columns, compact=columns.layout == COMPACT)
        columns.check_with(named, shared, n_features, part.reserve)
