"""What learns: a frozen value with ``init``, ``run`` and ``score``. What was learned is a state, which it is given."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from math import floor, log10
from typing import Any, ClassVar, Literal, NamedTuple, final

import numpy as np

from pairloom.base.batch import Batch, Scored
from pairloom.base.checks import check_choice
from pairloom.base.compiled import row_dots
from pairloom.base.csr import Rows, is_sparse
from pairloom.base.randomness import fresh_seed, generator
from pairloom.base.tree import cast
from pairloom.base.typing import Array
from pairloom.engines import reference, sparse
from pairloom.engines.base import Engine, EngineName, candidates, check_engine, run_engine, works_in
from pairloom.engines.state import CUT, LONG, SKIPPED, WORST, State
from pairloom.features import FeatureMap, Identity
from pairloom.pairs import OppositeClass, Pairs
from pairloom.steps import Average, Constant, Schedule

Dtype = Literal["float32", "float64"]

WARM_ROWS = 1024
"""Rows kept for rules on data, unless the feature map asks for more."""

SCORE_ROWS = 4096
"""Rows mapped at once when scoring, so that a long X does not need D numbers for each row."""


class Trouble(NamedTuple):
    """What a user should be told, and a number for how bad it is: the lower, the worse."""

    level: float
    text: str


class Model(ABC):
    """What learns from a stream of rows. It holds nothing that changes: that is the state, made by ``init``.

    A stream (:class:`~pairloom.Stream`) owns the state, keeps the first rows while rules on data are open, and never
    lets ``run`` see rows on both sides of ``next_row``.
    """

    pairs: Pairs
    dtype: Dtype
    seed: int | None

    @property
    @abstractmethod
    def needs_data(self) -> bool:
        """Whether any part holds a rule on data: then ``init`` wants to see the first rows."""

    @property
    @abstractmethod
    def takes_nan(self) -> bool:
        """Whether values of a row may be missing (NaN)."""

    @property
    @abstractmethod
    def large_products(self) -> bool:
        """Whether even a single row may need a matrix product that BLAS would share out among threads."""

    @property
    @abstractmethod
    def n_vectors(self) -> int:
        """Scores of a row."""

    @abstractmethod
    def warm_rows(self, n_features: int) -> int:
        """The row at which rules on data are settled."""

    @abstractmethod
    def init(self, n_features: int, first: Batch | None) -> Any:
        """The state before the first row, a tree, with rules fixed from the first rows of the stream, if there are any.

        A model that needs all rows at once is given all of them, and learns them here.
        """

    @abstractmethod
    def run(self, state: Any, batch: Batch) -> Scored | None:
        """Learn rows in order; the scores that became known, each given before its row was learned."""

    @abstractmethod
    def score(self, state: Any, X: Any) -> Array:
        """Scores (rows, vectors) of valid rows by what was learned; a row's do not depend on the other rows."""

    @abstractmethod
    def shaped(self, scores: Array) -> Array:
        """Scores (rows, vectors) as users want them."""

    @abstractmethod
    def waiting(self, state: Any) -> Scored | None:
        """Scores of rows that were given to ``run`` and are still to be learned; None if there are no such rows."""

    @abstractmethod
    def next_row(self, state: Any) -> int:
        """The next row, counted from 1, after which something happens besides learning."""

    @abstractmethod
    def check_room(self, state: Any, n: int) -> None:
        """Raise ValueError unless ``n`` more rows can be learned; ``state`` is None before the first."""

    @abstractmethod
    def trouble(self, state: Any, told: float) -> Trouble | None:
        """What went wrong, if it is worse than what the user was told, a level, or infinity for nothing."""

    @property
    @abstractmethod
    def forgets(self) -> bool:
        """Whether there is anything to ``forget``: some rules hold on to nothing that is old."""

    @abstractmethod
    def forget(self, state: Any, keep: float) -> None:
        """Let all rows so far count ``keep`` times as much, 0 < keep < 1: the model becomes as one that saw fewer."""


@dataclass(frozen=True)
class Mapped(Model):
    """A model over rows mapped by phi: what such models share."""

    engines: ClassVar[Mapping[str, Sequence[Engine]]]
    """The ways to compute it, by name, in the order in which they are asked."""
    adapts: ClassVar[bool] = False
    """Whether it takes steps per coordinate."""

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

    @final
    @property
    def takes_nan(self) -> bool:
        """Whether values of a row may be missing: the map must take them, and no memory cluster rows by them."""
        return self.features.takes_nan and getattr(getattr(self, "memory", None), "space", "") != "input"

    def warm_rows(self, n_features: int) -> int:
        return max(WARM_ROWS, self.features.warm_rows)

    def shaped(self, scores: Array) -> Array:
        """One column per target, or none if there is but one."""
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def waiting(self, state: State) -> None:
        """None: all rows are learned at once."""

    @final
    @property
    def work(self) -> np.dtype:
        """Of the arrays that learning changes."""
        return np.dtype(works_in(self))

    @final
    @property
    def by_specification(self) -> bool:
        """Whether the specification computes it, and not compiled code."""
        return all(engine.any_part for engine in candidates(self))

    @final
    def rounded(self, phi: Any) -> Any:
        """A map's arrays, made in float64, with the values that ``dtype`` gives them: the same for every engine."""
        return cast(cast(phi, self.dtype), self.work)

    @final
    def warm(self, first: Batch | None) -> Batch | None:
        """The rows from which rules on data are fixed, of all rows that there are."""
        return None if first is None else first[: self.warm_rows(first.X.shape[1])]

    @final
    def begin(self, n_features: int, first: Batch | None, memory: Callable[[Any, Any], Any]) -> State:
        """The state before the first row; ``memory`` makes what is kept of the past from the map and the first rows."""
        assert self.seed is not None
        rng = generator(self.seed)
        rows = None if first is None else first.X
        phi = self.rounded(self.features.fix_on(n_features, self._labelled(first), rng))
        kept = memory(phi, None if rows is None else rows.astype(self.work, copy=False))
        w = np.zeros((self.n_vectors, self.features.n_outputs(n_features)), self.work)
        start = self.features.first_weights(phi, first, classes(self.pairs), self.pairs.exact)
        if start is not None and len(start) == len(w):
            w[:] = start.astype(self.dtype)
        return State(phi, cast(kept, self.work), rng, w, w.copy())

    @final
    def _labelled(self, first: Batch | None) -> Batch | None:
        """The first rows; codes of classes as whole numbers, so that they can be told from numbers."""
        if first is None or self.pairs.n_groups == 0:
            return first
        return Batch(first.X, first.y.astype(np.int64), first.weight, first.query)

    @final
    def learn(self, state: State, batch: Batch) -> Scored:
        """Learn rows by an engine; not those whose labels made the map."""
        rest = taught(self.features, state, batch)
        return scored(state, batch, run_engine(self, state, rest) if len(rest) else np.zeros((0, self.n_vectors)))

    @final
    def stable(self, state: State, told: float) -> Trouble | None:
        """Whether steps were cut or skipped: said once, and again when the largest safe step has halved.

        The advice is half of it: a shorter step takes another path, on which the curvature may be larger.
        """
        scaling = "" if self.features.scale else ", or scale the columns"
        if state.tally[SKIPPED]:
            safe = 0.0
            what = "the weights" if self.step.per_coordinate else "eta or the weights"
            text = f"{self.dtype} overflowed: steps were skipped. Lower {what}{scaling}, or use dtype='float64'."
        elif state.tally[CUT]:
            safe = round_down(self.step.eta * reference.STABLE / state.tally[WORST])
            text = (
                f"eta={self.step.eta:g} is too long a step for these rows and was cut where it would have diverged; "
                f"the largest safe step so far is {safe:g}. Lower eta to half of it, {0.5 * safe:g}{scaling}."
            )
        elif state.tally[LONG] and self.step.eta > 1:  # with a shorter one it is the rows' weights that are long
            safe = self.step.eta
            text = (
                f"steps of eta={safe:g}, times the rows' weights, moved the model by more than "
                f"{np.sqrt(reference.FAR):,.0f}, where margins of 1 are asked for. Lower eta or the weights{scaling}."
            )
        else:
            return None
        return Trouble(safe, text) if safe < 0.5 * told else None


def taught(features: FeatureMap, state: State, batch: Batch) -> Batch:
    """The rows that may be learned: not those whose labels made the map, which are counted as seen."""
    skip = min(len(batch), max(0, features.growers(state.phi) - state.t))
    state.t += skip
    return batch[skip:] if skip else batch


def scored(state: State, batch: Batch, scores: Array) -> Scored:
    """Rows with the scores of the last of them; those that were left out have no score, and weight 0."""
    skip, weight = len(batch) - len(scores), batch.weight
    if skip:
        scores = np.concatenate([np.zeros((skip, scores.shape[1])), scores])
        weight = np.concatenate([np.zeros(skip), weight[skip:]])
    return Scored(state.t, scores, batch.y, weight, batch.query)


def classes(pairs: Pairs) -> Array:
    """The classes of which there is a model each; none where labels are numbers."""
    return pairs.targets if pairs.n_groups else np.zeros(0)


def linear_scores(features: FeatureMap, state: State, coef: Array, X: Any) -> Array:
    """<w, phi(x)> of valid rows and each row w of ``coef``: (rows, weights)."""
    if X.shape[0] > SCORE_ROWS:
        cuts = range(0, X.shape[0], SCORE_ROWS)
        return np.concatenate([linear_scores(features, state, coef, X[at : at + SCORE_ROWS]) for at in cuts])
    if features.sparse or (features.keeps_csr and is_sparse(X)):
        rows = features.rows(state.phi, X) if features.sparse else Rows.of(features.apply(state.phi, X))
        scores = [sparse.scores(features, state, rows, w) for w in coef]
    else:
        Z = features.apply(state.phi, X)
        scores = [row_dots(Z, w) for w in coef]
    return np.column_stack(scores).astype(float, copy=False)


def round_down(value: float) -> float:
    """The largest number with three digits below ``value``."""
    unit = 10.0 ** (floor(log10(value)) - 2)
    return float(floor(value / unit) * unit)
