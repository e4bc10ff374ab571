"""AdaGrad: by hand, in every engine; what stays where it is, what is skipped, what is refused; files."""

import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest
import scipy.sparse as sp

from pairloom import Grid, Learner, PairwiseRanker, PairwiseRegressor, Stream, load, save
from pairloom.base.tree import flatten, same
from pairloom.engines.state import LOSS, PAIRS, SKIPPED, STEPS
from pairloom.features import Gaussian, Growing, Identity
from pairloom.losses import Logistic
from pairloom.memory import Latest, Strata, WholeHistory
from pairloom.models.learner import change_map
from pairloom.pairs import OppositeClass
from pairloom.persist import ModelFileError
from pairloom.steps import L2, AdaGrad, Ball, Constant, ElasticNet, Penalty
from pairloom.steps.penalties import shrink
from pairloom.stream import StabilityWarning
from pairloom.systems import FPOGD, KOIL, OGD, OLP, SOLAM, AdaDSG
from tests import test_sparse
from tests.conftest import make_stream
from tests.hostile import read, sign

ENGINES = ["reference", "fused", "csr"]


def learned(learner, engine, X, *rest, cuts=()):
    """The state after these rows, by the specification, the loop over dense rows or that over CSR rows."""
    X = np.asarray(X, float)
    stream = Stream(replace(learner, engine="reference" if engine == "reference" else "fused"))
    return test_sparse.learn(stream, sp.csr_array(X) if engine == "csr" else X, *rest, cuts=cuts).learned


def by_hand(penalty, rows):
    """w and G of the one weight of <w, x>, with the square loss and the newest row of the other class for a partner."""
    w, G, newest = 0.0, 0.0, {}
    for x, y, weight in rows:
        if -y in newest:
            u = y * (x - newest[-y])
            v = weight * -2.0 * (1.0 - w * u) * u
            G += v * v
            keep, rate, threshold = map(float, penalty.at(np.array(0.5 / np.sqrt(G))))
            w = max(0.0, keep) * w - rate * v
            w = np.sign(w) * max(0.0, abs(w) - threshold)
            w = np.clip(w, -penalty.bound, penalty.bound)
        newest[y] = x
    return w, G


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "penalty", [L2(), L2(0.7), L2(100.0), L2(0.7, "proximal"), ElasticNet(0.3, l1=0.9), Ball(0.4)], ids=str
)
def test_one_weight_by_hand(penalty, engine):
    rows = [(1.0, -1.0, 1.0), (3.0, 1.0, 1.0), (2.0, -1.0, 2.0), (0.5, 1.0, 0.25), (2.5, -1.0, 1.0), (4.0, 1.0, 1.0)]
    x, y, weight = map(np.array, zip(*rows, strict=True))
    learner = Learner(
        Identity(), memory=Latest("opposite"), step=AdaGrad(0.5), penalty=penalty, dtype="float64", seed=0
    )
    for n in range(2, len(rows) + 1):
        state = learned(learner, engine, x[:n, None], y[:n], weight[:n])
        np.testing.assert_allclose([state.w[0, 0], state.squares[0, 0]], by_hand(penalty, rows[:n]), rtol=1e-14)
    if penalty == L2():
        state = learned(learner, engine, x[:3, None], y[:3], weight[:3])
        assert state.squares[0, 0] == 16 + 4
        assert state.w[0, 0] == pytest.approx(0.5 + 0.5 * 2 / np.sqrt(20))
        assert state.tally[[STEPS, PAIRS]].tolist() == [3, 2]
        assert state.tally[LOSS] == pytest.approx(1 + 2 * 0.25)


@pytest.mark.parametrize(
    "penalty", [L2(0.5), L2(3.0), L2(2.0, "proximal"), ElasticNet(0.4, l1=0.2), Ball(2.0)], ids=str
)
def test_the_compiled_penalty_is_the_penalty(penalty):
    for eta in (1e-9, 0.1, 0.4, 2.0, 1e9):
        keep, rate, threshold = penalty.at(np.array(eta))
        np.testing.assert_allclose(
            shrink(eta, *map(float, penalty.numbers[:2]), penalty.numbers.proximal),
            (max(0.0, float(keep)), rate, threshold), rtol=1e-15,
        )  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_coordinate_in_which_all_rows_agree_is_not_touched(engine, dtype):
    """A rounding error in place of 0 would be a step of eta."""
    X, y = make_stream("random", 200, 4)
    X[:, 1], X[:, 2] = 0.1, np.repeat([0.3, 0.7], [120, 80])
    learner = Learner(
        Identity(), memory=Latest("opposite", size=7), loss=Logistic(), step=AdaGrad(0.1), penalty=L2(0.2), dtype=dtype,
        seed=0,
    )  # fmt: skip
    state = learned(learner, engine, X, y)
    assert state.w[0, 1] == state.squares[0, 1] == 0
    assert learned(learner, engine, X[:120], y[:120]).squares[0, 2] == 0 < state.squares[0, 2]
    # Nor is one with a weight: it is what it was when its column became constant for all rows in the memory.
    X[:60, 1] = X[:60, 3]
    at, later = (learned(learner, engine, X[:n], y[:n]) for n in (110, 200))
    assert at.w[0, 1] == later.w[0, 1] != 0
    assert at.squares[0, 1] == later.squares[0, 1] > 0


@pytest.mark.parametrize("engine", ENGINES)
def test_weights_multiply_the_gradient_and_no_coordinate_moves_by_more_than_eta(engine):
    X, y = make_stream("random", 60, 3)
    learner = Learner(
        Identity(), memory=Latest("opposite", 3), step=AdaGrad(0.3), penalty=L2(), dtype="float64", seed=0
    )
    first = int(np.flatnonzero(y != y[0])[0]) + 1
    one = learned(learner, engine, X[:first], y[:first])
    for weight, times in ((3.0, 3.0), (0.5, 0.5), (1e9, 1e6)):
        weights = np.append(np.ones(first - 1), weight)
        state = learned(learner, engine, X[:first], y[:first], weights)
        np.testing.assert_allclose(state.w, one.w, rtol=1e-14)
        np.testing.assert_allclose(state.squares, times**2 * one.squares, rtol=1e-14)
        assert state.tally[STEPS] == weight
    heavy, before = np.random.default_rng(0).choice([1e-3, 1.0, 1e7], 60), np.zeros(3)
    for n in range(1, 61):
        w = learned(learner, engine, 100 * X[:n], y[:n], heavy[:n]).w[0]
        assert np.abs(w - before).max() <= 0.3 * (1 + 1e-12)
        before = w


@pytest.mark.parametrize("engine", ENGINES)
def test_a_row_that_overflows_is_skipped_and_counted(engine):
    X, y = make_stream("random", 50, 3)
    learner = Learner(Identity(), memory=Latest("opposite"), step=AdaGrad(0.1), seed=0)
    before, X[49] = learned(learner, engine, X[:49], y[:49]), 1e15
    after = learned(learner, engine, X, y)
    assert after.tally[SKIPPED] == 1 > before.tally[SKIPPED]
    np.testing.assert_array_equal(after.w, before.w)
    np.testing.assert_array_equal(after.squares, before.squares)
    with pytest.warns(StabilityWarning, match="overflowed"):
        Stream(learner).partial_fit(X, y)


def test_squares_that_underflow_do_no_harm():
    X, y = make_stream("random", 50, 3)
    for dtype in ("float32", "float64"):
        for engine in ENGINES:
            learner = Learner(Identity(), step=AdaGrad(0.1), memory=Latest("opposite"), dtype=dtype, seed=0)
            state = learned(learner, engine, X * [1e-30, 1e-10, 1.0], y)
            assert state.w[0, 0] == 0
            assert 0 < abs(state.w[0, 1]) < 3
            assert np.isfinite(state.w).all()


def test_where_features_agree_up_to_rounding_a_shrinking_step_is_not_continuous():
    """The last two rows agree in the second column in float32: it is left alone. In float64 it is shrunk."""
    X, y = np.array([[1.0, 0.0], [3.0, 2.0], [0.5, 2.0 + 1e-9]]), np.array([1.0, -1.0, 1.0])
    learner = Learner(
        Identity(), memory=Latest("opposite"), step=AdaGrad(0.2), penalty=L2(0.5), dtype="float64", engine="reference",
        seed=0,
    )  # fmt: skip
    rounded = X.astype(np.float32).astype(float)
    for penalty, far in ((L2(0.5), 1e-3), (L2(), 0.0)):
        one, other = (Stream(replace(learner, penalty=penalty)).partial_fit(rows, y).coef for rows in (X, rounded))
        assert np.abs(one - other).max() >= far
        assert far or np.abs(one - other).max() < 1e-8


PENALTIES = [L2(0.3), L2(0.3, "proximal"), ElasticNet(0.1, l1=0.3), Ball(0.4)]


@pytest.mark.parametrize(
    ("penalty", "average", "scale"),
    list(zip(PENALTIES, ["last", "mean", "poly", "last"], ["standard", None, "standard", None], strict=True)),
    ids=str,
)
def test_three_classes_csr_rows_after_dense_rows_and_calls_of_any_length(penalty, average, scale):
    X, _ = test_sparse.make_rows("random", 300, 6)
    y = np.digitize(X.sum(axis=1), [-1, 1]).astype(float)
    weight = np.random.default_rng(0).random(300) * 3
    learner = Learner(
        Identity(scale=scale), pairs=OppositeClass(3), memory=Strata(eps=2.0, max_strata=3), step=AdaGrad(0.05),
        penalty=penalty, average=average, dtype="float64", seed=0,
    )  # fmt: skip
    specified = test_sparse.learn(Stream(replace(learner, engine="reference")), X, y, weight)
    truth, scores = specified.learned, specified.recent()[0]
    streams = [Stream(learner) for _ in range(3)]
    for stream, cuts in zip(streams, ([100], [100, 101, 250], [100, *range(150, 300)]), strict=True):
        test_sparse.learn(stream, X[:100], y[:100], weight[:100], cuts=[50] * (len(cuts) > 1))
        rest = [c - 100 for c in cuts[1:]]
        test_sparse.learn(stream, sp.csr_array(X[100:]), y[100:], weight[100:], cuts=rest)
        for name in ("w", "squares", "w_bar")[: 2 if average == "last" else 3]:
            np.testing.assert_allclose(getattr(stream.learned, name), getattr(truth, name), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(stream.recent()[0], scores, rtol=1e-10, atol=1e-12)
    for stream in streams[1:]:
        ours, expected = test_sparse.arrays(stream.state), test_sparse.arrays(streams[0].state)
        assert ours.keys() == expected.keys()
        for path, array in ours.items():
            np.testing.assert_array_equal(array, expected[path], err_msg=path)
    if isinstance(penalty, Ball):
        norms = np.linalg.norm(truth.w, axis=1)
        assert norms.max() <= 0.4 * (1 + 1e-12)
        assert norms.max() > 0.39


def test_l1_on_csr_rows_leaves_exact_zeros_and_rare_columns_alone():
    rng = np.random.default_rng(0)
    X = sp.random_array((400, 300), density=0.02, rng=rng, format="csr")
    y = np.where(X[:, :20].sum(axis=1) > 0.15, 1.0, -1.0)
    learner = Learner(Identity(), step=AdaGrad(0.1), penalty=ElasticNet(0.0, l1=0.02), seed=0)
    stream = Stream(learner).partial_fit(X, y)
    zero = stream.coef[0] == 0
    assert (zero & (stream.learned.squares[0] > 0)).sum() > 0
    assert not zero[:20].all()
    assert stream.learned.lazy.factors[0, 0] == 1  # sigma


def test_where_features_grow_the_squares_are_those_of_the_features_as_they_are():
    learner = Learner(
        Growing(64, Gaussian(0.3), 8), memory=Strata(cluster_in="input"), step=AdaGrad(0.1), dtype="float64", seed=0
    )
    state = learner.init(3, None)
    state.squares[:], state.w[:], state.t = 6.0, 2.0, 40
    change_map(learner, state, learner.features.change(state.phi, state.t, np.zeros(0)))
    new = state.w.shape[1]
    assert new > 8
    np.testing.assert_allclose(state.w, [[2.0 * np.sqrt(new / 8)] * 8 + [0.0] * (new - 8)])
    np.testing.assert_allclose(state.squares, [[6.0 * 8 / new] * 8 + [0.0] * (new - 8)])


# What is refused.


@dataclass(frozen=True)
class Capped(Penalty):
    """A penalty from outside: no weight shrinks by more than a tenth."""

    def at(self, eta):
        return np.maximum(0.9, 1.0 - eta), eta, 0.0 * eta


class Doubled(L2):
    def at(self, eta):
        keep, rate, threshold = super().at(eta)
        return keep, 2 * rate, threshold


class Slow(AdaGrad):
    def lengths(self, squares):
        return super().lengths(squares) / 2


def test_what_is_not_compiled_is_for_the_reference_engine():
    X, y = make_stream("random", 100, 3)
    for parts in ({"penalty": Capped()}, {"penalty": Doubled(0.1)}, {"step": Slow(0.1)}):
        learner = Learner(Identity(), **{"step": AdaGrad(0.1), "engine": "reference", "seed": 0, **parts})
        assert Stream(learner).partial_fit(X, y).coef.any()
        with pytest.raises(ValueError, match=r"has no compiled form.*use engine='reference'"):
            replace(learner, engine="auto")
    assert Learner(penalty=Capped(), step=Constant(0.1)).penalty.numbers is None


def test_models_that_take_one_step_for_all_coordinates_say_so():
    with pytest.raises(ValueError, match=r"a grid needs one step for all coordinates, .* got AdaGrad"):
        Grid([Learner(step=AdaGrad(0.1), seed=0)])
    with pytest.raises(ValueError, match="a grid needs one step for all coordinates"):
        FPOGD(random_state=0).grid(schedules=["constant", "adagrad"])
    for system in (SOLAM(), KOIL(), AdaDSG()):
        with pytest.raises(ValueError, match=r"takes one step for all coordinates, such as Constant.*; got AdaGrad"):
            replace(system._make_model(2, 0), step=AdaGrad(0.1))
    with pytest.raises(NotImplementedError, match="Constant has one step for all coordinates"):
        Constant(0.1).lengths(np.ones(2))
    with pytest.raises(ValueError, match=r"eta \* alpha < 1"):
        Learner(step=Constant(1.0), penalty=L2(2.0))
    assert Learner(step=AdaGrad(1.0), penalty=L2(2.0)).step == AdaGrad(1.0)


# Estimators and files.


@pytest.mark.parametrize("kind", [FPOGD, OGD, OLP, PairwiseRanker, PairwiseRegressor])
def test_estimators_take_it_and_go_on_from_a_file(kind, tmp_path):
    X, y = make_stream("random", 500, 4)
    parameters = {"n_components": 32} if "n_components" in kind().get_params() else {}
    model = kind(schedule="adagrad", eta=0.1, random_state=0, **parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(X[:300], y[:300])
    assert model.stream_.model.step == AdaGrad(0.1)
    save(model, tmp_path / "model")
    found = load(tmp_path / "model")
    assert same(found.state_, model.state_)
    for one in (model, found):
        one.partial_fit(X[300:], y[300:])
    assert same(found.state_, model.state_)
    assert repr(found) == repr(model)


def test_it_learns_what_plain_steps_do_not_on_columns_of_many_scales():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 20))
    y = np.where(X.sum(axis=1) > 2, 1, -1)
    X *= np.logspace(-2, 2, 20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StabilityWarning)
        plain, adaptive = (
            FPOGD(kernel="linear", loss="logistic", eta=eta, schedule=schedule, random_state=0).fit(X[:1500], y[:1500])
            for eta, schedule in ((1e-3, "constant"), (1.0, "adagrad"))
        )
    from sklearn.metrics import roc_auc_score

    a, b = (roc_auc_score(y[1500:], model.decision_function(X[1500:])) for model in (plain, adaptive))
    assert b > a + 0.05


@pytest.fixture(params=["dense", "csr"])
def written(request, tmp_path):
    X, y = make_stream("random", 60, 4)
    learner = Learner(Identity(), step=AdaGrad(0.1), memory=WholeHistory(100), penalty=Ball(0.5), seed=0)
    stream = Stream(learner).partial_fit(sp.csr_array(X) if request.param == "csr" else X, y)
    save(stream, tmp_path / "model")
    assert same(load(tmp_path / "model").state, stream.state)
    return tmp_path / "model", *read(tmp_path / "model")


@pytest.mark.parametrize("where", ["learned.squares", "learned.lazy.squares"])
@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_squares_in_a_hostile_file_are_refused(written, where, value):
    path, header, arrays = written
    if where not in arrays:
        assert "learned.lazy" not in header["state"]["kinds"]
        return
    arrays[where][0, 1] = value
    path.write_bytes(sign(header, arrays))
    with pytest.raises(ModelFileError, match=rf"{where} has numbers outside 0"):
        load(path)


def test_squares_that_are_missing_or_too_many_are_refused(written, tmp_path):
    path, header, arrays = written
    for where in {"learned.squares", "learned.lazy.squares"} & arrays.keys():
        path.write_bytes(sign(header, {name: array for name, array in arrays.items() if name != where}))
        with pytest.raises(ModelFileError, match=f"{where} must be an array"):
            load(path)
        path.write_bytes(sign(header, {**arrays, where: arrays[where][:, :3]}))
        with pytest.raises(ModelFileError, match=f"{where} must have an axis of 4, not 3"):
            load(path)
    plain = {**header, "model": {**header["model"], "model": {**header["model"]["model"]}}}
    plain["model"]["model"]["step"] = {"part": "Constant", "eta": 0.1}
    path.write_bytes(sign(plain, arrays))
    with pytest.raises(ModelFileError, match=r"squares must be absent"):
        load(path)


def test_other_steps_know_nothing_of_it(tmp_path):
    X, y = make_stream("random", 60, 4)
    for rows in (X, sp.csr_array(X)):
        stream = Stream(Learner(Identity(), step=Constant(0.01), seed=0)).partial_fit(rows, y)
        flat = flatten(stream.state)
        assert not any("squares" in path for path in (*flat.arrays, *flat.values) if "memory" not in path)
        assert stream.learned.squares is None


def test_a_ranker_from_before_it_had_schedules_loads(tmp_path):
    X, y = make_stream("random", 60, 4)
    model = PairwiseRanker(n_components=16, random_state=0).fit(X, y)
    save(model, tmp_path / "model")
    header, arrays = read(tmp_path / "model")
    assert header["model"].pop("schedule") == "constant"
    (tmp_path / "model").write_bytes(sign(header, arrays))
    found = load(tmp_path / "model")
    assert found.schedule == "constant"
    assert same(found.state_, model.state_)
