"""Adapters: score and learn one row with models of pairloom, river or scikit-learn."""

from typing import Any, Protocol

import numpy as np

from pairloom.evaluation.rows import Row, row_as_dict


class Adapter(Protocol):
    """Scores and learns one row at a time; ``positive`` is the positive label."""

    positive: Any

    def score(self, row: Row) -> float:
        """Return the score of a row for the positive label; 0 before the first row is learned."""

    def learn(self, row: Row) -> None:
        """Learn a row with its label."""


class PairloomAdapter:
    """Adapter of pairloom: ``score_one``, the score of ``pos_label`` or the larger label, and ``learn_one``."""

    def __init__(self, model: Any, positive: Any, classes: Any) -> None:
        self.model, self.positive = model, positive
        self.sign = 1.0 if model.pos_label is not None or positive == max(classes) else -1.0

    def score(self, row: Row) -> float:
        return self.sign * float(self.model.score_one(_values(row)))

    def learn(self, row: Row) -> None:
        if hasattr(row.x, "columns") and not hasattr(self.model, "stream_"):
            # The first row must have the dtypes of the frame, which a mapping lacks.
            self.model.partial_fit(row.x, np.array([row.y]), sample_weight=np.array([row.weight]))
        else:
            self.model.learn_one(_values(row), row.y, sample_weight=row.weight)


class RiverAdapter:
    """Adapter of river: ``predict_proba_one`` and ``learn_one`` of a mapping."""

    def __init__(self, model: Any, positive: Any) -> None:
        self.model, self.positive = model, positive

    def score(self, row: Row) -> float:
        return float(self.model.predict_proba_one(row_as_dict(row.x)).get(self.positive, 0.0))

    def learn(self, row: Row) -> None:
        self.model.learn_one(row_as_dict(row.x), row.y)


class SklearnAdapter:
    """Adapter of scikit-learn: ``decision_function`` or ``predict_proba``, and ``partial_fit``, one row per call."""

    def __init__(self, model: Any, positive: Any, classes: Any) -> None:
        self.model, self.positive, self.classes = model, positive, classes
        self.started = hasattr(model, "classes_")

    def score(self, row: Row) -> float:
        if not self.started:
            return 0.0
        if hasattr(self.model, "decision_function"):
            score = float(np.asarray(self.model.decision_function(row.x)).ravel()[0])
            return score if self.model.classes_[1] == self.positive else -score
        column = list(self.model.classes_).index(self.positive)
        return float(self.model.predict_proba(row.x)[0, column])

    def learn(self, row: Row) -> None:
        weight = {} if row.weight == 1.0 else {"sample_weight": np.array([row.weight])}
        self.model.partial_fit(row.x, np.array([row.y]), classes=self.classes, **weight)
        self.started = True


def adapter_of(name: str, model: Any, classes: Any) -> Adapter:
    """Return the adapter for a model; raise ValueError if there is none."""
    positive = getattr(model, "pos_label", None)
    positive = classes[1] if positive is None else positive
    if hasattr(model, "pos_label") and hasattr(model, "score_one"):
        return PairloomAdapter(model, positive, classes)
    if hasattr(model, "predict_proba_one") and hasattr(model, "learn_one"):
        return RiverAdapter(model, positive)
    if hasattr(model, "partial_fit") and (hasattr(model, "decision_function") or hasattr(model, "predict_proba")):
        return SklearnAdapter(model, positive, np.asarray(classes))
    raise ValueError(
        f"{name} can be evaluated on a stream if it has partial_fit and decision_function or predict_proba (as in "
        f"scikit-learn), or learn_one and predict_proba_one (as in river); got {model!r}"
    )


def _values(row: Row) -> Any:
    x = row.x
    if hasattr(x, "columns"):
        return row_as_dict(x)
    return x.toarray()[0] if hasattr(x, "toarray") else x[0]
