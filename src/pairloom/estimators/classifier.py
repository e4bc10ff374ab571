"""The scikit-learn face of a pairwise classifier: labels, validation, calibration, one row at a time."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import expit, log_expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from pairloom.base.batch import Batch
from pairloom.base.interrupts import Unbroken
from pairloom.base.randomness import next_seed, seed_of
from pairloom.base.typing import Array
from pairloom.base.validation import check_weight, one_weight, positive_weight, refuse_masked
from pairloom.columns.incoming import Incoming
from pairloom.estimators.class_labels import (
    UNORDERED,
    Labels,
    check_no_gaps,
    declared_classes,
    exact_labels,
    learn_labels,
)
from pairloom.estimators.class_weight import ClassCounts, ClassWeight, balanced, check_names, weighed
from pairloom.estimators.forgetting import forgetting_of
from pairloom.estimators.thresholds import ThresholdClassifier
from pairloom.metrics.area import Area, mean_area
from pairloom.models.base import Model
from pairloom.pairs import query_code, query_codes
from pairloom.stream import ArrivalScores, Observer, Stream
from pairloom.stream.calibration import Calibration, Fit
from pairloom.stream.drift import Drift, DriftWatch


def is_online(model: "PairwiseClassifier") -> bool:
    """Whether a classifier learns row by row; AttributeError if not."""
    if model.needs_all_rows:
        raise AttributeError(f"{model!r} needs all rows at once: call fit")
    return True


class PairwiseClassifier(ClassifierMixin, ThresholdClassifier):
    """A classifier whose model is a :class:`~pairloom.Learner`, or another way to learn in one pass.

    ``fit``, ``partial_fit`` in any chunking and ``learn_one`` give the same model, bit for bit, for the same rows in
    the same order. ``decision_function`` is a s(x) + b with a > 0: the log-odds of ``classes_[1]``, from a Platt fit
    on the last 4,096 scores, each given before its row was learned; ``predict_proba`` is its sigmoid and ``predict``
    its sign. More than two classes: one column for each class against the rest, probabilities normalised.

    ``class_weight`` multiplies ``sample_weight``: a mapping from labels to weights (1 for a label that it leaves out;
    rows of weight 0 are skipped), or "balanced": for a row of class y, the t-th,

        n_t / (k_t n_ty)

    of the rows up to this one, by ``sample_weight``: all, those of its class, and k_t the classes among them. While one
    class has come it is 1. The weights reach calibration as well: as in scikit-learn, probabilities then speak of the
    weighted classes; thresholds (``threshold``) do not.
    """

    added: ClassVar[dict[str, Any]] = {"columns": None, "class_weight": None, "half_life": None, "drift": None}

    pos_label: Any
    class_weight: ClassWeight = None
    drift: Drift = None
    _declared: Array | None = None
    _calibration: ClassVar[Calibration] = Calibration()

    @abstractmethod
    def _make_model(self, n_classes: int, seed: int | None) -> Model:
        """The composition of parts that the parameters stand for."""

    def to_model(self, n_classes: int = 2) -> Model:
        """The model that the parameters stand for, a frozen value: ``stream_.model`` of an estimator that has learned.

        >>> from pairloom.systems import OGD
        >>> OGD(random_state=0).to_model().memory
        Latest(partner='previous', size=1)
        """
        return self._make_model(n_classes, next_seed(self.random_state))

    @property
    def needs_all_rows(self) -> bool:
        """Whether all rows are needed at once: then there is ``fit`` alone."""
        return False

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Forget everything, then learn the rows in order, once."""
        return self._learn(X, y, sample_weight, None, first=True, whole=True)

    @available_if(is_online)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn more rows, in order. A batch may hold one class only.

        Without ``classes``, the first two distinct labels define the problem; name all labels to have more than two.
        """
        return self._learn(X, y, sample_weight, classes, first=not self._started, whole=False)

    @available_if(is_online)
    def learn_one(self, x: Any, y: Any, sample_weight: float = 1.0) -> Self:
        """Learn one row: a sequence of values, or a mapping from column names.

        The same model as ``partial_fit``, without the cost of validating a matrix.
        """
        row = self._row_to_learn(x)
        weight = one_weight(sample_weight)
        try:
            code = self._labels.codes.get(y) if self._started else None
            weight = weighed(self.class_weight, [y], weight)
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
        self._class_counts, weight = balanced(self.class_weight, self._class_counts, self._labels, codes, weight)
        batch = Batch(row.numbers(weight), codes, weight, query_code(None), row.time)
        self.stream_.learn(batch)
        self.stream_.warn_if_unstable(stacklevel=3)
        return self

    def score_one(self, x: Any) -> float:
        """Log-odds of the positive class, ``pos_label_``, for one row; 0 before anything was learned."""
        if not self._started:
            return 0.0
        return float(self._for_positive(self._decide(self._row(x)))[0])

    def score_many(self, X: Any) -> Array:
        """Log-odds of the positive class, ``pos_label_``, for each row: the higher, the more likely it is positive.

        ``decision_function`` speaks for ``classes_[1]``, as scikit-learn wants it, whatever ``pos_label`` is.
        """
        return self._for_positive(self._decide(self._rows_to_score(X)))

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """Probability of each class for one row; empty before anything was learned."""
        if not self._started:
            return {}
        return dict(zip(self._labels.classes.tolist(), self._probabilities(self._row(x))[0].tolist(), strict=True))

    def decision_function(self, X: Any) -> Array:
        """Log-odds of ``classes_[1]``, or of each class against the rest; see ``score_many`` for the positive class."""
        return self._decide(self._rows_to_score(X))

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities, in the order of ``classes_``."""
        return self._probabilities(self._rows_to_score(X))

    def predict(self, X: Any) -> Array:
        """The more probable class of each row."""
        decisions = self.decision_function(X)
        chosen = decisions.argmax(axis=1) if decisions.ndim == 2 else (decisions > 0).astype(int)
        return np.asarray(self.classes_[chosen])

    @property
    def classes_(self) -> Array:
        """The labels known so far, in order."""
        check_is_fitted(self)
        classes: Array = self._labels.classes
        return classes

    @property
    def pos_label_(self) -> Any:
        """The positive class, for which ``score_many`` and ``score_one`` speak: ``pos_label``, or ``classes_[1]``."""
        if self.pos_label is None and len(self.classes_) != 2:
            raise AttributeError(f"the classes are {self.classes_.tolist()}: set pos_label to name the positive one")
        return self.classes_[1].item() if self.pos_label is None else self.pos_label

    @property
    def coef_(self) -> Array:
        """w of the output iterate, speaking for ``classes_[1]``; with more than two classes, one row for each."""
        check_is_fitted(self)
        w = self._labels.sign * self.stream_.coef
        return np.asarray(w[0] if len(w) == 1 else w)

    @property
    def auc_(self) -> Area:
        """AUC of the newest 4,096 rows, with its 95 % interval: each row's score is the one it had when it came.

        NaN until a class and its rest are there. With more than two classes, the mean over classes against the rest.
        """
        scores, codes, weight = self._arrivals()
        return mean_area(scores, codes, weight, self.stream_.model.pairs.targets)

    @property
    def changes_(self) -> list[int]:
        """The rows after which the stream was found to have changed, the newest 1,024; none without ``drift``."""
        check_is_fitted(self)
        assert self.stream_.state is not None
        watched = self.stream_.state.observed.get(DriftWatch.name)
        return [] if watched is None else watched.alarms.tolist()

    def _learn(self, X: Any, y: Any, sample_weight: Any, classes: Any, *, first: bool, whole: bool) -> Self:
        """Validate everything, then change the model."""
        incoming = self._rows_to_learn(X, first=first)
        known = not first and classes is None and type(y) is np.ndarray and y.ndim == 1 and self._labels.covers(y)
        if not known:
            y = self._check_targets(y)
        check_consistent_length(incoming, y)
        weight = weighed(self.class_weight, y, check_weight(sample_weight, len(y)))
        keep = positive_weight(weight, may_be_none=not whole)
        if keep is not None:
            incoming, y, weight = incoming[keep], y[keep], weight[keep]
        if len(y) == 0:
            if classes is not None:
                self._declare(classes, first=first)
            return self
        labels = self._labels if known else self._labels_after(y, classes, first=first, whole=whole)
        incoming = self._read(incoming)
        stream = self._start(labels, incoming.shape[1]) if first else self.stream_
        stream.check_room(len(y))
        codes, named = labels.encode(y), self._declared if first and not whole and classes is None else classes
        if self.needs_all_rows:
            return self._learn_at_once(X, incoming, labels, stream, codes, weight)
        with Unbroken() as work:
            if first:
                self._begin(X, incoming, stream)
            for rows in self._pieces(work, len(y)):
                stream.broken, all_rows = True, len(codes[rows]) == len(y)
                if not (known or whole or all_rows):
                    self._labels = self._labels_after(y[rows], named, first=first and rows.start == 0, whole=False)
                else:
                    self._labels = labels
                part = incoming if all_rows else incoming[rows]
                self._class_counts, batch = self._batch(self._class_counts, part, labels, codes[rows], weight[rows])
                stream.learn(batch)
        stream.warn_if_unstable(stacklevel=4)
        return self

    def _learn_at_once(
        self, X: Any, incoming: Incoming, labels: Labels, stream: Stream, codes: Array, weight: Array
    ) -> Self:
        """Learn all rows, then change the model."""
        counts, batch = self._batch(None, incoming, labels, codes, weight)
        stream.start_with(batch)
        stream.learn(batch)
        with Unbroken():
            self._begin(X, incoming, stream)
            self._labels, self._class_counts = labels, counts
        stream.warn_if_unstable(stacklevel=5)
        return self

    def _begin(self, X: Any, incoming: Incoming, stream: Stream) -> None:
        """Forget the model before, and take the columns of X."""
        validate_data(self, X, reset=True, skip_check_array=True)
        self._encoder, self.stream_ = incoming.encoder, stream
        self._forget()

    def _batch(
        self, counts: ClassCounts | None, rows: Incoming, labels: Labels, codes: Array, weight: Array
    ) -> tuple[ClassCounts | None, Batch]:
        """The class counts after rows, and the rows as they are learned."""
        counts, weight = balanced(self.class_weight, counts, labels, codes, weight)
        return counts, Batch(rows.numbers(weight), codes, weight, query_codes(None, len(codes)), rows.time)

    def _pieces(self, work: Unbroken, n: int) -> Iterator[slice]:
        """The rows of a call in the pieces in which they are learned: however they are cut, the model is the same."""
        return work.pieces(self.stream_.n_seen, n)

    def _check_targets(self, y: Any) -> Array:
        """Labels as a finite one-dimensional array."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        refuse_masked("y", y)
        y = column_or_1d(exact_labels(y), warn=True)
        check_no_gaps(y)
        try:
            check_classification_targets(y)
        except TypeError:
            raise ValueError(UNORDERED.format("y")) from None
        return np.asarray(y)

    def _learn_new_label(self, row: Incoming, y: Any) -> float:
        """The code of the first row's label, or of one not seen before."""
        first = not self._started
        if np.ndim(y) != 0:
            raise ValueError(f"y must be one label, got {y!r}")
        target = self._check_targets([y])
        labels = self._labels_after(target, None, first=first, whole=False)
        stream = self._start(labels, row.shape[1]) if first else self.stream_
        stream.check_room(1)
        stream.broken = True
        if first:
            self._remember_columns(row)
            self._forget()
        self._labels, self.stream_ = labels, stream
        return float(labels.encode(target)[0])

    def _forget(self) -> None:
        """What belongs to the model before; a generator has now given its seed away."""
        self._declared = self._class_counts = None
        seed_of(self.random_state)

    def _declare(self, classes: Any, *, first: bool) -> None:
        """Remember what ``classes=`` said along with rows that all have weight 0."""
        if first:
            self._declared = declared_classes(classes)
        else:
            learn_labels(self._labels, self._labels.classes[:0], classes, whole=False)

    def _start(self, labels: Labels, n_features: int) -> Stream:
        """A stream with its state made, so that parts that do not fit have raised."""
        stream = self._stream_of(labels, next_seed(self.random_state))
        stream.start(n_features)
        return stream

    def _stream_of(self, labels: Labels | None, seed: int | None) -> Stream:
        assert labels is not None
        model = self._make_model(max(2, len(labels.classes)), seed)
        forgetting = forgetting_of(type(self).__name__, model, self.half_life, self.drift, self.needs_all_rows)
        return Stream(model, (*self._observers(labels), *forgetting))

    def _observers(self, labels: Labels) -> tuple[Observer, ...]:
        """Who watches the stream, whatever the parameters."""
        return self._calibration, ArrivalScores()

    def _labels_after(self, y: Array, classes: Any, *, first: bool, whole: bool) -> Labels:
        """The labels known after a batch."""
        declared = None if whole or not first else self._declared
        if declared is not None and classes is not None and set(declared_classes(classes)) != set(declared):
            raise ValueError(f"classes={list(classes)}, but an earlier call named {declared.tolist()}")
        classes = declared if classes is None else classes
        labels = learn_labels(None if first else self._labels, y, classes, self.pos_label, whole=whole)
        check_names(self.class_weight, labels)
        return labels

    @property
    def calibration_(self) -> list[tuple[float, float]]:
        """(a, b) of each score s: a s + b is the log-odds of the class that it speaks for."""
        check_is_fitted(self)
        fit = self._fit
        return list(zip(fit.a.tolist(), fit.b.tolist(), strict=True))

    @property
    def _fit(self) -> Fit:
        assert self.stream_.state is not None
        fit: Fit = self.stream_.state.observed[Calibration.name]
        return fit

    def _decide(self, rows: Any) -> Array:
        if len(self._labels.classes) < 2:
            return np.zeros(rows.shape[0])
        return self._calibrate(self.stream_.score_rows(rows))

    def _calibrate(self, scores: Array) -> Array:
        """a s + b of each model; scores (n,), or (n, models)."""
        a, b = self._fit.a, self._fit.b
        if len(a) > 1:
            return np.asarray(a * scores + b)
        return np.asarray(self._labels.sign * (a[0] * scores.reshape(len(scores)) + b[0]))

    def _for_positive(self, decisions: Array) -> Array:
        """What ``_decide`` says, for the positive class alone."""
        labels, positive = self._labels, self.pos_label
        if len(labels.classes) < 2 or (positive is None and decisions.ndim == 1):
            return decisions
        if positive is None:
            raise ValueError("with more than two classes, score_one and score_many speak for pos_label: set it")
        if positive not in labels.codes:
            raise ValueError(f"pos_label={positive!r} is not one of the classes {labels.classes.tolist()}")
        if decisions.ndim == 1:
            return -decisions if positive == labels.classes[0] else decisions
        return np.asarray(decisions[:, labels.classes.tolist().index(positive)])

    def _probabilities(self, rows: Any) -> Array:
        if len(self._labels.classes) < 2:
            return np.ones((rows.shape[0], 1))
        decisions = self._decide(rows)
        if decisions.ndim == 1:
            p = expit(decisions)
            return np.column_stack([1.0 - p, p])
        # By logarithms: far away all sigmoids may be 0.
        p = log_expit(decisions)
        return np.asarray(softmax(p, axis=1))
