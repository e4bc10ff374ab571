"""The parts put together: min_w sum_t sum_{j in B_t} p_j l(<w, phi(x_t) - phi(x_j)>; y_t, y_j) + Omega(w)."""

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from pairloom.engines import fused, reference, sparse
from pairloom.features import FeatureMap, Growing, RandomFourier
from pairloom.features.sparse import is_sparse
from pairloom.losses import Hinge, Loss, Residual, Square
from pairloom.memory import Memory, MemoryState, Strata
from pairloom.onepass import OnePass
from pairloom.pairs import OppositeClass
from pairloom.state import Batch, State, cast
from pairloom.steps import L2, Penalty
from pairloom.typing import Array


@dataclass(eq=False)
class Learner(OnePass):
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

    If a part holds a rule on data ("median", "auto", scaling, landmarks), the first 1,024 rows are kept (more, if
    ``features.warm_rows`` says so); at rows 1, 4, 16, ..., 1024 the rules are fixed anew from all rows so far and these
    are learned again from the start. So at every moment the state is exactly one pass with the present rules, however
    the stream was cut into calls.

    >>> from pairloom.features import Gaussian
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(500, 2)), np.ones(500)
    >>> y[(X ** 2).sum(axis=1) > 2] = -1
    >>> learner = Learner(features=RandomFourier(64, Gaussian("median")), seed=0).partial_fit(X, y)
    >>> bool(learner.score(X[y > 0]).mean() > learner.score(X[y < 0]).mean())
    True
    """

    takes_growing: ClassVar[bool] = True

    features: FeatureMap = field(default_factory=RandomFourier)
    loss: Loss = field(default_factory=Square)
    memory: Memory = field(default_factory=Strata)
    penalty: Penalty = field(default_factory=L2)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.penalty.check(self.step.eta)
        if not self.memory.joint and self.pairs.n_groups == 0:
            raise ValueError(
                f"{type(self.memory).__name__} keeps slots for each class, but {type(self.pairs).__name__} pairs "
                "have no classes: use a memory that mixes them, such as Latest('previous') or "
                "Strata(by='joint', normalization='history')"
            )
        if self.pairs.exact and not isinstance(self.loss, Square):
            raise ValueError(f"{type(self.pairs).__name__} pairs ask for an exact difference: use loss=Square()")
        if self.memory.weighting == "sum" and type(self.pairs) is not OppositeClass:
            raise ValueError("normalization='sum' counts the rows of the other class: use pairs=OppositeClass()")
        if isinstance(self.features, Growing) and not self.memory.holds_rows:
            raise ValueError(
                "where features grow, a memory must keep past rows, and cluster them by x, not phi(x): use "
                "Strata(cluster_in='input') with representative='fifo' or 'reservoir', or another memory, such as "
                f"Latest(); got {self.memory}"
            )
        if self.step.sequential and not isinstance(self.loss, Hinge):
            raise ValueError(f"{type(self.step).__name__} steps end where the hinge loss does: use loss=Hinge()")

    @property
    def needs_data(self) -> bool:
        return self.features.needs_data or self.memory.needs_data

    @property
    def pair_loss(self) -> Loss:
        """The loss as a function of the margins that the pairs have."""
        return Residual() if self.pairs.exact else self.loss

    def check_room(self, n: int) -> None:
        """Raise ValueError unless the memory can take ``n`` more rows."""
        self.memory.check_room(None if self.state is None else self.state.memory, n)

    def _initial(self, n_features: int, rows: Any) -> State:
        state = super()._initial(n_features, rows)
        if self.memory.weighting == "sum":
            state.totals = np.zeros((len(state.w), 2))
        if isinstance(self.features, Growing):
            slots = state.memory.slots
            slots.rows = np.zeros((len(slots.mass), n_features), self._work)
        return state

    def _start_memory(self, n_features: int, phi: Any, rows: Any) -> MemoryState:
        by_input, dim = self.memory.space == "input", self.features.n_outputs(n_features)
        points = None
        if rows is not None and self.memory.needs_data:
            points = (self.features.inputs if by_input else self.features.apply)(phi, rows)
            points = sparse.stand_ins(points) if is_sparse(points) else points
        u_dim = n_features if by_input else dim
        return self.memory.start(dim, u_dim, self.pairs.n_groups, np.dtype(self.dtype), points)

    def _run(self, batch: Batch) -> Array:
        state = self.state
        assert state is not None
        if not isinstance(self.features, Growing):
            return self._run_engine(state, batch)
        scores, n_blocks = [], self.features.n_blocks
        while len(batch):
            now = n_blocks(state.t + 1)
            grow(self, self.features, state, now)
            rows = range(state.t + 1, state.t + 1 + len(batch))
            n = bisect_right(rows, now, key=n_blocks)
            scores.append(self._run_engine(state, batch[:n]))
            batch = batch[n:]
        return np.concatenate(scores)

    def _run_engine(self, state: State, batch: Batch) -> Array:
        faster = sparse if sparse.takes(self, state, batch) else fused
        engine = reference if self.engine == "reference" else faster
        scores: Array = engine.run(self, state, batch)
        return scores


def grow(learner: Learner, features: Growing, state: State, n_blocks: int) -> None:
    """Bring all that lives in the feature space to ``n_blocks`` blocks of features; every score stays as it was."""
    before = features.blocks_of(state.phi)
    if n_blocks == before:
        return
    state.phi = learner._rounded(features.grow(cast(state.phi, learner._work, np.float64), n_blocks))
    more = ((0, 0), (0, (n_blocks - before) * features.block))
    up = np.sqrt(n_blocks / before)
    state.w, state.w_bar = (np.pad((up * w).astype(w.dtype), more) for w in (state.w, state.w_bar))
    slots = state.memory.slots
    slots.points = features.apply(state.phi, slots.rows)
