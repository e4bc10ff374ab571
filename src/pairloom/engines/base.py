"""The interface of engines, the choice of an engine for a batch, and the update of the memory."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal, Protocol

import numpy as np

from pairloom.base.batch import Batch
from pairloom.base.checks import check_choice
from pairloom.base.csr import CSRRows
from pairloom.base.typing import Array
from pairloom.features import FeatureMap
from pairloom.losses import Loss
from pairloom.memory import BUILT_IN, Memory, Plan
from pairloom.memory.slots import checked_plan
from pairloom.pairs import Pairs
from pairloom.steps import Average, Penalty, Schedule

EngineName = Literal["auto", "fused", "reference"]

BLOCK_BYTES = 1 << 20
"""Approximate size of a block of mapped rows, such that it stays in the cache."""


class Parts(Protocol):
    """The parts of a learner, as engines read them."""

    @property
    def features(self) -> FeatureMap: ...
    @property
    def pairs(self) -> Pairs: ...
    @property
    def pair_loss(self) -> Loss: ...
    @property
    def memory(self) -> Memory: ...
    @property
    def step(self) -> Schedule: ...
    @property
    def penalty(self) -> Penalty: ...
    @property
    def average(self) -> Average: ...
    @property
    def objective(self) -> tuple[Any, ...]:
        """``arguments.Objective`` as a plain tuple."""

    @property
    def steady_step(self) -> Array | None:
        """The ``step_table`` of a row of weight 1, if it is the same for all rows."""


class Engine(Protocol):
    """A way to learn rows. All engines of a model compute the same iterates, up to rounding.

    ``double``: the arrays that learning updates are float64, regardless of the model's dtype. ``any_part``: parts need
    no compiled form.
    """

    @property
    def double(self) -> bool: ...
    @property
    def any_part(self) -> bool: ...

    def takes(self, parts: Any, state: Any, batch: Any) -> bool:
        """Return whether this engine can learn these rows, given the rows learned so far."""

    def run(self, parts: Any, state: Any, batch: Batch) -> Array:
        """Learn rows in order; return the scores (n, targets) of each row before it was learned."""


class HasEngines(Protocol):
    """A model with engines, by name, in order of preference."""

    @property
    def engine(self) -> EngineName | Engine: ...
    @property
    def engines(self) -> Mapping[str, Sequence[Engine]]: ...


def cache_blocks(n: int, row_bytes: int) -> list[slice]:
    """Cut n rows into blocks of about ``BLOCK_BYTES`` mapped bytes.

    >>> cache_blocks(10, BLOCK_BYTES)
    [slice(0, 8, None), slice(8, 16, None)]
    """
    rows = max(8, BLOCK_BYTES // row_bytes)
    return [slice(start, start + rows) for start in range(0, n, rows)]


def engines_of(model: HasEngines) -> Sequence[Engine]:
    """Return the engines that a model may use: those named by ``engine``, or ``engine`` itself if it is one."""
    if not isinstance(model.engine, str):
        return (model.engine,)
    return model.engines["fused" if model.engine == "auto" else model.engine]


def run_engine(model: HasEngines, state: Any, batch: Batch) -> Array:
    """Learn rows with the first engine that supports them; return their scores."""
    for engine in engines_of(model):
        if engine.takes(model, state, batch):
            return engine.run(model, state, batch)
    raise ValueError(f"engine={model.engine!r} does not take these rows: use engine='auto'")


def always_runs(model: HasEngines, engine: Engine) -> bool:
    """Return whether this engine learns all rows of a model: it comes first, and its choice depends on parts alone."""
    return engines_of(model)[0] is engine and engine.takes(model, None, None)


def plan_batch(memory: Memory, state: Any, batch: Batch, U: Any, center: Array | None = None) -> Plan:
    """Return the planned changes of the slots, and update the rest of the memory.

    ``U``: the rows in the space in which the memory clusters. ``center``: the difference between CSR ``U`` and dense
    rows. Compiled loops do not check bounds, so the plans of third-party memories are validated here.
    """
    n, draws = len(batch), memory.draws
    random = state.rng.random((n, draws)) if draws else np.empty((n, 0))
    csr = memory.csr if isinstance(U, CSRRows) else None
    if csr is None:
        plan = memory.plan(state.memory, U, batch.y, batch.weight, random)
    else:
        assert center is not None
        plan = csr.plan_csr(state.memory, U, batch.y, batch.weight, random, center)
    if type(memory) not in BUILT_IN:
        plan = checked_plan(plan, memory, n, len(state.memory.slots.mass))
    state.memory.slots.keep_rows(plan, batch.X)
    return plan


def check_engine(model: HasEngines) -> None:
    """Raise ValueError unless the engine exists and supports all parts."""
    if isinstance(model.engine, str) or not hasattr(model.engine, "run"):
        check_choice("engine", model.engine, EngineName)
    if not all(engine.any_part for engine in engines_of(model)):
        check_compiled_forms(model)


def check_compiled_forms(parts: Any) -> None:
    """Raise ValueError if any part in a dataclass of parts has no compiled form."""
    for f in fields(parts):
        part: Any = getattr(parts, f.name, None)
        if not getattr(part, "is_compiled", True):
            raise ValueError(
                f"{f.name}={part!r} has no compiled form: use engine='reference', which takes any part"
                + (", or give the loss one (Loss.scalars)" if hasattr(part, "scalars") else "")
            )
        if f.name == "rule":
            check_compiled_forms(part)
        if f.name == "penalty" and parts.step.per_coordinate and part.numbers is None:
            raise ValueError(
                f"penalty={part!r} has no compiled form for steps per coordinate: use engine='reference', which takes "
                "any part, or give it one (Penalty.numbers)"
            )


def working_dtype(model: Any) -> str:
    """Return the dtype of the arrays that learning updates."""
    double = any(engine.double for engine in engines_of(model))
    return "float64" if double else model.dtype
