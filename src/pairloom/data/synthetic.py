"""Synthetic streams, each with one property of real streams that shuffled benchmark files lack.

All return (X, y) with y in {-1, +1}, and the same rows for the same arguments.
"""

from statistics import NormalDist
from typing import Literal

import numpy as np

from pairloom.base.checks import check_choice, check_count, check_number
from pairloom.base.typing import Array

Kind = Literal["sudden", "gradual"]


def imbalanced(
    n: int, n_features: int = 10, *, positive: float = 0.05, noise: float = 0.2, seed: int = 0
) -> tuple[Array, Array]:
    """Generate a rare class around the other one: no linear score ranks better than chance.

    Rows are standard normal; those with the largest x_1^2 + x_2^2 + noise * normal are positive (without x_2 if there
    is only one column).

    Parameters
    ----------
    n, n_features
        Shape of X.
    positive
        Share of positive rows, exact to the nearest row, with at least one of each class.
    noise
        Standard deviation of the noise at the class boundary.
    seed
        Seed of the random generator.

    >>> X, y = imbalanced(1000, positive=0.02)
    >>> X.shape, int((y == 1).sum())
    ((1000, 10), 20)
    """
    _check_shape(n, n_features, least=2)
    check_number("positive", positive, 0, 1)
    check_number("noise", noise, 0)
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    score = np.square(X[:, :2]).sum(axis=1) + noise * rng.normal(size=n)
    return X, _top(score, min(max(1, round(positive * n)), n - 1))


def sorted_stream(X: Array, y: Array, column: int | None = None) -> tuple[Array, Array]:
    """Sort rows by one feature: the paper's non-i.i.d. stream.

    Equal values keep their order.

    Parameters
    ----------
    X, y
        A dense array and its labels; they are not changed.
    column
        The feature to sort by; by default the one of largest variance.

    >>> X, y = sorted_stream(*imbalanced(1000), column=0)
    >>> bool(np.all(np.diff(X[:, 0]) >= 0))
    True
    """
    X, y = np.asarray(X), np.asarray(y)
    if X.ndim != 2 or y.shape != X.shape[:1]:
        raise ValueError(
            f"X must be a dense array of two dimensions, y one label for each row; got {X.shape} and {y.shape}"
        )
    if column is None:
        column = int(np.argmax(X.var(axis=0)))
    elif not -X.shape[1] <= column < X.shape[1]:
        raise ValueError(f"column must be one of the {X.shape[1]} columns, counted from 0; got {column!r}")
    order = np.argsort(X[:, column], kind="stable")
    return X[order], y[order]


def drift(
    n: int,
    n_features: int = 10,
    *,
    kind: Kind = "sudden",
    at: float = 0.5,
    width: float = 0.3,
    positive: float = 0.5,
    seed: int = 0,
) -> tuple[Array, Array]:
    """Generate a linear concept that is reversed: rows that ranked best before the change rank worst after it.

    Rows are standard normal throughout; those with the largest <a, x> are positive, after the change those with the
    smallest. A gradual change is a mixture: the share of rows of the new concept increases linearly from 0 to 1.

    Parameters
    ----------
    n, n_features
        Shape of X.
    kind
        "sudden" or "gradual".
    at
        Position of the (middle of the) change, as a share of the stream.
    width
        Length of a gradual change, as a share of the stream.
    positive
        Probability of the positive class, the same before and after.
    seed
        Seed of the random generator.

    >>> X, y = drift(1000, 2, kind="gradual")
    >>> X.shape, sorted(set(y.tolist()))
    ((1000, 2), [-1, 1])
    """
    _check_shape(n, n_features, least=1)
    check_choice("kind", kind, Kind)
    check_number("at", at, 0, 1)
    check_number("width", width, 0, 1, open_low=True)
    if not 0 < positive < 1:
        raise ValueError(f"positive must be a number above 0 and below 1; got {positive!r}")
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n_features)
    a /= np.linalg.norm(a)
    X = rng.normal(size=(n, n_features))
    passed = (np.arange(n) - round(at * n)) / n
    share = (passed >= 0).astype(float) if kind == "sudden" else np.clip(passed / width + 0.5, 0, 1)
    after = rng.random(n) < share
    # <a, x> is standard normal, so the threshold for this share is known.
    threshold = NormalDist().inv_cdf(1 - positive)
    return X, np.where(np.where(after, -1, 1) * (X @ a) > threshold, 1, -1)


def duplicates(
    n: int, n_features: int = 10, *, distinct: int = 64, noise: float = 0.05, seed: int = 0
) -> tuple[Array, Array]:
    """Generate few distinct rows, each many times, as in binary data: exact ties and distances of 0.

    The k-th most frequent row occurs about 1/k as often as the first; each occurs at least once.

    Parameters
    ----------
    n, n_features
        Shape of X.
    distinct
        Number of distinct rows; the half (rounded down) farthest from 0 is positive.
    noise
        Share of rows with a flipped label, so that equal rows may have both labels.
    seed
        Seed of the random generator.

    >>> X, y = duplicates(1000, distinct=20)
    >>> len(np.unique(X, axis=0))
    20
    """
    _check_shape(n, n_features, least=2)
    check_number("noise", noise, 0, 1)
    check_count("distinct", distinct)
    if not 2 <= distinct <= n:
        raise ValueError(f"distinct must be at least 2 and at most n = {n}; got {distinct!r}")
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(distinct, n_features))
    labels = _top(np.square(rows).sum(axis=1), distinct // 2)
    frequency = 1 / np.arange(1, distinct + 1)
    drawn = rng.choice(distinct, size=n - distinct, p=frequency / frequency.sum())
    which = rng.permutation(np.concatenate([np.arange(distinct), drawn]))
    return rows[which], np.where(rng.random(n) < noise, -labels[which], labels[which])


def _top(score: Array, k: int) -> Array:
    """Return +1 for the k largest scores, -1 for the rest."""
    y = np.full(len(score), -1)
    y[np.argsort(-score, kind="stable")[:k]] = 1
    return y


def _check_shape(n: int, n_features: int, least: int) -> None:
    check_count("n", n)
    check_count("n_features", n_features)
    if n < least:
        raise ValueError(f"n must be at least {least}, for both classes; got {n!r}")
