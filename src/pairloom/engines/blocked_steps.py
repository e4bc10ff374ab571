"""One step of many models side by side, from inner products alone; see ``blocked_runs``.

The last axis of an array is over models, so that loops over models use vector instructions, and sums over partners are
small matrix products.
"""

from typing import NamedTuple

import numpy as np

from pairloom.base.compiled import compiled
from pairloom.base.typing import Array
from pairloom.engines.blocked_atoms import Partners
from pairloom.engines.fused_steps import SKIP, SPLIT, safe_length
from pairloom.engines.reference import LONG_STEP_SQUARED, MAX_INSTABILITY, MAX_STEP_SQUARED, MAX_SUBSTEPS
from pairloom.engines.state import LOSS, PAIRS, STEPS, WORST
from pairloom.losses import loss_terms

MIN_KEEP = 1e-15
"""Smallest factor by which a step shrinks w: negligible relative to the step, but its inverse is finite."""


class Models(NamedTuple):
    """Models side by side in the last axis; ``..._bar`` are for averages, and empty without them.

    ``steps`` (4, rows, models): keep and rate of a step, then of one substep of a heavy row; a single row if they are
    the same for all rows. ``scores_0``: scores by the models at the start of the block. ``head``, ``head_bar`` (2,
    models): see ``blocked_runs``.
    """

    loss: int
    smooth: bool
    averaging: bool
    steps: Array
    rho: Array
    scores_0: Array
    scores_0_bar: Array
    F: Array
    sigma: Array
    head: Array
    head_bar: Array
    coef: Array
    coef_bar: Array
    scores: Array
    tally: Array


class Run(NamedTuple):
    """Work arrays for rows with the same partners.

    ``base``: scores by the models at the start of the run. ``near``: F of the partners. ``active``: changes by the run
    of the coefficients of the partners, then of its rows. ``h``: <z, a> of the current row z and these atoms a;
    ``s``: scores of z by w_hat. ``q``: coefficients of the gradient psi z - sum_k q_k B_k (``q_flat``: the same
    memory); ``product``: the partners' Gram matrix times q, then psi and <z, sum_k q_k B_k>. ``loss``: the loss of z;
    ``square``: the squared norm of the gradient. ``decay``, ``gain``: the average is decay times the average at the
    start of the run, plus gain times w_hat at the start, plus ``active_bar``.
    """

    base: Array
    base_bar: Array
    near: Array
    active: Array
    active_bar: Array
    h: Array
    s: Array
    s_bar: Array
    margin: Array
    value: Array
    q: Array
    q_flat: Array
    product: Array
    loss: Array
    square: Array
    sigma: Array
    factor: Array
    keep: Array
    length: Array
    split: Array
    decay: Array
    gain: Array
    room: Array


@compiled
def make_run(n_slots: int, n: int, width: int, averaging: bool, like: Array) -> Run:
    """Return work arrays for n rows, and for averages."""
    kind = like.dtype
    bar = n if averaging else 0
    slots_bar = n_slots if averaging else 0
    q = np.empty((n_slots, width), kind)
    return Run(
        np.empty((n, width), kind), np.empty((bar, width), kind), np.empty((n_slots, width), kind),
        np.empty((n_slots + n, width), kind), np.empty((slots_bar + bar, width), kind),
        np.empty(n_slots + n, kind), np.empty((1, width), kind), np.empty((1, width), kind),
        np.empty(n_slots * width, kind), np.empty(n_slots * width, kind), q, q.reshape(-1),
        np.empty((n_slots + 2, width), kind), np.empty(width, kind), np.empty(width, kind),
        np.empty(width, kind), np.empty(width, kind), np.empty(width), np.empty(width), np.zeros(width, np.bool_),
        np.empty(width), np.empty(width), np.empty(like.shape[0] * max(n, n_slots), kind),
    )  # fmt: skip


@compiled
def gradient(norm: float, square: Array, partners: Partners, models: Models, run: Run, i: int) -> None:
    """Compute q_k = p_k a_k l'(m_k), the products with q, the loss and the squared norm."""
    s, near, margin, value, q, product = run.s, run.near, run.margin, run.value, run.q, run.product
    loss, total, sigma, p, sign, offset = run.loss, run.square, run.sigma, partners.p, partners.sign, partners.offset
    width, m, kind = s.shape[1], square.shape[1], square.dtype.type
    for g in range(width):
        sigma[g] = models.sigma[g]
        loss[g] = total[g] = 0
    for k in range(m):
        a, b = kind(sign[i, k]), kind(offset[i, k])
        for g in range(width):
            margin[k * width + g] = a * (sigma[g] * (s[0, g] - near[k, g])) + b
    loss_terms(models.loss, margin[: m * width], value[: m * width], run.q_flat[: m * width])
    for k in range(m):
        share, signed = kind(p[i, k]), kind(p[i, k] * sign[i, k])
        for g in range(width):
            loss[g] += share * value[k * width + g]
        for g in range(width):
            q[k, g] *= signed
    np.dot(square, q[:m], product[: m + 2])
    for k in range(m):
        for g in range(width):
            total[g] += q[k, g] * product[k, g]
    for g in range(width):
        total[g] += product[m, g] * (product[m, g] * norm - product[m + 1, g] - product[m + 1, g])
    for g in range(width):
        total[g] = max(kind(0), total[g])


@compiled
def choose_lengths(weight: float, m: int, models: Models, run: Run, i: int) -> bool:
    """Compute and count each model's step; return False if one must be cut, skipped or split."""
    steps, tally, keep, length = models.steps, models.tally, run.keep, run.length
    loss, square, smooth = run.loss, run.square, models.smooth
    row, unsafe = i if steps.shape[1] > 1 else 0, 1 if weight > 1 else 0
    for g in range(len(keep)):
        keep[g], length[g] = steps[0, row, g], steps[1, row, g]
    for g in range(len(keep)):
        instability = 0.5 * length[g] * square[g] / loss[g] if smooth and loss[g] > 0 else 0.0
        safe = instability <= MAX_INSTABILITY and length[g] * length[g] * (loss[g] + square[g]) < (
            MAX_STEP_SQUARED if smooth else LONG_STEP_SQUARED
        )
        unsafe += 0 if safe else 1
        tally[WORST, g] = max(tally[WORST, g], instability if safe and weight <= 1 else 0.0)
    if unsafe:
        return False
    for g in range(len(keep)):
        tally[STEPS, g] += weight
        tally[PAIRS, g] += m
        tally[LOSS, g] += weight * loss[g]
    return True


@compiled
def choose_careful_lengths(weight: float, m: int, models: Models, run: Run) -> int:
    """Compute and count steps when some are cut, skipped or split; return the number of substeps."""
    tally, keep, length, loss = models.tally, run.keep, run.length, run.loss
    substeps = 0
    for g in range(len(keep)):
        length[g] = safe_length(
            float(loss[g]), float(run.square[g]), keep[g], length[g], models.smooth, weight > 1, tally[:, g]
        )  # fmt: skip
        run.split[g] = length[g] == SPLIT
        if run.split[g]:
            length[g] = SKIP
            substeps = int(min(np.ceil(weight), MAX_SUBSTEPS))
        if length[g] != SKIP:
            count_step(tally, g, weight, m, loss[g])
    return substeps


@compiled
def choose_substep_lengths(weight: float, m: int, models: Models, run: Run, i: int, substep: int) -> None:
    """Compute the length of one substep for the models that split their step."""
    steps, tally, keep, length, split, loss = models.steps, models.tally, run.keep, run.length, run.split, run.loss
    counts = np.zeros_like(tally) if weight > MAX_SUBSTEPS - 1 else tally
    for g in range(len(split)):
        keep[g], length[g] = steps[2, i, g], SKIP
        if split[g]:
            length[g] = safe_length(
                float(loss[g]), float(run.square[g]), keep[g], steps[3, i, g], models.smooth, False, counts[:, g]
            )  # fmt: skip
            split[g] = length[g] != SKIP
        if split[g] and substep == 0:
            count_step(tally, g, weight, m, loss[g])


@compiled
def count_step(tally: Array, g: int, weight: float, pairs: int, loss: float) -> None:
    """Count a step of model g."""
    tally[STEPS, g] += weight
    tally[PAIRS, g] += pairs
    tally[LOSS, g] += weight * loss


@compiled
def step(norm: float, square: Array, models: Models, run: Run, r: int) -> None:
    """Update w <- keep w - length v, for models whose length is not 0; h = <z, B> is the last row of ``square``."""
    s, near, active, q, product, factor = run.s, run.near, run.active, run.q, run.product, run.factor
    sigma, length, keep = models.sigma, run.length, run.keep
    width, m = s.shape[1], square.shape[1]
    for g in range(width):
        if length[g] == SKIP:
            # Factor 0 is not enough: infinity times 0 is NaN.
            for k in range(m):
                q[k, g] = product[k, g] = 0
            product[m, g] = product[m + 1, g] = 0
    for g in range(width):
        sigma[g] *= max(MIN_KEEP, keep[g]) if length[g] != SKIP else 1.0
        factor[g] = length[g] / sigma[g]
    for k in range(m):
        h = square[m + 1, k]
        for g in range(width):
            near[k, g] -= factor[g] * (product[m, g] * h - product[k, g])
        for g in range(width):
            active[k, g] += factor[g] * q[k, g]
    for g in range(width):
        active[r, g] -= factor[g] * product[m, g]
    for g in range(width):
        s[0, g] -= factor[g] * (product[m, g] * norm - product[m + 1, g])
