"""Model files: everything besides the arrays, and errors."""

import gzip
import json
import lzma
import subprocess
import sys
import tracemalloc
from dataclasses import fields
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, get_args, get_origin

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

import pairloom
from pairloom import load, save
from pairloom.base.spec import field_types
from pairloom.base.tree import NODES, same
from pairloom.base.typing import Array
from pairloom.estimators import FeatureTransformer
from pairloom.features import RandomFourier
from pairloom.persist import ModelFileError
from pairloom.persist.format import read_file, write_file
from pairloom.systems import FPOGD, OPERA
from tests.conftest import make_stream
from tests.generic import forms, make
from tests.hostile import read, sign
from tests.mixed import mixed
from tests.test_state import RULES

DATA = Path(__file__).parent / "data"

pytestmark = pytest.mark.filterwarnings("ignore::pairloom.stream.StabilityWarning")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.pairloom"


# Other content of a file.


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
    assert header["schema"] == 3
    assert header["pairloom"] == pairloom.__version__
    assert header["model"]["part"] == "FPOGD"
    assert header["model"]["eps"] == {"float": "inf"}
    assert header["state"]["values"]["stream.t"] == 100
    assert all(about["offset"] % 64 == 0 for about in header["arrays"].values())
    assert b"pickle" not in raw


ARRAYS = {
    "zeros": np.zeros((3, 1000)),
    "odd": np.arange(4099, dtype=np.uint8) * (np.arange(4099) % 7 == 0),
    "negative zeros": np.where(np.arange(2000) % 3, 0.0, -0.0),
    "bools": np.arange(9000) > 8990,
    "full": np.random.default_rng(0).normal(size=1000),
    "text": np.array([""] * 2000 + ["word"]),
    "empty": np.zeros((0, 4)),
    "Fortran": np.asfortranarray(np.eye(60, 70)),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_without_their_zeros_have_the_same_bits(path, name):
    array = ARRAYS[name]
    write_file(path, {}, {"a": array, "b": np.arange(5.0)})
    found = read_file(path)[1]
    assert (found["a"].dtype, found["a"].shape, found["a"].tobytes()) == (array.dtype, array.shape, array.tobytes())
    assert found["a"].flags.writeable
    assert found["b"].tolist() == [0, 1, 2, 3, 4]
    assert read(path)[1]["a"].tobytes() == array.tobytes()  # by the documentation of the format
    if name in ("zeros", "odd", "negative zeros", "bools", "text", "Fortran"):
        assert path.stat().st_size < array.nbytes


@pytest.mark.parametrize("nonzero", [-1, 0, 2, 3, 1500, 1501, 2**60, None, True, 1.0, "1"])
def test_a_wrong_number_of_words_is_refused(path, nonzero):
    array = np.zeros(1000, np.float32)
    array[[3, 700]] = 1.0
    write_file(path, {}, {"a": np.pad(array, (0, 500))})
    raw = path.read_bytes()
    header = json.loads(raw[16 : 16 + int.from_bytes(raw[8:16], "little")])
    start = header["arrays"]["a"]["offset"]
    header["arrays"]["a"]["nonzero"] = nonzero
    body = raw[:8] + (start - 16).to_bytes(8, "little") + json.dumps(header, separators=(",", ":")).encode()
    assert len(body) <= start
    body = body.ljust(start) + raw[start:-32]
    path.write_bytes(body + blake2b(body, digest_size=32).digest())
    if nonzero == 2:
        assert np.flatnonzero(read_file(path)[1]["a"]).tolist() == [3, 700]
        return
    with pytest.raises(ModelFileError, match=r"array 'a'|longer than its header|ends before|truncated"):
        read_file(path)


def test_reading_zeros_takes_a_bounded_multiple_of_the_file(path):
    write_file(path, {}, {"a": np.zeros(4_000_000)})
    size = path.stat().st_size
    assert size < 4_000_000 * 8 / 31
    tracemalloc.start()
    try:
        assert not read_file(path)[1]["a"].any()
        assert tracemalloc.get_traced_memory()[1] < 43 * size
    finally:
        tracemalloc.stop()


# Errors.


@pytest.mark.parametrize("generator", [np.random.default_rng(0), np.random.RandomState(0)])
def test_a_generator_is_refused_and_the_sentence_says_what_to_do(generator, path):
    X, y = make_stream("random", 60, 3)
    model = FPOGD(n_components=8, random_state=generator).fit(X, y)
    with pytest.raises(TypeError, match=r"FPOGD.random_state is a \w+, which a file cannot store.*set_params"):
        save(model, path)
    assert not path.exists()
    save(model.set_params(random_state=None), path)
    assert same(load(path).state_, model.state_)


def test_parameters_that_were_changed_after_fit_are_refused(path):
    X, y = make_stream("random", 60, 3)
    model = FPOGD(n_components=8, random_state=0).fit(X, y).set_params(eta=0.3)
    with pytest.raises(ValueError, match="the parameters of this FPOGD were changed after it was fitted: fit it again"):
        save(model, path)
    save(model.set_params(eta=0.125), path)
    phi = FeatureTransformer(RandomFourier(8)).fit(X).set_params(features=RandomFourier(16))
    with pytest.raises(ValueError, match="this FeatureTransformer were changed"):
        save(phi, path)


@pytest.mark.parametrize(("model", "text"), [
    (7, "takes an estimator of pairloom, or a Stream; got a int"),
    (FPOGD(pos_label=pd.Timestamp(0)), "FPOGD.pos_label is Timestamp.*neither a part nor a plain value"),
    (FPOGD(features=type("RandomFourier", (RandomFourier,), {})()), "but the name is in use: rename the class"),
])  # fmt: skip
def test_what_a_file_cannot_hold_is_refused(model, text, path):
    with pytest.raises(TypeError, match=text):
        save(model, path)
    assert not path.exists()


def test_a_file_of_a_later_version_says_which_pairloom_reads_it(path):
    save(FPOGD(), path)
    header, arrays = read(path)
    path.write_bytes(sign({**header, "schema": 4, "pairloom": "4.1.4"}, arrays))
    with pytest.raises(
        ModelFileError, match=r"written by pairloom 4.1.4 in version 4 .*install pairloom 4.1.4 or newer"
    ):
        load(path)
    path.write_bytes(sign({**header, "schema": None}, arrays))
    with pytest.raises(ModelFileError, match="has no valid version of the format"):
        load(path)


def test_a_parameter_that_this_version_does_not_know_is_named(path):
    save(FPOGD(), path)
    header, arrays = read(path)
    path.write_bytes(sign({**header, "model": {**header["model"], "momentum": 0.9}}, arrays))
    with pytest.raises(
        ModelFileError, match="FPOGD has different parameters in the file and in this version: momentum"
    ):
        load(path)


def test_what_is_no_file_of_ours(path):
    with pytest.raises(FileNotFoundError):
        load(path)
    path.write_bytes(b"PK\x03\x04 something else")
    with pytest.raises(ModelFileError, match=r"model.pairloom: this is not a model file, as written by pairloom.save"):
        load(path)
    with pytest.raises(ModelFileError, match="not a regular file"):
        load(path.parent)
    assert issubclass(ModelFileError, ValueError)


def test_a_folder_that_is_not_there_is_a_clear_error(path):
    with pytest.raises(FileNotFoundError, match="the model was not saved"):
        save(FPOGD(), path / "no" / "folder")


# Checks for new parts.


def test_every_array_of_a_state_is_specified_where_it_is_declared():
    elsewhere = {"Scored", "Labels", "Digest", "StreamingAUC", "WindowAUC"}
    for name, kind in NODES.items():
        if not kind.__module__.startswith("pairloom.") or name in elsewhere:
            continue
        for f in fields(kind):
            found = field_types(kind)[f.name]
            types = [found, *get_args(found)]
            if not f.metadata.get("derived"):
                assert Array not in types or any(get_origin(one) is Annotated for one in types), (name, f.name)


def test_import_stays_light():
    code = "import sys, pairloom; assert 'sklearn' not in sys.modules; pairloom.save, pairloom.load; print('done')"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "done\n"


# The first file of every version loads.


@pytest.mark.parametrize("version", [1, 3])
def test_the_first_file_of_a_version_still_loads(path, version):
    """Written by pairloom 0.1.0: ``FPOGD(n_components=16, max_strata=4, random_state=0)`` after 200 rows."""
    path.write_bytes(gzip.decompress((DATA / f"model-{version}.pairloom.gz").read_bytes()))
    expected = json.loads((DATA / f"model-{version}.json").read_text())
    model = load(path)
    X, y = make_stream("random", 300, 3)
    assert model.n_seen_ == 200
    np.testing.assert_allclose(model.decision_function(X[:8]), expected["scores"], rtol=1e-4)
    model.partial_fit(X[200:], y[200:])
    np.testing.assert_allclose(model.decision_function(X[:8]), expected["later"], rtol=1e-3)


def test_a_race_of_version_1_continues_with_its_candidates(path):
    """Written by pairloom 0.1.0: ``AUCClassifier(random_state=0)`` after 300 rows, before boosting was a candidate."""
    path.write_bytes(lzma.decompress((DATA / "race-1.pairloom.xz").read_bytes()))
    expected = json.loads((DATA / "race-1.json").read_text())
    model = load(path)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 4)).round(3)
    y = np.where(X[:, 0] + X[:, 1] ** 2 > 1, 1, -1)
    names = [one.name for one in model.stream_.learned.entrants]
    assert names == ["forest, renewed", "forest, boosted", "linear", "kernel, width 1, wide"]
    np.testing.assert_allclose(model.decision_function(X[300:]), expected["scores"], rtol=1e-3, atol=1e-3)
    model.partial_fit(X[300:], y[300:])
    assert roc_auc_score(y[:100], model.decision_function(X[:100])) > 0.95
    save(model, path)
    assert same(load(path).state_, model.state_)


def test_a_model_with_one_hot_columns_keeps_them(path):
    """Written before columns were compact: ``FPOGD(n_components=16, max_strata=4, random_state=0)`` after 200 rows."""
    path.write_bytes(gzip.decompress((DATA / "columns-2.pairloom.gz").read_bytes()))
    expected = json.loads((DATA / "columns-2.json").read_text())
    model = load(path)
    frame, y = mixed(300)
    np.testing.assert_allclose(model.decision_function(frame[:8]), expected["scores"], rtol=1e-4)
    model.partial_fit(frame[200:], y[200:])
    np.testing.assert_allclose(model.decision_function(frame[:8]), expected["later"], rtol=1e-3)


def test_opera_beyond_its_rows_is_refused_after_load_too(path):
    X, y = make_stream("random", 100, 3)
    save(OPERA(max_rows=60).fit(X[:50], y[:50]), path)
    with pytest.raises(ValueError, match="it has 50, so 10 more fit"):
        load(path).partial_fit(X[50:], y[50:])
