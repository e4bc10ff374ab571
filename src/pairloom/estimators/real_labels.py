"""The base of the ranker and the regressor, which learn from pairs of rows with real labels."""

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from pairloom.base.batch import Batch
from pairloom.base.graph import Value
from pairloom.base.interrupts import DeferredSignals
from pairloom.base.randomness import seed_of
from pairloom.base.typing import Array
from pairloom.base.validation import check_numeric, check_weight, one_weight, positive_rows
from pairloom.columns.report import warn_of_columns
from pairloom.columns.state import ColumnsState
from pairloom.estimators.base import forgetting_of
from pairloom.estimators.card import Card, Growth, model_kind
from pairloom.estimators.class_labels import Labels
from pairloom.estimators.explaining import ExplainedEstimator, Target
from pairloom.estimators.parameters import estimator
from pairloom.features import FeatureMap
from pairloom.features.fourier import feature_map
from pairloom.features.kernels import Gamma
from pairloom.features.scaling import Scaling
from pairloom.losses import Loss
from pairloom.memory import Memory, Window
from pairloom.memory.base import chosen_memory
from pairloom.metrics.concordance import concordance
from pairloom.models.learner import Learner
from pairloom.pairs import Pairs, query_code, query_codes
from pairloom.steps import L2, Average
from pairloom.steps.schedules import schedule_named
from pairloom.stream import ArrivalScores, Stream

FLOAT_MAX = float(np.finfo(float).max)


@estimator
class PairwiseEstimator(ExplainedEstimator):
    """Base class of estimators that learn a score <w, phi(x)> from pairs of rows with real labels, in one pass.

    ``fit``, ``partial_fit`` on any chunks and ``learn_one`` give the same model, bit for bit, for the same rows in the
    same order. A call that raises an error changes nothing.

    Parameters
    ----------
    kernel : "gaussian", "laplace", "cauchy", "matern32", "matern52", or "linear" (phi(x) = x; needs a smaller eta).
    gamma : kernel width: a number, one number per column, "paper" = 1 / (2 d), or "median" = 1 / median squared
        distance.
    n_components : number D of random Fourier features, rounded up to an even number.
    eta : step size.
    schedule : "constant", "sqrt" (eta / sqrt(t)), "poly" (eta t^-0.75) or "adagrad" (one step size per coordinate, see
        :class:`~pairloom.steps.AdaGrad`).
    alpha : L2 penalty.
    memory : the partners B_t: any memory that mixes labels. None is Window(64), the newest 64 rows, which suits
        queries, whose rows arrive together, and shuffled streams. For long runs of equal labels use
        Reservoir(64, by="joint").
    average : the iterate that predicts: "poly" (forgets the start), "mean" or "last".
    scale : scaling of the columns: "standard", "maxabs", "minmax" or None.
    features : any feature map, instead of the one that kernel, gamma, n_components and scale describe.

    Attributes
    ----------
    coef_ : weights w.
    gamma_ : kernel width in use; None for the linear kernel.
    concordance_ : share of correctly ordered pairs among the newest 4,096 rows, each scored before it was learned.
    """

    max_abs_label: ClassVar[float] = np.inf
    added: ClassVar[dict[str, Any]] = {"schedule": "constant", "columns": None, "half_life": None}

    kernel: str = "gaussian"
    gamma: Gamma = "median"
    n_components: int = 512
    eta: float = 0.125
    schedule: str = "constant"
    alpha: float = 1e-6
    memory: Memory | None = None
    average: Average = "poly"
    scale: Scaling = "standard"
    features: FeatureMap | None = None

    @abstractmethod
    def _pairs_and_loss(self) -> tuple[Pairs, Loss]:
        """Return which rows form a pair, and the loss of a pair."""

    @abstractmethod
    def _predictions(self, scores: Array) -> Array:
        """Return the predictions for the scores s(x)."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Learn the rows from scratch, in order, in one pass.

        ``groups`` holds the query of each row, integers or text: only pairs within a query are used. The rows of a
        query should be consecutive; all rows without a query form one query.
        """
        self._learn(X, y, sample_weight, groups, first=True, whole=True)
        warn_of_columns(self._encoder, stacklevel=3)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Learn more rows, in order. A query may continue from one call to the next."""
        return self._learn(X, y, sample_weight, groups, first=not self._started, whole=False)

    def learn_one(self, x: Any, y: Any, sample_weight: float = 1.0, group: Any = None) -> Self:
        """Learn one row as ``partial_fit`` does, without the cost of validating a matrix.

        ``x`` is a sequence of values, or a mapping from column names to values.
        """
        row = self._row_to_learn(x)
        label = check_real_label(y, self, self.max_abs_label)
        weight = one_weight(sample_weight)
        query = query_code(group)
        if weight[0] == 0:
            return self
        stream = self.stream_ if self._started else self._new_stream(None, row)
        stream.check_room(1)
        stream.broken = True
        if not self._started:
            self._remember_columns(row)
            seed_of(self.random_state)
            self.stream_ = stream
        keep = self._keeper(np.zeros(1, np.int64))
        stream.learn(Batch(row.numbers(weight, keep=keep), label, weight, query, row.time))
        self._name_arrivals()
        stream.warn_if_unstable(stacklevel=3)
        return self

    def predict(self, X: Any) -> Array:
        """Return the prediction for each row."""
        rows = self._rows_to_score(X)
        return self._predictions(self.stream_.score_rows(rows))

    def score_one(self, x: Any) -> float:
        """Return the prediction for one row; 0 before the first row is learned."""
        if not self._started:
            return 0.0
        return float(self._predictions(self.stream_.score_rows(self._row(x)))[0])

    def pair_score(self, X: Any, X2: Any) -> Array:
        """Return s(x) - s(x') for the pairs of rows of X and X2."""
        rows, rows2 = self._rows_to_score(X), self._rows_to_score(X2)
        check_consistent_length(rows, rows2)
        return self.stream_.score_rows(rows) - self.stream_.score_rows(rows2)

    def _graph_outputs(self, scores: Value) -> dict[str, tuple[Value, int]]:
        """Return the score in an ONNX graph, the prediction; 0: it has one axis."""
        return {"score": (self._predictions_onnx(scores).reshape(-1), 0)}

    def _predictions_onnx(self, scores: Value) -> Value:
        """Return ``_predictions`` in an ONNX graph."""
        return scores

    @property
    def card(self) -> Card:
        limited = chosen_memory(self.memory, Window()).limited
        memory: Growth = "bounded" if limited is None else "grows"
        return Card("this library", "d D + s D", "d D + s D", "general", model_kind(self.kernel), memory=memory)

    @property
    def concordance_(self) -> float:
        """Share of correctly ordered pairs, within queries, among the newest 4,096 rows.

        Each row is scored before it is learned. NaN until there is a pair of different labels.
        """
        scores, labels, weight = self._arrivals()
        assert self.stream_.state is not None
        query = self.stream_.state.observed[ArrivalScores.name].query[: len(labels)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            return concordance(labels, scores[:, 0], sample_weight=weight, groups=query)

    @property
    def coef_(self) -> Array:
        """Weights w."""
        check_is_fitted(self)
        return np.asarray(self.stream_.coef[0])

    @property
    def gamma_(self) -> Any:
        """Kernel width in use; None for the linear kernel."""
        gamma = getattr(self._learned.phi, "gamma", None)
        return gamma.item() if gamma is not None and gamma.ndim == 0 else gamma

    def _labels_to_explain(self, rows: Array, label: Any) -> Sequence[tuple[Any, Array]]:
        if label is not None:
            raise ValueError(f"label= is for classifiers: {type(self).__name__} has one score; got {label!r}")
        return [(None, np.arange(rows.shape[0]))]

    def _target_of(self, label: Any) -> Target:
        return Target(0, 1.0, float(self._predictions(np.zeros(1))[0]), np.zeros(1, np.int64))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _learn(self, X: Any, y: Any, sample_weight: Any, groups: Any, *, first: bool, whole: bool) -> Self:
        """Validate all input, then change the model."""
        incoming = self._rows_to_learn(X, first=first)
        labels = check_real_labels(y, self, self.max_abs_label)
        check_consistent_length(incoming, labels)
        weight, query = check_weight(sample_weight, len(labels)), query_codes(groups, len(labels))
        keep = positive_rows(weight, may_be_none=not whole)
        if keep is not None:
            incoming, labels, weight, query = incoming[keep], labels[keep], weight[keep], query[keep]
        if len(labels) == 0:
            return self
        incoming = incoming.read(self.columns, self._layouts)
        stream = self._new_stream(None, incoming) if first else self.stream_
        stream.check_room(len(labels))
        with DeferredSignals() as work:
            if first:
                validate_data(self, X, reset=True, skip_check_array=True)
                seed_of(self.random_state)
                self._encoder, self.stream_ = incoming.encoder, stream
                self._windows, self._newest = self._new_windows(), None
            for rows in work.pieces(stream.n_seen, len(labels)):
                stream.broken = True
                part = incoming if len(labels[rows]) == len(labels) else incoming[rows]
                keeper = self._keeper(np.zeros(len(labels[rows]), np.int64))
                numbers = part.numbers(weight[rows], keep=keeper)
                stream.learn(Batch(numbers, labels[rows], weight[rows], query[rows], part.time))
        stream.warn_if_unstable(stacklevel=4)
        return self

    def _stream_of(self, labels: Labels | None, seed: int | None, columns: ColumnsState | None) -> Stream:
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
        model, encoding = self._reading(learner, columns)
        return Stream(model, (ArrivalScores(queries=True), *forgetting), encoding)


def check_real_labels(y: Any, estimator: Any, max_abs: float) -> Array:
    """Return the labels as float64; raise ValueError with the first row that is not finite or beyond ``max_abs``."""
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    check_numeric("y", y)
    y = column_or_1d(y, warn=True)
    if y.dtype.kind not in "biufO":
        raise ValueError(f"y must be numbers, got {y.dtype}: {y[:1].tolist()[0]!r} at row 0")
    try:
        labels = y.astype(float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y must be numbers: {error}") from None
    bad_rows = np.flatnonzero(~(np.abs(labels) <= min(max_abs, FLOAT_MAX)))
    if bad_rows.size:
        row = bad_rows[0]
        if np.isnan(labels[row]):
            raise ValueError(f"Input y contains NaN at row {row}.")
        if np.isinf(labels[row]):
            raise ValueError(f"Input y contains infinity at row {row}.")
        raise ValueError(f"Input y contains {labels[row]:g} at row {row}, beyond {max_abs:g}: divide y by its scale.")
    return np.ascontiguousarray(labels)


def check_real_label(y: Any, estimator: Any, max_abs: float) -> Array:
    """Do the same for the label of one row, without the cost of validating an array."""
    if not isinstance(y, (int, float, np.integer, np.floating, np.bool_)):
        raise ValueError(f"y must be one number, got {y!r}")
    label = float(y)
    return (
        np.array([label]) if abs(label) <= min(max_abs, FLOAT_MAX) else check_real_labels([label], estimator, max_abs)
    )
