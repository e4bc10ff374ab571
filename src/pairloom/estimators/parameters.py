"""Parameters of estimators: each is a dataclass field, declared and documented once."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from inspect import Parameter, cleandoc, signature
from typing import TypeVar, dataclass_transform

T = TypeVar("T")

INHERITED_SECTIONS = ("Parameters", "Attributes")


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
def estimator(kind: type[T]) -> type[T]:
    """Decorate a class whose parameters are its fields and those of its bases; ``__init__`` takes them by keyword.

    Every field has an immutable default, as scikit-learn requires. Annotate attributes that are not parameters as
    ``ClassVar`` or ``field(init=False)``. Entries of the bases are added to the sections "Parameters" and "Attributes"
    of the docstring. A subclass with its own ``__init__`` needs no decorator.

    >>> from pairloom.systems import OGD
    >>> @estimator
    ... class Slow(OGD):
    ...     eta: float = 0.001
    ...     patience: int = 3
    >>> Slow(patience=5)
    Slow(patience=5)
    >>> Slow().get_params()["eta"], Slow().get_params()["dtype"]
    (0.001, 'float32')
    """
    has_own_init = "__init__" in vars(kind)
    # Estimators are compared by identity and printed by scikit-learn.
    made: type[T] = dataclass(kw_only=True, eq=False, repr=False, match_args=False)(kind)
    if not has_own_init:
        _list_own_first(made)
    _complete_docstring(made)
    return made


def _list_own_first(kind: type) -> None:
    """List the parameters of a class before those of its bases; a dataclass lists the bases first."""
    levels = [vars(base).get("__dataclass_fields__", {}) for base in kind.__mro__]

    def level(parameter: Parameter) -> int:
        return max((k for k, known in enumerate(levels) if parameter.name in known), default=-1)

    init = vars(kind)["__init__"]
    listed = signature(init)
    init.__signature__ = listed.replace(parameters=sorted(listed.parameters.values(), key=level))


def _complete_docstring(kind: type) -> None:
    """Add the parameters and attributes that only the docstrings of the bases describe."""
    if kind.__doc__ is None:  # python -OO
        return
    head, *sections = re.split(r"\n(?=\w+\n-+\n)", cleandoc(kind.__doc__))
    by_title = dict.fromkeys(INHERITED_SECTIONS, "") | {one.partition("\n")[0]: one.rstrip() for one in sections}
    for title in INHERITED_SECTIONS:
        known = {name for names, _ in _entries(by_title[title]) for name in names}
        by_title[title] = by_title[title] or f"{title}\n{'-' * len(title)}"
        for base in kind.__mro__[1:]:
            for names, text in _entries(_section(base, title)):
                if not known.issuperset(names):
                    known.update(names)
                    by_title[title] += f"\n{text}"
    kind.__doc__ = "\n\n".join([head.rstrip(), *by_title.values()])


def _section(kind: type, title: str) -> str:
    found = re.search(rf"^{title}\n-+\n(?:.+\n?)*", cleandoc(kind.__doc__ or ""), re.MULTILINE)
    return found[0] if found else ""


def _entries(section: str) -> Iterator[tuple[list[str], str]]:
    """Yield the names and the text of each entry, ``name, name : text``."""
    for text in re.split(r"\n(?=\S)", section.rstrip()):
        names, colon, _ = text.partition(" : ")
        if colon:
            yield names.split(", "), text
