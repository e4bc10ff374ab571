"""The learning loop: rows in batches, split at the rows where settings are fixed, or a model or a hook acts."""

from collections.abc import Sequence

import numpy as np

from pairloom.base.batch import Batch, Scored
from pairloom.base.clock import NEVER, next_replay
from pairloom.features.encoding import Encoding
from pairloom.models.base import Model
from pairloom.stream.hooks import Hook
from pairloom.stream.state import StreamState


def advance(
    model: Model, hooks: Sequence[Hook], state: StreamState, batch: Batch, encoding: Encoding | None = None
) -> None:
    """Learn valid rows, split at the rows where data-dependent settings are fixed or a hook acts."""
    last = 0 if state.kept is None else model.warm_rows
    at = 0
    while at < len(batch):
        ticks = [hook.next_row(state.t) for hook in hooks]
        replay = NEVER if state.kept is None else next_replay(state.t, last)
        end = min(len(batch), at + min(replay, *ticks) - state.t)
        part = batch if end - at == len(batch) else batch[at:end]
        if encoding is not None:
            assert state.encoding is not None
            part = encoding.learn(state.encoding, part)
        if state.kept is not None:
            state.kept.add(part)
        if state.t + len(part) < replay:
            run(model, hooks, state, part, state.t)
        else:
            assert state.kept is not None
            show_arrivals(model, hooks, state, part)
            first = state.kept.all()
            state.learned = model.init(state.n_features, first)
            run(model, hooks, state, first, 0)
        at, state.t = end, state.t + len(part)
        if part.time is not None:
            newest = float(part.time.max())
            state.time = newest if state.time is None else max(state.time, newest)
        if state.t == last:
            state.kept = None
        for hook, tick in zip(hooks, ticks, strict=True):
            if tick == state.t:
                hook.tick(state.observed[hook.name], state, model)


def run(model: Model, hooks: Sequence[Hook], state: StreamState, batch: Batch, t: int) -> None:
    """Learn rows after row t, split at the rows where the model acts, and show their scores to the hooks."""
    at = 0
    while at < len(batch):
        end = min(len(batch), model.next_row(state.learned) - t)
        scored = model.run(state.learned, batch if end - at == len(batch) else batch[at:end])
        if scored is not None:
            for hook in hooks:
                hook.see(state.observed[hook.name], scored)
        at = end


def show_arrivals(model: Model, hooks: Sequence[Hook], state: StreamState, batch: Batch) -> None:
    """Show scores to the hooks with ``on_arrival``, before settings are fixed with these rows.

    The state learned here is discarded. Before its first row a model scores 0.
    """
    interested = [hook for hook in hooks if hook.on_arrival]
    if not interested:
        return
    if state.t == 0:
        zeros = np.zeros((1, model.n_vectors))
        shown: Scored | None = Scored(1, zeros, batch.y[:1], batch.weight[:1], batch.query[:1])
    else:
        run(model, interested, state, batch, state.t)
        shown = model.waiting(state.learned)
    if shown is not None:
        for hook in interested:
            hook.see(state.observed[hook.name], shown)
