"""Merging streams: models, encodings and hooks of parts that continued from one base."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pairloom.base.merging import RowCounts
from pairloom.base.tree import copy
from pairloom.features.encoding import Encoding
from pairloom.models.base import Model
from pairloom.stream.state import StreamState

if TYPE_CHECKING:
    from pairloom.stream.hooks import Hook


def merge_streams(
    model: Model, hooks: "Sequence[Hook]", base: StreamState, parts: Sequence[StreamState],
    encoding: Encoding | None = None,
) -> StreamState:  # fmt: skip
    """Return the state of a stream that has learned the rows of the base, and those that each part learned."""
    check_parts(model, base, parts)
    rows = RowCounts(base.t, tuple(part.t for part in parts))
    base, *parts = (settled(model, hooks, one) for one in (base, *parts))
    known = None
    if encoding is not None and base.encoding is not None:
        known = encoding.merge(base.encoding, [part.encoding for part in parts if part.encoding is not None])
    learned = model.merge(base.learned, [part.learned for part in parts])
    times = [one.time for one in (base, *parts) if one.time is not None]
    state = StreamState(rows.total, base.n_features, learned, None, {}, max(times, default=None), known)
    for hook in hooks:
        own = [part.observed[hook.name] for part in parts]
        state.observed[hook.name] = hook.merge(base.observed[hook.name], own, rows, state, model)
    return state


def check_parts(model: Model, base: StreamState, parts: Sequence[StreamState]) -> None:
    """Raise ValueError unless these states can be parts of the base."""
    if not parts:
        raise ValueError("merge needs at least one part: copies of the base that have learned rows of their own")
    if base.kept is not None:
        raise ValueError(
            f"the base has learned {base.t:,} rows, and its data-dependent settings change until row "
            f"{model.warm_rows:,}: let it learn so many rows before its parts continue"
        )
    for k, part in enumerate(parts):
        if part.n_features != base.n_features:
            raise ValueError(f"part {k} has {part.n_features} columns, but the base has {base.n_features}")
        if part.t < base.t:
            raise ValueError(f"part {k} has learned {part.t:,} rows, fewer than the base: {base.t:,}")


def settled(model: Model, hooks: "Sequence[Hook]", state: StreamState) -> StreamState:
    """Return a state that has learned all rows received, and whose hooks have seen their scores."""
    learned, scored = model.settle(state.learned)
    if learned is state.learned and scored is None:
        return state
    made = replace(state, learned=learned, observed=copy(state.observed), stop=None)
    if scored is not None:
        for hook in hooks:
            hook.see(made.observed[hook.name], scored)
    return made
