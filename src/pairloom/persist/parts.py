"""Parts as JSON: ``{"part": "RandomFourier", "n_components": 512, "kernel": {"part": "Gaussian", ...}, ...}``.

A name refers to a class of this package, or to one that the caller passes. Nothing is imported by name.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from datetime import timedelta
from functools import cache
from inspect import isabstract, signature
from typing import Any

import numpy as np

import pairloom.systems  # noqa: F401  defines all models, rules and parts
from pairloom.base.batch import TimeColumn
from pairloom.base.saving import Savable
from pairloom.columns import Columns
from pairloom.estimators.base import StreamEstimator
from pairloom.estimators.transformer import FeatureTransformer
from pairloom.features import FeatureMap, Kernel, Linear
from pairloom.features.encoding import Encoding
from pairloom.losses import Loss
from pairloom.memory import Memory
from pairloom.models.base import Model
from pairloom.models.rule import Rule
from pairloom.pairs import Pairs
from pairloom.persist.format import DTYPES, ModelFileError
from pairloom.race import Budget, Head, Portfolio
from pairloom.steps import Penalty, Schedule
from pairloom.stream import AlertBudget, Detector, Hook, Stream

BASES = (
    FeatureMap, Kernel, Linear, Loss, Memory, Pairs, Schedule, Penalty, Rule, Model, Budget, Portfolio, Head,
    Columns, Encoding, Hook, TimeColumn, StreamEstimator, FeatureTransformer, Stream, AlertBudget,
)  # fmt: skip
"""Classes that a file may name: these and their subclasses in the package."""

MAX_DEPTH = 24

MAX_ITEM_BYTES = 1024
"""Bytes of an item of an array: an array of long text would be much larger than its file."""


@cache
def own_parts() -> dict[str, type]:
    """Return the parts, models and estimators of this package, by name."""
    found: dict[str, type] = {}
    for kind in _with_subclasses(BASES):
        # Models on Dask are saved as local ones, which have the same names.
        on_dask = kind.__module__.startswith("pairloom.dask")
        own = kind.__module__.startswith("pairloom.") and not isabstract(kind) and not on_dask
        if own and found.setdefault(kind.__name__, kind) is not kind:
            raise TypeError(f"there are two parts with the name {kind.__name__}")
    return found


def known_parts(parts: Iterable[type]) -> dict[str, type]:
    """Return the parts of the package and those of the caller, by name."""
    found = dict(own_parts())
    for kind in parts:
        if not isinstance(kind, type):
            raise TypeError(f"parts= takes classes, such as parts=[MyLoss]; got {kind!r}")
        if found.setdefault(kind.__name__, kind) is not kind:
            raise ValueError(f"parts= has a {kind.__name__}, but the name is in use: rename the class")
    return found


def encode(value: Any, where: str) -> Any:
    """Return a parameter as JSON; TypeError, with its name ``where``, if a file cannot store it."""
    if isinstance(value, np.generic) and DTYPES.fullmatch(value.dtype.str) and value.dtype.kind in "biuf":
        return {"number": encode(value.item(), where), "dtype": value.dtype.str}
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        return value if np.isfinite(value) else {"float": str(value)}
    if isinstance(value, list):
        return [encode(item, where) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [encode(item, where) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[encode(key, where), encode(item, where)] for key, item in value.items()]}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufU" and value.dtype.itemsize <= MAX_ITEM_BYTES:
        return {"array": encode(value.tolist(), where), "dtype": value.dtype.newbyteorder("<").str}
    if isinstance(value, timedelta):
        return {"timedelta": [value.days, value.seconds, value.microseconds]}
    if isinstance(value, (np.random.Generator, np.random.RandomState)):
        raise TypeError(
            f"{where} is a {type(value).__name__}, which a file cannot store: set it to a number or to None, with "
            "model.set_params(random_state=None), and save again. The seed that the model has drawn is saved with it"
        )
    if isinstance(value, Detector):
        raise TypeError(
            f"{where} is {value!r}, a custom detector, whose state a file cannot store: use drift='auto' or drift=None "
            "to save the model"
        )
    if is_dataclass(value) and not isinstance(value, (type, Savable)):
        return encode_part(value, where)
    raise TypeError(f"{where} is {value!r}, which is neither a part nor a plain value, so a file cannot store it")


def encode_part(part: Any, where: str) -> dict[str, Any]:
    """Return a part as JSON: the name of its class, and its parameters."""
    kind = type(part)
    if own_parts().get(kind.__name__, kind) is not kind:
        raise TypeError(f"{where} is a {kind.__name__} of {kind.__module__}, but the name is in use: rename the class")
    names = list(signature(kind).parameters)
    if "part" in names or not all(hasattr(part, name) for name in names):
        raise TypeError(f"{where}={part!r} must have each parameter of {kind.__name__} as an attribute of that name")
    return {"part": kind.__name__, **{name: encode(getattr(part, name), f"{where}.{name}") for name in names}}


def decode(data: Any, known: Mapping[str, type], room: int, depth: int = 0) -> Any:
    """Return what was encoded; ``room``: a model with more classes is rejected, as too large for its file."""
    if depth > MAX_DEPTH:
        raise ModelFileError("the parameters in the file are nested too deeply")
    if isinstance(data, list):
        return [decode(item, known, room, depth + 1) for item in data]
    if not isinstance(data, dict):
        return data
    if "part" in data:
        made = {name: decode(item, known, room, depth + 1) for name, item in data.items() if name != "part"}
        return build(data["part"], made, known, room)
    if data.keys() == {"tuple"} and isinstance(data["tuple"], list):
        return tuple(decode(item, known, room, depth + 1) for item in data["tuple"])
    if data.keys() == {"dict"} and isinstance(data["dict"], list):
        return dict(decode(data["dict"], known, room, depth + 1))
    if data.keys() == {"float"} and data["float"] in ("inf", "-inf", "nan"):
        return float(data["float"])
    if data.keys() == {"timedelta"}:
        return timedelta(*map(int, data["timedelta"]))
    dtype = data.get("dtype")
    if isinstance(dtype, str) and DTYPES.fullmatch(dtype):
        if data.keys() == {"number", "dtype"}:
            return np.dtype(dtype).type(decode(data["number"], known, room, depth + 1))
        if data.keys() == {"array", "dtype"}:
            if np.dtype(dtype).itemsize > MAX_ITEM_BYTES:
                raise ModelFileError(f"the file has a parameter of the dtype {dtype}, which model files do not support")
            items = decode(data["array"], known, room, depth + 1)
            return np.array(items, dtype).astype(np.dtype(dtype).newbyteorder("="))
    raise ModelFileError(f"the file has a parameter that this version does not understand: {str(data)[:80]}")


def build(name: Any, values: Mapping[str, Any], known: Mapping[str, type], room: int) -> Any:
    """Return a part by name; ``values`` must have each of its parameters."""
    if not isinstance(name, str) or name not in known:
        raise ModelFileError(
            f"the file needs {str(name)[:80]!r}, which is not part of pairloom: pass its class, parts=[...]"
        )
    kind = known[name]
    wanted = signature(kind).parameters.keys() - {*getattr(kind, "local", ())}
    new_names = getattr(kind, "renamed", {})
    values = {new_names.get(name, name): value for name, value in values.items()}
    values = {**{name: value for name, value in getattr(kind, "added", {}).items() if name in wanted}, **values}
    if values.keys() != wanted:
        different = ", ".join(sorted(values.keys() ^ wanted))
        raise ModelFileError(f"{name} has different parameters in the file and in this version: {different[:200]}")
    made = kind(**values)
    if getattr(made, "n_groups", 0) > room:
        raise ModelFileError(f"{made!r:.80} has too many classes for a file of this size")
    return made


def _with_subclasses(kinds: Iterable[type]) -> Iterator[type]:
    for kind in kinds:
        yield kind
        yield from _with_subclasses(kind.__subclasses__())
