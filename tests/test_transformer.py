import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from pairloom.base.randomness import generator
from pairloom.base.tree import cast
from pairloom.estimators.transformer import FeatureTransformer
from pairloom.features import (
    Gaussian,
    Identity,
    Landmarks,
    Laplace,
    Matern32,
    Nystroem,
    OrthogonalFourier,
    RandomFourier,
    Whitened,
)

MAPS = {
    "default": None,
    "identity": Identity(),
    "identity-standard": Identity(scale="standard"),
    "fourier": RandomFourier(10, Laplace("median"), scale="minmax"),
    "landmarks": Landmarks(25, Gaussian("median"), scale="standard"),
    "nystroem": Nystroem(30, Gaussian("median"), rank=7, scale="standard"),
    "whitened": Whitened(RandomFourier(10, Gaussian("median")), 4),
    "whitened-identity": Whitened(Identity(scale="standard"), 2),
    "orthogonal": OrthogonalFourier(33, Matern32("median"), scale="maxabs"),
}


@pytest.fixture(params=MAPS, ids=str)
def features(request):
    return MAPS[request.param]


@pytest.fixture
def X():
    return np.random.default_rng(11).normal(size=(200, 5))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scikit_learns_checks(features, dtype):
    results = check_estimator(FeatureTransformer(features, dtype=dtype), on_skip=None)
    # The array API is checked only where SCIPY_ARRAY_API is set, which is not ours to set.
    assert {result["check_name"] for result in results if result["status"] != "passed"} <= {"check_array_api_input"}
    assert "check_transformer_preserve_dtypes" in {result["check_name"] for result in results}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_it_is_the_map(features, X, dtype):
    model = FeatureTransformer(features, dtype=dtype, random_state=3).fit(X)
    phi, rows = features or RandomFourier(), X.astype(dtype)
    state = cast(phi.fix(5, rows, generator(3)), dtype)
    Z = model.transform(X)
    assert Z.dtype == dtype
    np.testing.assert_array_equal(Z, phi.apply(state, rows))
    np.testing.assert_array_equal(Z, FeatureTransformer(features, dtype=dtype, random_state=3).fit_transform(X))


def test_only_the_first_partial_fit_fixes_the_map(features, X):
    model = FeatureTransformer(features, random_state=0).partial_fit(X)
    np.testing.assert_array_equal(model.transform(X), FeatureTransformer(features, random_state=0).fit(X).transform(X))
    before = pickle.dumps(model)
    model.partial_fit(100 * X[:7])
    assert pickle.dumps(model) == before
    with pytest.raises(ValueError, match="X has 4 features, but FeatureTransformer is expecting 5"):
        model.partial_fit(X[:, :4])
    with pytest.raises(ValueError, match="NaN at row 0, column 0"):
        model.partial_fit(np.full((2, 5), np.nan))
    assert pickle.dumps(model) == before
    # fit starts from scratch.
    again = model.fit(100 * X)
    np.testing.assert_array_equal(
        again.transform(X), FeatureTransformer(features, random_state=0).fit(100 * X).transform(X)
    )


def test_names_and_frames(features, X):
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = FeatureTransformer(features, random_state=0).fit(frame)
    Z = model.transform(frame)
    names = model.get_feature_names_out()
    assert names.tolist() == [f"featuretransformer{i}" for i in range(Z.shape[1])]
    mapped = model.set_output(transform="pandas").transform(frame)
    assert mapped.columns.tolist() == names.tolist()
    assert mapped.index.equals(frame.index)
    np.testing.assert_array_equal(mapped.to_numpy(), Z)
    with pytest.raises(ValueError, match="feature names should match"):
        model.transform(frame[list("edcba")])


@pytest.mark.parametrize("container", [sp.csr_array, sp.csr_matrix, sp.csc_matrix])
def test_sparse_rows(features, X, container):
    X = np.where(np.abs(X) > 1, X, 0.0)
    Z = FeatureTransformer(features, dtype="float64", random_state=0).fit(X).transform(X)
    sparse = FeatureTransformer(features, dtype="float64", random_state=0).fit(container(X)).transform(container(X))
    if isinstance(features, Identity):
        assert sparse.format == "csr"
        sparse = sparse.toarray()
        # Not centred.
        Z, sparse = Z - Z[0], sparse - sparse[0]
    np.testing.assert_allclose(sparse, Z, atol=1e-12)
    bad = container(np.where(np.arange(200)[:, None] == 7, np.inf, X))
    with pytest.raises(ValueError, match="infinity"):
        FeatureTransformer(features).fit(bad)


def test_in_pipelines_and_searches(X):
    y = np.square(X[:, :2]).sum(axis=1) > 1.4
    phi = FeatureTransformer(RandomFourier(64, Gaussian("median")), random_state=0)
    pipeline = make_pipeline(phi, LogisticRegression(C=100))
    assert pipeline.fit(X, y).score(X, y) > 0.9
    sparse = make_pipeline(FeatureTransformer(Identity(scale="maxabs")), SGDClassifier(random_state=0))
    sparse.fit(sp.csr_array(X), y).predict(sp.csr_array(X))
    maps = [RandomFourier(4, Gaussian(100.0)), RandomFourier(64, Gaussian("median"))]
    search = GridSearchCV(pipeline, {"featuretransformer__features": maps}).fit(X, y)
    assert search.best_params_["featuretransformer__features"] == maps[1]


def test_a_stream_in_a_pipeline_of_two(X):
    """partial_fit beside partial_fit: rows mapped early stay comparable with later ones."""
    y = np.square(X[:, :2]).sum(axis=1) > 1.4
    phi = FeatureTransformer(RandomFourier(64, Gaussian("median")), random_state=0)
    model = SGDClassifier(random_state=0)
    for _ in range(20):
        for rows in np.array_split(np.arange(200), 10):
            model.partial_fit(phi.partial_fit(X[rows]).transform(X[rows]), y[rows], classes=[False, True])
    assert model.score(phi.transform(X), y) > 0.85


def test_cloned_and_pickled(features, X):
    model = FeatureTransformer(features, random_state=0).fit(X)
    assert clone(model).get_params() == model.get_params()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).transform(X), model.transform(X))


def test_a_bad_fit_keeps_the_fitted_map(features, X):
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = FeatureTransformer(features, random_state=0).fit(frame)
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=r"NaN at row 1, column 2 \('z'\)"):
        model.fit(pd.DataFrame({"x": [1.0, 2.0], "y": [1.0, 2.0], "z": [1.0, np.nan]}))
    assert pickle.dumps(model) == before


def test_parameters_changed_later_wait_for_fit(X):
    model = FeatureTransformer(RandomFourier(8), random_state=0).fit(X)
    model.set_params(features=RandomFourier(16))
    assert model.transform(X).shape == (200, 8)
    assert len(model.get_feature_names_out()) == 8
    assert model.fit(X).transform(X).shape == (200, 16)


def test_random_states(X):
    def mapped(random_state):
        return FeatureTransformer(RandomFourier(8), random_state=random_state).fit(X).transform(X)

    before = np.random.get_state()[1].copy()  # noqa: NPY002
    assert not np.array_equal(mapped(None), mapped(None))
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    np.testing.assert_array_equal(mapped(np.int64(5)), mapped(5))
    for kind in (np.random.default_rng, np.random.RandomState):
        generator = kind(1)
        np.testing.assert_array_equal(mapped(kind(1)), mapped(generator))
        assert not np.array_equal(mapped(kind(1)), mapped(generator))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"features": "fourier"},
            r"features must be a feature map, such as RandomFourier\(512\), or None; got 'fourier'",
        ),
        ({"dtype": "float16"}, "dtype must be one of 'float32', 'float64'; got 'float16'"),
        ({"random_state": "seed"}, "random_state must be None, an integer"),
    ],
)
def test_bad_parameters_are_named(X, parameters, message):
    with pytest.raises(ValueError, match=message):
        FeatureTransformer(**parameters).fit(X)


def test_not_fitted(features, X):
    with pytest.raises(NotFittedError):
        FeatureTransformer(features).transform(X)
    with pytest.raises(NotFittedError):
        FeatureTransformer(features).get_feature_names_out()
