"""One learner with several step sizes: all models share one lookup of a row's cells."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from pairloom.base.batch import Batch, Scored
from pairloom.base.spec import StateSpec
from pairloom.base.tree import copy
from pairloom.base.typing import Array
from pairloom.engines import cells
from pairloom.engines.base import Engine, EngineName, run_engine
from pairloom.engines.state import State
from pairloom.features import FeatureMap
from pairloom.features.capabilities import LinearSum
from pairloom.models.base import Dtype, Many
from pairloom.models.learner import Learner, catch_up
from pairloom.models.mapped import scored, trainable_rows
from pairloom.pairs import Pairs


@dataclass(frozen=True, repr=False)
class StepPath(Many):
    """The models of ``learner`` with steps ``AdaGrad(eta)``, one for each of ``etas``, over one map of cells.

    Each model learns as it would alone, up to rounding, except that a boosted forest grows on the scores of the middle
    model. The memory and the cells of a row do not depend on the model, and the weights of a cell are contiguous, so
    that six models take less than twice the time of one.

    Parameters
    ----------
    learner : a learner with steps per coordinate over a map of cells, such as :class:`~pairloom.features.Forest`,
        without average or ball.
    etas : the step sizes, which replace that of the learner.

    Learn with ``Stream(path)``: ``stream.score(X)`` has a column for each model, ``stream.auc()`` an AUC, and
    ``stream.only(i)`` is the stream of model i alone, which continues from the state of the path.

    Cost: see :mod:`pairloom.engines.cells`; 2 D numbers for each model.

    >>> from pairloom import Stream
    >>> from pairloom.features import Forest
    >>> from pairloom.losses import SquaredHinge
    >>> from pairloom.memory import Latest
    >>> from pairloom.steps import AdaGrad
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(3000, 2)), np.ones(3000)
    >>> y[(X ** 2).sum(axis=1) > 2] = -1
    >>> one = Learner(Forest(20), loss=SquaredHinge(), memory=Latest(size=4), step=AdaGrad(0.1), seed=0)
    >>> stream = Stream(StepPath(one, [0.01, 0.1])).partial_fit(X, y)
    >>> stream.auc().shape, bool((stream.auc() > 0.95).all())
    ((2,), True)
    """

    engine: ClassVar[EngineName] = "auto"
    engines: ClassVar[Mapping[str, Sequence[Engine]]] = {"fused": (cells.PathEngine(),)}

    learner: Learner
    etas: tuple[float, ...]
    pairs: Pairs = field(compare=False)
    dtype: Dtype = field(compare=False)
    seed: int | None = field(compare=False)

    def __init__(self, learner: Learner, etas: Iterable[float]) -> None:
        try:
            etas = tuple(map(float, etas))
        except (TypeError, ValueError):
            raise ValueError(f"etas must be numbers, such as [0.01, 0.1]; got {etas!r}") from None
        if not etas:
            raise ValueError("etas is empty: a path needs at least one step, such as [0.01, 0.1]")
        if not learner.by_cells:
            raise ValueError(
                "a path needs a learner with step=AdaGrad(...), a map of cells such as Forest(100), average='last', a "
                f"penalty without a ball, and a memory of rows, not of their means; got {learner}"
            )
        for eta in etas:
            replace(learner.step, eta=eta)  # raises ValueError for an invalid eta
        one = replace(learner, step=replace(learner.step, eta=etas[0]))
        values = {"learner": one, "etas": etas, "pairs": one.pairs, "dtype": one.dtype, "seed": one.seed}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"<StepPath of {self.etas} for {self.learner}>"

    def __len__(self) -> int:
        return len(self.etas)

    @property
    def n_vectors(self) -> int:
        return len(self) * self.learner.n_vectors

    @property
    def takes_nan(self) -> bool:
        return self.learner.takes_nan

    @property
    def warm_rows(self) -> int:
        return self.learner.warm_rows

    def init(self, n_features: int, first: Batch | None) -> State:
        """Return the state, in which ``w`` and ``squares`` are (targets, D, models), and there is no average."""
        state = self.learner.init(n_features, first)
        state.w = np.repeat(state.w[:, :, None], len(self), axis=2)
        state.squares, state.w_bar = np.zeros_like(state.w), state.w[:, :0]
        state.tally = np.zeros((len(state.tally), len(self)))
        return state

    def run(self, state: State, batch: Batch) -> Scored:
        catch_up(self.learner, state)
        rest = trainable_rows(self.features, state, batch)
        made = scored(state, batch, run_engine(self, state, rest) if len(rest) else np.zeros((0, self.n_vectors)))
        growing = self.features.growing
        if growing is not None:
            growing.remember(state.phi, batch, made.scores.reshape(len(batch), len(self), -1)[:, len(self) // 2])
        return made

    @property
    def features(self) -> FeatureMap:
        """The map of the learner."""
        return self.learner.features

    def score(self, state: State, X: Any) -> Array:
        """Return <w, phi(x)> of each row and model."""
        assert self.features.sparse is not None
        return cells.by_model(cells.score(self.features.sparse.cells(state.phi, X), state.w))

    def linear_sum(self, state: State, slopes: Array) -> LinearSum | None:
        racing = self.features.racing
        return None if racing is None else racing.linear_sum(state.phi, state.w.transpose(2, 0, 1), slopes)

    def state_spec(self, n_features: int, t: int, room: int) -> StateSpec:
        if len(self) * max(1, self.pairs.n_groups) > room:
            raise ValueError(f"{self!r:.80} has more weights than the file has numbers")
        spec, k = self.learner.state_spec(n_features, t, room), self.learner.n_vectors
        fields = {"w": "R k D G", "w_bar": "R k 0 G", "squares": "R k D G 0:1e38", "tally": "f8 7 G 0:LATE"}
        return replace(spec, symbols={**spec.symbols, "v": self.n_vectors, "k": k, "G": len(self)}, fields=fields)

    def next_row(self, state: State) -> int:
        return self.learner.next_row(state)

    @property
    def limited(self) -> Learner | None:
        """The learner, if its memory is limited."""
        return self.learner.limited

    @property
    def forgetting(self) -> Learner | None:
        """The learner, if its parts can forget."""
        return self.learner.forgetting

    def merge(self, base: State, parts: Sequence[State]) -> State:
        return self.learner.merge(base, parts)

    def coef(self, state: State) -> Array:
        """Return the weights: one row per model, or one per model and class if there are more than two classes."""
        return state.w.transpose(2, 0, 1).reshape(self.n_vectors, -1)

    def pick(self, index: int) -> Learner:
        """Return one of the learners."""
        return replace(self.learner, step=replace(self.learner.step, eta=self.etas[index]))

    def only(self, index: int, state: State) -> tuple[State, Array]:
        """Return the state of one of the learners, and the columns of its scores."""
        assert state.squares is not None
        n = self.learner.n_vectors
        w, squares = (np.ascontiguousarray(a[:, :, index]) for a in (state.w, state.squares))
        one = replace(state, w=w, w_bar=np.zeros_like(w), squares=squares, tally=state.tally[:, index])
        return copy(one), range(len(self))[index] * n + np.arange(n)
