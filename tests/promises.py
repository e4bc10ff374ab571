"""What the tests of the promises share."""

import pickle

import numpy as np

VARIANTS = {
    "defaults": {},
    "rules": {"gamma": "median", "scale": "standard", "average": "poly"},
    "float64": {"dtype": "float64", "n_components": 200, "representative": "reservoir"},
    "linear": {"kernel": "linear", "eta": 0.001, "average": "mean", "cluster_in": "input", "scale": "minmax"},
    "joint": {"strata": "joint", "normalization": "history", "loss": "hinge", "schedule": "poly"},
    "fixed": {"eps": 0.3, "gamma": 0.1, "representative": "centroid", "l2": "proximal", "alpha": 0.1},
    "reference": {"engine": "reference", "n_components": 32},
}


def frozen(model):
    """All of a model, as bytes."""
    return pickle.dumps(model)


def assert_same(a, b):
    np.testing.assert_array_equal(a.coef_, b.coef_)
    assert a.calibration_ == b.calibration_
    np.testing.assert_array_equal(a.stream_.learned.tally, b.stream_.learned.tally)
    np.testing.assert_array_equal(a.stream_.state.observed["recent"].scores, b.stream_.state.observed["recent"].scores)
    np.testing.assert_array_equal(a.stream_.learned.memory.centers, b.stream_.learned.memory.centers)
    np.testing.assert_array_equal(a.stream_.learned.memory.slots.points, b.stream_.learned.memory.slots.points)
    assert a.classes_.tolist() == b.classes_.tolist()
    assert a.stream_.learned.rng.bit_generator.state == b.stream_.learned.rng.bit_generator.state
