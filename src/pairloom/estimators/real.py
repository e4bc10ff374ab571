"""Estimators that learn from pairs of real labels: validation, learning, scores."""

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from pairloom.base.batch import Batch
from pairloom.base.interrupts import Unbroken
from pairloom.base.randomness import next_seed, seed_of
from pairloom.base.typing import Array
from pairloom.base.validation import check_weight, one_weight, positive_weight
from pairloom.engines.base import EngineName
from pairloom.estimators.base import StreamEstimator
from pairloom.estimators.card import Card
from pairloom.estimators.class_labels import Labels
from pairloom.estimators.forgetting import forgetting_of
from pairloom.estimators.real_labels import real_label, real_labels
from pairloom.features import FeatureMap, feature_map
from pairloom.features.scaling import Scaling
from pairloom.losses import Loss
from pairloom.memory import Memory, Window, chosen_memory
from pairloom.metrics.concordance import concordance
from pairloom.models.learner import Learner
from pairloom.pairs import Pairs, query_code, query_codes
from pairloom.steps import L2, Average, schedule_named
from pairloom.stream import ArrivalScores, Stream

Gamma = float | Sequence[float] | Literal["paper", "median"]
RandomState = int | np.random.Generator | np.random.RandomState | None


class PairwiseEstimator(StreamEstimator):
    """A model <w, phi(x)> learned from pairs of rows with real labels, one row at a time, in one pass.

    ``fit``, ``partial_fit`` in any chunking and ``learn_one`` give the same model, bit for bit, for the same rows in
    the same order. Predicting changes nothing; a call that raises changes nothing.
    """

    kernel: str
    gamma: Gamma
    n_components: int
    eta: float
    schedule: str
    alpha: float
    memory: Memory | None
    average: Average
    scale: Scaling
    engine: EngineName
    features: FeatureMap | None

    largest_label: ClassVar[float] = np.inf
    added: ClassVar[dict[str, Any]] = {"schedule": "constant", "columns": None, "half_life": None}

    @abstractmethod
    def _pairs_and_loss(self) -> tuple[Pairs, Loss]:
        """y, y' and l."""

    @abstractmethod
    def _predictions(self, scores: Array) -> Array:
        """What ``predict`` makes of s(x)."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Forget everything, then learn the rows in order, once.

        ``groups`` names each row's query, by whole numbers or text: only pairs inside one count. Rows of a query should
        follow each other; rows without one are a query of their own.
        """
        return self._learn(X, y, sample_weight, groups, first=True, whole=True)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Learn more rows, in order; a query may go on from one call to the next."""
        return self._learn(X, y, sample_weight, groups, first=not self._started, whole=False)

    def learn_one(self, x: Any, y: Any, sample_weight: float = 1.0, group: Any = None) -> Self:
        """Learn one row: a sequence of values, or a mapping from column names.

        The same model as ``partial_fit``, without the cost of validating a matrix.
        """
        row = self._row_to_learn(x)
        label = real_label(y, self, self.largest_label)
        weight = one_weight(sample_weight)
        query = query_code(group)
        if weight[0] == 0:
            return self
        stream = self.stream_ if self._started else self._start(row.shape[1])
        stream.check_room(1)
        stream.broken = True
        if not self._started:
            self._remember_columns(row)
            seed_of(self.random_state)
            self.stream_ = stream
        stream.learn(Batch(row.numbers(weight), label, weight, query, row.time))
        stream.warn_if_unstable(stacklevel=3)
        return self

    def predict(self, X: Any) -> Array:
        """One number for each row; a row's number does not depend on the other rows."""
        rows = self._rows_to_score(X)
        return self._predictions(self.stream_.score_rows(rows))

    def score_one(self, x: Any) -> float:
        """``predict`` for one row; 0 before anything was learned."""
        if not self._started:
            return 0.0
        return float(self._predictions(self.stream_.score_rows(self._row(x)))[0])

    def pair_score(self, X: Any, X2: Any) -> Array:
        """s(x) - s(x') of the rows of X and X2, pair by pair."""
        rows, rows2 = self._rows_to_score(X), self._rows_to_score(X2)
        check_consistent_length(rows, rows2)
        return self.stream_.score_rows(rows) - self.stream_.score_rows(rows2)

    @property
    def card(self) -> Card:
        model: Literal["linear", "kernel"] = "linear" if self.kernel == "linear" else "kernel"
        grows: Literal["grows", "bounded"] = "grows" if getattr(self.memory, "grows", False) else "bounded"
        return Card("this library", "d D + s D", "d D + s D", problem="general", model=model, memory=grows)

    @property
    def concordance_(self) -> float:
        """Share of the pairs of the newest 4,096 rows, inside queries, that were ranked rightly when the rows came.

        NaN until there is a pair of different labels.
        """
        scores, labels, weight = self._arrivals()
        assert self.stream_.state is not None
        query = self.stream_.state.observed[ArrivalScores.name].query[: len(labels)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            return concordance(labels, scores[:, 0], sample_weight=weight, groups=query)

    @property
    def coef_(self) -> Array:
        """w of the output iterate."""
        check_is_fitted(self)
        return np.asarray(self.stream_.coef[0])

    @property
    def gamma_(self) -> Any:
        """Kernel width in use; None for the linear kernel."""
        gamma = getattr(self._learned.phi, "gamma", None)
        return gamma.item() if gamma is not None and gamma.ndim == 0 else gamma

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _learn(self, X: Any, y: Any, sample_weight: Any, groups: Any, *, first: bool, whole: bool) -> Self:
        """Validate everything, then change the model."""
        incoming = self._rows_to_learn(X, first=first)
        labels = real_labels(y, self, self.largest_label)
        check_consistent_length(incoming, labels)
        weight, query = check_weight(sample_weight, len(labels)), query_codes(groups, len(labels))
        keep = positive_weight(weight, may_be_none=not whole)
        if keep is not None:
            incoming, labels, weight, query = incoming[keep], labels[keep], weight[keep], query[keep]
        if len(labels) == 0:
            return self
        incoming = self._read(incoming)
        stream = self._start(incoming.shape[1]) if first else self.stream_
        stream.check_room(len(labels))
        with Unbroken() as work:
            if first:
                validate_data(self, X, reset=True, skip_check_array=True)
                seed_of(self.random_state)
                self._encoder, self.stream_ = incoming.encoder, stream
            for rows in work.pieces(stream.n_seen, len(labels)):
                stream.broken = True
                part = incoming if len(labels[rows]) == len(labels) else incoming[rows]
                stream.learn(Batch(part.numbers(weight[rows]), labels[rows], weight[rows], query[rows], part.time))
        stream.warn_if_unstable(stacklevel=4)
        return self

    def _start(self, n_features: int) -> Stream:
        """A stream with its state made, so that parts that do not fit have raised."""
        stream = self._stream_of(None, next_seed(self.random_state))
        stream.start(n_features)
        return stream

    def _stream_of(self, labels: Labels | None, seed: int | None) -> Stream:
        pairs, loss = self._pairs_and_loss()
        learner = Learner(
            features=feature_map(self.features, self.kernel, self.gamma, self.n_components, self.scale),
            pairs=pairs,
            loss=loss,
            memory=chosen_memory(self.memory, Window()),
            step=schedule_named(self.schedule, self.eta),
            penalty=L2(self.alpha, "proximal"),
            average=self.average,
            dtype=self.dtype,
            seed=seed,
            engine=self.engine,
        )
        forgetting = forgetting_of(type(self).__name__, learner, self.half_life)
        return Stream(learner, (ArrivalScores(queries=True), *forgetting))
