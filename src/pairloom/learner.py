"""The parts put together: min_w sum_t sum_{j in B_t} p_j l(<w, phi(x_t) - phi(x_j)>; y_t, y_j) + Omega(w)."""

import warnings
from dataclasses import dataclass, field
from math import floor, log10
from typing import Any, Literal

import numpy as np

from pairloom.checks import check_choice
from pairloom.compiled import row_dots
from pairloom.engines import fused, reference, sparse
from pairloom.features import FeatureMap, RandomFourier
from pairloom.features.sparse import is_sparse
from pairloom.losses import Loss, Square
from pairloom.memory import Memory, Strata
from pairloom.pairs import Difference, OppositeClass, Pairs
from pairloom.randomness import fresh_seed, generator
from pairloom.state import CUT, SKIPPED, WORST, Batch, Kept, Recent, State, cast
from pairloom.state import RECENT as RECENT_ROWS
from pairloom.steps import L2, Average, Constant, Penalty, Schedule
from pairloom.typing import Array
from pairloom.validation import check_finite, check_weight, positive_weight, rows_of

Engine = Literal["auto", "fused", "reference"]
Dtype = Literal["float32", "float64"]

WARM_ROWS = 1024

SETTLED_ROWS = 64
"""Rules fixed from fewer rows are provisional: a step that is too long under them says nothing about eta."""

SCORE_ROWS = 4096
"""Rows mapped at once when scoring, so that a long X does not need D numbers for each row."""


class StabilityWarning(UserWarning):
    """A step was too long for the data and was cut."""


@dataclass(eq=False)
class Learner:
    """A model <w, phi(x)> learned from pairs, one example at a time, in one pass.

    Each symbol of the objective is one part; a system of the literature is a choice of parts.

    Parameters
    ----------
    features : phi.
    pairs : which pairs count, and what is asked of them.
    loss : l.
    memory : B_t and p_j.
    step : eta_t.
    penalty : Omega.
    average : the iterate that scores: "last" (the paper), "mean", or "poly" (forgets the start).
    dtype : of the mapped examples and the weights.
    seed : of all randomness; None takes a fresh one.
    engine : "fused" (compiled; what "auto" takes) or "reference" (NumPy in float64, the specification).

    If a part holds a rule on data ("median", "auto", scaling), the first 1,024 rows are kept; at rows 1, 4, 16, ...,
    1024 the rules are fixed anew from all rows so far and these are learned again from the start. So at every moment
    the state is exactly one pass with the present rules, however the stream was cut into calls.

    >>> from pairloom.features import Gaussian
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(500, 2)), np.ones(500)
    >>> y[(X ** 2).sum(axis=1) > 2] = -1
    >>> learner = Learner(features=RandomFourier(64, Gaussian("median")), seed=0).partial_fit(X, y)
    >>> bool(learner.score(X[y > 0]).mean() > learner.score(X[y < 0]).mean())
    True
    """

    features: FeatureMap = field(default_factory=RandomFourier)
    pairs: Pairs = field(default_factory=OppositeClass)
    loss: Loss = field(default_factory=Square)
    memory: Memory = field(default_factory=Strata)
    step: Schedule = field(default_factory=lambda: Constant(0.125))
    penalty: Penalty = field(default_factory=L2)
    average: Average = "last"
    dtype: Dtype = "float32"
    seed: int | None = None
    engine: Engine = "auto"
    state: State | None = field(default=None, init=False, repr=False)
    kept: Kept | None = field(default=None, init=False, repr=False)
    named_step: float = field(default=np.inf, init=False, repr=False)

    def __post_init__(self) -> None:
        check_choice("average", self.average, Average)
        check_choice("dtype", self.dtype, Dtype)
        check_choice("engine", self.engine, Engine)
        self.penalty.check(self.step.eta)
        if not self.memory.joint and self.pairs.n_groups == 0:
            raise ValueError(
                f"{type(self.memory).__name__} keeps slots for each class, but {type(self.pairs).__name__} pairs "
                "have no classes: use a memory that mixes them, such as Latest('previous') or "
                "Strata(by='joint', normalization='history')"
            )
        if isinstance(self.pairs, Difference) and not isinstance(self.loss, Square):
            raise ValueError("Difference pairs ask for an exact difference: use loss=Square()")
        if self.seed is None:
            self.seed = fresh_seed()

    @property
    def needs_data(self) -> bool:
        """Whether any part holds a rule on data."""
        return self.features.needs_data or self.memory.needs_data

    @property
    def n_seen(self) -> int:
        """Rows learned."""
        return self.state.t if self.state is not None else 0

    @property
    def coef(self) -> Array:
        """The output iterate, one row per model of the pairs."""
        assert self.state is not None, "no rows seen yet"
        return self.state.w if self.average == "last" else self.state.w_bar

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> "Learner":
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
        if self.state is None:
            return np.zeros(X.shape[0])
        if X.shape[0] > SCORE_ROWS:
            cuts = range(0, X.shape[0], SCORE_ROWS)
            return np.concatenate([self.score_rows(X[cut : cut + SCORE_ROWS]) for cut in cuts])
        Z = self.features.apply(self.state.phi, X)
        scores = [sparse.scores(self.state, Z, w) if is_sparse(Z) else row_dots(Z, w) for w in self.coef]
        return np.asarray(scores[0] if len(scores) == 1 else np.column_stack(scores), dtype=float)

    def pair_score(self, X: Any, X2: Any) -> Array:
        """<w, phi(x) - phi(x')> of the rows of X and X2, pair by pair: positive where x should come first."""
        return self.score(X) - self.score(X2)

    def check_batch(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Batch:
        """Valid rows of positive weight, or ValueError; changes nothing."""
        X = self._check_rows(X)
        n = X.shape[0]
        y = self.pairs.encode(np.asarray(y))
        weight = check_weight(sample_weight, n)
        query = np.zeros(n, np.int64) if groups is None else np.asarray(groups).astype(np.int64)
        for name, values in (("y", y), ("groups", query)):
            if values.shape != (n,):
                raise ValueError(f"{name} has shape {values.shape}, but X has {n} rows")
        batch = Batch(X, np.ascontiguousarray(y), weight, query)
        keep = positive_weight(weight, may_be_none=True)
        if keep is not None:
            batch = batch[keep]
        self.check_room(len(batch))
        return batch

    def check_room(self, n: int) -> None:
        """Raise ValueError unless the memory can take ``n`` more rows."""
        self.memory.check_room(None if self.state is None else self.state.memory, n)

    def _check_rows(self, X: Any) -> Any:
        X = rows_of(X, self.dtype)
        if self.state is not None and X.shape[1] != self.state.phi.scaler.shift.size:
            raise ValueError(f"X has {X.shape[1]} columns, but this learner knows {self.state.phi.scaler.shift.size}")
        check_finite(X, self.dtype)
        return X

    def start(self, n_features: int) -> None:
        """Make the state before the first row, unless there is one."""
        if self.state is None:
            self.state = self._initial(n_features, None)
            self.kept = Kept() if self.needs_data else None

    def learn(self, batch: Batch) -> None:
        """Learn valid rows, with replays while rules on data are not settled."""
        while self.kept is not None and len(batch):
            n = min(_next_replay(self.kept.count) - self.kept.count, len(batch))
            self._learn_warm(batch[:n])
            batch = batch[n:]
        if len(batch):
            self._run(batch)

    def warn_if_unstable(self, stacklevel: int = 3) -> None:
        """Warn if steps were cut or skipped, once, and again when the largest safe step has halved."""
        state = self.state
        if state is None or (self.kept is not None and self.kept.count < SETTLED_ROWS):
            return
        scaling = "" if self.features.scale else ", or scale the columns"
        if state.tally[SKIPPED]:
            safe, trouble = (
                0.0,
                f"{self.dtype} overflowed: steps were skipped. Lower eta{scaling}, or use dtype='float64'.",
            )
        elif state.tally[CUT]:
            safe = _round_down(self.step.eta * reference.STABLE / state.tally[WORST])
            trouble = (
                f"eta={self.step.eta:g} is too long a step for these rows and was cut where it would have diverged; "
                f"the largest safe step so far is {safe:g}. Lower eta{scaling}."
            )
        else:
            return
        if safe < 0.5 * self.named_step:
            self.named_step = safe
            warnings.warn(trouble, StabilityWarning, stacklevel=stacklevel)

    def _initial(self, n_features: int, rows: Any) -> State:
        """The state before the first row, with every rule fixed from ``rows``."""
        work = np.dtype("float64" if self.engine == "reference" else self.dtype)
        assert self.seed is not None
        rng = generator(self.seed)
        phi = cast(cast(self.features.fix(n_features, rows, rng), np.float64, self.dtype), self.dtype, work)
        dim = self.features.n_outputs(n_features)
        by_input = self.memory.space == "input"
        points = None
        if rows is not None and self.memory.needs_data:
            points = (self.features.inputs if by_input else self.features.apply)(phi, rows.astype(work))
            points = sparse.stand_ins(points) if is_sparse(points) else points
        u_dim = n_features if by_input else dim
        memory = self.memory.start(dim, u_dim, self.pairs.n_groups, np.dtype(self.dtype), points)
        w = np.zeros((len(self.pairs.models), dim), work)
        recent = Recent(np.zeros((RECENT_ROWS, len(w))))
        return State(phi, cast(memory, np.dtype(self.dtype), work), rng, w, w.copy(), recent)

    def _learn_warm(self, batch: Batch) -> None:
        """Keep the rows; at a replay row fix the rules anew and learn all kept rows from the start."""
        kept = self.kept
        assert kept is not None
        kept.batches.append(batch.copy())
        kept.count += len(batch)
        if kept.count == _next_replay(kept.count - 1):
            batch = Batch.join(kept.batches)
            kept.batches = [batch]
            self.state = self._initial(batch.X.shape[1], batch.X)
        self._run(batch)
        if kept.count == WARM_ROWS:
            self.kept = None

    def _run(self, batch: Batch) -> None:
        assert self.state is not None
        faster = sparse if sparse.takes(self, self.state, batch) else fused
        engine = reference if self.engine == "reference" else faster
        self.state.recent.add(engine.run(self, self.state, batch), batch)


def _next_replay(row: int) -> int:
    """The first of the rows 1, 4, 16, ..., WARM_ROWS after ``row``."""
    replay = 1
    while replay <= row:
        replay *= 4
    return min(replay, WARM_ROWS)


def _round_down(value: float) -> float:
    """The largest number with three digits below ``value``."""
    unit = 10.0 ** (floor(log10(value)) - 2)
    return float(floor(value / unit) * unit)
