"""Projectron++: projections, the growing factor, the kernel perceptron inside it, and what happens at the cap."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from pairloom import Stream
from pairloom.base.tree import nbytes
from pairloom.features import Gaussian, Identity, Linear
from pairloom.features.compiled_kernels import exact_kernel
from pairloom.pairs import OppositeClass
from pairloom.stream import StabilityWarning
from pairloom.systems import ProjectronPP
from pairloom.systems.projectronpp import Projecting
from tests.conftest import STREAMS, make_stream
from tests.covering import every_pair
from tests.generic import assert_expansions_agree
from tests.test_multiclass import three_classes

ENGINES = pytest.mark.parametrize("engine", ["reference", "fused"])
GAMMA = 0.2


def k(a, b):
    return np.exp(-GAMMA * np.square(np.subtract(a, b)).sum())


def make(**changes):
    return Stream(
        Projecting(**{"kernel": Gaussian(GAMMA), "max_supports": 60, "dtype": "float64", "seed": 0, **changes})
    )


def terms(stream):
    """Supports and coefficients of the first model."""
    return stream.model.terms(stream.learned.memory)[0]


def naive(X, y, weight, theta, cap, kernel=k):
    """The paper's step with a fresh Gram matrix and a fresh inverse at every row; scores before each step."""
    S, beta, scores = [], np.zeros(0), []
    for x, label, w in zip(X, y, weight, strict=True):
        kx = np.array([kernel(s, x) for s in S])
        f = float(beta @ kx)
        scores.append(f)
        loss = 1 - label * f
        if loss <= 0:
            continue
        inverse = np.linalg.inv([[kernel(s, p) for p in S] for s in S]) if S else np.zeros((0, 0))
        e = inverse @ kx
        delta = max(0.0, kernel(x, x) - kx @ e)
        length = kernel(x, x) - delta
        if label * f <= 0:
            if not S or (delta > max(theta, 1e-8) and len(S) < cap):
                S, beta = [*S, x], np.append(beta, w * label)
            else:
                beta = beta + w * label * e
        elif theta and loss > delta / theta:
            beta = beta + min(w, loss / length, 2 * (loss - delta / theta) / length) * label * e
    return np.array(scores), np.array(S), beta


@ENGINES
@pytest.mark.parametrize("theta", [0.0, 0.1, 0.6])
@pytest.mark.parametrize("cap", [6, 60])
def test_it_is_the_naive_loop(engine, theta, cap):
    X, y = make_stream("random", 120, 3)
    weight = np.random.default_rng(0).choice([0.5, 1.0, 2.0], 120)
    scores, S, beta = naive(X, y, weight, theta, cap)
    stream = make(theta=theta, max_supports=cap, engine=engine).partial_fit(X, y, weight)
    supports, coef = terms(stream)
    np.testing.assert_array_equal(supports, S)
    np.testing.assert_allclose(coef[0], beta, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(stream.state.observed["recent"].scores[:120, 0], scores, rtol=1e-8, atol=1e-10)
    assert len(S) == 6 or cap == 60


@every_pair(kind=STREAMS, theta=[0.0, 0.1, 0.6], kernel=["gaussian", "laplace", "matern32", "linear"])
def test_the_compiled_loop_is_the_specification(kind, theta, kernel):
    X, y = make_stream(kind, 120, 5)
    fast = make(theta=theta, kernel=exact_kernel(kernel, 0.2), max_supports=30)
    truth = Stream(replace(fast.model, engine="reference")).partial_fit(X, y)
    assert_agree(fast.partial_fit(X, y), truth)


assert_agree = partial(assert_expansions_agree, exact=("supports", "used"), atol=1e-11)


def test_three_classes_weights_and_rules_on_data():
    X, y = three_classes(150, 4)
    weight = np.random.default_rng(1).gamma(1.0, size=150)
    parts = {"kernel": Gaussian("median"), "features": Identity(scale="standard"), "pairs": OppositeClass(3)}
    fast = make(**parts).partial_fit(X, y, weight)
    assert_agree(fast, Stream(replace(fast.model, engine="reference")).partial_fit(X, y, weight))
    assert fast.score(X).shape == (150, 3)
    for model in range(3):
        alone = make(**{**parts, "pairs": OppositeClass()}).partial_fit(X, np.where(y == model, 1, -1), weight)
        np.testing.assert_array_equal(fast.score(X)[:, model], alone.score(X))


# What the paper proves.


@pytest.mark.parametrize("theta", [0.02, 0.1])
def test_the_growing_factor_is_the_cholesky_factor(theta):
    X, y = make_stream("random", 3000, 3)
    stream = make(theta=theta).partial_fit(X, y)
    memory, n = stream.learned.memory, stream.learned.memory.used[0]
    K = np.array([[k(a, b) for b in memory.supports[0, :n]] for a in memory.supports[0, :n]])
    assert n > 20
    np.testing.assert_allclose(memory.factor[0, :n, :n], np.linalg.cholesky(K), rtol=1e-9, atol=1e-11)
    assert not memory.factor[0, n:].any()
    # Every support was farther than theta from those before it: the pivots of the Gram matrix.
    assert (np.square(np.diag(np.linalg.cholesky(K))) > theta).all()


def test_supports_close_to_the_span_of_the_others_do_no_harm():
    """A wide kernel, and no distance but rounding errors: with an updated inverse, coefficients reached 1e22."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(20_000, 6))
    y = np.where(np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=len(X)) > 0.9, 1.0, -1.0)
    stream = make(kernel=Gaussian(0.02), theta=0.0, max_supports=300).partial_fit(X, y)
    memory = stream.learned.memory
    gram = np.exp(-0.02 * np.square(memory.supports[0, :, None] - memory.supports[0]).sum(axis=2))
    assert memory.used[0] == 300
    assert np.linalg.cond(gram) > 1e8
    np.testing.assert_allclose(memory.factor[0] @ memory.factor[0].T, gram, atol=1e-12)
    assert np.abs(memory.coef).max() < 1e3


@ENGINES
def test_a_projected_mistake_is_the_nearest_function_in_the_span(engine):
    """No other combination of the supports is closer to f + y k(x, .) in the norm of the space."""
    X, y = make_stream("random", 400, 2)
    stream, projected = make(theta=0.5, engine=engine), 0
    for x, label in zip(X, y, strict=True):
        S, old = (part.copy() for part in terms(stream)) if stream.state else (X[:0], np.zeros((1, 0)))
        stream.partial_fit(x[None], [label])
        after, new = terms(stream)
        margin = label * float(old[0] @ [k(s, x) for s in S])
        if len(after) > len(S) or margin > 0:
            continue
        K, kx = np.array([[k(a, b) for b in S] for a in S]), np.array([k(s, x) for s in S])

        def distance(step, K=K, kx=kx, label=label):
            """||sum_j step_j k(s_j, .) - y k(x, .)||^2 and its gradient."""
            return step @ K @ step - 2 * label * step @ kx + 1.0, 2 * (K @ step - label * kx)

        best = minimize(distance, np.zeros(len(S)), jac=True, tol=1e-12).fun
        assert distance(new[0] - old[0])[0] <= best + 1e-9
        assert best <= 0.5 + 1e-9
        projected += 1
        if projected == 20:
            return
    raise AssertionError("too few projections")


@ENGINES
def test_theta_0_is_the_kernel_perceptron(engine):
    X, y = make_stream("random", 150, 3)
    S, beta = [], []
    for x, label in zip(X, y, strict=True):
        if label * sum(b * k(s, x) for s, b in zip(S, beta, strict=True)) <= 0:
            S.append(x)
            beta.append(label)
    stream = make(theta=0.0, engine=engine).partial_fit(X, y)
    np.testing.assert_array_equal(terms(stream)[0], S)
    np.testing.assert_array_equal(terms(stream)[1][0], beta)


@ENGINES
def test_duplicates_never_become_supports_twice(engine):
    """Not even for theta = 0, where the Gram matrix would be singular; the function is that of the perceptron."""
    X, y = make_stream("duplicates", 150, 4)
    stream = make(theta=0.0, engine=engine).partial_fit(X, y)
    supports, coef = terms(stream)
    assert len(np.unique(supports, axis=0)) == len(supports) <= 8
    beta = {}
    for x, label in zip(X, y, strict=True):
        if label * sum(b * k(s, x) for s, b in beta.items()) <= 1e-9:
            beta[tuple(x)] = beta.get(tuple(x), 0.0) + label
    np.testing.assert_allclose(coef[0], list(beta.values()), atol=1e-12)


def test_a_margin_step_takes_the_hinge_loss_down_and_no_further():
    """On the row itself: y f grows by tau ||P k||^2 and stays at 1 or below."""
    X, y = make_stream("random", 600, 2)
    stream, steps = make(theta=0.3), 0
    for x, label in zip(X, y, strict=True):
        before = label * stream.score(x[None])[0] if stream.state else 0.0
        stream.partial_fit(x[None], [label])
        after = label * stream.score(x[None])[0]
        if 0 < before < 1:
            assert before - 1e-12 <= after <= 1 + 1e-12
            steps += after > before
    assert steps > 20


@ENGINES
def test_the_support_set_stays_finite_and_the_cap_holds(engine):
    X, y = make_stream("random", 300, 2)
    small = make(theta=0.5, engine=engine).partial_fit(X, y).learned.memory.used[0]
    assert small < 20
    capped = make(theta=0.5, max_supports=5, engine=engine).partial_fit(X, y)
    assert capped.learned.memory.used[0] == 5
    # At the limit mistakes are projected: the coefficients still change.
    before = terms(capped)[1].copy()
    capped.partial_fit(X, y)
    assert capped.learned.memory.used[0] == 5
    assert not np.array_equal(before, terms(capped)[1])


def test_the_set_is_bounded_by_the_kernel_not_by_the_stream():
    X, y = make_stream("random", 20_000, 2)
    sizes = [
        int(make(theta=0.3, max_supports=200).partial_fit(X[:n], y[:n]).learned.memory.used[0]) for n in (5000, 20_000)
    ]
    assert sizes[1] < sizes[0] + 5 < 60


@ENGINES
def test_the_first_row_is_a_support_however_large_theta(engine):
    X, y = make_stream("random", 50, 2)
    stream = make(theta=5.0, engine=engine).partial_fit(X, y)
    np.testing.assert_array_equal(terms(stream)[0], X[:1])
    # But a row that is the zero of the space spans nothing.
    zero = make(kernel=Linear(), engine=engine).partial_fit(np.zeros((3, 2)), [1, -1, 1])
    assert zero.learned.memory.used[0] == 0
    assert zero.partial_fit([[1.0, 0.0]], [1]).score([[2.0, 0.0]]) == 2.0


def test_heavy_rows():
    X, y = make_stream("random", 100, 2)
    # A weight takes the place of the 1 in tau: the step still ends at margin 1.
    stream = make(theta=0.3).partial_fit(X, y)
    margins = y * stream.score(X)
    i = int(np.flatnonzero((margins > 0.01) & (margins < 0.3))[0])
    stream.partial_fit(X[i : i + 1], y[i : i + 1], [1e6])
    assert y[i] * stream.score(X[i : i + 1])[0] <= 1 + 1e-9
    absurd = make()
    with pytest.warns(StabilityWarning, match="steps were skipped"):
        absurd.partial_fit(X, y, np.full(100, 1e20))
    assert absurd.learned.memory.used[0] == 0


# The estimator.


def estimator(**changes):
    return ProjectronPP(**{"gamma": "median", "scale": "standard", "max_supports": 40, **changes})


@pytest.mark.parametrize("scale", [None, "standard"])
def test_csr_rows_are_learned_as_dense_ones(scale):
    X, y = make_stream("random", 400, 6)
    X[np.random.default_rng(0).random(X.shape) < 0.6] = 0
    dense, sparse = (estimator(scale=scale, dtype="float64", gamma=0.1).fit(rows, y) for rows in (X, csr_array(X)))
    np.testing.assert_allclose(sparse.decision_function(csr_array(X)), dense.decision_function(X), rtol=1e-7, atol=1e-7)


def test_float32_is_close():
    X, y = make_stream("random", 150, 5)
    single, double = (make(dtype=dtype).partial_fit(X, y) for dtype in ("float32", "float64"))
    np.testing.assert_allclose(single.score(X), double.score(X), atol=1e-4)


def test_what_can_be_looked_at():
    X, y = make_stream("random", 400, 4)
    model = estimator(gamma=0.3, scale=None).fit(X, y)
    raw = Gaussian()(np.asarray(0.3), X, model.support_) @ model.coef_
    slope, decision = model.calibration_[0][0], model.decision_function(X)
    np.testing.assert_allclose(decision - decision[0], slope * (raw - raw[0]), rtol=1e-3, atol=1e-3)
    assert 0 < model.loss_ < 1
    assert model.n_pairs_ == 0
    swapped = estimator(gamma=0.3, scale=None).fit(X, -y)
    np.testing.assert_array_equal(model.coef_, -swapped.coef_)
    X, y = three_classes(300, 4)
    many = estimator().fit(X, y)
    assert [c.shape for c in many.coef_] == [s.shape[:1] for s in many.support_]
    assert len(many.coef_) == 3


def test_it_ranks():
    X, y = make_stream("random", 6000, 3)
    model = ProjectronPP(gamma=0.2).fit(X[:5000], y[:5000])
    assert roc_auc_score(y[5000:], model.decision_function(X[5000:])) > 0.9
    X, y = load_digits(return_X_y=True)
    model = ProjectronPP(gamma="median").fit(X[:1200], y[:1200])
    assert roc_auc_score(y[1200:], model.predict_proba(X[1200:]), multi_class="ovr") > 0.97


def test_bytes_are_the_formula_and_flat():
    X, y = make_stream("random", 3000, 4)
    model, sizes = ProjectronPP(max_supports=10), []
    for start in range(0, 3000, 500):
        sizes.append(model.partial_fit(X[start : start + 500], y[start : start + 500]).nbytes_)
    # Supports in float32; coefficients, factor, their number, the width.
    memory = 4 * 10 * 4 + 8 * (10 + 10 * 10 + 1 + 1)
    assert nbytes(model.stream_.learned.memory) == memory
    # The scaling; recent scores, labels and weights, the tally, the log-odds; the newest 32 rows of each class.
    assert set(sizes) == {memory + 4 * 2 * 4 + 8 * (4 * 4096 + 7 + 2) + 8 * (2 * 32 * (4 + 1) + 2)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"theta": -0.1}, r"theta must be a number at least 0; got -0\.1"),
        ({"max_supports": 0}, "max_supports must be an integer >= 1; got 0"),
        ({"kernel": "poly"}, "kernel must be one of"),
        ({"gamma": -1}, "gamma must be a positive number"),
        ({"scale": "log"}, "scale, if not None, must be one of"),
    ],
)
def test_bad_parameters_are_named(change, message):
    X, y = make_stream("random", 20, 2)
    with pytest.raises(ValueError, match=message):
        ProjectronPP(**change).fit(X, y)
