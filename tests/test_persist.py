"""A model that was saved and loaded scores and learns on, bit for bit; what a file cannot hold is refused."""

import gzip
import json
import subprocess
import sys
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import pairloom
from pairloom import (
    Constant,
    Gaussian,
    Growing,
    Identity,
    Landmarks,
    Latest,
    Learner,
    ModelFileError,
    Nystroem,
    Order,
    OrthogonalFourier,
    PairwiseRanker,
    RandomFourier,
    Reservoir,
    RSx,
    Strata,
    Stream,
    Whitened,
    WholeHistory,
    Window,
    load,
    save,
)
from pairloom.base.tree import NODES, node, same
from pairloom.estimators import FeatureTransformer
from pairloom.features import FeatureMap
from pairloom.losses import Loss
from pairloom.memory import Memory, MemoryState, Plan, Slots
from pairloom.models.base import Model
from pairloom.models.rule import Rule
from pairloom.persist.layout import LAYOUT
from pairloom.persist.parts import own_parts
from pairloom.persist.scopes import KINDS
from pairloom.race import OneMap, Race
from pairloom.systems import FPOGD, OPERA
from tests.conftest import make_stream
from tests.generic import forms, make
from tests.hostile import read, sign
from tests.test_state import RULES, SMALL, changed

DATA = Path(__file__).parent / "data"

pytestmark = pytest.mark.filterwarnings("ignore::pairloom.StabilityWarning")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.pairloom"


def state_of(model):
    return model.state if isinstance(model, Stream) else model.state_


def says(model, X):
    name = next(name for name in ("decision_function", "predict", "score") if hasattr(model, name))
    return getattr(model, name)(X)


def assert_goes_on(model, X, y, at, path, parts=(), **first):
    """A model that is saved after ``at`` rows and loaded is the one that was not."""
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
@pytest.mark.parametrize("at", [70, 1100])
def test_every_estimator_goes_on(form, at, path):
    """In the warm start, and after it."""
    X, y = make_stream("random", at + 200, 4)
    assert_goes_on(changed(form, **RULES), X, y, at, path)


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


# What else a file holds.


@pytest.mark.parametrize("form", forms())
def test_a_model_that_has_learned_nothing_is_its_parameters(form, path):
    model = make(form)
    save(model, path)
    found = load(path)
    assert repr(found) == repr(model)
    assert not hasattr(found, "stream_")


def test_classes_that_were_only_declared_are_kept(path):
    X = make_stream("random", 20, 3)[0]
    model = FPOGD(n_components=8, random_state=0)
    model.partial_fit(X[:2], ["a", "a"], classes=["a", "b", "c"], sample_weight=[0, 0])
    save(model, path)
    assert load(path).partial_fit(X[:1], ["b"]).classes_.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("labels", [[True, False], ["fine", "fraud"], [7, -3], [1.0, 2.0]])
def test_labels_of_every_kind(labels, path):
    X, y = make_stream("random", 60, 3)
    model = FPOGD(n_components=8, random_state=0).fit(X, np.where(y > 0, *labels))
    save(model, path)
    found = load(path)
    assert found.classes_.tolist() == model.classes_.tolist() == sorted(labels)
    assert found.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(found.predict(X), model.predict(X))


def test_names_of_columns(path):
    model = FPOGD(n_components=8, pos_label="fraud", random_state=0).learn_one({"amount": 1.0, "é": 2.0}, "fraud")
    save(model, path)
    found = load(path)
    assert found.feature_names_in_.tolist() == ["amount", "é"]
    assert found.predict_proba_one({"é": 3.0, "amount": 0.0}) == model.predict_proba_one({"é": 3.0, "amount": 0.0})


def test_parameters_are_what_they_were_to_the_type(path):
    values = {"eps": np.inf, "gamma": [1.0, 2.0], "eta": np.float32(0.1), "max_strata": np.int64(3), "pos_label": None}
    save(FPOGD(**values), path)
    found = load(path).get_params()
    for name, value in values.items():
        assert found[name] == value
        assert type(found[name]) is type(value)
    save(FPOGD(gamma=np.array([1.0, 2.0])), path)
    assert load(path).gamma.tolist() == [1.0, 2.0]


def test_the_same_model_is_the_same_bytes(tmp_path):
    X, y = make_stream("random", 300, 3)
    for name, cut in (("one", 10), ("two", 200)):
        model = make("FPOGD", **RULES).partial_fit(X[:cut], y[:cut]).partial_fit(X[cut:], y[cut:])
        save(model, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    save(load(tmp_path / "one"), tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_the_header_is_strict_json_and_arrays_are_aligned(path):
    X, y = make_stream("random", 100, 3)
    save(FPOGD(n_components=8, eps=np.inf, random_state=0).fit(X, y), path)
    raw = path.read_bytes()
    size = int.from_bytes(raw[8:16], "little")
    header = json.loads(raw[16 : 16 + size], parse_constant=pytest.fail)
    assert raw[:8] == b"pairloom"
    assert header["schema"] == 1
    assert header["pairloom"] == pairloom.__version__
    assert header["model"]["part"] == "FPOGD"
    assert header["model"]["eps"] == {"float": "inf"}
    assert header["state"]["values"]["stream.t"] == 100
    assert all(about["offset"] % 64 == 0 for about in header["arrays"].values())
    assert b"pickle" not in raw


# What is refused.


@pytest.mark.parametrize("generator", [np.random.default_rng(0), np.random.RandomState(0)])
def test_a_generator_is_refused_and_the_sentence_says_what_to_do(generator, path):
    X, y = make_stream("random", 60, 3)
    model = FPOGD(n_components=8, random_state=generator).fit(X, y)
    with pytest.raises(TypeError, match=r"FPOGD.random_state is a \w+, which a file does not hold.*set_params"):
        save(model, path)
    assert not path.exists()
    save(model.set_params(random_state=None), path)
    assert same(load(path).state_, model.state_)


def test_parameters_that_were_changed_after_fit_are_refused(path):
    X, y = make_stream("random", 60, 3)
    model = FPOGD(n_components=8, random_state=0).fit(X, y).set_params(eta=0.3)
    with pytest.raises(ValueError, match="the parameters of this FPOGD were changed after it was fitted: fit it anew"):
        save(model, path)
    save(model.set_params(eta=0.125), path)
    phi = FeatureTransformer(RandomFourier(8)).fit(X).set_params(features=RandomFourier(16))
    with pytest.raises(ValueError, match="this FeatureTransformer were changed"):
        save(phi, path)


@pytest.mark.parametrize(("model", "text"), [
    (7, "takes an estimator of pairloom, or a Stream; got a int"),
    (FPOGD(pos_label=pd.Timestamp(0)), "FPOGD.pos_label is Timestamp.*neither a part nor a plain value"),
    (FPOGD(features=type("RandomFourier", (RandomFourier,), {})()), "the package has another: rename the class"),
])  # fmt: skip
def test_what_a_file_cannot_hold_is_refused(model, text, path):
    with pytest.raises(TypeError, match=text):
        save(model, path)
    assert not path.exists()


def test_a_file_of_a_later_version_says_which_pairloom_reads_it(path):
    save(FPOGD(), path)
    header, arrays = read(path)
    path.write_bytes(sign({**header, "schema": 2, "pairloom": "3.1.4"}, arrays))
    with pytest.raises(
        ModelFileError, match=r"written by pairloom 3.1.4 in version 2 .*install pairloom 3.1.4 or newer"
    ):
        load(path)
    path.write_bytes(sign({**header, "schema": None}, arrays))
    with pytest.raises(ModelFileError, match="does not say which version of the format"):
        load(path)


def test_a_parameter_that_this_version_does_not_know_is_named(path):
    save(FPOGD(), path)
    header, arrays = read(path)
    path.write_bytes(sign({**header, "model": {**header["model"], "momentum": 0.9}}, arrays))
    with pytest.raises(ModelFileError, match="FPOGD has other parameters in the file than in this version: momentum"):
        load(path)


def test_what_is_no_file_of_ours(path):
    with pytest.raises(FileNotFoundError):
        load(path)
    path.write_bytes(b"PK\x03\x04 something else")
    with pytest.raises(ModelFileError, match=r"model.pairloom: this is not a model file: pairloom.save writes them"):
        load(path)
    with pytest.raises(ModelFileError, match="not a regular file"):
        load(path.parent)
    assert issubclass(ModelFileError, ValueError)


def test_a_folder_that_is_not_there_is_a_clear_error(path):
    with pytest.raises(FileNotFoundError, match="the model was not saved"):
        save(FPOGD(), path / "no" / "folder")


# Parts from outside.


@dataclass(frozen=True)
class Bent(Loss):
    name: ClassVar[str] = "bent"
    smoothness: ClassVar[float] = 1.0
    bend: float = 1.0

    def value(self, margin):
        gap = np.maximum(0.0, 1.0 - margin)
        return np.where(gap < self.bend, gap**2 / 2, self.bend * (gap - self.bend / 2))

    def derivative(self, margin):
        return -np.minimum(self.bend, np.maximum(0.0, 1.0 - margin))


@node
class NewestState(MemoryState):
    seen: np.ndarray


@dataclass(frozen=True)
class Newest(Memory):
    @property
    def joint(self):
        return True

    def start(self, dim, u_dim, n_classes, dtype, points):
        return NewestState(Slots.empty(1, dim, dtype), np.zeros(1, np.int64))

    def observe(self, state, example):
        state.seen[0] += 1
        state.slots.write(0, example, blend=1.0, mass=1.0)

    def plan(self, state, U, y, weight, draws):
        state.seen[0] += len(y)
        return Plan(np.arange(len(y) + 1), np.zeros(len(y), np.int64), np.ones(len(y)), np.ones(len(y)))


@dataclass
class Total:
    rows: int
    sums: np.ndarray


@dataclass(frozen=True)
class Watcher:
    name: ClassVar[str] = "my watcher"

    def init(self, model):
        return Total(0, np.zeros(model.n_vectors))

    def see(self, own, scored):
        own.rows += len(scored.labels)
        own.sums += scored.scores.sum(axis=0)

    def next_row(self, t):
        return 10**9

    def tick(self, own, state, model):
        pass


def test_parts_from_outside_load_only_if_they_are_handed_over(path):
    X, y = make_stream("random", 300, 3)
    model = Learner(features=RandomFourier(8), loss=Bent(0.3), memory=Newest(), engine="reference", seed=0)
    stream = Stream(model, [Watcher()])
    assert_goes_on(stream, X, y, 200, path, parts=[Bent, Newest, Watcher, Total])
    with pytest.raises(ModelFileError, match=r"needs 'Bent', which is not part of pairloom: pass its class, parts=\["):
        load(path)
    with pytest.raises(ModelFileError, match=r"is a Total, which is not known here; if it is yours, pass its class"):
        load(path, parts=[Bent, Newest, Watcher])
    with pytest.raises(ValueError, match="parts= has a Strata, but there is another part with that name"):
        load(path, parts=[type("Strata", (), {})])
    with pytest.raises(TypeError, match="parts= takes classes"):
        load(path, parts=["Bent"])


def test_an_estimator_from_outside(path):
    class Mine(FPOGD):
        def __init__(self, *, eta=0.2):
            super().__init__(eta=eta, n_components=8, random_state=0)

    X, y = make_stream("random", 300, 3)
    assert_goes_on(Mine(), X, y, 200, path, parts=[Mine])


def test_nothing_that_a_header_names_is_imported(path):
    save(FPOGD(), path)
    header, arrays = read(path)
    for name in ("this", "this.s", "os.system", "pairloom.cli.app", "builtins.eval"):
        header["model"]["features"] = {"part": name}
        path.write_bytes(sign(header, arrays))
        with pytest.raises(ModelFileError, match=f"the file needs '{name}'"):
            load(path)
    assert "this" not in sys.modules


# What must not be forgotten when a part is added.


def test_every_node_has_a_layout_and_every_part_a_kind():
    elsewhere = {"Scored", "Kept", "StreamState", "EstimatorState", "Labels", "RaceState", "Entrant", "Evidence"}
    elsewhere |= {"Digest", "StreamingAUC", "WindowAUC", "FrozenState", "Member"}
    own = {name: kind for name, kind in NODES.items() if kind.__module__.startswith("pairloom.")}
    assert own.keys() - elsewhere == LAYOUT.keys()
    for name, layout in LAYOUT.items():
        assert list(layout) == [f.name for f in fields(own[name]) if not f.metadata.get("derived")], name
    by_themselves = {"Learner", "RuleLearner", "Grid", "StepPath", "Race"}
    keeping = [
        kind for kind in own_parts().values()
        if issubclass(kind, (FeatureMap, Memory, Rule, Model)) and kind.__name__ not in by_themselves
    ]  # fmt: skip
    assert set(keeping) == set(KINDS)


def test_import_stays_light():
    code = "import sys, pairloom; assert 'sklearn' not in sys.modules; pairloom.save, pairloom.load; print('done')"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "done\n"


# For ever.


def test_the_file_of_version_1_loads_for_ever(path):
    """Written by pairloom 0.1.0: ``FPOGD(n_components=16, max_strata=4, random_state=0)`` after 200 rows."""
    path.write_bytes(gzip.decompress((DATA / "model-1.pairloom.gz").read_bytes()))
    expected = json.loads((DATA / "model-1.json").read_text())
    model = load(path)
    X, y = make_stream("random", 300, 3)
    assert model.n_seen_ == 200
    np.testing.assert_allclose(model.decision_function(X[:8]), expected["scores"], rtol=1e-4)
    model.partial_fit(X[200:], y[200:])
    np.testing.assert_allclose(model.decision_function(X[:8]), expected["later"], rtol=1e-3)


def test_opera_beyond_its_rows_is_refused_after_load_too(path):
    X, y = make_stream("random", 100, 3)
    save(OPERA(max_rows=60).fit(X[:50], y[:50]), path)
    with pytest.raises(ValueError, match="it has 50, so 10 more can come"):
        load(path).partial_fit(X[50:], y[50:])


def test_order_of_pairs_with_queries_goes_on(path):
    X, y = make_stream("random", 300, 3)
    model = Learner(features=RandomFourier(8), pairs=Order(), memory=Window(8), seed=0)
    assert_goes_on(Stream(replace(model, dtype="float64")), X, y, 200, path)
