"""A model that was saved and loaded scores and continues to learn, bit for bit."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from pairloom import Learner, PairwiseRanker, Stream, load, save
from pairloom.base.tree import same
from pairloom.estimators import FeatureTransformer
from pairloom.features import (
    Compressed,
    Gaussian,
    Growing,
    Identity,
    Landmarks,
    Nystroem,
    OrthogonalFourier,
    RandomFourier,
    Whitened,
)
from pairloom.memory import Latest, Reservoir, RSx, Strata, WholeHistory, Window
from pairloom.pairs import Order
from pairloom.race import OneMap, Race
from pairloom.steps import Constant
from pairloom.systems import FPOGD
from tests.conftest import make_stream
from tests.generic import forms
from tests.test_state import RULES, SMALL, changed

pytestmark = pytest.mark.filterwarnings("ignore::pairloom.stream.StabilityWarning")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.pairloom"


def state_of(model):
    return model.state if isinstance(model, Stream) else model.state_


def says(model, X):
    name = next(name for name in ("decision_function", "predict", "score") if hasattr(model, name))
    return getattr(model, name)(X)


def assert_goes_on(model, X, y, at, path, parts=(), **first):
    """A model saved after ``at`` rows and loaded equals the one that was not saved."""
    online = hasattr(model, "partial_fit")
    if online:
        model.partial_fit(X[:at], y[:at], **first)
    else:
        model.fit(X[:at], y[:at])
    save(model, path)
    found = load(path, parts=parts)
    assert repr(found) == repr(model)
    assert same(state_of(found), state_of(model))
    np.testing.assert_array_equal(says(found, X), says(model, X))
    if online:
        for rows in (slice(at, at + 1), slice(at + 1, None)):
            for one in (model, found):
                one.partial_fit(X[rows], y[rows])
        assert same(state_of(found), state_of(model))
        np.testing.assert_array_equal(says(found, X), says(model, X))


# Every estimator.


@pytest.mark.parametrize("form", [form for form in forms() if not form.startswith("AUCClassifier")])
def test_every_estimator_goes_on(form, path):
    """After the warm start; the stages before are those of ``test_every_estimator.py``."""
    X, y = make_stream("random", 1300, 4)
    assert_goes_on(changed(form, **RULES), X, y, 1100, path)


@pytest.mark.parametrize(
    "form", ["FPOGD", "OPAUCr", "SPAM-L2", "SOLAM", "KOIL-RS++", "ExactAUC", "OAMgra", "FourierSGD"]
)
def test_so_does_one_of_three_classes_and_csr_rows(form, path):
    X, score = make_stream("random", 900, 6)
    X[np.abs(X) < 0.7] = 0.0
    y = np.array(["low", "middle", "high"])[np.digitize(X.sum(axis=1) + score, [-1, 1])]
    model = changed(form, kernel="linear") if form == "FPOGD" else changed(form)
    assert_goes_on(model, csr_array(X), y, 300, path, classes=["low", "middle", "high"])


MEMORIES = [
    Strata(max_strata=3, allocation="neyman", slots=7, representative="reservoir"),
    Strata(max_strata=3, allocation="neyman", slots=7, by="joint", normalization="history"),
    Strata(max_strata=4, eps=np.inf, representative="centroid", normalization="sum"),
    Latest("previous", 3), Window(5), RSx(5, by="class"), RSx(5), Reservoir(5), WholeHistory(max_rows=800),
]  # fmt: skip


@pytest.mark.parametrize("memory", MEMORIES, ids=repr)
@pytest.mark.parametrize("csr", [False, True])
def test_a_bare_stream_goes_on_with_every_memory(memory, csr, path):
    X, y = make_stream("random", 600, 3)
    learner = Learner(features=Identity() if csr else RandomFourier(16), memory=memory, step=Constant(0.01), seed=0)
    assert_goes_on(Stream(learner), csr_array(X) if csr else X, y, 300, path)


MAPS = [
    Growing(64, Gaussian("median"), block=16), OrthogonalFourier(16, Gaussian((1.0, 2.0, 0.5)), scale="minmax"),
    Nystroem(16, rank=8), Landmarks(16), Whitened(Whitened(Nystroem(16), 4), 3), Whitened(Identity(scale="wide"), 2),
    Compressed(Landmarks(16)),
]  # fmt: skip


@pytest.mark.parametrize("features", MAPS, ids=repr)
@pytest.mark.parametrize("at", [1, 400])
def test_a_bare_stream_goes_on_with_every_map(features, at, path):
    X, y = make_stream("random", 600, 3)
    learner = Learner(features=features, memory=Latest(), average="mean", dtype="float64", seed=0)
    assert_goes_on(Stream(learner), X, y, at, path)


@pytest.mark.parametrize("at", [100, 256, 300])
def test_a_grid_goes_on_inside_a_block(at, path):
    X, y = make_stream("random", 600, 3)
    grid = FPOGD(n_components=16, eps=0.5, random_state=0).grid(etas=[0.1, 0.2], averages=["last", "mean"])
    assert_goes_on(grid, X, y, at, path)


def test_a_pinned_race_of_one_map_goes_on(path):
    X, y = make_stream("random", 700, 3)
    race = Race(portfolio=OneMap(features=Nystroem(16), descent=SMALL.descent), seed=0)
    assert_goes_on(Stream(race), X, y, 500, path)


def test_a_ranker_goes_on_inside_a_query(path):
    X, y = make_stream("random", 400, 3)
    groups = np.repeat(np.arange(40), 10).astype(str)
    model = PairwiseRanker(n_components=16, gamma="median", random_state=0)
    model.partial_fit(X[:205], y[:205], groups=groups[:205])
    save(model, path)
    found = load(path)
    for one in (model, found):
        one.partial_fit(X[205:], y[205:], groups=groups[205:])
    assert same(found.state_, model.state_)


@pytest.mark.parametrize("features", [None, RandomFourier(8), *MAPS[1:]], ids=repr)
def test_a_transformer_maps_as_before(features, path):
    X = pd.DataFrame(make_stream("random", 100, 3)[0], columns=["a", "b", "c"])
    model = FeatureTransformer(features, random_state=0).fit(X)
    save(model, path)
    found = load(path)
    np.testing.assert_array_equal(found.transform(X), model.transform(X))
    assert list(found.feature_names_in_) == ["a", "b", "c"]
    np.testing.assert_array_equal(found.get_feature_names_out(), model.get_feature_names_out())
    save(load_unfitted := FeatureTransformer(features), path)
    assert repr(load(path)) == repr(load_unfitted)


def test_order_of_pairs_with_queries_goes_on(path):
    X, y = make_stream("random", 300, 3)
    model = Learner(features=RandomFourier(8), pairs=Order(), memory=Window(8), seed=0)
    assert_goes_on(Stream(replace(model, dtype="float64")), X, y, 200, path)
