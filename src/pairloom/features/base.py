"""The base class of feature maps."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pairloom.base.capabilities import Forgets
from pairloom.base.csr import is_sparse
from pairloom.base.graph import HasGraph, Value, no_graph
from pairloom.base.spec import StateSpec, return_type
from pairloom.base.typing import Array
from pairloom.features.scaling import Scaler, Scaling, check_scaling

if TYPE_CHECKING:
    from pairloom.features.capabilities import GrowingMap, LabelledMap, RacingMap, SparseMap


@dataclass(frozen=True)
class FeatureMap(HasGraph, ABC):
    """A map phi: R^d -> R^D, fixed before the first step and not changed by learning, unless it is ``growing``.

    A map is a frozen rule. ``fix`` turns it into a state of plain arrays, given the first rows of the stream if the map
    depends on data (``needs_data``); ``apply`` maps rows with that state. Rows are a dense array or CSR; CSR rows are
    never made dense in the input space.

    Optional features are capabilities (``features/capabilities.py``). Each capability has a property in this class,
    which is None by default; a map with the capability returns itself.
    """

    graph_forms: ClassVar[Mapping[str, str]] = {"apply": "to_onnx"}

    keeps_csr: ClassVar[bool] = False
    """Whether phi is linear and maps CSR rows to CSR rows."""

    takes_nan: ClassVar[bool] = False
    """Whether values of x may be missing (NaN)."""

    scale: Scaling = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_scaling(self.scale)

    @property
    def needs_data(self) -> bool:
        """Whether ``fix`` uses rows."""
        return self.scale is not None

    @property
    def warm_rows(self) -> int:
        """Minimum number of rows, from the start of the stream, for ``fix``; a learner always keeps 1,024."""
        return 0

    @abstractmethod
    def n_outputs(self, n_features: int) -> int:
        """Return D for inputs with ``n_features`` columns."""

    # Not abstract: most maps accept any number of columns.
    def check(self, n_features: int) -> None:
        """Raise ValueError unless rows with ``n_features`` columns can be mapped."""

    @abstractmethod
    def fix(self, n_features: int, rows: Array | None, rng: np.random.Generator) -> Any:
        """Return the state: float64 arrays, fields of a dataclass with a ``scaler``."""

    def state_spec(self, n_features: int, t: int, n_targets: int) -> StateSpec:
        """Return the specification of the state after t rows. ``D`` is the number of features at that row."""
        self.check(n_features)
        return StateSpec(return_type(type(self).fix), {"d": n_features, "D": self.n_outputs(n_features)})

    @abstractmethod
    def apply(self, state: Any, X: Array) -> Array:
        """Return phi(X), a new C-contiguous array of X's dtype (CSR if phi is sparse, or linear and X is CSR).

        The result of a row is bitwise independent of the other rows.
        """

    def to_onnx(self, state: Any, x: Value) -> Value:
        """Return phi(x) of dense rows in an ONNX graph."""
        return no_graph(self)

    def inputs(self, state: Any, X: Array) -> Array:
        """Return the scaled inputs, in which a memory may cluster instead of phi; CSR stays CSR and is not centred."""
        scaler: Scaler = state.scaler
        scaled: Array = scaler.apply(X)
        return scaled

    @property
    def growing(self) -> "GrowingMap | None":
        """The map, if phi changes during the stream. A memory must then keep raw rows."""
        return None

    @property
    def sparse(self) -> "SparseMap | None":
        """The map, if phi(x) is always CSR."""
        return None

    @property
    def labelled(self) -> "LabelledMap | None":
        """The map, if it is fixed with the labels of the first rows."""
        return None

    @property
    def racing(self) -> "RacingMap | None":
        """The map, if it has a custom cost, a smaller version or a loop for a race. Other maps can race too."""
        return None

    @property
    def forgetting(self) -> Forgets | None:
        """The map, if it can reduce the weight of past rows in its future changes."""
        return None


def dense_features(features: FeatureMap, state: Any, X: Any) -> Array:
    """Return phi(X) as a dense array. If phi keeps CSR rows, they are made dense before they are centred."""
    Z: Any = features.apply(state, X.toarray() if features.keeps_csr and is_sparse(X) else X)
    made: Array = Z if features.sparse is None else Z.toarray()
    return made


def chosen_map(features: FeatureMap | None, default: FeatureMap) -> FeatureMap:
    """Return ``features``, or ``default`` if it is None; raise ValueError unless it is a feature map."""
    if features is not None and not isinstance(features, FeatureMap):
        raise ValueError(f"features must be a feature map, such as RandomFourier(512), or None; got {features!r}")
    return default if features is None else features
