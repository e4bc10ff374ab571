"""Files of models with named columns: valid, or rejected."""

from contextlib import suppress

import numpy as np
import pandas as pd
import pytest

import pairloom
from pairloom.base.tree import same
from pairloom.columns import Columns
from pairloom.columns.loops import COUNT, HIGH, MASS
from pairloom.features import Forest
from pairloom.persist import ModelFileError
from pairloom.systems import FPOGD
from tests.hostile import hostile, read, sign
from tests.mixed import mixed


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    frame, y = mixed(80)
    path = tmp_path_factory.mktemp("columns") / "model"
    pairloom.save(FPOGD(n_components=8, columns={"items": "category"}, random_state=0).fit(frame, y), path)
    return path


@pytest.fixture(scope="module")
def encoded(tmp_path_factory):
    """A model with an encoding."""
    frame, y = mixed(80)
    path = tmp_path_factory.mktemp("encoded") / "model"
    model = FPOGD(features=Forest(4, max_leaves=8), columns={"items": "category"}, random_state=0)
    pairloom.save(model.fit(frame, y), path)
    return path


def test_what_parameters_say_of_columns_is_in_the_file(saved):
    frame, y = mixed(80)
    part = Columns({"items": "category", "shop": "drop"}, max_categories=4, n_hashed=2, on_text="missing")
    for columns in (part, {"items": "category"}, None):
        model = FPOGD(n_components=8, columns=columns, random_state=0).fit(frame, y)
        pairloom.save(model, saved.with_name("other"))
        found = pairloom.load(saved.with_name("other"))
        assert found.columns == columns
        assert same(found.state_, model.state_)
    model.set_params(columns=part)
    with pytest.raises(ValueError, match="were changed after it was fitted"):
        pairloom.save(model, saved.with_name("other"))


def test_a_file_from_before_there_were_columns_is_still_whole(saved):
    X = np.random.default_rng(0).normal(size=(40, 3))
    model = FPOGD(n_components=8, random_state=0).fit(pd.DataFrame(X, columns=[*"abc"]), X[:, 0] > 0)
    pairloom.save(model, saved.with_name("old"))
    header, arrays = read(saved.with_name("old"))
    state = header["state"]
    for table in (state["values"], state["kinds"], arrays):
        for path in [path for path in table if path.split(".")[0] == "columns"]:
            del table[path]
    del header["model"]["columns"], header["model"]["class_weight"]
    saved.with_name("old").write_bytes(sign(header, arrays))
    found = pairloom.load(saved.with_name("old"))
    assert found.feature_names_in_.tolist() == [*"abc"]
    frame = pd.DataFrame(X, columns=[*"abc"])
    np.testing.assert_array_equal(found.decision_function(frame), model.decision_function(frame))
    assert found.partial_fit(frame, X[:, 0] > 0).n_seen_ == 80


def arrays_with(name, place, value):
    def change(header, arrays):
        arrays[f"columns.{name}"][place] = value

    return change


def values_with(path, value):
    def change(header, arrays):
        header["state"]["values"][f"columns.{path}"] = value

    return change


def malformed_with(counts):
    def change(header, arrays):
        arrays["columns.malformed"] = np.array(counts, np.int64)

    return change


def more_columns(header, arrays):
    arrays["columns.kinds"] = np.append(arrays["columns.kinds"], 0)


def encoding_with(name, change):
    def apply(header, arrays):
        path = f"stream.encoding.{name}"
        arrays[path] = change(arrays[path].copy())

    return apply


def put(place, value):
    def change(array):
        array[place] = value
        return array

    return change


HOSTILE_ENCODING = {
    "codes beyond the sums": encoding_with("offsets", put(1, 10**6)),
    "fewer entries": encoding_with("sums", lambda array: array[:-1]),
    "a negative weight": encoding_with("sums", put((0, 0), -1.0)),
    "an infinite sum": encoding_with("sums", put((0, 1), np.inf)),
    "a sum too few": encoding_with("totals", lambda array: array[:-1]),
    "a weight without rows": encoding_with("totals", put(-1, 0.0)),
    "a number too few": encoding_with("numbers", lambda array: array[:, :-1]),
}

HOSTILE = {
    "an invalid kind": arrays_with("kinds", 0, 7),
    "a category too many": arrays_with("kinds", 0, 1),
    "a column that starts elsewhere": arrays_with("starts", 2, 5),
    "columns that do not start at 0": arrays_with("starts", 0, 1),
    "values without a weight": arrays_with("statistics", (MASS, 0), 0.0),
    "an invalid sum": arrays_with("statistics", (1, 0), np.nan),
    "an invalid code": arrays_with("statistics", (HIGH, 4), 20.0),
    "an infinite count": arrays_with("statistics", (COUNT, 1), np.inf),
    "an invalid layout": values_with("layout", 4),
    "another width": values_with("width", 3),
    "an invalid name": values_with("names.0", 3),
    "a duplicate name": values_with("names.0", "age"),
    "a name missing from the header": values_with("names.0", "sum"),
    "a duplicate category": values_with("categories.4.1", "ios"),
    "an empty category": values_with("categories.4.1", ""),
    "a category too long": values_with("categories.4.1", "a" * 65),
    "more columns": more_columns,
    "a negative count": malformed_with([-1] + [0] * 6),
    "too few counts": malformed_with([0]),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("model", ["saved", "encoded"])
def test_hostile_columns_are_refused(request, model, name):
    refuse(request.getfixturevalue(model), HOSTILE[name])


@pytest.mark.parametrize("name", HOSTILE_ENCODING)
def test_hostile_encodings_are_refused(encoded, name):
    refuse(encoded, HOSTILE_ENCODING[name])


def refuse(valid, change):
    header, arrays = read(valid)
    change(header, arrays)
    path = valid.with_name("hostile")
    path.write_bytes(sign(header, arrays))
    with pytest.raises(ModelFileError):
        pairloom.load(path)


@pytest.mark.filterwarnings("ignore")
def test_whatever_loads_encodes_and_learns(saved):
    frame, y = mixed(30, seed=2)
    header, arrays = read(saved)
    path, loaded = saved.with_name("fuzzed"), 0
    for seed in range(300):
        path.write_bytes(hostile(header, arrays, np.random.default_rng(seed), state_only=True))
        try:
            model = pairloom.load(path)
        except ModelFileError:
            continue
        loaded += 1
        # NumPy may warn about numbers that no stream produces (`test_persist_fuzz.py`).
        with suppress(ValueError, ArithmeticError, IndexError):
            model.predict(frame)
            model.partial_fit(frame, y)
    assert loaded
