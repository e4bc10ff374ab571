"""The scikit-learn face of a binary pairwise learner: labels, validation, calibration, one row at a time."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import roc_curve
from sklearn.utils import Tags, assert_all_finite, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, check_X_y, column_or_1d, validate_data

from pairloom.calibration import next_calibration_row, platt
from pairloom.checks import check_choice
from pairloom.labels import Labels, learn_labels
from pairloom.learner import Dtype, Learner
from pairloom.state import LOSS, PAIRS, STEPS, State, nbytes
from pairloom.typing import Array
from pairloom.validation import check_finite, row_of


class PairwiseClassifier(ClassifierMixin, BaseEstimator, ABC):
    """A binary classifier whose model is a pairwise :class:`~pairloom.Learner`.

    ``fit``, ``partial_fit`` in any chunking and ``learn_one`` give the same model, bit for bit, for the same
    rows in the same order. ``decision_function`` is a s(x) + b with a > 0: the log-odds of ``classes_[1]``,
    from a Platt fit on the last 4,096 scores, each given before its row was learned; ``predict_proba`` is its
    sigmoid and ``predict`` its sign.
    """

    dtype: Dtype
    pos_label: Any
    random_state: Any
    learner_: Learner
    _labels: Labels

    @abstractmethod
    def _make_learner(self) -> Learner:
        """The composition of parts that the parameters stand for."""

    def fit(self, X: Any, y: Any) -> Self:
        """Forget everything, then learn the rows in order, once."""
        return self._learn(X, y, None, first=True)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn more rows, in order. A batch may hold one class only.

        Without ``classes``, the first two distinct labels define the problem.
        """
        return self._learn(X, y, classes, first=not self._started)

    def learn_one(self, x: Any, y: Any) -> Self:
        """Learn one row: a sequence of values, or a mapping from column names.

        The same model as ``partial_fit``, without the cost of validating a matrix.
        """
        row = self._row(x)
        try:
            code = self._labels.codes.get(y) if self._started else None
        except TypeError:
            raise ValueError(f"y must be one label, got {y!r}") from None
        if code is None:
            return self._learn_new_label(x, row, y)
        return self._learn_rows(row, np.array([code]))

    def score_one(self, x: Any) -> float:
        """Log-odds of ``pos_label`` (by default ``classes_[1]``) for one row; 0 before anything was learned."""
        if not self._started:
            return 0.0
        towards = -1.0 if self.pos_label is not None and self.pos_label == self.classes_[0] else 1.0
        return towards * float(self._decide(self._row(x))[0])

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """Probability of each class for one row; empty before anything was learned."""
        if not self._started:
            return {}
        return dict(zip(self.classes_.tolist(), self._probabilities(self._row(x))[0].tolist(), strict=True))

    def decision_function(self, X: Any) -> Array:
        """Log-odds of ``classes_[1]``; it orders rows as the pairwise score does."""
        return self._decide(self._check_rows(X))

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities, in the order of ``classes_``."""
        return self._probabilities(self._check_rows(X))

    def predict(self, X: Any) -> Array:
        """The more probable class of each row."""
        positive = self.decision_function(X) > 0
        return np.asarray(self.classes_[positive.astype(int)])

    @property
    def balanced_threshold_(self) -> float:
        """The cut of ``decision_function`` with the best balanced accuracy on the last 4,096 test-then-train scores.

        For ``FixedThresholdClassifier(model, threshold=..., response_method="decision_function")``; ``predict``
        cuts at 0, the more probable class. 0 until both classes have been scored.
        """
        check_is_fitted(self)
        scores, codes = self._state.recent.view()
        if len(np.unique(codes)) < 2:
            return 0.0
        fpr, tpr, cuts = roc_curve(codes * self._labels.sign > 0, self._calibrate(scores))
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
        tags.classifier_tags.multi_class = False
        return tags

    @property
    def classes_(self) -> Array:
        """The labels known so far, in order."""
        return self._labels.classes

    @property
    def _started(self) -> bool:
        return hasattr(self, "learner_")

    @property
    def _state(self) -> State:
        check_is_fitted(self)
        state: State | None = self.learner_.state
        assert state is not None
        return state

    def _seed(self) -> int | None:
        """The learner's seed; None takes a fresh one, never the global generator's."""
        if self.random_state is None:
            return None
        if isinstance(self.random_state, np.random.Generator):
            return int(self.random_state.integers(2**32))
        if isinstance(self.random_state, (int, np.integer)):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31))

    def _learn(self, X: Any, y: Any, classes: Any, *, first: bool) -> Self:
        """Validate everything, then change the model."""
        check_choice("dtype", self.dtype, Dtype)
        with np.errstate(over="ignore"):
            rows, y = check_X_y(X, y, dtype=self.dtype, order="C", ensure_all_finite=False, estimator=self)
        check_finite(rows, self.dtype, getattr(X, "columns", None))
        check_classification_targets(y)
        labels = self._labels_after(y, classes, first=first)
        learner = self._make_learner() if first else self.learner_
        validate_data(self, X, reset=first, skip_check_array=True)
        self._labels, self.learner_ = labels, learner
        return self._learn_rows(rows, labels.encode(y))

    def _learn_new_label(self, x: Any, row: Array, y: Any) -> Self:
        """``learn_one`` for the first row, or a label not seen before."""
        first = not self._started
        target = column_or_1d([y])
        assert_all_finite(target, input_name="y")
        check_classification_targets(target)
        labels = self._labels_after(target, None, first=first)
        if first:
            self.learner_ = self._make_learner()
            self.n_features_in_ = row.shape[1]
            if isinstance(x, Mapping):
                self.feature_names_in_ = np.asarray(list(x), dtype=object)
        self._labels = labels
        return self._learn_rows(row, labels.encode(target))

    def _row(self, x: Any) -> Array:
        """One example as a valid (1, d) array."""
        if self._started:
            return row_of(x, self.n_features_in_, getattr(self, "feature_names_in_", None), self.dtype)
        check_choice("dtype", self.dtype, Dtype)
        return row_of(x, None, list(x) if isinstance(x, Mapping) else None, self.dtype)

    def _labels_after(self, y: Array, classes: Any, *, first: bool) -> Labels:
        """The labels known after a batch."""
        labels = learn_labels(None if first else self._labels, y, classes)
        if self.pos_label is not None and len(labels.classes) == 2 and self.pos_label not in labels.codes:
            raise ValueError(f"pos_label={self.pos_label!r} is not one of the classes {labels.classes.tolist()}")
        return labels

    def _learn_rows(self, rows: Array, codes: Array) -> Self:
        """Learn valid rows; fit the calibration anew at the rows where it is due."""
        at = 0
        while at < len(codes):
            seen = self.learner_.n_seen
            end = at + next_calibration_row(seen) - seen
            self.learner_.partial_fit(rows[at:end], codes[at:end])
            if end <= len(codes):
                self.calibration_ = platt(*self._state.recent.view())
            at = end
        return self

    def _check_rows(self, X: Any) -> Array:
        check_is_fitted(self)
        rows = validate_data(self, X, reset=False, dtype=self.dtype, order="C", ensure_all_finite=False)
        check_finite(rows, self.dtype, getattr(X, "columns", None))
        return np.asarray(rows)

    def _decide(self, rows: Array) -> Array:
        if len(self.classes_) < 2:
            return np.zeros(len(rows))
        return self._calibrate(self.learner_.score(rows))

    def _calibrate(self, scores: Array) -> Array:
        a, b = self.calibration_
        return self._labels.sign * (a * scores + b)

    def _probabilities(self, rows: Array) -> Array:
        if len(self.classes_) < 2:
            return np.ones((len(rows), 1))
        positive = expit(self._decide(rows))
        return np.column_stack([1.0 - positive, positive])
