"""The compiled loop of the blocked engine: the rows of a block, for many models side by side.

Inside a block every vector is a combination of *atoms* (``blocked_atoms``). Learning needs only the inner products of
atoms (``gram``) and, for each model,

    w_hat = head w_0 + sum_a coef_a atom_a,   w = sigma w_hat,   F_l = <w_hat, B_l>

where w_0 is the model at the start of the block and B_l the point of slot l.
"""

from typing import Any

import numpy as np

from pairloom.base.compiled import compiled
from pairloom.base.typing import Array
from pairloom.engines.blocked_atoms import Events, Partners
from pairloom.engines.blocked_steps import (
    Models,
    Run,
    choose_careful_lengths,
    choose_lengths,
    choose_substep_lengths,
    gradient,
    make_run,
    step,
)

MIN_SIGMA = 1e-10
"""Smaller factors sigma are multiplied into the coefficients."""

OWN, OTHER = 0, 1
"""Rows of ``head_bar``: the coefficients of w_0 and of the average at the start of the block."""


@compiled
def learn_models(gram: Array, first_row: int, weight: Array, events_: Any, partners_: Any, models_: Any) -> None:
    """Apply ``reference.step`` to the rows of a block, for models of one loss; ``first_row``: the first row's atom.

    The last three arguments are ``Events``, ``Partners`` and ``Models`` as plain tuples, which Numba unpacks faster.

    The rows of a *run* have the same partners. Within a run, F is up to date for the partners only; for the other slots
    it keeps its value from the start of the run until ``refresh``.
    """
    events, partners, models = Events(*events_), Partners(*partners_), Models(*models_)
    n, width = models.scores.shape
    run, now = make_run(models.F.shape[0], n, width, models.averaging, gram), np.arange(models.F.shape[0])
    # Not a literal 0, for which Numba would compile a specialisation of the functions called with it.
    first = zero = int(np.int64(0))
    while first < n:
        stop, number = partners.stop[first], partners.number[first]
        m = max(0, number)
        slots, atoms = partners.slot[first, :m], partners.atom[first, :m]
        start = first
        base_scores(gram, first_row, models, run, start, stop)
        square = open_run(gram, models, run, slots, atoms, stop - start)
        for i in range(start, stop):
            r = m + i - start
            fill_products(gram, first_row + i, first_row + start, square, atoms, run, r)
            sum_rows(run.h, run.active, r, run.s)
            if models.averaging:
                sum_rows(run.h, run.active_bar, r, run.s_bar)
            score(models, run, i, i - start)
            if number >= 0:
                norm = gram[first_row + i, first_row + i]
                gradient(norm, square, partners, models, run, i)
                substeps = 0
                if not choose_lengths(weight[i], m, models, run, i):
                    substeps = choose_careful_lengths(weight[i], m, models, run)
                step(norm, square, models, run, r)
                for substep in range(substeps):
                    gradient(norm, square, partners, models, run, i)
                    choose_substep_lengths(weight[i], m, models, run, i, substep)
                    step(norm, square, models, run, r)
            if models.averaging:
                average(models, run, i, r + 1)
            first = i + 1
            if first == stop or smallest(models.sigma) < MIN_SIGMA:
                break
            move_slots(events, i, models.F, now, run.base, r - m)
        merge(models, run, slots, atoms, first_row + start, first_row + first)
        if first < n:
            refresh(gram, models, run, slots, atoms, now, first_row + start, first_row + first)
        move_slots(events, first - 1, models.F, now, run.s, zero)
        rescale(models)


@compiled
def smallest(a: Array) -> float:
    """Return the smallest entry."""
    least = np.inf
    for g in range(a.shape[0]):
        least = min(least, a[g])
    return least


@compiled
def base_scores(gram: Array, first_row: int, models: Models, run: Run, first: int, stop: int) -> None:
    """Compute the scores of the rows of a run by the models at its start."""
    base, bar, head, head_bar = run.base, run.base_bar, models.head, models.head_bar
    by_0, by_bar = models.scores_0, models.scores_0_bar
    rows, known = stop - first, first_row + first
    weights = run.room[: rows * known].reshape(rows, known)
    for r in range(rows):
        for a in range(known):
            weights[r, a] = gram[known + r, a]
    np.dot(weights, models.coef[:known], base[:rows])
    for r in range(rows):
        for g in range(head.shape[0]):
            base[r, g] += head[g] * by_0[first + r, g]
    if models.averaging:
        np.dot(weights, models.coef_bar[:known], bar[:rows])
        for r in range(rows):
            for g in range(head.shape[0]):
                bar[r, g] += head_bar[OWN, g] * by_0[first + r, g] + head_bar[OTHER, g] * by_bar[first + r, g]


@compiled
def open_run(gram: Array, models: Models, run: Run, slots: Array, atoms: Array, rows: int) -> Array:
    """Start a run; return the partners' Gram matrix, a row of ones, and a row for the products with an example."""
    m, near, F = len(atoms), run.near, models.F
    square = np.empty((m + 2, m), gram.dtype)
    for k in range(m):
        square[m, k] = 1
        for g in range(F.shape[1]):
            near[k, g] = F[slots[k], g]
        for c in range(m):
            square[k, c] = gram[atoms[k], atoms[c]]
    active, bar = run.active, run.active_bar
    for k in range(m + rows):
        for g in range(F.shape[1]):
            active[k, g] = 0
    for k in range(m + rows if models.averaging else 0):
        for g in range(F.shape[1]):
            bar[k, g] = 0
    for g in range(F.shape[1]):
        run.decay[g], run.gain[g] = 1, 0
    return square


@compiled
def fill_products(gram: Array, row: int, first: int, square: Array, atoms: Array, run: Run, r: int) -> None:
    """Fill the inner products of atom ``row`` with the partners and with the earlier rows of the run."""
    m, h = len(atoms), run.h
    for k in range(m):
        h[k] = square[m + 1, k] = gram[row, atoms[k]]
    for k in range(m, r):
        h[k] = gram[row, first + k - m]


@compiled
def sum_rows(h: Array, rows: Array, n: int, out: Array) -> None:
    """Compute out <- sum_k h_k row_k over the first n rows."""
    np.dot(h[:n].reshape(1, n), rows[:n], out)


@compiled
def score(models: Models, run: Run, i: int, at: int) -> None:
    """Complete and store the scores of row i, which is row ``at`` of the run, before the row is learned."""
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
    """Update w_bar <- w_bar + rho (w - w_bar), in the coefficients of the run."""
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
def move_slots(events: Events, i: int, F: Array, now: Array, s: Array, r: int) -> None:
    """Apply the events of row i, whose scores are row r of s; ``now``: the slots' atoms."""
    for e in range(events.start[i], events.start[i + 1]):
        if events.blend[e] > 0:
            x, j = F.dtype.type(events.blend[e]), events.slot[e]
            now[j] = events.atom[e]
            for g in range(s.shape[1]):
                F[j, g] += x * (s[r, g] - F[j, g])


@compiled
def merge(models: Models, run: Run, slots: Array, atoms: Array, first: int, stop: int) -> None:
    """End a run with the atoms ``first`` to ``stop`` as rows: add its changes to the coefficients."""
    m, F, coef, bar = len(atoms), models.F, models.coef, models.coef_bar
    near, active, active_bar = run.near, run.active, run.active_bar
    if models.averaging:
        mix(models, run)
    for k in range(m + stop - first):
        atom = atoms[k] if k < m else first + k - m
        for g in range(F.shape[1]):
            coef[atom, g] += active[k, g]
        if models.averaging:
            for g in range(F.shape[1]):
                bar[atom, g] += active_bar[k, g]
    for k in range(m):
        for g in range(F.shape[1]):
            F[slots[k], g] = near[k, g]


@compiled
def mix(models: Models, run: Run) -> None:
    """Add the contribution of the models at the start of the run to the averages."""
    coef, bar, head, head_bar = models.coef, models.coef_bar, models.head, models.head_bar
    decay, gain = run.factor, run.sigma
    for g in range(head.shape[0]):
        decay[g], gain[g] = run.decay[g], run.gain[g]
        head_bar[OWN, g] = run.decay[g] * head_bar[OWN, g] + run.gain[g] * head[g]
        head_bar[OTHER, g] *= run.decay[g]
    for a in range(coef.shape[0]):
        for g in range(head.shape[0]):
            bar[a, g] = decay[g] * bar[a, g] + gain[g] * coef[a, g]


@compiled
def refresh(
    gram: Array, models: Models, run: Run, slots: Array, atoms: Array, now: Array, first: int, stop: int
) -> None:  # fmt: skip
    """Update F of the slots that were not partners in the run."""
    n, m, F, product = len(now), len(atoms), models.F, run.product
    others, added = np.ones(n, np.int64), m + stop - first
    for k in range(m):
        others[slots[k]] = 0
    count = 0
    for j in range(n):
        if others[j]:
            others[count] = j
            count += 1
    weights = run.room[: added * count].reshape(added, count)
    for k in range(added):
        atom = atoms[k] if k < m else first + k - m
        for c in range(count):
            weights[k, c] = gram[atom, now[others[c]]]
    np.dot(weights.T, run.active[:added], product[:count])
    for c in range(count):
        for g in range(F.shape[1]):
            F[others[c], g] += product[c, g]


@compiled
def rescale(models: Models) -> None:
    """Multiply small factors sigma into the coefficients."""
    coef, F, sigma = models.coef, models.F, models.sigma
    for g in range(sigma.shape[0]):
        if sigma[g] < MIN_SIGMA:
            for a in range(coef.shape[0]):
                coef[a, g] *= sigma[g]
            for j in range(F.shape[0]):
                F[j, g] *= sigma[g]
            models.head[g] *= sigma[g]
            sigma[g] = 1.0
