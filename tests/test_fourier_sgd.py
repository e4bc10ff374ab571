"""FourierSGD: a baseline for comparisons."""

import numpy as np
import pytest
from sklearn.linear_model import SGDClassifier

from pairloom import Learner, Stream
from pairloom.features import Gaussian, RandomFourier
from pairloom.memory import Reservoir
from pairloom.steps import Constant
from pairloom.systems import FourierSGD
from tests.conftest import make_stream


@pytest.mark.parametrize(("loss", "theirs", "eta"), [("logistic", "log_loss", 0.1), ("hinge", "hinge", 0.1)])
def test_without_pairs_it_is_scikit_learns_sgd(loss, theirs, eta):
    X, y = make_stream("random", 500, 4)
    model = FourierSGD(
        loss=loss, kernel="linear", eta=eta, alpha=0.01, average="last", dtype="float64", random_state=0
    ).fit(X, y)
    sgd = SGDClassifier(
        loss=theirs, alpha=0.01, learning_rate="constant", eta0=eta, shuffle=False, max_iter=1, tol=None
    ).fit(X, y)  # fmt: skip
    np.testing.assert_allclose(model.coef_, sgd.coef_[0], rtol=1e-9)
    assert model._labels.sign * model.stream_.learned.memory.b[0] == pytest.approx(sgd.intercept_[0], rel=1e-9)


def test_square_loss_against_plain_steps():
    X, y = make_stream("random", 200, 3)
    model = FourierSGD(loss="square", kernel="linear", eta=0.01, alpha=0.1, average="mean", dtype="float64").fit(X, y)
    w, b, mean = np.zeros(3), 0.0, np.zeros(3)
    for t, (x, label) in enumerate(zip(X, y, strict=True), 1):
        slope = -2 * label * (1 - label * (w @ x + b))
        w, b = (1 - 0.001) * w - 0.01 * slope * x, b - 0.01 * slope
        mean += (w - mean) / t
    np.testing.assert_allclose(model.coef_, mean, rtol=1e-9)


def test_the_reservoir_control_is_a_composition_of_parts():
    X, y = make_stream("random", 600, 4)
    model = FourierSGD(pairs="reservoir", size=8, loss="square", eta=0.1, alpha=0.0, random_state=3, n_components=64)
    model.fit(X, y)
    alone = Learner(
        features=RandomFourier(64, Gaussian()), memory=Reservoir(8), step=Constant(0.1), average="mean",
        seed=model.stream_.model.seed,
    )  # fmt: skip
    signs = y * model._labels.sign
    np.testing.assert_array_equal(model.stream_.coef, Stream(alone).partial_fit(X, signs).coef)


def test_a_wide_kernel_gives_a_linear_model():
    X, y = make_stream("random", 500, 4)
    gamma = 1e-6
    kernel = FourierSGD(
        pairs="previous", gamma=gamma, n_components=4096, eta=0.1 / (2 * gamma), alpha=0.0, dtype="float64",
        loss="logistic", random_state=0,
    ).fit(X, y)  # fmt: skip
    linear = FourierSGD(pairs="previous", kernel="linear", eta=0.1, alpha=0.0, loss="logistic", dtype="float64")
    one, other = (m.stream_.score(X) for m in (kernel, linear.fit(X, y)))
    assert np.corrcoef(one, other)[0, 1] > 0.99
