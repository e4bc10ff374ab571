"""Optional dependencies: imported on first use, with an error that names the extra to install."""

from importlib import import_module
from types import ModuleType


class MissingExtra(ImportError):
    """An optional dependency is not installed; the message says how to install it."""


def import_extra(module: str, extra: str, what: str) -> ModuleType:
    """Import a module that ``extra`` installs; ``what`` is the subject of the error message if it is missing."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise MissingExtra(
            f'{what} needs {package}, which is not installed: pip install "pairloom[{extra}]"', name=package
        ) from error
