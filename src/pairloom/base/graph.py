"""Graphs of standard operators (ONNX) that parts add their formulas to, without the package onnx.

A part with an ONNX form has a method ``to_onnx``, which takes a :class:`Value` and returns another one; all other parts
raise :class:`NoGraph`. :func:`pairloom.persist.export_onnx` writes the graph to a file.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from pairloom.base.typing import Array

MLOpset = Literal[3, 5]
OnHashed = Literal["raise", "unknown"]

ML = "ai.onnx.ml"
"""The domain of operators for machine learning."""


class NoGraph(ValueError):
    """A part has no ONNX form; the message names it and says why."""


class HasGraph:
    """A part with forms in a graph. A subclass that replaces a method also replaces its form, or has none.

    ``graph_forms``: the name of the form of each method.
    """

    graph_forms: ClassVar[Mapping[str, str]]

    def __init_subclass__(cls, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        for method, form in getattr(cls, "graph_forms", {}).items():
            if method in vars(cls) and form not in vars(cls):
                setattr(cls, form, no_graph)


def no_graph(part: Any, *inputs: Any) -> "Value":
    """Raise NoGraph; the form of parts without a form."""
    raise NoGraph(f"{part} has no ONNX form: {type(part).__name__} has no method to_onnx for its own formula")


def is_current(part: Any, form: str, method: str) -> bool:
    """Return whether no subclass has replaced ``method`` without ``form``."""
    newest = next(kind for kind in type(part).__mro__ if form in vars(kind) or method in vars(kind))
    return form in vars(newest)


@dataclass(frozen=True)
class Node:
    """An operator with the names of its inputs and of its output. Attributes that are arrays become tensors."""

    op: str
    inputs: tuple[str, ...]
    output: str
    attributes: dict[str, Any]
    domain: str


@dataclass
class Graph:
    """The nodes so far. Equal nodes and equal constants are added once.

    ``ml_opset``: the version of the operators for trees, 5 or 3. ``inputs``: dtype and number of columns by name;
    ``outputs``: value and number of columns by name, 0 for a value without this axis. ``has_trees``: whether an
    operator of version 5 is used.

    >>> graph = Graph()
    >>> x = graph.input("x", "f4", 2)
    >>> y = 2.0 * x + [1.0, 3.0]
    >>> [node.op for node in graph.nodes], len(graph.constants), (2.0 * x).name == graph.nodes[0].output
    (['Mul', 'Add'], 2, True)
    """

    ml_opset: MLOpset = 5
    inputs: dict[str, tuple[str, int]] = field(default_factory=dict)
    outputs: dict[str, tuple["Value", int]] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    has_trees: bool = False
    _known: dict[Any, str] = field(default_factory=dict, repr=False)

    def input(self, name: str, dtype: str, width: int) -> "Value":
        """Add an input (rows, width)."""
        self.inputs[name] = (dtype, width)
        return Value(self, name, dtype)

    def constant(self, values: Any, dtype: str) -> "Value":
        """Return an array as a value."""
        array = np.ascontiguousarray(values, dtype=None if dtype == "U" else dtype).reshape(np.shape(values))
        content = tuple(array.ravel().tolist()) if array.dtype.kind in "OU" else array.tobytes()
        key = (dtype, array.shape, content)
        if key not in self._known:
            self._known[key] = self._new_name("c")
            self.constants[self._known[key]] = array
        return Value(self, self._known[key], dtype)

    def add(self, op: str, inputs: Iterable["Value"], dtype: str, domain: str = "", **attributes: Any) -> "Value":
        """Add a node, unless there is an equal one, and return its output."""
        names = tuple(one.name for one in inputs)
        plain = all(isinstance(value, (int, str)) for value in attributes.values())
        key = (op, names, domain, tuple(attributes.items())) if plain else object()
        if key not in self._known:
            self._known[key] = self._new_name(op)
            self.nodes.append(Node(op, names, self._known[key], attributes, domain))
        return Value(self, self._known[key], dtype)

    def _new_name(self, prefix: str) -> str:
        # With a prefix: inputs are named like columns.
        return f"pairloom/{prefix}{len(self._known)}"


Operand = Any
"""A value, or an array or a number that becomes a constant of the same dtype."""


@dataclass(frozen=True, eq=False)
class Value:
    """An array in a graph; the first axis is that of rows. ``dtype``: a code such as "f4"; "U" is text."""

    __array_ufunc__: ClassVar[None] = None  # array * value is a method of the value

    graph: Graph = field(repr=False)
    name: str
    dtype: str

    def call(self, op: str, *others: Operand, dtype: str = "", **attributes: Any) -> "Value":
        """Return the output of an operator on this value and others."""
        return self.graph.add(op, [self, *map(self._operand, others)], dtype or self.dtype, **attributes)

    def _operand(self, other: Operand) -> "Value":
        made: Value = other if isinstance(other, Value) else self.graph.constant(other, self.dtype)
        assert made.dtype == self.dtype, f"{made.dtype} with {self.dtype}"
        return made

    def __add__(self, other: Operand) -> "Value":
        return self.call("Add", other)

    def __sub__(self, other: Operand) -> "Value":
        return self.call("Sub", other)

    def __mul__(self, other: Operand) -> "Value":
        return self.call("Mul", other)

    def __truediv__(self, other: Operand) -> "Value":
        return self.call("Div", other)

    def __matmul__(self, other: Operand) -> "Value":
        # Not MatMul: onnxruntime merges a single factor before or after it, in float32 even where the rest is double.
        return self.call("Gemm", other)

    def __radd__(self, other: Operand) -> "Value":
        return self._operand(other).call("Add", self)

    def __rsub__(self, other: Operand) -> "Value":
        return self._operand(other).call("Sub", self)

    def __rmul__(self, other: Operand) -> "Value":
        return self.call("Mul", other)

    def __rtruediv__(self, other: Operand) -> "Value":
        return self._operand(other).call("Div", self)

    def __neg__(self) -> "Value":
        return self.call("Neg")

    def __gt__(self, other: Operand) -> "Value":
        return self.call("Greater", other, dtype="b1")

    def equals(self, other: Operand) -> "Value":
        """Return whether the values are equal."""
        return self.call("Equal", other, dtype="b1")

    def to(self, dtype: str) -> "Value":
        """Return the values as another dtype."""
        return self if dtype == self.dtype else self.call("Cast", dtype=dtype, to=dtype)

    def exp(self) -> "Value":
        return self.call("Exp")

    def log(self) -> "Value":
        return self.call("Log")

    def sqrt(self) -> "Value":
        return self.call("Sqrt")

    def abs(self) -> "Value":
        return self.call("Abs")

    def sin(self) -> "Value":
        return self.call("Sin")

    def cos(self) -> "Value":
        # Older runtimes have no cosine in double.
        return self.call("Cos") if self.dtype == "f4" else (self + 0.5 * np.pi).sin()

    def isnan(self) -> "Value":
        return self.call("IsNaN", dtype="b1")

    def where(self, yes: "Value", no: Operand) -> "Value":
        """Return the values of ``yes`` where this one is true, and elsewhere those of ``no``."""
        return self.graph.add("Where", [self, yes, yes._operand(no)], yes.dtype)

    def filled(self, values: Operand) -> "Value":
        """Return the values, with others in place of NaN."""
        return self.isnan().where(self._operand(values), self)

    def at_least(self, low: Operand) -> "Value":
        return self.call("Max", low)

    def clip(self, low: Operand, high: Operand) -> "Value":
        return self.call("Max", low).call("Min", high)

    def sum(self, axis: int = -1, keep: bool = True) -> "Value":
        """Return the sum over an axis."""
        axes = self.graph.constant([axis], "i8")
        return self.graph.add("ReduceSum", [self, axes], self.dtype, keepdims=int(keep))

    def take(self, columns: Any) -> "Value":
        """Return some of the columns."""
        return self.graph.add("Gather", [self, self.graph.constant(columns, "i8")], self.dtype, axis=1)

    def rows_of(self, table: Array, dtype: str) -> "Value":
        """Return the rows of a table (entries, ...) that these integers number."""
        return self.graph.add("Gather", [self.graph.constant(table, dtype), self], dtype, axis=0)

    def reshape(self, *shape: int) -> "Value":
        """Return the values in another shape; one size may be -1."""
        return self.graph.add("Reshape", [self, self.graph.constant(shape, "i8")], self.dtype)

    def zeros(self, width: int) -> "Value":
        """Return zeros (rows, width) of the dtype f8."""
        return self.take([0]).isnan().to("f8") * np.zeros((1, width))


def joined(values: list[Value]) -> Value:
    """Return the columns of several values, next to each other."""
    first = values[0]
    return first.graph.add("Concat", values, first.dtype, axis=1) if len(values) > 1 else first
