"""Models over mapped rows: the parts, checks and helpers that they share."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from math import floor, log10
from typing import Any, ClassVar, final

import numpy as np

from pairloom.base.batch import Batch, Scored
from pairloom.base.checks import check_choice
from pairloom.base.compiled import row_dots
from pairloom.base.csr import CSRRows, is_sparse
from pairloom.base.randomness import fresh_seed, generator
from pairloom.base.spec import StateSpec
from pairloom.base.tree import cast
from pairloom.base.typing import Array
from pairloom.engines import reference, sparse
from pairloom.engines.base import Engine, EngineName, check_engine, engines_of, run_engine, working_dtype
from pairloom.engines.state import CUT, LONG, SKIPPED, STEPS, WORST, State
from pairloom.features import FeatureMap, Identity
from pairloom.features.capabilities import explainable_of, fix_features, rows_used_to_grow
from pairloom.features.contributions import Explainable
from pairloom.models.base import Dtype, Instability, Model, code_of
from pairloom.pairs import OppositeClass, Pairs
from pairloom.steps import Average, Constant, Schedule

WARM_ROWS = 1024
"""Number of first rows from which data-dependent settings are fixed, unless the feature map needs more."""


@dataclass(frozen=True)
class Mapped(Model):
    """A model over rows mapped by phi."""

    engines: ClassVar[Mapping[str, Sequence[Engine]]]
    """Engines by name, in order of preference."""
    adapts: ClassVar[bool] = False
    """Whether the model supports steps per coordinate."""
    weights_spec: ClassVar[Mapping[str, str]] = {}
    """Specifications of ``State.w`` and ``State.w_bar``, if they are not the usual weight vectors."""

    features: FeatureMap = field(default_factory=Identity)
    pairs: Pairs = field(default_factory=OppositeClass)
    _: KW_ONLY
    step: Schedule = field(default_factory=lambda: Constant(0.125))
    average: Average = "last"
    dtype: Dtype = "float32"
    seed: int | None = None
    engine: EngineName | Engine = "auto"

    def __post_init__(self) -> None:
        check_choice("average", self.average, Average)
        check_choice("dtype", self.dtype, Dtype)
        if self.step.per_coordinate and not self.adapts:
            raise ValueError(
                f"{type(self).__name__} takes one step for all coordinates, such as Constant(...) or Sqrt(...); "
                f"got {self.step}"
            )
        check_engine(self)
        if self.seed is None:
            object.__setattr__(self, "seed", fresh_seed())

    @property
    def n_vectors(self) -> int:
        return len(self.pairs.targets)

    @property
    def takes_nan(self) -> bool:
        return self.features.takes_nan

    @property
    def needs_data(self) -> bool:
        """Whether any part depends on data."""
        return self.features.needs_data

    @final
    @property
    def warm_rows(self) -> int:
        return max(WARM_ROWS, self.features.warm_rows) if self.needs_data else 0

    @final
    def state_spec(self, n_features: int, t: int, room: int) -> StateSpec:
        spec = super().state_spec(n_features, t, room)
        phi = self.features.state_spec(n_features, t, len(self.pairs.targets))
        D = phi.symbols["D"]
        memory = self.memory_spec(n_features, D)
        sizes = {"D": D, "a": D if self.average != "last" else 0, "o": 0, "l": 0, "R": code_of(self.work)}
        return replace(
            spec, symbols={**spec.symbols, **sizes, **memory.symbols},
            parts={"phi": phi, "memory": replace(memory, symbols={})}, fields=self.weights_spec,
            check=partial(self.check_state, t),
        )  # fmt: skip

    @abstractmethod
    def memory_spec(self, n_features: int, dim: int) -> StateSpec:
        """Return the specification of ``State.memory``, for rows mapped to ``dim`` features."""

    @abstractmethod
    def check_state(self, t: int, state: State) -> None:
        """Raise ValueError unless this is a state after t rows."""

    @final
    @property
    def work(self) -> np.dtype:
        """The dtype of the arrays that learning updates."""
        return np.dtype(working_dtype(self))

    @final
    @property
    def by_specification(self) -> bool:
        """Whether the reference engine learns the model, not compiled code."""
        return all(engine.any_part for engine in engines_of(self))

    @final
    def rounded(self, phi: Any) -> Any:
        """Return a map's float64 arrays rounded to ``dtype``, so that they are the same for every engine."""
        return cast(cast(phi, self.dtype), self.work)

    @final
    def warm(self, first: Batch | None) -> Batch | None:
        """Return the first rows from which data-dependent settings are fixed."""
        return first[: self.warm_rows] if first is not None and self.needs_data else None

    @final
    def begin(self, n_features: int, first: Batch | None, memory: Callable[[Any, Any], Any]) -> State:
        """Return the state before the first row; ``memory(phi, rows)`` creates its memory."""
        assert self.seed is not None
        rng = generator(self.seed)
        rows = None if first is None else first.X
        phi = self.rounded(fix_features(self.features, n_features, self._coded(first), rng))
        kept = memory(phi, None if rows is None else rows.astype(self.work, copy=False))
        w = np.zeros((self.n_vectors, self.features.n_outputs(n_features)), self.work)
        labelled = self.features.labelled
        if first is not None and labelled is not None:
            start = labelled.first_weights(phi, first, classes(self.pairs), self.pairs.exact)
            if start is not None and len(start) == len(w):
                w[:] = start.astype(self.dtype)
        return State(phi, cast(kept, self.work), rng, w, w.copy())

    @final
    def _coded(self, first: Batch | None) -> Batch | None:
        """Return the first rows with integer class codes, which maps can distinguish from real labels."""
        if first is None or self.pairs.n_groups == 0:
            return first
        return Batch(first.X, first.y.astype(np.int64), first.weight, first.query)

    @final
    def learn(self, state: State, batch: Batch) -> Scored:
        """Learn rows with an engine, except those whose labels fixed the map."""
        rest = trainable_rows(self.features, state, batch)
        return scored(state, batch, run_engine(self, state, rest) if len(rest) else np.zeros((0, self.n_vectors)))

    @final
    def cut_share(self, state: State) -> float:
        """Return the share of steps that were cut or skipped, because they would have diverged; rows of weight 1."""
        cut, skipped = float(state.tally[CUT]), float(state.tally[SKIPPED])
        return (cut + skipped) / max(float(state.tally[STEPS]) + skipped, 1.0)

    @final
    def instability(self, state: State, reported: float) -> Instability | None:
        """Return a warning if steps were cut or skipped; repeat it when the largest safe step has halved.

        The message recommends half of that step: shorter steps follow another path, with possibly larger curvature.
        """
        if state.pace is not None:  # steps of a part, which are cut on purpose
            return None
        scaling = "" if self.features.scale else ", or scale the columns"
        if state.tally[SKIPPED]:
            safe = 0.0
            what = "the weights" if self.step.per_coordinate else "eta or the weights"
            text = f"{self.dtype} overflowed: steps were skipped. Lower {what}{scaling}, or use dtype='float64'."
        elif state.tally[CUT]:
            safe = round_down(self.step.eta * reference.MAX_INSTABILITY / state.tally[WORST])
            text = (
                f"eta={self.step.eta:g} is too long a step for these rows and was cut where it would have diverged; "
                f"the largest safe step so far is {safe:g}. Lower eta to half of it, {0.5 * safe:g}{scaling}."
            )
        elif state.tally[LONG] and self.step.eta > 1:  # otherwise the rows' weights are too large
            safe = self.step.eta
            text = (
                f"steps of eta={safe:g}, times the rows' weights, moved the model by more than "
                f"{np.sqrt(reference.LONG_STEP_SQUARED):,.0f}, although the target margins are 1. Lower eta or the "
                f"weights{scaling}."
            )
        else:
            return None
        return Instability(safe, text) if safe < 0.5 * reported else None


@dataclass(frozen=True)
class RowByRow:
    """The specification of a model with custom steps: ``model.learn_row`` for each row, in float64."""

    double: ClassVar[bool] = True
    any_part: ClassVar[bool] = True

    def takes(self, model: Any, state: State, batch: Batch) -> bool:
        return True

    def run(self, model: Any, state: State, batch: Batch) -> Array:
        return np.array([model.learn_row(state, batch[i : i + 1]) for i in range(len(batch))])


@dataclass(frozen=True)
class InBlocks:
    """Compiled loops of a model with custom steps: ``model.learn_rows`` for each of ``model.blocks``."""

    double: ClassVar[bool] = False
    any_part: ClassVar[bool] = False

    def takes(self, model: Any, state: State, batch: Batch) -> bool:
        return True

    def run(self, model: Any, state: State, batch: Batch) -> Array:
        return np.concatenate([model.learn_rows(state, batch[rows]) for rows in model.blocks(state, batch.X)])


def trainable_rows(features: FeatureMap, state: State, batch: Batch) -> Batch:
    """Return the rows to learn, without those whose labels fixed the map; count the latter in the state."""
    if features.labelled is None:
        return batch
    skip = min(len(batch), max(0, rows_used_to_grow(features, state.phi) - state.t))
    state.t += skip
    return batch[skip:] if skip else batch


def scored(state: State, batch: Batch, scores: Array) -> Scored:
    """Return rows with scores, given the scores of the last rows; the others get score 0 and weight 0."""
    skip, weight = len(batch.y) - len(scores), batch.weight
    if skip:
        scores = np.concatenate([np.zeros((skip, scores.shape[1])), scores])
        weight = np.concatenate([np.zeros(skip), weight[skip:]])
    return Scored(state.t, scores, batch.y, weight, batch.query)


def classes(pairs: Pairs) -> Array:
    """Return the classes that have a weight vector; empty if labels are numbers."""
    return pairs.targets if pairs.n_groups else np.zeros(0)


def linear_scores(features: FeatureMap, state: State, coef: Array, X: Any) -> Array:
    """Return <w, phi(x)> of valid rows for each row w of ``coef``: (rows, weights)."""
    by_cells = features.sparse
    if by_cells is not None or (features.keeps_csr and is_sparse(X)):
        rows = CSRRows.of(features.apply(state.phi, X)) if by_cells is None else by_cells.rows(state.phi, X)
        scores = [sparse.scores(features, state, rows, w) for w in coef]
    else:
        Z = features.apply(state.phi, X)
        scores = [row_dots(Z, w) for w in coef]
    return np.ascontiguousarray(np.array(scores, dtype=float).T)


def explainable_scores(features: FeatureMap, state: State, coef: Array) -> Explainable | None:
    """Return ``linear_scores`` as a sum that can compute the contributions of columns; None if there is none."""
    racing, slopes = features.racing, np.ones((1, len(coef)))
    return None if racing is None else explainable_of(racing.linear_sum(state.phi, coef[None], slopes))


def round_down(value: float) -> float:
    """Round down to three digits."""
    unit = 10.0 ** (floor(log10(value)) - 2)
    return float(floor(value / unit) * unit)
