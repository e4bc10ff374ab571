"""Estimators on Dask: the parameters of the local ones, and how their rounds run."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from pairloom import estimators, systems
from pairloom.base.checks import check_count
from pairloom.base.extras import import_extra
from pairloom.base.randomness import fresh_seed, seed_of
from pairloom.base.typing import Array
from pairloom.columns.encoder import Encoder
from pairloom.columns.frames import is_named
from pairloom.columns.loops import CATEGORY
from pairloom.columns.state import COMPACT
from pairloom.dask.graph import dask, delayed_parts, fit, is_array, is_collection, partitions_of
from pairloom.dask.tasks import Described, PartitionError, Rows, naming
from pairloom.estimators.class_labels import check_class_labels
from pairloom.estimators.parameters import estimator
from pairloom.race.race import DROP_FROM_ROW

BASE_ROWS = 2048
"""Rows that the base of most models learns, or as many as fix its data-dependent settings."""


@dataclass(frozen=True)
class Spec:
    """What to fit: an unfitted local estimator, the rows of its base, and the classes of all partitions."""

    model: Any
    base_rows: int
    classes: list[Any] | None = None
    categories: dict[str, list[str]] = field(default_factory=dict)

    @property
    def has_classes(self) -> bool:
        """Whether labels are classes."""
        return hasattr(self.model, "pos_label")

    def check(self, rows: Rows) -> Any:
        """Return the number or the names of the columns of valid rows, or raise ValueError."""
        read = self.model._rows_to_learn(rows.X, first=True).read(self.model.columns, self.model._layouts)
        return read.shape[1] if read.encoder is None else read.encoder.state.names

    def labels_of(self, y: Array) -> Any:
        """Return the different labels of a partition; ValueError if they are not classes."""
        if not self.has_classes:
            return None
        return np.unique(check_class_labels(y, type(self.model).__name__)).tolist()

    def categories_of(self, X: Any) -> dict[str, list[str]]:
        """Return the categories of each column, where each has a feature of its own; merges unite codes."""
        layouts = self.model._layouts
        if not is_named(X) or layouts[1] == COMPACT:
            return {}
        rows = self.model._rows_to_learn(X, first=True).read(self.model.columns, layouts)
        encoder: Encoder = rows.encoder
        columns = zip(encoder.state.names, rows.rows.columns, strict=True)
        lists = {name: column for name, column in columns if type(column) is list}
        return {name: list(dict.fromkeys(v for v in column if v is not None)) for name, column in lists.items()}

    def knowing(self, described: Sequence[Described]) -> "Spec":
        """Return what to fit, with the classes and the categories of all partitions, in their order."""
        columns, classes = [(k, one.columns) for k, one in enumerate(described) if one.n], None
        for k, own in columns:
            if own != columns[0][1]:
                raise PartitionError(
                    f"partition {k} has the columns {own}, but partition {columns[0][0]} has {columns[0][1]}"
                )
        if self.has_classes:
            classes = sorted({label for one in described for label in one.labels or ()})
            if len(classes) < 2:
                raise ValueError(f"all labels are {classes[0]!r}: a classifier needs at least two classes")
        found: dict[str, dict[str, None]] = {}
        for one in described:
            for name, known in one.categories.items():
                found.setdefault(name, {}).update(dict.fromkeys(known))
        return replace(self, classes=classes, categories={name: list(known) for name, known in found.items()})

    def begun(self, rows: Rows) -> Any:
        """Return the base, which has learned these rows and knows all categories."""
        known = {} if self.classes is None else {"classes": self.classes}
        model = self.model.partial_fit(rows.X, rows.y, **known, **rows.extra)
        if self.categories:
            add_categories(model._encoder, self.categories)
        return model


def add_categories(encoder: Encoder, categories: dict[str, list[str]]) -> None:
    """Give codes to categories that the base has not seen, so that parts do not give them different ones."""
    state = encoder.state
    for j, name in enumerate(state.names):
        if state.plain_kinds[j] == CATEGORY:
            for value in categories.get(name, []):
                encoder._code(j, value, learn=True)


class OnDask:
    """Methods of the estimators on Dask, in addition to those of the local ones."""

    local_class: ClassVar[Any]
    base_rows: ClassVar[int] = BASE_ROWS
    own: ClassVar[tuple[str, ...]] = ("rounds", "shards", "client")

    rounds: int
    shards: int
    client: Any
    _fitted: Any

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn all partitions, each row once, at once.

        ``X``, ``y`` and ``sample_weight`` are Dask arrays, Dask data frames or series, or lists of delayed partitions.
        """
        return self._fit(X, y, {"sample_weight": sample_weight})

    def to_local(self) -> Any:
        """Return the ordinary model, which can be saved, explained, exported and continued."""
        check_is_fitted(self)
        return self._fitted

    def predict(self, X: Any) -> Any:
        """Return the predictions: lazily, as a Dask array, if X is a Dask collection."""
        return self._by_partition("predict", X)

    def task(self) -> Spec:
        """Return what a graph fits: a local estimator with these parameters, and a seed known to all parts."""
        for name in ("rounds", "shards"):
            check_count(name, getattr(self, name))
        params = {name: value for name, value in self._params().items() if name not in self.own}
        seed = seed_of(params["random_state"])
        model = self.local_class(**{**params, "random_state": fresh_seed() if seed is None else seed})
        described = model.to_model() if hasattr(model, "to_model") else model._stream_of(None, 0, None).model
        return Spec(model, max(self.base_rows, described.warm_rows))

    def _fit(self, X: Any, y: Any, extra: dict[str, Any]) -> Self:
        partitions = partitions_of(X, y, {name: value for name, value in extra.items() if value is not None})
        self.take(fit(self.task(), partitions, self.rounds, self.shards, self.client))
        return self

    def take(self, fitted: Any) -> None:
        """Store a fitted local model, and its learned attributes as those of this estimator."""
        self._fitted = fitted
        for name, value in vars(fitted).items():
            if name not in fitted.get_params(deep=False):
                setattr(self, name, value)

    def _params(self) -> dict[str, Any]:
        params: dict[str, Any] = self.get_params(deep=False)  # type: ignore[attr-defined]
        return params

    def __sklearn_clone__(self) -> Self:
        return type(self)(**self._params())  # a client cannot be copied

    def _by_partition(self, method: str, X: Any) -> Any:
        local = self.to_local()
        if not is_collection(X):
            return getattr(local, method)(X)
        array, parts = import_extra("dask.array", "dask", "pairloom.dask"), delayed_parts("X", X)
        sizes = X.chunks[0] if is_array(X) else [np.nan] * len(parts)
        like = np.asarray(getattr(local, method)(self._one_row(local)))
        model = dask().delayed(local)
        tasks = [dask().delayed(score)(model, method, k, part, like[:0]) for k, part in enumerate(parts)]
        made = [
            array.from_delayed(task, (n, *like.shape[1:]), dtype=like.dtype)
            for task, n in zip(tasks, sizes, strict=True)
        ]
        return array.concatenate(made)

    def _one_row(self, local: Any) -> Any:
        """Return a row to predict, for the shape and dtype of predictions."""
        if local._encoder is None:
            return np.zeros((1, local.n_features_in_))
        from pandas import DataFrame

        return DataFrame({name: [None] for name in local._encoder.state.names}, dtype=object)


class ClassifierOnDask(OnDask):
    """Methods of classifiers on Dask."""

    def decision_function(self, X: Any) -> Any:
        """Return the log-odds: lazily, as a Dask array, if X is a Dask collection."""
        return self._by_partition("decision_function", X)

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities: lazily, as a Dask array, if X is a Dask collection."""
        return self._by_partition("predict_proba", X)


@estimator
class AUCClassifier(ClassifierOnDask, estimators.AUCClassifier):
    """:class:`pairloom.AUCClassifier` on Dask: shards learn side by side, and their models are merged in rounds.

    The first 16,384 rows, taken evenly from all partitions, are learned by one ordinary model, the base. Shards of the
    remaining rows then continue from copies of it, in which trees and candidates stay as they are. After each round the
    copies are merged: moments are added, weights of leaves are averaged by their squared gradients, trees grow on the
    newest rows of all shards, and the mixture and the log-odds are fitted to their recent scores. Every row is learned
    once, whatever the number of rounds.

    Parameters
    ----------
    rounds : number of merges. More rounds bring the model closer to that of one pass.
    shards : maximum number of shards. Each has consecutive partitions; with fewer partitions, each is a shard. The
        result depends on it, but not on the number of workers.
    client : a ``distributed.Client``. None: the current client or, without one, Dask's scheduler in this process.

    Notes
    -----
    Memory of a worker: a partition and three models for each thread; the merge needs one model for each shard. A
    partition that is not persisted is loaded once for its size and labels, and once for each round that uses it.

    Examples
    --------
    >>> import dask.array as da
    >>> X = da.random.default_rng(0).normal(size=(4000, 3), chunks=(1000, 3))
    >>> model = AUCClassifier(random_state=0).fit(X, (X ** 2).sum(axis=1) > 4)
    >>> model.to_local().n_seen_, model.predict_proba(X).shape
    (4000, (4000, 2))
    """

    local_class: ClassVar[Any] = estimators.AUCClassifier
    base_rows: ClassVar[int] = DROP_FROM_ROW

    rounds: int = 10
    shards: int = 16
    client: Any = None
    _fitted: Any = field(default=None, init=False)


@estimator
class FPOGD(ClassifierOnDask, systems.FPOGD):
    """:class:`pairloom.FPOGD` on Dask: shards learn side by side, and their weights are averaged in rounds.

    Parameters
    ----------
    rounds, shards, client : as in :class:`pairloom.dask.AUCClassifier`. The base learns 2,048 rows.
    """

    local_class: ClassVar[Any] = systems.FPOGD

    rounds: int = 10
    shards: int = 16
    client: Any = None
    _fitted: Any = field(default=None, init=False)


@estimator
class ExactAUC(ClassifierOnDask, systems.ExactAUC):
    """:class:`pairloom.systems.ExactAUC` on Dask: equal to one pass up to rounding, with any number of rounds.

    Parameters
    ----------
    rounds, shards, client : as in :class:`pairloom.dask.AUCClassifier`. The base learns 2,048 rows.
    """

    local_class: ClassVar[Any] = systems.ExactAUC

    rounds: int = 1
    shards: int = 16
    client: Any = None
    _fitted: Any = field(default=None, init=False)


@estimator
class PairwiseRanker(OnDask, estimators.PairwiseRanker):
    """:class:`pairloom.PairwiseRanker` on Dask: shards learn side by side, and their weights are averaged in rounds.

    A query should lie in one partition. Where a round ends inside a query, some of its pairs are not learned.

    Parameters
    ----------
    rounds, shards, client : as in :class:`pairloom.dask.AUCClassifier`. The base learns 2,048 rows.
    """

    local_class: ClassVar[Any] = estimators.PairwiseRanker

    rounds: int = 10
    shards: int = 16
    client: Any = None
    _fitted: Any = field(default=None, init=False)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Learn all partitions, each row once, at once; ``groups`` is a collection with the query of each row."""
        return self._fit(X, y, {"sample_weight": sample_weight, "groups": groups})


def score(model: Any, method: str, partition: int, X: Any, empty: Array) -> Array:
    """Return the predictions for a partition."""
    if X.shape[0] == 0:
        return empty
    with naming(partition):
        return np.asarray(getattr(model, method)(X))
