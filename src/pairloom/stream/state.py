"""State of a stream: everything that learning changes, as one tree, and its specification for files."""

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any

from pairloom.base.batch import Batch
from pairloom.base.spec import Count, Finite, PlainValues, StateSpec, WrongState
from pairloom.base.tree import DERIVED, OPTIONAL, node
from pairloom.features.encoding import Encoding, EncodingState
from pairloom.models.base import Model

if TYPE_CHECKING:
    from pairloom.stream.hooks import Hook


@node
class Kept:
    """The first rows of the stream, kept until data-dependent settings are final."""

    batches: list[Batch] = field(default_factory=list)
    count: Count = 0

    def check(self) -> None:
        if len(self.batches) > 1 or self.count != sum(map(len, self.batches)):
            raise ValueError("must have as many rows as it counts, in one batch")

    def add(self, batch: Batch) -> None:
        """Keep more rows."""
        self.batches.append(batch.copy())
        self.count += len(batch)

    def all(self) -> Batch:
        """Return all rows, and store them as one batch."""
        self.batches = [Batch.join(self.batches)]
        return self.batches[0]

    def rows(self, start: int, end: int) -> Batch:
        """Return rows ``start`` to ``end``, without joining all."""
        found, at = [], 0
        for batch in self.batches:
            if at < end and at + len(batch) > start:
                found.append(batch[max(0, start - at) : end - at])
            at += len(batch)
        return Batch.join(found)

    def canonical(self) -> "Kept":
        """Return the rows in one batch, regardless of the chunking."""
        return Kept([Batch.join(self.batches)] if self.batches else [], self.count)


@node
class StreamState:
    """The state after ``t`` rows: that of the model, the first rows while they are kept, and that of each hook.

    ``n_features``: of a row as the model receives it. ``time``: of the newest row, where rows have one. ``encoding``:
    what is known about mixed columns. ``stop``: the next row at which something other than learning happens; it depends
    on the row number alone. Learning continues from a copy, or from a file, without any difference.
    """

    t: Count
    n_features: Annotated[int, "1:room+1"]
    learned: Annotated[Any, "@learned"]
    kept: Kept | None
    observed: Annotated[dict[str, Any], "@observed"]
    time: Finite | None = field(default=None, metadata=OPTIONAL)
    encoding: Annotated[EncodingState | None, "@encoding"] = field(default=None, metadata=OPTIONAL)
    stop: int | None = field(default=None, repr=False, metadata=DERIVED)

    def forget(self, model: Model, keep: float) -> None:
        """Multiply the weight of the rows so far by ``keep``."""
        if model.forgetting is not None:
            model.forgetting.forget(self.learned, keep)
        if self.encoding is not None:
            self.encoding.forget(keep)


def stream_spec(
    model: Model, hooks: "Sequence[Hook]", encoding: Encoding | None = None
) -> Callable[[PlainValues], StateSpec]:
    """Return a function that specifies the state, once the number of rows and columns has been read."""
    return partial(_stream_spec, model, hooks, encoding)


def _stream_spec(model: Model, hooks: "Sequence[Hook]", encoding: Encoding | None, nearby: PlainValues) -> StateSpec:
    t, n_features = nearby.count("t"), nearby.count("n_features")
    if not 0 < n_features <= nearby.room:
        raise ValueError(f"n_features must be the number of columns, not {n_features}")
    if encoding is not None and n_features != encoding.width:
        raise ValueError(f"n_features must be {encoding.width}, the number of encoded columns, not {n_features}")
    learned = model.state_spec(n_features, t, nearby.room)
    return StateSpec(
        StreamState, learned.symbols,
        parts={
            "learned": replace(learned, symbols={}), "observed": {hook.name: hook.state_spec() for hook in hooks},
            "encoding": StateSpec(NoneType) if encoding is None else encoding.state_spec(),
        },
        check=partial(_check, model, hooks),
    )  # fmt: skip


def _check(model: Model, hooks: "Sequence[Hook]", state: StreamState) -> None:
    """Check that the first rows are kept while settings may change, and check the state of each hook."""
    if state.kept is not None and (state.t >= model.warm_rows or state.kept.count != state.t):
        raise WrongState(f"must be the first {state.t} rows, while data-dependent settings may change", "kept")
    for hook in hooks:
        if hook.name in state.observed:
            try:
                hook.check(state.observed[hook.name], state, model)
            except ValueError as error:
                raise WrongState(str(error), f"observed.{hook.name}") from None
