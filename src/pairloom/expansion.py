"""Models on exact kernels: a sum of kernels at kept examples, in place of a weight vector."""

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pairloom.compiled import compiled, dot
from pairloom.engines.fused import BLOCK_BYTES
from pairloom.engines.reference import HEAVY
from pairloom.features import Gaussian, Identity, Kernel, Linear
from pairloom.features.exact import kernel_row
from pairloom.features.sparse import is_sparse
from pairloom.onepass import OnePass
from pairloom.pairs import OppositeClass
from pairloom.state import Batch, State
from pairloom.steps import Constant, Schedule
from pairloom.typing import Array


@dataclass
class ExpansionState:
    """What every expansion keeps: the kernel's width (0-d). One with more to keep extends it."""

    gamma: Array


@dataclass(frozen=True)
class Row:
    """One example: x scaled, ``y`` +1 or -1 for each model, ``eta`` the step times the weight, uniform ``draws``."""

    x: Array
    y: Array
    weight: float
    eta: float
    draws: Array


@dataclass(frozen=True)
class Block:
    """Many rows, for a compiled loop; fields as in :class:`Row`.

    The loop writes each row's scores before the step into ``scores`` (n, models).
    """

    X: Array
    y: Array
    weight: Array
    eta: Array
    draws: Array
    scores: Array


@dataclass(eq=False, kw_only=True)
class Expansion(OnePass):
    """A model f_k(x) = sum_j coef[k, j] k(x, support_j) learned one example at a time, in one pass.

    A learner says what it keeps (``_start``), where the sum is in it (``terms``) and what it does with a row, twice:
    ``_step`` is the specification, in NumPy and float64, ``_run_block`` the same over many rows, compiled. With more
    than two classes there is one model for each class against the rest.

    Parameters
    ----------
    kernel : k, with its width rule; one width for all columns.
    features : the scaled input, which the kernel sees. CSR rows become dense block by block.
    pairs, step, dtype, seed, engine : as in :class:`~pairloom.Learner`.

    Cost of a score: d flops and one kernel value for each support.
    """

    kernel: Kernel | Linear = field(default_factory=Gaussian)
    features: Identity = field(default_factory=Identity)
    pairs: OppositeClass = field(default_factory=OppositeClass)
    step: Schedule = field(default_factory=lambda: Constant(0.01))

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.kernel.gamma, tuple):
            raise ValueError("an exact kernel takes one gamma for all columns: scale the columns instead")

    @abstractmethod
    def _start(self, gamma: Array, dim: int) -> ExpansionState:
        """What is kept before the first row: arrays of ``dtype``, float64 where things add up over the stream."""

    @abstractmethod
    def terms(self) -> list[tuple[Array, Array]]:
        """Supports (n, d) and coefficients (m, n) of all models, in order: m models may share their supports."""

    @abstractmethod
    def _step(self, state: State, row: Row) -> None:
        """The specification: learn one row with every model."""

    @abstractmethod
    def _run_block(self, state: State, block: Block) -> None:
        """``_step`` and scores for the rows of a block."""

    @property
    def draws(self) -> int:
        """Uniform random numbers used up by each example."""
        return 0

    @property
    def needs_data(self) -> bool:
        return self.features.needs_data or self.kernel.gamma == "median"

    def _score_rows(self, X: Any) -> Array:
        """f of rows that are known to be valid; each row's kernels are evaluated on their own."""
        state = self.state
        if state is None:
            return np.zeros(X.shape[0])
        terms = [(supports, np.ascontiguousarray(coef)) for supports, coef in self.terms()]
        scores = np.zeros((X.shape[0], len(self.pairs.models)))
        for rows in self._blocks(X.shape[0], X.shape[1]):
            Z, gamma, k = self._inputs(state, X[rows]), float(state.memory.gamma), 0
            for supports, coef in terms:
                if len(supports):
                    scores[rows, k : k + len(coef)] = evaluate(self.kernel.code, gamma, Z, supports, coef)
                k += len(coef)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def _initial(self, n_features: int, rows: Any) -> State:
        state = super()._initial(n_features, rows)
        state.w = state.w_bar = np.zeros((len(state.w), 0))
        return state

    def _start_memory(self, n_features: int, phi: Any, rows: Any) -> ExpansionState:
        return self._start(self.kernel.width_of(n_features, rows, phi.scaler), n_features)

    def _run(self, batch: Batch) -> Array:
        state = self.state
        assert state is not None
        if self.engine == "reference":
            return np.array([self._run_one(state, batch[i : i + 1]) for i in range(len(batch))])
        scores = []
        for rows in self._blocks(len(batch), batch.X.shape[1]):
            block = self._block(state, batch[rows])
            self._run_block(state, block)
            scores.append(block.scores)
        return np.concatenate(scores)

    def _run_one(self, state: State, one: Batch) -> Array:
        block = self._block(state, one)
        row = Row(block.X[0], block.y[0], float(block.weight[0]), float(block.eta[0]), block.draws[0])
        scores = [coef @ self._values(state, row.x, supports) for supports, coef in self.terms()]
        self._step(state, row)
        return np.concatenate(scores)

    def _values(self, state: State, x: Array, supports: Array) -> Array:
        """k(x, support) of every support, by the specification; equal supports have equal values."""
        return np.asarray(self.kernel(state.memory.gamma, x[None, :], supports)[0])

    def _block(self, state: State, batch: Batch) -> Block:
        n = len(batch)
        t = np.arange(state.t + 1, state.t + n + 1)
        eta = self.step.at(t) * np.minimum(batch.weight, HEAVY)
        state.t += n
        return Block(
            self._inputs(state, batch.X), self.pairs.signs(batch.y), batch.weight, eta,
            state.rng.random((n, self.draws)), np.empty((n, len(self.pairs.models))),
        )  # fmt: skip

    def _blocks(self, n: int, n_features: int) -> list[slice]:
        """Blocks of rows that are dense at a time."""
        rows = max(8, BLOCK_BYTES // (8 * max(n_features, self.draws)))
        return [slice(start, start + rows) for start in range(0, n, rows)]

    def _inputs(self, state: State, X: Any) -> Array:
        """The scaled rows, dense."""
        return self.features.apply(state.phi, X.toarray() if is_sparse(X) else X)


@compiled
def evaluate(code: int, gamma: float, X: Array, supports: Array, coef: Array) -> Array:
    """sum_j coef[k, j] k(x_i, support_j) of each row i and of each model k that has these supports."""
    scores = np.empty((X.shape[0], coef.shape[0]))
    values = np.empty(supports.shape[0], X.dtype)
    for i in range(X.shape[0]):
        kernel_row(code, gamma, X[i], supports, values)
        for k in range(coef.shape[0]):
            scores[i, k] = dot(coef[k], values)
    return scores
