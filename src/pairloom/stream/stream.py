"""One pass: rows in, scores out. The one place that owns a state and changes it."""

import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, Self, final

import numpy as np

from pairloom.base.batch import Batch, Scored
from pairloom.base.clock import NEVER, next_replay
from pairloom.base.interrupts import Unbroken
from pairloom.base.threads import ONE_THREAD
from pairloom.base.tree import copy, nbytes
from pairloom.base.typing import Array
from pairloom.base.validation import check_weight, refuse_masked, rows_of
from pairloom.metrics.auc import mean_auc
from pairloom.models.base import Model
from pairloom.models.many import Many
from pairloom.pairs import query_codes
from pairloom.stream.forgetting import Forgetting, clock_of
from pairloom.stream.observers import Observer, Recent, RecentScores
from pairloom.stream.state import Kept, StreamState

SETTLED_ROWS = 64
"""Rules fixed from fewer rows are provisional: a step that is too long under them says nothing about eta."""

FEW_ROWS = 16
"""Rows up to which it costs more to limit the threads of BLAS than to let it find out that it needs one only."""


BROKEN = (
    "an interrupt or an error came while this model learned a row, and it has learned a part of that row: fit it "
    "again, or go on from a checkpoint or a copy. Interrupts of partial_fit wait until rows are complete, those of "
    "learn_one do not"
)


class StabilityWarning(UserWarning):
    """A step was too long for the data and was cut."""


@final
class Stream:
    """A model on a stream: it owns the state, learns rows in order, and scores.

    While a part of the model holds a rule on data, the first rows are kept; at rows 1, 4, 16, ... and the last of them
    the rules are fixed anew and the kept rows learned again. Batches are cut at row numbers only, by the clock
    (:mod:`pairloom.base.clock`), so that it does not matter how a stream was cut into calls.

    Parameters
    ----------
    model : what learns: a :class:`~pairloom.Learner`, a :class:`~pairloom.Grid`, a :class:`~pairloom.race.Race`, ...
    observers : who sees each row's score before the row is learned, besides the ring of the newest 4,096 scores.

    Attributes
    ----------
    model : as given.
    clock : the column that tells the time of rows, if they fade by it; an estimator reads it.
    state : all that learning has changed, one tree of arrays and numbers; None before the first row.
    broken : whether rows are being learned, or learning them ended by an exception; then no more can be.

    >>> from pairloom import Constant, Identity, Learner
    >>> stream = Stream(Learner(features=Identity(), step=Constant(0.01), seed=0))
    >>> stream.partial_fit([[0.0], [1.0], [2.0]], [-1, 1, 1]).n_seen
    3
    """

    def __init__(self, model: Model, observers: Sequence[Observer] = ()) -> None:
        self.model = model
        self.observers: tuple[Observer, ...] = (RecentScores(), *observers)
        self.clock = clock_of(observers)
        self.state: StreamState | None = None
        self.broken = False
        self._told = np.inf

    def __repr__(self) -> str:
        return f"<Stream of {self.n_seen:,} rows through {self.model!r}>"

    @property
    def n_seen(self) -> int:
        """Rows learned."""
        return 0 if self.state is None else self.state.t

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return nbytes(self.state)

    @property
    def learned(self) -> Any:
        """What the model has learned: its own part of the state."""
        assert self.state is not None, "no rows seen yet"
        return self.state.learned

    @property
    def coef(self) -> Array:
        """The weights that score, one row for each vector of the model; AttributeError for one without weights."""
        coef: Array = self.model.coef(self.learned)  # type: ignore[attr-defined]
        return coef

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Learn rows in order. Rows of weight 0 are skipped; only pairs inside one of ``groups`` count."""
        batch = self.check(X, y, sample_weight, groups)
        with Unbroken() as work:
            self.start(batch.X.shape[1])
            for rows in work.pieces(self.n_seen, len(batch)):
                self.learn(batch[rows])
        self.warn_if_unstable()
        return self

    def score(self, X: Any) -> Array:
        """A score for each row; it does not depend on the other rows.

        With more than two classes, one column per class; of a grid, one per model.
        """
        return self.score_rows(self._check_rows(X))

    def score_rows(self, X: Any) -> Array:
        """``score`` of rows that are known to be valid."""
        if self.state is None:
            return self.model.shaped(np.zeros((X.shape[0], self.model.n_vectors)))
        with self._threads(X.shape[0]):
            return self.model.shaped(self.model.score(self.state.learned, X))

    def pair_score(self, X: Any, X2: Any) -> Array:
        """s(x) - s(x') of the rows of X and X2, pair by pair: positive where x should come first."""
        return self.score(X) - self.score(X2)

    def recent(self) -> tuple[Array, Array, Array]:
        """Scores of the newest 4,096 rows, each given before its row was learned, with labels and weights, in order."""
        if self.state is None:
            return self.model.shaped(np.zeros((0, self.model.n_vectors))), np.zeros(0), np.zeros(0)
        recent = self._recent()
        scores, labels, weights = (np.roll(a, -recent.count, axis=0) for a in recent.view())
        return self.model.shaped(scores), labels, weights

    def auc(self) -> Array:
        """AUC of each model's ``recent`` scores; with more than two classes, the mean over classes against the rest.

        NaN until a class and its rest were both seen.
        """
        targets = self.model.pairs.targets
        if self.model.pairs.n_groups == 0:
            raise ValueError(f"AUC is for classes; {type(self.model.pairs).__name__} pairs have none")
        scores, labels, weights = self.recent()
        return mean_auc(scores.reshape(len(labels), -1, len(targets)), labels, weights, targets)

    def only(self, index: int) -> "Stream":
        """One of the models of a grid or a path, alone; it goes on where this stream is, which does not notice."""
        many: Many = self.model  # type: ignore[assignment]
        forgetting = [observer for observer in self.observers if isinstance(observer, Forgetting)]
        picked = Stream(many.pick(index), forgetting)
        if self.state is not None:
            learned, columns = many.only(index, self.state.learned)
            observed = {RecentScores.name: self._recent().columns(columns)}
            observed |= {observer.name: copy(self.state.observed[observer.name]) for observer in forgetting}
            picked.state = StreamState(
                self.state.t, self.state.n_features, copy(learned), copy(self.state.kept), observed, self.state.time
            )  # fmt: skip
        return picked

    def check(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Batch:
        """Valid rows of positive weight, or ValueError; changes nothing."""
        if self.clock is not None:
            raise ValueError("rows of a bare Stream have no time: use an estimator, or a half-life in rows")
        X = self._check_rows(X)
        n = X.shape[0]
        refuse_masked("y", y)
        y = np.asarray(y)
        if y.shape != (n,):
            raise ValueError(f"y has shape {y.shape}, but X has {n} rows")
        y = self.model.pairs.encode(y)
        batch = Batch(X, np.ascontiguousarray(y), check_weight(sample_weight, n), query_codes(groups, n)).weighted()
        self.check_room(len(batch))
        return batch

    def check_room(self, n: int) -> None:
        """Raise ValueError unless ``n`` more rows can be learned."""
        self.check_whole()
        self.model.check_room(None if self.state is None else self.state.learned, n)

    def check_whole(self) -> None:
        """Raise ValueError if some row was learned in part."""
        if self.broken:
            raise ValueError(BROKEN)

    def start(self, n_features: int) -> None:
        """Make the state before the first row, unless there is one."""
        if self.state is None:
            kept = Kept() if self.model.needs_data else None
            self.state = self._made(n_features, self.model.init(n_features, None), kept)

    def start_with(self, batch: Batch) -> None:
        """Make the state from all rows there are, for a model that needs them all before the first is learned."""
        n_features = batch.X.shape[1]
        with ONE_THREAD:
            self.state = self._made(n_features, self.model.init(n_features, batch), None)

    def resume(self, state: StreamState) -> None:
        """Go on from a state; observers that it knows nothing of begin here."""
        new = {one.name: one.init(self.model) for one in self.observers if one.name not in state.observed}
        self.state = replace(state, observed={**state.observed, **new}) if new else state

    # OpenBLAS reads past the end of a short float32 row (five columns, AVX-512). The product is right, but what lies
    # there may set the flag of an invalid value. Numbers that really overflow are found and reported by the engines.
    @np.errstate(invalid="ignore")
    def learn(self, batch: Batch) -> None:
        """Learn valid rows."""
        assert self.state is not None
        self.broken = True
        if not self._recent_ring().labels.flags.writeable:
            # Mapped from a file that is not ours to change: joblib.load(..., mmap_mode="r").
            self.state = copy(self.state)
        with self._threads(len(batch)):
            advance(self.model, self.observers, self.state, batch)
        self.broken = False

    def warn_if_unstable(self, stacklevel: int = 3) -> None:
        """Warn if the model has trouble, and again when it has become worse."""
        state = self.state
        if state is None or (state.kept is not None and state.t < SETTLED_ROWS):
            return
        trouble = self.model.trouble(state.learned, self._told)
        if trouble is not None:
            self._told = trouble.level
            warnings.warn(trouble.text, StabilityWarning, stacklevel=stacklevel)

    def _made(self, n_features: int, learned: Any, kept: Kept | None) -> StreamState:
        observed = {observer.name: observer.init(self.model) for observer in self.observers}
        return StreamState(0, n_features, learned, kept, observed)

    def _recent_ring(self) -> Recent:
        assert self.state is not None
        ring: Recent = self.state.observed[RecentScores.name]
        return ring

    def _recent(self) -> Recent:
        """The newest scores, with those of rows that wait to be learned."""
        ring, waiting = self._recent_ring(), self.model.waiting(self.learned)
        if waiting is not None:
            ring = copy(ring)
            ring.add(waiting)
        return ring

    def _check_rows(self, X: Any) -> Any:
        rows = rows_of(X, self.model.dtype, nan=self.model.takes_nan)
        if self.state is not None and rows.shape[1] != self.state.n_features:
            raise ValueError(f"X has {rows.shape[1]} columns, but this model knows {self.state.n_features}")
        return rows

    def _threads(self, n: int) -> AbstractContextManager[None]:
        """One thread for BLAS, unless all products of ``n`` rows are too small for more anyway."""
        warm = self.state is not None and self.state.kept is not None
        return ONE_THREAD if n > FEW_ROWS or self.model.large_products or warm else nullcontext()


def advance(model: Model, observers: Sequence[Observer], state: StreamState, batch: Batch) -> None:
    """Learn valid rows, cut at the rows where rules are fixed anew or an observer has something to do."""
    last = 0 if state.kept is None else model.warm_rows(state.n_features)
    at = 0
    while at < len(batch):
        ticks = [observer.next_row(state.t) for observer in observers]
        replay = NEVER if state.kept is None else next_replay(state.t, last)
        end = min(len(batch), at + min(replay, *ticks) - state.t)
        part = batch if end - at == len(batch) else batch[at:end]
        if state.kept is not None:
            state.kept.add(part)
        if state.t + len(part) < replay:
            run(model, observers, state, part, state.t)
        else:
            assert state.kept is not None
            show_arrivals(model, observers, state, part)
            first = state.kept.all()
            state.learned = model.init(state.n_features, first)
            run(model, observers, state, first, 0)
        at, state.t = end, state.t + len(part)
        if part.time is not None:
            newest = float(part.time.max())
            state.time = newest if state.time is None else max(state.time, newest)
        if state.t == last:
            state.kept = None
        for observer, tick in zip(observers, ticks, strict=True):
            if tick == state.t:
                observer.tick(state.observed[observer.name], state, model)


def run(model: Model, observers: Sequence[Observer], state: StreamState, batch: Batch, t: int) -> None:
    """Learn rows after row t, cut where the model has something to do, and show their scores to the observers."""
    at = 0
    while at < len(batch):
        end = min(len(batch), model.next_row(state.learned) - t)
        scored = model.run(state.learned, batch if end - at == len(batch) else batch[at:end])
        if scored is not None:
            for observer in observers:
                observer.see(state.observed[observer.name], scored)
        at = end


def show_arrivals(model: Model, observers: Sequence[Observer], state: StreamState, batch: Batch) -> None:
    """Show rows as they come to those who want it, before rules are fixed with them: what is learned here is dropped.

    Before its first row a model has no rules, and scores 0.
    """
    keen = [observer for observer in observers if observer.on_arrival]
    if not keen:
        return
    if state.t == 0:
        shown: Scored | None = Scored(
            1, np.zeros((1, model.n_vectors)), batch.y[:1], batch.weight[:1], batch.query[:1]
        )  # fmt: skip
    else:
        run(model, keen, state, batch, state.t)
        shown = model.waiting(state.learned)
    if shown is not None:
        for observer in keen:
            observer.see(state.observed[observer.name], shown)
