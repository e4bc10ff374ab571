"""OPAUC: full-history descent, batch covariances, the law of the sketches; the compiled loop against the rule."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score

from pairloom import Learner, Stream
from pairloom.base.randomness import generator
from pairloom.data import load_dataset
from pairloom.engines.state import CUT, LOSS, PAIRS, SKIPPED, STEPS
from pairloom.features import Gaussian, Identity, RandomFourier
from pairloom.memory import WholeHistory
from pairloom.models.moments_rule import symmetric
from pairloom.models.rule import Row, RuleLearner
from pairloom.pairs import OppositeClass
from pairloom.steps import L2, Constant
from pairloom.stream import StabilityWarning
from pairloom.systems import OPAUC
from pairloom.systems.opauc import Sketch, normals
from tests.conftest import STREAMS, make_stream
from tests.covering import every_pair

FORMS = {
    "moments": {},
    "moments, options": {"schedule": "poly", "l2": "proximal", "alpha": 0.5, "average": "poly", "scale": "standard"},
    "moments, features": {"features": RandomFourier(24, Gaussian("median")), "average": "mean", "eta": 0.2},
    "centred": {"rank": 7},
    "centred, options": {"rank": 3, "schedule": "sqrt", "alpha": 0.5, "average": "mean", "scale": "minmax"},
    "published": {"rank": 6, "sketch": "published"},
}


def three_classes(X):
    """Labels 0, 1, 2 by the first column."""
    return np.digitize(X[:, 0], [-0.5, 0.5])


def weights(n, seed=3):
    """Fractions, whole numbers and zeros."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < 0.5, rng.random(n) * 2, rng.integers(0, 3, n))


def assert_engines_agree(make, X, y, weight=None, tol=1e-10):
    """The compiled loop against the specification: models, statistics, scores and counts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StabilityWarning)
        ours, truth = (make(engine=e).fit(X, y, sample_weight=weight).stream_ for e in ("auto", "reference"))
    assert np.abs(truth.coef).max() > 0
    compared = [(ours.coef, truth.coef)]
    compared += [(ours.state.observed["recent"].scores, truth.state.observed["recent"].scores)]
    ours, truth = ours.learned, truth.learned
    compared += [(ours.w, truth.w)]
    compared += [(getattr(ours.memory, name), value) for name, value in vars(truth.memory).items()]
    for a, b in compared:
        assert np.abs(a - b).max() <= tol * max(1.0, np.abs(b).max())
    exact = [STEPS, PAIRS, SKIPPED, CUT]
    np.testing.assert_array_equal(ours.tally[exact], truth.tally[exact])
    assert ours.tally[LOSS] == pytest.approx(truth.tally[LOSS], rel=tol)


# The moments.


def history(eta, alpha, n_classes=2):
    """Descent on all pairs, kept as rows. Square is twice the half-square loss: eta / 2, and eta alpha as it is."""
    return Learner(
        Identity(), OppositeClass(n_classes), memory=WholeHistory(400), step=Constant(eta / 2), penalty=L2(2 * alpha),
        dtype="float64", seed=0,
    )  # fmt: skip


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize("kind", STREAMS)
def test_iterates_are_those_of_full_history_descent(kind, engine):
    X, y = make_stream(kind, 120, 5)
    ours = Stream(OPAUC(eta=0.01, alpha=0.3, dtype="float64", engine=engine)._make_model(2, 0))
    truth = Stream(history(0.01, 0.3))
    for t in range(120):
        for stream in (ours, truth):
            stream.partial_fit(X[t : t + 1], y[t : t + 1])
        assert np.abs(ours.coef - truth.coef).max() <= 1e-12 * np.abs(truth.coef).max()
    ours, truth = ours.learned.tally, truth.learned.tally
    np.testing.assert_array_equal(ours[[STEPS, PAIRS, CUT]], truth[[STEPS, PAIRS, CUT]])
    assert ours[LOSS] == pytest.approx(truth[LOSS] / 2, rel=1e-12)
    assert truth[CUT] == 0


def test_iterates_are_those_of_full_history_descent_with_three_classes_and_weights():
    X, _ = make_stream("random", 300, 5)
    y, weight = three_classes(X), weights(300)
    model = OPAUC(eta=0.005, alpha=0.3, dtype="float64").fit(X, y, sample_weight=weight)
    truth = Stream(history(0.005, 0.3, n_classes=3)).partial_fit(X, y, weight)
    assert np.abs(model.coef_ - truth.coef).max() <= 1e-12 * np.abs(truth.coef).max()
    np.testing.assert_array_equal(model.stream_.learned.tally[[STEPS, PAIRS]], truth.learned.tally[[STEPS, PAIRS]])


def test_iterates_by_a_double_loop():
    X, y = make_stream("one_class_first", 90, 4)
    w, eta, alpha = np.zeros(4), 0.02, 0.1
    for t in range(90):
        others = [i for i in range(t) if y[i] != y[t]]
        if others:
            v = sum(-y[t] * (1 - y[t] * (w @ (X[t] - X[i]))) * (X[t] - X[i]) for i in others) / len(others)
            w = w - eta * (alpha * w + v)
    model = OPAUC(eta=eta, alpha=alpha, dtype="float64").fit(X, y)
    assert np.abs(model.coef_ - w).max() <= 1e-13 * np.abs(w).max()


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_covariances_are_those_of_the_batch_after_every_row(weighted, engine):
    X, y = make_stream("one_class_first", 60, 6)
    X += np.arange(6)
    weight = np.random.default_rng(0).gamma(1.0, size=60) if weighted else np.ones(60)
    stream = Stream(OPAUC(eta=1e-3, dtype="float64", engine=engine)._make_model(2, 0))
    for t in range(60):
        kept = stream.partial_fit(X[t : t + 1], y[t : t + 1], weight[t : t + 1]).learned.memory
        for c in (0, 1):
            own = y[: t + 1] == 2 * c - 1
            assert kept.rows[0, c] == own.sum()
            assert kept.mass[0, c] == pytest.approx(weight[: t + 1][own].sum(), rel=1e-14)
            if own.any():
                rows, p = X[: t + 1][own], weight[: t + 1][own]
                S, expected = symmetric(kept.scatter[0, c])[:-1, :-1] / p.sum(), np.cov(rows.T, aweights=p, ddof=0)
                np.testing.assert_allclose(kept.mean[0, c, :-1], np.average(rows, axis=0, weights=p), rtol=1e-13)
                assert np.abs(S - expected).max() <= 1e-13 * max(1.0, np.abs(expected).max())


def test_a_constant_added_to_all_rows_changes_nothing():
    """Sums of raw products would lose ten digits here."""
    X, y = make_stream("random", 300, 5)
    X = X.round(3)
    for form in ({}, {"rank": 5, "random_state": 0}):
        near, far = (OPAUC(eta=0.01, dtype="float64", **form).fit(rows, y).coef_ for rows in (X, X + 1e5))
        assert np.abs(near - far).max() <= 1e-9 * np.abs(near).max()


# Both forms.


@every_pair(form=FORMS, kind=STREAMS, weighted=[False, True], n_classes=[2, 3])
def test_the_compiled_loop_is_the_rule(form, kind, weighted, n_classes):
    X, y = make_stream(kind, 100, 6)
    make = lambda **changes: OPAUC(**{"eta": 0.02, "random_state": 1, **FORMS[form], **changes})  # noqa: E731
    labels, weight = three_classes(X) if n_classes == 3 else y, weights(100) if weighted else None
    assert_engines_agree(lambda engine: make(dtype="float64", engine=engine), X, labels, weight)
    assert_engines_agree(lambda engine: make(dtype="float32", engine=engine), X, y, tol=1e-4)


@pytest.mark.parametrize("scale", [None, "standard"])
@pytest.mark.parametrize("form", ["moments", "centred"])
def test_csr_rows_are_learned_as_dense_rows(form, scale):
    X, y = make_stream("random", 300, 8)
    X[np.abs(X) < 0.8] = 0
    make = lambda: OPAUC(**{"eta": 0.01, "random_state": 0, "scale": scale, "dtype": "float64", **FORMS[form]})  # noqa: E731
    dense, sparse = make().fit(X, y), make().fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=0, atol=1e-12 * np.abs(dense.coef_).max())
    np.testing.assert_allclose(sparse.decision_function(sp.csr_array(X)), dense.decision_function(X), atol=1e-10)


@pytest.mark.parametrize("form", FORMS)
def test_nothing_is_learned_from_one_class(form):
    X, y = make_stream("random", 80, 4)
    first = np.flatnonzero(y < 0)[:30]
    model = OPAUC(**{"eta": 0.02, "random_state": 0, **FORMS[form]}).partial_fit(X[first], y[first])
    assert not model.coef_.any()
    assert model.n_pairs_ == 0
    assert np.isnan(model.loss_)
    model.partial_fit(X[y > 0][:1], [1.0])
    assert model.n_pairs_ == 30
    assert model.coef_.any()


@pytest.mark.parametrize("form", ["moments", "centred", "published"])
def test_a_step_too_long_is_cut(form):
    X, y = make_stream("random", 300, 5)
    model = OPAUC(**{"eta": 50.0, "alpha": 0.0, "random_state": 0, **FORMS[form]})
    with pytest.warns(StabilityWarning, match="eta=50 is too long"):
        model.fit(1000 * X, y)
    assert np.isfinite(model.coef_).all()
    assert roc_auc_score(y, model.decision_function(1000 * X)) > 0.4


def test_parameters_are_checked():
    X, y = make_stream("random", 20, 3)
    for wrong, message in (
        ({"schedule": "linear"}, "schedule must be one of"),
        ({"sketch": "subtract"}, "sketch must be one of 'centred', 'published'"),
        ({"rank": 0}, "rank must be an integer >= 1"),
        ({"rank": 2.5}, "rank must be an integer"),
        ({"max_bytes": None}, "max_bytes must be an integer"),
        ({"alpha": 200.0}, "needs eta \\* alpha < 1"),
    ):
        with pytest.raises(ValueError, match=message):
            OPAUC(**wrong).fit(X, y)
    assert OPAUC().card.space == "D^2"
    assert OPAUC(rank=50).card.space == "r D"


@pytest.mark.parametrize(
    ("rank", "n_classes", "need", "largest"),
    # The lower triangle of (D + 1)^2 numbers for each model and each of two classes; 2 r D numbers for each model.
    [(None, 2, 16 * 21 * 22 // 2, 19), (None, 3, 3 * 16 * 21 * 22 // 2, 10), (4, 2, 16 * 4 * 20, 54)],
)
def test_too_many_features_are_refused_and_leave_nothing_behind(rank, n_classes, need, largest):
    max_bytes = 16 * 20 * 21 // 2 + 100
    rng = np.random.default_rng(0)
    y = np.arange(30) % n_classes
    make = lambda: OPAUC(rank=rank, max_bytes=max_bytes, eta=1e-3, random_state=0)  # noqa: E731
    make().fit(rng.normal(size=(30, largest)), y)
    model = make()
    X = rng.normal(size=(30, largest + 1))
    with pytest.raises(ValueError, match=f"which is enough for D={largest}"):
        model.fit(X, y)
    with pytest.raises(ValueError, match=f"which is enough for D={largest}"):
        model.partial_fit(X, y, classes=range(n_classes))
    if n_classes == 2:
        with pytest.raises(ValueError, match=f"which is enough for D={largest}"):
            model.learn_one(X[0], y[0])
    assert vars(model) == vars(make())
    if largest < 20:
        with pytest.raises(ValueError, match=rf"D=20 features need {need:,} bytes.*max_bytes=3,460.*OPAUC\(rank=50\)"):
            make().fit(rng.normal(size=(30, 20)), y)


def test_a_refusal_keeps_the_fitted_model():
    X, y = make_stream("random", 50, 4)
    model = OPAUC(eta=1e-3).fit(X, y)
    expected = model.decision_function(X)
    with pytest.raises(ValueError, match="max_bytes"):
        model.set_params(max_bytes=100).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), expected)


# The sketches.


def matrix_of(rule, kept, c):
    """S as the step uses it: the gradient of a row at the mean, where u = 0, for each unit vector w."""
    mean = kept.mean[0, c]
    row = Row(mean, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, np.zeros(rule.draws))
    return np.column_stack([rule.gradient(kept, 0, c, row, w)[1] for w in np.eye(len(mean))])


@pytest.mark.parametrize("sketch", ["centred", "published"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_mean_of_the_sketches(sketch, weighted):
    """Over 1,000 seeds, each entry within 4.5 standard errors of its expectation, which is S, or S + (1 - 1/N) c c'."""
    rng = np.random.default_rng(1)
    X = rng.normal((1.0, -2.0, 0.0), size=(9, 3))
    weight = rng.gamma(2.0, size=9) if weighted else np.ones(9)
    rule = Sketch(3, sketch)
    drawn = np.empty((1000, 3, 3))
    for seed in range(1000):
        stream = Stream(RuleLearner(rule=rule, dtype="float64", seed=seed)).partial_fit(X, np.ones(9), weight)
        drawn[seed] = matrix_of(rule, stream.learned.memory, 1)
    c = np.average(X, axis=0, weights=weight)
    expected = np.cov(X.T, aweights=weight, ddof=0)
    if sketch == "published":
        bias = (1 - 1 / weight.sum()) * np.outer(c, c)
        assert np.abs(bias).max() > 10 * (drawn.std(axis=0) / np.sqrt(1000)).max()
        expected = expected + bias
    else:
        assert all(np.linalg.eigvalsh(S).min() > -1e-12 for S in drawn)
    assert (np.abs(drawn.mean(axis=0) - expected) <= 4.5 * drawn.std(axis=0) / np.sqrt(1000)).all()


def test_the_centred_sketch_by_its_definition():
    """Y = sum_i sqrt(p_i) (z_i - c) a_i' with the final mean, though the mean moves while rows come in."""
    rng = np.random.default_rng(2)
    X, weight = rng.normal(size=(40, 5)) + 3, rng.gamma(1.0, size=40)
    stream = Stream(RuleLearner(rule=Sketch(4), dtype="float64", seed=8)).partial_fit(X, np.ones(40), weight)
    a = np.sqrt(weight)[:, None] * normals(generator(8).random((40, 4)))
    c = np.average(X, axis=0, weights=weight)
    np.testing.assert_allclose(stream.learned.memory.Y[0, 1], (X - c).T @ a, rtol=0, atol=1e-12)


def test_directions_are_normal():
    uniforms = np.random.default_rng(0).random((20_000, 4))
    a = normals(uniforms)
    np.testing.assert_allclose(a.mean(axis=0), 0, atol=4.5 * 0.5 / np.sqrt(20_000))
    np.testing.assert_allclose(np.cov(a.T, ddof=0), np.eye(4) / 4, atol=4.5 * np.sqrt(2) / 4 / np.sqrt(20_000))
    assert np.isfinite(normals(np.array([0.0, 1 - 2.0**-53]))).all()


def test_more_directions_come_closer_to_the_moments():
    X, y = make_stream("random", 500, 6)
    exact = OPAUC(eta=0.01, dtype="float64").fit(X, y).coef_
    gaps = [
        np.mean([np.square(OPAUC(eta=0.01, rank=r, dtype="float64", random_state=s).fit(X, y).coef_ - exact).sum()
                 for s in range(10)])
        for r in (2, 20, 200)
    ]  # fmt: skip
    assert gaps[0] > 3 * gaps[1] > 9 * gaps[2]


# Real data.


def test_adult(data_folder):
    data = load_dataset("a9a")
    order = np.random.default_rng(0).permutation(len(data.y))
    train, test = np.split(order, [int(0.8 * len(order))])
    auc = {
        name: roc_auc_score(
            data.y[test],
            OPAUC(**form, random_state=0).fit(data.X[train], data.y[train]).decision_function(data.X[test]),
        )
        for name, form in {"exact": {"eta": 2**-9}, "sketch": {"eta": 2**-10, "rank": 50}}.items()
    }
    assert auc["exact"] > 0.895
    assert auc["sketch"] > 0.89
