"""State as a tree: dataclasses of arrays, numbers, strings and random generators.

Everything that learning changes is in such a tree. Operations on any state are written once, here: ``flatten`` and
``unflatten``, ``copy``, ``nbytes``, ``same`` and ``cast``.

The annotation of a field is its specification (:mod:`pairloom.base.spec`). Arrays of dtype ``R`` have the precision of
the model's dtype, all others are exact; ``Rounded`` is such an array of any shape.
``field(metadata=DERIVED)``: a cache computed from the other fields, not part of the state; None until it is computed.
``field(metadata=SHARED)``: never modified in place, so that ``copy`` shares it, unless the attribute ``changes``
of the value is true.
``field(default=None, metadata=OPTIONAL)``: omitted from the flat tree while it is None, as in files that
predate the field.
"""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import Field, dataclass, field, fields, is_dataclass
from typing import Annotated, Any, TypeVar, dataclass_transform, get_args

import numpy as np

from pairloom.base.typing import Array

T = TypeVar("T")

Rounded = Annotated[Array, "R *"]
"""An array in the precision of the model's dtype. One without dimensions is an exact number."""

DERIVED, SHARED, OPTIONAL = {"derived": True}, {"shared": True}, {"optional": True}

NODES: dict[str, type] = {}
"""The classes decorated by ``node``, by name."""

Plain = bool | int | float | str | None


@dataclass_transform(field_specifiers=(field,))
def node(kind: type[T]) -> type[T]:
    """Make a class a dataclass that is part of states, and register its name for ``unflatten``."""
    made: type[T] = dataclass(eq=False)(kind)
    if any(f.metadata.get("derived") for f in fields(made)):  # type: ignore[arg-type]
        setattr(made, "__getstate__", _without_derived)  # noqa: B010
    known = NODES.get(made.__name__, made)  # the same names if a notebook cell is run again
    if (known.__module__, known.__qualname__) != (made.__module__, made.__qualname__):
        raise TypeError(f"there are two state classes with the name {made.__name__}")
    NODES[made.__name__] = made
    return made


@dataclass(frozen=True)
class Flat:
    """A tree as three tables, by paths such as ``learned.memory.slots.points``: for JSON and raw bytes.

    ``kinds`` has the kind of each branch: the name of a node, "list 3", "dict a|b", "csr 10 4" or "generator PCG64".
    """

    arrays: dict[str, Array]
    values: dict[str, Plain]
    kinds: dict[str, str]

    def __contains__(self, path: str) -> bool:
        return path in self.arrays or path in self.values or path in self.kinds


def join_path(path: str, name: str) -> str:
    """Return the path of a field below another path; either may be empty.

    >>> join_path("learned", "w"), join_path("", "w")
    ('learned.w', 'w')
    """
    return f"{path}.{name}" if path and name else path or name


def flatten(tree: Any) -> Flat:
    """Return a tree as named arrays and plain values, without copying arrays; TypeError for any other leaf."""
    flat = Flat({}, {}, {})
    _flatten(tree, "", flat)
    return flat


def copy(tree: T) -> T:
    """Return a copy that shares only fields that are never modified in place; derived fields are omitted."""
    if is_dataclass(tree) and not isinstance(tree, type):
        made = {f.name: getattr(tree, f.name) for f in _state_fields(tree)}
        for f in _state_fields(tree):
            if not f.metadata.get("shared") or getattr(made[f.name], "changes", False):
                made[f.name] = copy(made[f.name])
        return type(tree)(**made)
    if isinstance(tree, list):
        return [copy(item) for item in tree]  # type: ignore[return-value]
    if isinstance(tree, dict):
        return {key: copy(item) for key, item in tree.items()}  # type: ignore[return-value]
    return deepcopy(tree)


def cast(tree: T, dtype: Any) -> T:
    """Return a tree whose rounded arrays have this dtype; arrays that have it already are not copied."""
    if not is_dataclass(tree) or isinstance(tree, type):
        return tree
    made: dict[str, Any] = {}
    for f in _state_fields(tree):
        value = getattr(tree, f.name)
        if dtype_code(f) == "R" and isinstance(value, np.ndarray):
            made[f.name] = value.astype(dtype, copy=False) if value.ndim else value
        else:
            made[f.name] = cast(value, dtype)
    return type(tree)(**made)


def same(a: Any, b: Any) -> bool:
    """Return whether two trees are equal to the last bit."""
    one, other = flatten(a), flatten(b)
    if one.kinds != other.kinds or one.arrays.keys() != other.arrays.keys():
        return False
    for path, array in one.arrays.items():
        its = other.arrays[path]
        if array.dtype != its.dtype or array.shape != its.shape or array.tobytes() != its.tobytes():
            return False
    return repr(one.values) == repr(other.values)  # NaN is NaN, and 0.0 is not -0.0


def nbytes(tree: Any) -> int:
    """Return the bytes of all arrays, derived ones included, each counted once; sparse rows have three arrays."""
    return sum({id(array): array.nbytes for array in list(arrays(tree))}.values())


def arrays(tree: Any) -> Iterator[Array]:
    """Yield all arrays of a tree, derived ones included."""
    if isinstance(tree, np.ndarray):
        yield tree
    elif hasattr(tree, "indptr"):
        yield from (tree.data, tree.indices, tree.indptr)
    elif isinstance(tree, list | tuple | dict):
        for part in tree.values() if isinstance(tree, dict) else tree:
            yield from arrays(part)
    elif is_dataclass(tree):
        for f in fields(tree):
            yield from arrays(getattr(tree, f.name, None))


def dtype_code(f: "Field[Any]") -> str:
    """Return the first word of the specification of a field, for an array its dtype; empty without specification."""
    specs = [text for kind in (f.type, *get_args(f.type)) for text in getattr(kind, "__metadata__", ())]
    return next((text.partition(" ")[0] for text in specs if isinstance(text, str)), "")


def _without_derived(tree: Any) -> dict[str, Any]:
    """Return the state for pickling, without derived fields."""
    return {**vars(tree), **{f.name: None for f in fields(tree) if f.metadata.get("derived")}}


def _state_fields(tree: Any) -> "Iterator[Field[Any]]":
    """Return the fields that are part of the state, that is, not derived."""
    return (f for f in fields(tree) if not f.metadata.get("derived"))


def _flatten(tree: Any, path: str, flat: Flat) -> None:
    if isinstance(tree, np.ndarray) and tree.dtype.kind != "O":
        flat.arrays[path] = tree
    elif isinstance(tree, np.generic):
        _flatten(tree.item(), path, flat)
    elif isinstance(tree, Plain):
        flat.values[path] = tree
    else:
        kind, parts = _branches(tree, path)
        flat.kinds[path] = kind
        for name, part in parts.items():
            _flatten(part, join_path(path, name), flat)


def _branches(tree: Any, path: str) -> tuple[str, dict[str, Any]]:
    """Return the kind of a branch, and its parts by name."""
    if is_dataclass(tree):
        tree = tree.canonical() if hasattr(tree, "canonical") else tree
        own = [f for f in _state_fields(tree) if not f.metadata.get("optional") or getattr(tree, f.name) is not None]
        return type(tree).__name__, {f.name: getattr(tree, f.name) for f in own}
    if isinstance(tree, list | tuple) or (isinstance(tree, np.ndarray) and tree.ndim == 1):
        items = tree.tolist() if isinstance(tree, np.ndarray) else tree
        kind = "objects" if isinstance(tree, np.ndarray) else type(tree).__name__
        return f"{kind} {len(items)}", {str(i): item for i, item in enumerate(items)}
    if isinstance(tree, dict) and all(isinstance(key, str) and not {".", "|"} & set(key) for key in tree):
        return "dict " + "|".join(tree), tree
    if hasattr(tree, "indptr"):
        n, d = tree.shape
        return f"csr {n} {d}", {"data": tree.data, "indices": tree.indices, "indptr": tree.indptr}
    if isinstance(tree, np.random.Generator):
        state = dict(tree.bit_generator.state)
        return f"generator {state.pop('bit_generator')}", {**state, "state": dict(state["state"])}
    raise TypeError(f"{path or 'the state'} contains a {type(tree).__name__}, neither an array nor a plain value")


def unflatten(flat: Flat, path: str = "") -> Any:
    """Return the tree that was flattened, or the part of it at a path."""
    if path in flat.arrays:
        return flat.arrays[path]
    if path in flat.values:
        return flat.values[path]
    kind, _, about = flat.kinds[path].partition(" ")
    rest = about.split("|" if kind == "dict" else " ")

    def part(name: str) -> Any:
        return unflatten(flat, join_path(path, name))

    if kind in ("list", "tuple", "objects"):
        items = [part(str(i)) for i in range(int(rest[0]))]
        return np.array(items, dtype=object) if kind == "objects" else tuple(items) if kind == "tuple" else items
    if kind == "dict":
        return {name: part(name) for name in rest if name}
    if kind == "csr":
        from scipy.sparse import csr_array

        return csr_array((part("data"), part("indices"), part("indptr")), shape=(int(rest[0]), int(rest[1])))
    if kind == "generator":
        state: Any = {"bit_generator": rest[0]} | {name: part(name) for name in ("state", "has_uint32", "uinteger")}
        made = np.random.PCG64()
        made.state = state  # ValueError for the state of another generator
        return np.random.Generator(made)
    if kind not in NODES:
        raise ValueError(f"{path or 'the state'} has the unknown class {kind}")
    names = [
        f.name for f in _state_fields(NODES[kind]) if not f.metadata.get("optional") or join_path(path, f.name) in flat
    ]
    return NODES[kind](**{name: part(name) for name in names})
