"""OPERA: the exact expansion against double loops over all pairs, in the kernel's space and in the input space."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

from pairloom.engines.state import CUT
from pairloom.features import Gaussian, RandomFourier
from pairloom.losses import LOSSES, Square
from pairloom.stream import StabilityWarning
from pairloom.systems import OPERA, AllPairs
from tests.conftest import STREAMS, make_stream
from tests.covering import every_pair

MODES = [("all", "square"), *(("opposite", loss) for loss in LOSSES)]
GRAMS = {
    "gaussian": lambda X: rbf_kernel(X, gamma=0.2),
    "laplace": lambda X: laplacian_kernel(X, gamma=0.2),
    "linear": lambda X: X @ X.T,
}


def written_out(G, y, weight, pairs, loss, eta, power):
    """The coefficients after every row, pair by pair, from the Gram matrix; y is +1 or -1. No step is ever cut."""
    half, a, history = (0.5 if loss == "square" else 1.0), np.zeros(len(y)), []
    for t in range(len(y)):
        f, step = a @ G, np.zeros(len(y))
        for i in range(t):
            if pairs == "all":
                slope = (f[t] - f[i]) - (y[t] - y[i])
            elif y[i] != y[t]:
                slope = half * y[t] * float(LOSSES[loss].derivative(y[t] * (f[t] - f[i])))
            else:
                continue
            share = weight[i] / weight[:t].sum()
            step[t] += share * slope
            step[i] -= share * slope
        a = a - eta * (t + 1.0) ** -power * weight[t] * step
        history.append(a)
    return np.array(history)


def made(kernel="gaussian", **changes):
    width = {} if kernel == "linear" else {"gamma": 0.2}
    return OPERA(**{"kernel": kernel, "eta": 0.1, "power": 0.55, "dtype": "float64", **width, **changes})


@every_pair(engine=["reference", "fused"], kernel=GRAMS, mode=MODES)
def test_every_iterate_written_out(engine, kernel, mode):
    pairs, loss = mode
    X, y = make_stream("random", 80, 3)
    weight = np.random.default_rng(0).choice([0.5, 1.0, 2.0], 80)
    expected = written_out(GRAMS[kernel](X), y, weight, pairs, loss, 0.02, 0.55)
    model = made(kernel, pairs=pairs, loss=loss, eta=0.02, engine=engine)
    for t in range(80):
        model.partial_fit(X[[t]], y[[t]], classes=[-1, 1], sample_weight=weight[[t]])
        np.testing.assert_allclose(model.coef_, expected[t, : t + 1], rtol=0, atol=1e-12)
        assert abs(model.coef_.sum()) < 1e-13
    np.testing.assert_allclose(model.stream_.score(X), expected[-1] @ GRAMS[kernel](X), rtol=0, atol=1e-10)
    np.testing.assert_array_equal(model.support_, X)


@every_pair(mode=MODES, kind=STREAMS, classes=[2, 3], eta=[0.3, 30.0])
@pytest.mark.filterwarnings("ignore::pairloom.stream.StabilityWarning")
def test_compiled_agrees_with_the_specification(mode, kind, classes, eta):
    """Also where steps are cut."""
    pairs, loss = mode
    X, y = make_stream(kind, 150, 4)
    y = np.where(y > 0, 2, X[:, 0] > 0) if classes == 3 else y
    weight = np.random.default_rng(0).gamma(1.0, size=150)
    spec, fast = (
        made(pairs=pairs, loss=loss, eta=eta, engine=engine).fit(X, y, weight) for engine in ("reference", "fused")
    )
    for name in ("coef", "f", "gram", "points", "mass"):
        one, other = getattr(fast.stream_.learned.memory, name), getattr(spec.stream_.learned.memory, name)
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-10 * np.abs(other).max())
    np.testing.assert_allclose(fast.stream_.learned.tally, spec.stream_.learned.tally, rtol=1e-8)
    np.testing.assert_allclose(
        fast.stream_.state.observed["recent"].scores, spec.stream_.state.observed["recent"].scores, atol=1e-9
    )


@pytest.mark.parametrize(("pairs", "loss"), MODES)
@pytest.mark.parametrize("form", ["auto", "history"])
def test_a_linear_kernel_is_all_pairs(pairs, loss, form):
    X, y = make_stream("random", 200, 4)
    weight = np.random.default_rng(0).choice([0.5, 1.0, 2.0], 200)
    parameters = {"pairs": pairs, "loss": loss, "eta": 0.05, "power": 0.55, "dtype": "float64"}
    linear = AllPairs(form=form, **parameters).fit(X, y, weight)
    model = made("linear", **parameters).fit(X, y, weight)
    np.testing.assert_allclose(model.coef_ @ model.support_, linear.coef_, rtol=0, atol=1e-11)
    np.testing.assert_allclose(model.decision_function(X), linear.decision_function(X), rtol=0, atol=1e-9)
    assert model.n_pairs_ == linear.n_pairs_


@pytest.mark.parametrize("pairs", ["all", "opposite"])
def test_explicit_features_give_the_same_model(pairs):
    """The kernel of a random feature map is that map's inner product."""
    X, y = make_stream("random", 150, 4)
    features = RandomFourier(32, Gaussian(0.2))
    mapped = AllPairs(pairs=pairs, features=features, eta=0.3, dtype="float64", random_state=1).fit(X, y)
    Z = features.apply(mapped.stream_.learned.phi, X)
    model = OPERA(kernel="linear", pairs=pairs, eta=0.3, dtype="float64").fit(Z, y)
    np.testing.assert_allclose(model.stream_.score(Z), mapped.stream_.score(X), rtol=0, atol=1e-11)


def test_a_linear_kernel_with_all_pairs_is_least_squares_by_moments():
    """The mean over all rows before: d <d, w> + S w - (y - mean y) d - s, with d = x - mean x."""
    X, y = make_stream("random", 200, 4)
    w = np.zeros(4)
    for t in range(1, 200):
        past, labels = X[:t], y[:t]
        d, away = X[t] - past.mean(axis=0), past - past.mean(axis=0)
        S, s = away.T @ away / t, away.T @ (labels - labels.mean()) / t
        w -= 0.05 * (t + 1) ** -0.55 * (d * (d @ w) + S @ w - (y[t] - labels.mean()) * d - s)
    model = made("linear", eta=0.05).fit(X, y)
    np.testing.assert_allclose(model.coef_ @ model.support_, w, rtol=0, atol=1e-11)


@pytest.mark.parametrize("pairs", ["all", "opposite"])
def test_more_than_two_classes_are_models_against_the_rest(pairs):
    X, y = make_stream("random", 120, 3)
    labels = np.where(y > 0, 2, X[:, 0] > 0)
    three = made(pairs=pairs).fit(X, labels)
    for c in range(3):
        alone = made(pairs=pairs).fit(X, labels == c)
        np.testing.assert_allclose(three.coef_[c], alone.coef_, rtol=0, atol=1e-13)


def test_a_weight_counts_as_so_many_rows_for_later_ones():
    X, y = make_stream("random", 40, 3)
    weight = np.ones(40)
    weight[10] = 3.0
    heavy = made(pairs="opposite").fit(X, y, weight).stream_.learned.memory
    np.testing.assert_array_equal(heavy.mass[:40], weight)
    G = GRAMS["gaussian"](X)
    np.testing.assert_allclose(
        heavy.coef[0, :40], written_out(G, y, weight, "opposite", "square", 0.1, 0.55)[-1], atol=1e-13
    )


@pytest.mark.parametrize("kernel", ["gaussian", "linear", "cauchy"])
@pytest.mark.parametrize("scale", [None, "standard"])
def test_csr_rows_agree_with_dense_rows(kernel, scale):
    X, y = make_stream("random", 150, 5)
    X[np.abs(X) < 0.5] = 0
    dense, sparse = (made(kernel, scale=scale, eta=0.02).fit(rows, y) for rows in (X, csr_array(X)))
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=0, atol=1e-10)
    np.testing.assert_allclose(sparse.decision_function(csr_array(X)), dense.decision_function(X), atol=1e-7)


def test_room_doubles_with_the_rows_up_to_the_limit():
    X, y = make_stream("random", 700, 3)
    model, rooms = OPERA(max_rows=600), []
    for end in (1, 64, 65, 300, 600):
        model.partial_fit(X[model.n_seen_ if rooms else 0 : end], y[model.n_seen_ if rooms else 0 : end])
        kept = model.stream_.learned.memory
        rooms.append(len(kept.mass))
        assert kept.gram.shape == (rooms[-1], rooms[-1])
        assert len(kept.points) == len(kept.y) == kept.coef.shape[1] == kept.f.shape[1] == rooms[-1]
        np.testing.assert_allclose(kept.gram[:end, :end], kept.gram[:end, :end].T)
    assert rooms == [64, 64, 128, 512, 600]
    with pytest.raises(ValueError, match=r"max_rows=600: it has 600, so 0 more fit, not 1.*AllPairs"):
        model.learn_one(X[600], y[600])
    with pytest.raises(ValueError, match="it has 0, so 600 more fit, not 700"):
        OPERA(max_rows=600).fit(X, y)
    assert OPERA(max_rows=30, gamma="median").fit(X[:30], y[:30]).n_seen_ == 30


@pytest.mark.parametrize("pairs", ["all", "opposite"])
def test_too_long_a_step_is_cut(pairs):
    X, y = make_stream("random", 300, 4)
    with pytest.warns(StabilityWarning, match="eta=100 is too long"):
        model = OPERA(eta=100.0, pairs=pairs).fit(X, y)
    assert model.stream_.learned.tally[CUT] > 0
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize(("pairs", "loss"), MODES)
def test_it_ranks_what_no_line_can(pairs, loss):
    X, y = make_stream("random", 1500, 4)
    model = OPERA(pairs=pairs, loss=loss, gamma="median", scale="standard", random_state=0).fit(X[:1000], y[:1000])
    assert roc_auc_score(y[1000:], model.decision_function(X[1000:])) > 0.95
    assert model.loss_ < float(Square().value(0.0))
    assert model.gamma_ == pytest.approx(Gaussian("median").width(4, (X / X[:1000].std(axis=0))[:1000]), rel=0.2)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"pairs": "some"}, "pairs"),
        ({"loss": "hinge"}, "pairs='all' needs loss='square'"),
        ({"loss": "cubic"}, "loss"),
        ({"max_rows": 0}, "max_rows"),
        ({"power": 2.0}, "power"),
        ({"gamma": [0.1, 0.2]}, "gamma"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        OPERA(**parameters).fit([[0.0, 1.0], [1.0, 1.0]], [0, 1])
