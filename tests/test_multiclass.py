"""More than two classes: one map, one set of strata, one pass, one model for each class against the rest."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.metrics import roc_auc_score

from pairloom import Learner, Stream
from pairloom.features import Gaussian, RandomFourier
from pairloom.losses import LOSSES
from pairloom.memory import Strata
from pairloom.pairs import OppositeClass
from pairloom.steps import L2, Sqrt
from pairloom.systems import FPOGD
from tests.conftest import make_stream


def three_classes(n=300, d=4, seed=0):
    X, _ = make_stream("random", n, d, seed)
    score = np.square(X).sum(axis=1) + X[:, 0]
    return X, np.digitize(score, np.quantile(score, [0.5, 0.8]))


@pytest.mark.parametrize("engine", ["reference", "fused"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("normalization", ["class", "history"])
def test_it_is_k_binary_learners_on_shared_strata(engine, loss, normalization):
    """Each model written out: positives are its class, partners all strata of the other side."""
    X, y = three_classes(150)
    memory = Strata(eps=0.4, max_strata=5, normalization=normalization)
    learner = Learner(
        features=RandomFourier(24, Gaussian(0.1)), pairs=OppositeClass(3), loss=LOSSES[loss], memory=memory,
        step=Sqrt(0.3), penalty=L2(1e-2), dtype="float64", seed=1, engine=engine,
    )  # fmt: skip
    stream = Stream(learner)
    stream.start(4)
    w = np.zeros((3, 24))
    for t in range(150):
        slots = stream.learned.memory.slots
        points, labels, mass = slots.points.copy(), slots.labels.copy(), slots.mass.copy()
        z = learner.features.apply(stream.learned.phi, X[t : t + 1])[0]
        for k in range(3):
            sign = 1 if y[t] == k else -1
            partners = [j for j in np.flatnonzero(mass) if (labels[j] == k) != (y[t] == k)]
            if not partners:
                continue
            total = mass[partners].sum() if normalization == "class" else mass.sum()
            v = np.zeros(24)
            for j in partners:
                d = z - points[j]
                v += mass[j] / total * sign * float(LOSSES[loss].derivative(sign * (w[k] @ d))) * d
            eta = 0.3 / np.sqrt(t + 1)
            w[k] = (1 - eta * 1e-2) * w[k] - eta * v
        stream.partial_fit(X[t : t + 1], y[t : t + 1])
        np.testing.assert_allclose(stream.learned.w, w, rtol=0, atol=1e-10)


def test_two_of_three_classes_give_the_binary_model():
    """A class that never comes changes nothing for the others."""
    X, y = make_stream("random", 300, 4)
    codes = (y > 0).astype(int)
    learner = Learner(features=RandomFourier(32, Gaussian(0.1)), memory=Strata(eps=0.4), seed=0)
    binary, three = (
        Stream(replace(learner, pairs=pairs)).partial_fit(X, codes) for pairs in (OppositeClass(), OppositeClass(3))
    )
    np.testing.assert_array_equal(three.coef[1], binary.coef[0])
    np.testing.assert_array_equal(three.coef[0], -binary.coef[0])
    np.testing.assert_array_equal(three.coef[2], 0)


def test_it_ranks_every_digit():
    X, y = load_digits(return_X_y=True)
    model = FPOGD(gamma="median", average="poly", random_state=0).fit(X[:1200], y[:1200])
    scores, proba = model.decision_function(X[1200:]), model.predict_proba(X[1200:])
    assert scores.shape == proba.shape == (597, 10)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict(X[1200:]), model.classes_[scores.argmax(axis=1)])
    np.testing.assert_array_equal(scores.argmax(axis=1), proba.argmax(axis=1))
    assert roc_auc_score(y[1200:], proba, multi_class="ovr") > 0.98
    assert model.score(X[1200:], y[1200:]) > 0.75
    assert model.coef_.shape == (10, 512)
    assert [int(s.sum()) for s in model.strata_sizes_] == np.bincount(y[:1200]).tolist()
    with pytest.raises(AttributeError, match="for two classes"):
        _ = model.balanced_threshold_


@pytest.mark.parametrize("labels", [["setosa", "versicolor", "virginica"], [3, 7, 5], [0.5, 1.5, 2.5]])
def test_chunks_and_single_rows_give_the_same_bits(labels):
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(150)
    X, y = X[order], np.array(labels)[y[order]]
    if isinstance(labels[0], float):
        y = y.astype(str)
    parameters = {"gamma": "median", "scale": "standard", "n_components": 40, "random_state": 0}
    whole = FPOGD(**parameters).fit(X, y)
    chunks, rows = FPOGD(**parameters), FPOGD(**parameters)
    chunks.partial_fit(X[:10], y[:10], classes=np.unique(y))
    chunks.partial_fit(X[10:], y[10:])
    rows.partial_fit(X[:1], y[:1], classes=np.unique(y))
    for i in range(1, 150):
        rows.learn_one(X[i], y[i])
    for other in (chunks, rows):
        np.testing.assert_array_equal(whole.coef_, other.coef_)
        np.testing.assert_array_equal(whole.predict_proba(X), other.predict_proba(X))
    assert list(rows.predict_proba_one(X[0])) == whole.classes_.tolist()
    chosen = FPOGD(**parameters, pos_label=np.unique(y)[2].item()).fit(X, y)
    assert chosen.score_one(X[0]) == whole.decision_function(X[:1])[0, 2]
    with pytest.raises(ValueError, match="set pos_label"):
        whole.score_one(X[0])


def test_classes_may_come_late_and_batches_hold_one():
    X, y = three_classes()
    order = np.argsort(y, kind="stable")
    model = FPOGD(n_components=32, gamma="median", random_state=0)
    for k in range(3):
        rows = order[y[order] == k]
        model.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
        assert model.predict_proba(X).shape == (300, 3)
        assert np.isfinite(model.decision_function(X)).all()
    assert model.n_seen_ == 300
