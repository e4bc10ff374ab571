"""The fused engine against the specification: every pair of options, on ordinary and on duplicate-rich streams."""

import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from pairloom import Learner, Stream
from pairloom.engines.state import LOSS, SKIPPED, STEPS
from pairloom.engines.state import PAIRS as N_PAIRS
from pairloom.features import (
    Cauchy,
    Compressed,
    Gaussian,
    Growing,
    Identity,
    Landmarks,
    Laplace,
    Matern32,
    Matern52,
    Nystroem,
    OrthogonalFourier,
    RandomFourier,
    Whitened,
)
from pairloom.losses import LOSSES
from pairloom.memory import Latest, Reservoir, RSx, Strata, WholeHistory
from pairloom.memory.strata import StrataState
from pairloom.pairs import ClassDifference, Difference, OppositeClass, Order
from pairloom.steps import L2, AdaGrad, Ball, Constant, ElasticNet, Horizon, PassiveAggressive, Polynomial, Sqrt
from pairloom.stream import Forgetting, StabilityWarning
from tests.conftest import STREAMS, make_stream
from tests.covering import Configurations, in_four_parts, soak_in_both_dtypes

pytestmark = pytest.mark.usefixtures("check_every_plan")

FEATURES = {
    "linear": Identity(),
    "linear scaled": Identity(scale="standard"),
    "fourier": RandomFourier(40, Gaussian(0.2)),
    "fourier odd, widths": RandomFourier(31, Gaussian((0.1, 0.2, 0.3, 0.05, 0.1))),
    "fourier, rules": RandomFourier(64, Gaussian("median"), scale="minmax"),
    "laplace": RandomFourier(40, Laplace("median")),
    "cauchy": RandomFourier(40, Cauchy(0.3), scale="maxabs"),
    "matern, orthogonal": OrthogonalFourier(40, Matern32("median")),
    "nystroem": Nystroem(40, Gaussian("median"), scale="standard"),
    # Narrow: where landmarks are alike, late coordinates are small differences, of which float32 has few digits.
    "landmarks": Landmarks(40, Gaussian("median", 16.0), scale="standard"),
    "nystroem, truncated": Nystroem(30, Matern32(0.1), rank=12),
    "whitened": Whitened(RandomFourier(40, Gaussian("median"), scale="standard"), 8),
    "whitened nystroem": Whitened(Nystroem(40, Gaussian("median")), 6),
    "whitened linear": Whitened(Identity(), 3),
    "compressed": Compressed(RandomFourier(40, Gaussian("median"))),
    "matern": RandomFourier(40, Matern52(0.1)),
    "growing": Growing(48, Gaussian("median"), 8, scale="standard"),
}

MEMORIES = {
    "previous": Latest("previous"),
    "window": Latest("previous", size=5),
    "opposite": Latest("opposite"),
    "opposite window": Latest("opposite", size=3),
    "reservoir": Reservoir(6),
    "joint reservoir": Reservoir(9, by="joint"),
    "rsx": RSx(7),
    "rsx by class": RSx(5, by="class"),
    "reservoir sum": Reservoir(6, normalization="sum"),
    "joint reservoir sum": Reservoir(9, by="joint", normalization="sum"),
    "rsx sum": RSx(5, by="class", normalization="sum"),
    "history sum": WholeHistory(600, normalization="sum"),
    "history": WholeHistory(600),
    "joint history": WholeHistory(600, by="joint"),
}

DIFFERENCES = ("difference", "class difference", "three class difference")

OPTIONS = {
    "stream": list(STREAMS),
    "features": [name for name in FEATURES if name != "growing"],
    "loss": list(LOSSES),
    "memory": ["strata"] * 8 + list(MEMORIES),
    "allocation": ["equal", "equal", "neyman"],
    "eps": ["auto", 0.0, 0.3, 2.0, np.inf, -1.0],
    "max_strata": [1, 4, 7, 16, 400],
    "representative": ["fifo", "reservoir", "centroid"],
    "centroid_step": [0.05, 0.5, 1.0, "mean"],
    "by": ["class", "joint"],
    "cluster_in": ["features", "input"],
    "normalization": ["class", "history", "sum"],
    "pairs": ["opposite", "opposite", "opposite", "three classes", "order", *DIFFERENCES],
    "weights": ["none", "none", "fractions", "counts"],
    "groups": [None, None, None, 3],
    "schedule": [Constant, Sqrt, Polynomial, partial(Horizon, horizon=100), PassiveAggressive, AdaGrad],
    "eta": [0.02, 0.2],
    "penalty": [L2(), L2(1e-3), L2(0.5), L2(0.5, "proximal"), ElasticNet(1e-3, l1=0.05), Ball(0.3)],
    "average": ["last", "mean", "poly"],
    "half_life": [None, 12.0, 100.0],
}


PAIRS = {
    "opposite": OppositeClass(),
    "three classes": OppositeClass(3),
    "order": Order(),
    "difference": Difference(),
    "class difference": ClassDifference(),
    "three class difference": ClassDifference(3),
}


def valid(config):
    """Parts that fit together."""
    if config["by"] == "joint" and (config["normalization"] != "history" or config["representative"] == "centroid"):
        return False
    if config["schedule"] is PassiveAggressive and config["loss"] != "hinge":
        return False
    if config["pairs"] in DIFFERENCES and config["loss"] != "square":
        return False
    if config["allocation"] == "neyman" and config["representative"] == "centroid":
        return False
    memory = make_memory(config)
    if config["features"] == "growing" and not memory.holds_rows:
        return False
    if memory.weighting == "sum":
        return config["pairs"] in ("opposite", "three classes")
    return memory.joint or config["pairs"] not in ("order", "difference")


def labels_for(pairs, X, y):
    if pairs in ("opposite", "class difference"):
        return y
    score = np.square(X).sum(axis=1) + X[:, 0]
    return np.digitize(score, np.quantile(score, [0.5, 0.8])).astype(float) if pairs != "difference" else score / 10


def weights_for(kind, n):
    rng = np.random.default_rng(5)
    return {"none": None, "fractions": rng.random(n) * 2, "counts": rng.integers(0, 4, n).astype(float)}[kind]


STRATA = ("eps", "max_strata", "representative", "centroid_step", "by", "cluster_in", "normalization", "allocation")


def make_memory(config):
    return MEMORIES.get(config["memory"]) or Strata(**{name: config[name] for name in STRATA})


def make_learner(config, **changes):
    memory = make_memory(config)
    # Sums of hundreds of pairs: steps that are cut hundredfold, row after row, blow up every rounding error.
    eta = config["eta"] / (100 if memory.weighting == "sum" else 1)
    return Learner(
        features=FEATURES[config["features"]],
        pairs=PAIRS[config["pairs"]],
        loss=LOSSES[config["loss"]],
        memory=memory,
        step=config["schedule"](eta),
        penalty=config["penalty"],
        average=config["average"],
        seed=3,
        **changes,
    )


def fading(config):
    """Who lets rows fade. Not while the first are kept for rules on data: there all is as without."""
    return [] if config["half_life"] is None else [Forgetting(config["half_life"])]


def close(a, b, tol):
    return np.abs(a - b).max(initial=0) <= tol * max(1.0, np.abs(b).max(initial=0))


def comparable(learner, dtype):
    """A learner whose models in float32 and float64 may differ: features may be equal in one but not in the other.

    Steps per coordinate shrink nothing where they agree; ``test_adagrad.py`` shows how far the specification jumps. And
    they are as long where a feature is nothing but rounding, as those of the least eigenvalues are in float32: they are
    compared over a map whose features are all of one size.
    """
    if dtype == "float64" or not learner.step.per_coordinate:
        return learner
    if isinstance(learner.features, (Nystroem, Whitened)):
        learner = replace(learner, features=FEATURES["fourier"])
    if learner.penalty.numbers[:2] != (0, 0) and not isinstance(learner.features, Identity):
        learner = replace(learner, penalty=L2())
    return learner


def close_squares(ours, truth, tol):
    if truth.squares is None:
        return ours.squares is None
    return close(np.sqrt(ours.squares), np.sqrt(truth.squares), tol)


def assert_agree(config, dtype, n=130):
    X, y = make_stream(config["stream"], n, 5, seed=7)
    groups = None if config["groups"] is None else np.arange(n) // 7 % config["groups"]
    rows = (X, labels_for(config["pairs"], X, y), weights_for(config["weights"], n), groups)
    learner = comparable(make_learner(config, dtype=dtype, engine="fused"), dtype)
    reference = replace(learner, engine="reference")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StabilityWarning)
        our_stream, true_stream = (Stream(one, fading(config)).partial_fit(*rows) for one in (learner, reference))
    ours, truth = our_stream.learned, true_stream.learned
    tol = 1e-10 if dtype == "float64" else 1e-4
    np.testing.assert_array_equal(ours.memory.slots.mass, truth.memory.slots.mass)
    np.testing.assert_array_equal(ours.memory.slots.labels, truth.memory.slots.labels)
    # Not the number of cut steps: the cut is continuous, and a loss of rounding errors only may or may not count.
    np.testing.assert_array_equal(ours.tally[[STEPS, N_PAIRS, SKIPPED]], truth.tally[[STEPS, N_PAIRS, SKIPPED]])
    assert close(ours.w, truth.w, tol)
    assert close(ours.w_bar if config["average"] != "last" else ours.w, stream_output(config, truth), tol)
    assert close_squares(ours, truth, tol)
    assert close(ours.memory.slots.points, truth.memory.slots.points, tol)
    assert close(our_stream.recent()[0], true_stream.recent()[0], tol)
    assert ours.tally[LOSS] == pytest.approx(truth.tally[LOSS], rel=tol)
    if isinstance(ours.memory, StrataState):
        np.testing.assert_array_equal(ours.memory.used, truth.memory.used)
        assert close(ours.memory.centers, truth.memory.centers, tol)
        assert close(ours.memory.scatter, truth.memory.scatter, 10 * tol)


def stream_output(config, state):
    return state.w if config["average"] == "last" else state.w_bar


CONFIGURATIONS = Configurations(OPTIONS, valid)


def test_the_covering_array_covers():
    covering = CONFIGURATIONS.covering
    assert {c["representative"] for c in covering if c["loss"] == "hinge"} == {"fifo", "reservoir", "centroid"}
    swept = {c["memory"] for c in covering if c["schedule"] is PassiveAggressive}
    assert swept == {"strata", *MEMORIES}
    assert {c["memory"] for c in covering if c["schedule"] is AdaGrad} == {"strata", *MEMORIES}
    faded = {c["memory"] for c in covering if c["half_life"] and not make_learner(c).needs_data}
    assert faded == {"strata", *MEMORIES}
    # More options, or more values of one, such as a new loss, make it longer: few means few for these.
    one_more = replace(CONFIGURATIONS, options={**OPTIONS, "loss": [*LOSSES, "one more"]})
    for found in (CONFIGURATIONS, one_more):
        *_, second, most = sorted(len(set(values)) for values in found.options.values())
        assert len(found.covering) <= 1.5 * second * most  # all pairs of these two take second * most


@in_four_parts
def test_engines_agree_on_every_pair_of_options(part):
    for config in CONFIGURATIONS.covering[part::4]:
        assert_agree(config, "float64")


def test_engines_agree_in_float32():
    """On a third of the array: the same loops, compiled for another type. In float64 differences show more clearly."""
    for config in CONFIGURATIONS.covering[::3]:
        assert_agree(config, "float32")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_engines_agree_on_random_options(dtype):
    for config in CONFIGURATIONS.draws(20, seed=11):
        assert_agree(config, dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_engines_agree_on_random_options_where_features_grow(dtype):
    growing = replace(CONFIGURATIONS, options={**OPTIONS, "features": ["growing"]})
    for config in growing.draws(20, seed=12):
        assert_agree(config, dtype)


def test_where_steps_are_cut_row_after_row_the_specification_is_no_closer_to_itself():
    """Linear features and the whole history, 467 of 499 steps cut: one unit in the last place of the rows is enough."""
    X, y = make_stream("duplicates", 500, 5, seed=7)
    X = X.astype(np.float32)
    up = np.random.default_rng(0).random(X.shape) < 0.5
    shaken = np.nextafter(X, np.where(up, np.inf, -np.inf).astype(np.float32))
    learner = Learner(
        Identity(),
        memory=WholeHistory(600),
        step=Constant(0.2),
        penalty=ElasticNet(1e-3, l1=0.05),
        average="poly",
        seed=3,
        engine="fused",
    )
    reference = replace(learner, engine="reference")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StabilityWarning)
        truth = Stream(reference).partial_fit(X, y).recent()[0]
        moved = Stream(reference).partial_fit(shaken, y).recent()[0]
        ours = Stream(learner).partial_fit(X, y).recent()[0]
        short = replace(learner, step=Constant(1e-3))
        truth_short = Stream(replace(short, engine="reference")).partial_fit(X, y).recent()[0]
    assert not close(moved, truth, 1e-2)
    assert np.abs(ours - truth).max() <= 10 * np.abs(moved - truth).max()
    assert close(Stream(short).partial_fit(X, y).recent()[0], truth_short, 1e-6)


@soak_in_both_dtypes
def test_engines_agree_on_thousands_of_random_options(seed, dtype):
    for config in CONFIGURATIONS.draws(150, seed=1000 + seed):
        assert_agree(config, dtype, n=500)
