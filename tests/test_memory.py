import numpy as np
import pytest

from pairloom import Learner, Stream
from pairloom.features import Identity, RandomFourier
from pairloom.memory import Latest, Strata
from pairloom.memory.strata import mean_squared_distance
from pairloom.steps import Constant
from tests.conftest import STREAMS, make_stream


def run(memory, X, y, engine="fused", dtype="float64"):
    return Stream(make(memory, engine, dtype)).partial_fit(X, y)


def make(memory, engine="fused", dtype="float64"):
    return Learner(features=Identity(), memory=memory, step=Constant(0.001), engine=engine, dtype=dtype, seed=0)


@pytest.mark.parametrize("engine", ["reference", "fused"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_ties_go_to_the_lowest_stratum_whatever_the_rounding(engine, dtype):
    """0.1 + 0.2 != 0.3: distances equal on paper but not in the machine must not choose a stratum."""
    X = np.array([[0.1], [0.7], [0.4]])  # 0.4 is half way
    for first in (X, X[[1, 0, 2]]):
        slots = run(Strata(eps=0.0, max_strata=2), first, -np.ones(3), engine, dtype).learned.memory.slots
        assert slots.mass[:2].tolist() == [2, 1]


@pytest.mark.parametrize("engine", ["reference", "fused"])
def test_a_distance_of_eps_joins(engine):
    X = np.array([[0.0], [0.3]])
    assert run(Strata(eps=0.09), X, -np.ones(2), engine).learned.memory.used[0] == 1
    assert run(Strata(eps=0.0899), X, -np.ones(2), engine).learned.memory.used[0] == 2
    # 0.7 squared is 0.49, but (0.8 - 0.1) ** 2 is 0.49000000000000005.
    X = np.array([[0.1], [0.8]])
    assert run(Strata(eps=0.49), X, -np.ones(2), engine).learned.memory.used[0] == 1


@pytest.mark.parametrize("engine", ["reference", "fused"])
@pytest.mark.parametrize(("eps", "expected"), [(0.0, 3), (np.inf, 1), (-1.0, 6), (0.26, 2)])
def test_eps_extremes(engine, eps, expected):
    X = np.array([[0.0], [0.0], [0.5], [2.0], [0.5], [2.0]])
    state = run(Strata(eps=eps, max_strata=9, centroid_step=0.05), X, -np.ones(6), engine).learned.memory
    assert state.used[0] == expected
    assert state.slots.mass.sum() == 6


def test_when_the_cap_is_reached_a_far_point_joins_its_nearest_stratum():
    X = np.array([[0.0], [10.0], [100.0], [-100.0]])
    state = run(Strata(eps=1.0, max_strata=2, centroid_step="mean"), X, -np.ones(4)).learned.memory
    assert state.slots.mass[:2].tolist() == [2, 2]
    np.testing.assert_allclose(state.centers[:2, 0], [-50, 55])


def test_the_representative_does_not_move_the_centre():
    X = np.array([[0.0], [1.0]])
    state = run(Strata(eps=np.inf, centroid_step=0.25), X, -np.ones(2)).learned.memory
    assert state.slots.points[0, 0] == 1.0
    assert state.centers[0, 0] == 0.25


def test_auto_eps_is_half_the_mean_squared_distance_of_mapped_pairs():
    X, y = make_stream("random", 100, 4)
    stream = Stream(Learner(features=RandomFourier(32), seed=0, dtype="float64")).partial_fit(X, y)
    X64 = X[:64]  # the rules were last fixed at row 64
    Z = stream.model.features.apply(stream.learned.phi, X64)
    pairs = [np.square(a - b).sum() for i, a in enumerate(Z) for b in Z[:i]]
    assert stream.learned.memory.eps == pytest.approx(0.5 * np.mean(pairs), rel=1e-12)
    assert mean_squared_distance(Z[:1]) == 0.0


def test_auto_eps_in_the_input_space_refers_to_scaled_inputs():
    X, y = make_stream("random", 64, 4)
    features = RandomFourier(32, scale="standard")
    learner = Learner(features=features, memory=Strata(cluster_in="input"), seed=0, dtype="float64")
    stream = Stream(learner).partial_fit(X, y)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    assert stream.learned.memory.eps == pytest.approx(0.5 * mean_squared_distance(scaled), rel=1e-12)
    assert stream.learned.memory.centers.shape == (32, 4)


@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize(
    "memory", [Latest("previous"), Latest("opposite"), Strata(eps=0.3, representative="reservoir")]
)
def test_a_plan_is_the_same_in_one_block_or_many(kind, memory):
    X, y = make_stream(kind, 200, 4)
    whole, cut = run(memory, X, y), Stream(make(memory))
    for rows in np.array_split(np.arange(200), [1, 2, 50, 51, 120]):
        cut.partial_fit(X[rows], y[rows])
    np.testing.assert_array_equal(whole.learned.memory.slots.points, cut.learned.memory.slots.points)
    np.testing.assert_array_equal(whole.learned.w, cut.learned.w)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Strata(eps="wide"), "eps must be a number or 'auto'; got 'wide'"),
        (lambda: Strata(eps=np.nan), "eps must be a number or 'auto'"),
        (lambda: Strata(max_strata=0), "max_strata must be an integer >= 1; got 0"),
        (lambda: Strata(representative="lifo"), "representative must be one of 'fifo', 'reservoir', 'centroid'"),
        (lambda: Strata(centroid_step=1.5), "centroid_step, if not 'mean', must be a number above 0 and at most 1"),
        (lambda: Strata(by="label"), "strata must be one of 'class', 'joint'; got 'label'"),
        (lambda: Strata(cluster_in="kernel"), "cluster_in must be one of 'features', 'input'"),
        (lambda: Strata(by="joint"), "use normalization='history', or strata per class"),
        (
            lambda: Strata(by="joint", normalization="history", representative="centroid"),
            "the centroid of a joint stratum has no label: use representative='fifo' or 'reservoir'",
        ),
        (lambda: Latest("next"), "partner must be one of 'previous', 'opposite'; got 'next'"),
    ],
)
def test_bad_values_and_parts_that_do_not_fit_are_named(build, message):
    with pytest.raises(ValueError, match=message):
        build()
