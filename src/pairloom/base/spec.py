"""Specifications of states, written where the fields are declared; files are checked against them.

The annotation of a field carries a specification:

    points: Annotated[Array, "R S D finite"]    dtype R, shape (S, D), finite numbers
    seen: Annotated[Array, "i8 g 0:t+1"]        int64, shape (g,), numbers from 0 to t
    count: Annotated[int, "0:t+1"]              a plain number, from 0 to t

- Dtypes are ``f8``, ``i8``, ``i4`` and ``b1``; ``R``, the dtype of the model (``f8`` for an array without dimensions,
  and for the reference engine); ``X``, the dtype of rows, for rows kept as they came; and ``label``: ``f8``, codes of
  the ``C`` classes, or finite numbers where ``C`` is 0.
- Sizes are numbers or symbols. A part defines its symbols (:class:`StateSpec`); an undefined symbol is defined by the
  first size it meets. ``_n`` belongs to a single node, and ``_N`` is at least 1. ``*`` is any shape.
- ``low:high`` bounds every number, low included; either may be omitted. ``finite`` and ``positive`` hold for every
  number.
- ``A | B`` are alternatives by shape. ``rows`` are dense or CSR rows of ``d`` columns. ``@phi`` is the state of the
  part called phi, which describes it. Without a specification only the type is checked.

Conditions between the fields of a node are checked by its method ``check``, if it has one, which raises ValueError.

Symbols with the same meaning everywhere: ``BIG`` is 2^53, ``SEED`` 2^63, ``MASS`` the largest sum of weights, ``EARLY``
and ``LATE`` the bounds of time, ``room`` the number of array elements in the file.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, get_type_hints

Symbols = dict[str, Any]

CONSTANTS: Mapping[str, float] = {"BIG": 2**53, "SEED": 2**63, "MASS": 1e200, "EARLY": -1e300, "LATE": 1e300}

TESTS = ("finite", "positive")

Count = Annotated[int, "0:BIG"]
"""An integer of at least 0."""

Finite = Annotated[float, "finite"]

Size = Annotated[float, "0:"]
"""A number of at least 0, infinity included."""

WEIGHT = "1e-101:1e101"
"""Bounds of the weight of a row."""


@dataclass(frozen=True)
class StateSpec:
    """Specification of the state of a part.

    ``kind``: its class, or any type that a field may be annotated with. ``symbols``: values of the symbols in its
    specifications, besides those of the enclosing state; ``R`` and ``X`` are the dtypes of the model and of its rows,
    and ``nan`` is true if values of rows may be missing. ``parts``: a StateSpec for each "@" field, or a function that
    makes one from the plain values nearby (:class:`PlainValues`). ``fields``: specifications that replace those of the
    class. ``check`` is called with the finished state and raises ValueError if it is not a possible state of the part.
    ``optional``: files written before the part existed load without it.
    """

    kind: Any = Any
    symbols: Symbols = field(default_factory=dict)
    parts: Mapping[str, Any] = field(default_factory=dict)
    fields: Mapping[str, str] = field(default_factory=dict)
    check: Callable[[Any], None] | None = None
    optional: bool = False


class WrongState(ValueError):
    """A state that is impossible for its part; ``at``: the path of the field within it."""

    def __init__(self, text: str, at: str = "") -> None:
        super().__init__(text)
        self.at = at


@dataclass(frozen=True)
class PlainValues:
    """The numbers and strings at a path of a state that is not read yet; ``room``: array elements in the file."""

    values: Mapping[str, Any]
    path: str
    room: int

    @property
    def parent(self) -> "PlainValues":
        """The node that this state is a field of."""
        return PlainValues(self.values, self.path.rpartition(".")[0], self.room)

    def count(self, name: str) -> int:
        """Return an integer field; ValueError unless it is at least 0."""
        value = self._get(name)
        if type(value) is not int or not 0 <= value < CONSTANTS["BIG"]:
            raise ValueError(f"{name} must be an integer >= 0")
        return value

    def text(self, name: str) -> str:
        """Return a string field; ValueError if it is anything else."""
        value = self._get(name)
        if not isinstance(value, str):
            raise ValueError(f"{name} must be a string")
        return value

    def _get(self, name: str) -> Any:
        return self.values.get(f"{self.path}.{name}" if self.path else name)


@dataclass(frozen=True)
class Spec:
    """One alternative of a specification; that of a plain number has neither dtype nor shape."""

    dtype: str
    shape: tuple[str, ...] | None
    low: str
    high: str
    test: str


@cache
def parse(text: str, *, scalar: bool = False) -> tuple[Spec, ...]:
    """Return the alternatives of a specification.

    >>> parse("i8 g 0:t+1")
    (Spec(dtype='i8', shape=('g',), low='0', high='t+1', test=''),)
    """
    found = []
    for choice in text.split(" | "):
        words = choice.split()
        dtype = "" if scalar else words.pop(0)
        low, _, high = words.pop().partition(":") if words and ":" in words[-1] else ("", "", "")
        test = words.pop() if words and words[-1] in TESTS else ""
        found.append(Spec(dtype, None if words == ["*"] else tuple(words), low, high, test))
    return tuple(found)


def resolve(name: str, *tables: Mapping[str, Any]) -> float | None:
    """Return the value of a number or symbol, from the first table that defines it; None if it is undefined.

    >>> resolve("t+1", {"t": 3}), resolve("1e-3"), resolve("S", {})
    (4, 0.001, None)
    """
    try:
        return float(name) if "e" in name and name[0].isdigit() else int(name)
    except ValueError:
        plain = name.removesuffix("+1")
        known = next((table[plain] for table in (*tables, CONSTANTS) if plain in table), None)
        return known if known is None or plain == name else known + 1


@cache
def return_type(function: Any) -> Any:
    """Return the annotated return type of a function, such as the class of the state it makes; Any without one."""
    return get_type_hints(function, include_extras=True).get("return", Any)


@cache
def field_types(node: type) -> dict[str, Any]:
    """Return the annotations of the fields of a node."""
    return get_type_hints(node, include_extras=True)
