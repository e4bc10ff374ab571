"""Learning from pairs on a stream: one pass, bounded memory, kernels and trees."""

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pairloom.public import *  # noqa: F403

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import a public name or a subpackage on first use, so that ``pairloom --help`` is fast."""
    if name == "__all__":
        return _names()
    if not name.startswith("_") and find_spec(f"pairloom.{name}") is not None:
        return import_module(f"pairloom.{name}")
    if name in _names():
        return getattr(import_module("pairloom.public"), name)
    raise AttributeError(f"module 'pairloom' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names."""
    return [*_names(), "__version__"]


def _names() -> list[str]:
    found = vars(import_module("pairloom.public")).items()
    return sorted(name for name, value in found if name[0] != "_" and not isinstance(value, ModuleType))
