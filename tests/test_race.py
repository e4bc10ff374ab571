"""Race, bit for bit: replaced candidates, calls and pickles at critical rows, scores before learning, bounded state."""

import pickle
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_array

from pairloom import AUCClassifier, Stream, save
from pairloom.base.clock import REFIT_ROWS
from pairloom.base.tree import copy
from pairloom.features import Forest, Identity, Landmarks, RandomFourier
from pairloom.pairs import OppositeClass
from pairloom.race import Budget, Descent, OneMap, Race
from pairloom.stream import ArrivalScores
from tests.conftest import make_stream
from tests.generic import SMALL, assert_same

HARD = (7, 8, 15, 16, 31, 33, 127, 128, 160, 170, 192, 193, 511, 512, 640, 767, 769, 1023, 1024, 1056, 1100, 2047, 2048,
        2049, 16_384)  # fmt: skip
ROWS = 16_600


def race(**changes):
    return Race(**{"portfolio": SMALL, "seed": 0, **changes})


@pytest.fixture(scope="module")
def rows():
    X, y = make_stream("random", ROWS, 4)
    weight = np.random.default_rng(1).choice([0.5, 1.0, 2.0], ROWS)
    return X, y, weight


@pytest.fixture(scope="module")
def whole(rows):
    return Stream(race(), [ArrivalScores()]).partial_fit(*rows)


def test_cuts_and_pickles_at_hard_rows_do_not_matter(rows, whole):
    parts, rng = Stream(race(), [ArrivalScores()]), np.random.default_rng(0)
    cuts = {0, 1, 2, ROWS, *HARD, *np.cumsum(rng.integers(1, 900, 30)).tolist()}
    for start, end in pairwise(sorted(cut for cut in cuts if cut <= ROWS)):
        parts.partial_fit(*(part[start:end] for part in rows))
        parts.score(rows[0][:3])
        if end in HARD:
            parts = pickle.loads(pickle.dumps(parts))
    assert_same(whole.state, parts.state)
    np.testing.assert_array_equal(whole.score(rows[0][:100]), parts.score(rows[0][:100]))


def test_files_are_the_same_bytes_however_the_rows_came(rows, tmp_path):
    X, y, weight = rows
    whole, cut = (AUCClassifier(portfolio=SMALL, random_state=0) for _ in range(2))
    for one in (whole, cut):
        one.partial_fit(X[:1], y[:1], classes=[-1, 1], sample_weight=weight[:1])
    for start, end in pairwise((1, *HARD[:-4])):
        whole.partial_fit(X[start:end], y[start:end], sample_weight=weight[start:end])
        middle = (start + end) // 2
        for part in (slice(start, middle), slice(middle, end))[middle == start :]:
            cut.partial_fit(X[part], y[part], sample_weight=weight[part])
        save(whole, tmp_path / "whole")
        save(cut, tmp_path / "cut")
        assert (tmp_path / "whole").read_bytes() == (tmp_path / "cut").read_bytes(), end


def test_rows_one_by_one_are_rows_in_one_call(rows):
    X, y, weight = rows
    one, many = (AUCClassifier(portfolio=SMALL, random_state=0) for _ in range(2))
    for x, label, w in zip(X[:840], y[:840], weight[:840], strict=True):
        one.learn_one(x, label, sample_weight=w)
    assert_same(one, many.partial_fit(X[:840], y[:840], sample_weight=weight[:840]))


# The reference engine is slow: early stages only.
@pytest.mark.parametrize(
    ("kind", "stage"),
    [(kind, stage) for kind in ("dense", "csr", "three classes", "exact=None", "reference") for stage in REFIT_ROWS
     if kind != "reference" or stage <= 128],
)  # fmt: skip
def test_what_took_over_is_the_model_that_began_with_those_rows(kind, stage, rows):
    X, y, weight = rows
    model, end = race(), REFIT_ROWS[stage] + 21
    if kind == "csr":
        X = csr_array(np.where(np.abs(X) < 0.5, 0.0, X))
    elif kind == "three classes":
        y, model = np.digitize(X[:, 0], [-0.5, 0.5]), race(pairs=OppositeClass(3))
    elif kind == "exact=None":
        model = race(portfolio=replace(SMALL, exact=None))
    elif kind == "reference":
        model = race(engine="reference")
    stream = Stream(model).partial_fit(X[:end], y[:end], weight[:end])
    assert not stream.learned.coming
    stream.model.learn_waiting(stream.learned)
    found = [one for one in stream.model.entrants(stream.learned) if one.stage]
    assert found
    for one in found:
        assert one.stage == stage or (stage == 1024 and one.stage == 512 and not one.large)
        assert one.candidate.refits
        alone = Stream(one.model)
        batch = alone.check(X[:end], y[:end], weight[:end])
        alone.start_with(batch[: one.stage])
        alone.learn(batch)
        assert_same(one.stream.learned, alone.learned)
        assert one.stream.t == alone.n_seen == end
    for one in stream.learned.entrants:
        if not one.stage:
            alone = Stream(one.model).partial_fit(X[:end], y[:end], weight[:end])
            assert_same(one.stream.learned, alone.learned)
            assert_same(one.stream.observed, alone.state.observed)


def test_what_comes_has_taken_in_its_part_of_the_rows_before(rows):
    X, y, weight = rows
    stream, seen = Stream(race()), {}
    cuts = (0, 127, 128, 159, 160, 191, 192, 512, 544, 640, 767, 768, 1024, 1056, 1500, 2047, 2048)
    for start, end in pairwise(cuts):
        stream.partial_fit(X[start:end], y[start:end], weight[start:end])
        seen[end] = {one.stream.t for one in stream.learned.coming}
    assert seen == {
        127: set(), 128: {0}, 159: {0}, 160: {96}, 191: {96}, 192: set(), 512: {0}, 544: {96}, 640: {384}, 767: {672},
        768: set(), 1024: {0}, 1056: {64}, 1500: {2 * (1472 - 1024)}, 2047: {2 * (2016 - 1024)}, 2048: set(),
    }  # fmt: skip
    assert stream.learned.kept is None


@pytest.mark.parametrize("before", [190, 760, 2040])
def test_a_take_over_rewrites_no_score(before, rows):
    X, y, weight = rows
    stream = Stream(race(), [ArrivalScores()]).partial_fit(X[:before], y[:before], weight[:before])
    names = {one.name: copy(one.recent) for one in stream.learned.entrants}
    arrivals, looked = copy(stream.state.observed["arrivals"]), stream.learned.evaluated
    after = before + 40
    stream.partial_fit(X[before:after], y[before:after], weight[before:after])
    for one in stream.learned.entrants:
        ring, old = one.recent, names[one.name]
        kept = np.arange(max(0, after - 4096), old.count)
        np.testing.assert_array_equal(ring.scores[kept % 4096], old.scores[kept % 4096])
    kept = np.arange(max(0, after - 4096), looked) % 4096
    np.testing.assert_array_equal(stream.state.observed["arrivals"].scores[kept], arrivals.scores[kept])


@pytest.mark.parametrize("first", [960, 1100, 9216])
def test_scores_on_arrival_are_those_before_learning_and_recent_ones_those_of_the_mixture_now(first, rows):
    """At row 1,024 weights change; between solutions, exact models score with the last one."""
    X, y, _ = rows
    X, last = X.astype(np.float32).astype(float), first - first % 128 + 128
    stream = Stream(race(dtype="float64"), [ArrivalScores()]).partial_fit(X[:first], y[:first])
    said = []
    for t in range(first, last):
        said.append(stream.score(X[t : t + 1])[0])
        stream.partial_fit(X[t : t + 1], y[t : t + 1])
    places = np.arange(first, last) % 4096
    recent = stream.state.observed["recent"]
    assert recent.count == last
    arrived = stream.state.observed["arrivals"].scores[places, 0]
    np.testing.assert_allclose(arrived, said, rtol=1e-9, atol=1e-9)
    assert np.array_equal(recent.scores[places, 0], arrived) == (last != 1024)
    np.testing.assert_array_equal(recent.labels[places], y[first:last] > 0)


def test_the_state_is_bounded(whole):
    rng = np.random.default_rng(2)
    stream, sizes = Stream(race()), []
    X = rng.normal(size=(512, 4))
    y = np.where(np.square(X).sum(axis=1) + X[:, 0] > 5, 1, -1)
    for _ in range(60):
        stream.partial_fit(X, y)
        sizes.append(stream.nbytes)
    t = 512 * np.arange(1, 61)
    assert stream.n_seen == t[-1] == 30_720
    assert len(set(np.array(sizes)[t >= 20_480])) == 1
    assert max(sizes) < 1.2 * sizes[t.tolist().index(3584)] + 2**20
    assert stream.learned.kept is None
    assert len(stream.learned.standings) <= 24 * 6
    assert whole.learned.kept is None


MAPS = {
    "identity": Identity(), "scaled": Identity(scale="standard"), "fourier": RandomFourier(24),
    "landmarks": Landmarks(16), "once": Forest(6, max_leaves=8, n_rows=64),
    "renewed": Forest(6, max_leaves=8, n_rows=64, growth="renewed"),
    "boosted": Forest(6, max_leaves=8, n_rows=64, growth="boosted"),
}  # fmt: skip


@pytest.mark.parametrize("name", MAPS)
def test_races_on_one_map(name, rows):
    X, y, weight = rows
    features, n = MAPS[name], 1300
    portfolio = OneMap(features=features, exact=SMALL.exact, steps=SMALL.steps, descent=SMALL.descent)
    whole, parts = (Stream(race(portfolio=portfolio)) for _ in range(2))
    whole.partial_fit(X[:n], y[:n], weight[:n])
    for start, end in pairwise((0, 7, 8, 33, 130, 192, 600, 1050, n)):
        parts = pickle.loads(pickle.dumps(parts.partial_fit(*(part[start:end] for part in (X, y, weight)))))
    assert_same(whole.state, parts.state)
    assert {one.candidate.features for one in whole.model.entrants(whole.learned)} == {features}
    refits = [features.needs_data or isinstance(one.candidate.head, Descent) for one in whole.learned.entrants]
    assert [one.stage for one in whole.learned.entrants] == [512 if one else 0 for one in refits]
    assert (whole.learned.kept is None) == (not any(refits))
    assert whole.auc()[0] > (0.5 if "i" in name[:1] or name == "scaled" else 0.7)


def test_a_budget_that_cannot_keep_the_rows_keeps_what_it_has(rows):
    X, y, _ = rows
    budget = Budget(bytes=4 * 4 * 4 * 768)  # enough for 768 rows of 4 columns in a quarter
    portfolio = replace(SMALL, forests=(), kernels=())
    stream = Stream(race(portfolio=portfolio, budget=budget)).partial_fit(X[:1023], y[:1023])
    assert stream.learned.kept.count == 1023
    stream.partial_fit(X[1023:2200], y[1023:2200])
    assert stream.learned.kept is None
    assert [(one.name, one.stage) for one in stream.learned.entrants] == [("linear", 512)]
    assert np.isfinite(stream.score(X)).all()


def test_steady_entrants_learn_rows_when_the_race_acts(rows):
    X, y, weight = rows
    stream = Stream(race()).partial_fit(X[:4_103], y[:4_103], weight[:4_103])
    state = stream.learned
    assert {one.model.steady for one in state.entrants} == {True, False}
    assert state.n_waiting == 7
    assert state.due == 4_224
    assert {one.stream.t for one in state.entrants if one.model.steady} == {4_096}
    assert {one.stream.t for one in state.entrants if not one.model.steady} == {4_103}
    before = stream.score(X[5_000:5_100])
    stream.model.learn_waiting(state)
    assert {one.stream.t for one in state.entrants} == {4_103}
    assert stream.score(X[5_000:5_100]).tobytes() == before.tobytes()
