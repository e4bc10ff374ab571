"""Grid: many models in one pass, each the same as on its own."""

import pickle
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.metrics import roc_auc_score

from pairloom import Grid, Learner, Stream
from pairloom.base.tree import nbytes
from pairloom.engines.state import SKIPPED
from pairloom.features import Gaussian, Identity, RandomFourier
from pairloom.losses import Hinge, Logistic, Square
from pairloom.memory import Latest, Strata, WholeHistory
from pairloom.pairs import OppositeClass, Order
from pairloom.steps import L2, Constant, ElasticNet, Sqrt
from pairloom.stream import StabilityWarning
from pairloom.systems import FPOGD
from tests.conftest import examples, make_stream

RULES = RandomFourier(32, Gaussian("median"), scale="standard")

ONE = Learner(features=RULES, memory=Strata(representative="reservoir"), seed=2, dtype="float64")


def some_learners(one=ONE):
    return [
        replace(one, step=Constant(0.1)),
        replace(one, step=Sqrt(0.3), penalty=L2(0.1), average="mean"),
        replace(one, loss=Logistic(), step=Constant(0.5), penalty=L2(0.5, "proximal"), average="poly"),
        replace(one, loss=Hinge(), step=Constant(0.02)),
        replace(one, step=Constant(0.2), penalty=L2(1e-3)),
    ]


def frozen_bytes(grid):
    return pickle.dumps(grid)


@examples(20)
@given(cuts=st.lists(st.integers(1, 1499), max_size=8), looks=st.booleans(), average=st.sampled_from(["last", "poly"]))
def test_any_cuts_give_the_same_bits_whoever_looks_when(cuts, looks, average):
    X, y = make_stream("one_class_first", 1500, 5)
    learners = some_learners(replace(ONE, dtype="float32", average=average))
    whole, cut = Stream(Grid(learners, 64)).partial_fit(X, y), Stream(Grid(learners, 64))
    for rows in np.split(np.arange(1500), sorted(set(cuts))):
        cut.partial_fit(X[rows], y[rows])
        if looks:
            cut.score(X[:3])
    np.testing.assert_array_equal(whole.coef, cut.coef)
    for a, b in zip(whole.recent(), cut.recent(), strict=True):
        np.testing.assert_array_equal(a, b)
    assert frozen_bytes(whole.only(1).state) == frozen_bytes(cut.only(1).state)


def test_row_by_row_gives_the_same_bits():
    X, y = make_stream("random", 150, 4)
    whole, single = Stream(Grid(some_learners(), 32)).partial_fit(X, y), Stream(Grid(some_learners(), 32))
    for i in range(150):
        single.partial_fit(X[i : i + 1], y[i : i + 1])
    np.testing.assert_array_equal(whole.coef, single.coef)
    np.testing.assert_array_equal(whole.recent()[0], single.recent()[0])


@pytest.mark.parametrize(("dtype", "tol"), [("float64", 1e-10), ("float32", 1e-4)])
@pytest.mark.parametrize("n", [3, 70, 700, 1500])
def test_a_model_is_the_stream_run_alone_and_goes_on_as_one(n, dtype, tol):
    """Before and after settings are final, inside a block and at its end."""
    X, y = make_stream("random", n + 300, 4)
    learners = some_learners(replace(ONE, dtype=dtype))
    grid = Stream(Grid(learners, 50)).partial_fit(X[:n], y[:n])
    for i, learner in enumerate(learners):
        alone, picked = Stream(learner).partial_fit(X[:n], y[:n]), grid.only(i)
        np.testing.assert_allclose(picked.coef, alone.coef, rtol=0, atol=tol)
        np.testing.assert_allclose(picked.recent()[0], alone.recent()[0], rtol=0, atol=tol)
        assert (picked.state.kept is None) == (alone.state.kept is None)
        picked.partial_fit(X[n:], y[n:])
        alone.partial_fit(X[n:], y[n:])
        np.testing.assert_allclose(picked.coef, alone.coef, rtol=0, atol=tol)
        assert picked.learned.rng.bit_generator.state == alone.learned.rng.bit_generator.state
    assert grid.n_seen == n


def test_the_size_of_the_blocks_does_not_matter():
    X, y = make_stream("duplicates", 500, 4)
    one, *others = (Stream(Grid(some_learners(), rows)).partial_fit(X, y) for rows in (1, 13, 64, 500, 10_000))
    for other in others:
        np.testing.assert_allclose(other.coef, one.coef, rtol=0, atol=1e-11)


def test_small_factors_are_multiplied_in():
    """Otherwise (1 - eta alpha)^600 would underflow inside the block."""
    X, y = make_stream("one_class_first", 600, 4)
    learners = [
        replace(ONE, step=Constant(0.5), penalty=L2(alpha, form), average=average)
        for alpha, form in ((1.99, "explicit"), (1e9, "proximal"), (1e300, "proximal"))
        for average in ("last", "poly")
    ]
    grid = Stream(Grid(learners, 600)).partial_fit(X, y)
    for i, learner in enumerate(learners):
        alone = Stream(replace(learner, engine="reference")).partial_fit(X, y)
        np.testing.assert_allclose(grid.only(i).coef, alone.coef, rtol=0, atol=1e-11)
        np.testing.assert_allclose(grid.recent()[0][:, i], alone.recent()[0], rtol=0, atol=1e-11)


def test_unstable_weighted_steps_are_split_cut_and_skipped_as_alone():
    X, y = make_stream("random", 400, 4)
    X[300] *= 1e12
    weight = np.random.default_rng(0).choice([0.5, 1.0, 3.0, 7.5], size=400)
    one = Learner(features=Identity(), memory=Strata(eps=0.5), dtype="float64", seed=0)
    learners = [replace(one, step=Constant(eta), penalty=L2(alpha)) for eta in (0.003, 0.03, 0.3) for alpha in (0, 0.5)]
    grid = Stream(Grid(learners, 64)).partial_fit(X, y, weight)
    for i, learner in enumerate(learners):
        alone = Stream(replace(learner, engine="reference"))
        with pytest.warns(StabilityWarning):
            alone.partial_fit(X, y, weight)
        np.testing.assert_allclose(grid.only(i).coef, alone.coef, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(grid.only(i).learned.tally, alone.learned.tally, rtol=1e-9)
        with pytest.warns(StabilityWarning):
            grid.only(i).warn_if_unstable()


@pytest.mark.parametrize("value", [np.inf, np.nan, 1e20])
def test_a_model_that_diverges_is_stopped_and_reported_and_disturbs_nobody(value):
    X, y = make_stream("random", 1000, 4)
    one = Learner(features=RandomFourier(32, Gaussian(0.1)), memory=Strata(eps=0.5), seed=0)
    learners = some_learners(one)
    good, bad = (Stream(Grid(learners, 50)).partial_fit(X[:500], y[:500]) for _ in range(2))
    lost = 4
    bad.learned.w[bad.model.lanes.order[lost], 3] = value
    before = bad.coef[lost]
    with pytest.warns(StabilityWarning, match=r"stopped learning: 4 \(row 501\). Lower their eta"):
        bad.partial_fit(X[500:], y[500:])
    good.partial_fit(X[500:], y[500:])
    others = [i for i in range(len(learners)) if i != lost]
    np.testing.assert_array_equal(bad.coef[others], good.coef[others])
    np.testing.assert_array_equal(bad.recent()[0][:, others], good.recent()[0][:, others])
    np.testing.assert_array_equal(bad.coef[lost], before)
    assert bad.model.diverged(bad.learned) == {lost: 501}
    assert good.model.diverged(good.learned) == {}
    bad.partial_fit(X[:60], y[:60])  # warned once
    np.testing.assert_array_equal(bad.coef[lost], before)


def test_steps_far_too_long_stay_finite_and_quiet():
    X, y = make_stream("random", 500, 4)
    one = Learner(features=Identity(), memory=Strata(eps=0.5), seed=0)
    learners = [replace(one, step=Constant(eta), loss=loss) for eta in (1.0, 1e9, 1e30) for loss in (Square(), Hinge())]
    grid = Stream(Grid(learners)).partial_fit(30 * X, y)
    assert np.isfinite(grid.coef).all()
    assert np.isfinite(grid.recent()[0]).all()


def test_what_overflows_is_skipped_not_learned():
    X, y = make_stream("random", 90, 4)
    X[[40, 41, 60]] = 9e14
    one = Learner(features=Identity(), memory=Strata(eps=0.1), seed=0)
    learners = [
        replace(one, step=Constant(eta), average=average) for eta in (1e-3, 1e-2) for average in ("last", "poly")
    ]
    grid = Stream(Grid(learners)).partial_fit(X, y)
    for i, learner in enumerate(learners):
        alone = Stream(learner)
        with pytest.warns(StabilityWarning, match="float32 overflowed: steps were skipped"):
            alone.partial_fit(X, y)
        picked = grid.only(i)
        assert picked.learned.tally[SKIPPED] == alone.learned.tally[SKIPPED] > 0
        np.testing.assert_allclose(picked.coef, alone.coef, rtol=0, atol=1e-4)
    assert grid.model.diverged(grid.learned) == {}


def test_looking_changes_nothing():
    X, y = make_stream("random", 300, 4)
    grid = Stream(Grid(some_learners(), 64)).partial_fit(X, y)
    before = frozen_bytes(grid)
    grid.score(X)
    grid.auc()
    grid.only(2).partial_fit(X, y)
    assert grid.coef.any()
    assert grid.model.diverged(grid.learned) == {}
    assert frozen_bytes(grid) == before
    again = pickle.loads(before).partial_fit(X, y)
    np.testing.assert_array_equal(again.coef, grid.partial_fit(X, y).coef)


def test_bad_rows_change_nothing():
    X, y = make_stream("random", 300, 4)
    grid = Stream(Grid(some_learners())).partial_fit(X[:100], y[:100])
    before = frozen_bytes(grid)
    bad = X[100:].copy()
    bad[150, 2] = np.nan
    for args in [(bad, y[100:]), (X[:, :3], y), (X, y[:7]), (X, y + 5), (X, y, -np.ones(300))]:
        with pytest.raises(ValueError):  # noqa: PT011
            grid.partial_fit(*args)
    assert frozen_bytes(grid) == before


def test_rows_of_weight_zero_are_skipped_exactly():
    X, y = make_stream("random", 300, 4)
    weight = (np.arange(300) % 3 > 0).astype(float)
    skipped = Stream(Grid(some_learners(), 32)).partial_fit(X, y, weight)
    absent = Stream(Grid(some_learners(), 32)).partial_fit(X[weight > 0], y[weight > 0])
    assert frozen_bytes(skipped) == frozen_bytes(absent)


def test_more_than_two_classes_have_a_score_each():
    X, _ = make_stream("random", 600, 4)
    labels = np.digitize(X[:, 0], [-0.5, 0.5]).astype(float)
    one = replace(ONE, pairs=OppositeClass(3))
    grid = Stream(Grid(some_learners(one), 50)).partial_fit(X, labels)
    assert grid.score(X).shape == (600, 5, 3)
    assert grid.recent()[0].shape == (600, 5, 3)
    assert grid.coef.shape == (15, 32)
    picked = grid.only(2)
    np.testing.assert_array_equal(picked.score(X), grid.score(X)[:, 2])
    scores, seen, weights = grid.recent()
    np.testing.assert_array_equal(seen, labels)
    expected = [roc_auc_score(labels == k, scores[:, 2, k], sample_weight=weights) for k in range(3)]
    assert grid.auc()[2] == pytest.approx(np.mean(expected))


def test_recent_scores_are_the_newest_in_order():
    X, y = make_stream("random", 4500, 4)
    grid = Stream(Grid(some_learners()[:2], 1000))
    grid.partial_fit(X[:4300], y[:4300])
    expected = grid.score(X[4300:4301])
    scores, labels, weights = grid.partial_fit(X[4300:], y[4300:]).recent()
    assert scores.shape == (4096, 2)
    np.testing.assert_array_equal(labels, y[-4096:] > 0)
    np.testing.assert_allclose(scores[-200], expected[0], rtol=0, atol=1e-12)
    assert (weights == 1).all()


def test_auc_of_each_model():
    X, y = make_stream("random", 400, 4)
    grid = Stream(Grid(some_learners()))
    assert np.isnan(grid.partial_fit(X[y > 0], y[y > 0]).auc()).all()
    weight = np.random.default_rng(0).random(400)
    grid = Stream(Grid(some_learners())).partial_fit(X, y, weight)
    scores = grid.recent()[0]
    expected = [roc_auc_score(y, scores[:, i], sample_weight=weight) for i in range(5)]
    np.testing.assert_allclose(grid.auc(), expected)
    ranking = Learner(pairs=Order(), memory=Latest("previous"), seed=0)
    with pytest.raises(ValueError, match="AUC requires classes"):
        Stream(Grid([ranking])).partial_fit(X, y).auc()


def test_before_the_first_row():
    grid = Stream(Grid(some_learners()))
    assert grid.n_seen == 0
    assert grid.score(np.zeros((3, 4))).tolist() == [[0.0] * 5] * 3
    assert grid.recent()[0].shape == (0, 5)
    assert grid.only(3).state is None
    grid.start(4)
    assert grid.model.diverged(grid.learned) == {}


@pytest.mark.parametrize("features", [Identity(scale="standard"), RULES])
@pytest.mark.parametrize("cluster_in", ["input", "features"])
def test_csr_rows_agree_with_dense_ones(features, cluster_in):
    X, y = make_stream("random", 400, 6)
    X[np.random.default_rng(0).random(X.shape) < 0.6] = 0
    one = replace(ONE, features=features, memory=Strata(cluster_in=cluster_in), step=Constant(0.01))
    learners = [replace(one, penalty=L2(alpha)) for alpha in (0, 0.1)]
    dense, sparse = Stream(Grid(learners, 64)).partial_fit(X, y), Stream(Grid(learners, 64))
    for rows in np.array_split(np.arange(400), 5):
        sparse.partial_fit(csr_array(X[rows]), y[rows])
    np.testing.assert_allclose(sparse.coef, dense.coef, rtol=0, atol=1e-10)
    np.testing.assert_allclose(sparse.score(csr_array(X)), dense.score(X), rtol=0, atol=1e-10)


def test_a_memory_that_grows_refuses_before_anything_changes():
    X, y = make_stream("random", 300, 4)
    one = replace(ONE, memory=WholeHistory(250))
    grid = Stream(Grid([one, replace(one, step=Constant(0.3))], 64)).partial_fit(X[:200], y[:200])
    before = frozen_bytes(grid)
    with pytest.raises(ValueError, match=r"it has 192, so 58 more fit, not 108"):
        grid.partial_fit(X[200:], y[200:])
    assert frozen_bytes(grid) == before
    grid.partial_fit(X[200:250], y[200:250])
    with pytest.raises(ValueError, match="at most 4096 slots"):
        Stream(Grid([replace(one, memory=WholeHistory(5000))])).partial_fit(X, y)


def test_memory_does_not_grow_with_the_stream():
    X, y = make_stream("random", 2000, 4)
    grid = Stream(Grid(some_learners(), 100)).partial_fit(X, y)
    size = grid.nbytes
    for _ in range(5):
        grid.partial_fit(X, y)
    assert grid.nbytes == size
    assert grid.partial_fit(X[:99], y[:99]).nbytes <= size + 99 * (4 * 8 + 24)


@pytest.mark.parametrize(
    ("learners", "message"),
    [
        ([], "at least one learner"),
        ([ONE, replace(ONE, memory=Strata())], r"one memory; got .*: make them with replace\(learner"),
        ([ONE, replace(ONE, seed=5)], "one seed; got 2, 5"),
        ([ONE, replace(ONE, dtype="float32")], "one dtype"),
        ([ONE, replace(ONE, penalty=ElasticNet(0.1, l1=0.1))], r"takes penalty=L2\(...\), .* got ElasticNet"),
        ([replace(ONE, engine="reference")], "use engine='auto'"),
    ],
)
def test_learners_that_cannot_learn_side_by_side(learners, message):
    with pytest.raises(ValueError, match=message):
        Grid(learners)


def test_block_rows_is_a_count():
    with pytest.raises(ValueError, match="block_rows must be an integer >= 1; got 0"):
        Grid([ONE], 0)


def test_a_grid_from_an_estimator_learns_what_the_estimators_learn():
    X, y = make_stream("random", 500, 4)
    model = FPOGD(n_components=32, gamma="median", max_strata=4, dtype="float64", random_state=1)
    etas, alphas, losses, averages = [0.05, 0.2], [1e-3, 1e-1], ["square", "logistic"], ["last", "poly"]
    grid = model.grid(etas=etas, alphas=alphas, losses=losses, averages=averages).partial_fit(X, y)
    for i, (loss, average, alpha, eta) in enumerate(product(losses, averages, alphas, etas)):
        alone = FPOGD(**{**model.get_params(), "eta": eta, "alpha": alpha, "loss": loss, "average": average}).fit(X, y)
        np.testing.assert_allclose(grid.only(i).coef, alone.stream_.coef, rtol=0, atol=1e-10)
    assert len(model.grid(schedules=["constant", "sqrt", "poly"], n_classes=3).model) == 3
    assert model.grid(n_classes=3).model.pairs == OppositeClass(3)
    with pytest.raises(ValueError, match="loss must be one of"):
        model.grid(losses=["cubic"])


def test_bytes_count_the_open_block_evaluated_ahead_but_the_map_once():
    X, y = np.random.default_rng(0).normal(size=(200, 3)), np.tile([1.0, -1.0], 100)
    grid = Stream(Grid([Learner(seed=0)], block_rows=128)).partial_fit(X, y)
    before = grid.nbytes
    grid.score(X[:1])
    assert before < grid.nbytes <= 2 * before - nbytes(grid.learned.phi)
