"""The interface of models: frozen values with ``init``, ``run`` and ``score``, which act on a state."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np

from pairloom.base.batch import Batch, Scored
from pairloom.base.capabilities import MayBeLimited
from pairloom.base.clock import NEVER
from pairloom.base.compact import Form
from pairloom.base.csr import is_sparse
from pairloom.base.graph import HasGraph, Value, no_graph
from pairloom.base.merging import cannot_merge
from pairloom.base.spec import StateSpec, return_type
from pairloom.base.typing import Array
from pairloom.features.capabilities import FrozenShare, FrozenSum, LinearSum, explainable_of
from pairloom.features.contributions import Explainable
from pairloom.features.encoding import Encoding
from pairloom.pairs import Pairs

Dtype = Literal["float32", "float64"]


class Instability(NamedTuple):
    """A warning for the user, and its level: lower is worse."""

    level: float
    text: str


class Model(HasGraph, MayBeLimited, ABC):
    """A model that learns from a stream of rows. It is immutable; only the state, created by ``init``, changes.

    A stream (:class:`~pairloom.Stream`) owns the state, keeps the first rows until data-dependent settings are fixed,
    and never passes rows on both sides of ``next_row`` to one call of ``run``.

    Most models need only ``n_vectors``, ``init``, ``run`` and ``score``; everything else has a default. Optional
    features are capabilities: properties that are None, or the model itself.
    """

    pairs: Pairs
    dtype: Dtype
    seed: int | None

    graph_forms: ClassVar[Mapping[str, str]] = {"score": "to_onnx"}

    large_products: ClassVar[bool] = False
    """Whether even a single row may need a matrix product that BLAS would run on several threads."""

    steady: ClassVar[bool] = False
    """Whether scores change at ``next_row`` only, so that a race may let rows wait until then, and learn them at once.
    """

    @property
    @abstractmethod
    def n_vectors(self) -> int:
        """Number of weight vectors, which is also the number of scores of a row."""

    @abstractmethod
    def init(self, n_features: int, first: Batch | None) -> Any:
        """Return the state before the first row, a tree, with data-dependent settings fixed from the first rows.

        A model that needs all rows at once gets all of them as ``first``, and learns them here.
        """

    @abstractmethod
    def run(self, state: Any, batch: Batch) -> Scored | None:
        """Learn rows in order; return the scores available so far, each computed before its row was learned."""

    @abstractmethod
    def score(self, state: Any, X: Any) -> Array:
        """Return scores (rows, vectors) of valid rows; the scores of a row do not depend on the other rows."""

    def to_onnx(self, state: Any, x: Value) -> Value:
        """Return scores (rows, vectors) in an ONNX graph: f8."""
        return no_graph(self)

    @property
    def takes_nan(self) -> bool:
        """Whether values of a row may be missing (NaN)."""
        return False

    def state_spec(self, n_features: int, t: int, room: int) -> StateSpec:
        """Return the specification of the state after t rows, in a file of ``room`` numbers.

        Symbols: ``d`` columns, ``v`` vectors, ``C`` classes (0: labels are numbers), ``X`` the dtype of rows.
        """
        groups = self.pairs.n_groups
        symbols = {"d": n_features, "v": self.n_vectors, "C": groups, "t": t, "nan": self.takes_nan}
        return StateSpec(return_type(type(self).init), {**symbols, "X": code_of(self.dtype)})

    @property
    def form(self) -> Form:
        """The form in which it receives mixed columns."""
        return "trees" if self.takes_nan else "numbers"

    def reading(self, encoding: Encoding) -> Self:
        """Return the model for rows with this encoding."""
        return self

    @property
    def warm_rows(self) -> int:
        """Number of first rows from which ``init`` fixes data-dependent settings; 0 if there are no such rules."""
        return 0

    def next_row(self, state: Any) -> int:
        """Return the next row, counted from 1, after which the model does something other than learning."""
        return NEVER

    def n_scored(self, state: Any, t: int) -> int | None:
        """Return how many of the t rows so far have a score; None if the state does not record it."""
        return t

    def waiting(self, state: Any) -> Scored | None:
        """Return the scores of rows that ``run`` has received but not learned; None if there are no such rows."""
        return None

    def instability(self, state: Any, reported: float) -> Instability | None:
        """Return a warning if it is worse than the level already reported, which is infinity at first."""
        return None

    def explainable(self, state: Any) -> Explainable | None:
        """Return its scores as a sum that can compute the contributions of columns; otherwise they are sampled."""
        return None

    def settle(self, state: Any) -> tuple[Any, Scored | None]:
        """Return a state that has learned all rows received, and the scores of those that had none yet.

        ``state`` does not change; it is returned if there are no such rows.
        """
        return state, None

    # Not abstract: few models keep codes.
    def recode(self, state: Any, codes: dict[int, Array]) -> None:
        """Give categories new codes in kept rows: ``codes[k]`` has those of the old codes of category column k."""

    def merge(self, base: Any, parts: Sequence[Any]) -> Any:
        """Return a new state that has learned the rows of ``base`` and those that each part learned beyond them.

        ``parts``: states that began as copies of ``base`` (:func:`~pairloom.base.merging.forked`). Changes none of
        them. Raises TypeError if the model cannot be merged, and ValueError, naming the part, if its structure is not
        that of the base.
        """
        raise cannot_merge(type(self).__name__, "its state is not a sum, a mean or a sample of rows")

    @property
    def many(self) -> "Many | None":
        """The model, if it consists of several models that learn together."""
        return None


class Many(Model):
    """Several models that learn together. In the scores, all classes of the first model come first.

    A race needs weighted sums of the models' scores, and a version of the models that only predicts. Both have
    defaults; a model whose scores are linear in the features of a map delegates ``linear_sum`` to that map. ``slopes``
    and ``shifts`` are (models, classes).
    """

    @property
    def many(self) -> "Many | None":
        return self

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def pick(self, index: int) -> Model:
        """Return one of the models."""

    @abstractmethod
    def only(self, index: int, state: Any) -> tuple[Any, Array]:
        """Return the state of one of the models, and the columns of its scores."""

    def shaped(self, scores: Array) -> Array:
        """Reshape scores (rows, vectors) for users: (rows, models), or (rows, models, classes) for more than two."""
        n = len(self.pairs.targets)
        return scores.reshape((len(scores), len(self), n) if n > 1 else (len(scores), len(self)))

    def quick(self, state: Any, X: Any) -> Array:
        """Return scores as ``score`` does, but with the weights last computed during learning if that is faster."""
        return self.score(state, X)

    def linear_sum(self, state: Any, slopes: Array) -> LinearSum | None:
        """Return the sum over models m of slopes_m s_m as one loop over dense rows, or None."""
        return None

    def explainable_sum(self, state: Any, slopes: Array) -> Explainable | None:
        """Return the ``linear_sum``, if it can compute the contributions of columns."""
        return explainable_of(self.linear_sum(state, slopes))

    def mixed_scores(self, state: Any, X: Any, slopes: Array, shifts: Array) -> Array:
        """Return the sum over models m of slopes_m (s_m - shifts_m): (rows, classes)."""
        total = None if is_sparse(X) else self.linear_sum(state, slopes)
        if total is None:
            scores = self.quick(state, X).reshape(X.shape[0], *slopes.shape)
            return np.asarray(((scores - shifts) * slopes).sum(axis=1))
        out = np.empty((X.shape[0], slopes.shape[1]))
        out[:] = -(slopes * shifts).sum(axis=0)
        total.add(X, out)
        return out

    def freeze(self, state: Any, slopes: Array, share: FrozenShare) -> FrozenSum | None:
        """Return ``mixed_scores``, without its offset, as separate arrays that only predict; None if impossible."""
        total = self.linear_sum(state, slopes)
        return None if total is None else total.frozen(share)


def shaped(model: Model, scores: Array) -> Array:
    """Reshape scores (rows, vectors) for users: one column per target, or one dimension if there is only one."""
    if model.many is not None:
        return model.many.shaped(scores)
    return scores[:, 0] if scores.shape[1] == 1 else scores


def code_of(dtype: Any) -> str:
    """Return the code of a dtype in specifications.

    >>> code_of("float32")
    'f4'
    """
    return str(np.dtype(dtype).str[1:])
