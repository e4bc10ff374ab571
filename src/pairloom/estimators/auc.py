"""AUCClassifier: the product. It tunes itself on the stream."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from pairloom.base.checks import check_choice, check_count, check_number
from pairloom.base.interrupts import Unbroken
from pairloom.base.tree import copy
from pairloom.base.typing import Array
from pairloom.columns import ColumnsLike
from pairloom.engines.base import EngineName
from pairloom.estimators.card import Card
from pairloom.estimators.class_labels import Labels
from pairloom.estimators.class_weight import ClassWeight
from pairloom.estimators.classifier import PairwiseClassifier
from pairloom.estimators.monitor.figure import plot_view
from pairloom.estimators.monitor.view import view_of
from pairloom.estimators.monitor.writer import PIECE, Writer
from pairloom.features import FeatureMap
from pairloom.features.kernels import Gamma
from pairloom.features.scaling import Scaling
from pairloom.losses import LOSSES
from pairloom.metrics.auc import mean_auc
from pairloom.models.base import Dtype
from pairloom.pairs import OppositeClass
from pairloom.race import Budget, Portfolio, Race, pinned
from pairloom.race.race import SETTLED
from pairloom.race.telling import told
from pairloom.stream import Observer
from pairloom.stream.calibration import Calibration
from pairloom.stream.drift import Drift
from pairloom.stream.forgetting import HalfLife
from pairloom.stream.history import StreamHistory

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class AUCClassifier(PairwiseClassifier):
    """Rank one class above the other (AUC) on a stream, in one pass, without anything to tune.

    A few candidates of different kinds learn on the stream: a linear model, two forests whose cells are features, small
    kernel spaces and a larger one where that pays, each with several steps or penalties. Every row is scored by all of
    them before they learn from it, and what they say is mixed by how good it was. See :class:`~pairloom.race.Race` for
    the rules and :class:`~pairloom.race.Portfolio` for the candidates. ``plot_stream`` draws how the stream went,
    ``plot_race`` how the candidates did; ``monitor="page.html"`` is a page that follows the model while it learns.

    Parameters
    ----------
    budget : :class:`~pairloom.race.Budget`: bytes, and microseconds per row from the first row on; None is 1 GiB and
        55 + 20 sqrt(d) microseconds for rows of d columns.
    portfolio : :class:`~pairloom.race.Portfolio`: the candidates; None is the default one.
    features : a feature map for all candidates; None: it is raced.
    gamma : kernel width: a number, one per column, "paper" or "median"; "race": factors of the median rule are raced.
    scale : scaling of the columns: None, "standard", "wide", "maxabs" or "minmax"; "race".
    loss : "square", "hinge", "squared_hinge" or "logistic"; "race". Exact minimisers are for the square loss alone.
    n_components : the most landmarks of a kernel space; None: the portfolio and the budget tell.
    max_strata : strata per class of the learners that have some; None: the portfolio tells.
    verbose : 1 tells on stderr what the race does while it learns, as does the logger "pairloom.race".
    monitor : the path of a page, such as "page.html", to open in a browser while the model learns: it shows what
        ``plot_stream`` draws, and how the model stands now. It is written at the end of a call and every two seconds on
        the way; OSError before the first row if it cannot be. No model file holds it.
    drift : as in :class:`~pairloom.systems.FPOGD`, but "auto" by default: where nothing changes it costs nothing. After
        a change the race begins anew with the candidates that are left: what was before hardly counts, forests are
        grown anew from the rows since.
    dtype, pos_label, class_weight, random_state, engine, columns, half_life : as in :class:`~pairloom.systems.FPOGD`.

    Attributes
    ----------
    race_ : the standings over the whole stream: a dict of the columns row, name, auc (in the newer windows), share.
    mixture_ : the names of the candidates that make the predictions now, those with most to say first.
    changes_ : the rows after which the stream was found to have changed.
    stream_ : the :class:`~pairloom.Stream` under this face; its ``model`` is a :class:`~pairloom.race.Race`.
    n_seen_, n_pairs_, loss_, nbytes_, balanced_threshold_ : see
        :class:`~pairloom.estimators.classifier.PairwiseClassifier`; the loss is the share of pairs in the
        wrong order among the last 4,096 test-then-train scores.

    Notes
    -----
    Cost: ``budget.microseconds`` per row, nominally, from the first row on; no call is long. The first rows are kept
    until row 2,048, and ``budget.bytes`` bounds the candidates.

    References
    ----------
    AlQuabeh, Mukhoty and Gu, Variance Reduced Online Gradient Descent for Kernelized Pairwise Learning with Limited
    Memory, ACML 2023, for gradient steps on pairs; Gao, Jin, Zhu and Zhou, One-Pass AUC Optimization, ICML 2013, for
    the exact minimisers; Geurts, Ernst and Wehenkel, Extremely Randomized Trees, Machine Learning 2006, for forests.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.metrics import roc_auc_score
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = AUCClassifier(random_state=0).fit(X[:400], y[:400])
    >>> bool(roc_auc_score(y[400:], model.decision_function(X[400:])) > 0.99)
    True
    """

    local: ClassVar[tuple[str, ...]] = ("monitor",)
    _calibration: ClassVar[Calibration] = Calibration(of_race=True)
    monitor: str | os.PathLike[str] | None = None
    _writer: Writer | None = None

    def __init__(
        self,
        *,
        budget: Budget | None = None,
        portfolio: Portfolio | None = None,
        features: FeatureMap | None = None,
        gamma: Gamma | Literal["race"] = "race",
        scale: Scaling | Literal["race"] = "race",
        loss: Literal["square", "hinge", "squared_hinge", "logistic", "race"] = "race",
        n_components: int | None = None,
        max_strata: int | None = None,
        verbose: int = 0,
        monitor: str | os.PathLike[str] | None = None,
        dtype: Dtype = "float32",
        pos_label: Any = None,
        class_weight: ClassWeight = None,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
        engine: EngineName = "auto",
        columns: ColumnsLike = None,
        half_life: HalfLife = None,
        drift: Drift = "auto",
    ) -> None:
        self.budget = budget
        self.portfolio = portfolio
        self.features = features
        self.gamma = gamma
        self.scale = scale
        self.loss = loss
        self.n_components = n_components
        self.max_strata = max_strata
        self.verbose = verbose
        self.monitor = monitor
        self.dtype = dtype
        self.pos_label = pos_label
        self.class_weight = class_weight
        self.random_state = random_state
        self.engine = engine
        self.columns = columns
        self.half_life = half_life
        self.drift = drift

    @property
    def card(self) -> Card:
        return Card("this library", "budget", "budget", model="kernel", settled=SETTLED)

    def _make_model(self, n_classes: int, seed: int | None) -> Race:
        for name, kind in (("budget", Budget), ("portfolio", Portfolio), ("features", FeatureMap)):
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                raise ValueError(f"{name} must be None or a {kind.__name__}; got {value!r}")
        check_choice("loss", self.loss, {**LOSSES, "race": None})
        for name in ("n_components", "max_strata"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))
        portfolio = pinned(
            self.portfolio or Portfolio(), self.features, self.gamma, self.scale, self.loss, self.n_components,
            self.max_strata,
        )  # fmt: skip
        return Race(
            pairs=OppositeClass(n_classes), portfolio=portfolio, budget=self.budget or Budget(), dtype=self.dtype,
            seed=seed, engine=self.engine,
        )  # fmt: skip

    def _observers(self, labels: Labels) -> tuple[Observer, ...]:
        several = len(labels.classes) > 2 and self.pos_label is not None
        history = StreamHistory(int(labels.codes[self.pos_label]) if several else None)
        return *super()._observers(labels), history

    def frozen(self) -> Self:
        """A model that only predicts, with the same scores: smaller, faster, for ``pairloom.save`` too.

        It has the candidates of the mixture alone, and of each one weight where it had several. ``partial_fit``,
        ``learn_one`` and ``fit`` raise ValueError.
        """
        check_is_fitted(self)
        state = self.state_
        race: Any = self.stream_.model
        stream = replace(state.stream, learned=race.frozen(state.stream.learned))
        return self.with_state(replace(state, stream=copy(stream)))

    def _learn(self, *args: Any, **rest: Any) -> Self:
        if self._started:
            learned = self.stream_.state.learned if self.stream_.state is not None else None
            self.stream_.model.check_room(learned, 0)
        check_number("verbose", self.verbose, 0)
        writer = self._watching()
        with told(self.verbose):
            super()._learn(*args, **rest)
        if writer is not None:
            writer.finish(self, whole=rest["whole"])
        return self

    def learn_one(self, x: Any, y: Any, sample_weight: float = 1.0) -> Self:
        """Learn one row: a sequence of values, or a mapping from column names; the same model as ``partial_fit``."""
        writer = self._watching()
        super().learn_one(x, y, sample_weight)
        if writer is not None:
            writer.follow(self)
        return self

    def _pieces(self, work: Unbroken, n: int) -> Iterator[slice]:
        writer = self._watching()
        for rows in super()._pieces(work, n):
            if writer is None:
                yield rows
                continue
            for start in range(rows.start, rows.stop, PIECE):
                yield slice(start, min(start + PIECE, rows.stop))
                writer.follow(self)

    def _watching(self) -> Writer | None:
        """Who writes the page, which is there before the first row is learned; None if there is to be none."""
        if self.monitor is None:
            return None
        if self._writer is None or self._writer.path is not self.monitor:
            writer = Writer(self.monitor)
            writer.begin(self)
            self._writer = writer
        return self._writer

    @property
    def race_(self) -> dict[str, Array]:
        """The standings over time, column by column: ``pandas.DataFrame(model.race_)``."""
        check_is_fitted(self)
        standings = self._learned.standings
        names = ("row", "name", "auc", "share")
        return {name: np.array([getattr(one, name) for one in standings]) for name in names}

    @property
    def mixture_(self) -> list[str]:
        """The names of the candidates that make the predictions now, the best first."""
        race: Any = self.stream_.model
        names: list[str] = race.mixture(self._learned)
        return names

    def plot_race(self, axes: "Sequence[Axes] | None" = None) -> "Sequence[Axes]":
        """Draw ``race_`` over the whole stream: the candidates' areas under the curve, and their shares below."""
        from pairloom.race.plot import plot_standings

        check_is_fitted(self)
        return plot_standings(self._learned.standings, axes)

    def plot_stream(self, axes: "Sequence[Axes] | None" = None) -> "Sequence[Axes]":
        """Draw the whole stream so far: AUC, the rate of alerts, log-odds by class, the mixture, and where it drifted.

        Four axes, one below the other: yours, or new ones. Before row 16 there is nothing to draw.
        """
        check_is_fitted(self)
        return plot_view(view_of(self), axes)

    @property
    def coef_(self) -> Array:
        """A mixture has no weight vector."""
        raise AttributeError("an AUCClassifier may be a mixture of models: see mixture_ and stream_.learned.entrants")

    @property
    def n_pairs_(self) -> int:
        """Pairs of different classes among the rows so far, by weight."""
        counts = self._learned.counts
        return int((counts.sum() ** 2 - counts @ counts) / 2)

    @property
    def loss_(self) -> float:
        """Share of pairs in the wrong order among the last test-then-train scores (mean over more than two classes)."""
        scores, codes, weight = self._recent.view()
        area = float(mean_auc(scores[:, None, :], codes, weight, self.stream_.model.pairs.targets)[0])
        return 0.5 if np.isnan(area) else 1.0 - area
