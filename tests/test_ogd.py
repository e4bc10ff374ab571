"""OGD (Yang et al. 2021): the published algorithm, against double loops."""

import numpy as np
import pytest

from pairloom.losses import LOSSES
from pairloom.systems import FPOGD, OGD
from tests.conftest import STREAMS, make_stream
from tests.covering import every_pair


def path(model, X, y):
    """w and the output iterate after every row."""
    found = []
    for x, label in zip(X, y, strict=True):
        model.partial_fit(x[None], [label], classes=[-1, 1])
        found.append((model._labels.sign * model.stream_.learned.w[0], model.coef_))
    return np.array(found)


@every_pair(
    partner=["previous", "opposite"], penalty=[{}, {"alpha": 0.3}, {"radius": 0.2}], loss=LOSSES,
    engine=["fused", "reference"],
)  # fmt: skip
def test_it_is_the_published_loop(partner, penalty, loss, engine):
    X, y = make_stream("random", 60, 4)
    model = OGD(partner=partner, loss=loss, eta=0.2, dtype="float64", engine=engine, **penalty)
    w, w_bar, last = np.zeros(4), np.zeros(4), {}
    for t, (found, found_bar) in enumerate(path(model, X, y), start=1):
        x, label = X[t - 1], y[t - 1]
        eta, other = 0.2 / np.sqrt(t), last.get("any" if partner == "previous" else -label)
        if other is not None:
            v = np.zeros(4)
            if other[1] != label:
                d = x - other[0]
                v = label * float(LOSSES[loss].derivative(label * (w @ d))) * d
            w = (1 - eta * penalty.get("alpha", 0)) * w - eta * v
            w = w * min(1, penalty.get("radius", np.inf) / max(np.linalg.norm(w), 1e-300))
        last["any"] = last[label] = (x, label)
        w_bar = w_bar + (w - w_bar) / t
        np.testing.assert_allclose(found, w, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found_bar, w_bar, rtol=0, atol=1e-12)
    assert np.linalg.norm(w) > 0.1


@every_pair(kind=STREAMS, loss=LOSSES, partner=["previous", "opposite"])
def test_it_is_fpogd_with_one_stratum(kind, loss, partner):
    X, y = make_stream(kind, 80, 4)
    shared = {"loss": loss, "eta": 0.02, "schedule": "sqrt", "dtype": "float64", "average": "last"}
    strata = {"strata": "joint", "normalization": "history"} if partner == "previous" else {}
    ours = path(OGD(partner=partner, **shared), X, y)
    theirs = path(FPOGD(kernel="linear", eps=np.inf, alpha=0.0, **strata, **shared), X, y)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("p", [0.5, 0.3, 0.05])
def test_the_share_of_steps_with_a_pair(p):
    n = 40_000
    y = np.where(np.random.default_rng(0).random(n) < p, 1, -1)
    X = np.random.default_rng(1).normal(size=(n, 2))
    model = OGD().fit(X, y)
    assert model.n_pairs_ == np.count_nonzero(y[1:] != y[:-1])
    share = 2 * p * (1 - p)
    assert model.n_pairs_ / n == pytest.approx(share, abs=4.5 * np.sqrt(share / n))
    assert OGD(partner="opposite").fit(X, y).n_pairs_ == n - np.flatnonzero(y != y[0])[0]


def test_a_stream_sorted_by_class_has_one_previous_pair():
    X, y = make_stream("random", 300, 4)
    order = np.argsort(y, kind="stable")
    assert OGD().fit(X[order], y[order]).n_pairs_ == 1
    assert OGD(partner="opposite").fit(X[order], y[order]).n_pairs_ == np.count_nonzero(y > 0)


def test_the_horizon_fixes_the_step():
    X, y = make_stream("random", 100, 4)
    fixed = OGD(eta=0.5, schedule="horizon", horizon=100, dtype="float64").fit(X, y)
    np.testing.assert_array_equal(fixed.coef_, OGD(eta=0.05, schedule="constant", dtype="float64").fit(X, y).coef_)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 0.1, "radius": 1.0}, "set one of them; got alpha=0.1, radius=1.0"),
        ({"radius": 0.0}, "radius must be a number above 0; got 0.0"),
        ({"schedule": "horizon"}, "horizon, the expected length of the stream, must be an integer"),
        ({"schedule": "fast"}, "schedule must be one of 'constant', 'sqrt', 'poly', 'horizon', 'adagrad'; got 'fast'"),
        ({"loss": "log"}, "loss must be one of 'square', 'hinge', 'squared_hinge', 'logistic'; got 'log'"),
        ({"partner": "next"}, "partner must be one of 'previous', 'opposite'; got 'next'"),
        ({"features": "all"}, "features must be a feature map"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        OGD(**parameters).fit(*make_stream("random", 50, 3))
