"""The contract of a feature map."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from pairloom.base.batch import Batch
from pairloom.base.clock import NEVER
from pairloom.base.csr import Rows, is_sparse
from pairloom.base.typing import Array
from pairloom.features.linear_sum import LinearSum
from pairloom.features.scaling import Scaler, Scaling, check_scaling

LOOKUP = 300.0
"""What a node on the way to a cell costs, in flops of a product of matrices: measured."""


@dataclass(frozen=True)
class Change(ABC):
    """What a map has become, and what that does to weights: arrays (targets, D, models), which it may write into."""

    phi: Any

    @abstractmethod
    def weights(self, w: Array) -> Array:
        """The weights for the new map."""

    @abstractmethod
    def squares(self, squares: Array) -> Array:
        """The sums of squared gradients of these."""


@dataclass(frozen=True)
class FeatureMap(ABC):
    """A map phi: R^d -> R^D, fixed before the first step and never changed by learning, unless it ``grows``.

    A map is a frozen rule. ``fix`` turns it into a state of plain arrays, with the first rows of the stream in
    hand if the rule speaks of data (``needs_data``); ``apply`` maps rows with that state. Rows are a dense array or
    CSR; CSR rows are never made dense in the input space.
    """

    keeps_csr: ClassVar[bool] = False
    """Whether phi is linear and maps CSR rows to CSR rows."""

    sparse: ClassVar[bool] = False
    """Whether phi(x) is CSR whatever x is; such a map has ``rows``, and engines keep none of its D-vectors dense."""

    takes_nan: ClassVar[bool] = False
    """Whether a value of x may be missing (NaN)."""

    scale: Scaling = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_scaling(self.scale)

    @property
    def needs_data(self) -> bool:
        """Whether ``fix`` looks at rows."""
        return self.scale is not None

    @property
    def grows(self) -> bool:
        """Whether phi changes as rows come: at some row numbers, by ``change``. A memory must then keep raw rows."""
        return False

    @property
    def n_cells(self) -> int:
        """m, if phi(x) is 1 / sqrt(m) in m of its coordinates, which ``cells`` gives, and 0 in all others; 0 if not."""
        return 0

    @property
    def warm_rows(self) -> int:
        """Rows from the start of the stream that ``fix`` wants to see at least; a learner keeps 1,024 in any case."""
        return 0

    @abstractmethod
    def n_outputs(self, n_features: int) -> int:
        """D, for inputs with ``n_features`` columns."""

    def flops(self, n_features: int) -> float:
        """Floating-point operations per row, about; a sine counts 50, an exponential 20."""
        return 2.0 * n_features * self.n_outputs(n_features)

    def upkeep(self, n_features: int) -> float:
        """What looking up cells, and growing the map, cost per row besides ``flops``, in flops, about."""
        return LOOKUP * self.n_cells

    def halved(self) -> "FeatureMap | None":
        """A map of the same kind and half the size, for a smaller budget; None if it has no size, or is small."""
        return None

    def numbers(self, n_features: int) -> int:
        """Numbers in the arrays of a fixed map, about."""
        return n_features * self.n_outputs(n_features)

    def fixing(self, n_features: int) -> int:
        """Bytes in use while the map is fixed, about, besides the rows: its arrays are made in float64."""
        return 8 * self.numbers(n_features)

    # Not abstract: most maps take any number of columns.
    def check(self, n_features: int) -> None:  # noqa: B027
        """Raise ValueError unless rows with so many columns can be mapped."""

    @abstractmethod
    def fix(self, n_features: int, rows: Array | None, rng: np.random.Generator) -> Any:
        """Arrays (float64, fields of a dataclass with a ``scaler``) that make this rule a function."""

    def fix_on(self, n_features: int, first: Batch | None, rng: np.random.Generator) -> Any:
        """``fix`` with the labels and weights of the first rows in hand, for a rule that uses them."""
        return self.fix(n_features, None if first is None else first.X, rng)

    def growers(self, state: Any) -> int:
        """How many of the first rows the map was fixed by with their labels: nobody may learn them again."""
        return 0

    def first_weights(self, state: Any, first: Batch | None, targets: Array, exact: bool = False) -> Array | None:
        """Weights (targets, D) with which learning begins, if labels made the map and tell them; None: zeros.

        ``targets``: classes of which there is a model, if any; ``exact``: scores are to differ as labels do.
        """
        return None

    def next_change(self, state: Any, t: int) -> int:
        """The first row, from row t on, after which a map that grows changes."""
        return NEVER

    def change(self, state: Any, t: int, targets: Array, exact: bool = False) -> Change:
        """What a map that grows becomes after row t; ``targets`` and ``exact`` as in ``first_weights``."""
        raise NotImplementedError(f"{type(self).__name__} does not grow")

    # Not abstract: few maps look back.
    def remember(self, state: Any, batch: Batch, scores: Array) -> None:  # noqa: B027
        """Take rows in that were learned, and the scores (rows, targets) that they came with."""

    @property
    def forgets(self) -> bool:
        """Whether a map that grows can ``forget``."""
        return False

    # Not abstract: most maps are fixed by the first rows, for good.
    def forget(self, state: Any, t: int, keep: float) -> None:  # noqa: B027
        """After row t, let the rows so far count ``keep`` times as much in what the map becomes."""

    @abstractmethod
    def apply(self, state: Any, X: Array) -> Array:
        """phi(X), a new C-contiguous array of X's dtype (CSR where phi is sparse, or linear and X is CSR).

        A row's bits do not depend on the other rows.
        """

    def rows(self, state: Any, X: Any) -> Rows:
        """phi(X) of a ``sparse`` map as compiled code takes it: a row's entries in the order of the columns."""
        raise NotImplementedError(f"{type(self).__name__} maps to dense rows")

    def cells(self, state: Any, X: Any) -> Array:
        """(rows, m), in order: the coordinates of phi(X) that are not 0, if there are m of them in all rows."""
        raise NotImplementedError(f"{type(self).__name__} is no map of cells")

    def dense(self, state: Any, X: Any) -> Array:
        """phi(X), dense whatever X is; where phi keeps CSR rows these become dense before they are centred."""
        Z: Any = self.apply(state, X.toarray() if self.keeps_csr and is_sparse(X) else X)
        made: Array = Z.toarray() if self.sparse else Z
        return made

    def linear_sum(self, state: Any, w: Array, slopes: Array) -> LinearSum | None:
        """The sum over models m of slopes_m <w_m, phi(x)>, by a loop of its own; None if it has none.

        ``w`` (models, classes, D) and ``slopes`` (models, classes). Without it, scores are those of ``apply``, and a
        race over this map cannot be frozen.
        """
        return None

    def inputs(self, state: Any, X: Array) -> Array:
        """The scaled inputs, the other space in which examples may be clustered; CSR stays CSR, not centred."""
        scaler: Scaler = state.scaler
        scaled: Array = scaler.apply(X)
        return scaled
