"""Stream: a model and its state, learned in one pass."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, ClassVar, Self, final

import numpy as np

from pairloom.base.batch import Batch
from pairloom.base.checks import check_count
from pairloom.base.graph import Value
from pairloom.base.interrupts import DeferredSignals
from pairloom.base.merging import forked
from pairloom.base.parallel import run_all
from pairloom.base.saving import Savable, StateReader
from pairloom.base.spec import StateSpec
from pairloom.base.threads import ONE_THREAD
from pairloom.base.tree import copy, nbytes
from pairloom.base.typing import Array
from pairloom.base.validation import check_unmasked, check_weight, rows_of
from pairloom.features.encoding import Encoding
from pairloom.metrics.auc import mean_auc
from pairloom.models.base import Model, shaped
from pairloom.pairs import query_codes
from pairloom.stream.forgetting import Forgetting, time_column_of
from pairloom.stream.hooks import Hook, Recent, RecentScores, check_hooks
from pairloom.stream.loop import advance
from pairloom.stream.merging import merge_streams
from pairloom.stream.state import Kept, StreamState, stream_spec

MIN_ROWS_TO_WARN = 64
"""Settings fixed with fewer rows are provisional: an unstable step with them says little about eta."""

SMALL_BATCH_ROWS = 16
"""Rows up to which limiting the threads of BLAS costs more than it saves."""

SCORE_ROWS = 4096
"""Rows scored at once, to bound the memory for a long X, and by one thread where there are several."""

BROKEN = (
    "an interrupt or an error stopped this model while it learned a row, and only a part of that row was learned: fit "
    "it again, or continue from a checkpoint or a copy. Interrupts of partial_fit wait until rows are complete, those "
    "of learn_one do not"
)


class StabilityWarning(UserWarning):
    """A step was too long for the data and was shortened."""


@final
class Stream(Savable):
    """A model on a stream: owns its state, learns rows in order, and scores.

    If a part of the model has data-dependent settings, the first rows are kept; at rows 1, 4, 16, ... and the last of
    them, the settings are fixed again, and the kept rows are learned again. Batches are split at row numbers only
    (:mod:`pairloom.base.clock`), so results do not depend on the chunking.

    Parameters
    ----------
    model : a :class:`~pairloom.Learner`, a :class:`~pairloom.Grid`, a :class:`~pairloom.race.Race`, ...
    hooks : they see each row's score before the row is learned (:class:`~pairloom.stream.Hook`). The newest 4,096
        scores are kept in any case.
    encoding : what the model receives of mixed columns, which rows contain as one number each; None: rows as they are.

    Attributes
    ----------
    model : as given.
    time_column : the column with the time of rows, for a half-life in time; an estimator reads it.
    state : everything that learning changes, a tree of arrays and numbers; None before the first row.
    broken : whether learning a row has started and not ended; after an exception the model cannot learn more rows.

    >>> from pairloom import Learner
    >>> from pairloom.features import Identity
    >>> from pairloom.steps import Constant
    >>> stream = Stream(Learner(features=Identity(), step=Constant(0.01), seed=0))
    >>> stream.partial_fit([[0.0], [1.0], [2.0]], [-1, 1, 1]).n_seen
    3
    """

    renamed: ClassVar[dict[str, str]] = {"observers": "hooks"}
    """Parameters that have different names in older files."""

    added: ClassVar[dict[str, Any]] = {"encoding": None}
    """Parameters missing from older files, with the values to use for them."""

    def __init__(self, model: Model, hooks: Sequence[Hook] = (), encoding: Encoding | None = None) -> None:
        self.model = model
        self.encoding = encoding
        self.hooks: tuple[Hook, ...] = (RecentScores(), *hooks)
        check_hooks(self.hooks)
        self.time_column = time_column_of(hooks)
        self.state: StreamState | None = None
        self.broken = False
        self._reported = np.inf

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
        """The state of the model."""
        assert self.state is not None, "no rows seen yet"
        return self.state.learned

    @property
    def coef(self) -> Array:
        """The weights used for scoring, one row per vector; AttributeError for a model without weights."""
        coef: Array = self.model.coef(self.learned)  # type: ignore[attr-defined]
        return coef

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Learn rows in order. Rows of weight 0 are skipped; only pairs inside one of ``groups`` count."""
        batch = self.check(X, y, sample_weight, groups)
        with DeferredSignals() as work:
            self.start(batch.X.shape[1])
            for rows in work.pieces(self.n_seen, len(batch)):
                self.learn(batch[rows])
        self.warn_if_unstable()
        return self

    def score(self, X: Any) -> Array:
        """Return a score for each row, which does not depend on the other rows.

        With more than two classes, one column per class; for a grid, one per model.
        """
        return self.score_rows(self._check_rows(X))

    def score_rows(self, X: Any) -> Array:
        """Return the ``score`` of valid rows."""
        if self.state is None:
            return shaped(self.model, np.zeros((X.shape[0], self.model.n_vectors)))
        if not self._one_thread(X.shape[0]):
            return self._scores(X)
        cuts = range(0, max(1, X.shape[0]), SCORE_ROWS)
        with ONE_THREAD:
            parts = run_all([partial(self._scores, X[at : at + SCORE_ROWS]) for at in cuts])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _scores(self, X: Any) -> Array:
        assert self.state is not None
        if self.encoding is not None:
            assert self.state.encoding is not None
            X = self.encoding.encode(self.state.encoding, X)
        return shaped(self.model, self.model.score(self.state.learned, X))

    def to_onnx(self, x: Value) -> Value:
        """Return the scores of valid rows in an ONNX graph: (rows, vectors)."""
        assert self.state is not None
        if self.encoding is not None:
            assert self.state.encoding is not None
            x = self.encoding.to_onnx(self.state.encoding, x)
        return self.model.to_onnx(self.state.learned, x)

    def pair_score(self, X: Any, X2: Any) -> Array:
        """Return s(x) - s(x') of each pair of rows of X and X2: positive where x ranks above x'."""
        return self.score(X) - self.score(X2)

    def recent(self) -> tuple[Array, Array, Array]:
        """Return test-then-train scores of the newest 4,096 rows, with labels and weights, in order."""
        if self.state is None:
            return shaped(self.model, np.zeros((0, self.model.n_vectors))), np.zeros(0), np.zeros(0)
        recent = self._recent()
        scores, labels, weights = (np.roll(a, -recent.count, axis=0) for a in recent.view())
        return shaped(self.model, scores), labels, weights

    def auc(self) -> Array:
        """Return the AUC of each model's ``recent`` scores; with several classes, the mean of one against the rest.

        NaN before rows of a class and of the rest were seen.
        """
        targets = self.model.pairs.targets
        if self.model.pairs.n_groups == 0:
            raise ValueError(f"AUC requires classes; {type(self.model.pairs).__name__} pairs have none")
        scores, labels, weights = self.recent()
        return mean_auc(scores.reshape(len(labels), -1, len(targets)), labels, weights, targets)

    def only(self, index: int) -> "Stream":
        """Return a stream of one model of a grid or a path, which continues from here; this stream does not change."""
        many = self.model.many
        if many is None:
            raise ValueError(f"only() requires a grid, a path or another model of several; got {self.model!r}")
        forgetting = [hook for hook in self.hooks if isinstance(hook, Forgetting)]
        picked = Stream(many.pick(index), forgetting, self.encoding)
        if self.state is not None:
            learned, columns = many.only(index, self.state.learned)
            observed = {RecentScores.name: self._recent().columns(columns)}
            observed |= {hook.name: copy(self.state.observed[hook.name]) for hook in forgetting}
            picked.state = StreamState(
                self.state.t, self.state.n_features, copy(learned), copy(self.state.kept), observed, self.state.time,
                copy(self.state.encoding),
            )  # fmt: skip
        return picked

    def fork(self, n: int) -> "list[Stream]":
        """Return n copies that learn rows of their own, about as many each, to be merged again.

        This stream does not change. Each copy has random numbers of its own, and takes n times the steps of one
        stream, since their weights are averaged. Trees stay as they are until the merge, and drift is not tested for.
        """
        check_count("n", n)
        self.check_whole()
        return [self._with(forked(self.state, k, n)) for k in range(n)]

    def merge(self, parts: "Sequence[Stream]") -> "Stream":
        """Return a stream that has learned the rows of this one, and those that each of its copies learned beyond them.

        Sums over rows are exact up to rounding; weights learned by steps are averaged. Raises TypeError if the model
        cannot be merged, and ValueError, naming the part, for parts of another model.

        >>> from pairloom.systems import ExactAUC
        >>> X = np.random.default_rng(0).normal(size=(300, 3))
        >>> y = np.where(X[:, 0] > 0.5, 1, -1)
        >>> base = Stream(ExactAUC(random_state=0).to_model()).partial_fit(X[:100], y[:100])
        >>> one, two = base.fork(2)
        >>> merged = base.merge([one.partial_fit(X[100:180], y[100:180]), two.partial_fit(X[180:], y[180:])])
        >>> whole = Stream(base.model).partial_fit(X, y)
        >>> merged.n_seen, bool(np.allclose(merged.coef, whole.coef, rtol=1e-5))
        (300, True)
        """
        self.check_whole()
        for k, part in enumerate(parts):
            if not isinstance(part, Stream) or part.state is None or self.state is None:
                raise ValueError(f"part {k} must be a copy of a stream that has learned rows; got {part!r:.80}")
            part.check_whole()
            for name in ("model", "hooks", "encoding"):
                if getattr(part, name) != getattr(self, name):
                    mine, its = (repr(getattr(one, name)) for one in (self, part))
                    raise ValueError(f"part {k} has another {name} than the base: {its}, not {mine}")
        if self.state is None:
            raise ValueError("merge needs a base that has learned rows: let it learn some, then continue with copies")
        with ONE_THREAD:
            states = [part.state for part in parts if part.state is not None]
            return self._with(merge_streams(self.model, self.hooks, self.state, states, self.encoding))

    def _with(self, state: StreamState | None) -> "Stream":
        """Return a stream of the same model with another state."""
        made = Stream(self.model, self.hooks[1:], self.encoding)
        made.state = state
        return made

    def check(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Batch:
        """Return valid rows of positive weight; ValueError if the input is invalid. Changes nothing."""
        if self.time_column is not None:
            raise ValueError("rows of a Stream have no time: use an estimator, or a half-life in rows")
        X = self._check_rows(X)
        n = X.shape[0]
        check_unmasked("y", y)
        y = np.asarray(y)
        if y.shape != (n,):
            raise ValueError(f"y has shape {y.shape}, but X has {n} rows")
        y = self.model.pairs.encode(y)
        batch = Batch(
            X, np.ascontiguousarray(y), check_weight(sample_weight, n), query_codes(groups, n)
        ).with_positive_weight()
        self.check_room(len(batch))
        return batch

    def check_room(self, n: int) -> None:
        """Raise ValueError unless ``n`` more rows can be learned."""
        self.check_whole()
        limited = self.model.limited
        if limited is not None:
            limited.check_room(None if self.state is None else self.state.learned, n)

    def check_whole(self) -> None:
        """Raise ValueError if a row was learned only in part."""
        if self.broken:
            raise ValueError(BROKEN)

    def start(self, n_features: int) -> None:
        """Make the state before the first row, unless it exists; ``n_features``: columns of a row."""
        if self.state is None:
            n_features = n_features if self.encoding is None else self.encoding.width
            kept = Kept() if self.model.warm_rows else None
            self.state = self._made(n_features, self.model.init(n_features, None), kept)

    def start_with(self, batch: Batch) -> None:
        """Make the state from all rows, for a model that needs them before the first is learned."""
        if self.encoding is not None:
            batch = self.encoding.learn(self.encoding.init(), batch)
        n_features = batch.X.shape[1]
        with ONE_THREAD:
            self.state = self._made(n_features, self.model.init(n_features, batch), None)

    def resume(self, state: StreamState) -> None:
        """Continue from a state; hooks without a state in it start here."""
        new = {one.name: one.init(self.model) for one in self.hooks if one.name not in state.observed}
        self.state = replace(state, observed={**state.observed, **new}, stop=None)

    # OpenBLAS reads past the end of a short float32 row (five columns, AVX-512): the product is right, but the flag of
    # an invalid value may be set. Engines detect and report real overflow.
    @np.errstate(invalid="ignore")
    def learn(self, batch: Batch) -> None:
        """Learn valid rows."""
        assert self.state is not None
        self.broken = True
        if not self._recent_ring().labels.flags.writeable:
            # Mapped from a read-only file: joblib.load(..., mmap_mode="r").
            self.state = copy(self.state)
        if self._one_thread(len(batch)):
            with ONE_THREAD:
                advance(self.model, self.hooks, self.state, batch, self.encoding)
        else:
            advance(self.model, self.hooks, self.state, batch, self.encoding)
        self.broken = False

    def warn_if_unstable(self, stacklevel: int = 3) -> None:
        """Warn if steps were unstable, and again when this has become worse."""
        state = self.state
        if state is None or (state.kept is not None and state.t < MIN_ROWS_TO_WARN):
            return
        instability = self.model.instability(state.learned, self._reported)
        if instability is not None:
            self._reported = instability.level
            warnings.warn(instability.text, StabilityWarning, stacklevel=stacklevel)

    def _saved_params(self) -> dict[str, Any]:
        return {"model": self.model, "hooks": list(self.hooks[1:]), "encoding": self.encoding}

    def _saved_state(self) -> tuple[StreamState | None, None]:
        self.check_whole()
        return self.state, None

    def _state_spec(self, reader: StateReader) -> StateSpec:
        return StateSpec(
            Annotated[Any, "@stream"], parts={"stream": stream_spec(self.model, self.hooks, self.encoding)}
        )

    def _restored(self, state: StreamState, names: Any) -> Self:
        self.resume(state)
        return self

    def _made(self, n_features: int, learned: Any, kept: Kept | None) -> StreamState:
        observed = {hook.name: hook.init(self.model) for hook in self.hooks}
        encoding = None if self.encoding is None else self.encoding.init()
        return StreamState(0, n_features, learned, kept, observed, encoding=encoding)

    def _recent_ring(self) -> Recent:
        assert self.state is not None
        ring: Recent = self.state.observed[RecentScores.name]
        return ring

    def _recent(self) -> Recent:
        """Return the newest scores, with those of rows waiting to be learned."""
        ring, waiting = self._recent_ring(), self.model.waiting(self.learned)
        if waiting is not None:
            ring = copy(ring)
            ring.add(waiting)
        return ring

    def _check_rows(self, X: Any) -> Any:
        rows = rows_of(X, self.model.dtype, nan=self.encoding is not None or self.model.takes_nan)
        expected = None if self.state is None else self.state.n_features
        if self.encoding is not None:
            expected = len(self.encoding.kinds)
        if expected is not None and rows.shape[1] != expected:
            raise ValueError(f"X has {rows.shape[1]} columns, but this model was fitted with {expected}")
        return rows

    def _one_thread(self, n: int) -> bool:
        """Whether to limit BLAS to one thread: not if the products of ``n`` rows are too small for more."""
        assert self.state is not None
        return n > SMALL_BATCH_ROWS or self.model.large_products or self.state.kept is not None
