"""Systems composed of parts: the specification, the compiled loops and CSR rows give the same model."""

import numpy as np
import pytest
import scipy.sparse as sp

from pairloom import Stream
from pairloom.systems import OAM, OGD, OLP
from tests.conftest import make_stream

SYSTEMS = {system.__name__ + name: (system, own) for system in (OGD, OLP, OAM) for name, own in system.variants.items()}

CHANGES = {
    "OGD": {"loss": "logistic", "schedule": "horizon", "horizon": 200, "alpha": 0.1},
    "OGD-opposite": {"radius": 0.1, "average": "poly"},
    "OLP": {"loss": "squared_hinge", "eta": 0.02, "size": 7, "radius": 0.3},
    "OLP-class": {"schedule": "constant", "eta": 0.01, "size": 5, "alpha": 0.1},
    "OAMseq": {"C": 0.05, "size": 6, "average": "mean"},
    "OAMgra": {"C": 0.01, "size": 6, "scale": "standard"},
}


@pytest.fixture(params=SYSTEMS)
def make(request):
    system, own = SYSTEMS[request.param]
    return lambda *, tuned=False, **more: system(
        **own, **(CHANGES[request.param] if tuned else {}), random_state=3, **more
    )


def rows_of(kind, n_classes, n=160):
    """Rows with zeros, labels, and weights with zeros."""
    X, y = make_stream(kind, n, 6, seed=4)
    X[np.abs(X) < 0.5] = 0.0
    if n_classes == 3:
        y = np.digitize(np.square(X).sum(axis=1), [3.5, 7.0]).astype(float)
        y[:3] = [0, 1, 2]
    rng = np.random.default_rng(1)
    return X, y, rng.gamma(1.0, size=n) * (rng.random(n) < 0.8)  # their sums are not exact


def close(a, b, tol):
    np.testing.assert_allclose(a, b, rtol=0, atol=tol * max(1.0, np.abs(b).max()))


@pytest.mark.parametrize(
    ("kind", "n_classes", "weighted", "tuned"),
    [
        ("random", 2, False, False),
        ("random", 2, False, True),
        ("duplicates", 3, True, True),
        ("sorted", 2, True, True),
        ("one_class_first", 3, True, False),
    ],
)
def test_engines_agree(make, kind, n_classes, weighted, tuned):
    X, y, weight = rows_of(kind, n_classes, n=120)
    weight = weight if weighted else None
    truth = make(tuned=tuned, dtype="float64", engine="reference").fit(X, y, weight)
    assert np.abs(truth.coef_).max() > 1e-3
    for dtype, tol in (("float64", 1e-10), ("float32", 1e-4)):
        for rows in (X, sp.csr_array(X)):
            model = make(tuned=tuned, dtype=dtype).fit(rows, y, weight)
            close(model.coef_, truth.coef_, tol)
            close(model.stream_.score(rows), truth.stream_.score(X), tol)
            assert model.n_pairs_ == truth.n_pairs_
            assert model.loss_ == pytest.approx(truth.loss_, rel=tol)


def test_no_row_knows_of_later_ones(make):
    """Scores given before each row was learned, in one block: they depend on the rows before it alone."""
    X, y, _ = rows_of("random", 2)
    other = X.copy(), y.copy()
    other[0][80:], other[1][80:] = -X[80:], -y[80:]
    learner = make(average="last").fit(X, y).stream_.model
    one, two = (Stream(learner).partial_fit(*rows).recent()[0] for rows in ((X, y), other))
    np.testing.assert_array_equal(one[:80], two[:80])
    assert not one[:2].any()  # no pair before the second row
    assert (one[80:160] != two[80:160]).any()
