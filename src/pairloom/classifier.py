"""The scikit-learn face of a pairwise classifier: labels, validation, calibration, one row at a time."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import roc_curve
from sklearn.utils import Tags, assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, check_X_y, column_or_1d, validate_data

from pairloom.calibration import next_calibration_row, platt
from pairloom.checks import check_choice
from pairloom.labels import Labels, learn_labels
from pairloom.learner import Dtype, Learner
from pairloom.randomness import seed_of
from pairloom.state import LOSS, PAIRS, STEPS, Batch, State, nbytes
from pairloom.typing import Array
from pairloom.validation import check_finite, check_weight, positive_weight, row_of


class PairwiseClassifier(ClassifierMixin, BaseEstimator, ABC):
    """A classifier whose model is a pairwise :class:`~pairloom.Learner`.

    ``fit``, ``partial_fit`` in any chunking and ``learn_one`` give the same model, bit for bit, for the same rows in
    the same order. ``decision_function`` is a s(x) + b with a > 0: the log-odds of ``classes_[1]``, from a Platt fit
    on the last 4,096 scores, each given before its row was learned; ``predict_proba`` is its sigmoid and ``predict``
    its sign. More than two classes: one column for each class against the rest, probabilities normalised.
    """

    dtype: Dtype
    pos_label: Any
    random_state: Any
    learner_: Learner
    calibration_: list[tuple[float, float]]
    _labels: Labels

    @abstractmethod
    def _make_learner(self, n_classes: int, seed: int | None) -> Learner:
        """The composition of parts that the parameters stand for."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Forget everything, then learn the rows in order, once."""
        return self._learn(X, y, sample_weight, None, first=True, whole=True)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn more rows, in order. A batch may hold one class only.

        Without ``classes``, the first two distinct labels define the problem; name all labels to have more than two.
        """
        return self._learn(X, y, sample_weight, classes, first=not self._started, whole=False)

    def learn_one(self, x: Any, y: Any, sample_weight: float = 1.0) -> Self:
        """Learn one row: a sequence of values, or a mapping from column names.

        The same model as ``partial_fit``, without the cost of validating a matrix.
        """
        row = self._row(x)
        weight = np.ones(1) if sample_weight == 1 else check_weight([sample_weight], 1)
        try:
            code = self._labels.codes.get(y) if self._started else None
        except TypeError:
            raise ValueError(f"y must be one label, got {y!r}") from None
        if weight[0] == 0:
            return self
        if code is None:
            code = self._learn_new_label(x, row, y)
        batch = Batch(row, np.array([code]), weight, np.zeros(1, np.int64))
        return self._learn_rows(batch)

    def score_one(self, x: Any) -> float:
        """Log-odds of ``pos_label`` (by default ``classes_[1]``) for one row; 0 before anything was learned."""
        if not self._started:
            return 0.0
        decision = self._decide(self._row(x))[0]
        if decision.ndim:
            if self.pos_label is None:
                raise ValueError("with more than two classes, score_one speaks for pos_label: set it")
            return float(decision[self.classes_.tolist().index(self.pos_label)])
        return (
            -float(decision) if self.pos_label is not None and self.pos_label == self.classes_[0] else float(decision)
        )

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """Probability of each class for one row; empty before anything was learned."""
        if not self._started:
            return {}
        return dict(zip(self.classes_.tolist(), self._probabilities(self._row(x))[0].tolist(), strict=True))

    def decision_function(self, X: Any) -> Array:
        """Log-odds of ``classes_[1]``, or of each class against the rest."""
        return self._decide(self._check_rows(X))

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities, in the order of ``classes_``."""
        return self._probabilities(self._check_rows(X))

    def predict(self, X: Any) -> Array:
        """The more probable class of each row."""
        decisions = self.decision_function(X)
        chosen = decisions.argmax(axis=1) if decisions.ndim == 2 else (decisions > 0).astype(int)
        return np.asarray(self.classes_[chosen])

    @property
    def classes_(self) -> Array:
        """The labels known so far, in order."""
        check_is_fitted(self)
        return self._labels.classes

    @property
    def balanced_threshold_(self) -> float:
        """The cut of ``decision_function`` with the best balanced accuracy on the last 4,096 test-then-train scores.

        For ``FixedThresholdClassifier(model, threshold=..., response_method="decision_function")``; ``predict`` cuts
        at 0, the more probable class. 0 until both classes have been scored. Two classes only.
        """
        scores, codes, weight = self._state.recent.view()
        if self._state.w.shape[0] > 1:
            raise AttributeError("balanced_threshold_ is for two classes")
        if len(np.unique(codes)) < 2:
            return 0.0
        positive = codes == self._labels.codes[self.classes_[1].item()]
        fpr, tpr, cuts = roc_curve(positive, self._calibrate(scores), sample_weight=weight)
        best = int(np.argmax(tpr - fpr))
        return float(cuts[best]) if best else 0.0

    @property
    def n_seen_(self) -> int:
        """Rows learned."""
        return self._state.t

    @property
    def n_pairs_(self) -> int:
        """Pairs the model has learned from."""
        return int(self._state.tally[PAIRS])

    @property
    def loss_(self) -> float:
        """Mean loss of the rows against their partners, each taken before its step; NaN before the first."""
        steps = self._state.tally[STEPS]
        return float(self._state.tally[LOSS] / steps) if steps else float("nan")

    @property
    def nbytes_(self) -> int:
        """Bytes of all arrays that the model holds."""
        return nbytes(self._state) + nbytes(self.learner_.kept)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text = str(super().__repr__(N_CHAR_MAX=N_CHAR_MAX))
        if not self._started:
            return text
        seen = f"{self.n_seen_:,} rows, {self.n_pairs_:,} pairs, loss {self.loss_:.4g}, {self.nbytes_ / 1e6:.3g} MB"
        return f"{text}  # {seen}"

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def _started(self) -> bool:
        return hasattr(self, "learner_")

    @property
    def _state(self) -> State:
        check_is_fitted(self)
        state: State | None = self.learner_.state
        assert state is not None
        return state

    def _learn(self, X: Any, y: Any, sample_weight: Any, classes: Any, *, first: bool, whole: bool) -> Self:
        """Validate everything, then change the model."""
        if not first and classes is None and sample_weight is None and self._is_plain(X, y):
            batch = self.learner_.check_batch(X, self._labels.encode(y))
            return self._learn_rows(batch, warn=True)
        check_choice("dtype", self.dtype, Dtype)
        with np.errstate(over="ignore"):  # what overflows is infinite, and reported with its place
            rows, y = check_X_y(
                X, y, accept_sparse="csr", dtype=self.dtype, order="C", ensure_all_finite=False, estimator=self
            )
        check_finite(rows, self.dtype, getattr(X, "columns", None))
        check_classification_targets(y)
        weight = check_weight(sample_weight, len(y))
        if not first:
            validate_data(self, X, reset=False, skip_check_array=True)
        keep = positive_weight(weight, may_be_none=not whole)
        if keep is not None:
            rows, y, weight = rows[keep], y[keep], weight[keep]
        if len(y) == 0:
            return self
        labels = self._labels_after(y, classes, first=first, whole=whole)
        learner = self._start_learner(labels, rows.shape[1]) if first else self.learner_
        batch = learner.check_batch(rows, labels.encode(y), weight)
        if first:
            validate_data(self, X, reset=True, skip_check_array=True)
        self._labels, self.learner_ = labels, learner
        return self._learn_rows(batch, warn=True)

    def _is_plain(self, X: Any, y: Any) -> bool:
        """Whether a batch needs no more than a check for finite values: arrays as expected, and labels known.

        scikit-learn's validation costs as much as learning a hundred rows.
        """
        return (
            type(X) is np.ndarray
            and X.dtype in (np.float32, np.float64)
            and X.ndim == 2
            and X.shape[1] == self.n_features_in_
            and type(y) is np.ndarray
            and y.shape == (len(X),)
            and len(y) > 0
            and self._labels.covers(y)
            and not hasattr(self, "feature_names_in_")
        )

    def _learn_new_label(self, x: Any, row: Array, y: Any) -> float:
        """The code of the first row's label, or of one not seen before."""
        first = not self._started
        if np.ndim(y) != 0:
            raise ValueError(f"y must be one label, got {y!r}")
        target = column_or_1d([y])
        assert_all_finite(target, input_name="y")
        check_classification_targets(target)
        labels = self._labels_after(target, None, first=first, whole=False)
        if first:
            self.learner_ = self._start_learner(labels, row.shape[1])
            self.n_features_in_ = row.shape[1]
            if isinstance(x, Mapping):
                self.feature_names_in_ = np.asarray(list(x), dtype=object)
        self._labels = labels
        return float(labels.encode(target)[0])

    def _start_learner(self, labels: Labels, n_features: int) -> Learner:
        """A learner with its state made, so that parts that do not fit have raised."""
        learner = self._make_learner(max(2, len(labels.classes)), seed_of(self.random_state))
        learner.start(n_features)
        return learner

    def _labels_after(self, y: Array, classes: Any, *, first: bool, whole: bool) -> Labels:
        """The labels known after a batch."""
        labels = learn_labels(None if first else self._labels, y, classes, whole=whole)
        if self.pos_label is not None and len(labels.classes) > 1 and self.pos_label not in labels.codes:
            raise ValueError(f"pos_label={self.pos_label!r} is not one of the classes {labels.classes.tolist()}")
        return labels

    def _row(self, x: Any) -> Array:
        """One example as a valid (1, d) array."""
        if self._started:
            return row_of(x, self.n_features_in_, getattr(self, "feature_names_in_", None), self.dtype)
        check_choice("dtype", self.dtype, Dtype)
        if isinstance(x, Mapping) and not all(isinstance(name, str) for name in x):
            raise ValueError(f"the columns of a row given as a mapping must be named by text, got {list(x)}")
        return row_of(x, None, list(x) if isinstance(x, Mapping) else None, self.dtype)

    def _learn_rows(self, batch: Batch, *, warn: bool = False) -> Self:
        """Learn valid rows; fit the calibration anew at the rows where it is due."""
        at = 0
        while at < len(batch):
            seen = self.learner_.n_seen
            end = at + next_calibration_row(seen) - seen
            self.learner_.learn(batch if at == 0 and end >= len(batch) else batch[at:end])
            if end <= len(batch):
                self._fit_calibration()
            at = end
        self.learner_.warn_if_unstable(stacklevel=4 if warn else 3)
        return self

    def _fit_calibration(self) -> None:
        scores, codes, weight = self._state.recent.view()
        models = self.learner_.pairs.models
        starts = self.calibration_ if self.n_seen_ > 1 else [None] * len(models)
        self.calibration_ = [platt(scores[:, k], codes == model, weight, starts[k]) for k, model in enumerate(models)]

    def _check_rows(self, X: Any) -> Any:
        check_is_fitted(self)
        rows = validate_data(
            self, X, reset=False, accept_sparse="csr", dtype=self.dtype, order="C", ensure_all_finite=False
        )
        check_finite(rows, self.dtype, getattr(X, "columns", None))
        return rows

    def _decide(self, rows: Any) -> Array:
        if len(self.classes_) < 2:
            return np.zeros(rows.shape[0])
        return self._calibrate(self.learner_.score_rows(rows))

    def _calibrate(self, scores: Array) -> Array:
        """a s + b of each model; scores (n,), or (n, models)."""
        if len(self.calibration_) > 1:
            a, b = np.array(self.calibration_).T
            return np.asarray(a * scores + b)
        ((a, b),) = self.calibration_
        return np.asarray(self._labels.sign * (a * scores.reshape(len(scores)) + b))

    def _probabilities(self, rows: Any) -> Array:
        if len(self.classes_) < 2:
            return np.ones((rows.shape[0], 1))
        p = expit(self._decide(rows))
        if p.ndim == 1:
            return np.column_stack([1.0 - p, p])
        return np.asarray(p / p.sum(axis=1, keepdims=True))
