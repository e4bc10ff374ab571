"""The model does not depend on the container of the rows."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

import pairloom
from pairloom import PairwiseRanker, PairwiseRegressor
from pairloom.systems import FPOGD
from tests.conftest import make_stream

NAMES = list("abcde")

FRAMES = {
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES),
    "polars": lambda X: pl.DataFrame(X, schema=NAMES),
    "pyarrow": lambda X: pa.table({name: X[:, k] for k, name in enumerate(NAMES)}),
}

ESTIMATORS = {
    "FPOGD": lambda: FPOGD(gamma="median", scale="standard", n_components=32, random_state=0),
    "FPOGD linear": lambda: FPOGD(kernel="linear", scale="maxabs", eta=0.05, random_state=0),
    "PairwiseRanker": lambda: PairwiseRanker(n_components=32, random_state=0),
    "PairwiseRegressor": lambda: PairwiseRegressor(n_components=32, random_state=0),
}


@pytest.fixture(params=ESTIMATORS)
def make(request):
    return ESTIMATORS[request.param]


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_give_the_bits_of_arrays_and_remember_their_columns(make, kind):
    X, y = make_stream("random", 300, 5)
    frame = FRAMES[kind]
    by_array = make().fit(X, y)
    by_frame = make().partial_fit(frame(X[:100]), y[:100]).partial_fit(frame(X[100:]), y[100:])
    np.testing.assert_array_equal(by_frame.coef_, by_array.coef_)
    np.testing.assert_array_equal(by_frame.predict(frame(X)), by_array.predict(X))
    assert by_frame.feature_names_in_.tolist() == NAMES
    assert by_frame.score_one(dict(zip(NAMES, X[0], strict=True))) == by_array.score_one(X[0])


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_columns_in_another_order_are_an_error_that_says_so(make, kind):
    X, y = make_stream("random", 60, 5)
    frame = FRAMES[kind](X)
    model = make().fit(frame, y)
    for call in (lambda: model.predict(frame[NAMES[::-1]]), lambda: model.partial_fit(frame[NAMES[::-1]], y)):
        with pytest.raises(ValueError, match="Feature names must be in the same order as they were in fit"):
            call()


def test_a_gap_in_a_frame_of_numbers_is_the_mean_of_what_came_before(make):
    X, y = make_stream("random", 60, 5)
    filled = X.copy()
    X[7, 2], filled[7, 2] = np.nan, X[:7, 2].mean()
    by_frame, by_array = make().fit(pd.DataFrame(X, columns=NAMES), y), make().fit(filled, y)
    np.testing.assert_allclose(by_frame.coef_, by_array.coef_, atol=1e-6 * np.abs(by_array.coef_).max())


def test_a_bad_value_in_a_frame_is_named_by_its_column(make):
    X, y = make_stream("random", 60, 5)
    X[7, 2] = np.inf
    with pytest.raises(ValueError, match="column 'c' contains infinity at row 7"):
        make().fit(pd.DataFrame(X, columns=NAMES), y)


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
def test_sparse_rows_give_the_model_of_dense_ones(make, container):
    X, y = make_stream("random", 300, 5)
    X[np.abs(X) < 0.7] = 0
    dense, thin = make().fit(X, y), make().fit(container(X), y)
    np.testing.assert_allclose(thin.coef_, dense.coef_, atol=1e-4 * np.abs(dense.coef_).max())
    one, other = thin.stream_.score(X), dense.stream_.score(X)
    np.testing.assert_allclose(one, other, atol=1e-4 * np.abs(other).max())


def test_public_names():
    assert pairloom.PairwiseRanker is PairwiseRanker
    assert all(hasattr(pairloom, name) for name in pairloom.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = pairloom.Nothing
