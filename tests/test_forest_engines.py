"""Engines over a forest: the specification, the loop over cells and the one over CSR rows give the same iterates."""

import warnings
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
from scipy.sparse import csr_array

from pairloom import Learner, Stream
from pairloom.base.tree import copy, flatten, same, unflatten
from pairloom.engines import cells, sparse
from pairloom.engines.base import engines_of
from pairloom.engines.state import LOSS, PAIRS, SKIPPED, STEPS
from pairloom.features import Forest
from pairloom.losses import LOSSES
from pairloom.memory import Latest, Reservoir, RSx, Strata, WholeHistory, Window
from pairloom.models import StepPath
from pairloom.pairs import Difference, OppositeClass, Order
from pairloom.steps import L2, AdaGrad, Ball, Constant, ElasticNet, PassiveAggressive
from pairloom.stream import StabilityWarning
from tests.conftest import STREAMS, make_stream
from tests.covering import Configurations, in_four_parts
from tests.test_agreement import close
from tests.test_state import through_a_file

FORESTS = {
    "plain": Forest(5, max_leaves=8, n_rows=40),
    "random": Forest(5, max_leaves=16, n_rows=64, labels=False),
    "levels": Forest(3, max_leaves=16, n_rows=50, levels=(1, 3)),
    "scaled": Forest(5, max_leaves=8, n_rows=40, scale="standard"),
    "renewed": Forest(5, max_leaves=8, n_rows=60, growth="renewed"),
    "boosted": Forest(6, max_leaves=8, n_rows=60, growth="boosted"),
}

MEMORIES = {
    "newest": Latest(size=3),
    "previous": Latest("previous", size=4),
    "window": Window(5),
    "reservoir": Reservoir(6),
    "sums": Reservoir(6, normalization="sum"),
    "rsx": RSx(5),
    "history": WholeHistory(600),
    "strata": Strata(max_strata=4),
    "strata, far": Strata(eps=1.1, max_strata=8, representative="reservoir"),
    "strata of inputs": Strata(max_strata=4, cluster_in="input"),
    "seats": Strata(max_strata=4, cluster_in="input", allocation="neyman"),
    "means": Strata(max_strata=4, representative="centroid"),
    "means of inputs": Strata(max_strata=4, representative="centroid", cluster_in="input"),
    "joint": Strata(max_strata=4, by="joint", cluster_in="input", normalization="history"),
}

OPTIONS = {
    "stream": list(STREAMS),
    "features": list(FORESTS),
    "memory": list(MEMORIES),
    "loss": list(LOSSES),
    "pairs": [OppositeClass(), OppositeClass(), OppositeClass(3), Order(), Difference()],
    "step": [AdaGrad(0.1), AdaGrad(0.5), Constant(0.05), PassiveAggressive(0.1)],
    "penalty": [L2(), L2(1e-2), L2(0.5, "proximal"), ElasticNet(1e-2, l1=0.02), Ball(0.5)],
    "average": ["last", "last", "mean", "poly"],
    "weighted": [False, True],
    "rows": ["dense", "csr"],
}


def valid(config):
    memory, pairs, step = MEMORIES[config["memory"]], config["pairs"], config["step"]
    if isinstance(step, PassiveAggressive) and config["loss"] != "hinge":
        return False
    if step.per_coordinate and isinstance(pairs, Order) and config["loss"] == "hinge":
        return False  # slopes of both signs cancel, up to rounding: a step per coordinate is not continuous there
    if FORESTS[config["features"]].growing is not None and not memory.holds_rows:
        return False
    if pairs.exact and config["loss"] != "square":
        return False
    if memory.weighting == "sum" and not pairs.opposite:
        return False
    return memory.joint or pairs.n_groups > 0


CELLS = {
    **OPTIONS,
    "memory": [name for name in MEMORIES if not name.startswith("means")],
    "step": [AdaGrad(0.1), AdaGrad(0.5)],
    "penalty": OPTIONS["penalty"][:-1],
    "average": ["last"],
}
"""Parts that the loop over cells supports."""


@cache
def covering():
    """Every pair of options, and again half as many configurations for the loop over cells."""
    return [*Configurations(OPTIONS, valid).covering, *Configurations(CELLS, valid, seed=1).covering[::2]]


def make(config, **changes):
    names = ("pairs", "step", "penalty", "average")
    parts = {name: config[name] for name in names}
    if MEMORIES[config["memory"]].weighting == "sum" and not config["step"].per_coordinate:
        parts["step"] = replace(config["step"], eta=config["step"].eta / 100)
    return Learner(
        FORESTS[config["features"]], memory=MEMORIES[config["memory"]], loss=LOSSES[config["loss"]], seed=3,
        **{**parts, **changes},
    )  # fmt: skip


def data(config, n):
    X, y = make_stream(config["stream"], n, 4, seed=7)
    if config["rows"] == "csr":
        X = np.where(np.abs(X) < 0.4, 0.0, X)
    if config["pairs"].n_groups != 2:
        score = np.square(X).sum(axis=1) + X[:, 0]
        y = score / 10 if config["pairs"].n_groups == 0 else np.digitize(score, np.quantile(score, [0.5, 0.8]))
    weight = np.random.default_rng(5).choice([0.0, 0.5, 1.0, 2.0], n) if config["weighted"] else None
    return (csr_array(X) if config["rows"] == "csr" else X), y, weight


def learned(learner, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StabilityWarning)
        return Stream(learner).partial_fit(*rows)


def assert_agree(ours, truth, dtype, average):
    """As in test_agreement.py; the points of a forest have no dense form but in the specification."""
    tol = 1e-10 if dtype == "float64" else 1e-4
    a, b = ours.learned, truth.learned
    for name in ("mass", "labels", "queries"):
        np.testing.assert_array_equal(getattr(a.memory.slots, name), getattr(b.memory.slots, name))
    for name in ("columns", "values", "yes", "missing_yes", "cells"):
        np.testing.assert_array_equal(getattr(a.phi.nodes, name), getattr(b.phi.nodes, name))
    np.testing.assert_array_equal(a.tally[[STEPS, PAIRS, SKIPPED]], b.tally[[STEPS, PAIRS, SKIPPED]])
    assert close(a.w, b.w, tol)
    assert average == "last" or close(a.w_bar, b.w_bar, tol)
    assert (a.squares is None) == (b.squares is None)
    assert b.squares is None or close(np.sqrt(a.squares), np.sqrt(b.squares), tol)
    assert close(ours.recent()[0], truth.recent()[0], tol)
    np.testing.assert_array_equal(ours.recent()[2], truth.recent()[2])
    assert a.tally[LOSS] == pytest.approx(b.tally[LOSS], rel=tol)
    if a.cells is not None:
        filled = b.memory.slots.mass > 0
        points = np.zeros((len(a.cells), b.w.shape[1]))
        np.put_along_axis(points, a.cells.astype(int), 1 / np.sqrt(a.cells.shape[1]), axis=1)
        assert close(points[filled], b.memory.slots.points[filled], 1e-6)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@in_four_parts
def test_engines_agree_on_every_pair_of_options(part, dtype):
    for config in covering()[part :: 4 if dtype == "float64" else 12]:
        if dtype == "float32" and config["features"] == "boosted":
            continue  # splits depend on scores: trees in float32 differ
        learner = make(config, dtype=dtype)
        rows = data(config, 100 if learner.features.growing is None else 270)
        truth = learned(replace(learner, engine="reference"), rows)
        assert_agree(learned(learner, rows), truth, dtype, learner.average)
        if learner.by_cells:
            assert_agree(learned(replace(learner, engine=sparse), rows), truth, dtype, learner.average)


def test_the_options_are_covered_and_each_engine_takes_its_own():
    takes = [(make(config).by_cells, config) for config in covering()]
    assert {c["memory"] for _, c in takes} == set(MEMORIES)
    for kind in (True, False):
        assert {c["features"] for by_cells, c in takes if by_cells == kind} == set(FORESTS)
    assert 20 < sum(by_cells for by_cells, _ in takes) < len(takes) - 20
    for by_cells, config in takes:
        adapts, plain = config["step"].per_coordinate, config["average"] == "last"
        ball, means = isinstance(config["penalty"], Ball), config["memory"].startswith("means")
        assert by_cells == (adapts and plain and not ball and not means)
    learner = make(covering()[0])
    assert engines_of(learner)[:2] == (cells, sparse)


LEARNERS = {
    "cells": partial(Learner, memory=Latest(size=4), step=AdaGrad(0.1), penalty=ElasticNet(1e-2, l1=0.01)),
    "cells, strata": partial(Learner, memory=Strata(max_strata=4, cluster_in="input"), step=AdaGrad(0.1)),
    "average": partial(Learner, memory=Window(6), step=AdaGrad(0.1), average="poly"),
    "one step": partial(Learner, memory=Strata(max_strata=4, cluster_in="input"), step=Constant(0.1), average="mean"),
    "path": lambda features, seed: StepPath(
        Learner(features, memory=Latest(size=4), step=AdaGrad(0.1), seed=seed), [0.01, 0.1, 1.0]
    ),
}
CUTS = {"rows": range(1, 330), "some": (1, 3, 63, 64, 65, 70, 102, 103, 256, 257, 300), "replays": (16, 17, 64, 128)}


@pytest.mark.parametrize(
    ("name", "kind", "csr"),
    [
        (name, kind, (i + j) % 2 == 1)
        for i, name in enumerate(LEARNERS)
        for j, kind in enumerate(FORESTS)
        if (i + j) % 3 == 0
    ],
)
def test_calls_leave_no_trace_in_the_bits_and_a_file_could_hold_the_state(name, kind, csr):
    X, y = make_stream("random", 330, 4)
    X = csr_array(np.where(np.abs(X) < 0.4, 0.0, X)) if csr else X
    model = LEARNERS[name](features=FORESTS[kind], seed=0)
    whole = learned(model, (X, y))
    for way, cuts in CUTS.items():
        stream = Stream(model)
        for start, end in zip((0, *cuts), (*cuts, 330), strict=True):
            stream.partial_fit(X[start:end], y[start:end])
            if way == "replays":
                stream.state = unflatten(through_a_file(flatten(stream.state)))
        assert same(stream.state, whole.state), way
    twin = copy(whole.state)
    assert same(twin, whole.state)


@pytest.mark.parametrize("kind", FORESTS)
def test_the_map_of_a_row_is_that_of_its_dense_form_in_every_engine(kind):
    """Dense rows after CSR rows, and the other way round."""
    X, y = make_stream("random", 330, 4)
    X = np.where(np.abs(X) < 0.4, 0.0, X)
    for name in ("cells", "cells, strata", "one step"):
        model = LEARNERS[name](features=replace(FORESTS[kind], scale=None), seed=0, dtype="float64")
        thin = Stream(model).partial_fit(csr_array(X), y)
        mixed = Stream(model)
        for start in range(0, 330, 30):
            part = X[start : start + 30]
            mixed.partial_fit(csr_array(part) if start % 60 else part, y[start : start + 30])
        np.testing.assert_array_equal(thin.learned.phi.nodes.columns, mixed.learned.phi.nodes.columns)
        np.testing.assert_allclose(mixed.coef, thin.coef, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(mixed.score(X), thin.score(csr_array(X)), rtol=1e-9, atol=1e-12)
