"""Files of races: they continue bit for bit from every stage, and impossible states are rejected."""

import copy
from functools import cache

import numpy as np
import pytest
from scipy.sparse import csr_array

from pairloom import AUCClassifier, Stream, load, save
from pairloom.base.tree import same
from pairloom.features import Forest
from pairloom.persist import ModelFileError
from pairloom.race import Budget, OneMap, Race
from tests.conftest import make_stream
from tests.generic import SMALL
from tests.hostile import read, sign

STAGES = [1, 7, 8, 15, 16, 30, 32, 100, 130, 170, 192, 700, 1050, 1100, 2047, 2048, 2200]


def model():
    return AUCClassifier(portfolio=SMALL, budget=Budget(2**24), random_state=0)


def assert_goes_on(model, X, y, at, more, path):
    """Save, load, learn on in two calls: the same state, scores and bytes as without."""
    stream = isinstance(model, Stream)
    save(model.partial_fit(X[:at], y[:at], **({} if stream else {"classes": np.unique(y)})), path)
    found = load(path)
    again = path.with_suffix(".again")
    save(found, again)
    assert again.read_bytes() == path.read_bytes()
    for rows in (slice(at, at + 1), slice(at + 1, at + more)):
        for one in (model, found):
            one.partial_fit(X[rows], y[rows])
    save(found, again)
    save(model, path)
    assert again.read_bytes() == path.read_bytes()
    state = (lambda one: one.state) if stream else (lambda one: one.state_)
    assert same(state(found), state(model))


@pytest.mark.parametrize("at", STAGES)
def test_a_race_goes_on_from_a_file_at_every_stage(at, tmp_path):
    X, y = make_stream("random", at + 150, 3)
    assert_goes_on(model(), X, y, at, 150, tmp_path / "race")


def test_a_race_goes_on_after_candidates_have_left(tmp_path):
    X, y = make_stream("random", 16_700, 3)
    one = model().partial_fit(X[:16_500], y[:16_500])
    assert len(one.stream_.learned.entrants) < 5
    save(one, tmp_path / "race")
    found = load(tmp_path / "race")
    for race in (one, found):
        race.partial_fit(X[16_500:], y[16_500:])
    assert same(one.state_, found.state_)
    np.testing.assert_array_equal(one.predict_proba(X), found.predict_proba(X))
    assert one.race_["name"].tolist() == found.race_["name"].tolist()


@pytest.mark.parametrize("at", [12, 150, 600])
def test_so_does_one_of_three_classes_and_csr_rows(at, tmp_path):
    X, score = make_stream("random", at + 150, 6)
    X[np.abs(X) < 0.7] = 0.0
    y = np.digitize(X.sum(axis=1) + score, [-1, 1])
    y[:3] = [0, 1, 2]
    assert_goes_on(model(), csr_array(X), y, at, 150, tmp_path / "race")


@pytest.mark.parametrize("growth", ["once", "renewed", "boosted"])
@pytest.mark.parametrize("at", [5, 12, 140, 600])
def test_so_does_one_of_a_forest(growth, at, tmp_path):
    X, y = make_stream("random", at + 150, 3)
    forest = Forest(6, max_leaves=8, n_rows=64, growth=growth)
    race = Race(portfolio=OneMap(features=forest, steps=SMALL.steps), seed=0)
    assert_goes_on(Stream(race), X, y, at, 150, tmp_path / "race")


# Errors.

RACE = "stream.learned"


@pytest.fixture(scope="module")
def valid(tmp_path_factory):
    """A valid file of a race after so many rows: its header and arrays."""
    folder = tmp_path_factory.mktemp("races")

    @cache
    def of(at):
        X, y = make_stream("random", at, 3)
        save(model().partial_fit(X, y, classes=[-1, 1]), folder / str(at))
        return read(folder / str(at))

    return of


def refused(header, arrays, path):
    path.write_bytes(sign(header, arrays))
    with pytest.raises(ModelFileError) as error:
        load(path)
    return str(error.value)


def moved(table, old, new):
    """Move everything below a path."""
    for name in [name for name in table if name == old or name.startswith(f"{old}.")]:
        table[new + name[len(old) :]] = table.pop(name)


def taken_out(header, arrays, kind, index):
    """Take an item out of a list."""
    values, kinds = (header["state"][name] for name in ("values", "kinds"))
    count = int(kinds[f"{RACE}.{kind}"].removeprefix("list "))
    for table in (arrays, values, kinds):
        for name in [name for name in table if name.startswith(f"{RACE}.{kind}.{index}.")]:
            del table[name]
        table.pop(f"{RACE}.{kind}.{index}", None)
        for later in range(index + 1, count):
            moved(table, f"{RACE}.{kind}.{later}", f"{RACE}.{kind}.{later - 1}")
    kinds[f"{RACE}.{kind}"] = f"list {count - 1}"


VALUES = {
    "an invalid name": (170, "entrants.0.name", "linear, tall"),
    "a name twice": (170, "entrants.5.name", "kernel, width 1, wide"),
    "a duplicate coming name": (170, "coming.2.name", "kernel, width 1, wide"),
    "an invalid stage": (170, "entrants.3.stage", 7),
    "a stage without rules": (170, "entrants.0.stage", 8),
    "no stage with rules": (170, "entrants.3.stage", 0),
    "another stage of what comes": (170, "coming.0.stage", 32),
    "a size of what cannot grow": (170, "entrants.3.large", 16),
    "a size that is too large": (2200, "entrants.4.large", 10**6),
    "rows of an entrant": (170, "entrants.1.stream.t", 169),
    "rows of what comes": (170, "coming.0.stream.t", 95),
    "columns of an entrant": (170, "entrants.1.stream.n_features", 2),
    "rows of the race": (170, "t", 171),
    "columns of the race": (170, "n_features", 4),
    "evaluated rows": (170, "evaluated", 127),
    "rows to evaluate": (170, "evaluated", 170),
    "rows kept": (170, "kept.count", 169),
    "models of the evidence": (170, "evidence.n_models", 3),
    "windows that were closed": (1700, "evidence.closed", 9),
    "a standing that is NaN": (170, "standings.0.auc", "much"),
    "a row of a standing": (170, "standings.0.row", -1),
    "a negative count": (170, "evidence.closed", -1),
}


@pytest.mark.parametrize("change", VALUES)
def test_values_that_no_race_has_are_refused(change, valid, tmp_path):
    at, name, value = VALUES[change]
    header, arrays = copy.deepcopy(valid(at)[0]), dict(valid(at)[1])
    assert f"{RACE}.{name}" in header["state"]["values"], sorted(header["state"]["values"])
    header["state"]["values"][f"{RACE}.{name}"] = value
    assert "does not fit its model" in refused(header, arrays, tmp_path / "hostile")


ARRAYS = {
    "weights of a mixture": (170, "mixture.weights", lambda a: a[:-1]),
    "slopes of a mixture": (170, "mixture.slopes", lambda a: a[:-1]),
    "shifts of a mixture": (170, "mixture.shifts", lambda a: np.repeat(a, 2, axis=1)),
    "integer weights": (170, "mixture.weights", lambda a: a.astype(np.int64)),
    "a mixture before there is one": (12, "mixture.weights", lambda a: np.ones(3)),
    "areas of windows": (1700, "evidence.areas", lambda a: a[:, :-1]),
    "areas of too few windows": (1700, "evidence.areas", lambda a: a[1:]),
    "scores of a window": (1700, "evidence.raw.0.scores", lambda a: a[:, :-1]),
    "labels of a window": (1700, "evidence.raw.1.labels", lambda a: a[:-1]),
    "scores of the open window": (170, "evidence.open.0.scores", lambda a: a[:, :, :0]),
    "targets": (170, "evidence.targets", lambda a: np.append(a, 1.0)),
    "counts of classes": (170, "counts", lambda a: np.append(a, 1.0)),
    "kept rows": (170, "kept.batches.0.X", lambda a: a[:, :2]),
    "kept rows that are NaN": (170, "kept.batches.0.X", lambda a: np.full_like(a, np.nan)),
    "kept labels": (170, "kept.batches.0.y", lambda a: a + 5.0),
    "too few kept rows": (170, "kept.batches.0.X", lambda a: a[1:]),
    "weights of an entrant": (170, "entrants.3.stream.learned.w", lambda a: a[:, :-1]),
    "scores of an entrant": (170, "entrants.2.stream.observed.recent.scores", lambda a: a[:, :-1]),
    "moments of what comes": (170, "coming.1.stream.learned.memory.scatter", lambda a: a[:, 1:]),
}


@pytest.mark.parametrize("change", ARRAYS)
def test_arrays_that_no_race_has_are_refused(change, valid, tmp_path):
    at, name, way = ARRAYS[change]
    header, arrays = copy.deepcopy(valid(at)[0]), dict(valid(at)[1])
    arrays[f"{RACE}.{name}"] = np.ascontiguousarray(way(arrays[f"{RACE}.{name}"]))
    assert "does not fit its model" in refused(header, arrays, tmp_path / "hostile")


NUMBERS = {
    "learned.evidence.targets": np.nan,
    "learned.evidence.areas": np.nan,
    "learned.evidence.raw.0.labels": 2.0,
    "learned.evidence.raw.0.weights": 0.0,
    "learned.evidence.raw.0.scores": np.inf,
    "learned.counts": np.nan,
    "learned.mixture.weights": -1.0,
    "learned.standings.0.auc": {"float": "nan"},
    "learned.standings.0.row": 1701,
    "learned.entrants.3.stream.learned.tally": np.nan,
    "learned.entrants.3.stream.learned.memory.scatter": np.inf,
    "learned.entrants.3.stream.learned.phi.inner.scaler.scale": 0.0,
    "learned.entrants.2.stream.learned.phi.sample.scores": np.nan,
    "learned.entrants.2.stream.observed.recent.count": 1699,
    "observed.recent.count": 1700,
    "observed.recent.labels": 0.5,
    "observed.recent.weights": -1.0,
    "observed.arrivals.count": 1663,
    "observed.calibration.a": np.nan,
    "observed.calibration.b": np.inf,
    "observed.calibration.row": 1701,
    "observed.drift.count": 2**52,
    "observed.history.each": 2**30,
}


@pytest.mark.parametrize("path", NUMBERS)
def test_a_number_that_does_not_fit_the_others_is_refused(path, valid, tmp_path):
    header, arrays = copy.deepcopy(valid(1700)[0]), dict(valid(1700)[1])
    if f"stream.{path}" in arrays:
        arrays[f"stream.{path}"] = arrays[f"stream.{path}"].copy()
        arrays[f"stream.{path}"].reshape(-1)[0] = NUMBERS[path]
    else:
        assert f"stream.{path}" in header["state"]["values"]
        header["state"]["values"][f"stream.{path}"] = NUMBERS[path]
    assert f"stream.{path.rpartition('.')[0]}" in refused(header, arrays, tmp_path / "hostile")


@pytest.mark.parametrize(("at", "kind"), [(170, "entrants"), (2100, "entrants"), (1700, "evidence.raw"),
                                          (170, "evidence.open")])  # fmt: skip
def test_lists_that_are_too_short_are_refused(at, kind, valid, tmp_path):
    header, arrays = copy.deepcopy(valid(at)[0]), dict(valid(at)[1])
    taken_out(header, arrays, kind, 0)
    if kind == "evidence.open":  # a race may have no open window
        (tmp_path / "open").write_bytes(sign(header, arrays))
        load(tmp_path / "open")
        return
    assert "does not fit its model" in refused(header, arrays, tmp_path / "hostile")


def test_first_rows_must_be_there_while_something_comes(valid, tmp_path):
    header, arrays = copy.deepcopy(valid(170)[0]), dict(valid(170)[1])
    values, kinds = header["state"]["values"], header["state"]["kinds"]
    for table in (arrays, values, kinds):
        for name in [name for name in table if name == f"{RACE}.kept" or name.startswith(f"{RACE}.kept.")]:
            del table[name]
    values[f"{RACE}.kept"] = None
    assert "must have replaced the old entrants" in refused(header, arrays, tmp_path / "hostile")


def test_first_rows_must_not_be_there_after_row_2048(valid, tmp_path):
    header, arrays = copy.deepcopy(valid(2200)[0]), dict(valid(2200)[1])
    X, y = make_stream("random", 2200, 3)
    values, kinds = header["state"]["values"], header["state"]["kinds"]
    assert values.pop(f"{RACE}.kept") is None
    values[f"{RACE}.kept.count"] = 2200
    kinds |= {f"{RACE}.kept": "Kept", f"{RACE}.kept.batches": "list 1", f"{RACE}.kept.batches.0": "Batch"}
    rows = {"X": X.astype(np.float32), "y": (y > 0).astype(float), "weight": np.ones(2200)}
    rows["query"] = np.zeros(2200, np.int64)
    arrays |= {f"{RACE}.kept.batches.0.{name}": array for name, array in rows.items()}
    assert "must be the first 2200 rows, up to row 2048" in refused(header, arrays, tmp_path / "hostile")


def test_an_unknown_candidate_in_the_portfolio_is_no_entrant(valid, tmp_path):
    header, arrays = copy.deepcopy(valid(170)[0]), dict(valid(170)[1])
    header["model"]["portfolio"]["kernels"] = {"tuple": [{"tuple": ["wide", 1.0]}]}
    assert "is not a candidate of this race" in refused(header, arrays, tmp_path / "hostile")
