"""KOIL as a scikit-learn estimator: chunking, CSR, attributes, memory, parameters."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from pairloom.base.tree import nbytes
from pairloom.features import Gaussian
from pairloom.systems import KOIL
from tests.conftest import make_stream
from tests.test_multiclass import three_classes

VARIANTS = pytest.mark.parametrize("variant", KOIL.variants.values(), ids=KOIL.variants)


def estimator(**changes):
    return KOIL(**{"gamma": "median", "scale": "standard", "budget": 20, "random_state": 0, **changes})


@VARIANTS
@pytest.mark.parametrize("scale", [None, "standard"])
def test_csr_rows_are_learned_as_dense_ones(variant, scale):
    X, y = make_stream("random", 400, 6)
    X[np.random.default_rng(0).random(X.shape) < 0.6] = 0
    dense, sparse = (
        estimator(scale=scale, dtype="float64", gamma=0.1, **variant).fit(rows, y) for rows in (X, csr_array(X))
    )
    np.testing.assert_allclose(sparse.decision_function(csr_array(X)), dense.decision_function(X), rtol=1e-8, atol=1e-8)


def test_what_can_be_looked_at():
    X, y = make_stream("random", 400, 4)
    model = estimator(gamma=0.3, scale=None).fit(X, y)
    assert model.support_.shape == (40, 4)
    assert model.coef_.shape == (40,)
    assert model.gamma_ == 0.3
    raw = Gaussian()(np.asarray(0.3), X, model.support_) @ model.coef_
    slope, decision = model.calibration_[0][0], model.decision_function(X)
    np.testing.assert_allclose(decision - decision[0], slope * (raw - raw[0]), rtol=1e-3, atol=1e-3)
    assert estimator(kernel="linear").fit(X, y).gamma_ is None


def test_swapping_the_labels_turns_the_sign_and_nothing_else():
    X, y = make_stream("random", 300, 4)
    a, b = estimator().fit(X, y), estimator().fit(X, -y)
    np.testing.assert_array_equal(a.coef_, -b.coef_)
    np.testing.assert_array_equal(a.support_, b.support_)
    np.testing.assert_array_equal(a.decision_function(X), -b.decision_function(X))


def test_more_than_two_classes_are_listed():
    X, y = three_classes(300, 4)
    model = estimator().fit(X, y)
    assert [s.shape for s in model.support_] == [(40, 4)] * 3
    assert [c.shape for c in model.coef_] == [(40,)] * 3


@pytest.mark.parametrize("suffix", ["-FIFO", "-FIFO++", "-RS++"])
def test_it_ranks(suffix):
    """Not "-RS": its class docstring says why."""
    X, y = make_stream("random", 6000, 3)
    model = KOIL(**KOIL.variants[suffix], C=10, gamma=0.2, random_state=0).fit(X[:5000], y[:5000])
    assert roc_auc_score(y[5000:], model.decision_function(X[5000:])) > 0.93
    assert 0 < model.loss_ < 1
    assert model.n_pairs_ > 100


def test_it_ranks_every_digit():
    X, y = load_digits(return_X_y=True)
    model = KOIL(gamma="median", C=10, random_state=0).fit(X[:1200], y[:1200])
    assert roc_auc_score(y[1200:], model.predict_proba(X[1200:]), multi_class="ovr") > 0.97


def test_bytes_are_the_formula_and_flat():
    X, y = make_stream("random", 6000, 4)
    model, sizes = KOIL(budget=10, random_state=0), []
    for start in range(0, 6000, 500):
        sizes.append(model.partial_fit(X[start : start + 500], y[start : start + 500]).nbytes_)
    # Supports and Gram matrix in float32; coefficients, values, counters, the width.
    memory = 4 * (20 * 4 + 20 * 20) + 8 * (20 + 20 + 2 + 2 + 1)
    assert nbytes(model.stream_.learned.memory) == memory
    assert set(sizes) == {sizes[0]}
    # The scaling; recent scores, labels and weights, the tally, the log-odds; the newest 32 rows of each class.
    assert sizes[0] == memory + 4 * 2 * 4 + 8 * (4 * 4096 + 7 + 2) + 8 * (2 * 32 * (4 + 1) + 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"policy": "lru"}, "policy must be one of 'fifo', 'rs'; got 'lru'"),
        ({"select": "all"}, "select must be one of 'violators', 'neighbours'; got 'all'"),
        ({"loss": "logistic"}, "loss must be one of 'hinge', 'squared_hinge'; got 'logistic'"),
        ({"budget": 0}, "budget must be an integer >= 1; got 0"),
        ({"n_neighbors": 2.5}, r"n_neighbors must be an integer >= 1; got 2\.5"),
        ({"C": 0}, "C must be a number above 0; got 0"),
        ({"eta": 1.5}, r"eta must be a number above 0 and at most 1; got 1\.5"),
        ({"kernel": "poly"}, "kernel must be one of"),
        ({"gamma": [1.0, 2.0]}, "one gamma for all columns"),
        ({"dtype": "float16"}, "dtype must be one of"),
        ({"engine": "gpu"}, "engine must be one of"),
    ],
)
def test_bad_parameters_are_named(change, message):
    X, y = make_stream("random", 20, 2)
    with pytest.raises(ValueError, match=message):
        KOIL(**change).fit(X, y)
