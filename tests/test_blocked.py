"""The blocked engine against the specification: every model of a grid is the same as on its own."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from pairloom import Grid, Stream
from pairloom.engines.state import LOSS, PAIRS, SKIPPED, STEPS, WORST
from pairloom.losses import LOSSES
from pairloom.memory.strata import StrataState
from pairloom.steps import L2, AdaGrad, PassiveAggressive
from pairloom.stream import StabilityWarning
from tests.conftest import make_stream
from tests.covering import Configurations, in_four_parts, soak_in_both_dtypes
from tests.test_agreement import (
    DIFFERENCES,
    MEMORIES,
    OPTIONS,
    close,
    fading,
    labels_for,
    make_learner,
    make_memory,
    valid,
    weights_for,
)

pytestmark = pytest.mark.usefixtures("check_every_plan")

BLOCKS = [1, 7, 64, 400]

GRID_OPTIONS = {
    **OPTIONS,
    "memory": ["strata"] * 8 + list(MEMORIES),
    "penalty": [L2(), L2(1e-3), L2(0.5), L2(0.5, "proximal")],
    "eta": [0.02, 0.2, 1.5],
    "block": BLOCKS,
}


def fits(config):
    if (
        not valid(config)
        or config["schedule"] in (PassiveAggressive, AdaGrad)
        or make_memory(config).weighting == "sum"
    ):
        return False
    return config["eta"] * config["penalty"].alpha < 1


def candidates(config, dtype):
    """A learner, and others that differ in every permitted part."""
    one = make_learner(config, dtype=dtype)
    square = config["pairs"] in DIFFERENCES
    rng = np.random.default_rng(0)
    others = [
        replace(
            one,
            loss=one.loss if square else list(LOSSES.values())[rng.integers(4)],
            step=config["schedule"]([0.005, 0.1, 0.7][rng.integers(3)]),
            penalty=[L2(1e-2), L2(0.9), L2(3.0, "proximal")][rng.integers(3)],
            average=["last", "mean", "poly"][rng.integers(3)],
        )
        for _ in range(2)
    ]
    return [one, *others]


def stream_for(config, n):
    X, y = make_stream(config["stream"], n, 5, seed=7)
    groups = None if config["groups"] is None else np.arange(n) // 7 % config["groups"]
    return X, labels_for(config["pairs"], X, y), weights_for(config["weights"], n), groups


def assert_grid_agrees(config, dtype, n=300, models=(0, 1, 2)):
    rows = stream_for(config, n)
    grid = Stream(Grid(candidates(config, dtype), block_rows=config["block"]), fading(config)).partial_fit(*rows)
    assert not grid.model.diverged(grid.learned)
    for i in models:
        learner = grid.model.learners[i]
        truth = Stream(replace(learner, engine="reference"), fading(config))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StabilityWarning)
            truth.partial_fit(*rows)
        tol = 1e-10 if dtype == "float64" else 1e-4
        if not close(grid.only(i).recent()[0], truth.recent()[0], tol):
            tol = max(tol, 10 * own_rounding(truth, *rows))
        assert_same_state(grid.only(i), truth, tol)


def own_rounding(truth, X, *rest):
    """What one unit in the last place of the rows does to the specification's own scores.

    Where steps far too long are cut row after row, a trajectory may amplify rounding a billion times: no engine can
    agree with the specification more closely than that with itself.
    """
    shaken = Stream(truth.model, truth.hooks[1:])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StabilityWarning)
        shaken.partial_fit(X * (1 + np.finfo(float).eps), *rest)
    scores = truth.recent()[0]
    return np.abs(shaken.recent()[0] - scores).max() / max(1.0, np.abs(scores).max())


def assert_same_state(stream, reference, tol):
    ours, truth = stream.learned, reference.learned
    assert stream.n_seen == reference.n_seen == ours.t == truth.t
    assert close(ours.w, truth.w, tol)
    assert close(stream.coef, reference.coef, tol)
    assert close(stream.recent()[0], reference.recent()[0], tol)
    np.testing.assert_array_equal(stream.recent()[1], reference.recent()[1])
    np.testing.assert_array_equal(ours.memory.slots.mass, truth.memory.slots.mass)
    np.testing.assert_array_equal(ours.memory.slots.labels, truth.memory.slots.labels)
    assert close(ours.memory.slots.points, truth.memory.slots.points, tol)
    np.testing.assert_array_equal(ours.tally[[PAIRS, SKIPPED]], truth.tally[[PAIRS, SKIPPED]])
    np.testing.assert_allclose(ours.tally[[STEPS, LOSS, WORST]], truth.tally[[STEPS, LOSS, WORST]], rtol=tol, atol=tol)
    if isinstance(ours.memory, StrataState):
        np.testing.assert_array_equal(ours.memory.used, truth.memory.used)
        assert close(ours.memory.centers, truth.memory.centers, tol)


CONFIGURATIONS = Configurations(GRID_OPTIONS, fits, seed=1)


@in_four_parts
def test_grids_agree_on_every_pair_of_options(part):
    """The model of the array's options, and in turn one of its neighbours: what they differ in is drawn at random."""
    for k, config in enumerate(CONFIGURATIONS.covering[part::4]):
        assert_grid_agrees(config, "float64", n=100, models=(0, 1 + k % 2))


def test_grids_agree_in_float32():
    for config in CONFIGURATIONS.draws(15, seed=4):
        assert_grid_agrees(config, "float32", n=130)


@soak_in_both_dtypes
def test_grids_agree_on_thousands_of_random_options(seed, dtype):
    for config in CONFIGURATIONS.draws(100, seed=2000 + seed):
        assert_grid_agrees(config, dtype, n=500)
