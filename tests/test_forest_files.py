"""Forests in files: they continue exactly, and no hostile file makes an endless loop."""

import json
from dataclasses import replace

import numpy as np
import pytest

from pairloom import AUCClassifier, Learner, Stream, load, save
from pairloom.base.tree import cast, copy, same
from pairloom.estimators import FeatureTransformer
from pairloom.features import Forest
from pairloom.memory import Latest, Strata
from pairloom.models import StepPath
from pairloom.persist import ModelFileError
from pairloom.race.mixing import soft_clip
from pairloom.steps import AdaGrad, Constant
from pairloom.systems import FPOGD
from tests.conftest import make_stream
from tests.hostile import read, sign
from tests.test_persist import assert_goes_on

ONCE = Forest(5, max_leaves=8, n_rows=64)
RENEWED = Forest(5, max_leaves=8, n_rows=60, growth="renewed")
BOOSTED = Forest(6, max_leaves=8, n_rows=60, growth="boosted")


def learner(features, **changes):
    return Learner(features, **{"memory": Latest(size=4), "step": AdaGrad(0.1), "seed": 0, **changes})


LONG, RANDOM = replace(ONCE, n_rows=2000), replace(ONCE, labels=False)
LEVELS, SCALED = replace(ONCE, levels=(1, 3)), replace(RENEWED, scale="standard")
BY_INPUT = Strata(max_strata=4, cluster_in="input")

MODELS = {
    "estimator": lambda: FPOGD(features=ONCE, random_state=0),
    "long warm start": lambda: FPOGD(features=LONG, random_state=0),
    "levels": lambda: Stream(learner(LEVELS)),
    "random": lambda: Stream(learner(RANDOM, average="mean")),
    "renewed": lambda: Stream(learner(RENEWED)),
    "renewed, scaled": lambda: FPOGD(features=SCALED, cluster_in="input", random_state=0),
    "boosted, one step": lambda: Stream(learner(BOOSTED, step=Constant(0.1), memory=BY_INPUT)),
    "boosted": lambda: Stream(learner(BOOSTED, dtype="float64")),
    "reference": lambda: Stream(learner(RENEWED, engine="reference")),
    "path": lambda: Stream(StepPath(learner(ONCE), [0.1, 0.5])),
    "renewed path": lambda: Stream(StepPath(learner(RENEWED), [0.1, 0.5])),
}  # fmt: skip


@pytest.mark.parametrize("at", [1, 40, 64, 65, 300, 1100])
@pytest.mark.parametrize("name", MODELS)
def test_it_goes_on(name, at, tmp_path):
    X, y = make_stream("random", at + 150, 4)
    assert_goes_on(MODELS[name](), X, y, at, tmp_path / "model")


@pytest.mark.parametrize("labels", [True, False])
def test_a_transformer_goes_on(labels, tmp_path):
    X, y = make_stream("random", 200, 4)
    model = FeatureTransformer(Forest(5, max_leaves=8, labels=labels, levels=(2,)), random_state=0).fit(X, y)
    save(model, tmp_path / "model")
    assert (load(tmp_path / "model").transform(X) != model.transform(X)).nnz == 0


@pytest.fixture(params=["once", "renewed", "transformer"])
def written(request, tmp_path):
    """A file, its content, and the path of its nodes."""
    X, y = make_stream("random", 200, 4)
    path = tmp_path / "model"
    if request.param == "transformer":
        save(FeatureTransformer(ONCE, random_state=0).fit(X, y), path)
        return path, *read(path), "map"
    save(Stream(learner(ONCE if request.param == "once" else RENEWED)).partial_fit(X, y), path)
    return path, *read(path), "learned.phi"


def refused(path, header, arrays, match):
    path.write_bytes(sign(header, arrays))
    with pytest.raises(ModelFileError, match=match):
        load(path)


def test_walks_that_do_not_end_are_refused(written):
    path, header, arrays, phi = written
    yes = arrays[f"{phi}.nodes.yes"][1]
    last = len(yes) - 1
    inner, leaf = (
        int(np.flatnonzero(found)[at])
        for found, at in ((yes > np.arange(len(yes)), -1), (yes == np.arange(len(yes)), 0))
    )
    pairs = ((inner, 0), (inner, inner), (0, 0), (last, 3), (last, 0), (inner, last))
    changes = [("yes", at, value) for at, value in pairs]
    for name, at, value in (*changes, ("values", leaf, 0.5), ("missing_yes", leaf, False)):
        whole = arrays[f"{phi}.nodes.{name}"]
        changed = whole.copy()
        changed[1, at] = value
        if (changed != whole).any():
            refused(path, header, {**arrays, f"{phi}.nodes.{name}": changed}, "nodes must have every node after its")
    load_again = {**arrays}
    path.write_bytes(sign(header, load_again))
    load(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [("columns", 4), ("columns", -1), ("yes", 99), ("yes", -1), ("cells", 8), ("cells", -1)],
)
def test_numbers_out_of_range_are_refused(written, name, value):
    path, header, arrays, phi = written
    changed = arrays[f"{phi}.nodes.{name}"].copy()
    changed.reshape(-1)[7] = value
    refused(path, header, {**arrays, f"{phi}.nodes.{name}": changed}, rf"nodes\.{name} has numbers outside 0")


@pytest.mark.parametrize("name", ["columns", "values", "yes", "missing_yes", "cells"])
def test_shapes_and_dtypes_are_those_of_the_forest(written, name):
    path, header, arrays, phi = written
    where = f"{phi}.nodes.{name}"
    refused(path, header, {**arrays, where: arrays[where][..., :-1]}, r"must have an axis of \d+, not \d+")
    refused(path, header, {**arrays, where: arrays[where][:4]}, "must have an axis of 5, not 4")
    refused(path, header, {**arrays, where: np.zeros(arrays[where].shape, np.int64)}, "must have the dtype")
    refused(path, header, {key: value for key, value in arrays.items() if key != where}, "must be an array")


def test_trees_of_more_nodes_than_leaves_allow_are_refused(written):
    path, header, arrays, phi = written
    wide = {name: array for name, array in arrays.items() if name.startswith(f"{phi}.nodes.")}
    more = 16 - wide[f"{phi}.nodes.yes"].shape[1]
    here = {
        f"{phi}.nodes.yes": np.arange(16 - more, 16),
        f"{phi}.nodes.values": np.inf,
        f"{phi}.nodes.missing_yes": True,
    }
    for name, array in wide.items():
        fill = np.full((*array.shape[:-1], more), 0) + here.get(name, 0)
        arrays[name] = np.concatenate([array, fill.astype(array.dtype)], axis=-1)
    refused(path, header, arrays, "must have at most 15 nodes in a tree")


@pytest.mark.parametrize("cells", [40, -1, 2**31 - 1])
def test_points_out_of_range_are_refused(cells, tmp_path):
    X, y = make_stream("random", 200, 4)
    for model in (learner(ONCE), StepPath(learner(ONCE), [0.1, 0.5])):
        save(Stream(model).partial_fit(X, y), tmp_path / "model")
        header, arrays = read(tmp_path / "model")
        arrays["learned.cells"][0, 1] = cells
        refused(tmp_path / "model", header, arrays, "learned.cells has numbers outside 0 ... 40")


@pytest.mark.parametrize("features", [RENEWED, BOOSTED], ids=str)
def test_a_growing_forest_has_planted_what_was_due_and_seen_all_rows(features, tmp_path):
    X, y = make_stream("random", 200, 4)
    path = tmp_path / "model"
    for n in (1, 64, 65, 200):
        save(Stream(learner(features)).partial_fit(X[:n], y[:n]), path)
        header, arrays = read(path)
        values = header["state"]["values"]
        for name, right in (("planted", values["learned.phi.planted"]), ("sample.count", n)):
            assert values[f"learned.phi.{name}"] == right
            for wrong in (right - 1, right + 1, 2**31 - 1, 2**52, -1, 1.0, None):
                changed = json.loads(json.dumps(header))
                changed["state"]["values"][f"learned.phi.{name}"] = wrong
                refused(path, changed, arrays, f"learned.phi.{name} must be")
        path.write_bytes(sign(header, arrays))
        load(path)


def test_a_file_of_another_forest_is_refused(tmp_path):
    X, y = make_stream("random", 200, 4)
    path = tmp_path / "model"
    save(Stream(learner(ONCE)).partial_fit(X, y), path)
    header, arrays = read(path)
    for name, value in (
        ("n_trees", 4), ("max_leaves", 9), ("levels", {"tuple": [2]}), ("growth", "renewed"), ("n_trees", 10**15),
        ("max_leaves", 10**15), ("levels", [2]), ("levels", {"tuple": list(range(1, 10**5))}),
    ):  # fmt: skip
        changed = json.loads(json.dumps(header))
        changed["model"]["model"]["features"][name] = value
        refused(path, changed, arrays, "the state in the file|not describe a valid model")


def test_files_hold_what_is_needed_and_no_more(tmp_path):
    X, y = make_stream("random", 300, 4)
    stream = Stream(learner(RENEWED)).partial_fit(X, y)
    save(stream, tmp_path / "model")
    header, arrays = read(tmp_path / "model")
    assert header["model"]["model"]["features"]["part"] == "Forest"
    assert arrays["learned.phi.sample.columns"].shape == (4, 60)
    assert arrays["learned.cells"].shape == (8, 5)
    assert "learned.lazy.columns" not in arrays
    assert same(load(tmp_path / "model").state, stream.state)


@pytest.mark.parametrize("at", [5, 300])
def test_a_race_of_a_forest_learns_scores_and_saves_missing_values(at, tmp_path):
    X, y = make_stream("random", 400, 3)
    X[::7, 1] = np.nan
    model = AUCClassifier(features=Forest(5), random_state=0).fit(X[:at], y[:at])
    save(model, tmp_path / "race")
    found = load(tmp_path / "race")
    for one in (model, found):
        one.partial_fit(X[at:], y[at:])
    assert same(model.state_, found.state_)
    scores = model.decision_function(X)
    np.testing.assert_array_equal([model.decision_function(x[None])[0] for x in X[:20]], scores[:20])
    (entrant,), mixture = model.stream_.learned.entrants, model.stream_.learned.mixture
    own = entrant.model.score(entrant.stream.learned, X).reshape(len(X), *mixture.slopes.shape)  # as rows are learned
    expected = mixture.weights[0] * soft_clip(((own - mixture.shifts) * mixture.slopes).sum(axis=1)[:, 0])
    np.testing.assert_allclose(expected, model.stream_.score_rows(X.astype(np.float32)), rtol=1e-4, atol=1e-5)
    save(model.frozen(), tmp_path / "frozen")
    np.testing.assert_allclose(load(tmp_path / "frozen").decision_function(X), scores, rtol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_values_of_a_row_are_next_to_each_other_however_the_sample_was_made(dtype, tmp_path):
    """A file has the sample by columns, as files did before rows were kept together."""
    X, y = make_stream("random", 300, 4)
    stream = Stream(replace(learner(RENEWED), dtype=dtype)).partial_fit(X, y)
    save(stream, tmp_path / "model")
    sample = stream.learned.phi.sample
    by_columns = replace(sample, columns=np.ascontiguousarray(sample.columns))
    for one in (sample, by_columns, copy(sample), cast(sample, "float64"), load(tmp_path / "model").learned.phi.sample):
        assert one.X.flags.c_contiguous
        assert one.X.shape == (60, 4)
        assert one.rows(20).X.flags.c_contiguous
        np.testing.assert_array_equal(one.columns, sample.columns)
    np.testing.assert_array_equal(read(tmp_path / "model")[1]["learned.phi.sample.columns"], sample.columns)
