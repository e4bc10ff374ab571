"""The learning loop: rows in batches, split at the rows where settings are fixed, or a model or a hook acts."""

from collections.abc import Sequence

import numpy as np

from pairloom.base.batch import Batch, Scored
from pairloom.base.clock import NEVER, next_replay
from pairloom.features.encoding import Encoding
from pairloom.models.base import Model
from pairloom.stream.hooks import Hook
from pairloom.stream.state import Kept, StreamState


def advance(
    model: Model, hooks: Sequence[Hook], state: StreamState, batch: Batch, encoding: Encoding | None = None
) -> None:
    """Learn valid rows, split at the rows where data-dependent settings are fixed or a hook acts."""
    at, n = 0, len(batch)
    while at < n:
        if state.stop is None or state.stop <= state.t:
            state.stop = next_stop(model, hooks, state)
        end = min(n, at + state.stop - state.t)
        part = batch if end - at == n else batch[at:end]
        if encoding is not None:
            assert state.encoding is not None
            part = encoding.learn(state.encoding, part)
        if state.kept is None:
            run(model, hooks, state, part, state.t)
        else:
            run_kept(model, hooks, state, part, state.kept)
        state.t += end - at
        at = end
        if part.time is not None:
            newest = float(part.time.max())
            state.time = newest if state.time is None else max(state.time, newest)
        if state.t == state.stop:
            act(model, hooks, state)


def next_stop(model: Model, hooks: Sequence[Hook], state: StreamState) -> int:
    """Return the first row after ``state.t`` at which settings are fixed or a hook acts."""
    replay = NEVER if state.kept is None else next_replay(state.t, model.warm_rows)
    return min(replay, *(hook.next_row(state.t) for hook in hooks))


def act(model: Model, hooks: Sequence[Hook], state: StreamState) -> None:
    """Let the hooks act that are due after row ``state.t``; after the last replay, the first rows are not kept."""
    if state.kept is not None and state.t == model.warm_rows:
        state.kept = None
    for hook in hooks:
        if hook.next_row(state.t - 1) == state.t:
            hook.tick(state.observed[hook.name], state, model)


def run_kept(model: Model, hooks: Sequence[Hook], state: StreamState, batch: Batch, kept: Kept) -> None:
    """Learn and keep rows; if settings are fixed after them, learn all rows so far with the new settings."""
    kept.add(batch)
    if state.t + len(batch) < next_replay(state.t, model.warm_rows):
        run(model, hooks, state, batch, state.t)
        return
    show_arrivals(model, hooks, state, batch)
    first = kept.all()
    state.learned = model.init(state.n_features, first)
    run(model, hooks, state, first, 0)


def run(model: Model, hooks: Sequence[Hook], state: StreamState, batch: Batch, t: int) -> None:
    """Learn rows after row t, split at the rows where the model acts, and show their scores to the hooks."""
    at, n = 0, len(batch)
    while at < n:
        end = min(n, model.next_row(state.learned) - t)
        scored = model.run(state.learned, batch if end - at == n else batch[at:end])
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
