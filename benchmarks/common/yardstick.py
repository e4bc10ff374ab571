"""A synthetic stream, and the scikit-learn pipeline with which speeds are compared."""

import time
from collections.abc import Callable

import numpy as np
import pandas as pd
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import SGDClassifier

D_IN, D_OUT, STRATA, BATCH = 22, 1024, 32, 512
"""Columns, features, strata per class and rows of a batch in all comparisons."""

Learn = Callable[[np.ndarray, np.ndarray], object]


def stream(n: int, d: int = D_IN) -> tuple[np.ndarray, np.ndarray]:
    """Return rows with a non-linear rare class, about 16 % positive."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)).astype(np.float32)
    return X, np.where(np.square(X[:, :5]).sum(axis=1) > 8, 1, -1)


def mixed_frame(n: int, n_numbers: int = 20) -> tuple[pd.DataFrame, np.ndarray]:
    """Return columns of numbers, 9 of text and one of dates."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"n{j}": rng.normal(size=n) for j in range(n_numbers)})
    for j in range(9):
        size = 300 if j == 0 else 20
        frame[f"c{j}"] = np.array([f"value {k}" for k in range(size)], object)[rng.integers(0, size, n)]
    frame["time"] = pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(n), unit="min")
    return frame, (frame.n0 + 2 * (frame.c1 == "value 1") + rng.normal(size=n) > 1.5).to_numpy()


def scikit_learn() -> Learn:
    """Return ``partial_fit`` of RBFSampler + SGDClassifier."""
    sampler = RBFSampler(n_components=D_OUT, gamma=0.5 / D_IN, random_state=0).fit(np.zeros((1, D_IN), np.float32))
    model = SGDClassifier(loss="log_loss", random_state=0)
    return lambda X, y: model.partial_fit(sampler.transform(X), y, classes=[-1, 1])


def microseconds(learn: Learn, X: np.ndarray, y: np.ndarray, warm: int, clock: Callable[[], float]) -> float:
    """Return the time per row in batches of 512, after ``warm`` rows that compile and warm up."""
    learn(X[:warm], y[:warm])
    return 1e6 * seconds(learn, X[warm:], y[warm:], clock) / (len(y) - warm)


def seconds(learn: Learn, X: np.ndarray, y: np.ndarray, clock: Callable[[], float] = time.process_time) -> float:
    """Return the time to learn rows in batches of 512."""
    start = clock()
    for i in range(0, len(y), BATCH):
        learn(X[i : i + BATCH], y[i : i + BATCH])
    return clock() - start
