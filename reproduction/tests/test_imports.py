"""The reproduction uses pairloom as every user does: it imports public names only."""

import ast
import importlib
from pathlib import Path

import pytest

import pairloom

FOLDER = Path(__file__).parents[1]
FILES = sorted(FOLDER.rglob("*.py"))
PACKAGE = Path(pairloom.__file__).parent


def private_imports(source: str) -> list[str]:
    """The imports of pairloom that are not public.

    Public are ``import pairloom``, its subpackages, and the names in ``__all__`` of pairloom and of its subpackages.
    """
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [one.name for one in node.names if one.name.startswith("pairloom.")]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "pairloom":
            found += [f"{node.module}.{one.name}" for one in node.names if not is_public(node.module, one.name)]
    return found


def is_public(module: str, name: str) -> bool:
    """Whether ``from module import name`` is public."""
    if module == "pairloom" and name not in pairloom.__all__:
        return bool(public_names(f"pairloom.{name}"))
    return name in public_names(module)


def public_names(module: str) -> list[str]:
    """The public names of pairloom or of one of its subpackages; none of a deeper module."""
    place = PACKAGE.joinpath(*module.split(".")[1:])
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    if module.count(".") > 1 or not file.is_file():
        return []
    return list(getattr(importlib.import_module(module), "__all__", ()))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_only_public_names_are_imported(path):
    assert private_imports(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("line", "private"),
    [
        ("import pairloom", False),
        ("from pairloom import Learner, systems", False),
        ("from pairloom.memory import Strata", False),
        ("import pairloom.memory.strata", True),
        ("from pairloom import losses", False),
        ("from pairloom import base", True),
        ("from pairloom import PLACES", True),
        ("from pairloom.losses import Square", False),
        ("from pairloom.memory import strata", True),
        ("from pairloom.memory.strata import Strata", True),
        ("from pairloom.evaluation import walk", True),
        ("def late():\n    from pairloom.base.files import replacing", True),
    ],
)
def test_private_imports_are_found(line, private):
    assert bool(private_imports(line)) == private
