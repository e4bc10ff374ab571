"""Packages that only some uses need: imported on first use, with a sentence that names the extra."""

from importlib import import_module
from types import ModuleType


class MissingExtra(ImportError):
    """A package of an extra is not installed; the message says how to get it."""


def needed(module: str, extra: str, what: str) -> ModuleType:
    """Import a module that ``extra`` brings; ``what`` begins the sentence that a user reads where it is missing."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise MissingExtra(
            f'{what} needs {package}, which is not installed: pip install "pairloom[{extra}]"', name=package
        ) from error
