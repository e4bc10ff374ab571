"""How much each candidate has to say, by its scores in windows."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy.special import expit

from pairloom.base.typing import Array
from pairloom.race.evidence import ScoredWindow

SURE = 3.0
"""How sure a row of the rarer class makes us: the log of two models' odds is so many times the gap of their areas."""

PRIOR = 3.0
"""How firmly the weights are held where they were before anything was known."""

FAR = 4.0
"""Standard deviations beyond which a score is an outlier."""

SMALLEST = 0.01
"""Share of the weights below which a candidate says nothing: its scores need not be computed."""

MOST = 16_384
"""Scores that weights are fitted to."""

STEPS, HALVINGS = 30, [0.5**k for k in range(12)]


def shares(areas: Array, rare: float, sizes: Sequence[int]) -> Array:
    """The share of each model in what its candidate says: exp(3 rare area), relative to the candidate's others.

    Where evidence is scarce all models of a candidate, its steps or penalties, have a say.

    >>> shares(np.array([0.9, 0.8, 0.5]), 10.0, [2, 1]).round(2)
    array([0.95, 0.05, 1.  ])
    """
    found = np.empty(len(areas))
    first = np.cumsum([0, *sizes])
    for start, end in pairwise(first):
        log_odds = SURE * rare * (areas[start:end] - areas[start:end].max())
        found[start:end] = np.exp(log_odds) / np.exp(log_odds).sum()
    return found


def spoken(
    windows: Sequence[ScoredWindow], parts: Array, sizes: Sequence[int], targets: Array
) -> tuple[Array, Array, Array, Array]:
    """What each candidate says of the rows in the windows: (rows, candidates), labels, weights and targets of these.

    Scores are standardised in each window. With more than two classes, each row is there once for each class.
    """
    first, found = np.cumsum([0, *sizes])[:-1], []
    room = MOST // len(targets)
    for window in reversed(windows):
        scores = (window.scores - window.scores.mean(axis=0)) / spread(window.scores)
        spoken_of = tame(np.add.reduceat(scores * parts[:, None], first, axis=1))
        for k, target in enumerate(targets):
            n = len(window.labels)
            found.append((spoken_of[:, :, k], window.labels == target, window.weights, np.full(n, k)))
        room -= len(window.labels)
        if room <= 0:
            break
    said, positive, weight, target = (np.concatenate(part) for part in zip(*found, strict=True))
    return said, positive, weight, target


def spread(scores: Array) -> Array:
    """Standard deviation of each column of scores; 1 where all are the same."""
    found = scores.std(axis=0)
    return np.where(found > 0, found, 1.0)


# A trial step may overflow: then it is no better, and a shorter one is tried.
@np.errstate(over="ignore", invalid="ignore")
def stacked(said: Array, positive: Array, weight: Array, target: Array, prior: Array) -> Array:
    """Weights w >= 0 of candidates: those for which w' said + b_target are log-odds, held near multiples of a prior.

    The minimiser of the log-loss plus 3 ||w - (sum w) prior||^2, by Newton's method in the face of the positive
    orthant. With few rows of the rarer class the prior decides, with many the rows.
    """
    K, kinds = said.shape[1], np.unique(target)
    A = np.column_stack([said, target[:, None] == kinds])
    weight = weight / weight.mean()
    away = np.zeros((A.shape[1], A.shape[1]))
    away[:K, :K] = np.eye(K) - np.outer(prior / prior.sum(), np.ones(K))
    held = PRIOR * away.T @ away
    x = np.concatenate([prior / prior.sum(), np.zeros(len(kinds))])
    value = _value(A, positive, weight, held, x)
    for _ in range(STEPS):
        p = expit(A @ x)
        slope = A.T @ (weight * (p - positive)) + 2.0 * held @ x
        bend = (A * (weight * p * (1.0 - p))[:, None]).T @ A + 2.0 * held + 1e-9 * np.eye(len(x))
        free = np.flatnonzero((x > 0) | (slope < 0) | (np.arange(len(x)) >= K))
        step = np.zeros(len(x))
        step[free] = np.linalg.solve(bend[np.ix_(free, free)], slope[free])
        before = value
        for length in HALVINGS:
            trial = x - length * step
            trial[:K] = np.maximum(trial[:K], 0.0)
            value = _value(A, positive, weight, held, trial)
            if value < before:
                x = trial
                break
        if not value < before - 1e-9 * len(A):
            break
    return x[:K]


def _value(A: Array, positive: Array, weight: Array, held: Array, x: Array) -> float:
    z = A @ x
    return float(weight @ (np.logaddexp(0.0, z) - positive * z) + x @ held @ x)


def heard(weights: Array, prior: Array) -> Array:
    """The weights without those too small to matter; the prior, if nothing is left."""
    kept = np.where(weights >= SMALLEST * weights.sum(), weights, 0.0)
    return kept if kept.sum() > 0 else prior / prior.sum()


def tame(scores: Array) -> Array:
    """Standardised scores, in the same order, the far ones drawn in: u, beyond 4 as 4 + ln(u - 3).

    Narrow kernels give a row next to a landmark a score far outside all others, and log-odds should not follow.

    >>> tame(np.array([-2.0, 4.0, 40.0])).round(2)
    array([-2.  ,  4.  ,  7.61])
    """
    size = np.abs(scores)
    if size.size and size.max() <= FAR:
        return scores
    return np.asarray(np.where(size > FAR, np.copysign(FAR + np.log1p(np.maximum(size - FAR, 0.0)), scores), scores))
