"""Sample weights: they scale the step and the count; an unstable step is split; 0 skips the row."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from pairloom import Grid, Learner, Stream
from pairloom.engines.state import CUT
from pairloom.features import Gaussian, Identity, RandomFourier
from pairloom.losses import Hinge, Logistic
from pairloom.memory import Reservoir, RSx, Strata
from pairloom.steps import L2, Constant
from pairloom.systems import FPOGD
from tests.conftest import make_stream


def test_a_weight_scales_the_step():
    X, y = np.array([[0.0, 0.0], [1.0, 2.0]]), [-1, 1]
    make = lambda eta: Learner(features=Identity(), memory=Strata(eps=1.0), step=Constant(eta), dtype="float64")  # noqa: E731
    heavy = Stream(make(0.01)).partial_fit(X, y, sample_weight=[1, 3])
    np.testing.assert_allclose(heavy.coef, Stream(make(0.03)).partial_fit(X, y).coef, rtol=1e-14)


@pytest.mark.parametrize("engine", ["reference", "fused"])
def test_an_unstable_weighted_step_is_split_into_equal_steps(engine):
    """eta ||d||^2 = 0.8 is stable, 4 times it is not: four equal steps on the same pairs are."""
    d = np.array([1.0, 2.0])
    X, y = np.array([[0.0, 0.0], d]), [-1, 1]
    learner = Learner(
        features=Identity(), memory=Strata(eps=1.0), step=Constant(0.8 / 5), dtype="float64", engine=engine
    )
    stream = Stream(learner).partial_fit(X, y, sample_weight=[1, 3.5])
    w = np.zeros(2)
    for _ in range(4):
        w += 2 * (0.8 / 5) * 3.5 / 4 * (1 - w @ d) * d
    np.testing.assert_allclose(stream.coef[0], w, rtol=1e-13)
    assert stream.learned.tally[CUT] == 0


@pytest.mark.parametrize("step", ["mean", 0.1])
@pytest.mark.parametrize("representative", ["fifo", "centroid"])
def test_strata_take_a_weight_as_so_many_equal_rows(step, representative):
    X, y = make_stream("random", 200, 3)
    weight = np.random.default_rng(0).integers(1, 4, size=200)
    memory = Strata(eps=1.0, max_strata=6, centroid_step=step, representative=representative)
    make = lambda: Learner(features=Identity(), memory=memory, step=Constant(1e-4), dtype="float64")  # noqa: E731
    weighted = Stream(make()).partial_fit(X, y, sample_weight=weight).learned.memory
    repeated = Stream(make()).partial_fit(np.repeat(X, weight, axis=0), np.repeat(y, weight)).learned.memory
    np.testing.assert_array_equal(weighted.slots.mass, repeated.slots.mass)
    np.testing.assert_allclose(weighted.centers, repeated.centers, atol=1e-12)
    np.testing.assert_allclose(weighted.slots.points, repeated.slots.points, atol=1e-12)
    np.testing.assert_allclose(weighted.scatter, repeated.scatter, rtol=1e-10)


def test_a_reservoir_keeps_rows_in_proportion_to_their_weight():
    X = np.arange(5.0)[:, None]
    weight = np.array([1.0, 2.0, 3.0, 0.5, 3.5])
    memory = Strata(eps=np.inf, representative="reservoir")
    kept = np.zeros(5)
    for seed in range(4000):
        stream = Stream(Learner(features=Identity(), memory=memory, dtype="float64", seed=seed))
        kept[int(stream.partial_fit(X, -np.ones(5), weight).learned.memory.slots.points[0, 0])] += 1
    np.testing.assert_allclose(kept / 4000, weight / 10, atol=4 * np.sqrt(0.25 / 4000))


def test_weight_zero_skips_the_row_exactly():
    X, y = make_stream("random", 1500, 4)
    weight = (np.random.default_rng(1).random(1500) < 0.6).astype(float)
    weight[:3] = 0
    parameters = {"gamma": "median", "scale": "standard", "n_components": 32, "random_state": 0}
    skipped = FPOGD(**parameters).fit(X, y, sample_weight=weight)
    absent = FPOGD(**parameters).fit(X[weight > 0], y[weight > 0])
    assert pickle.dumps(skipped) == pickle.dumps(absent)
    one_by_one = FPOGD(**parameters)
    for x, label, w in zip(X, y, weight, strict=True):
        one_by_one.learn_one(x, label, sample_weight=w)
    np.testing.assert_array_equal(one_by_one.coef_, absent.coef_)
    assert one_by_one.calibration_ == absent.calibration_


def test_all_weights_zero():
    X, y = make_stream("random", 20, 4)
    model = FPOGD(random_state=0).fit(X, y)
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="all sample weights are zero"):
        model.fit(X, y, sample_weight=np.zeros(20))
    model.partial_fit(X, y, sample_weight=np.zeros(20)).learn_one(X[0], y[0], sample_weight=0)
    assert pickle.dumps(model) == before
    assert not hasattr(FPOGD().partial_fit(X, y, sample_weight=np.zeros(20)), "stream_")


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (-np.ones(20), "not negative; it is -1.0 at row 0"),
        (np.where(np.arange(20) == 7, np.nan, 1), "nan at row 7"),
        (np.ones(19), "sample_weight has shape"),
    ],
)
def test_bad_weights_are_named_and_leave_no_trace(weight, message):
    X, y = make_stream("random", 20, 4)
    model = FPOGD(random_state=0).fit(X, y)
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X, y, sample_weight=weight)
    assert pickle.dumps(model) == before


def test_weights_reach_the_calibration():
    X, y = make_stream("random", 4000, 4)
    plain, heavy = (
        FPOGD(gamma="median", n_components=64, average="poly", random_state=0).fit(
            X, y, sample_weight=np.where(y > 0, positive, 1.0)
        )
        for positive in (1.0, 4.0)
    )
    assert heavy.predict_proba(X)[:, 1].mean() > plain.predict_proba(X)[:, 1].mean() + 0.1


def test_heavier_rows_pull_harder():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    y = np.where(rng.random(2000) < 0.5, np.sign(X[:, 0]), np.sign(X[:, 1]))
    by_first = np.where(np.sign(X[:, 0]) == y, 5.0, 1.0)
    stream = Stream(Learner(features=RandomFourier(64, Gaussian(0.1)), seed=0, average="poly"))
    stream.partial_fit(X, y, sample_weight=by_first)
    along = stream.pair_score(np.eye(3), -np.eye(3))
    assert along[0] > 1.5 * along[1] > 0


def test_a_heavy_row_is_learned_in_a_hundred_parts_at_most():
    """A weight of 1e9 costs what 100 does; its substeps are still cut, without a warning about eta."""
    d = np.array([1.0, 2.0])
    X, y = np.array([[0.0, 0.0], d]), [-1, 1]
    streams = [
        Stream(Learner(Identity(), memory=Strata(eps=1.0), step=Constant(0.1), dtype="float64", engine=engine))
        for engine in ("reference", "fused")
    ]
    for stream in streams:
        stream.partial_fit(X, y, sample_weight=[1, 1e9])
        assert stream.learned.tally[CUT] == 0
        assert stream.learned.memory.slots.mass[16] == 1e9
        # A pair that is learned to the end is met exactly.
        assert stream.coef[0] @ d == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(streams[0].coef, streams[1].coef, rtol=1e-12)


@pytest.mark.filterwarnings("ignore::pairloom.stream.StabilityWarning")
@pytest.mark.parametrize("weight", [99.5, 150.0, 1e100])
@pytest.mark.parametrize("rows", [np.asarray, csr_array])
def test_engines_agree_on_heavy_rows(weight, rows):
    X, y = make_stream("random", 120, 3)
    weights = np.where(np.arange(120) % 10 == 5, weight, 1.0)
    for parts in ({"loss": Logistic()}, {"loss": Hinge(), "average": "mean"}, {"penalty": L2(0.1, "proximal")}):
        learner = Learner(features=Identity(), memory=Strata(0.5, 3), step=Constant(0.05), dtype="float64", **parts)
        truth = Stream(replace(learner, engine="reference")).partial_fit(X, y, sample_weight=weights)
        fast = Stream(learner).partial_fit(rows(X), y, sample_weight=weights)
        grid = Grid([learner, replace(learner, step=Constant(0.01))])
        many = Stream(grid).partial_fit(X, y, sample_weight=weights)
        for coef in (fast.coef[0], many.coef[0]):
            np.testing.assert_allclose(coef, truth.coef[0], rtol=0, atol=1e-8 * np.abs(truth.coef).max())


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (-1.0, "finite and not negative; it is -1.0 at row 3"),
        (np.nan, "finite and not negative"),
        (np.inf, "finite and not negative; it is inf at row 3"),
    ],
)
def test_weights_that_are_refused(weight, message):
    X, y = make_stream("random", 20, 3)
    with pytest.raises(ValueError, match=message):
        FPOGD().fit(X, y, sample_weight=np.where(np.arange(20) == 3, weight, 1.0))
    for strange in (["1"] * 20, np.ones(20) + 1j, np.ma.masked_array(np.ones(20), np.arange(20) == 3)):
        with pytest.raises(ValueError, match=r"sample_weight|Complex data not supported"):
            FPOGD().fit(X, y, sample_weight=strange)


def test_weights_at_the_ends_of_all_doubles_count_as_those_that_can_be_added_and_squared():
    X, y = make_stream("random", 60, 3)
    wild = np.where(np.arange(60) % 2 == 0, 1e-300, 1e300)
    moderate = np.where(np.arange(60) % 2 == 0, 1e-100, 1e100)
    for one, other in ((wild, moderate), (np.full(60, 5e-324), np.full(60, 1e-100)), (np.full(60, 1.7e308), 1e100)):
        models = [FPOGD(random_state=0).fit(X, y, sample_weight=weight) for weight in (one, other)]
        np.testing.assert_array_equal(*(model.decision_function(X) for model in models))
        assert np.isfinite(models[0].decision_function(X)).all()


@pytest.mark.parametrize("memory", [Reservoir(5), Reservoir(5, by="joint"), RSx(5), RSx(5, by="class")])
@pytest.mark.parametrize("light", [1e-18, 1e-60, 1e-100])
def test_rows_of_next_to_no_weight_do_not_enter_a_sample(memory, light):
    """Their position would exceed all integers."""
    X, y = make_stream("random", 400, 3)
    weights = np.where(np.arange(400) < 200, 1.0, light)
    learner = Learner(features=Identity(), memory=memory, step=Constant(1e-4), dtype="float64", seed=0)
    truth = Stream(replace(learner, engine="reference")).partial_fit(X, y, sample_weight=weights)
    stream = Stream(learner).partial_fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(stream.coef, truth.coef, rtol=0, atol=1e-12)
    kept = stream.learned.memory.slots.points[stream.learned.memory.slots.mass > 0]
    assert all((row == X[:200]).all(axis=1).any() for row in kept)


def test_one_huge_weight_leaves_probabilities():
    X, y = make_stream("random", 16, 3)
    model = FPOGD(random_state=0).partial_fit(X, y, sample_weight=[1.0] * 15 + [1e20], classes=[-1, 1])
    assert np.isfinite(model.predict_proba(X)).all()
