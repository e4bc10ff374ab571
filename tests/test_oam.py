"""OAM (Zhao et al. 2011), and the two features it brought: weights that are sums, passive-aggressive steps."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from pairloom import Learner, Stream
from pairloom.engines.state import SKIPPED
from pairloom.features import Identity
from pairloom.losses import Hinge
from pairloom.memory import Reservoir, Strata, WholeHistory
from pairloom.pairs import OppositeClass, Order
from pairloom.steps import L2, Ball, Constant, ElasticNet, PassiveAggressive
from pairloom.stream import StabilityWarning
from pairloom.systems import OAM
from tests.conftest import STREAMS, make_stream
from tests.covering import every_pair

ENGINES = {"reference": np.asarray, "fused": np.asarray, "csr": sp.csr_array}


@pytest.fixture(params=ENGINES)
def engine(request):
    """Parameters of a learner, and the container of its rows."""
    return {"engine": "reference" if request.param == "reference" else "fused"}, ENGINES[request.param]


def buffers(model):
    """Examples of each class in the memory of the model."""
    slots, codes = model.stream_.learned.memory.slots, model._labels.codes
    return {sign: slots.points[(slots.mass > 0) & (slots.labels == codes[sign])].copy() for sign in (-1, 1)}


def sequential(w, x, label, partners, C_t):
    """The published update; how often it was cut, and how often not."""
    cut = [0, 0]
    for B in partners:
        u = label * (x - B)
        loss = max(0.0, 1 - w @ u)
        if u.any() and loss > 0:
            tau = min(C_t / 2, loss / (u @ u))
            cut[int(tau < C_t / 2)] += 1
            w = w + tau * u
    return w, cut


def gradient(w, x, label, partners, C_t):
    """The published update: all margins at the incoming w."""
    active = [label * (x - B) for B in partners if w @ (label * (x - B)) < 1]
    return w + C_t / 2 * np.sum(active, axis=0) if active else w, [len(active), len(partners) - len(active)]


@every_pair(indirect=("engine",), engine=ENGINES, update=["sequential", "gradient"], kind=STREAMS)
def test_it_is_the_published_loop(engine, update, kind):
    """With C_t = C max(1, N / s) over a buffer of s, also once it is full; the buffers are read from the model."""
    how, container = engine
    C = 0.02 if update == "sequential" else 0.002
    X, y = make_stream(kind, 200, 4)
    model, size, w, cut = OAM(update=update, C=C, size=7, dtype="float64", random_state=2, **how), 7, np.zeros(4), 0
    step = sequential if update == "sequential" else gradient
    for t in range(200):
        x, label = X[t], int(y[t])
        if t:
            N = np.count_nonzero(y[:t] == -label)
            partners = buffers(model)[-label]
            assert len(partners) == min(size, N)
            w, happened = step(w, x, label, partners, C * max(1, N / size))
            cut = np.add(cut, happened)
        model.partial_fit(container(x[None]), [label], classes=[-1, 1])
        np.testing.assert_allclose(model.coef_, w, rtol=0, atol=1e-12 * max(1, np.abs(w).max()))
    assert (cut > 15).all()


def test_the_buffers_hold_different_rows_of_their_class():
    X, y = make_stream("random", 300, 4)
    kept = buffers(OAM(size=20, dtype="float64", random_state=0).fit(X, y))
    for sign, points in kept.items():
        places = [np.flatnonzero((point == X).all(axis=1)).item() for point in points]
        assert len(set(places)) == 20
        assert (y[places] == sign).all()


def test_a_step_that_is_not_cut_leaves_its_pair_without_loss(engine):
    """One partner at a time: right after, the margin is 1; a cut step has moved w by C_t / 2 and no more."""
    how, container = engine
    X, y = make_stream("random", 200, 4)
    model, exact, cut = OAM(C=0.002, size=1, dtype="float64", random_state=0, **how), 0, 0
    model.partial_fit(container(X[:1]), y[:1], classes=[-1, 1])
    for t in range(1, 200):
        before, other = model.coef_, buffers(model)[-int(y[t])]
        model.partial_fit(container(X[t : t + 1]), y[t : t + 1])
        if len(other) == 0:
            continue
        u, moved = y[t] * (X[t] - other[0]), model.coef_ - before
        cap = 0.002 / 2 * np.count_nonzero(y[:t] == -y[t])
        if before @ u >= 1:
            assert not moved.any()
        elif (1 - before @ u) / (u @ u) < cap:
            assert model.coef_ @ u == pytest.approx(1, abs=1e-12)
            exact += 1
        else:
            np.testing.assert_allclose(moved, cap * u, rtol=1e-11)
            assert model.coef_ @ u <= 1
            cut += 1
    assert min(exact, cut) > 10


def test_with_room_for_all_the_gradient_is_that_of_the_whole_sum(engine):
    how, container = engine
    X, y = make_stream("one_class_first", 150, 4)
    model, w = OAM(update="gradient", C=1e-3, size=150, dtype="float64", **how), np.zeros(4)
    for t in range(150):
        g = np.zeros(4)
        for i in range(t):
            d = y[t] * (X[t] - X[i])
            if y[i] != y[t] and w @ d < 1:
                g -= d
        w = w - 1e-3 / 2 * g
        model.partial_fit(container(X[t : t + 1]), y[t : t + 1], classes=[-1, 1])
        np.testing.assert_allclose(model.coef_, w, rtol=0, atol=1e-12)


@pytest.mark.parametrize("memory", [WholeHistory(200, normalization="sum"), Reservoir(200, normalization="sum"),
                                    WholeHistory(200, by="joint", normalization="sum"),
                                    Strata(eps=-1.0, max_strata=200, normalization="sum")], ids=repr)  # fmt: skip
def test_sums_over_three_classes_with_weights(engine, memory):
    """w_k <- w_k + eta w_t sum_i w_i ..., the weights of all pairs with the other side of class k."""
    how, container = engine
    X, _ = make_stream("random", 150, 4)
    y = np.digitize(X[:, 0] + np.square(X[:, 1]), [0.5, 1.5])
    weight = np.random.default_rng(0).gamma(2.0, size=150)
    stream = Stream(Learner(
        Identity(), OppositeClass(3), Hinge(), memory, step=Constant(1e-3), dtype="float64", seed=0, **how
    ))  # fmt: skip
    w = np.zeros((3, 4))
    for t in range(150):
        for k in range(3):
            a, v = 1 if y[t] == k else -1, np.zeros(4)
            for i in range(t):
                if (y[i] == k) != (y[t] == k) and a * (w[k] @ (X[t] - X[i])) < 1:
                    v += weight[i] * a * (X[t] - X[i])
            w[k] = w[k] + 1e-3 * weight[t] * v
        stream.partial_fit(container(X[t : t + 1]), y[t : t + 1], weight[t : t + 1])
        np.testing.assert_allclose(stream.learned.w, w, rtol=0, atol=1e-12 * max(1, np.abs(w).max()))
    sides = [[weight[(y == k) == own].sum() for own in (False, True)] for k in range(3)]
    np.testing.assert_allclose(stream.learned.totals, sides, rtol=1e-14)


@pytest.mark.parametrize("penalty", [L2(0.5), L2(0.5, "proximal"), ElasticNet(0.1, l1=0.3), Ball(0.3)], ids=repr)
def test_a_penalty_shrinks_before_the_first_pair_and_limits_after_the_last(engine, penalty):
    how, container = engine
    X, y = make_stream("random", 120, 4)
    weight = np.random.default_rng(0).choice([0.5, 1.0, 30.0], 120)  # 30 * eta * alpha > 1: nothing is kept
    stream = Stream(Learner(
        Identity(), loss=Hinge(), memory=WholeHistory(120), step=PassiveAggressive(0.1), penalty=penalty, seed=0,
        dtype="float64", **how,
    ))  # fmt: skip
    w = np.zeros(4)
    for t in range(120):
        others = [i for i in range(t) if y[i] != y[t]]
        if others:
            keep, rate, threshold = penalty.at(np.asarray(0.1 * weight[t]))
            w = max(0, keep) * w
            for i in others:
                w, _ = sequential(w, X[t], y[t], X[i : i + 1], 2 * rate * weight[i] / weight[others].sum())
            w = np.sign(w) * np.maximum(0, np.abs(w) - threshold)
            w = w * min(1, penalty.bound / max(np.linalg.norm(w), 1e-300))
        stream.partial_fit(container(X[t : t + 1]), y[t : t + 1], weight[t : t + 1])
        np.testing.assert_allclose(stream.learned.w[0], w, rtol=0, atol=1e-12)


@every_pair(
    update=["sequential", "gradient"], factor=[1e-25, 1e-18, 1.0, 1e10, 1e14], C=[1e3, 1e38, 1e300],
    container=[np.asarray, sp.csr_array],
)  # fmt: skip
def test_no_step_is_long_enough_for_nan(update, factor, C, container):
    X, y = make_stream("duplicates", 200, 4)
    model = OAM(update=update, C=C, size=9, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StabilityWarning)
        model.fit(container(factor * X), y)
    assert np.isfinite(model.stream_.score(factor * X)).all()


def test_steps_that_overflow_are_skipped_and_reported():
    X = np.array([[0.0], [1e-20], [0.0], [1.0]])
    for container in ENGINES.values():
        model = OAM(C=1e300, dtype="float64")
        with pytest.warns(StabilityWarning, match="steps were skipped"):
            model.fit(container(X), [-1, 1, -1, 1])
        assert model.stream_.learned.tally[SKIPPED] == 2  # the second row, and the third against it
        assert model.coef_ == pytest.approx(1.0)
        with pytest.warns(StabilityWarning):
            truth = OAM(C=1e300, dtype="float64", engine="reference").fit(X, [-1, 1, -1, 1])
        np.testing.assert_array_equal(truth.stream_.learned.tally, model.stream_.learned.tally)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Learner(step=PassiveAggressive(0.1)), r"PassiveAggressive steps end .*: use loss=Hinge\(\)"),
        (
            lambda: Learner(pairs=Order(), memory=Reservoir(by="joint", normalization="sum")),
            r"counts the rows of the other class: use pairs=OppositeClass\(\)",
        ),
        (
            lambda: Reservoir(normalization="history"),
            "does not know the classes' shares of the history: use by='joint'",
        ),
        (lambda: WholeHistory(normalization="mean"), "normalization must be one of 'class', 'history', 'sum'; got"),
        (lambda: Strata(by="joint", normalization="sum"), "use normalization='history', or strata per class"),
        (
            lambda: OAM(update="both").fit(*make_stream("random", 9, 2)),
            "update must be one of 'sequential', 'gradient'",
        ),
        (lambda: OAM(C=0).fit(*make_stream("random", 9, 2)), "C must be a number above 0; got 0"),
        (lambda: OAM(size=0).fit(*make_stream("random", 9, 2)), "size must be an integer >= 1; got 0"),
    ],
)
def test_parts_that_do_not_fit_are_named(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_a_fresh_stream_has_seen_nothing():
    X, y = make_stream("random", 60, 4)
    used = OAM(random_state=0).fit(X, y)
    assert used.stream_.learned.totals.sum() == 60
    np.testing.assert_array_equal(used.coef_, Stream(used.stream_.model).partial_fit(X, y).coef[0])
