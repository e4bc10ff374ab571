"""One step of many models side by side, from inner products alone; see ``blocked_runs``.

Arrays over models have the models in their last axis, so that loops over models are vector instructions, and sums over
partners are small matrix products.
"""

from typing import NamedTuple

import numpy as np

from pairloom.base.compiled import compiled
from pairloom.base.typing import Array
from pairloom.engines.atoms import Partners
from pairloom.engines.fused import SKIP, SPLIT, safe_length
from pairloom.engines.reference import FAR, LONGEST, PARTS, STABLE
from pairloom.engines.state import LOSS, PAIRS, STEPS, WORST
from pairloom.losses import loss_terms

LEAST = 1e-15
"""A step keeps at least this share of w: beside the step itself it is nothing, and its inverse is still a number."""


class Models(NamedTuple):
    """Models side by side in the last axis; ``..._bar`` belong to the averages, and are empty without.

    ``steps`` (4, rows, models): keep and rate of a step, then of one of the parts into which a weight is split; one row
    if it is the same for all.
    ``scores_0``: by the models at the start of the block. ``head``: see above; ``head_bar`` (2, models).
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
    """Room for rows with the same partners.

    ``base``: scores by the models at the start of the run. ``near``: F of the partners. ``active``: what the run adds
    to the coefficients of the partners, then of its own rows. ``h``: <z, a> of the present row z and these atoms a;
    ``s``: its scores by w_hat. ``q``: coefficients of the gradient psi z - sum_k q_k B_k (``q_flat`` are the same
    numbers); ``product``: the partners' Gram matrix times q, then psi and <z, sum_k q_k B_k>. ``loss`` and ``square``
    (its squared norm) are of the gradient. ``decay``, ``gain``: the average is decay times that at the start of the
    run, and gain times the w_hat there, and ``active_bar``.
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
    """Room for ``n`` rows, and as many averages if there are any."""
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
    """Fill in q_k = p_k a_k l'(m_k), the products with q, the loss and the squared norm."""
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
    """The length of each model's step, counted as taken; False if one of them needs care."""
    steps, tally, keep, length = models.steps, models.tally, run.keep, run.length
    loss, square, smooth = run.loss, run.square, models.smooth
    row, unsafe = i if steps.shape[1] > 1 else 0, 1 if weight > 1 else 0
    for g in range(len(keep)):
        keep[g], length[g] = steps[0, row, g], steps[1, row, g]
    for g in range(len(keep)):
        instability = 0.5 * length[g] * square[g] / loss[g] if smooth and loss[g] > 0 else 0.0
        safe = instability <= STABLE and length[g] * length[g] * (loss[g] + square[g]) < (LONGEST if smooth else FAR)
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
    """``choose_lengths`` where steps are cut, skipped, or split into parts: the number of these."""
    tally, keep, length, loss = models.tally, run.keep, run.length, run.loss
    parts = 0
    for g in range(len(keep)):
        length[g] = safe_length(
            float(loss[g]), float(run.square[g]), keep[g], length[g], models.smooth, weight > 1, tally[:, g]
        )  # fmt: skip
        run.split[g] = length[g] == SPLIT
        if run.split[g]:
            length[g] = SKIP
            parts = int(min(np.ceil(weight), PARTS))
        if length[g] != SKIP:
            count_step(tally, g, weight, m, loss[g])
    return parts


@compiled
def choose_parts(weight: float, m: int, models: Models, run: Run, i: int, part: int) -> None:
    """The length of one part of the step, of the models that split it."""
    steps, tally, keep, length, split, loss = models.steps, models.tally, run.keep, run.length, run.split, run.loss
    counts = np.zeros_like(tally) if weight > PARTS - 1 else tally
    for g in range(len(split)):
        keep[g], length[g] = steps[2, i, g], SKIP
        if split[g]:
            length[g] = safe_length(
                float(loss[g]), float(run.square[g]), keep[g], steps[3, i, g], models.smooth, False, counts[:, g]
            )  # fmt: skip
            split[g] = length[g] != SKIP
        if split[g] and part == 0:
            count_step(tally, g, weight, m, loss[g])


@compiled
def count_step(tally: Array, g: int, weight: float, pairs: int, loss: float) -> None:
    """A step was taken."""
    tally[STEPS, g] += weight
    tally[PAIRS, g] += pairs
    tally[LOSS, g] += weight * loss


@compiled
def step(norm: float, square: Array, models: Models, run: Run, r: int) -> None:
    """w <- keep w - length v, for the models with a length; h = <z, B> is the last row of ``square``."""
    s, near, active, q, product, factor = run.s, run.near, run.active, run.q, run.product, run.factor
    sigma, length, keep = models.sigma, run.length, run.keep
    width, m = s.shape[1], square.shape[1]
    for g in range(width):
        if length[g] == SKIP:
            # Not only factor 0: what overflowed stays infinite when it is multiplied by 0.
            for k in range(m):
                q[k, g] = product[k, g] = 0
            product[m, g] = product[m + 1, g] = 0
    for g in range(width):
        sigma[g] *= max(LEAST, keep[g]) if length[g] != SKIP else 1.0
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
