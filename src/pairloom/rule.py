"""Learners that keep statistics of the past in place of examples: one small protocol."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from pairloom.engines.fused import BLOCK_BYTES
from pairloom.engines.reference import HEAVY, limited
from pairloom.engines.sparse import Rows, center_of, csr
from pairloom.engines.sparse_kernels import SIGMA, SQUARE, A, B
from pairloom.features import Identity
from pairloom.features.sparse import is_sparse
from pairloom.onepass import OnePass
from pairloom.pairs import OppositeClass
from pairloom.state import Batch, Lazy, LazyModel, State
from pairloom.steps import L2, Average, Penalty, averaging_rate
from pairloom.typing import Array


@dataclass(frozen=True)
class Row:
    """One mapped example as a model sees it: y is +1 or -1, ``eta`` the step times the weight.

    (keep, rate, threshold): what the penalty makes of the step; ``draws``: uniform random numbers.
    """

    z: Array
    y: float
    weight: float
    eta: float
    keep: float
    rate: float
    threshold: float
    draws: Array


@dataclass(frozen=True)
class Block:
    """Many rows, for a compiled loop; fields as in :class:`Row`.

    ``Z`` is dense, or CSR ``Rows``; ``y`` (n, models); ``steps`` (3, n): keep, rate, threshold; ``rho`` (n,): averaging
    rates. The loop writes each row's scores before the step into ``scores`` (n, models).
    """

    Z: Any
    y: Array
    weight: Array
    eta: Array
    steps: Array
    bound: float
    rho: Array
    averaging: bool
    draws: Array
    scores: Array


@dataclass(frozen=True)
class Rule(ABC):
    """What a system does with a mapped example, given statistics of those before it.

    It is told twice: ``step`` is the specification, one example and one model at a time, in NumPy and float64; ``run``
    is the same over a block of rows, compiled. Statistics are a dataclass of arrays, float64 where they add up over the
    stream, in ``state.memory``; with more than two classes there is one model for each class against the rest, and
    arrays have a first axis for it.
    """

    averages_before: ClassVar[bool] = False
    """Whether the output averages the iterates from which the steps start, not those at which they end."""

    @property
    def takes_csr(self) -> bool:
        """Whether there is a ``run_rows`` for CSR rows; if not, they become dense block by block."""
        return type(self).run_rows is not Rule.run_rows

    @property
    def draws(self) -> int:
        """Uniform random numbers used up by each example."""
        return 0

    @abstractmethod
    def start(self, dim: int, n_models: int) -> Any:
        """Statistics of nothing; ValueError if they would be too large."""

    @abstractmethod
    def step(self, state: State, k: int, row: Row, penalty: Penalty) -> None:
        """Learn one row with model k: change ``state.w[k]``, ``state.memory`` and ``state.tally``."""

    @abstractmethod
    def run(self, state: State, block: Block) -> None:
        """``step``, scores and averaging for the rows of a block and all models."""

    def run_rows(self, state: State, model: LazyModel, block: Block) -> None:
        """``run`` for CSR rows, at the cost of their entries; a rule may go without."""
        raise NotImplementedError(f"{type(self).__name__} learns dense rows")

    def rates(self, state: State, average: Average, t: Array, eta: Array) -> Array:
        """Averaging rates rho_t of rows t; called once for each row, in order."""
        return averaging_rate(average, t)

    # Not abstract: most rules know all they need from the rows before.
    def prepare(self, state: State, rows: Any) -> None:  # noqa: B027
        """Look at all rows before the first step, if offline: ``rows()`` gives blocks (Z, y (n, models), weight)."""


@dataclass(eq=False, kw_only=True)
class RuleLearner(OnePass):
    """A model <w, phi(x)> learned by a :class:`Rule`, one example at a time, in one pass.

    A weight scales the step and the example's share of the statistics. Parameters as in :class:`~pairloom.Learner`.
    """

    rule: Rule
    pairs: OppositeClass = field(default_factory=OppositeClass)
    penalty: Penalty = field(default_factory=L2)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.penalty.check(self.step.eta)

    def _prepare(self, batch: Batch) -> None:
        """Fix rules on data and the statistics of an offline rule, from all rows that will be learned."""
        super()._prepare(batch)
        state = self.state
        assert state is not None
        blocks = self._blocks(state, batch)
        self.rule.prepare(state, lambda: ((self._map(state, b), self.pairs.signs(b.y), b.weight) for b in blocks))

    def _start_memory(self, n_features: int, phi: Any, rows: Any) -> Any:
        return self.rule.start(self.features.n_outputs(n_features), len(self.pairs.models))

    def _run(self, batch: Batch) -> Array:
        state = self.state
        assert state is not None
        if self.engine == "reference":
            return np.array([self._step(state, batch[i : i + 1]) for i in range(len(batch))])
        if self._stays_sparse(state, batch):
            return self._run_rows(state, batch)
        scores = []
        for part in self._blocks(state, batch):
            block = self._block(state, part, self._map(state, part))
            self.rule.run(state, block)
            scores.append(block.scores)
        return np.concatenate(scores)

    def _run_rows(self, state: State, batch: Batch) -> Array:
        """CSR rows, at the cost of their entries; the dense arrays of the state are up to date at the end."""
        model = lazy_model(state, self.average != "last")
        block = self._block(state, batch, Rows.of(self.features.inputs(state.phi, csr(batch.X))))
        self.rule.run_rows(state, model, block)
        state.w[:] = model.factors[:, [SIGMA]] * model.w_hat
        if block.averaging:
            state.w_bar[:] = model.factors[:, [A]] * model.w_hat + model.factors[:, [B]] * model.u_hat
        return block.scores

    def _stays_sparse(self, state: State, batch: Batch) -> bool:
        # Centring would make rows dense, and these rules, unlike pairs, see it.
        linear = isinstance(self.features, Identity) and not center_of(state).size
        return linear and self.rule.takes_csr and (is_sparse(batch.X) or state.lazy is not None)

    def _blocks(self, state: State, batch: Batch) -> list[Batch]:
        rows = max(8, BLOCK_BYTES // max(state.w[0].nbytes, 8 * self.rule.draws))
        return [batch[start : start + rows] for start in range(0, len(batch), rows)]

    def _map(self, state: State, batch: Batch) -> Array:
        """phi of a block of rows, dense."""
        linear = isinstance(self.features, Identity)
        return self.features.apply(state.phi, batch.X.toarray() if linear and is_sparse(batch.X) else batch.X)

    def _block(self, state: State, batch: Batch, Z: Any) -> Block:
        n = len(batch)
        t = np.arange(state.t + 1, state.t + n + 1)
        eta = self.step.at(t) * np.minimum(batch.weight, HEAVY)
        keep, rate, threshold = self.penalty.at(eta)
        rho = self.rule.rates(state, self.average, t, eta)
        state.t += n
        return Block(
            Z, self.pairs.signs(batch.y), batch.weight, eta, np.array([np.maximum(keep, 0.0), rate, threshold]),
            self.penalty.bound, rho, self.average != "last",
            state.rng.random((n, self.rule.draws)), np.empty((n, len(state.w))),
        )  # fmt: skip

    def _step(self, state: State, one: Batch) -> Array:
        """The specification: learn one row."""
        block = self._block(state, one, self._map(state, one))
        z = block.Z[0]
        scores = (state.w_bar if block.averaging else state.w) @ z
        before = state.w.copy()
        for k in range(len(state.w)):
            keep, rate, threshold = block.steps[:, 0].tolist()
            row = Row(z, block.y[0, k], block.weight[0], block.eta[0], keep, rate, threshold, block.draws[0])
            self.rule.step(state, k, row, self.penalty)
        state.w_bar += block.rho[0] * ((before if self.rule.averages_before else state.w) - state.w_bar)
        return np.asarray(scores)


def lazy_model(state: State, averaging: bool) -> LazyModel:
    """w = sigma w_hat, w_bar = a w_hat + b u_hat, made from the dense arrays on the first CSR rows."""
    state.lazy = state.lazy or Lazy()
    if state.lazy.model is None:
        w = state.w.astype(float)
        factors = np.zeros((len(w), 6))
        factors[:, SIGMA] = factors[:, B] = 1.0
        factors[:, SQUARE] = np.square(w).sum(axis=1)
        none = np.zeros((0, 1), np.int32)
        state.lazy.model = LazyModel(
            w, (state.w_bar if averaging else state.w[:, :0]).astype(float), factors,
            none, none.astype(float), np.zeros(0, np.int64), np.zeros(0, bool),
        )  # fmt: skip
    return state.lazy.model


def descend(w: Array, v: Array, row: Row, rate: float, bound: float) -> Array:
    """The specification of a step: project(soft(keep w - rate v, threshold))."""
    return limited(row.keep * w - rate * v, row.threshold, bound)
