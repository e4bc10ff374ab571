"""AllPairs: moments against the kept rows and against double loops; valid combinations of losses, pairs and forms."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from pairloom import Learner, Stream
from pairloom.engines.state import CUT, LOSS, STEPS
from pairloom.features import Identity
from pairloom.losses import LOSSES
from pairloom.memory import Strata
from pairloom.models.moments_rule import Moments
from pairloom.models.rule import Row
from pairloom.pairs import ClassDifference, OppositeClass
from pairloom.steps import Polynomial
from pairloom.stream import StabilityWarning
from pairloom.systems import AllPairs
from tests.conftest import STREAMS, make_stream
from tests.covering import every_pair
from tests.test_opauc import assert_engines_agree, three_classes, weights

BOTH = ("all", "opposite")


def pair_gradient(w, X, y, p, x, label, pairs):
    """Loss and gradient of 1/2 (delta - target)^2 over pairs with all rows, by a loop; relative to all their weight."""
    g, v = 0.0, np.zeros(len(w))
    for i in range(len(X)):
        if pairs == "opposite" and y[i] == label:
            continue
        target = label if pairs == "opposite" else label - y[i]
        residual = w @ (x - X[i]) - target
        g += p[i] * residual**2 / 2
        v += p[i] * residual * (x - X[i])
    return g / sum(p), v / sum(p)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("normalization", ["class", "history"])
@pytest.mark.parametrize("pairs", BOTH)
def test_moments_give_the_sum_over_all_pairs(pairs, normalization, weighted):
    """Up to 1e-13 of the gradient, at weights that no step would reach."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 7)), np.where(rng.random(60) < 0.3, 1.0, -1.0)
    p = rng.gamma(1.0, size=60) if weighted else np.ones(60)
    rule = Moments(pairs, normalization)
    kept = rule.start(7, 1)
    for t in range(60):
        row = Row(X[t], y[t], p[t], 1.0, 1.0, 1.0, 0.0, np.empty(0))
        own, other = rule.sides(y[t])
        assert kept.rows[0, other] == (t if pairs == "all" else (y[:t] != y[t]).sum())
        if kept.rows[0, other]:
            w = 3 * rng.normal(size=7)
            g, v = pair_gradient(w, X[:t], y[:t], p[:t], X[t], y[t], pairs)
            if normalization == "class" and pairs == "opposite":
                share = p[:t][y[:t] != y[t]].sum() / p[:t].sum()
                g, v = g / share, v / share
            ours = rule.gradient(kept, 0, other, row, w)
            assert ours[0] == pytest.approx(g, rel=1e-13)
            assert np.abs(ours[1] - v).max() <= 1e-13 * np.abs(v).max()
        rule.observe(kept, 0, own, row)


@pytest.mark.parametrize("form", ["moments", "history"])
@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("pairs", BOTH)
def test_iterates_by_a_double_loop(pairs, kind, engine, form):
    X, y = make_stream(kind, 80, 4)
    model = AllPairs(pairs=pairs, form=form, eta=0.05, power=0.7, max_rows=80, dtype="float64", engine=engine)
    stream = Stream(model._make_model(2, 0))
    w = np.zeros(4)
    for t in range(80):
        if t:
            w = w - 0.05 * (t + 1) ** -0.7 * pair_gradient(w, X[:t], y[:t], np.ones(t), X[t], y[t], pairs)[1]
        stream.partial_fit(X[t : t + 1], y[t : t + 1])
        assert np.abs(stream.coef[0] - w).max() <= 1e-12 * np.abs(w).max()
    assert stream.learned.tally[CUT] == 0


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("pairs", BOTH)
def test_moments_and_history_agree(pairs, n_classes):
    X, y = make_stream("random", 400, 5)
    y, weight = y if n_classes == 2 else three_classes(X), weights(400)
    parameters = {"pairs": pairs, "eta": 0.1, "dtype": "float64", "average": "mean", "scale": "maxabs"}
    ours, rows = (AllPairs(form=form, **parameters).fit(X, y, sample_weight=weight) for form in ("auto", "history"))
    assert np.abs(ours.coef_ - rows.coef_).max() <= 1e-12 * np.abs(rows.coef_).max()
    assert ours.n_pairs_ == rows.n_pairs_
    # The square loss of the history has no factor 1/2.
    tally, truth = ours.stream_.learned.tally, rows.stream_.learned.tally
    assert tally[LOSS] == pytest.approx(truth[LOSS] / 2, rel=1e-12)
    if pairs == "all":
        assert tally[STEPS] == truth[STEPS]


def test_opposite_pairs_are_strata_of_single_rows():
    """The paper's claim: FPOGD is this system when every row is a stratum of its own."""
    X, y = make_stream("random", 200, 4)
    strata = Strata(eps=-1.0, max_strata=200, normalization="history")
    learner = Learner(Identity(), memory=strata, step=Polynomial(0.05, 0.6), dtype="float64", seed=0)
    stream = Stream(learner).partial_fit(X, y)
    ours = AllPairs(pairs="opposite", eta=0.1, dtype="float64").fit(X, y)
    assert np.abs(ours.coef_ - stream.coef[0] * ours._labels.sign).max() <= 1e-12 * np.abs(ours.coef_).max()


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_other_losses_by_a_double_loop(loss):
    X, y = make_stream("random", 70, 4)
    learner = AllPairs(pairs="opposite", loss=loss, eta=0.2, max_rows=70, dtype="float64")._make_model(2, 0)
    stream = Stream(learner).partial_fit(X, y)
    w, derivative = np.zeros(4), LOSSES[loss].derivative
    for t in range(1, 70):
        others = np.flatnonzero(y[:t] != y[t])
        v = sum((y[t] * derivative(y[t] * (w @ (X[t] - X[i]))) * (X[t] - X[i]) for i in others), np.zeros(4))
        w = w - 0.2 * (t + 1) ** -0.6 * v / t
    assert np.abs(stream.coef[0] - w).max() <= 1e-13 * np.abs(w).max()


def test_all_pairs_ask_for_equal_scores_inside_a_class():
    for model, labels in ((1.0, [0.0, 1.0]), (2.0, [0.0, 2.0, 1.0])):
        pairs = ClassDifference(len(labels))
        for y in labels:
            t = 1.0 if y == model else -1.0
            targets = np.where(np.array(labels) == model, 1.0, -1.0)
            np.testing.assert_array_equal(pairs.sign(y, np.array(labels), model), np.ones(len(labels)))
            np.testing.assert_array_equal(pairs.offset(y, np.array(labels), model), -(t - targets))
    assert ClassDifference(3).targets.tolist() == OppositeClass(3).targets.tolist()
    with pytest.raises(ValueError, match="ClassDifference pairs need an exact difference"):
        Learner(pairs=ClassDifference(), loss=LOSSES["hinge"])


def test_a_constant_added_to_all_rows_changes_nothing():
    X, y = make_stream("random", 300, 5)
    X = X.round(3)
    for pairs in BOTH:
        near, far = (AllPairs(pairs=pairs, dtype="float64").fit(rows, y).coef_ for rows in (X, X + 1e5))
        assert np.abs(near - far).max() <= 1e-9 * np.abs(near).max()


@every_pair(pairs=BOTH, kind=STREAMS, n_classes=[2, 3], weighted=[False, True], average=["last", "poly"])
def test_the_compiled_loop_is_the_rule(pairs, kind, n_classes, weighted, average):
    X, y = make_stream(kind, 100, 6)
    labels, weight = three_classes(X) if n_classes == 3 else y, weights(100) if weighted else None
    make = lambda engine: AllPairs(pairs=pairs, average=average, dtype="float64", engine=engine)  # noqa: E731
    assert_engines_agree(make, X, labels, weight)
    assert_engines_agree(lambda engine: AllPairs(pairs=pairs, engine=engine), X, y, tol=1e-4)


@pytest.mark.parametrize("form", ["moments", "history"])
@pytest.mark.parametrize("pairs", BOTH)
def test_csr_rows_are_learned_as_dense_rows(pairs, form):
    X, y = make_stream("random", 300, 8)
    X[np.abs(X) < 0.8] = 0
    dense, sparse = (
        AllPairs(pairs=pairs, form=form, scale="standard", eta=0.02, dtype="float64").fit(rows, y)
        for rows in (X, sp.csr_array(X))
    )
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=0, atol=1e-12 * np.abs(dense.coef_).max())
    np.testing.assert_allclose(sparse.decision_function(sp.csr_array(X)), dense.decision_function(X), atol=1e-10)


@pytest.mark.parametrize("pairs", BOTH)
def test_nothing_is_learned_from_one_class(pairs):
    X, y = make_stream("random", 80, 4)
    first = np.flatnonzero(y < 0)[:30]
    model = AllPairs(pairs=pairs).partial_fit(X[first], y[first])
    assert not model.coef_.any()
    assert model.n_pairs_ == (30 * 29 / 2 if pairs == "all" else 0)
    model.partial_fit(X[y > 0][:1], [1.0])
    assert model.coef_.any()


@pytest.mark.parametrize("pairs", BOTH)
def test_a_step_too_long_is_cut(pairs):
    X, y = make_stream("random", 300, 5)
    model = AllPairs(pairs=pairs, eta=50.0)
    with pytest.warns(StabilityWarning, match="eta=50 is too long"):
        model.fit(1000 * X, y)
    assert np.isfinite(model.coef_).all()


def test_which_form_goes_with_which_loss():
    X, y = make_stream("random", 40, 3)
    for parameters, memory in (
        ({}, "bounded"),
        ({"pairs": "opposite"}, "bounded"),
        ({"form": "history"}, "grows"),
        ({"pairs": "opposite", "loss": "hinge"}, "grows"),
    ):
        model = AllPairs(**parameters).fit(X, y)
        assert model.card.memory == memory
        assert hasattr(model.stream_.model, "rule") == (memory == "bounded")
    for wrong, message in (
        ({"loss": "hinge"}, "pairs='all' and form='moments' need loss='square'"),
        ({"loss": "hinge", "pairs": "opposite", "form": "moments"}, "use pairs='opposite' and form='history'"),
        ({"loss": "absolute"}, "loss must be one of"),
        ({"pairs": "some"}, "pairs must be one of"),
        ({"form": "rows"}, "form must be one of"),
        ({"power": 0.0}, "power must be a number above 0"),
    ):
        with pytest.raises(ValueError, match=message):
            AllPairs(**wrong).fit(X, y)


def test_the_history_refuses_rows_past_its_limit():
    X, y = make_stream("random", 60, 3)
    model = AllPairs(pairs="opposite", loss="logistic", max_rows=50).fit(X[:40], y[:40])
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="10 more fit, not 20"):
        model.partial_fit(X[40:], y[40:])
    assert pickle.dumps(model) == before


def test_too_many_features_are_refused_and_leave_nothing_behind():
    X, y = make_stream("random", 30, 19)
    AllPairs(eta=1e-3, max_bytes=8 * 20 * 21 // 2).fit(X, y)
    model = AllPairs(eta=1e-3, max_bytes=8 * 20 * 21 // 2 - 1)
    with pytest.raises(ValueError, match=r"D=19 features need 1,680 bytes.*enough for D=18.*OPAUC\(rank=50\), SPAM"):
        model.fit(X, y)
    with pytest.raises(ValueError, match="enough for D=18"):
        model.learn_one(X[0], y[0])
    assert not hasattr(model, "stream_")
    assert not hasattr(model, "n_features_in_")
