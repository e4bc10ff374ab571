"""Classifiers of pairloom with the interface of river: rows are mappings, whose names may come and go."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from river.base import MiniBatchClassifier
from sklearn.base import clone

from pairloom.adapters.river.frames import columns_by_name, labels_of, like, records_of
from pairloom.base.typing import Array
from pairloom.columns.kinds import ColumnsLike, columns_of
from pairloom.columns.loops import OPEN
from pairloom.columns.values import is_blank
from pairloom.estimators import AUCClassifier, PairwiseClassifier

RESERVE = 32
"""Default number of spare columns."""


class RiverClassifier(MiniBatchClassifier):
    """A classifier of pairloom as a ``MiniBatchClassifier`` of river.

    A name that is absent from a row is a missing value. A new name in mid-stream takes one of ``reserve`` spare
    columns; values of names beyond the reserve are ignored, counted in ``model.columns_.ignored``, and reported once.
    The order of names does not matter. Values may be numbers, text, dates and missing
    (:class:`~pairloom.columns.Columns`).

    Before the first row, all classes have the same probability. Labels False and True, or 0 and 1, need not be named;
    the first two others are the classes.

    Parameters
    ----------
    estimator : the classifier, which is not changed.
    classes : all labels, if there are more than two.
    reserve : number of spare columns: each costs time in every row, in mappings as in data frames.

    Attributes
    ----------
    model : the estimator that learns; ``pairloom.save`` saves it, and ``as_river`` continues a loaded one.

    Cost: that of ``estimator``, and a few microseconds for a row. Frames whose names are all known are learned at once,
    others row by row; the model is the same.

    >>> from pairloom.systems import FPOGD
    >>> model = RiverClassifier(FPOGD(random_state=0))
    >>> model.learn_one({"amount": 12.5, "shop": "web"}, False)
    >>> model.learn_one({"amount": 900.0, "device": "new"}, True)
    >>> model.model.columns_.kinds
    {'amount': 'number', 'shop': 'category', 'device': 'category'}
    >>> sorted(model.predict_proba_one({"amount": 20.0}))
    [False, True]
    """

    def __init__(
        self, estimator: PairwiseClassifier, classes: tuple[Any, ...] | None = None, reserve: int = RESERVE
    ) -> None:
        self.estimator = estimator
        self.classes = classes
        self.reserve = reserve
        self._start(estimator)

    def _start(self, estimator: PairwiseClassifier) -> None:
        """Set the model that learns: a new one, with spare columns."""
        part = replace(columns_of(estimator.columns), reserve=self.reserve)
        self.model: Any = clone(estimator).set_params(columns=part)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"estimator": AUCClassifier(random_state=0)} if cls is RiverClassifier else {}

    @property
    def _multiclass(self) -> bool:
        return len(self.classes or ()) > 2

    def learn_one(self, x: Mapping[Hashable, Any], y: Any, w: float = 1.0) -> None:
        """Learn one row with its label, and its weight."""
        row, label = _named(x), _plain(y)
        if not hasattr(self.model, "stream_"):
            self._declare(label)
            row = {name: row[name] for name in sorted(row) if not is_blank(row[name])}
        self.model.learn_one(row, label, w)

    def learn_many(self, X: Any, y: Any, w: Any = None) -> None:
        """Learn a frame of pandas, polars or pyarrow; the result is that of learning its rows one by one."""
        labels = labels_of(y)
        weights = np.ones(len(labels)) if w is None else np.asarray(w, dtype=float)
        frame = self._settled(X)
        if frame is not None:
            self.model.partial_fit(frame, np.asarray(labels), sample_weight=weights)
            return
        for row, label, weight in zip(records_of(X), labels, weights.tolist(), strict=True):
            self.learn_one(row, label, weight)

    def predict_proba_one(self, x: Mapping[Hashable, Any], **kwargs: Any) -> dict[Any, float]:
        """Return the probability of each class for one row."""
        if not hasattr(self.model, "stream_"):
            return self._uniform()
        found: dict[Any, float] = self.model.predict_proba_one(_named(x))
        return found

    def predict_proba_many(self, X: Any) -> Any:
        """Return the probability of each class for each row, a frame of the same library; of polars, names are text."""
        if not hasattr(self.model, "stream_"):
            known = self._uniform()
            return like(X, np.tile(list(known.values()), (len(X), 1)), list(known))
        frame = columns_by_name(X, self.model._encoder.state.names)
        return like(X, self._probabilities(frame), self.model.classes_.tolist())

    def predict_many(self, X: Any) -> Any:
        """Return the most probable class of each row, a column of the same library."""
        if not hasattr(self.model, "stream_"):
            classes, probabilities = list(self._uniform()), np.zeros((len(X), 1))
        else:
            classes = self.model.classes_.tolist()
            probabilities = self._probabilities(columns_by_name(X, self.model._encoder.state.names))
        return like(X, [classes[k] for k in probabilities.argmax(axis=1).tolist()])

    def score_one(self, x: Mapping[Hashable, Any]) -> float:
        """Return the log-odds of the positive class for one row."""
        return float(self.model.score_one(_named(x)))

    def _probabilities(self, frame: Any) -> Array:
        return self.model.predict_proba(frame) if len(frame) else np.zeros((0, len(self.model.classes_)))

    def _uniform(self) -> dict[Any, float]:
        declared = self.classes or (False, True)
        return dict.fromkeys(declared, 1.0 / len(declared))

    def _declare(self, label: Any) -> None:
        """Name the classes to the model, before its first row."""
        pair = (False, True) if isinstance(label, bool) else (0, 1)
        classes = self.classes or (pair if label in pair else None)
        if classes is not None and self.model._declared is None:
            self.model._declare(list(classes), first=True)

    def _settled(self, X: Any) -> Any:
        """Return a frame with the columns of the model, if these do not depend on the rows; otherwise None."""
        if not hasattr(self.model, "stream_") or len(X) == 0:
            return None
        state, names = self.model._encoder.state, [str(name) for name in columns_of_frame(X)]
        if OPEN in state.plain_kinds or not state.known.issuperset(names) or len(self.model.classes_) < 2:
            return None
        return columns_by_name(X, state.names)


def columns_of_frame(X: Any) -> Iterable[Any]:
    """Return the names of the columns of a frame."""
    names: Iterable[Any] = getattr(X, "column_names", X.columns)
    return names


class RiverAUC(RiverClassifier):
    """:class:`~pairloom.AUCClassifier` in river: rank one class above the other on a stream, without tuning.

    Of the interface, :class:`RiverClassifier` has the rules. Other parameters: ``as_river(AUCClassifier(...))``.

    Parameters
    ----------
    seed : seed of all randomness; None is a fresh one.
    classes : all labels, if there are more than two.
    columns : kinds of columns, such as {"device": "category"}, or a :class:`~pairloom.columns.Columns`; None infers
        them from the first values.
    reserve : number of spare columns for new names.

    >>> from river import evaluate, datasets, metrics
    >>> metric = evaluate.progressive_val_score(datasets.Phishing().take(300), RiverAUC(), metrics.ROCAUC(100))
    >>> bool(metric.get() > 0.9)
    True
    """

    def __init__(
        self, seed: int | None = 0, classes: tuple[Any, ...] | None = None, columns: ColumnsLike = None,
        reserve: int = RESERVE,
    ) -> None:  # fmt: skip
        self.seed = seed
        self.classes = classes
        self.columns = columns
        self.reserve = reserve
        self._start(AUCClassifier(random_state=seed, columns=columns))


def as_river(
    estimator: PairwiseClassifier, classes: tuple[Any, ...] | None = None, reserve: int = RESERVE
) -> RiverClassifier:
    """Return a classifier of pairloom with the interface of river.

    A fitted estimator continues to learn, in place, with the columns and spare columns it has; one that is not fitted
    is copied. See :class:`RiverClassifier`.

    >>> from pairloom.systems import OGD
    >>> as_river(OGD(random_state=0)).predict_proba_one({"amount": 1.0})
    {False: 0.5, True: 0.5}
    """
    if not isinstance(estimator, PairwiseClassifier) or not hasattr(estimator, "learn_one"):
        raise TypeError(f"as_river takes a classifier of pairloom that has learn_one; got {estimator!r}")
    if not hasattr(estimator, "stream_"):
        return RiverClassifier(estimator, classes, reserve)
    if estimator._encoder is None:
        raise ValueError("this model learned rows without column names: rows of river are mappings from names")
    made = RiverClassifier(clone(estimator), classes or tuple(estimator.classes_.tolist()), reserve)
    made.model = estimator
    return made


def _plain(y: Any) -> Any:
    """Return a label as a plain Python value."""
    return y.item() if isinstance(y, np.generic) else y


def _named(x: Mapping[Hashable, Any]) -> Mapping[str, Any]:
    """Return a row whose names are text: river allows any names, such as 0, 1, 2."""
    if all(type(name) is str for name in x):
        return x  # type: ignore[return-value]
    row = {str(name): value for name, value in x.items()}
    if len(row) < len(x):
        raise ValueError(f"two names of a row have the same text: {list(x)}")
    return row
