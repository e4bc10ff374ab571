"""Fuzzing of compiled code: random parts and systems, few or no rows, weights of any magnitude."""

import inspect

import numpy as np
from scipy.sparse import csr_array

import pairloom as pl
from pairloom.base.tree import copy, same
from pairloom.features import (
    Cauchy,
    Compressed,
    Growing,
    Identity,
    Landmarks,
    Laplace,
    Nystroem,
    OrthogonalFourier,
    RandomFourier,
    Whitened,
)
from pairloom.losses import Hinge, Logistic, Square, SquaredHinge
from pairloom.memory import Latest, Reservoir, RSx, Strata, WholeHistory, Window
from pairloom.pairs import OppositeClass, Order
from pairloom.steps import L2, AdaGrad, Ball, Constant, ElasticNet, Polynomial, Sqrt
from tests.generic import forms, make

SMALL = {
    "n_components": 6, "max_support": 3, "max_supports": 3, "n_candidates": 4, "budget": 2, "n_neighbors": 3, "size": 2,
    "max_strata": 2, "rank": 2, "max_rows": 200, "n_stages": 3,
}  # fmt: skip
"""Buffers of a few slots, so that every row reaches their limits."""

MEMORIES = (
    Latest(), Latest("previous", 3), Window(2), Reservoir(1), Reservoir(3, by="joint"), RSx(1),
    RSx(3, by="class"), Reservoir(2, normalization="sum"), WholeHistory(200), Strata(0.5, 1),
    Strata(-1.0, 3), Strata("auto", 2, "reservoir"), Strata(0.1, 2, "centroid"),
    Strata(0.1, 2, "centroid", "mean", cluster_in="input"), Strata(0.5, 2, allocation="neyman"),
    Strata(0.5, 2, "reservoir", allocation="neyman", slots=3), Strata(by="joint", normalization="history"),
)  # fmt: skip
MAPS = (
    Identity(), Identity(scale="standard"), RandomFourier(6), RandomFourier(7, Laplace("median")),
    OrthogonalFourier(6, scale="wide"), Nystroem(3), Nystroem(2, Cauchy("median"), scale="minmax"),
    Whitened(RandomFourier(6), 2), Compressed(Identity()), Growing(8, block=4), Landmarks(3),
)  # fmt: skip
LOSSES = (Square(), Hinge(), SquaredHinge(), Logistic())
STEPS = (
    Constant(0.1),
    Constant(100.0),
    Sqrt(1.0),
    Polynomial(0.5),
    AdaGrad(0.1),
)
PENALTIES = (L2(), L2(0.001, "proximal"), ElasticNet(0.01, 0.01), Ball(0.5))


def pick(rng, choices):
    return choices[rng.integers(len(choices))]


def any_stream(rng):
    """Return the stream of a random composition of parts, or None if they are incompatible."""
    memory, features = pick(rng, MEMORIES), pick(rng, MAPS)
    pairs = pick(rng, (OppositeClass(), OppositeClass(3)) + ((Order(),) if memory.joint else ()))
    try:
        return pl.Stream(pl.Learner(
            features, pairs, pick(rng, LOSSES), memory, pick(rng, PENALTIES), step=pick(rng, STEPS),
            average=pick(rng, ("last", "mean", "poly")), dtype=pick(rng, ("float32", "float64")), seed=0,
        ))  # fmt: skip
    except ValueError:
        return None


def any_system(rng):
    form = pick(rng, [form for form in sorted(forms()) if form != "AUCClassifier"])
    known = inspect.signature(forms()[form][0]).parameters
    small = {name: value for name, value in SMALL.items() if name in known and rng.random() < 0.7}
    if "rank" in small and form != "OPAUCr":
        del small["rank"]
    if "loss" in known and rng.random() < 0.5 and form != "AllPairs" and form != "OPERA":
        small["loss"] = pick(rng, ("hinge", "squared_hinge"))
    return make(form, dtype=pick(rng, ("float32", "float64")), **small)


def any_rows(rng, n, d):
    """Return rows that are ordinary, equal, far apart or nearly zero; dense or CSR."""
    X = rng.normal(size=(n, d)) * 10.0 ** pick(rng, (-41, -20, -3, 0, 0, 0, 3, 14))
    if rng.random() < 0.3:
        X = np.zeros((n, d)) if rng.random() < 0.5 else np.round(X / (np.abs(X).max(initial=1e-300) or 1.0))
    return csr_array(X) if rng.random() < 0.3 else X


def any_weights(rng, n):
    """Return weights, equal or from the smallest double to the largest."""
    most = pick(rng, (3, 30, 307))
    exponents = rng.uniform(-most, most, n) if rng.random() < 0.6 else np.full(n, rng.uniform(-most, most))
    weights = 10.0**exponents * (1.0 if rng.random() < 0.9 else 1e-17)
    return None if rng.random() < 0.2 else np.where(rng.random(n) < 0.1, 0.0, weights)


def attack(seed):
    """Run one configuration; fail if scores are not finite, or a call that raised has changed the model."""
    rng = np.random.default_rng(seed)
    model = any_stream(rng) if rng.random() < 0.5 else any_system(rng)
    if model is None:
        return
    d = int(rng.integers(1, 6))
    classes = int(rng.integers(1, 4))
    whole = not hasattr(model, "partial_fit")
    for _ in range(1 if whole else int(rng.integers(1, 5))):
        n = int(pick(rng, (0, 1, 1, 2, 5, 40)))
        X, weight = any_rows(rng, n, d), any_weights(rng, n)
        y = rng.integers(0, max(1, min(classes, 2 if isinstance(model, pl.Stream) else 3)), n)
        before = snapshot(model)
        try:
            (model.fit if whole else model.partial_fit)(X, y, sample_weight=weight)
        except ValueError:
            assert same(snapshot(model), before), f"seed {seed}: a call that raised changed {model!r}"
    if not hasattr(model, "stream_") and not isinstance(model, pl.Stream):
        return
    X = any_rows(rng, 5, d)
    scores = model.score(X) if isinstance(model, pl.Stream) else model.predict(X)
    assert np.isfinite(scores).all(), f"seed {seed}: {scores} of {model!r}"


def snapshot(model):
    """Return a copy of what a call that raises must not change: the state of the stream."""
    stream = getattr(model, "stream_", model if isinstance(model, pl.Stream) else None)
    return None if stream is None else copy(stream.state)
