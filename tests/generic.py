"""Every estimator of the package, found by introspection, and generic checks of models."""

import importlib
import inspect
import pkgutil
from dataclasses import fields, is_dataclass
from functools import cache

import numpy as np

import pairloom
from pairloom.base.batch import Batch
from pairloom.columns.encoder import Encoder
from pairloom.estimators.base import StreamEstimator
from pairloom.features import Forest
from pairloom.race import Boosted, Descent, Exact, Portfolio, Steps
from pairloom.stream import Stream
from pairloom.stream.state import Kept

SMALL = Portfolio(
    forests=(
        Forest(8, max_leaves=16, n_rows=256, growth="renewed"), Forest(8, max_leaves=16, n_rows=256, growth="boosted"),
    ),
    kernels=(("wide", 1.0), ("minmax", 4.0)), n_landmarks=16, large_landmarks=32, exact=Exact((0.1, 1.0)),
    steps=Steps((0.02, 0.2)), boosted=Boosted(n_trees=12, max_leaves=8, n_rows=256),
    descent=Descent(steps=(("square", 0.1), ("logistic", 1.0))),
)  # fmt: skip
"""A race with every kind of candidate, all of them small."""


FPOGD_VARIANTS = {
    "defaults": {},
    "rules": {"gamma": "median", "scale": "standard", "average": "poly"},
    "float64": {"dtype": "float64", "n_components": 200, "representative": "reservoir"},
    "linear": {"kernel": "linear", "eta": 0.001, "average": "mean", "cluster_in": "input", "scale": "minmax"},
    "joint": {"strata": "joint", "normalization": "history", "loss": "hinge", "schedule": "poly"},
    "fixed": {"eps": 0.3, "gamma": 0.1, "representative": "centroid", "l2": "proximal", "alpha": 0.1},
    "reference": {"engine": "reference", "n_components": 32},
}
"""Parameters of FPOGD that between them reach most of its code."""


@cache
def classes():
    """All concrete stream estimators by name, wherever they are defined."""
    found = {}
    for module in pkgutil.walk_packages(pairloom.__path__, "pairloom."):
        for name, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if issubclass(kind, StreamEstimator) and not inspect.isabstract(kind) and kind.__module__ == module.name:
                found[name] = kind
    return found


@cache
def forms():
    """(class, parameters) of each published form, by name."""
    return {
        name + suffix: (kind, kind.variants[suffix]) for name, kind in classes().items() for suffix in kind.variants
    }


def make(form, **changes):
    """A fresh estimator of moderate size."""
    kind, parameters = forms()[form]
    known = inspect.signature(kind).parameters
    sizes = {"random_state": 0, "n_components": 64, "max_support": 20, "portfolio": SMALL}
    small = {name: value for name, value in sizes.items() if name in known}
    return kind(**{**small, **parameters, **changes})


def outputs(model, X):
    """All predictions of a model."""
    names = ("predict", "decision_function", "predict_proba")
    return [np.asarray(getattr(model, name)(X), dtype=float) for name in names if hasattr(model, name)]


def assert_only_the_seed_matters(make, X, y):
    """Two models with the same seed are equal, whatever the global generator, which nothing reads or changes."""
    models = []
    for seed in (1, 2):
        np.random.seed(seed)  # noqa: NPY002
        before = np.random.get_state()[1].copy()  # noqa: NPY002
        models.append(make().fit(X, y))
        make(random_state=None).fit(X, y).predict(X)
        np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    assert_same(*models)


def assert_expansions_agree(fast, truth, exact, atol):
    """Streams of sums of kernels agree up to rounding; the arrays of the memory in ``exact`` are equal."""
    ours, theirs = fast.learned.memory, truth.learned.memory
    for name in exact:
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), err_msg=name)
    np.testing.assert_allclose(ours.coef, theirs.coef, rtol=1e-10, atol=atol)
    scores = (stream.state.observed["recent"].scores for stream in (fast, truth))
    np.testing.assert_allclose(*scores, rtol=1e-10, atol=atol)
    np.testing.assert_allclose(fast.learned.tally, truth.learned.tally, rtol=1e-10)


def assert_same(a, b, where="model"):
    """Equal to the last bit: arrays, numbers, generators, parts. Derived fields are not compared."""
    assert type(a) is type(b), where
    if isinstance(a, np.ndarray):
        np.testing.assert_array_equal(a, b, err_msg=where)
        assert a.dtype == b.dtype, where
    elif isinstance(a, np.random.Generator):
        assert a.bit_generator.state == b.bit_generator.state, where
    elif isinstance(a, Kept):
        assert a.count == b.count, where
        if a.count:
            assert_same(Batch.join(a.batches), Batch.join(b.batches), where)
    elif isinstance(a, dict):
        assert a.keys() == b.keys(), where
        for key in a:
            assert_same(a[key], b[key], f"{where}[{key!r}]")
    elif isinstance(a, list | tuple):
        assert len(a) == len(b), where
        for k, (one, other) in enumerate(zip(a, b, strict=True)):
            assert_same(one, other, f"{where}[{k}]")
    elif hasattr(a, "indptr"):
        assert (a != b).nnz == 0, where
    elif isinstance(a, StreamEstimator):
        assert_same(vars(a), vars(b), where)
    elif is_dataclass(a):
        for f in fields(a):
            if not f.metadata.get("derived"):
                assert_same(getattr(a, f.name), getattr(b, f.name), f"{where}.{f.name}")
    elif isinstance(a, Encoder):
        assert_same([a.part, a.state], [b.part, b.state], where)
    elif isinstance(a, Stream):
        # When a warning was last given depends on the calls; nothing else may.
        for name in ("model", "hooks", "state"):
            assert_same(getattr(a, name), getattr(b, name), f"{where}.{name}")
    else:
        assert a == b or (a != a and b != b), where
