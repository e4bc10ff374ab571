"""Kernel expansions: a sum of exact kernels at kept examples, instead of a weight vector."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from pairloom.base.batch import Batch, Scored
from pairloom.base.compiled import compiled, dot
from pairloom.base.graph import Value, joined
from pairloom.base.spec import StateSpec, return_type
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.engines.base import Engine, cache_blocks, run_engine
from pairloom.engines.reference import MAX_WEIGHT
from pairloom.engines.state import State
from pairloom.features import Gaussian, Identity, Kernel, Linear
from pairloom.features.base import dense_features
from pairloom.features.compiled_kernels import kernel_row
from pairloom.features.kernel_contributions import CAUCHY, GAUSSIAN, LAPLACE, LINEAR, ExpansionSum
from pairloom.models.mapped import InBlocks, Mapped, RowByRow
from pairloom.pairs import OppositeClass
from pairloom.steps import Constant, Schedule


@node
class ExpansionState:
    """The state of an expansion: the kernel's width (0-d). Subclasses add fields."""

    gamma: Annotated[Array, "f8 0:LATE"]


@dataclass(frozen=True)
class KernelRow:
    """One example: x scaled, ``y`` +1 or -1 for each target, ``eta`` the step times the weight, uniform ``draws``."""

    x: Array
    y: Array
    weight: float
    eta: float
    draws: Array


class KernelBlock(NamedTuple):
    """Many rows for a compiled loop, passed as a plain tuple; fields as in :class:`KernelRow`.

    The loop writes each row's scores before the step into ``scores`` (n, targets).
    """

    X: Array
    y: Array
    weight: Array
    eta: Array
    draws: Array
    scores: Array


@dataclass(frozen=True, kw_only=True)
class Expansion(Mapped):
    """A model f_k(x) = sum_j coef[k, j] k(x, support_j) learned one example at a time, in one pass.

    A subclass defines its state (``start``), the terms of the sum (``terms``), and the update by a row, twice:
    ``step_row`` is the specification, in NumPy and float64; ``run_block`` is the same for many rows, compiled. With
    more than two classes there is one sum for each class against the rest.

    Parameters
    ----------
    kernel : k, with its width rule; one width for all columns.
    features : the scaled input of the kernel. CSR rows become dense block by block.
    pairs, step, dtype, seed, engine : as in :class:`~pairloom.Learner`.

    Cost of a score: d flops and one kernel value per support.
    """

    engines: ClassVar[Mapping[str, Sequence[Engine]]] = {"reference": (RowByRow(),), "fused": (InBlocks(),)}
    weights_spec: ClassVar[Mapping[str, str]] = {"w": "R v 0", "w_bar": "R v 0"}

    kernel: Kernel | Linear = field(default_factory=Gaussian)
    features: Identity = field(default_factory=Identity)
    pairs: OppositeClass = field(default_factory=OppositeClass)
    step: Schedule = field(default_factory=lambda: Constant(0.01))

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.kernel.gamma, tuple):
            raise ValueError("an exact kernel takes one gamma for all columns: scale the columns instead")

    @property
    @abstractmethod
    def draws(self) -> int:
        """Number of uniform random numbers per example."""

    @abstractmethod
    def start(self, gamma: Array, dim: int) -> ExpansionState:
        """Return the state before the first row: arrays of ``dtype``, or float64 for sums over the stream."""

    @abstractmethod
    def terms(self, kept: Any) -> list[tuple[Array, Array]]:
        """Return supports (n, d) and coefficients (m, n) of all targets, in order; m targets may share supports."""

    @abstractmethod
    def step_row(self, state: State, row: KernelRow) -> None:
        """Learn one row for every target: the specification."""

    @abstractmethod
    def run_block(self, state: State, block: KernelBlock) -> None:
        """Compute scores and apply ``step_row`` for the rows of a block."""

    @property
    def needs_data(self) -> bool:
        return self.features.needs_data or self.kernel.gamma == "median"

    def begin_empty(self, n_features: int, first: Batch | None) -> State:
        """Return the state before the first row, without weights."""
        state = self.begin(
            n_features, first,
            lambda phi, rows: self.start(self.kernel.width_of(n_features, rows, phi.scaler), n_features),
        )  # fmt: skip
        state.w, state.w_bar = state.w[:, :0], state.w_bar[:, :0]
        return state

    def memory_spec(self, n_features: int, dim: int) -> StateSpec:
        return StateSpec(return_type(type(self).start), self.state_symbols)

    @property
    def state_symbols(self) -> dict[str, int]:
        """Values of the symbols in the specification of the state."""
        return {}

    def check_state(self, t: int, state: State) -> None:
        state.check_plain(t)

    def run(self, state: State, batch: Batch) -> Scored:
        scores = run_engine(self, state, batch)
        return Scored(state.t, scores, batch.y, batch.weight, batch.query)

    def score(self, state: State, X: Any) -> Array:
        """Return f of each row; the kernels of each row are evaluated separately."""
        terms = [(supports, np.ascontiguousarray(coef)) for supports, coef in self.terms(state.memory)]
        scores = np.zeros((X.shape[0], self.n_vectors))
        for rows in self.blocks(state, X):
            Z, gamma, k = dense_features(self.features, state.phi, X[rows]), float(state.memory.gamma), 0
            for supports, coef in terms:
                if len(supports):
                    scores[rows, k : k + len(coef)] = evaluate(self.kernel.code, gamma, Z, supports, coef)
                k += len(coef)
        return scores

    def explainable(self, state: State) -> ExpansionSum | None:
        if self.kernel.code not in (GAUSSIAN, LAPLACE, CAUCHY, LINEAR):
            return None
        gamma = float(state.memory.gamma)
        return ExpansionSum(state.phi.scaler, self.kernel.code, gamma, self.terms(state.memory))

    def to_onnx(self, state: State, x: Value) -> Value:
        z, kept = self.features.to_onnx(state.phi, x), state.memory
        sums = [
            self.kernel.to_onnx(kept.gamma, z, supports) @ coef.T if len(supports) else z.zeros(len(coef))
            for supports, coef in self.terms(kept)
        ]
        return joined(sums)

    def values(self, state: State, x: Array, supports: Array) -> Array:
        """Return k(x, support) of every support, by the specification; equal supports have equal values."""
        return np.asarray(self.kernel(state.memory.gamma, x[None, :], supports)[0])

    def blocks(self, state: State, X: Any) -> list[slice]:
        """Return blocks of rows that are dense at a time."""
        return cache_blocks(X.shape[0], 8 * max(X.shape[1], self.draws))

    def learn_row(self, state: State, one: Batch) -> Array:
        """Learn one row by the specification; return its scores."""
        block = self._block(state, one)
        row = KernelRow(block.X[0], block.y[0], float(block.weight[0]), float(block.eta[0]), block.draws[0])
        scores = [coef @ self.values(state, row.x, supports) for supports, coef in self.terms(state.memory)]
        self.step_row(state, row)
        return np.concatenate(scores)

    def learn_rows(self, state: State, batch: Batch) -> Array:
        """Learn a block of rows by a compiled loop; return their scores."""
        block = self._block(state, batch)
        self.run_block(state, block)
        return block.scores

    def _block(self, state: State, batch: Batch) -> KernelBlock:
        """Return the next rows with all inputs of a step; count them in the state."""
        n = len(batch)
        t = state.ages(n)
        eta = self.step.at(t) * np.minimum(batch.weight, MAX_WEIGHT)
        state.t += n
        return KernelBlock(
            dense_features(self.features, state.phi, batch.X), self.pairs.signs(batch.y), batch.weight, eta,
            state.rng.random((n, self.draws)), np.empty((n, self.n_vectors)),
        )  # fmt: skip


@compiled
def evaluate(code: int, gamma: float, X: Array, supports: Array, coef: Array) -> Array:
    """Return sum_j coef[k, j] k(x_i, support_j) of each row i and each model k that has these supports."""
    scores = np.empty((X.shape[0], coef.shape[0]))
    values = np.empty(supports.shape[0], X.dtype)
    for i in range(X.shape[0]):
        kernel_row(code, gamma, X[i], supports, values)
        for k in range(coef.shape[0]):
            scores[i, k] = dot(coef[k], values)
    return scores
