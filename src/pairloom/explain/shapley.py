"""Shapley values of the scores of a stream: exact where the model is a sum of known terms, sampled otherwise."""

from functools import partial
from itertools import product
from typing import Any

import numpy as np

from pairloom.base.parallel import run_all
from pairloom.base.threads import ONE_THREAD
from pairloom.base.typing import Array
from pairloom.features.contributions import Contrast, Explainable
from pairloom.stream import Stream

CHUNK_ROWS = 64
"""Rows explained at a time, by one thread."""

PAIRS = 4
"""Pairs of a permutation and its reverse, for each background row, where values are sampled."""


def shapley_values(
    stream: Stream, rows: Array, background: Array, players: Array, n_players: int, target: int, seed: int
) -> tuple[Array, Array, Array]:
    r"""Return the Shapley values (rows, players) of the score ``target``, their standard errors, and all scores.

    They are means over the background rows, so that those of a row add up to its score minus the mean score of the
    background, up to rounding. The scores are those of the rows, then those of the background. ``rows`` and
    ``background``: valid rows of the stream; ``players``: the player of each of their columns.

    Sampled values are means over random orders of the players, in which they change one by one from their value in the
    background row to that in the row; each order is also used in reverse. Orders depend on ``seed`` only, so the values
    of a row do not depend on the other rows.

    Reference: Mitchell, Cooper, Frank and Holmes, Sampling Permutations for Shapley Value Estimation, JMLR 2022.
    """
    state, encoding = stream.state, stream.encoding
    assert state is not None
    if encoding is not None:
        assert state.encoding is not None
        rows, background = (encoding.encode(state.encoding, X) for X in (rows, background))
        players = players[encoding.sources]
    with ONE_THREAD:
        scores = np.concatenate([stream.model.score(state.learned, X)[:, target] for X in (rows, background)])
        total = stream.model.explainable(state.learned)
        if total is None:
            orders = np.random.default_rng(seed)
            used = np.unique(players)
            drawn = np.array([orders.permutation(used) for _ in range(PAIRS * len(background))])
            one: Any = partial(_sampled, stream, background, players, n_players, target, drawn)
            made = run_all([partial(one, rows[i]) for i in range(len(rows))])
        else:
            n_targets = stream.model.n_vectors
            every = partial(_exact, total, background, players, n_players, target, n_targets)
            cuts = range(0, len(rows), CHUNK_ROWS)
            made = run_all([partial(every, rows[at : at + CHUNK_ROWS]) for at in cuts])
    values, error = (np.concatenate(parts) for parts in zip(*made, strict=True))
    return values, error, scores


def _exact(
    total: Explainable, background: Array, players: Array, n_players: int, target: int, n_targets: int, rows: Array
) -> tuple[Array, Array]:
    weights = np.zeros((len(rows), len(background), n_targets))
    weights[:, :, target] = 1.0 / len(background)
    out = np.zeros((len(rows), n_players, n_targets))
    contrast = Contrast(np.ascontiguousarray(rows), np.ascontiguousarray(background), players.astype(np.int64), weights)
    total.contribute(contrast, out)
    return out[:, :, target], np.zeros((len(rows), n_players))


def _sampled(
    stream: Stream, background: Array, players: Array, n_players: int, target: int, orders: Array, x: Array
) -> tuple[Array, Array]:
    """Return the values (1, players) of one row, and their standard errors."""
    assert stream.state is not None
    size, found = orders.shape[1], np.zeros((2, len(orders), n_players))
    for k, b in product(range(2), range(len(background))):
        own = slice(b * PAIRS, (b + 1) * PAIRS)
        directed = orders[own, :: 1 - 2 * k]
        rank = np.zeros((PAIRS, n_players), np.int64)
        np.put_along_axis(rank, directed, np.arange(1, size + 1)[None], axis=1)
        taken = rank[:, None, players] <= np.arange(size + 1)[:, None]  # (orders, steps, columns)
        mixed = np.ascontiguousarray(np.where(taken, x, background[b]).reshape(-1, len(x)))
        scores = stream.model.score(stream.state.learned, mixed)[:, target].astype(float)
        np.put_along_axis(found[k, own], directed, np.diff(scores.reshape(PAIRS, size + 1), axis=1), axis=1)
    pairs = found.mean(axis=0).reshape(len(background), PAIRS, n_players)
    error = np.sqrt((pairs.var(axis=1, ddof=1) / PAIRS).sum(axis=0)) / len(background)
    return pairs.mean(axis=(0, 1))[None], error[None]


def with_sum(values: Array, totals: Array) -> Array:
    """Return values that add up to ``totals``: rounding errors are spread in proportion to the absolute values.

    Scores in float32 are rounded more coarsely than the values. A value of 0 stays 0.

    >>> with_sum(np.array([[1.0, -1.0, 0.0]]), np.array([1e-6])).sum().round(12)
    np.float64(1e-06)
    """
    for _ in range(2):  # the second time for what was rounded in the first
        size = np.abs(values)
        share = size / np.maximum(size.sum(axis=1, keepdims=True), 1e-300)
        values = values + share * (totals - values.sum(axis=1))[:, None]
    return values
