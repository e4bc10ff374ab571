"""Parts as JSON: ``{"part": "RandomFourier", "n_components": 512, "kernel": {"part": "Gaussian", ...}, ...}``.

A name stands for a class of this package, or for one that the caller hands over. Nothing is ever imported by its name.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from datetime import timedelta
from functools import cache
from inspect import isabstract, signature
from typing import Any

import numpy as np

import pairloom.systems  # noqa: F401  so that all models, rules and parts are defined
from pairloom.base.times import TimeColumn
from pairloom.columns import Columns
from pairloom.estimators.base import StreamEstimator
from pairloom.estimators.transformer import FeatureTransformer
from pairloom.features import FeatureMap, Kernel, Linear
from pairloom.losses import Loss
from pairloom.memory import Memory
from pairloom.models.base import Model
from pairloom.models.rule import Rule
from pairloom.pairs import Pairs
from pairloom.persist.format import DTYPES, ModelFileError
from pairloom.race import Budget, Descent, Exact, Portfolio, Steps
from pairloom.steps import Penalty, Schedule
from pairloom.stream import ArrivalScores, Detector, DriftWatch, Forgetting, RecentScores, Stream
from pairloom.stream.calibration import Calibration
from pairloom.stream.history import StreamHistory

BASES = (
    FeatureMap, Kernel, Linear, Loss, Memory, Pairs, Schedule, Penalty, Rule, Model, Budget, Portfolio, Exact, Descent,
    Steps, Columns, RecentScores, ArrivalScores, Calibration, Forgetting, TimeColumn, DriftWatch, StreamHistory,
    StreamEstimator, FeatureTransformer, Stream,
)  # fmt: skip
"""What a file may name: these classes and those of the package that extend them."""

MOST_DEPTH = 24

MOST_LETTERS = 1024
"""Bytes of an item of an array: those of long text would be much larger than the file."""


@cache
def own_parts() -> dict[str, type]:
    """The parts, models and estimators of this package, by name, without those of its experiments."""
    found: dict[str, type] = {}
    for kind in _below(BASES):
        module = kind.__module__
        own = module.startswith("pairloom.") and not module.startswith("pairloom.experiments.") and not isabstract(kind)
        if own and found.setdefault(kind.__name__, kind) is not kind:
            raise TypeError(f"there are two parts with the name {kind.__name__}")
    return found


def known_parts(parts: Iterable[type]) -> dict[str, type]:
    """The package's parts, and those of the caller."""
    found = dict(own_parts())
    for kind in parts:
        if not isinstance(kind, type):
            raise TypeError(f"parts= takes classes, such as parts=[MyLoss]; got {kind!r}")
        if found.setdefault(kind.__name__, kind) is not kind:
            raise ValueError(
                f"parts= has a {kind.__name__}, but there is another part with that name: rename the class"
            )
    return found


def encode(value: Any, where: str) -> Any:
    """A parameter as JSON; TypeError naming ``where`` it is, if a file cannot hold it."""
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
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufU" and value.dtype.itemsize <= MOST_LETTERS:
        return {"array": encode(value.tolist(), where), "dtype": value.dtype.newbyteorder("<").str}
    if isinstance(value, timedelta):
        return {"timedelta": [value.days, value.seconds, value.microseconds]}
    if isinstance(value, (np.random.Generator, np.random.RandomState)):
        raise TypeError(
            f"{where} is a {type(value).__name__}, which a file does not hold: set it to a number or to None, by "
            "model.set_params(random_state=None), and save again. The seed that a model has drawn is saved with it"
        )
    if isinstance(value, Detector):
        raise TypeError(
            f"{where} is {value!r}, a detector of your own, and a file cannot hold what it remembers: learn with "
            "drift='auto' or drift=None to save the model"
        )
    if is_dataclass(value) and not isinstance(value, type):
        return encode_part(value, where)
    raise TypeError(f"{where} is {value!r}, which is neither a part nor a plain value: a file cannot hold it")


def encode_part(part: Any, where: str) -> dict[str, Any]:
    """A part as the name of its class and its parameters."""
    kind = type(part)
    if own_parts().get(kind.__name__, kind) is not kind:
        raise TypeError(f"{where} is a {kind.__name__} of {kind.__module__}; the package has another: rename the class")
    names = list(signature(kind).parameters)
    if "part" in names or not all(hasattr(part, name) for name in names):
        raise TypeError(f"{where}={part!r} must have each parameter of {kind.__name__} as an attribute of that name")
    return {"part": kind.__name__, **{name: encode(getattr(part, name), f"{where}.{name}") for name in names}}


def decode(data: Any, known: Mapping[str, type], room: int, depth: int = 0) -> Any:
    """What ``encode`` was given. ``room``: more classes than there are numbers in a file are not taken for true."""
    if depth > MOST_DEPTH:
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
            if np.dtype(dtype).itemsize > MOST_LETTERS:
                raise ModelFileError(f"the file has a parameter of the dtype {dtype}, which no model has")
            return np.array(decode(data["array"], known, room, depth + 1), dtype).astype(
                np.dtype(dtype).newbyteorder("=")
            )
    raise ModelFileError(f"the file has a parameter that this version does not understand: {str(data)[:80]}")


def build(name: Any, values: Mapping[str, Any], known: Mapping[str, type], room: int) -> Any:
    """A part of its name and its parameters, which are all of those that its class has."""
    if not isinstance(name, str) or name not in known:
        raise ModelFileError(
            f"the file needs {str(name)[:80]!r}, which is not part of pairloom: pass its class, parts=[...]"
        )
    kind = known[name]
    wanted = signature(kind).parameters.keys() - {*getattr(kind, "local", ())}
    values = {**{name: value for name, value in getattr(kind, "added", {}).items() if name in wanted}, **values}
    if values.keys() != wanted:
        strange = ", ".join(sorted(values.keys() ^ wanted))
        raise ModelFileError(f"{name} has other parameters in the file than in this version: {strange[:200]}")
    made = kind(**values)
    if getattr(made, "n_groups", 0) > room:
        raise ModelFileError(f"{made!r:.80} has more classes than the file has numbers")
    return made


def _below(kinds: Iterable[type]) -> Iterator[type]:
    for kind in kinds:
        yield kind
        yield from _below(kind.__subclasses__())
