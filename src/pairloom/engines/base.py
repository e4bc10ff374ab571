"""How a model is computed: what an engine is, which one learns which rows, and what these do to the memory."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal, Protocol

from pairloom.base.batch import Batch
from pairloom.base.checks import check_choice
from pairloom.base.csr import Rows
from pairloom.base.typing import Array
from pairloom.features import FeatureMap
from pairloom.losses import Loss
from pairloom.memory import BUILT_IN, Memory, Plan, checked_plan
from pairloom.pairs import Pairs
from pairloom.steps import Average, Penalty, Schedule

EngineName = Literal["auto", "fused", "reference"]


class Parts(Protocol):
    """What an engine is told of a learner: its parts."""

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


class Engine(Protocol):
    """A way to learn rows. All engines of a model give the same iterates, up to rounding.

    ``double``: the arrays that learning changes are float64, whatever the model's dtype. ``any_part``: parts need no
    compiled form.
    """

    @property
    def double(self) -> bool: ...
    @property
    def any_part(self) -> bool: ...

    def takes(self, parts: Any, state: Any, batch: Any) -> bool:
        """Whether these rows, after those that the state has learned, are for this engine."""

    def run(self, parts: Any, state: Any, batch: Batch) -> Array:
        """Learn rows in order; return each row's scores (n, targets) by the weights before they learned the row."""


class Engined(Protocol):
    """A model that has engines: those of each name, in the order in which they are asked."""

    @property
    def engine(self) -> EngineName | Engine: ...
    @property
    def engines(self) -> Mapping[str, Sequence[Engine]]: ...


def candidates(model: Engined) -> Sequence[Engine]:
    """The engines that a model may use: those of the name that it gives, or the one it was given."""
    if not isinstance(model.engine, str):
        return (model.engine,)
    return model.engines["fused" if model.engine == "auto" else model.engine]


def run_engine(model: Engined, state: Any, batch: Batch) -> Array:
    """Learn rows with the first engine that takes them."""
    for engine in candidates(model):
        if engine.takes(model, state, batch):
            return engine.run(model, state, batch)
    raise ValueError(f"{model.engine!r} does not take these rows")


def always_runs(model: Engined, engine: Engine) -> bool:
    """Whether this engine learns all rows of a model: it is asked first, and the parts alone decide."""
    return candidates(model)[0] is engine and engine.takes(model, None, None)


def plan_batch(memory: Memory, state: Any, batch: Batch, U: Any, center: Array | None = None) -> Plan:
    """What rows do to the memory, which moves on but for the points of its slots; ``U``: the rows as it clusters them.

    ``center``: by which dense rows differ from CSR ``U``. The loops check no index, so the plans of memories from
    outside the package are checked here.
    """
    draws = state.rng.random((len(batch), memory.draws))
    if isinstance(U, Rows):
        assert center is not None
        plan = memory.plan_csr(state.memory, U, batch.y, batch.weight, draws, center)
    else:
        plan = memory.plan(state.memory, U, batch.y, batch.weight, draws)
    if type(memory) not in BUILT_IN:
        plan = checked_plan(plan, memory, len(batch), len(state.memory.slots.mass))
    state.memory.slots.keep_rows(plan, batch.X)
    return plan


def check_engine(model: Engined) -> None:
    """Raise ValueError unless there is such an engine, and it knows all parts."""
    if isinstance(model.engine, str) or not hasattr(model.engine, "run"):
        check_choice("engine", model.engine, EngineName)
    if not all(engine.any_part for engine in candidates(model)):
        refuse_uncompiled(model)


def refuse_uncompiled(parts: Any) -> None:
    """Raise ValueError if any of a dataclass of parts is one that compiled engines do not know."""
    for f in fields(parts):
        part: Any = getattr(parts, f.name, None)
        if not getattr(part, "is_compiled", True):
            raise ValueError(
                f"{f.name}={part!r} has no compiled form: use engine='reference', which takes any part"
                + (", or give the loss one (Loss.scalars)" if hasattr(part, "scalars") else "")
            )
        if f.name == "rule":
            refuse_uncompiled(part)
        if f.name == "penalty" and parts.step.per_coordinate and part.numbers is None:
            raise ValueError(
                f"penalty={part!r} has no compiled form for steps per coordinate: use engine='reference', which takes "
                "any part, or give it one (Penalty.numbers)"
            )


def works_in(model: Any) -> str:
    """The dtype of the arrays that learning changes."""
    double = any(engine.double for engine in candidates(model))
    return "float64" if double else model.dtype
