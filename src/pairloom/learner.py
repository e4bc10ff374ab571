"""The parts put together: min_w sum_t sum_{j in B_t} p_j l(<w, phi(x_t) - phi(x_j)>; y_t, y_j) + Omega(w)."""

import warnings
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from pairloom.checks import check_choice
from pairloom.compiled import row_dots
from pairloom.engines import fused, reference
from pairloom.features import FeatureMap, RandomFourier
from pairloom.losses import Loss, Square
from pairloom.memory import Memory, Strata
from pairloom.pairs import OppositeClass, Pairs
from pairloom.state import CUT, SKIPPED, WORST, Kept, State, cast
from pairloom.steps import L2, Average, Constant, Schedule
from pairloom.typing import Array

Engine = Literal["auto", "fused", "reference"]
Dtype = Literal["float32", "float64"]

WARM_ROWS = 1024

SETTLED_ROWS = 64
"""Rules fixed from fewer rows are provisional: a step that is too long under them says nothing about eta."""


class StabilityWarning(UserWarning):
    """A step was too long for the data and was cut."""


@dataclass(eq=False)
class Learner:
    """A model <w, phi(x)> learned from pairs, one example at a time, in one pass.

    Each symbol of the objective is one part; a system of the literature is a choice of parts.

    Parameters
    ----------
    features : phi.
    pairs : which pairs count.
    loss : l.
    memory : B_t and p_j.
    step : eta_t.
    penalty : Omega.
    average : the iterate that scores: "last" (the paper), "mean", or "poly" (forgets the start).
    dtype : of the mapped examples and the weights.
    seed : of all randomness; None takes a fresh one.
    engine : "fused" (compiled; what "auto" takes) or "reference" (NumPy in float64, the specification).

    If a part holds a rule on data ("median", "auto", scaling), the first 1,024 rows are kept; at rows 1, 4, 16,
    ..., 1024 the rules are fixed anew from all rows so far and these are learned again from the start. So at
    every moment the state is exactly one pass with the present rules, however the stream was cut into calls.

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
    penalty: L2 = field(default_factory=L2)
    average: Average = "last"
    dtype: Dtype = "float32"
    seed: int | None = None
    engine: Engine = "auto"
    state: State | None = field(default=None, init=False, repr=False)
    kept: Kept | None = field(default=None, init=False, repr=False)
    warned: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        check_choice("average", self.average, Average)
        check_choice("dtype", self.dtype, Dtype)
        check_choice("engine", self.engine, Engine)
        if self.penalty.form == "explicit" and self.step.eta * self.penalty.alpha >= 1:
            raise ValueError(
                f"an explicit L2 step needs eta * alpha < 1, got {self.step.eta * self.penalty.alpha:g}: "
                "lower eta or alpha, or use l2='proximal'"
            )
        if self.seed is None:
            self.seed = int(np.random.SeedSequence().generate_state(1)[0])

    @property
    def needs_data(self) -> bool:
        """Whether any part holds a rule on data."""
        return self.features.needs_data or self.memory.needs_data

    def partial_fit(self, X: Array, y: Array) -> "Learner":
        """Learn rows in order. X is finite, (n, d), of any float type; y has labels -1 and +1."""
        X = np.ascontiguousarray(X, dtype=self.dtype)
        y = np.ascontiguousarray(y, dtype=float)
        if self.state is None:
            self._begin(X.shape[1])
        while self.kept is not None and len(y):
            n = min(_next_replay(self.kept.count) - self.kept.count, len(y))
            self._learn_warm(X[:n], y[:n])
            X, y = X[n:], y[n:]
        self._learn(X, y)
        return self

    def score(self, X: Array) -> Array:
        """<w, phi(x)> of each row, with the output iterate; a row's score does not depend on the other rows."""
        if self.state is None:
            return np.zeros(len(X))
        Z = self.features.apply(self.state.phi, np.ascontiguousarray(X, dtype=self.dtype))
        return np.asarray(row_dots(Z, self.coef), dtype=float)

    @property
    def n_seen(self) -> int:
        """Rows learned."""
        return self.state.t if self.state is not None else 0

    @property
    def coef(self) -> Array:
        """The output iterate."""
        assert self.state is not None, "no rows seen yet"
        return self.state.w if self.average == "last" else self.state.w_bar

    def _begin(self, n_features: int) -> None:
        self.state = self._initial(n_features, None)
        if self.needs_data:
            self.kept = Kept(np.empty((WARM_ROWS, n_features), self.dtype), np.empty(WARM_ROWS))

    def _initial(self, n_features: int, rows: Array | None) -> State:
        """The state before the first row, with every rule fixed from ``rows``."""
        work = np.dtype("float64" if self.engine == "reference" else self.dtype)
        rng = np.random.default_rng(self.seed)
        phi = cast(cast(self.features.fix(n_features, rows, rng), np.float64, self.dtype), self.dtype, work)
        dim = self.features.n_outputs(n_features)
        by_input = self.memory.space == "input"
        points = None
        if rows is not None and self.memory.needs_data:
            points = (self.features.inputs if by_input else self.features.apply)(phi, rows.astype(work))
        memory = self.memory.start(dim, n_features if by_input else dim, np.dtype(self.dtype), points)
        return State(phi, cast(memory, np.dtype(self.dtype), work), rng, np.zeros(dim, work), np.zeros(dim, work))

    def _learn_warm(self, X: Array, y: Array) -> None:
        """Keep the rows; at a replay row fix the rules anew and learn all kept rows from the start."""
        kept = self.kept
        assert kept is not None
        end = kept.count + len(y)
        kept.X[kept.count : end], kept.y[kept.count : end] = X, y
        kept.count = end
        if end == _next_replay(end - 1):
            self.state = self._initial(X.shape[1], kept.X[:end])
            X, y = kept.X[:end], kept.y[:end]
        self._learn(X, y)
        if end == WARM_ROWS:
            self.kept = None

    def _learn(self, X: Array, y: Array) -> None:
        state = self.state
        assert state is not None
        engine = reference if self.engine == "reference" else fused
        state.recent.add(engine.run(self, state, X, y), y)
        if not self.warned:
            self._warn_if_unstable(state)

    def _warn_if_unstable(self, state: State) -> None:
        if self.kept is not None and self.kept.count < SETTLED_ROWS:
            return
        if state.tally[SKIPPED]:
            trouble = f"{self.dtype} overflowed: steps were skipped. Scale the columns, or use dtype='float64'."
        elif state.tally[CUT]:
            safe = self.step.eta * reference.STABLE / state.tally[WORST]
            trouble = (
                f"eta={self.step.eta:g} is too long a step for these rows and was cut where it would have diverged; "
                f"the largest safe step so far is {safe:.3g}. Lower eta, or scale the columns (scale='standard')."
            )
        else:
            return
        self.warned = True
        warnings.warn(trouble, StabilityWarning, stacklevel=2)


def _next_replay(row: int) -> int:
    """The first of the rows 1, 4, 16, ..., WARM_ROWS after ``row``."""
    replay = 1
    while replay <= row:
        replay *= 4
    return min(replay, WARM_ROWS)
