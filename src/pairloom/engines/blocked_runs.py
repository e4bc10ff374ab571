"""The compiled loop of the blocked engine: the rows of a block, for many models side by side.

Inside a block every vector is a combination of *atoms*: the slots' points at its start, its rows, and the blends of
both that slots become. All that learning needs are the inner products of atoms (``gram``) and, for each model,

    w_hat = head w_0 + sum_a coef_a atom_a,   w = sigma w_hat,   F_l = <w_hat, B_l>

where w_0 is the model at the start of the block and B_l the point of slot l.
"""

from typing import Any

import numpy as np

from pairloom.compiled import compiled
from pairloom.engines.atoms import Events, Partners
from pairloom.engines.blocked_steps import (
    Models,
    Run,
    choose_careful_lengths,
    choose_lengths,
    choose_parts,
    gradient,
    make_run,
    step,
)
from pairloom.typing import Array

SMALL = 1e-10
"""A factor sigma below this is multiplied into the coefficients."""

OWN, OTHER = 0, 1
"""Rows of ``head_bar``: an average's coefficients of w_0, and of the average at the start of the block."""


@compiled
def learn_models(gram: Array, n_slots: int, weight: Array, events_: Any, partners_: Any, models_: Any) -> None:
    """``reference.step`` over the rows of a block for models of one loss; all inner products are known.

    The last three are ``Events``, ``Partners`` and ``Models`` as plain tuples: Numba takes long over named ones.

    A *run* of rows has the same partners. Inside it F is kept up to date for the partners alone; the other slots'
    F are those of the models at the start of the run until ``merge``.
    """
    events, partners, models = Events(*events_), Partners(*partners_), Models(*models_)
    n, width = models.scores.shape
    run, ref = make_run(n_slots, n, width, models.averaging, gram), np.arange(n_slots)
    # Not simply 0: Numba would compile all that it is passed to for this one number.
    first = zero = int(np.int64(0))
    while first < n:
        stop, number = partners.stop[first], partners.number[first]
        m = max(0, number)
        slots, atoms = partners.slot[first, :m], partners.atom[first, :m]
        start = first
        base_scores(gram, n_slots, events.blends[start], models, run, start, stop)
        square = open_run(gram, models, run, slots, atoms, stop - start)
        for i in range(start, stop):
            r = m + i - start
            meet(gram, n_slots + i, n_slots + start, square, atoms, run, r)
            sum_rows(run.h, run.active, r, run.s)
            if models.averaging:
                sum_rows(run.h, run.active_bar, r, run.s_bar)
            score(models, run, i, i - start)
            if number >= 0:
                norm = gram[n_slots + i, n_slots + i]
                gradient(norm, square, partners, models, run, i)
                parts = 0
                if not choose_lengths(weight[i], m, models, run, i):
                    parts = choose_careful_lengths(weight[i], m, models, run)
                step(norm, square, models, run, r)
                for part in range(parts):
                    gradient(norm, square, partners, models, run, i)
                    choose_parts(weight[i], m, models, run, i, part)
                    step(norm, square, models, run, r)
            if models.averaging:
                average(models, run, i, r + 1)
            first = i + 1
            if first == stop or smallest(models.sigma) < SMALL:
                break
            move_slots(events, i, models.F, ref, run.base, r - m)
        merge(gram, n_slots, models, run, slots, atoms, ref, start, first)
        move_slots(events, first - 1, models.F, ref, run.s, zero)
        rescale(models)


@compiled
def smallest(a: Array) -> float:
    """The least entry."""
    least = np.inf
    for g in range(a.shape[0]):
        least = min(least, a[g])
    return least


@compiled
def base_scores(
    gram: Array, n_slots: int, blends: int, models: Models, run: Run, first: int, stop: int
) -> None:  # fmt: skip
    """Scores of the rows of a run by the models at its start."""
    base, bar, head, head_bar = run.base, run.base_bar, models.head, models.head_bar
    by_0, by_bar = models.scores_0, models.scores_0_bar
    add_scores(gram, n_slots, blends, models.coef, run.room, base, first, stop)
    for i in range(first, stop):
        for g in range(head.shape[0]):
            base[i - first, g] += head[g] * by_0[i, g]
    if models.averaging:
        add_scores(gram, n_slots, blends, models.coef_bar, run.room, bar, first, stop)
        for i in range(first, stop):
            for g in range(head.shape[0]):
                bar[i - first, g] += head_bar[OWN, g] * by_0[i, g] + head_bar[OTHER, g] * by_bar[i, g]


@compiled
def add_scores(
    gram: Array, n_slots: int, blends: int, coef: Array, room: Array, out: Array, first: int, stop: int
) -> None:  # fmt: skip
    """out_r <- sum_a <z_r, a> coef_a over the atoms that there are before row ``first``."""
    rows, known, start = stop - first, n_slots + first, n_slots + out.shape[0]
    weights = room[: rows * known].reshape(rows, known)
    for r in range(rows):
        for a in range(known):
            weights[r, a] = gram[known + r, a]
    np.dot(weights, coef[:known], out[:rows])
    if blends > 0:
        weights = room[: rows * blends].reshape(rows, blends)
        for r in range(rows):
            for a in range(blends):
                weights[r, a] = gram[known + r, start + a]
        out[:rows] += np.dot(weights, coef[start : start + blends])


@compiled
def open_run(gram: Array, models: Models, run: Run, slots: Array, atoms: Array, rows: int) -> Array:
    """The start of a run; the partners' Gram matrix, a row of ones, and room for the products with a row."""
    m, near, F = len(atoms), run.near, models.F
    square = np.empty((m + 2, m), gram.dtype)
    for k in range(m):
        square[m, k] = 1
        for g in range(F.shape[1]):
            near[k, g] = F[slots[k], g]
        for l in range(m):  # noqa: E741
            square[k, l] = gram[atoms[k], atoms[l]]
    run.active[: m + rows] = 0
    run.active_bar[: m + rows] = 0
    run.decay[:] = 1
    run.gain[:] = 0
    return square


@compiled
def meet(gram: Array, row: int, first: int, square: Array, atoms: Array, run: Run, r: int) -> None:
    """The inner products of atom ``row`` with the partners and with the rows of the run before it."""
    m, h = len(atoms), run.h
    for k in range(m):
        h[k] = square[m + 1, k] = gram[row, atoms[k]]
    for k in range(m, r):
        h[k] = gram[row, first + k - m]


@compiled
def sum_rows(h: Array, rows: Array, n: int, out: Array) -> None:
    """sum_k h_k row_k over the first n rows."""
    np.dot(h[:n].reshape(1, n), rows[:n], out)


@compiled
def score(models: Models, run: Run, i: int, at: int) -> None:
    """Complete the scores of row i, which is row ``at`` of the run; note those before the row is learned."""
    s, bar, base, base_bar = run.s, run.s_bar, run.base, run.base_bar
    scores, sigma, decay, gain = models.scores, models.sigma, run.decay, run.gain
    for g in range(s.shape[1]):
        s[0, g] += base[at, g]
    if models.averaging:
        for g in range(s.shape[1]):
            scores[i, g] = bar[0, g] + decay[g] * base_bar[at, g] + gain[g] * base[at, g]
    else:
        for g in range(s.shape[1]):
            scores[i, g] = sigma[g] * s[0, g]


@compiled
def average(models: Models, run: Run, i: int, n: int) -> None:
    """w_bar <- w_bar + rho (w - w_bar), in the coefficients that the run changes."""
    rho, sigma, active, bar, decay, gain = models.rho, models.sigma, run.active, run.active_bar, run.decay, run.gain
    rate, share = run.factor, run.sigma
    for g in range(sigma.shape[0]):
        decay[g] *= 1.0 - rho[i, g]
        gain[g] += rho[i, g] * (sigma[g] - gain[g])
        rate[g] = rho[i, g]
        share[g] = rho[i, g] * sigma[g]
    for k in range(n):
        for g in range(sigma.shape[0]):
            bar[k, g] += share[g] * active[k, g] - rate[g] * bar[k, g]


@compiled
def move_slots(events: Events, i: int, F: Array, ref: Array, s: Array, r: int) -> None:
    """The events of row i, whose scores are row r of s."""
    for e in range(events.start[i], events.start[i + 1]):
        if events.blend[e] > 0:
            x, j = F.dtype.type(events.blend[e]), events.slot[e]
            ref[j] = events.atom[e]
            for g in range(s.shape[1]):
                F[j, g] += x * (s[r, g] - F[j, g])


@compiled
def merge(
    gram: Array, n_slots: int, models: Models, run: Run, slots: Array, atoms: Array, ref: Array, first: int, stop: int
) -> None:  # fmt: skip
    """The end of a run: all F are of the present models, and what the run added is in the coefficients."""
    m, rows, F, coef, near, active = len(atoms), stop - first, models.F, models.coef, run.near, run.active
    width = F.shape[1]
    if models.averaging:
        merge_average(models, run, atoms, n_slots + first, rows)
    other = np.ones(n_slots, np.bool_)
    for k in range(m):
        other[slots[k]] = False
        for g in range(width):
            F[slots[k], g] = near[k, g]
        for g in range(width):
            coef[atoms[k], g] += active[k, g]
    for k in range(rows):
        for g in range(width):
            coef[n_slots + first + k, g] = active[m + k, g]
    if stop == models.scores.shape[0]:
        return
    others = np.flatnonzero(other)
    now = ref[others]
    weights = run.room[: (m + rows) * len(others)].reshape(m + rows, len(others))
    for k in range(m + rows):
        atom = atoms[k] if k < m else n_slots + first + k - m
        for l in range(len(others)):  # noqa: E741
            weights[k, l] = gram[atom, now[l]]
    change = np.dot(weights.T, active[: m + rows])
    for l in range(len(others)):  # noqa: E741
        for g in range(width):
            F[others[l], g] += change[l, g]


@compiled
def merge_average(models: Models, run: Run, atoms: Array, start: int, rows: int) -> None:
    """``merge`` for the averages; the coefficients of the models themselves are still those of the run's start."""
    m, coef, bar, active, decay, gain = len(atoms), models.coef, models.coef_bar, run.active_bar, run.factor, run.sigma
    for g in range(decay.shape[0]):
        decay[g] = run.decay[g]
        gain[g] = run.gain[g]
    for a in range(coef.shape[0]):
        for g in range(coef.shape[1]):
            bar[a, g] = decay[g] * bar[a, g] + gain[g] * coef[a, g]
    models.head_bar[OWN] = run.decay * models.head_bar[OWN] + run.gain * models.head
    models.head_bar[OTHER] *= run.decay
    for k in range(m):
        for g in range(coef.shape[1]):
            bar[atoms[k], g] += active[k, g]
    bar[start : start + rows] = active[m : m + rows]


@compiled
def rescale(models: Models) -> None:
    """Multiply small factors sigma into the coefficients."""
    for g in range(models.sigma.shape[0]):
        if models.sigma[g] < SMALL:
            factor = models.coef.dtype.type(models.sigma[g])
            models.coef[:, g] *= factor
            models.F[:, g] *= factor
            models.head[g] *= models.sigma[g]
            models.sigma[g] = 1.0
