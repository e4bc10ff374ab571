"""One pass over a stream: what every learner shares, whatever it does with a mapped example."""

import warnings
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass, field, fields
from math import floor, log10
from typing import Any, ClassVar, Literal, Self

import numpy as np

from pairloom.checks import check_choice
from pairloom.compiled import row_dots
from pairloom.engines import reference, sparse
from pairloom.features import FeatureMap, Identity
from pairloom.features.growing import refuse_growing
from pairloom.features.sparse import is_sparse
from pairloom.losses import Loss
from pairloom.pairs import OppositeClass, Pairs, query_codes
from pairloom.randomness import fresh_seed, generator
from pairloom.state import CUT, LONG, SKIPPED, WORST, Batch, Kept, Recent, State, cast
from pairloom.state import RECENT as RECENT_ROWS
from pairloom.steps import Average, Constant, Schedule
from pairloom.threads import ONE_THREAD, on_one_thread
from pairloom.typing import Array
from pairloom.validation import check_finite, check_weight, positive_weight, refuse_masked, rows_of

Engine = Literal["auto", "fused", "reference"]
Dtype = Literal["float32", "float64"]

WARM_ROWS = 1024
"""Rows kept for rules on data, unless the feature map asks for more."""

SETTLED_ROWS = 64
"""Rules fixed from fewer rows are provisional: a step that is too long under them says nothing about eta."""

FEW_ROWS = 16
"""Rows up to which it costs more to limit the threads of BLAS than to let it find out that it needs one only."""

SCORE_ROWS = 4096
"""Rows mapped at once when scoring, so that a long X does not need D numbers for each row."""


class StabilityWarning(UserWarning):
    """A step was too long for the data and was cut."""


@dataclass(eq=False)
class OnePass(ABC):
    """A model <w, phi(x)> learned one example at a time: rows in, scores out, warm start by replay.

    A learner says what it keeps besides w (``_start_memory``) and what a block of rows does (``_run``).
    ``named_step``: the safe step that the last warning named.
    """

    takes_growing: ClassVar[bool] = False
    """Whether what is learned can follow features that grow."""

    large_products: ClassVar[bool] = False
    """Whether even a single row may need a matrix product that BLAS would share out among threads."""

    features: FeatureMap = field(default_factory=Identity)
    pairs: Pairs = field(default_factory=OppositeClass)
    _: KW_ONLY
    step: Schedule = field(default_factory=lambda: Constant(0.125))
    average: Average = "last"
    dtype: Dtype = "float32"
    seed: int | None = None
    engine: Engine = "auto"
    state: State | None = field(default=None, init=False, repr=False)
    kept: Kept | None = field(default=None, init=False, repr=False)
    named_step: float = field(default=np.inf, init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.takes_growing:
            refuse_growing(self.features, type(self).__name__)
        check_choice("average", self.average, Average)
        check_choice("dtype", self.dtype, Dtype)
        check_choice("engine", self.engine, Engine)
        if self.engine != "reference":
            refuse_uncompiled(self)
        if self.seed is None:
            self.seed = fresh_seed()

    @abstractmethod
    def _start_memory(self, n_features: int, phi: Any, rows: Any) -> Any:
        """What is kept of the past, before the first row: a dataclass of arrays, with rules fixed from ``rows``."""

    @abstractmethod
    def _run(self, batch: Batch) -> Array:
        """Learn rows in order; return each row's scores by the models before they learned the row."""

    @property
    def needs_data(self) -> bool:
        """Whether any part holds a rule on data."""
        return self.features.needs_data

    @property
    def warm_rows(self) -> int:
        """The row at which rules on data are settled."""
        return max(WARM_ROWS, self.features.warm_rows)

    @property
    def n_seen(self) -> int:
        """Rows learned."""
        return self.state.t if self.state is not None else 0

    @property
    def held(self) -> list[Any]:
        """All that is kept, and has arrays: the state, the first rows, and what was derived to answer questions."""
        return [self.state, self.kept]

    @property
    def coef(self) -> Array:
        """The output iterate, one row per model of the pairs."""
        assert self.state is not None, "no rows seen yet"
        return self.state.w if self.average == "last" else self.state.w_bar

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Learn rows in order. Rows of weight 0 are skipped; only pairs inside one of ``groups`` count."""
        batch = self.check_batch(X, y, sample_weight, groups)
        self.start(batch.X.shape[1])
        self.learn(batch)
        self.warn_if_unstable()
        return self

    def score(self, X: Any) -> Array:
        """<w, phi(x)> of each row, with the output iterate; a row's score does not depend on the other rows.

        With more than two classes, one column per class.
        """
        return self.score_rows(self._check_rows(X))

    def score_rows(self, X: Any) -> Array:
        """``score`` of rows that are known to be valid."""
        with self._threads(X.shape[0]):
            return self._score_rows(X)

    def _score_rows(self, X: Any) -> Array:
        if self.state is None:
            return np.zeros(X.shape[0])
        scores = self.score_with(self.coef, X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def score_with(self, coef: Array, X: Any) -> Array:
        """<w, phi(x)> of valid rows and each row w of ``coef``: (rows, weights)."""
        assert self.state is not None, "no rows seen yet"
        if X.shape[0] > SCORE_ROWS:
            cuts = range(0, X.shape[0], SCORE_ROWS)
            return np.concatenate([self.score_with(coef, X[cut : cut + SCORE_ROWS]) for cut in cuts])
        Z = self.features.apply(self.state.phi, X)
        scores = [sparse.scores(self.state, Z, w) if is_sparse(Z) else row_dots(Z, w) for w in coef]
        return np.column_stack(scores).astype(float, copy=False)

    def pair_score(self, X: Any, X2: Any) -> Array:
        """<w, phi(x) - phi(x')> of the rows of X and X2, pair by pair: positive where x should come first."""
        return self.score(X) - self.score(X2)

    def check_batch(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Batch:
        """Valid rows of positive weight, or ValueError; changes nothing."""
        X = self._check_rows(X)
        n = X.shape[0]
        refuse_masked("y", y)
        y = np.asarray(y)
        if y.shape != (n,):
            raise ValueError(f"y has shape {y.shape}, but X has {n} rows")
        y = self.pairs.encode(y)
        weight = check_weight(sample_weight, n)
        batch = Batch(X, np.ascontiguousarray(y), weight, query_codes(groups, n))
        keep = positive_weight(weight, may_be_none=True)
        if keep is not None:
            batch = batch[keep]
        self.check_room(len(batch))
        return batch

    # Not abstract: a learner of fixed size has room for every row.
    def check_room(self, n: int) -> None:  # noqa: B027
        """Raise ValueError unless ``n`` more rows can be learned."""

    def _check_rows(self, X: Any) -> Any:
        given, X = X, rows_of(X, self.dtype)
        if self.state is not None and X.shape[1] != self.state.phi.scaler.shift.size:
            raise ValueError(f"X has {X.shape[1]} columns, but this learner knows {self.state.phi.scaler.shift.size}")
        check_finite(X, self.dtype, given)
        return X

    def start(self, n_features: int) -> None:
        """Make the state before the first row, unless there is one."""
        if self.state is None:
            self.state = self._initial(n_features, None)
            self.kept = Kept() if self.needs_data else None

    @on_one_thread
    def prepare(self, batch: Batch) -> None:
        """Look at all rows before the first of them is learned, if offline: fix the rules on data."""
        self._prepare(batch)

    def _prepare(self, batch: Batch) -> None:
        self.settle(batch.X[: self.warm_rows])

    def settle(self, X: Any) -> None:
        """Make the state before the first row, with the rules on data fixed from these rows for good."""
        self.state = self._initial(X.shape[1], X)
        self.kept = None

    # OpenBLAS reads past the end of a short float32 row (five columns, AVX-512). The product is right, but what lies
    # there may set the flag of an invalid value. Numbers that really overflow are found and reported by the engines.
    @np.errstate(invalid="ignore")
    def learn(self, batch: Batch) -> None:
        """Learn valid rows, with replays while rules on data are not settled."""
        with self._threads(len(batch)):
            self._learn(batch)

    def _learn(self, batch: Batch) -> None:
        assert self.state is not None
        if not self.state.recent.labels.flags.writeable:
            # Mapped from a file that is not ours to change: joblib.load(..., mmap_mode="r").
            self.state, self.kept = deepcopy((self.state, self.kept))
        while self.kept is not None and len(batch):
            n = min(_next_replay(self.kept.count, self.warm_rows) - self.kept.count, len(batch))
            self._learn_warm(batch[:n])
            batch = batch[n:]
        if len(batch):
            self._run_and_remember(batch)

    def _threads(self, n: int) -> AbstractContextManager[None]:
        """One thread for BLAS, unless all products of ``n`` rows are too small for more anyway."""
        return ONE_THREAD if n > FEW_ROWS or self.large_products or self.kept is not None else nullcontext()

    def warn_if_unstable(self, stacklevel: int = 3) -> None:
        """Warn if steps were cut or skipped, once, and again when the largest safe step has halved.

        The advice is half of it: a shorter step takes another path, on which the curvature may be larger.
        """
        state = self.state
        if state is None or (self.kept is not None and self.kept.count < SETTLED_ROWS):
            return
        scaling = "" if self.features.scale else ", or scale the columns"
        if state.tally[SKIPPED]:
            safe = 0.0
            trouble = (
                f"{self.dtype} overflowed: steps were skipped. Lower eta or the weights{scaling}, or use "
                "dtype='float64'."
            )
        elif state.tally[CUT]:
            safe = _round_down(self.step.eta * reference.STABLE / state.tally[WORST])
            trouble = (
                f"eta={self.step.eta:g} is too long a step for these rows and was cut where it would have diverged; "
                f"the largest safe step so far is {safe:g}. Lower eta to half of it, {0.5 * safe:g}{scaling}."
            )
        elif state.tally[LONG] and self.step.eta > 1:  # with a shorter one it is the rows' weights that are long
            safe = self.step.eta
            trouble = (
                f"steps of eta={safe:g}, times the rows' weights, moved the model by more than "
                f"{np.sqrt(reference.FAR):,.0f}, where margins of 1 are asked for. Lower eta or the weights{scaling}."
            )
        else:
            return
        if safe < 0.5 * self.named_step:
            self.named_step = safe
            warnings.warn(trouble, StabilityWarning, stacklevel=stacklevel)

    def _initial(self, n_features: int, rows: Any) -> State:
        """The state before the first row, with every rule fixed from ``rows``."""
        work = self._work
        assert self.seed is not None
        rng = generator(self.seed)
        phi = self._rounded(self.features.fix(n_features, rows, rng))
        memory = self._start_memory(n_features, phi, None if rows is None else rows.astype(work, copy=False))
        w = np.zeros((len(self.pairs.models), self.features.n_outputs(n_features)), work)
        recent = Recent(np.zeros((RECENT_ROWS, len(w))))
        return State(phi, cast(memory, np.dtype(self.dtype), work), rng, w, w.copy(), recent)

    @property
    def _work(self) -> np.dtype:
        """Of the arrays that learning changes."""
        return np.dtype("float64" if self.engine == "reference" else self.dtype)

    def _rounded(self, phi: Any) -> Any:
        """A map's arrays, made in float64, with the values that ``dtype`` gives them: the same for every engine."""
        return cast(cast(phi, np.float64, self.dtype), self.dtype, self._work)

    def _learn_warm(self, batch: Batch) -> None:
        """Keep the rows; at a replay row fix the rules anew and learn all kept rows from the start."""
        kept = self.kept
        assert kept is not None
        kept.batches.append(batch.copy())
        kept.count += len(batch)
        if kept.count == _next_replay(kept.count - 1, self.warm_rows):
            batch = Batch.join(kept.batches)
            kept.batches = [batch]
            self.state = self._initial(batch.X.shape[1], batch.X)
        self._run_and_remember(batch)
        if kept.count == self.warm_rows:
            self.kept = None

    def _run_and_remember(self, batch: Batch) -> None:
        assert self.state is not None
        self.state.recent.add(self._run(batch), batch)


def refuse_uncompiled(parts: Any) -> None:
    """Raise ValueError if any of a dataclass of parts is one that compiled engines do not know."""
    for f in fields(parts):
        part = getattr(parts, f.name, None)
        if not getattr(part, "is_compiled", True):
            raise ValueError(
                f"{f.name}={part!r} has no compiled form: use engine='reference', which takes any part"
                + (", or give the loss one (Loss.scalars)" if isinstance(part, Loss) else "")
            )
        if f.name == "rule":
            refuse_uncompiled(part)


def _next_replay(row: int, last: int) -> int:
    """The first of the rows 1, 4, 16, ..., ``last`` after ``row``."""
    replay = 1
    while replay <= row:
        replay *= 4
    return min(replay, last)


def _round_down(value: float) -> float:
    """The largest number with three digits below ``value``."""
    unit = 10.0 ** (floor(log10(value)) - 2)
    return float(floor(value / unit) * unit)
