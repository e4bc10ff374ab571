"""Mixing: weights of models and candidates, from their scores in windows."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy.special import expit

from pairloom.base.graph import Value
from pairloom.base.typing import Array
from pairloom.race.evidence import ScoredWindow

LOG_ODDS_PER_ROW = 3.0
"""Log-odds between two models, per row of the rarest class and unit difference of their AUC."""

PRIOR_STRENGTH = 3.0
"""Penalty on the distance of the weights from multiples of the prior."""

CLIP_FROM = 4.0
"""Standard deviations beyond which a score is an outlier."""

MIN_SHARE = 0.01
"""Share of the weights below which a candidate leaves the mixture: its scores need not be computed."""

MAX_SCORES = 16_384
"""Maximum number of scores used to fit the weights."""

NEWTON_STEPS, STEP_SIZES = 30, [0.5**k for k in range(12)]


def model_shares(areas: Array, rare: float, sizes: Sequence[int]) -> Array:
    """Return the share of each model in the score of its candidate: the softmax of 3 ``rare`` AUC.

    ``rare``: rows of the rarest class. With few of them, the models of a candidate have nearly equal shares.

    >>> model_shares(np.array([0.9, 0.8, 0.5]), 10.0, [2, 1]).round(2)
    array([0.95, 0.05, 1.  ])
    """
    shares = np.empty(len(areas))
    first = np.cumsum([0, *sizes])
    for start, end in pairwise(first):
        log_odds = LOG_ODDS_PER_ROW * rare * (areas[start:end] - areas[start:end].max())
        shares[start:end] = np.exp(log_odds) / np.exp(log_odds).sum()
    return shares


# Scores near the limit of float32 have no finite mean; the weights are then those of the prior.
@np.errstate(over="ignore", invalid="ignore")
def candidate_scores(
    windows: Sequence[ScoredWindow], shares: Array, sizes: Sequence[int], targets: Array
) -> tuple[Array, Array, Array, Array]:
    """Return the candidates' scores of the rows in windows, (rows, candidates), with labels, weights and targets.

    Scores are standardised in each window. With more than two classes, each row occurs once per class.
    """
    first, found = np.cumsum([0, *sizes])[:-1], []
    room = MAX_SCORES // len(targets)
    for window in reversed(windows):
        standardised = (window.scores - window.scores.mean(axis=0)) / spread(window.scores)
        mixed = soft_clip(np.add.reduceat(standardised * shares[:, None], first, axis=1))
        for k, target in enumerate(targets):
            n = len(window.labels)
            found.append((mixed[:, :, k], window.labels == target, window.weights, np.full(n, k)))
        room -= len(window.labels)
        if room <= 0:
            break
    scores, positive, weight, target = (np.concatenate(part) for part in zip(*found, strict=True))
    return scores, positive, weight, target


def spread(scores: Array) -> Array:
    """Return the standard deviation of each column; 1 for a constant column."""
    found = scores.std(axis=0)
    return np.where(found > 0, found, 1.0)


# A trial step may overflow: it is then not better, and a shorter one is tried.
@np.errstate(over="ignore", invalid="ignore")
def fit_weights(scores: Array, positive: Array, weight: Array, target: Array, prior: Array) -> Array:
    """Return weights w >= 0 of the candidates, such that w' scores + b_target are log-odds: stacking with a prior.

    They minimise the log-loss plus 3 ||w - (sum w) prior||^2, by a projected Newton method. With few rows of the rarest
    class w is close to a multiple of the prior.
    """
    K, kinds = scores.shape[1], np.unique(target)
    A = np.column_stack([scores, target[:, None] == kinds])
    weight = weight / weight.mean()
    away = np.zeros((A.shape[1], A.shape[1]))
    away[:K, :K] = np.eye(K) - np.outer(prior / prior.sum(), np.ones(K))
    penalty = PRIOR_STRENGTH * away.T @ away
    x = np.concatenate([prior / prior.sum(), np.zeros(len(kinds))])
    value = _objective(A, positive, weight, penalty, x)
    for _ in range(NEWTON_STEPS):
        p = expit(A @ x)
        gradient = A.T @ (weight * (p - positive)) + 2.0 * penalty @ x
        hessian = (A * (weight * p * (1.0 - p))[:, None]).T @ A + 2.0 * penalty + 1e-9 * np.eye(len(x))
        free = np.flatnonzero((x > 0) | (gradient < 0) | (np.arange(len(x)) >= K))
        step = np.zeros(len(x))
        step[free] = np.linalg.solve(hessian[np.ix_(free, free)], gradient[free])
        before = value
        for size in STEP_SIZES:
            trial = x - size * step
            trial[:K] = np.maximum(trial[:K], 0.0)
            value = _objective(A, positive, weight, penalty, trial)
            if value < before:
                x = trial
                break
        if not value < before - 1e-9 * len(A):
            break
    return x[:K]


def _objective(A: Array, positive: Array, weight: Array, penalty: Array, x: Array) -> float:
    z = A @ x
    return float(weight @ (np.logaddexp(0.0, z) - positive * z) + x @ penalty @ x)


def drop_negligible(weights: Array, prior: Array) -> Array:
    """Return the weights with those below ``MIN_SHARE`` of their sum set to 0; the prior if all are 0."""
    kept = np.where(weights >= MIN_SHARE * weights.sum(), weights, 0.0)
    return kept if kept.sum() > 0 else prior / prior.sum()


def soft_clip(scores: Array) -> Array:
    """Return standardised scores u with outliers compressed: beyond 4, u becomes 4 + ln(u - 3).

    The order of scores does not change. Narrow kernels give a row next to a landmark a score far from all others.

    >>> soft_clip(np.array([-2.0, 4.0, 40.0])).round(2)
    array([-2.  ,  4.  ,  7.61])
    """
    size = np.abs(scores)
    if size.size and size.max() <= CLIP_FROM:
        return scores
    clipped = np.copysign(CLIP_FROM + np.log1p(np.maximum(size - CLIP_FROM, 0.0)), scores)
    return np.asarray(np.where(size > CLIP_FROM, clipped, scores))


def soft_clip_onnx(scores: Value) -> Value:
    """Return ``soft_clip`` in an ONNX graph."""
    size = scores.abs()
    clipped = ((size - CLIP_FROM).at_least(0.0) + 1.0).log() + CLIP_FROM
    return (size > CLIP_FROM).where(clipped * scores.call("Sign"), scores)
