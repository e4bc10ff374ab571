import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest

from pairloom import Learner, Stream
from pairloom.engines.state import WORST
from pairloom.features import Gaussian, Identity, RandomFourier
from pairloom.losses import Hinge, Logistic, Square, SquaredHinge
from pairloom.memory import Strata
from pairloom.models.mapped import WARM_ROWS
from pairloom.steps import L2, Constant, Sqrt
from pairloom.stream import StabilityWarning
from tests.conftest import make_stream

RULES = RandomFourier(32, Gaussian("median"), scale="standard")


@pytest.mark.parametrize("n", [1, 3, 4, 15, 100, 1023, 1024, 1500])
def test_warm_start_is_one_pass_with_the_rules_fixed_at_the_last_replay(n):
    """At any time the state is exactly one pass with the current settings."""
    X, y = make_stream("one_class_first", n, 4)
    stream = Stream(Learner(features=RULES, seed=2, dtype="float64")).partial_fit(X, y)
    fixed_at = max(r for r in (1, 4, 16, 64, 256, 1024) if r <= n)
    direct = Stream(Learner(features=RULES, seed=2, dtype="float64"))
    batch = direct.check(X, y)
    direct.start_with(batch[:fixed_at])
    direct.learn(batch)
    np.testing.assert_array_equal(stream.learned.w, direct.learned.w)
    np.testing.assert_array_equal(stream.state.observed["recent"].scores, direct.state.observed["recent"].scores)
    assert stream.state.t == n
    assert (stream.state.kept is None) == (n >= WARM_ROWS)


def test_without_rules_nothing_is_kept():
    X, y = make_stream("random", 10, 4)
    learner = Learner(features=Identity(), memory=Strata(eps=0.1), step=Constant(0.01))
    assert Stream(learner).partial_fit(X, y).state.kept is None


def test_rules_never_see_labels():
    X, y = make_stream("random", 300, 4)
    a, b = (Stream(Learner(features=RULES, seed=0)).partial_fit(X, labels) for labels in (y, y[::-1]))
    assert a.learned.phi.gamma == b.learned.phi.gamma
    assert a.learned.memory.eps == b.learned.memory.eps


@pytest.mark.parametrize("average", ["last", "mean", "poly"])
def test_pickled_mid_stream_it_goes_on_as_if_nothing_had_happened(average):
    X, y = make_stream("random", 700, 4)
    memory = Strata(representative="reservoir")
    start = Learner(features=RULES, memory=memory, average=average, seed=9)
    whole = Stream(start).partial_fit(X, y)
    half = pickle.loads(pickle.dumps(Stream(start).partial_fit(X[:333], y[:333]))).partial_fit(X[333:], y[333:])
    np.testing.assert_array_equal(whole.coef, half.coef)
    np.testing.assert_array_equal(whole.learned.memory.slots.points, half.learned.memory.slots.points)


def test_replace_gives_a_fresh_learner():
    X, y = make_stream("random", 50, 4)
    used = Stream(Learner(seed=0)).partial_fit(X, y)
    fresh = Stream(replace(used.model, step=Sqrt(0.1)))
    assert fresh.state is None
    assert fresh.n_seen == 0
    np.testing.assert_array_equal(fresh.score(X), 0)


def test_seeds():
    X, y = make_stream("random", 50, 4)
    one, same, other, *fresh = (Stream(Learner(seed=seed)).partial_fit(X, y).coef for seed in (1, 1, 2, None, None))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)
    assert not np.array_equal(*fresh)


@pytest.mark.parametrize("engine", ["reference", "fused"])
@pytest.mark.parametrize("loss", [Square(), SquaredHinge(), Logistic()])
@pytest.mark.parametrize("memory", [Strata(eps=np.inf), Strata(eps=0.5)])
def test_an_unstable_step_is_cut_and_the_largest_safe_step_is_named(engine, loss, memory):
    X, y = make_stream("random", 600, 4)
    X *= 30
    start = Learner(features=Identity(), memory=memory, loss=loss, step=Constant(1.0), engine=engine, seed=0)
    with pytest.warns(StabilityWarning, match="eta=1 is too long.*largest safe step so far is") as caught:
        stream = Stream(start).partial_fit(X, y)
    assert len(caught) == 1
    assert np.isfinite(stream.coef).all()
    assert np.abs(stream.coef).max() < 1e3
    safe = float(str(caught[0].message).split("so far is ")[1].split(". Lower")[0])
    assert 0.99 * 2 / stream.learned.tally[WORST] <= safe <= 2 / stream.learned.tally[WORST]
    advised = float(str(caught[0].message).split("half of it, ")[1].split(", or scale")[0])
    assert advised == pytest.approx(safe / 2, rel=1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Stream(replace(start, step=Constant(advised))).partial_fit(X, y)


def test_for_one_pair_and_the_square_loss_the_safe_step_is_exact():
    """A pair's residual is multiplied by 1 - 2 eta ||d||^2: it grows when eta ||d||^2 > 1."""
    X, y = np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([-1.0, 1.0])
    make = lambda eta: Learner(features=Identity(), memory=Strata(eps=np.inf), step=Constant(eta), dtype="float64")  # noqa: E731
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Stream(make(1 / 25 * 0.999)).partial_fit(X, y)
    with pytest.warns(StabilityWarning, match=r"largest safe step so far is 0\.0(4|399)\."):
        Stream(make(1 / 25 * 1.001)).partial_fit(X, y)


def test_divergence_without_the_cut_is_real():
    """The guard is needed: the same steps without it overflow."""
    X, y = make_stream("random", 600, 4)
    X, w = X * 30, np.zeros(4)
    last = {}
    with np.errstate(all="ignore"):
        for x, label in zip(X, y, strict=True):
            if -label in last:
                d = x - last[-label]
                w = w + 2 * label * (1 - label * (w @ d)) * d
            last[label] = x
    assert not np.isfinite(w).all()


def test_overflow_is_reported_not_learned():
    X, y = make_stream("random", 60, 4)
    X[40] = 9e14
    stream = Stream(Learner(features=Identity(), memory=Strata(eps=0.1), step=Constant(1e-3), seed=0))
    with pytest.warns(StabilityWarning, match="float32 overflowed: steps were skipped"):
        stream.partial_fit(X, y)
    assert np.isfinite(stream.coef).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"step": Constant(0.5), "penalty": L2(2.0)}, "explicit L2 step needs eta . alpha < 1, got 1.*l2='proximal'"),
        ({"average": "median"}, "average must be one of 'last', 'mean', 'poly'; got 'median'"),
        ({"dtype": "float16"}, "dtype must be one of 'float32', 'float64'; got 'float16'"),
        ({"engine": "gpu"}, "engine must be one of"),
    ],
)
def test_parts_that_do_not_fit_fail_at_construction(change, message):
    with pytest.raises(ValueError, match=message):
        Learner(**change)


def test_repr_shows_the_composition():
    text = repr(Learner(seed=0))
    for part in (
        "RandomFourier(",
        "Gaussian(gamma='paper', factor=1.0)",
        "OppositeClass(n_classes=2)",
        "Square()",
        "Strata(eps='auto'",
        "L2(",
    ):
        assert part in text


def test_provisional_rules_do_not_warn_and_settled_ones_do():
    """Scaled by its first row alone, which has no deviation, a stream looks unstable; scaled by 64 rows it is not."""
    X, y = make_stream("random", 400, 4)
    make = lambda eta: Learner(features=Identity(scale="standard"), step=Constant(eta), seed=0)  # noqa: E731
    Stream(make(0.01)).partial_fit(1000 * X, y)
    with pytest.warns(StabilityWarning, match="largest safe step"):
        Stream(make(1.0)).partial_fit(1000 * X, y)


def test_one_warning_is_enough():
    X, y = make_stream("random", 400, 4)
    stream = Stream(Learner(features=Identity(), memory=Strata(eps=1.0), step=Constant(1.0), seed=0))
    with pytest.warns(StabilityWarning, match="too long"):
        stream.partial_fit(X[:50], y[:50])
    stream.partial_fit(X[50:], y[50:])  # a second warning would be an error here


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [1e2, 1e5, 1e8])
def test_the_cut_works_at_every_scale(size, dtype):
    """Columns of size 1e8 need steps of 1e-16: the model must still converge."""
    y = np.where(np.arange(2000) % 2, 1.0, -1.0)
    X = (y * size * (1 + 1e-6 * np.random.default_rng(0).uniform(-1, 1, 2000)))[:, None]
    stream = Stream(Learner(features=Identity(), memory=Strata(eps=1.0, max_strata=4), seed=0, dtype=dtype))
    with pytest.warns(StabilityWarning, match="too long"):
        stream.partial_fit(X, y)
    assert stream.coef[0, 0] == pytest.approx(0.5 / size, rel=1e-4)


def test_the_cut_is_continuous_so_rounding_cannot_choose():
    """One-hot rows with eta ||d||^2 = 1 exactly: the engines fall on either side of the limit, and agree."""
    rng = np.random.default_rng(0)
    X = np.hstack([np.eye(8)[rng.integers(0, 8, 2000)] for _ in range(4)])
    y = np.where(rng.random(2000) < 0.5, 1.0, -1.0)
    start = Learner(Identity(), memory=Strata(eps=np.inf, max_strata=1), step=Constant(0.125), dtype="float64", seed=0)
    streams = [Stream(replace(start, engine=engine)) for engine in ("fused", "reference")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StabilityWarning)
        ours, truth = (stream.partial_fit(X, y).coef for stream in streams)
    np.testing.assert_allclose(ours, truth, rtol=0, atol=1e-10)


@pytest.mark.parametrize("eta", [1e3, 1e20, 1e39, 1e300])
@pytest.mark.parametrize("loss", [Square(), SquaredHinge(), Logistic(), Hinge()])
def test_no_step_is_long_enough_for_nan(eta, loss):
    X, y = make_stream("random", 200, 4)
    for features, factor in ((RandomFourier(32, Gaussian(0.1)), 1.0), (Identity(), 1e10)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StabilityWarning)
            stream = Stream(Learner(features, loss=loss, step=Constant(eta), seed=0)).partial_fit(factor * X, y)
        assert np.isfinite(stream.score(factor * X)).all()


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros((4, 3)), np.ones(6), r"y has shape \(6,\), but X has 4 rows"),
        (np.zeros((4, 1)), np.ones(4), "X has 1 columns, but this model was fitted with 3"),
        (np.zeros((4, 3)), np.full(4, 2.0), r"label 2.0 at row 0 is not one of -1, 0, 1"),
        (np.full((4, 3), np.nan), np.ones(4), "NaN at row 0, column 0"),
        (np.zeros(3), np.ones(3), "X must have rows and columns"),
    ],
)
def test_the_stream_checks_what_it_is_given(X, y, message):
    stream = Stream(Learner(seed=0)).partial_fit(np.eye(3), [1, -1, 1])
    before = pickle.dumps(stream)
    with pytest.raises(ValueError, match=message):
        stream.partial_fit(X, y)
    assert pickle.dumps(stream) == before


def test_kept_rows_are_copies():
    X, y = make_stream("random", 60, 4)
    ours, X = Stream(Learner(features=RULES, seed=0)), X.astype(np.float32)
    ours.partial_fit(X[:20], y[:20])
    spoiled = X.copy()
    spoiled[:20], y = X[:20], y.copy()
    expected = Stream(Learner(features=RULES, seed=0)).partial_fit(X, y)
    X[:20] = 7.0
    np.testing.assert_array_equal(ours.partial_fit(X[20:], y[20:]).coef, expected.coef)
