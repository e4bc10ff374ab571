"""The base of all classifiers: learn rows, labels and weights, in batches or one row at a time."""

from abc import abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length, validate_data

from pairloom.base.batch import Batch
from pairloom.base.interrupts import DeferredSignals
from pairloom.base.randomness import next_seed, seed_of
from pairloom.base.typing import Array
from pairloom.base.validation import check_weight, one_weight, positive_rows
from pairloom.columns.encoder import Keep
from pairloom.columns.incoming import Incoming
from pairloom.columns.newest import NewestRows
from pairloom.columns.report import warn_of_columns
from pairloom.columns.state import ColumnsState
from pairloom.estimators.alerts import ClassifierAlerts
from pairloom.estimators.base import forgetting_of
from pairloom.estimators.class_labels import Labels, check_class_labels, declared_classes, learn_labels
from pairloom.estimators.class_weight import (
    ClassCounts,
    ClassWeight,
    check_class_weight_labels,
    with_balanced_weight,
    with_class_weight,
)
from pairloom.estimators.order import random_order, warn_of_order
from pairloom.estimators.parameters import estimator
from pairloom.estimators.scikit_learn import ClassifierMixin
from pairloom.models.base import Model
from pairloom.pairs import OppositeClass, query_code, query_codes
from pairloom.stream import ArrivalScores, Hook, Stream
from pairloom.stream.drift import Drift


def is_online(model: "PairwiseClassifier") -> bool:
    """Raise AttributeError unless the classifier learns row by row."""
    if model.needs_all_rows:
        raise AttributeError(f"{model!r} needs all rows at once: call fit")
    return True


@estimator
class PairwiseClassifier(ClassifierMixin, ClassifierAlerts):
    """Base class of all classifiers.

    ``fit``, ``partial_fit`` on any chunks and ``learn_one`` give the same model, bit for bit, for the same rows in the
    same order. ``decision_function`` is a s(x) + b with a > 0: the log-odds of ``classes_[1]``, from a Platt fit to the
    newest 4,096 scores, each computed before its row was learned. ``predict_proba`` is its sigmoid, ``predict`` its
    sign. More than two classes are learned one against the rest; their probabilities are normalised.

    Parameters
    ----------
    pos_label : the positive class, which ``score_one`` and ``score_many`` score. None: ``classes_[1]``.
    class_weight : factors of ``sample_weight`` by label (1 for labels left out; rows of weight 0 are skipped), or
        "balanced": n / (k n_y), with n the weight of all rows so far, n_y that of the row's class and k the number of
        classes among them. As in scikit-learn, probabilities refer to the weighted classes; ``threshold`` does not.
    shuffle : whether ``fit`` learns the rows in a random order, which depends on ``random_state``. ``partial_fit`` and
        ``learn_one`` never shuffle, so their model is that of ``fit`` with ``shuffle=False``, the default.
    drift : "auto" monitors how high rows of the rarer class are ranked, and forgets the past when they fall. None:
        off. Or a detector with ``update(x)`` and ``drift_detected``, such as ``river.drift.ADWIN()``: it is copied, and
        a model with a detector cannot be saved. See :class:`~pairloom.stream.DriftWatch`.
    """

    added: ClassVar[dict[str, Any]] = {
        "columns": None, "class_weight": None, "half_life": None, "drift": None, "shuffle": False
    }  # fmt: skip
    names_classes: ClassVar[bool] = True

    pos_label: Any = None
    class_weight: ClassWeight = None
    shuffle: bool = False
    drift: Drift = None

    @abstractmethod
    def _make_model(self, n_classes: int, seed: int | None) -> Model:
        """Compose the model from the parameters."""

    def _common_parts(self, n_classes: int, seed: int | None) -> dict[str, Any]:
        """Return the arguments that the models of all classifiers share."""
        return {"pairs": OppositeClass(n_classes), "dtype": self.dtype, "seed": seed, "engine": self.engine}

    def to_model(self, n_classes: int = 2) -> Model:
        """Return the model that the parameters describe, a frozen value; once fitted, it is ``stream_.model``.

        >>> from pairloom.systems import OGD
        >>> OGD(random_state=0).to_model().memory
        Latest(partner='previous', size=1)
        """
        return self._make_model(n_classes, next_seed(self.random_state))

    @property
    def needs_all_rows(self) -> bool:
        """Whether the system needs all rows at once; then it has only ``fit``."""
        return False

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the rows from scratch, in one pass: in order, or in a random order with ``shuffle=True``.

        Warns if labels come in blocks that a stream would not have, such as rows sorted by label.
        """
        self._learn(X, y, sample_weight, None, first=True, whole=True)
        warn_of_columns(self._encoder, stacklevel=3)
        if not (self.shuffle or self.needs_all_rows):
            warn_of_order(np.asarray(y).ravel(), stacklevel=3)
        return self

    @available_if(is_online)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn more rows, in order. A batch may contain only one class.

        Without ``classes``, the first two distinct labels are the classes. To learn more than two, pass all labels as
        ``classes`` in the first call.
        """
        return self._learn(X, y, sample_weight, classes, first=not self._started, whole=False)

    @available_if(is_online)
    def learn_one(self, x: Any, y: Any, sample_weight: float = 1.0) -> Self:
        """Learn one row: a sequence of values, or a mapping from column names to values.

        The result is the same as with ``partial_fit``, without the cost of validating a matrix.
        """
        row = self._row_to_learn(x)
        weight = one_weight(sample_weight)
        try:
            code = self._labels.codes.get(y) if self._started else None
            weight = with_class_weight(self.class_weight, [y], weight)
        except TypeError:
            raise ValueError(f"y must be one label, got {y!r}") from None
        if weight[0] == 0:
            return self
        if code is None:
            code = self._learn_new_label(row, y)
        else:
            self.stream_.check_room(1)
        codes = np.array([code])
        self.stream_.broken = True
        self._class_counts, weight = with_balanced_weight(
            self.class_weight, self._class_counts, self._labels, codes, weight
        )
        self.stream_.learn(
            Batch(row.numbers(weight, self._windows, self._keeper(codes)), codes, weight, query_code(None), row.time)
        )
        self._name_arrivals()
        self.stream_.warn_if_unstable(stacklevel=3)
        return self

    def _learn(self, X: Any, y: Any, sample_weight: Any, classes: Any, *, first: bool, whole: bool) -> Self:
        """Validate all input, then change the model."""
        incoming = self._rows_to_learn(X, first=first)
        known = not first and classes is None and type(y) is np.ndarray and y.ndim == 1 and self._labels.covers(y)
        if not known:
            y = check_class_labels(y, type(self).__name__)
        check_consistent_length(incoming, y)
        weight = with_class_weight(self.class_weight, y, check_weight(sample_weight, len(y)))
        keep = positive_rows(weight, may_be_none=not whole)
        if not isinstance(self.shuffle, bool):
            raise ValueError(f"shuffle must be True or False; got {self.shuffle!r}")
        if whole and self.shuffle:
            order = random_order(self.random_state, len(y))
            keep = order if keep is None else order[keep[order]]
        if keep is not None:
            incoming, y, weight = incoming[keep], y[keep], weight[keep]
        if len(y) == 0:
            if classes is not None:
                self._declare(classes, first=first)
            return self
        labels = self._labels if known else self._labels_after(y, classes, first=first, whole=whole)
        incoming = incoming.read(self.columns, self._layouts)
        stream = self._new_stream(labels, incoming) if first else self.stream_
        stream.check_room(len(y))
        codes, named = labels.encode(y), self._declared if first and not whole and classes is None else classes
        if self.needs_all_rows:
            return self._learn_at_once(X, incoming, labels, stream, codes, weight)
        with DeferredSignals() as work:
            if first:
                self._begin(X, incoming, stream)
            for rows in self._pieces(work, len(y)):
                stream.broken, all_rows = True, len(codes[rows]) == len(y)
                if not (known or whole or all_rows):
                    self._labels = self._labels_after(y[rows], named, first=first and rows.start == 0, whole=False)
                else:
                    self._labels = labels
                part = incoming if all_rows else incoming[rows]
                keeper = self._keeper(codes[rows])
                self._class_counts, batch = self._batch(
                    self._class_counts, part, labels, codes[rows], weight[rows], keeper
                )
                stream.learn(batch)
        stream.warn_if_unstable(stacklevel=4)
        return self

    def _learn_at_once(
        self, X: Any, incoming: Incoming, labels: Labels, stream: Stream, codes: Array, weight: Array
    ) -> Self:
        """Learn all rows at once, then replace the model."""
        newest = NewestRows.empty(len(labels.classes), incoming.n_columns)
        keep = None if newest is None else partial(newest.add, codes)
        counts, batch = self._batch(None, incoming, labels, codes, weight, keep)
        stream.start_with(batch)
        stream.learn(batch)
        with DeferredSignals():
            self._begin(X, incoming, stream)
            self._labels, self._class_counts, self._newest = labels, counts, newest
        stream.warn_if_unstable(stacklevel=5)
        return self

    def _begin(self, X: Any, incoming: Incoming, stream: Stream) -> None:
        """Replace the model and store the columns of X."""
        validate_data(self, X, reset=True, skip_check_array=True)
        self._encoder, self.stream_ = incoming.encoder, stream
        self._windows, self._newest = self._new_windows(), None
        self._forget()

    def _batch(
        self, counts: ClassCounts | None, rows: Incoming, labels: Labels, codes: Array, weight: Array,
        keep: Keep | None,
    ) -> tuple[ClassCounts | None, Batch]:  # fmt: skip
        """Return the class counts after these rows, and the rows to learn."""
        counts, weight = with_balanced_weight(self.class_weight, counts, labels, codes, weight)
        numbers = rows.numbers(weight, self._windows, keep)
        return counts, Batch(numbers, codes, weight, query_codes(None, len(codes)), rows.time)

    def _pieces(self, work: DeferredSignals, n: int) -> Iterator[slice]:
        """Split the rows of a call into pieces to learn; the split does not change the model."""
        return work.pieces(self.stream_.n_seen, n)

    def _learn_new_label(self, row: Incoming, y: Any) -> float:
        """Return the code of a label that is new to the model."""
        first = not self._started
        if np.ndim(y) != 0:
            raise ValueError(f"y must be one label, got {y!r}")
        target = check_class_labels([y], type(self).__name__)
        labels = self._labels_after(target, None, first=first, whole=False)
        stream = self._new_stream(labels, row) if first else self.stream_
        stream.check_room(1)
        stream.broken = True
        if first:
            self._remember_columns(row)
            self._forget()
        self._labels, self.stream_ = labels, stream
        return float(labels.encode(target)[0])

    def _forget(self) -> None:
        """Discard the attributes of the old model, and advance ``random_state`` if it is a generator."""
        self._declared = self._class_counts = self._alerts = self._file_columns = None
        seed_of(self.random_state)

    def _declare(self, classes: Any, *, first: bool) -> None:
        """Store the classes declared with a batch in which all rows have weight 0."""
        if first:
            self._declared = declared_classes(classes)
        else:
            learn_labels(self._labels, self._labels.classes[:0], classes, whole=False)

    def _stream_of(self, labels: Labels | None, seed: int | None, columns: ColumnsState | None) -> Stream:
        assert labels is not None
        model, encoding = self._reading(self._make_model(max(2, len(labels.classes)), seed), columns)
        forgetting = forgetting_of(type(self).__name__, model, self.half_life, self.drift, self.needs_all_rows)
        return Stream(model, (*self._hooks(labels), *forgetting), encoding)

    def _hooks(self, labels: Labels) -> tuple[Hook, ...]:
        """Return the hooks that every stream has."""
        return self._calibration, ArrivalScores()

    def _labels_after(self, y: Array, classes: Any, *, first: bool, whole: bool) -> Labels:
        """Return the labels known after a batch."""
        declared = None if whole or not first else self._declared
        if declared is not None and classes is not None and set(declared_classes(classes)) != set(declared):
            raise ValueError(f"classes={list(classes)}, but an earlier call named {declared.tolist()}")
        classes = declared if classes is None else classes
        labels = learn_labels(None if first else self._labels, y, classes, self.pos_label, whole=whole)
        check_class_weight_labels(self.class_weight, labels)
        return labels
