"""One learner with steps of several lengths: what is looked up for one is used for all."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from pairloom.base.batch import Batch, Scored
from pairloom.base.tree import copy
from pairloom.base.typing import Array
from pairloom.engines import cells
from pairloom.engines.base import Engine, EngineName, run_engine
from pairloom.engines.state import State
from pairloom.features.linear_sum import LinearSum
from pairloom.models.base import SCORE_ROWS, Dtype, Model, Trouble, scored, taught
from pairloom.models.learner import Learner, catch_up
from pairloom.models.many import Many
from pairloom.pairs import Pairs


@dataclass(frozen=True, repr=False)
class StepPath(Model, Many):
    """The models of ``learner`` with steps ``AdaGrad(eta)``, one for each of ``etas``, over one map of cells.

    Each is what it would be alone, up to rounding; but a boosted forest grows on the scores of the one in the middle.
    The memory and the cells of a row do not depend on a model, and the weights of a cell lie side by side, so that six
    models take less than twice the time of one.

    Parameters
    ----------
    learner : with steps per coordinate over a map of cells, such as :class:`~pairloom.Forest`, no average and no ball.
    etas : the lengths of the steps, in place of the learner's.

    Learn with ``Stream(path)``: ``stream.score(X)`` has a column for each model, ``stream.auc()`` an area, and
    ``stream.only(i)`` is the stream of model i alone, which goes on where the path is.

    Cost: see :mod:`pairloom.engines.cells`; 2 D numbers for each model.

    >>> from pairloom import AdaGrad, Forest, Latest, SquaredHinge, Stream
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(3000, 2)), np.ones(3000)
    >>> y[(X ** 2).sum(axis=1) > 2] = -1
    >>> one = Learner(Forest(20), loss=SquaredHinge(), memory=Latest(size=4), step=AdaGrad(0.1), seed=0)
    >>> stream = Stream(StepPath(one, [0.01, 0.1])).partial_fit(X, y)
    >>> stream.auc().shape, bool((stream.auc() > 0.95).all())
    ((2,), True)
    """

    engine: ClassVar[EngineName] = "auto"
    engines: ClassVar[Mapping[str, Sequence[Engine]]] = {"fused": (cells.OfPath(),)}
    large_products: ClassVar[bool] = False

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
            raise ValueError("a path needs at least one step")
        if not learner.by_cells:
            raise ValueError(
                "a path takes a learner with step=AdaGrad(...), a map of cells such as Forest(100), average='last', a "
                f"penalty without a ball, and a memory of rows, not of their means; got {learner}"
            )
        for eta in etas:
            replace(learner.step, eta=eta)  # says what is wrong with it
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
    def needs_data(self) -> bool:
        return self.learner.needs_data

    @property
    def takes_nan(self) -> bool:
        return self.learner.takes_nan

    def warm_rows(self, n_features: int) -> int:
        return self.learner.warm_rows(n_features)

    def init(self, n_features: int, first: Batch | None) -> State:
        """``w`` and ``squares`` are (targets, D, models); there is no average."""
        state = self.learner.init(n_features, first)
        state.w = np.repeat(state.w[:, :, None], len(self), axis=2)
        state.squares, state.w_bar = np.zeros_like(state.w), state.w[:, :0]
        state.tally = np.zeros((len(state.tally), len(self)))
        return state

    def run(self, state: State, batch: Batch) -> Scored:
        catch_up(self.learner, state)
        rest = taught(self.features, state, batch)
        made = scored(state, batch, run_engine(self, state, rest) if len(rest) else np.zeros((0, self.n_vectors)))
        if self.features.grows:
            middle = made.scores.reshape(len(batch), len(self), -1)[:, len(self) // 2]
            self.features.remember(state.phi, batch, middle)
        return made

    @property
    def features(self) -> Any:
        """The learner's."""
        return self.learner.features

    def score(self, state: State, X: Any) -> Array:
        """<w, phi(x)> of each row by each model."""
        cuts = range(0, X.shape[0], SCORE_ROWS)
        parts = [cells.score(self.features.cells(state.phi, X[at : at + SCORE_ROWS]), state.w) for at in cuts]
        return cells.flat(np.concatenate(parts)) if parts else np.zeros((0, self.n_vectors))

    def linear_sum(self, state: State, slopes: Array) -> LinearSum | None:
        total: LinearSum | None = self.features.linear_sum(state.phi, state.w.transpose(2, 0, 1), slopes)
        return total

    def shaped(self, scores: Array) -> Array:
        """(rows, models), or (rows, models, classes) for more than two classes."""
        n = self.learner.n_vectors
        return scores.reshape((len(scores), len(self), n) if n > 1 else (len(scores), len(self)))

    def waiting(self, state: State) -> None:
        """None: all rows are learned at once."""

    def next_row(self, state: State) -> int:
        return self.learner.next_row(state)

    def check_room(self, state: State | None, n: int) -> None:
        self.learner.check_room(state, n)

    def trouble(self, state: State, told: float) -> Trouble | None:
        """None: no step per coordinate is too long."""
        return None

    @property
    def forgets(self) -> bool:
        return self.learner.forgets

    def forget(self, state: State, keep: float) -> None:
        self.learner.forget(state, keep)

    def coef(self, state: State) -> Array:
        """One row per model, or with more than two classes one for each of its classes."""
        return state.w.transpose(2, 0, 1).reshape(self.n_vectors, -1)

    def pick(self, index: int) -> Learner:
        """One of the learners."""
        return replace(self.learner, step=replace(self.learner.step, eta=self.etas[index]))

    def only(self, index: int, state: State) -> tuple[State, Array]:
        """What one of the learners has learned, and the columns of its scores."""
        assert state.squares is not None
        n = self.learner.n_vectors
        w, squares = (np.ascontiguousarray(a[:, :, index]) for a in (state.w, state.squares))
        one = replace(state, w=w, w_bar=np.zeros_like(w), squares=squares, tally=state.tally[:, index])
        return copy(one), range(len(self))[index] * n + np.arange(n)
