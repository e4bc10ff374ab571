"""State as a tree: dataclasses of arrays, numbers, text and random generators.

All that learning changes is in such a tree. What can be done with any state is written once, here: ``flatten`` and
``unflatten``, ``copy``, ``nbytes``, ``same`` and ``cast``.

A field says what it is. ``Rounded``: an array with as many digits as the model's dtype has; all others are exact.
``field(metadata=DERIVED)``: made from the rest when it is asked for, and no part of the state; None until then.
``field(metadata=SHARED)``: never written into, so that a copy need not copy it, unless it says that it ``changes``.
``field(default=None, metadata=OPTIONAL)``: left out of the flat tree while it is None, as in files that know no better.
"""

from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import Field, dataclass, field, fields, is_dataclass
from typing import Annotated, Any, TypeVar, dataclass_transform, get_args

import numpy as np

from pairloom.base.typing import Array

T = TypeVar("T")

ROUNDED = "rounded"
Rounded = Annotated[Array, ROUNDED]
"""An array whose numbers have the digits of the model's dtype. One of no dimension is a number, and exact."""

DERIVED, SHARED, OPTIONAL = {"derived": True}, {"shared": True}, {"optional": True}

NODES: dict[str, type] = {}
"""The classes of which states are made, by name."""

Plain = bool | int | float | str | None


@dataclass_transform(field_specifiers=(field,))
def node(kind: type[T]) -> type[T]:
    """A dataclass that is part of a state, known to ``unflatten`` by its name."""
    made: type[T] = dataclass(eq=False)(kind)
    if any(f.metadata.get("derived") for f in fields(made)):  # type: ignore[arg-type]
        setattr(made, "__getstate__", _pickled)  # noqa: B010
    if made.__name__ in NODES:
        raise TypeError(f"there are two kinds of state with the name {made.__name__}")
    NODES[made.__name__] = made
    return made


@dataclass(frozen=True)
class Flat:
    """A tree as three tables by path, such as ``learned.memory.slots.points``: what JSON and raw bytes can hold.

    ``kinds`` says what is at each branch: the name of a node, "list 3", "dict", "csr" or a generator's name.
    """

    arrays: dict[str, Array]
    values: dict[str, Plain]
    kinds: dict[str, str]

    def __contains__(self, path: str) -> bool:
        """Whether anything is there."""
        return path in self.arrays or path in self.values or path in self.kinds


def flatten(tree: Any) -> Flat:
    """Named arrays and plain values; arrays are not copied. TypeError for what is neither."""
    flat = Flat({}, {}, {})
    _flatten(tree, "", flat)
    return flat


def unflatten(flat: Flat, nodes: Iterable[type] = ()) -> Any:
    """The tree of ``flatten``; ``nodes``: classes from outside of which it is made as well."""
    return _unflatten(flat, "", NODES | {kind.__name__: kind for kind in nodes})


def copy(tree: T) -> T:
    """A tree that shares nothing that is written into; what is derived is left out."""
    if is_dataclass(tree) and not isinstance(tree, type):
        made = {f.name: _copy_of(f, getattr(tree, f.name)) for f in _own(tree)}
        return type(tree)(**made)
    if isinstance(tree, list):
        return [copy(item) for item in tree]  # type: ignore[return-value]
    if isinstance(tree, dict):
        return {key: copy(item) for key, item in tree.items()}  # type: ignore[return-value]
    return deepcopy(tree)


def cast(tree: T, dtype: Any) -> T:
    """A tree whose rounded arrays have this dtype; what has it already is not copied."""
    if not is_dataclass(tree) or isinstance(tree, type):
        return tree
    made: dict[str, Any] = {}
    for f in _own(tree):
        value = getattr(tree, f.name)
        if is_rounded(f) and isinstance(value, np.ndarray):
            made[f.name] = value.astype(dtype, copy=False) if value.ndim else value
        else:
            made[f.name] = cast(value, dtype)
    return type(tree)(**made)


def same(a: Any, b: Any) -> bool:
    """Whether two trees are equal to the last bit."""
    one, other = flatten(a), flatten(b)
    if one.kinds != other.kinds or one.arrays.keys() != other.arrays.keys():
        return False
    for path, array in one.arrays.items():
        its = other.arrays[path]
        if array.dtype != its.dtype or array.shape != its.shape or array.tobytes() != its.tobytes():
            return False
    return repr(one.values) == repr(other.values)  # NaN is NaN, and 0.0 is not -0.0


def nbytes(tree: Any) -> int:
    """Bytes of all arrays, derived ones too, each counted once; sparse rows count their three arrays."""
    return sum({id(array): array.nbytes for array in list(arrays(tree))}.values())


def arrays(tree: Any) -> Iterator[Array]:
    """All arrays of a tree, derived ones too."""
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


def is_rounded(f: "Field[Any]") -> bool:
    """Whether a field holds an array of the model's dtype."""
    return any(ROUNDED in getattr(kind, "__metadata__", ()) for kind in (f.type, *get_args(f.type)))


def _pickled(tree: Any) -> dict[str, Any]:
    """What a pickle holds: the state, and nothing that is derived from it."""
    return {**vars(tree), **{f.name: None for f in fields(tree) if f.metadata.get("derived")}}


def _own(tree: Any) -> "Iterator[Field[Any]]":
    """The fields that are state."""
    return (f for f in fields(tree) if not f.metadata.get("derived"))


def _copy_of(f: "Field[Any]", value: Any) -> Any:
    return value if f.metadata.get("shared") and not getattr(value, "changes", False) else copy(value)


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
            _flatten(part, f"{path}.{name}" if path else name, flat)


def _branches(tree: Any, path: str) -> tuple[str, dict[str, Any]]:
    """What a branch is, and its parts by name."""
    if is_dataclass(tree):
        tree = tree.canonical() if hasattr(tree, "canonical") else tree
        own = [f for f in _own(tree) if not f.metadata.get("optional") or getattr(tree, f.name) is not None]
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
    raise TypeError(f"{path or 'the state'} holds a {type(tree).__name__}, which is neither an array nor a plain value")


def _unflatten(flat: Flat, path: str, nodes: dict[str, type]) -> Any:
    if path in flat.arrays:
        return flat.arrays[path]
    if path in flat.values:
        return flat.values[path]
    kind, _, about = flat.kinds[path].partition(" ")
    rest = about.split("|" if kind == "dict" else " ")

    def part(name: str) -> Any:
        return _unflatten(flat, f"{path}.{name}" if path else name, nodes)

    if kind in ("list", "tuple", "objects"):
        items = [part(str(i)) for i in range(int(rest[0]))]
        return np.array(items, dtype=object) if kind == "objects" else tuple(items) if kind == "tuple" else items
    if kind == "dict":
        return {name: part(name) for name in rest if name}
    if kind == "csr":
        from scipy.sparse import csr_array

        return csr_array((part("data"), part("indices"), part("indptr")), shape=(int(rest[0]), int(rest[1])))
    if kind == "generator":
        return _generator(rest[0], part)
    if kind not in nodes:
        raise ValueError(f"{path or 'the state'} is a {kind}, which is not known here")
    dot = f"{path}." if path else ""
    own = [f.name for f in _own(nodes[kind]) if not f.metadata.get("optional") or dot + f.name in flat]
    return nodes[kind](**{name: part(name) for name in own})


def _generator(name: str, part: Any) -> np.random.Generator:
    if name != "PCG64":
        raise ValueError(f"a generator must be PCG64, not {name}")
    made = np.random.PCG64()
    made.state = {
        "bit_generator": name,
        "state": part("state"),
        "has_uint32": part("has_uint32"),
        "uinteger": part("uinteger"),
    }
    return np.random.Generator(made)
