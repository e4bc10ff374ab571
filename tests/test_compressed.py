"""Columns with heavy tails compressed: the formula, bounds, CSR rows, and races."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import t
from sklearn.metrics import roc_auc_score

import pairloom
from pairloom import AUCClassifier, Learner, Stream
from pairloom.features import Compressed, Identity, Landmarks
from pairloom.persist import ModelFileError
from pairloom.race import Portfolio
from pairloom.steps import Constant
from tests.hostile import read, sign


def heavy(n=800, seed=0):
    """Return rows: normal, heavy on one side, heavy on both, mostly 0 with large values, constant."""
    rng = np.random.default_rng(seed)
    rare = np.where(rng.random(n) < 0.1, rng.lognormal(0, 3, n), 0.0)
    return np.column_stack(
        [rng.normal(5, 2, n), rng.lognormal(3, 2, n), t(1).rvs(n, random_state=seed), rare, np.full(n, 7.0)]
    )


def fixed(X, inner=None):
    phi = Compressed(inner or Identity())
    return phi, phi.fix(X.shape[1], X, np.random.default_rng(0))


def test_only_heavy_tails_are_compressed_and_all_columns_limited():
    X = heavy()
    phi, state = fixed(X)
    assert (state.spread > 0).tolist() == [False, True, True, True, False]
    q1, median, q3 = np.quantile(X, [0.25, 0.5, 0.75], axis=0)
    far = np.vstack([X[:5], np.full(5, 1e9), np.full(5, -1e9)])
    low, high = X.min(axis=0), X.max(axis=0)
    margin = np.where(high > low, (high - low) / 2, 1.0)
    zero = np.clip(0.0, low - margin, high + margin)
    bounded = np.clip(far, low - margin, high + margin)
    expected = bounded - zero
    for c in (1, 2):
        scaled = (np.vstack([bounded, zero])[:, c] - median[c]) / (q3 - q1)[c]
        expected[:, c] = np.arcsinh(scaled[:-1]) - np.arcsinh(scaled[-1])
    usual = np.median(X[X[:, 3] > 0, 3])
    expected[:, 3] = np.arcsinh(bounded[:, 3] / usual)
    np.testing.assert_allclose(phi.apply(state, far), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("inner", [Identity(scale="wide"), Landmarks(32)], ids=["linear", "kernel"])
def test_csr_rows_give_the_same_features_and_stay_csr(inner):
    X = heavy() * (np.random.default_rng(1).random((800, 5)) < 0.5)
    phi, state = fixed(X, inner)
    other = phi.fix(5, csr_array(X), np.random.default_rng(0))
    dense, sparse = phi.apply(state, X), phi.apply(other, csr_array(X))
    assert hasattr(sparse, "tocsr") == inner.keeps_csr
    if inner.keeps_csr:
        dense, sparse = dense - dense[0], sparse.toarray() - sparse.toarray()[0]  # CSR rows are not centred
    np.testing.assert_allclose(sparse, dense, atol=1e-6)


def test_a_linear_model_of_amounts_needs_no_logarithm():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(3000, 3))
    y = np.where(z.sum(axis=1) + rng.normal(size=3000) > 2, 1, -1)
    X = np.exp(2 * z)
    scores = []
    for features in (Identity(scale="wide"), Compressed(Identity(scale="wide"))):
        stream = Stream(Learner(features, step=Constant(0.002), seed=0)).partial_fit(X[:2000], y[:2000])
        scores.append(roc_auc_score(y[2000:], stream.score(X[2000:])))
    assert scores[0] + 0.02 < scores[1]


def test_a_column_that_leaves_its_range_does_not_decide():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 4))
    y = np.where(X[:, 0] + 0.3 * X[:, 3] > 0, 1, -1)
    later = X.copy()
    later[:, 3] += 1000.0 * (np.arange(2000) % 2)
    linear = Portfolio(forests=(), boosted=None, kernels=())
    model = AUCClassifier(portfolio=linear, random_state=0).fit(X, y)
    assert roc_auc_score(y, model.score_many(later)) > 0.8


def test_a_frozen_race_compresses_the_same(tmp_path):
    X = heavy()
    y = np.where(X[:, 0] + np.log(X[:, 1]) > 8, 1, -1)
    model = AUCClassifier(portfolio=Portfolio(forests=(), boosted=None), random_state=0).fit(X, y)
    frozen = model.frozen()
    np.testing.assert_allclose(frozen.score_many(X), model.score_many(X), rtol=1e-4, atol=1e-5)
    pairloom.save(frozen, tmp_path / "frozen")
    np.testing.assert_array_equal(pairloom.load(tmp_path / "frozen").score_many(X), frozen.score_many(X))
    for name, value in (("low", np.inf), ("high", -np.inf), ("low", np.nan), ("high", -1e30)):
        header, arrays = read(tmp_path / "frozen")
        arrays[next(path for path in arrays if path.endswith(f".{name}"))][0] = value
        (tmp_path / "hostile").write_bytes(sign(header, arrays))
        with pytest.raises(ModelFileError):
            pairloom.load(tmp_path / "hostile")


@pytest.mark.parametrize("parameters", [{"inner": 3}, {"inner": pairloom.features.Forest()}, {"scale": "wide"}])
def test_invalid_parameters_are_refused(parameters):
    with pytest.raises(ValueError, match=r"inner must be|the inner map scales"):
        Compressed(**parameters)
