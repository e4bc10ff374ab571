"""Every system with ``features=`` takes a forest: it learns with both engines, and continues from a file."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone, is_classifier
from sklearn.metrics import roc_auc_score
from sklearn.utils.estimator_checks import check_estimator

from pairloom import PairwiseRanker, PairwiseRegressor, load, save
from pairloom.base.tree import same
from pairloom.estimators.transformer import FeatureTransformer
from pairloom.features import Forest
from pairloom.systems import (
    FPOGD,
    OAM,
    OGD,
    OLP,
    OPAUC,
    SOLAM,
    SPAM,
    AdaDSG,
    AdaOAM,
    AllPairs,
    ExactAUC,
    FourierSGD,
)
from tests.conftest import make_stream
from tests.covering import every_pair
from tests.generic import classes
from tests.test_every_estimator import SAMPLE_WEIGHTS

SMALL = Forest(5, max_leaves=8, n_rows=64)
FORESTS = {
    "labels": SMALL,
    "random": replace(SMALL, labels=False),
    "levels": Forest(3, max_leaves=8, n_rows=64, levels=(2,)),
}
SYSTEMS = {
    kind.__name__: kind
    for kind in (FPOGD, OGD, OLP, OAM, AllPairs, SOLAM, SPAM, FourierSGD, AdaDSG, OPAUC, AdaOAM, ExactAUC,
                 PairwiseRanker, PairwiseRegressor)
}  # fmt: skip
GROWING = (FPOGD, OGD, OLP, OAM, PairwiseRanker, PairwiseRegressor)

pytestmark = pytest.mark.filterwarnings("ignore::pairloom.stream.StabilityWarning")


def make(name, features=SMALL, **changes):
    return SYSTEMS[name](features=features, random_state=0, **changes)


def says(model, X):
    return (model.decision_function if is_classifier(model) else model.predict)(X)


def test_these_are_all_that_have_features():
    known = {name for name, kind in classes().items() if "features" in kind._get_param_names()}
    assert known - {"AUCClassifier"} == set(SYSTEMS)


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("kind", FORESTS)
def test_it_learns(name, kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 3))
    y = np.where(np.sin(3 * X[:, 0]) + 0.2 * rng.normal(size=700) > 0, 1.0, -1.0)
    model, areas = make(name, replace(FORESTS[kind], n_trees=8, max_leaves=16, n_rows=256)), []
    for seed in range(3):  # eight trees on three columns: one forest in ten has few splits of the first
        says_so = says(model.set_params(random_state=seed).fit(X[:500], y[:500]), X[500:])
        areas.append(roc_auc_score(y[500:], says_so))
    assert np.mean(areas) > (0.6 if kind == "random" else 0.7)


@every_pair(name=SYSTEMS, kind=FORESTS, n_classes=[2, 3])
def test_the_compiled_code_does_what_the_specification_says(name, kind, n_classes):
    X, y = make_stream("random", 160, 4)
    labels = y if n_classes == 2 else np.digitize(X[:, 0], [-0.5, 0.5])
    weight = np.random.default_rng(0).choice([0.5, 1.0, 2.0], 160)
    fast, slow = (
        make(name, FORESTS[kind], dtype="float64", engine=engine).fit(X, labels, weight)
        for engine in ("auto", "reference")
    )
    recent = [model.stream_.state.observed["recent"].scores for model in (fast, slow)]
    np.testing.assert_allclose(*recent, atol=1e-8 * np.abs(recent[1]).max())
    np.testing.assert_allclose(says(fast, X), says(slow, X), rtol=1e-6, atol=1e-8)
    assert fast.n_pairs_ == slow.n_pairs_
    assert np.abs(recent[1]).max() > 0


@pytest.mark.parametrize("name", SYSTEMS)
def test_csr_rows_give_the_model_of_dense_rows(name):
    """For a forest grown from dense rows: for CSR rows scikit-learn draws other splits."""
    X, y = make_stream("random", 300, 5)
    X[np.abs(X) < 0.5] = 0
    model = make(name, dtype="float64").fit(X, y)
    np.testing.assert_array_equal(says(model, csr_array(X)), says(model, X))
    thin = make(name, dtype="float64").fit(csr_array(X), y)
    assert np.isfinite(says(thin, csr_array(X))).all()
    np.testing.assert_array_equal(says(thin, csr_array(X)), says(thin, X))
    if hasattr(model, "partial_fit"):
        late = [make(name, dtype="float64").partial_fit(X[:270], y[:270]) for _ in range(2)]
        for one, rows in zip(late, (X, csr_array(X)), strict=True):
            one.partial_fit(rows[270:], y[270:])
        np.testing.assert_allclose(says(late[0], X), says(late[1], X), atol=1e-9)


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("at", [40, 300, 1100])
def test_it_goes_on_from_a_file_and_from_a_pickle(name, at, tmp_path):
    X, y = make_stream("random", at + 60, 4)
    model = make(name)
    online = hasattr(model, "partial_fit")
    (model.partial_fit if online else model.fit)(X[:at], y[:at])
    save(model, tmp_path / "model")
    others = [load(tmp_path / "model"), pickle.loads(pickle.dumps(model))]
    for other in others:
        assert same(other.state_, model.state_)
        np.testing.assert_array_equal(says(other, X), says(model, X))
    if online:
        model.partial_fit(X[at:], y[at:])
        for other in others:
            assert same(other.partial_fit(X[at:], y[at:]).state_, model.state_)
    assert clone(model).get_params()["features"] == SMALL


@pytest.mark.parametrize("name", [name for name in SYSTEMS if name != "AdaDSG"])
@pytest.mark.parametrize("missing", [False, True])
def test_rows_one_by_one_and_in_any_chunks(name, missing):
    X, y = make_stream("random", 150, 5)
    if missing:
        X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    whole, one_by_one, chunks = (make(name) for _ in range(3))
    whole.partial_fit(X, y)
    for x, label in zip(X, y, strict=True):
        one_by_one.learn_one(x, label)
    for rows in np.array_split(np.arange(150), [1, 3, 63, 65, 100]):
        chunks.partial_fit(X[rows], y[rows])
    assert same(whole.state_.stream, one_by_one.state_.stream)
    assert same(whole.state_.stream, chunks.state_.stream)
    assert whole.score_one(X[7]) == one_by_one.score_one(X[7])


@pytest.mark.parametrize("kind", GROWING, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("growth", ["renewed", "boosted"])
@pytest.mark.parametrize("schedule", ["constant", "adagrad"])
def test_those_that_keep_rows_take_a_forest_that_grows(kind, growth, schedule):
    X, y = make_stream("random", 300, 4)
    more = {"cluster_in": "input"} if kind is FPOGD else {}
    if kind is not OAM:
        more["schedule"] = schedule
    forest = Forest(5, max_leaves=8, n_rows=64, growth=growth)
    parameters = {"features": forest, "random_state": 0, "dtype": "float64", **more}
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        fast, slow = (kind(engine=engine, **parameters).fit(X, y) for engine in ("auto", "reference"))
    np.testing.assert_allclose(says(fast, X), says(slow, X), atol=1e-8)
    assert np.ptp(says(fast, X)) > 0


CHECKED = [
    kind(features=Forest(20, max_leaves=16, n_rows=64), schedule="adagrad", eta=0.5, random_state=0)
    for kind in (FPOGD,)
]


@pytest.mark.parametrize("model", CHECKED, ids=lambda model: type(model).__name__)
@pytest.mark.filterwarnings("ignore:Skipping check check_array_api_input")
def test_scikit_learn_checks_pass(model):
    results = check_estimator(model, on_fail=None)
    failed = {result["check_name"] for result in results if result["status"] == "failed"}
    assert failed <= SAMPLE_WEIGHTS, [result["exception"] for result in results if result["status"] == "failed"]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scikit_learn_checks_of_the_transformer_pass(dtype):
    results = check_estimator(FeatureTransformer(replace(SMALL, labels=False), dtype=dtype), on_skip=None, on_fail=None)
    failed = {result["check_name"]: result["exception"] for result in results if result["status"] == "failed"}
    assert not failed
