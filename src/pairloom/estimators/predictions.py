"""Predictions of a classifier: log-odds, probabilities, and the AUC of the newest rows."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, log_expit, softmax
from sklearn.utils.validation import check_is_fitted

from pairloom.base.graph import NoGraph, Value, joined
from pairloom.base.typing import Array
from pairloom.estimators.class_weight import ClassWeight
from pairloom.estimators.explaining import ExplainedEstimator, Target
from pairloom.metrics.auc import mean_auc
from pairloom.metrics.intervals import Area, mean_area
from pairloom.stream.calibration import Calibration, Fit
from pairloom.stream.drift import DriftWatch


class ClassifierPredictions(ExplainedEstimator):
    """Base class of classifiers: the methods that read the model without changing it.

    Attributes
    ----------
    classes_ : the labels known so far, in order.
    pos_label_ : the positive class: ``pos_label``, or ``classes_[1]``.
    coef_ : weights w of the score for ``classes_[1]``; with more than two classes, one row per class.
    auc_ : AUC of the newest 4,096 rows with a 95 % confidence interval; each row is scored before it is learned.
    changes_ : row numbers at which drift was detected.
    calibration_ : (a, b) of each score s, such that a s + b is the log-odds.
    """

    _calibration: ClassVar[Calibration] = Calibration()

    pos_label: Any
    class_weight: ClassWeight

    def score_one(self, x: Any) -> float:
        """Return the log-odds of the positive class, ``pos_label_``, for one row; 0 before the first row is learned."""
        if not self._started:
            return 0.0
        return float(self._for_positive(self._decide(self._row(x)))[0])

    def score_many(self, X: Any) -> Array:
        """Return the log-odds of the positive class, ``pos_label_``, for each row.

        ``decision_function`` is the same for ``classes_[1]``, as in scikit-learn, regardless of ``pos_label``.
        """
        return self._for_positive(self._decide(self._rows_to_score(X)))

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """Return the probability of each class for one row; empty before the first row is learned."""
        if not self._started:
            return {}
        return dict(zip(self._labels.classes.tolist(), self._probabilities(self._row(x))[0].tolist(), strict=True))

    def decision_function(self, X: Any) -> Array:
        """Return the log-odds of ``classes_[1]``; with more than two classes, of each class against the rest."""
        return self._decide(self._rows_to_score(X))

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class, in the order of ``classes_``."""
        return self._probabilities(self._rows_to_score(X))

    def predict(self, X: Any) -> Array:
        """Return the most probable class of each row."""
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
        """The positive class, which ``score_many`` and ``score_one`` score: ``pos_label``, or ``classes_[1]``."""
        if self.pos_label is None and len(self.classes_) != 2:
            raise AttributeError(f"the classes are {self.classes_.tolist()}: set pos_label to name the positive one")
        return self.classes_[1].item() if self.pos_label is None else self.pos_label

    @property
    def coef_(self) -> Array:
        """Weights w of the score for ``classes_[1]``; with more than two classes, one row per class."""
        check_is_fitted(self)
        w = self._labels.sign * self.stream_.coef
        return np.asarray(w[0] if len(w) == 1 else w)

    @property
    def auc_(self) -> Area:
        """AUC of the newest 4,096 rows with a 95 % confidence interval; each row is scored before it is learned.

        NaN until there are rows of both classes. With more than two classes, the mean over one-vs-rest problems.
        """
        scores, codes, weight = self._arrivals()
        return mean_area(scores, codes, weight, self.stream_.model.pairs.targets)

    @property
    def changes_(self) -> list[int]:
        """Row numbers at which drift was detected, the newest 1,024; empty without ``drift``."""
        check_is_fitted(self)
        assert self.stream_.state is not None
        watched = self.stream_.state.observed.get(DriftWatch.name)
        return [] if watched is None else watched.alarms.tolist()

    @property
    def calibration_(self) -> list[tuple[float, float]]:
        """(a, b) of each score s, such that a s + b is the log-odds of the class that s ranks first."""
        check_is_fitted(self)
        fit = self._platt_fit
        return list(zip(fit.a.tolist(), fit.b.tolist(), strict=True))

    @property
    def _platt_fit(self) -> Fit:
        assert self.stream_.state is not None
        fit: Fit = self.stream_.state.observed[Calibration.name]
        return fit

    @property
    def _discordant_share(self) -> float:
        """Share of wrongly ordered pairs among the newest rows, each scored before it was learned."""
        scores, codes, weight = self._recent.view()
        area = float(mean_auc(scores[:, None, :], codes, weight, self.stream_.model.pairs.targets)[0])
        return 0.5 if np.isnan(area) else 1.0 - area

    def _graph_outputs(self, scores: Value) -> dict[str, tuple[Value, int]]:
        """Return label, probabilities and score in an ONNX graph, each with its number of columns (0: no axis)."""
        classes, fit = self._labels.classes, self._platt_fit
        if len(classes) < 2:
            raise NoGraph(f"the model has seen rows of one class only, {classes.tolist()}")
        decisions = scores * fit.a + fit.b
        if len(fit.a) > 1:
            chosen = decisions.call("ArgMax", dtype="i8", axis=1, keepdims=0)
            below = decisions.at_least(0.0) - decisions  # -log_expit(d) = max(d, 0) - d + ln(1 + exp(-|d|))
            p = (-below - ((-decisions.abs()).exp() + 1.0).log()).call("Softmax", axis=1)
            score, columns = decisions, len(classes)
            if self.pos_label is not None:
                score, columns = decisions.take(classes.tolist().index(self.pos_label)), 0
        else:
            decisions = decisions * self._labels.sign
            chosen = (decisions > 0.0).to("i8").reshape(-1)
            positive = decisions.call("Sigmoid")
            p = joined([1.0 - positive, positive])
            score, columns = (-decisions if self.pos_label == classes[0] else decisions).reshape(-1), 0
        return {"label": (labelled(chosen, classes), 0), "probabilities": (p, len(classes)), "score": (score, columns)}

    def _decide(self, rows: Any) -> Array:
        if len(self._labels.classes) < 2:
            return np.zeros(rows.shape[0])
        return self._calibrate(self.stream_.score_rows(rows))

    def _calibrate(self, scores: Array) -> Array:
        """Return a s + b of each model; scores are (n,) or (n, models)."""
        a, b = self._platt_fit.a, self._platt_fit.b
        if len(a) > 1:
            return np.asarray(a * scores + b)
        return np.asarray(self._labels.sign * (a[0] * scores.reshape(len(scores)) + b[0]))

    def _for_positive(self, decisions: Array) -> Array:
        """Return the log-odds of the positive class, from those of ``decision_function``."""
        labels, positive = self._labels, self.pos_label
        if len(labels.classes) < 2 or (positive is None and decisions.ndim == 1):
            return decisions
        if positive is None:
            raise ValueError(
                "with more than two classes, score_one and score_many need a positive class: set pos_label"
            )
        if positive not in labels.codes:
            raise ValueError(f"pos_label={positive!r} is not one of the classes {labels.classes.tolist()}")
        if decisions.ndim == 1:
            return -decisions if positive == labels.classes[0] else decisions
        return np.asarray(decisions[:, labels.classes.tolist().index(positive)])

    def _labels_to_explain(self, rows: Array, label: Any) -> Sequence[tuple[Any, Array]]:
        classes, every = self._labels.classes.tolist(), np.arange(rows.shape[0])
        if len(classes) < 2:
            raise ValueError(f"explain needs rows of two classes; all rows so far are of {classes[0]!r}")
        chosen = self.pos_label if label is None else label
        if chosen is None and len(classes) == 2:
            chosen = classes[1]
        if chosen is None:
            decisions = self._decide(rows).argmax(axis=1)
            return [(classes[k], np.flatnonzero(decisions == k)) for k in np.unique(decisions).tolist()]
        if chosen not in classes:
            raise ValueError(f"label={chosen!r} is not one of the classes {classes}")
        return [(chosen, every)]

    def _target_of(self, label: Any) -> Target:
        labels, fit = self._labels, self._platt_fit
        code = int(labels.codes[label])
        others = np.array([k for k in labels.groups if k != code])
        if len(fit.a) > 1:
            return Target(code, float(fit.a[code]), float(fit.b[code]), others)
        sign = labels.sign if label == labels.classes[1] else -labels.sign
        return Target(0, sign * float(fit.a[0]), sign * float(fit.b[0]), others)

    def _probabilities(self, rows: Any) -> Array:
        if len(self._labels.classes) < 2:
            return np.ones((rows.shape[0], 1))
        decisions = self._decide(rows)
        if decisions.ndim == 1:
            p = expit(decisions)
            return np.column_stack([1.0 - p, p])
        # In log space: far from the data all sigmoids may underflow to 0.
        return np.asarray(softmax(log_expit(decisions), axis=1))


def labelled(codes: Value, classes: Array) -> Value:
    """Return the labels with these indices in an ONNX graph: integers, numbers, booleans or text."""
    known = classes.tolist()
    kinds: dict[type, tuple[str, Any]] = {
        bool: ("b1", bool), int: ("i8", np.int64), float: ("f8", float), str: ("U", object),
    }  # fmt: skip
    kind = kinds.get(type(known[0]))
    if kind is None or {type(label) for label in known} != {type(known[0])}:
        raise NoGraph(f"the classes {known} are neither numbers nor text")
    return codes.rows_of(np.array(known, kind[1]), kind[0])


def opposite_pairs(counts: Array) -> int:
    """Return the number of pairs of different classes.

    >>> opposite_pairs(np.array([2.0, 3.0]))
    6
    """
    return int((counts.sum() ** 2 - counts @ counts) / 2)
