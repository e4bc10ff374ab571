"""Validate the flat state of a file before anything is built from it.

One walk follows the annotations of the nodes (:mod:`pairloom.base.spec`) and visits each path of the flat state once:
every value must be at an expected path, of the right type and in range. The walk does not depend on any class of a part
or a model.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import numpy as np

from pairloom.base.spec import PlainValues, StateSpec, field_types
from pairloom.base.tree import NODES, Flat, join_path, unflatten
from pairloom.base.typing import Array
from pairloom.persist.format import ModelFileError
from pairloom.persist.leaves import Scope, check_array, check_csr, check_row_values, check_sorted, check_value

MAX_DEPTH = 24
PLAIN = (bool, int, float, str, NoneType)


@dataclass
class Walk:
    """Visits each path of a flat state once; ``checks``: conditions on finished states, checked after the walk."""

    flat: Flat
    visited: set[str] = field(default_factory=set)
    checks: list[tuple[str, Callable[[Any], None]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.room = sum(array.size for array in self.flat.arrays.values())

    def read(self, spec: StateSpec) -> Any:
        """Return the whole state as a tree, or raise ModelFileError unless it fits its specification."""
        self._state("", spec, Scope({"room": self.room}))
        for path in (*self.flat.arrays, *self.flat.values, *self.flat.kinds):
            if path not in self.visited:
                raise _misfit(path, "is not part of it")
        return self._tree("")

    def read_early(self, path: str, kind: Any) -> Any:
        """Return the tree at a path, which the specification of the rest depends on."""
        walk = Walk(self.flat)
        walk._visit(path, kind, Scope({"room": self.room}))
        return walk._tree(path)

    def kind(self, path: str) -> str:
        """Return the kind of the branch at a path; "" if there is none."""
        return self.flat.kinds.get(path, "")

    def _tree(self, top: str) -> Any:
        """Build the tree at a visited path, and check its conditions."""
        tree = unflatten(self.flat, top)
        for path, check in self.checks:
            try:
                check(_descend(tree, path.removeprefix(top)))
            except ValueError as error:
                raise _misfit(join_path(path, getattr(error, "at", "")), str(error)) from None
        return tree

    # Branches: states of parts, nodes, lists

    def _state(self, path: str, spec: StateSpec, around: Scope) -> None:
        # A part without symbols shares those of the enclosing state, so that new symbols are defined for both.
        symbols = {**around.symbols, **spec.symbols} if spec.symbols else around.symbols
        self._visit(path, spec.kind, Scope(symbols, spec.parts), spec.fields)
        if spec.check is not None:
            self.checks.append((path, spec.check))

    def _visit(self, path: str, kind: Any, scope: Scope, replaced: Mapping[str, str] | None = None) -> None:
        """Visit a path by the annotation of its field; ``replaced``: as ``StateSpec.fields``."""
        origin = get_origin(kind)
        if origin is Annotated:
            base, text = get_args(kind)
            self._annotated(path, base, text, scope)
        elif origin in (UnionType, Union):
            self._choice(path, get_args(kind), scope, replaced)
        elif kind in PLAIN:
            self._value(path, kind, "", scope)
        elif kind is np.random.Generator:
            self._generator(path)
        elif origin is list:
            for item in self._items(path):
                self._visit(item, get_args(kind)[0], scope)
        elif is_dataclass(kind):
            self._node(path, kind, scope, replaced or {})
        else:
            self._anything(path, scope)

    def _annotated(self, path: str, kind: Any, text: str, scope: Scope) -> None:
        if text.startswith("@"):
            self._part(path, scope.parts.get(text[1:]), scope)
        elif text == "rows":
            self._rows(path, scope)
        elif kind in PLAIN:
            self._value(path, kind, text, scope)
        else:
            array = self._array(path)
            with _errors_at(path):
                check_array(array, text, scope)

    def _choice(self, path: str, kinds: tuple[Any, ...], scope: Scope, replaced: Mapping[str, str] | None) -> None:
        """Visit a path whose annotation is a union: of None, or of several classes, which differ by name."""
        if NoneType in kinds and self.flat.values.get(path, 0) is None:
            return self._mark(path)
        rest = [kind for kind in kinds if kind is not NoneType]
        named = [kind for kind in rest if getattr(kind, "__name__", "") == self.kind(path)]
        return self._visit(path, (named or rest)[0], scope, replaced)

    def _part(self, path: str, spec: Any, scope: Scope) -> None:
        """Visit the state of a part, or of several by name; a state without a specification is not checked."""
        if spec is None:
            self._anything(path, scope)
        elif isinstance(spec, Mapping):
            names = [name for name, part in spec.items() if not part.optional or join_path(path, name) in self.flat]
            self._branch(path, "dict " + "|".join(names))
            for name in names:
                self._state(join_path(path, name), spec[name], scope)
        else:
            if not isinstance(spec, StateSpec):
                with _errors_at(path, "is not a state of its model: "):
                    spec = spec(PlainValues(self.flat.values, path, self.room))
            self._state(path, spec, scope)

    def _node(self, path: str, kind: Any, scope: Scope, replaced: Mapping[str, str]) -> None:
        """Visit a node of this class, or of a subclass, and its fields."""
        found: Any = NODES.get(self.kind(path))
        if found is None or not issubclass(found, kind):
            raise _misfit(path, f"must be a {kind.__name__}{self._unknown_class(path)}")
        self._mark(path)
        if hasattr(found, "check"):
            self.checks.append((path, found.check))
        inner, types = Scope(scope.symbols, scope.parts), field_types(found)
        for f in fields(found):
            below = join_path(path, f.name)
            if f.metadata.get("derived") or (f.metadata.get("optional") and below not in self.flat):
                continue
            text = replaced.get(f.name)
            self._visit(below, types[f.name] if text is None else Annotated[Array, text], inner)

    def _items(self, path: str) -> list[str]:
        """Visit a list; return the paths of its items."""
        found = re.fullmatch(r"(list|tuple|objects) (\d{1,9})", self.kind(path))
        size = len(self.flat.arrays) + len(self.flat.values) + len(self.flat.kinds)
        if not found or int(found[2]) > size:
            raise _misfit(path, "must be a list of items that are in the file")
        self._mark(path)
        return [f"{path}.{i}" for i in range(int(found[2]))]

    def _anything(self, path: str, scope: Scope, depth: int = 0) -> None:
        """Visit a tree without specification; the nodes in it have their own."""
        kind, _, about = self.kind(path).partition(" ")
        if depth > MAX_DEPTH:
            raise _misfit(path, "is nested too deeply")
        if not kind:
            if path not in self.flat:
                raise _misfit(path, "is missing")
            self._mark(path)
        elif kind in NODES:
            self._node(path, NODES[kind], scope, {})
        elif kind == "csr":
            self._csr(path)
        elif kind == "generator":
            self._generator(path)
        elif kind == "dict":
            self._mark(path)
            for name in filter(None, about.split("|")):
                self._anything(join_path(path, name), scope, depth + 1)
        elif kind in ("list", "tuple", "objects"):
            for item in self._items(path):
                self._anything(item, scope, depth + 1)
        else:
            raise _misfit(path, f"is of an unknown kind{self._unknown_class(path)}")

    def _branch(self, path: str, kind: str) -> None:
        """Visit a branch of exactly this kind."""
        if self.kind(path) != kind:
            raise _misfit(path, f"must be a {kind}")
        self._mark(path)

    # Leaves: values, arrays, rows, generators

    def _value(self, path: str, kind: type, text: str, scope: Scope) -> None:
        if path not in self.flat.values:
            raise _misfit(path, f"must be a value ({kind.__name__}){self._unknown_class(path)}")
        with _errors_at(path):
            check_value(self.flat.values[path], kind, text, scope)
        self._mark(path)

    def _array(self, path: str) -> Array:
        if path not in self.flat.arrays:
            raise _misfit(path, "must be an array")
        self._mark(path)
        return self.flat.arrays[path]

    def _rows(self, path: str, scope: Scope) -> None:
        """Visit dense or CSR rows of finite numbers; dense values may be missing where the model allows it."""
        d, dtype = scope.size("d"), scope.symbols.get("X")
        if path in self.flat.arrays:
            values = self._array(path)
            with _errors_at(path):
                check_array(values, f"{dtype or 'R'} _n d", scope)
                check_row_values(values, nan=bool(scope.symbols.get("nan")))
            return
        scope.own["_n"], columns, values, indices, indptr = self._csr(path)
        with _errors_at(path):
            if columns != d:
                raise ValueError(f"must have {d} columns, not {columns}")
            check_sorted(indices, indptr)
            if dtype is not None and values.dtype.str[1:] != dtype:
                raise ValueError(f"must have the dtype {dtype}")
            check_row_values(values, nan=False)

    def _csr(self, path: str) -> tuple[int, int, Array, Array, Array]:
        """Visit CSR rows; return their shape, data, indices and indptr."""
        shape = re.fullmatch(r"csr (\d{1,15}) (\d{1,15})", self.kind(path))
        if not shape:
            raise _misfit(path, "must be rows, dense or CSR")
        n, d = int(shape[1]), int(shape[2])
        self._mark(path)
        data, indices, indptr = (self._array(f"{path}.{name}") for name in ("data", "indices", "indptr"))
        with _errors_at(path):
            check_csr(n, d, data, indices, indptr)
        return n, d, data, indices, indptr

    def _generator(self, path: str) -> None:
        self._branch(path, "generator PCG64")
        self._branch(f"{path}.state", "dict state|inc")
        for name, bits in (("state.state", 128), ("state.inc", 128), ("has_uint32", 1), ("uinteger", 32)):
            self._value(f"{path}.{name}", int, f"0:{1 << bits}", Scope({}))

    def _mark(self, path: str) -> None:
        tables = (self.flat.arrays, self.flat.values, self.flat.kinds)
        if path in self.visited or sum(path in table for table in tables) != 1:
            raise _misfit(path, "occurs twice")
        self.visited.add(path)

    def _unknown_class(self, path: str) -> str:
        """Return advice for a branch of a class that is not registered; "" for all others."""
        name = self.kind(path)
        if name in NODES or not name.isidentifier():
            return ""
        return f", but is a {name:.40}, which is unknown: import the module that defines it"


def _misfit(path: str, problem: str) -> ModelFileError:
    return ModelFileError(f"the state in the file does not fit its model: {path or 'the whole'} {problem}")


@contextmanager
def _errors_at(path: str, prefix: str = "") -> Iterator[None]:
    """Turn ValueErrors into ModelFileErrors that name the path."""
    try:
        yield
    except ValueError as error:
        raise _misfit(path, f"{prefix}{error}") from None


def _descend(tree: Any, path: str) -> Any:
    """Return the node at a path of a tree."""
    for name in path.strip(".").split(".") if path else ():
        if isinstance(tree, dict):
            tree = tree[name]
        else:
            tree = tree[int(name)] if isinstance(tree, (list, tuple)) else getattr(tree, name)
    return tree
