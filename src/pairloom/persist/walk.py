"""A walk over the flat state of a file, before anything is made of it: each value is where it belongs, and in range."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from pairloom.base.tree import Flat
from pairloom.base.typing import Array
from pairloom.base.validation import LARGEST
from pairloom.persist.format import ModelFileError
from pairloom.persist.layout import LAYOUT

SIZES = {"BIG": 2**53, "SEED": 2**63, "MASS": 1e200, "EARLY": -1e300, "LATE": 1e300}
FLOATS = ("f4", "f8")
MOST_DEPTH = 24

PLAIN: dict[str, Callable[[Any], bool]] = {
    "bool": lambda value: value is True or value is False,
    "text": lambda value: isinstance(value, str),
    "none": lambda value: value is None,
    "float": lambda value: type(value) is float,
    "finite": lambda value: type(value) is float and np.isfinite(value),
    "radius": lambda value: type(value) is float and value >= 0,
    "number": lambda value: type(value) is float or (type(value) is int and abs(value) < SIZES["BIG"]),
    "count": lambda value: type(value) is int and 0 <= value < SIZES["BIG"],
    "seed": lambda value: type(value) is int and value >= 0,
}

CHECKS: dict[str, Callable[[Array], Array]] = {
    "finite": np.isfinite,
    "positive": lambda array: np.isfinite(array) & (array > 0),
}


@dataclass
class Scope:
    """What the names of a layout stand for in one model.

    ``sizes``: of shapes; ``rules``: of "@" fields; ``work`` and ``rows``: dtypes of the model's arrays and of rows;
    ``classes``: their number, 0 if labels are numbers; ``nan``: values of rows may be missing. What is not in
    them was made by a part of the caller's own.
    """

    sizes: dict[str, Any] = field(default_factory=dict)
    rules: dict[str, Any] = field(default_factory=dict)
    work: str | None = None
    rows: str | None = None
    classes: int | None = None
    nan: bool = False

    def size(self, name: str, own: dict[str, int]) -> float | None:
        """The number for which a name stands; None if that is not known."""
        try:
            return float(name) if "e" in name and name[0].isdigit() else int(name)
        except ValueError:
            plain, more = name.removesuffix("+1"), name.endswith("+1")
            known = {**SIZES, **self.sizes, **own}.get(plain)
            return self.size(known, own) if isinstance(known, str) else None if known is None else known + more


@dataclass
class Walk:
    """Takes each path of a flat state once; ``nodes``: the classes of which states are made, by name."""

    flat: Flat
    nodes: dict[str, type]
    taken: set[str] = field(default_factory=set)

    def refuse(self, path: str, text: str) -> ModelFileError:
        """The error to raise."""
        return ModelFileError(f"the state in the file does not fit its model: {path or 'the whole'} {text}")

    def finish(self) -> None:
        """Raise unless all of the file was taken."""
        rest = [*self.flat.arrays, *self.flat.values, *self.flat.kinds]
        if len(rest) != len(self.taken):
            raise self.refuse(next(path for path in rest if path not in self.taken), "is not part of it")

    def kind(self, path: str) -> str:
        """What is at a branch; "" if it is none."""
        return self.flat.kinds.get(path, "")

    def branch(self, path: str, kind: str) -> None:
        """Take a branch of this kind."""
        if self.kind(path) != kind:
            raise self.refuse(path, f"must be a {kind}")
        self._take(path)

    def items(self, path: str, most: int) -> list[str]:
        """Take a list; the paths of its items."""
        count = self.kind(path).removeprefix("list ")
        if not re.fullmatch(r"\d{1,6}", count) or int(count) > most:
            raise self.refuse(path, f"must be a list of {most} items at most")
        self.branch(path, f"list {count}")
        return [f"{path}.{i}" for i in range(int(count))]

    def value(self, path: str, rule: str) -> Any:
        """Take a plain value."""
        if path not in self.flat.values:
            raise self.refuse(path, f"must be a value ({rule})")
        value = self.flat.values[path]
        if not PLAIN[rule](value):
            raise self.refuse(path, f"must be a value ({rule}), not {value!r:.40}")
        self._take(path)
        return value

    def node(self, path: str, kind: str, scope: Scope) -> dict[str, int]:
        """Take a node and all that is below it; its own sizes."""
        self.branch(path, kind)
        own: dict[str, int] = {}
        for name, rule in LAYOUT[kind].items():
            self.take(_join(path, name), rule, scope, own)
        return own

    def take(self, path: str, rule: Any, scope: Scope, own: dict[str, int]) -> None:
        """Take what is at a path by one of the alternatives of a rule."""
        if isinstance(rule, str) and rule.startswith("@"):
            unknown = "absent" if rule.endswith("?") and path not in self.flat else "any"
            rule = scope.rules.get(rule[1:].removesuffix("?"), unknown)
        elif isinstance(rule, str) and rule.endswith("?"):
            if path not in self.flat:
                return
            rule = rule.removesuffix("?")
        if callable(rule):
            rule(path)
            return
        choices = rule.split(" | ")
        for choice in choices[:-1]:
            if self._looks_like(path, choice, scope, own):
                return self._one(path, choice, scope, own)
        return self._one(path, choices[-1], scope, own)

    def _looks_like(self, path: str, rule: str, scope: Scope, own: dict[str, int]) -> bool:
        if rule in LAYOUT:
            return self.kind(path) == rule
        wanted = [scope.size(name, own) for name in rule.split()[1:] if name not in CHECKS]
        found = self.flat.arrays.get(path)
        return found is not None and list(found.shape) == wanted

    def _one(self, path: str, rule: str, scope: Scope, own: dict[str, int]) -> None:
        kind, *rest = rule.split()
        if kind in LAYOUT:
            self.node(path, kind, scope)
        elif kind == "rows":
            self._rows(path, scope, own)
        elif kind == "rng":
            self._generator(path)
        elif kind == "any":
            self.anything(path, scope)
        elif kind == "absent":
            if path in self.flat:
                raise self.refuse(path, "must not be there")
        elif kind in PLAIN:
            self.value(path, kind)
        else:
            self._array(path, kind, rest, scope, own)

    def _array(self, path: str, kind: str, rest: list[str], scope: Scope, own: dict[str, int]) -> None:
        array = self._taken_array(path)
        code = array.dtype.str[1:]
        wanted = {"label": "f8", "R": scope.work if array.ndim else "f8"}.get(kind, kind)
        if code != wanted and not (wanted is None and code in FLOATS):
            raise self.refuse(path, f"must have the dtype {wanted}, not {code}")
        between = rest.pop() if rest and ":" in rest[-1] else None
        check = CHECKS.get(rest.pop()) if rest and rest[-1] in CHECKS else None
        if array.ndim != len(rest):
            raise self.refuse(path, f"must have {len(rest)} axes, not {array.ndim}")
        for name, found in zip(rest, array.shape, strict=True):
            self._size(path, name, found, scope, own)
        if between is not None:
            low, high = (scope.size(name, own) for name in between.split(":"))
            if low is None or high is None or not ((array >= low) & (array < high)).all():
                raise self.refuse(path, f"has numbers that are not in {low} ... {high}")
        if check is not None and not check(array).all():
            raise self.refuse(path, "must be finite numbers, and those by which others are divided above 0")
        if kind == "label":
            self._labels(path, array, scope)

    def _size(self, path: str, name: str, found: int, scope: Scope, own: dict[str, int]) -> None:
        """Compare the length of an axis with what its name stands for; a new name stands for it from now on."""
        wanted = scope.size(name, own)
        if wanted is None and (found > 0 or not name[1:].isupper()):
            (own if name.startswith("_") else scope.sizes)[name] = found
        elif wanted != found:
            raise self.refuse(path, f"must have an axis of {'at least 1' if wanted is None else wanted}, not {found}")

    def _labels(self, path: str, array: Array, scope: Scope) -> None:
        good = np.isfinite(array)
        if scope.classes:
            good &= (array >= 0) & (array < scope.classes) & (array == np.floor(array))
        if not good.all():
            raise self.refuse(path, "has labels that are none")

    def _rows(self, path: str, scope: Scope, own: dict[str, int]) -> None:
        """Take rows, dense or CSR, of finite numbers; dense values may be missing where the model takes that."""
        d = scope.size("d", own)
        if path in self.flat.arrays:
            self._array(path, scope.rows or "R", ["_n", "d"], scope, own)
            values = self.flat.arrays[path]
        else:
            n, columns = self._csr(path)
            own["_n"] = n
            if columns != d:
                raise self.refuse(path, f"must have {d} columns, not {columns}")
            values, indices, indptr = (self.flat.arrays[f"{path}.{name}"] for name in ("data", "indices", "indptr"))
            rises = np.append(indices[1:] > indices[:-1], True)
            rises[indptr[1:-1][indptr[1:-1] > 0] - 1] = True  # at the end of a row
            if not rises.all():
                raise self.refuse(path, "must have the columns of each row in order, each once")
            if values.dtype.str[1:] != (scope.rows or values.dtype.str[1:]):
                raise self.refuse(path, f"must have the dtype {scope.rows}")
        missing = np.isnan(values) & (scope.nan and values.ndim == 2)
        if values.dtype.kind != "f" or not ((np.abs(values) <= LARGEST[values.dtype.name]) | missing).all():
            raise self.refuse(path, "must be finite numbers, and not too large")

    def _csr(self, path: str) -> tuple[int, int]:
        """Take CSR rows; their shape."""
        shape = re.fullmatch(r"csr (\d{1,15}) (\d{1,15})", self.kind(path))
        if not shape:
            raise self.refuse(path, "must be rows, dense or CSR")
        n, d = int(shape[1]), int(shape[2])
        self._take(path)
        data, indices, indptr = (self._taken_array(f"{path}.{name}") for name in ("data", "indices", "indptr"))
        whole = indices.dtype == indptr.dtype and indices.dtype.str[1:] in ("i4", "i8")
        if not whole or data.ndim != 1 or indices.shape != data.shape or indptr.shape != (n + 1,):
            raise self.refuse(path, "has CSR arrays that do not fit each other")
        rising = indptr[0] == 0 and indptr[-1] == len(data) and (indptr[1:] >= indptr[:-1]).all()
        if not rising or not ((indices >= 0) & (indices < d)).all():
            raise self.refuse(path, "has CSR entries outside of its rows and columns")
        return n, d

    def _generator(self, path: str) -> None:
        self.branch(path, "generator PCG64")
        self.branch(f"{path}.state", "dict state|inc")
        for name, bits in (("state.state", 128), ("state.inc", 128), ("has_uint32", 1), ("uinteger", 32)):
            where = f"{path}.{name}"
            value = self.flat.values.get(where)
            if type(value) is not int or not 0 <= value < 1 << bits:
                raise self.refuse(where, f"must be a number of {bits} bits")
            self._take(where)

    def anything(self, path: str, scope: Scope, depth: int = 0) -> None:
        """Take a tree of a part of the caller's own; the package's nodes in it have their layout."""
        kind, _, about = self.kind(path).partition(" ")
        if depth > MOST_DEPTH:
            raise self.refuse(path, "is nested too deeply")
        if not kind:
            if path not in self.flat.arrays and path not in self.flat.values:
                raise self.refuse(path, "is missing")
            self._take(path)
        elif kind in LAYOUT:
            self.node(path, kind, scope)
        elif kind == "csr":
            self._csr(path)
        elif kind == "generator":
            self._generator(path)
        else:
            self._take(path)
            for name in self._names(path, kind, about):
                self.anything(_join(path, name), scope, depth + 1)

    def _names(self, path: str, kind: str, about: str) -> list[str]:
        """The names of the parts of a branch."""
        if kind in ("list", "tuple", "objects") and re.fullmatch(r"\d{1,9}", about):
            if int(about) <= len(self.flat.arrays) + len(self.flat.values) + len(self.flat.kinds):
                return [str(i) for i in range(int(about))]
        elif kind == "dict":
            return [name for name in about.split("|") if name]
        elif kind in self.nodes:
            return [f.name for f in fields(self.nodes[kind]) if not f.metadata.get("derived")]
        raise self.refuse(
            path, f"is a {kind:.40}, which is not known here; if it is yours, pass its class, parts=[...]"
        )

    def _taken_array(self, path: str) -> Array:
        if path not in self.flat.arrays:
            raise self.refuse(path, "must be an array")
        self._take(path)
        return self.flat.arrays[path]

    def _take(self, path: str) -> None:
        tables = (self.flat.arrays, self.flat.values, self.flat.kinds)
        if path in self.taken or sum(path in table for table in tables) != 1:
            raise self.refuse(path, "is there twice")
        self.taken.add(path)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
