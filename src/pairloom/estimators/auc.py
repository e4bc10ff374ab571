"""AUCClassifier: a race of models, mixed by their recent AUC."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from pairloom.base.checks import check_choice, check_count, check_number
from pairloom.base.interrupts import DeferredSignals
from pairloom.base.parallel import several_threads
from pairloom.base.tree import copy
from pairloom.base.typing import Array
from pairloom.columns.changes import ColumnChange
from pairloom.columns.state import COMPACT, PLAIN, Layouts
from pairloom.estimators.card import Card
from pairloom.estimators.class_labels import Labels
from pairloom.estimators.classifier import PairwiseClassifier
from pairloom.estimators.column_changes import changes_found, compare_rows
from pairloom.estimators.monitor.figure import plot_view
from pairloom.estimators.monitor.view import view_of
from pairloom.estimators.monitor.writer import ROWS_PER_CHECK, Writer
from pairloom.estimators.parameters import estimator
from pairloom.estimators.predictions import opposite_pairs
from pairloom.features import FeatureMap
from pairloom.features.kernels import Gamma
from pairloom.features.scaling import Scaling
from pairloom.losses import LOSSES
from pairloom.race import Budget, Portfolio, Race
from pairloom.race.portfolio import FORMER_PORTFOLIO, pinned
from pairloom.race.race import DROP_FROM_ROW
from pairloom.race.standings import log_to_stderr
from pairloom.stream import Hook
from pairloom.stream.calibration import Calibration
from pairloom.stream.drift import Drift
from pairloom.stream.history import StreamHistory
from pairloom.stream.stream import SCORE_ROWS

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@estimator
class AUCClassifier(PairwiseClassifier):
    r"""Rank one class above the other (AUC) on a stream, in one pass, without tuning.

    .. math::

        s(x) = \sum_c v_c\, \psi\Bigl(\sum_m p_{cm}\, \tilde s_{cm}(x)\Bigr)

    Several candidates c learn side by side: a linear model, boosted trees, a forest whose leaves are features, and
    kernel models, each a set of models m with different step sizes or penalties. All of them score a row before they
    learn from it. Their standardised scores are weighted by their AUC (p), soft-clipped (psi), and combined by fitted
    weights (v). See :class:`~pairloom.race.Race` for the rules, :class:`~pairloom.race.Portfolio` for the candidates.

    Parameters
    ----------
    budget : a :class:`~pairloom.race.Budget` of bytes and of microseconds per row. None: 1 GiB, and 54 + 15 sqrt(d)
        microseconds for rows of d columns.
    portfolio : a :class:`~pairloom.race.Portfolio`, the candidates; None is the default one.
    features : a feature map for all candidates. None: the race chooses.
    gamma : kernel width: a number, one number per column, "paper" or "median"; "race" tries multiples of the median
        rule.
    scale : scaling of the columns: None, "standard", "wide", "maxabs" or "minmax"; "race" tries several.
    loss : "square", "hinge", "squared_hinge" or "logistic"; "race" tries several. Exact minimisers exist only for the
        square loss.
    n_components : largest number of landmarks of a kernel model. None: set by the portfolio and the budget.
    max_strata : strata per class of candidates that use strata. None: set by the portfolio.
    verbose : 1 prints the progress of the race to stderr; it is always logged to the logger "pairloom.race".
    monitor : path of an HTML page, such as "page.html", that shows ``plot_stream`` and the current state of the model.
        It is written at the end of each call and every two seconds during a call, and reloads itself in a browser.
        Raises OSError before the first row is learned if the page cannot be written. Not saved with the model.
    n_jobs : threads that learn candidates, and score large frames, side by side; -1 is one per core. None: 1, unless
        ``joblib.parallel_config`` names another number. Results do not depend on it.
    drift : "auto" (the default) detects drift and restarts the race with the remaining candidates: earlier rows get a
        very small weight, and forests are regrown. None: off. Or a detector, as in
        :class:`~pairloom.estimators.PairwiseClassifier`.

    Attributes
    ----------
    race_ : standings over the whole stream, a dict of the columns row, name, auc (of recent windows) and share.
    column_changes_ : changes of columns, found without labels (:class:`~pairloom.columns.changes.ColumnChange`).
    mixture_ : names of the candidates that make the predictions, in order of their weight.
    n_pairs_ : number of pairs of different classes among the rows so far, by weight.
    loss_ : share of wrongly ordered pairs among the newest 4,096 rows, each scored before it was learned.
    coef_ : not available: a mixture has no weight vector.

    Notes
    -----
    Cost: nominally ``budget.microseconds`` per row, from the first row; no single call takes long. Memory is that of
    the candidates, bounded by ``budget.bytes``, and of the first 2,048 rows, which are kept until row 2,048.

    References
    ----------
    AlQuabeh, Mukhoty and Gu, Variance Reduced Online Gradient Descent for Kernelized Pairwise Learning with Limited
    Memory, ACML 2023 (gradient steps on pairs).
    Gao, Jin, Zhu and Zhou, One-Pass AUC Optimization, ICML 2013 (exact minimisers).
    Geurts, Ernst and Wehenkel, Extremely Randomized Trees, Machine Learning 2006 (forests).

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
    added: ClassVar[dict[str, Any]] = {**PairwiseClassifier.added, "n_jobs": None}
    finds_column_changes: ClassVar[bool] = True
    former_defaults: ClassVar[dict[str, Any]] = {"portfolio": FORMER_PORTFOLIO}
    _calibration: ClassVar[Calibration] = Calibration(of_race=True)

    budget: Budget | None = None
    portfolio: Portfolio | None = None
    features: FeatureMap | None = None
    gamma: Gamma | Literal["race"] = "race"
    scale: Scaling | Literal["race"] = "race"
    loss: Literal["square", "hinge", "squared_hinge", "logistic", "race"] = "race"
    n_components: int | None = None
    max_strata: int | None = None
    verbose: int = 0
    monitor: str | os.PathLike[str] | None = None
    n_jobs: int | None = None
    drift: Drift = "auto"
    _writer: Writer | None = field(default=None, init=False)

    @property
    def card(self) -> Card:
        return Card("this library", "budget", "budget", model="kernel", settled=DROP_FROM_ROW)

    @property
    def _layouts(self) -> Layouts:
        return COMPACT if self._takes_nan else PLAIN, COMPACT

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
        return Race(portfolio=portfolio, budget=self.budget or Budget(), **self._common_parts(n_classes, seed))

    def _hooks(self, labels: Labels) -> tuple[Hook, ...]:
        several = len(labels.classes) > 2 and self.pos_label is not None
        history = StreamHistory(int(labels.codes[self.pos_label]) if several else None)
        return *super()._hooks(labels), history

    def frozen(self) -> Self:
        """Return a smaller and faster copy that only predicts, with the same scores; it can be saved.

        It contains only the candidates of the mixture, each reduced to one weight vector if possible. ``partial_fit``,
        ``learn_one`` and ``fit`` raise ValueError.
        """
        check_is_fitted(self)
        state = self.state_
        race: Any = self.stream_.model
        stream = replace(state.stream, learned=race.frozen(state.stream.learned))
        return self.with_state(copy(replace(state, stream=stream)))

    def _learn(self, *args: Any, **rest: Any) -> Self:
        if self._started:
            learned = self.stream_.state.learned if self.stream_.state is not None else None
            limited = self.stream_.model.limited
            if limited is not None:
                limited.check_room(learned, 0)
        check_number("verbose", self.verbose, 0)
        writer = self._page_writer()
        with log_to_stderr(self.verbose), several_threads(self.n_jobs):
            super()._learn(*args, **rest)
        if writer is not None:
            writer.finish(self, whole=rest["whole"])
        return self

    @property
    def _explain_threads(self) -> int | None:
        return self.n_jobs

    def _decide(self, rows: Any) -> Array:
        with several_threads(self.n_jobs if rows.shape[0] > SCORE_ROWS else 1):
            return super()._decide(rows)

    def learn_one(self, x: Any, y: Any, sample_weight: float = 1.0) -> Self:
        """Learn one row, a sequence of values or a mapping from column names; the result is that of ``partial_fit``."""
        writer = self._page_writer()
        super().learn_one(x, y, sample_weight)
        if writer is not None:
            writer.follow(self)
        return self

    def _pieces(self, work: DeferredSignals, n: int) -> Iterator[slice]:
        writer = self._page_writer()
        for rows in super()._pieces(work, n):
            if writer is None:
                yield rows
                continue
            for start in range(rows.start, rows.stop, ROWS_PER_CHECK):
                yield slice(start, min(start + ROWS_PER_CHECK, rows.stop))
                writer.follow(self)

    def _page_writer(self) -> Writer | None:
        """Return the writer of the monitor page, after creating the page; None without ``monitor``."""
        if self.monitor is None:
            return None
        if self._writer is None or self._writer.path is not self.monitor:
            writer = Writer(self.monitor)
            writer.begin(self)
            self._writer = writer
        return self._writer

    @property
    def race_(self) -> dict[str, Array]:
        """Standings over the whole stream, by column: ``pandas.DataFrame(model.race_)``."""
        check_is_fitted(self)
        standings = self._learned.standings
        names = ("row", "name", "auc", "share")
        return {name: np.array([getattr(one, name) for one in standings]) for name in names}

    @property
    def mixture_(self) -> list[str]:
        """Names of the candidates that make the predictions, in order of their weight."""
        race: Any = self.stream_.model
        names: list[str] = race.mixture(self._learned)
        return names

    @property
    def column_changes_(self) -> list[ColumnChange]:
        """Changes of columns, found without labels, in the order of their rows: the newest 256.

        They do not change the model; ``changes_`` lists the rows at which it forgot the past. Empty with more than 200
        columns.
        """
        check_is_fitted(self)
        return changes_found(self)

    def column_changes(self, X: Any = None) -> dict[str, ColumnChange]:
        """Compare rows that were not learned with those that were, without labels; None compares the newest rows.

        Returns a report on each column, and one on the scores under the name "(score)". ``changed`` of a report states
        what raised an alarm, and is empty without one. If rows are independent and nothing has changed, a call raises
        a false alarm, in any of the columns, with a probability of at most 1e-4. There is no alarm for scores, which
        also change while the model learns. With more than 200 columns, only the scores are compared.

        ``X`` is compared with the newest 4,096 rows and those of the older window
        (:class:`~pairloom.columns.windows.ColumnWindows`), the newest 4,096 rows with the older window; their scores
        with those that the newest 4,096 rows had on arrival, the newest half of these with the other half.
        """
        check_is_fitted(self)
        return compare_rows(self, X)

    def plot_race(self, axes: "Sequence[Axes] | None" = None) -> "Sequence[Axes]":
        """Plot ``race_`` over the whole stream: the AUC of the candidates, and their shares below."""
        from pairloom.race.standings import plot_standings

        check_is_fitted(self)
        return plot_standings(self._learned.standings, axes)

    def plot_stream(self, axes: "Sequence[Axes] | None" = None) -> "Sequence[Axes]":
        """Plot the whole stream so far: AUC, alert rate, log-odds by class, and mixture, with detected drift.

        ``axes`` are four axes, from top to bottom; None creates them. The plot is empty before row 16.
        """
        check_is_fitted(self)
        return plot_view(view_of(self), axes)

    @property
    def coef_(self) -> Array:
        """Raise AttributeError: a mixture has no weight vector."""
        raise AttributeError("an AUCClassifier may be a mixture of models: see mixture_ and stream_.learned.entrants")

    @property
    def n_pairs_(self) -> int:
        """Number of pairs of different classes among the rows so far, by weight."""
        return opposite_pairs(self._learned.counts)

    @property
    def loss_(self) -> float:
        """Share of wrongly ordered pairs among the newest rows (mean over more than two classes)."""
        return self._discordant_share
