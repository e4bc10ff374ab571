"""Interface of models that can be saved; :mod:`pairloom.persist` writes and reads the files."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Protocol

from pairloom.base.graph import Graph, MLOpset, NoGraph, OnHashed
from pairloom.base.spec import StateSpec

CHANGED_AFTER_FIT = (
    "the parameters of this {} were changed after it was fitted: fit it again, or restore them, and then save. A "
    "model loaded from such a file would continue with neither the old nor the new parameters"
)


class StateReader(Protocol):
    """Access to single fields of the state in a file, before the whole state is read."""

    def kind(self, path: str) -> str:
        """Return the kind of the branch at a path; "" if there is none."""

    def read_early(self, path: str, kind: Any) -> Any:
        """Return the field at a path, if it matches the annotation ``kind``."""


class Savable(ABC):
    """A model that ``pairloom.save`` writes to a file."""

    @abstractmethod
    def _saved_params(self) -> Mapping[str, Any]:
        """Return the parameters, by name."""

    @abstractmethod
    def _saved_state(self) -> tuple[Any, list[str] | None]:
        """Return the state as a tree, None before the first row, and the names of the columns.

        ValueError if parameters were changed since the model learned.
        """

    def _graph(self, ml_opset: MLOpset, on_hashed: OnHashed) -> Graph:
        """Return an ONNX graph that predicts; NoGraph if there is none."""
        raise NoGraph(f"a {type(self).__name__} has no ONNX form: export an estimator with scores")

    @abstractmethod
    def _state_spec(self, reader: StateReader) -> StateSpec:
        """Return the specification of the state; it may depend on fields that are read early."""

    @abstractmethod
    def _restored(self, state: Any, names: Any) -> Any:
        """Return this model, which has learned nothing, with the state of a file."""


def checked_names(names: Any, n_features: int) -> list[str] | None:
    """Return the names of columns in a file; ValueError unless there are ``n_features`` of them, or None."""
    if names is None:
        return None
    if not isinstance(names, list) or len(names) != n_features or not all(isinstance(name, str) for name in names):
        raise ValueError(f"the names of the columns must be {n_features} strings")
    return names
