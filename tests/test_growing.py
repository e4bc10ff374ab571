"""Features that grow while learning."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from pairloom import Grid, Learner, Stream
from pairloom.base.tree import nbytes
from pairloom.estimators.transformer import FeatureTransformer
from pairloom.features import Gaussian, Growing, Laplace
from pairloom.memory import Latest, Reservoir, RSx, Strata, WholeHistory, Window
from pairloom.models.learner import change_map, map_kept_rows
from pairloom.pairs import OppositeClass
from pairloom.steps import L2, Constant
from pairloom.systems import FPOGD, SPAM, AdaDSG, ExactAUC, FourierSGD
from tests.conftest import make_stream
from tests.covering import every_pair
from tests.generic import assert_same

SMALL = Growing(48, Gaussian(0.3), 8)
"""A block comes before rows 12, 25, 42, 61 and 83."""

RULES = replace(SMALL, kernel=Gaussian("median"), scale="standard")

MEMORIES = {
    "strata": Strata(max_strata=4, cluster_in="input"),
    "strata, neyman": Strata(max_strata=4, cluster_in="input", allocation="neyman"),
    "strata, reservoir": Strata(max_strata=4, cluster_in="input", representative="reservoir"),
    "joint strata": Strata(max_strata=4, by="joint", cluster_in="input", normalization="history"),
    "latest": Latest(size=3),
    "window": Window(5),
    "reservoir": Reservoir(6),
    "rsx": RSx(5),
    "history": WholeHistory(2000),
}


def make(memory="strata", **changes):
    parts = {"features": SMALL, "step": Constant(0.1), "average": "poly", "seed": 3}
    return Learner(memory=MEMORIES[memory], **{**parts, **changes})


def test_the_rule_is_sqrt_t_ln_t_up_to_the_cap():
    t = np.arange(1, 500)
    D = 8 * np.array([SMALL.n_blocks(int(row)) for row in t])
    rule = np.sqrt(t) * np.log(t)
    assert D[0] == 8
    assert D[-1] == 48
    assert ((rule <= D) | (D == 48)).all()
    assert ((D - rule < 8) | (D == 8)).all()
    assert (np.flatnonzero(np.diff(D)) + 2).tolist() == [12, 25, 42, 61, 83]


@pytest.mark.parametrize("n", [1, 11, 12, 82, 83, 300, 1023, 1024, 1200])
def test_the_size_is_a_function_of_the_row_number_also_after_replays(n):
    X, y = make_stream("random", n, 4)
    state = Stream(make(features=RULES)).partial_fit(X, y).learned
    D = 8 * SMALL.n_blocks(n)
    assert state.w.shape == state.w_bar.shape == (1, D)
    assert state.phi.projection.shape == (4, D // 2)
    assert state.memory.slots.points.shape == (8, D)


@pytest.mark.parametrize("features", [SMALL, RULES, replace(RULES, kernel=Laplace("median"))])
@pytest.mark.parametrize("engine", ["fused", "reference"])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 5e-7)])
@pytest.mark.parametrize("average", ["last", "poly"])
def test_every_score_stays_as_it_was_when_features_come(features, engine, dtype, tolerance, average):
    """Scores of new rows and of the kept points, by both iterates."""
    X, y = make_stream("random", 83, 4, seed=1)
    stream = Stream(make(features=features, engine=engine, dtype=dtype, average=average))
    for start, end in ((0, 11), (11, 24), (24, 41), (41, 60), (60, 82)):
        state = stream.partial_fit(X[start:end], y[start:end]).learned
        scores, points, D = stream.score(X), kept_scores(state), state.w.shape[1]
        change_map(stream.model, state, features.change(state.phi, state.t, np.zeros(0)))
        map_kept_rows(stream.model, state)
        assert state.w.shape[1] == state.w_bar.shape[1] == D + 8
        np.testing.assert_allclose(stream.score(X), scores, rtol=0, atol=tolerance)
        np.testing.assert_allclose(kept_scores(state), points, rtol=0, atol=tolerance)
        assert np.abs(scores).max() > 0.01


def kept_scores(state):
    filled = state.memory.slots.mass > 0
    return state.memory.slots.points[filled] @ np.concatenate([state.w, state.w_bar]).T


def test_it_is_the_naive_algorithm():
    """Latest opposite, square loss: every feature of every row recomputed with the current frequencies."""
    X, y = make_stream("random", 150, 4)
    eta, alpha = 0.05, 1e-2
    learner = make("latest", dtype="float64", step=Constant(eta), penalty=L2(alpha), average="last")
    stream = Stream(replace(learner, memory=Latest())).partial_fit(X, y)
    Q, w, last, B = stream.learned.phi.projection, np.zeros(8), {}, 1
    assert Q.shape == (4, 24)
    for t, (x, label) in enumerate(zip(X, y, strict=True), start=1):
        now = min(6, max(1, int(np.ceil(np.sqrt(t) * np.log(t) / 8))))
        w, B = np.pad(w * np.sqrt(now / B), (0, 8 * (now - B))), now
        if -label in last:
            d = label * (naive_phi(x, Q[:, : 4 * B]) - naive_phi(last[-label], Q[:, : 4 * B]))
            w = (1 - eta * alpha) * w + eta * 2 * (1 - w @ d) * d
        last[label] = x
    np.testing.assert_allclose(stream.coef[0], w, rtol=0, atol=1e-12)


def naive_phi(x, Q):
    waves = [f(x @ q) for q in np.split(Q, Q.shape[1] // 4, axis=1) for f in (np.cos, np.sin)]
    return np.concatenate(waves) / np.sqrt(Q.shape[1])


@every_pair(memory=MEMORIES, dtype=["float64", "float32"], sparse=[False, True])
def test_engines_agree_through_growths(memory, dtype, sparse):
    X, y = make_stream("duplicates" if sparse else "random", 400, 5)
    learner = make(memory, features=RULES, dtype=dtype)
    our_stream = Stream(replace(learner, engine="fused")).partial_fit(csr_array(X) if sparse else X, y)
    true_stream = Stream(replace(learner, engine="reference")).partial_fit(X, y)
    ours, truth = our_stream.learned, true_stream.learned
    tol = 1e-10 if dtype == "float64" else 1e-4
    np.testing.assert_array_equal(ours.memory.slots.mass, truth.memory.slots.mass)
    filled = truth.memory.slots.mass > 0
    np.testing.assert_array_equal(ours.memory.slots.rows, truth.memory.slots.rows)
    if not sparse:  # column moments of CSR rows round otherwise
        np.testing.assert_array_equal(ours.phi.projection, truth.phi.projection)
        np.testing.assert_array_equal(ours.phi.offset, truth.phi.offset)
    np.testing.assert_allclose(ours.memory.slots.points[filled], truth.memory.slots.points[filled], rtol=0, atol=tol)
    for name in ("w", "w_bar"):
        np.testing.assert_allclose(getattr(ours, name), getattr(truth, name), rtol=0, atol=tol)
    np.testing.assert_allclose(our_stream.recent()[0], true_stream.recent()[0], rtol=0, atol=tol)


@every_pair(memory=MEMORIES, sparse=[False, True], features=[SMALL, RULES])
def test_chunks_and_pickles_do_not_show_in_the_bits(memory, sparse, features):
    X, y = make_stream("random", 300, 4)
    X = csr_array(X) if sparse else X
    whole = Stream(make(memory, features=features)).partial_fit(X, y)
    for cuts in (range(300), (0, 11, 12, 13, 82, 83, 84, 250)):
        stream, ends = Stream(make(memory, features=features)), [*cuts[1:], 300]
        for start, end in zip(cuts, ends, strict=True):
            stream = pickle.loads(pickle.dumps(stream)) if len(ends) < 9 else stream
            stream.partial_fit(X[start:end], y[start:end])
        assert_same(stream.state, whole.state)


def test_more_than_two_classes():
    X, y = make_stream("random", 300, 4)
    y = (y + np.sign(X[:, 0]) > 0) + (X[:, 1] > 0)
    learner = make(pairs=OppositeClass(3), dtype="float64")
    ours, truth = (Stream(replace(learner, engine=engine)).partial_fit(X, y) for engine in ("fused", "reference"))
    assert ours.coef.shape == (3, 48)
    np.testing.assert_allclose(ours.coef, truth.coef, rtol=0, atol=1e-10)


def test_the_kernel_is_met_ever_better_and_the_first_blocks_stay():
    X = make_stream("random", 60, 4)[0]
    phi = Growing(4096, Gaussian(0.2), 64, scale="standard")
    state, errors = phi.fix(4, X, np.random.default_rng(0)), []
    K = phi.kernel(state.gamma, phi.inputs(state, X), phi.inputs(state, X))
    for blocks in (1, 8, 64):
        grown = phi.grow(state, blocks)
        np.testing.assert_array_equal(grown.projection[:, :32], state.projection)
        Z = phi.apply(grown, X)
        np.testing.assert_allclose(np.square(Z).sum(axis=1), 1.0)
        errors.append(np.sqrt(np.mean((Z @ Z.T - K) ** 2)))
    assert errors[0] > 2 * errors[1] > 4 * errors[2]
    np.testing.assert_array_equal(phi.grow(phi.grow(state, 3), 64).projection, grown.projection)


def test_scaling_is_folded_into_every_block():
    X = 5.0 + 3.0 * make_stream("random", 60, 4)[0]
    phi = Growing(32, Gaussian(0.2), 8, scale="standard")
    state = phi.grow(phi.fix(4, X, np.random.default_rng(0)), 4)
    unfolded = replace(state, projection=state.projection * state.scaler.scale[:, None])
    scaled = replace(phi, scale=None).apply(unfolded, phi.inputs(state, X))
    np.testing.assert_allclose(phi.apply(state, X), scaled, rtol=0, atol=1e-12)


def test_memory_stops_growing_at_the_cap():
    X, y = make_stream("random", 6000, 4)
    stream, sizes = Stream(make(features=RULES)), []
    for start in range(0, 6000, 1200):
        stream.partial_fit(X[start : start + 1200], y[start : start + 1200])
        sizes.append(stream.nbytes - nbytes(stream.state.observed["recent"]))
    assert len(set(sizes)) == 1
    assert sizes[0] < 4 * (2 * 48 + 8 * 48 + 16 * 4 + 4 * 24 + 24) + 600


@pytest.mark.parametrize(
    "memory",
    [Strata(), Strata(cluster_in="input", representative="centroid"), Strata(representative="reservoir")],
)
def test_memories_that_live_in_the_feature_space_are_refused(memory):
    with pytest.raises(ValueError, match=r"with features that grow.*use Strata\(cluster_in='input'\)"):
        Learner(features=SMALL, memory=memory)


def test_what_needs_a_fixed_space_says_so():
    X, y = make_stream("random", 40, 4)
    for system in (SPAM, FourierSGD, ExactAUC, AdaDSG):
        with pytest.raises(ValueError, match=r"needs features that stay as they are; got Growing\("):
            system(features=SMALL).fit(X, y)
    with pytest.raises(ValueError, match="a grid needs features that stay as they are"):
        Grid([make()])
    with pytest.raises(ValueError, match="FeatureTransformer needs features that stay as they are"):
        FeatureTransformer(SMALL).fit(X)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"block": 7}, "block must be an even number of components, such as 512; got 7"),
        ({"block": 0}, "block must be an even number"),
        ({"block": 8.0}, "block must be an even number"),
        ({"n_components": 1000, "block": 512}, "n_components must be a multiple of block=512, such as 1024; got 1000"),
        ({"n_components": 0}, "n_components"),
        ({"kernel": "gaussian"}, "kernel must be a Kernel"),
    ],
)
def test_parameters_that_make_no_sense(parameters, message):
    with pytest.raises(ValueError, match=message):
        Growing(**parameters)


def test_an_estimator_takes_it():
    X, y = make_stream("random", 400, 4)
    model = FPOGD(features=RULES, cluster_in="input", random_state=0).fit(X, y)
    again = FPOGD(features=RULES, cluster_in="input", random_state=0)
    for x, label in zip(X[:100], y[:100], strict=True):
        again.learn_one(x, label)
    again.partial_fit(X[100:], y[100:])
    assert model.coef_.size == 48
    np.testing.assert_array_equal(model.decision_function(X), again.decision_function(X))
