"""Models on exact kernels: a sum of kernels at kept examples, in place of a weight vector."""

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from pairloom.base.batch import Batch, Scored
from pairloom.base.clock import NEVER
from pairloom.base.compiled import compiled, dot
from pairloom.base.tree import node
from pairloom.base.typing import Array
from pairloom.engines.base import run_engine
from pairloom.engines.fused import BLOCK_BYTES
from pairloom.engines.reference import HEAVY
from pairloom.engines.state import State
from pairloom.features import Gaussian, Identity, Kernel, Linear
from pairloom.features.exact import kernel_row
from pairloom.models.base import Mapped, Trouble
from pairloom.pairs import OppositeClass
from pairloom.steps import Constant, Schedule


@node
class ExpansionState:
    """What every expansion keeps: the kernel's width (0-d). One with more to keep extends it."""

    gamma: Array


@dataclass(frozen=True)
class KernelRow:
    """One example: x scaled, ``y`` +1 or -1 for each target, ``eta`` the step times the weight, uniform ``draws``."""

    x: Array
    y: Array
    weight: float
    eta: float
    draws: Array


class KernelBlock(NamedTuple):
    """Many rows, for a compiled loop, which takes it as a plain tuple; fields as in :class:`KernelRow`.

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

    A subclass says what it keeps (``start``), where the sum is in it (``terms``) and what it does with a row, twice:
    ``step_row`` is the specification, in NumPy and float64, ``run_block`` the same over many rows, compiled. With more
    than two classes there is one sum for each class against the rest.

    Parameters
    ----------
    kernel : k, with its width rule; one width for all columns.
    features : the scaled input, which the kernel sees. CSR rows become dense block by block.
    pairs, step, dtype, seed, engine : as in :class:`~pairloom.Learner`.

    Cost of a score: d flops and one kernel value for each support.
    """

    large_products: ClassVar[bool] = False

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
        """Uniform random numbers used up by each example."""

    @abstractmethod
    def start(self, gamma: Array, dim: int) -> ExpansionState:
        """What is kept before the first row: arrays of ``dtype``, float64 where things add up over the stream."""

    @abstractmethod
    def terms(self, kept: Any) -> list[tuple[Array, Array]]:
        """Supports (n, d) and coefficients (m, n) of all targets, in order: m targets may share their supports."""

    @abstractmethod
    def step_row(self, state: State, row: KernelRow) -> None:
        """The specification: learn one row for every target."""

    @abstractmethod
    def run_block(self, state: State, block: KernelBlock) -> None:
        """``step_row`` and scores for the rows of a block."""

    @property
    def n_vectors(self) -> int:
        return len(self.pairs.targets)

    @property
    def needs_data(self) -> bool:
        return self.features.needs_data or self.kernel.gamma == "median"

    def begin_empty(self, n_features: int, first: Batch | None) -> State:
        """The state before the first row; there are no weights."""
        state = self.begin(
            n_features, first,
            lambda phi, rows: self.start(self.kernel.width_of(n_features, rows, phi.scaler), n_features),
        )  # fmt: skip
        state.w, state.w_bar = state.w[:, :0], state.w_bar[:, :0]
        return state

    def run(self, state: State, batch: Batch) -> Scored:
        scores = run_engine(self, state, batch)
        return Scored(state.t, scores, batch.y, batch.weight, batch.query)

    def score(self, state: State, X: Any) -> Array:
        """f of each row; each row's kernels are evaluated on their own."""
        terms = [(supports, np.ascontiguousarray(coef)) for supports, coef in self.terms(state.memory)]
        scores = np.zeros((X.shape[0], self.n_vectors))
        for rows in self.blocks(X.shape[0], X.shape[1]):
            Z, gamma, k = self.features.dense(state.phi, X[rows]), float(state.memory.gamma), 0
            for supports, coef in terms:
                if len(supports):
                    scores[rows, k : k + len(coef)] = evaluate(self.kernel.code, gamma, Z, supports, coef)
                k += len(coef)
        return scores

    def next_row(self, state: State) -> int:
        return NEVER

    def trouble(self, state: State, told: float) -> Trouble | None:
        return self.stable(state, told)

    def values(self, state: State, x: Array, supports: Array) -> Array:
        """k(x, support) of every support, by the specification; equal supports have equal values."""
        return np.asarray(self.kernel(state.memory.gamma, x[None, :], supports)[0])

    def blocks(self, n: int, n_features: int) -> list[slice]:
        """Blocks of rows that are dense at a time."""
        rows = max(8, BLOCK_BYTES // (8 * max(n_features, self.draws)))
        return [slice(start, start + rows) for start in range(0, n, rows)]


def make_block(model: Expansion, state: State, batch: Batch) -> KernelBlock:
    """The next rows, with all that a step needs to know; the state counts them."""
    n = len(batch)
    t = state.ages(n)
    eta = model.step.at(t) * np.minimum(batch.weight, HEAVY)
    state.t += n
    return KernelBlock(
        model.features.dense(state.phi, batch.X), model.pairs.signs(batch.y), batch.weight, eta,
        state.rng.random((n, model.draws)), np.empty((n, model.n_vectors)),
    )  # fmt: skip


@dataclass(frozen=True)
class RowByRow:
    """The specification: one row at a time, in float64."""

    double: ClassVar[bool] = True
    any_part: ClassVar[bool] = True

    def takes(self, model: Expansion, state: State, batch: Batch) -> bool:
        return True

    def run(self, model: Expansion, state: State, batch: Batch) -> Array:
        return np.array([self.step(model, state, batch[i : i + 1]) for i in range(len(batch))])

    def step(self, model: Expansion, state: State, one: Batch) -> Array:
        """Learn one row."""
        block = make_block(model, state, one)
        row = KernelRow(block.X[0], block.y[0], float(block.weight[0]), float(block.eta[0]), block.draws[0])
        scores = [coef @ model.values(state, row.x, supports) for supports, coef in model.terms(state.memory)]
        model.step_row(state, row)
        return np.concatenate(scores)


@dataclass(frozen=True)
class InBlocks:
    """Blocks of rows, scaled together and learned by a compiled loop."""

    double: ClassVar[bool] = False
    any_part: ClassVar[bool] = False

    def takes(self, model: Expansion, state: State, batch: Batch) -> bool:
        return True

    def run(self, model: Expansion, state: State, batch: Batch) -> Array:
        scores = []
        for rows in model.blocks(len(batch), batch.X.shape[1]):
            block = make_block(model, state, batch[rows])
            model.run_block(state, block)
            scores.append(block.scores)
        return np.concatenate(scores)


Expansion.engines = {"reference": (RowByRow(),), "fused": (InBlocks(),)}


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
