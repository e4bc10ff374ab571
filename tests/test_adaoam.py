"""AdaOAM: the rule against a transcription of the formula with batch moments; the compiled loop against the rule."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from pairloom.data import load_dataset
from pairloom.engines.state import SKIPPED, STEPS
from pairloom.features import Gaussian, RandomFourier
from pairloom.stream import StabilityWarning
from pairloom.systems import OPAUC, AdaOAM
from tests.conftest import STREAMS, make_stream
from tests.covering import every_pair
from tests.test_opauc import assert_engines_agree, three_classes, weights

FORMS = {
    "default": {},
    "no penalty": {"alpha": 0.0, "delta": 0.0, "average": "poly"},
    "ball": {"eta": 2.0, "alpha": 4.0, "delta": 0.5, "scale": "standard"},
    "features": {"features": RandomFourier(24, Gaussian("median")), "average": "mean"},
}


def transcription(X, y, weight, eta, alpha, delta):
    """The iterates by the formula: the moments of the other class in a batch, H_t = delta I + diag(s_t), the ball."""
    w, squares, iterates = np.zeros(X.shape[1]), np.zeros(X.shape[1]), []
    for t in range(len(y)):
        other = y[:t] != y[t]
        if other.any():
            c = np.average(X[:t][other], axis=0, weights=weight[:t][other])
            S = np.atleast_2d(np.cov(X[:t][other].T, aweights=weight[:t][other], ddof=0))
            u = X[t] - c
            g = weight[t] * (alpha * w - y[t] * u + u * (u @ w) + S @ w)
            squares += g**2
            H = delta + np.sqrt(squares)
            w = w - eta * np.divide(g, H, out=np.zeros_like(g), where=H > 0)
            if alpha:
                w = w * min(1.0, 1.0 / np.sqrt(alpha) / np.linalg.norm(w))
        iterates.append(w)
    return np.array(iterates)


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("eta", "alpha", "delta"), [(0.1, 1e-4, 1e-6), (0.3, 0.0, 0.0), (0.02, 0.3, 1.0), (5.0, 2.0, 0.1)]
)
@pytest.mark.parametrize("kind", ["random", "one_class_first"])
def test_iterates_by_the_formula(kind, eta, alpha, delta, weighted, engine):
    X, y = make_stream(kind, 90, 4)
    weight = np.random.default_rng(0).gamma(1.0, size=90) if weighted else np.ones(90)
    iterates = transcription(X, y, weight, eta, alpha, delta)
    make = lambda average: AdaOAM(  # noqa: E731
        eta=eta, alpha=alpha, delta=delta, average=average, dtype="float64", engine=engine
    ).fit(X, y, sample_weight=weight)
    for average, expected in (("last", iterates[-1]), ("mean", iterates.mean(axis=0))):
        assert np.abs(make(average).coef_ - expected).max() <= 1e-10 * np.abs(expected).max()
    if alpha == 2.0:
        assert np.linalg.norm(iterates, axis=1).max() == pytest.approx(1 / np.sqrt(2))  # the ball is reached


def test_one_run_has_both_iterates():
    X, y = make_stream("random", 200, 4)
    both = AdaOAM(average="mean").fit(X, y).stream_.learned
    last = AdaOAM(average="last").fit(X, y).stream_.learned
    np.testing.assert_array_equal(both.w, last.w)
    assert np.abs(both.w_bar - both.w).max() > 0


def test_the_statistics_are_those_of_opauc():
    X, y = make_stream("random", 150, 4)
    ours, theirs = (kind(dtype="float64").fit(X, y).stream_.learned.memory for kind in (AdaOAM, OPAUC))
    for name, value in vars(theirs).items():
        np.testing.assert_array_equal(getattr(ours, name), value)


@every_pair(form=FORMS, kind=STREAMS, weighted=[False, True], n_classes=[2, 3])
def test_the_compiled_loop_is_the_rule(form, kind, weighted, n_classes):
    X, y = make_stream(kind, 100, 6)
    labels, weight = three_classes(X) if n_classes == 3 else y, weights(100) if weighted else None
    parameters = {"random_state": 1, **FORMS[form]}
    assert_engines_agree(lambda engine: AdaOAM(**parameters, dtype="float64", engine=engine), X, labels, weight, 1e-9)
    # A small delta makes a full step of what rounds to a gradient near 0.
    if FORMS[form].get("delta", 0) > 0.1:
        assert_engines_agree(lambda engine: AdaOAM(**parameters, engine=engine), X, y, tol=1e-4)


def test_no_coordinate_changes_by_more_than_eta_and_constant_columns_stay_at_zero():
    X, y = make_stream("random", 200, 5)
    X[:, 0] *= 1e6
    X[:, 3] = 7.3
    model, before = AdaOAM(eta=0.05, alpha=0.0), np.zeros(5)
    for row in range(200):
        model.partial_fit(X[row : row + 1], y[row : row + 1], classes=[-1, 1])
        after = np.array(model.coef_).ravel()
        assert np.abs(after - before).max() <= 0.05 * (1 + 1e-5)
        before = after
    assert before[3] == 0
    assert np.abs(before[[0, 1, 2, 4]]).min() > 0


def test_rows_too_large_are_skipped_and_counted():
    X, y = make_stream("random", 60, 3)
    X[40] = 1e20
    with pytest.warns(StabilityWarning, match="overflowed: steps were skipped"):
        tally = AdaOAM(dtype="float64").fit(X, y).stream_.learned.tally
    assert tally[SKIPPED] > 0
    assert tally[STEPS] > 0


def test_parameters_are_checked():
    X, y = make_stream("random", 20, 3)
    for wrong, message in (
        ({"eta": 0.0}, "eta must be"),
        ({"alpha": -1.0}, "alpha must be"),
        ({"delta": -1e-3}, "delta must be"),
        ({"max_bytes": None}, "max_bytes must be an integer"),
        ({"max_bytes": 10}, "more than max_bytes=10"),
    ):
        with pytest.raises(ValueError, match=message):
            AdaOAM(**wrong).fit(X, y)


def test_adult(data_folder):
    data = load_dataset("a9a")
    train, test = np.split(np.random.default_rng(0).permutation(len(data.y)), [int(0.8 * len(data.y))])
    model = AdaOAM(eta=0.01).fit(data.X[train], data.y[train])
    assert roc_auc_score(data.y[test], model.decision_function(data.X[test])) > 0.895
