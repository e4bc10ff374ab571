"""Encodings of mixed columns: against a slow version, and through models."""

from math import log

import numpy as np
import pandas as pd
import pytest

import pairloom
from pairloom import AUCClassifier, Stream
from pairloom.base.batch import Batch
from pairloom.base.tree import copy, nbytes, same
from pairloom.estimators import BoostingClassifier
from pairloom.features.encoding import Encoding
from pairloom.models.boosting import Boosting
from pairloom.persist import ModelFileError
from tests.hostile import read, sign
from tests.mixed import mixed, records

KINDS = "ncncp"


def rows(n, seed=0, n_classes=2):
    """Return a batch of compact rows: codes in columns 1 and 3, missing values everywhere."""
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [rng.normal(size=n), rng.integers(0, 40, n), rng.normal(size=n), rng.integers(0, 3, n), rng.random(n)]
    )
    X[rng.random(X.shape) < 0.3] = np.nan
    y = rng.integers(0, n_classes, n).astype(float) if n_classes else rng.normal(size=n)
    return Batch(X, y, rng.choice([0.5, 1.0, 3.0], n), np.zeros(n, np.int64))


def value_by_formula(mass, hits, everyone, unit, is_class):
    """The number that represents a category, as the docstring of Encoding defines it."""
    all_mass, all_hits = everyone
    if not is_class:
        return (hits + 10 * unit * all_hits / all_mass) / (mass + 10 * unit) - all_hits / all_mass
    share = (all_hits + unit / 2) / (all_mass + unit)
    prior = unit * max(10, 2 / min(share, 1 - share))
    p = (hits + prior * share) / (mass + prior)
    return log(p / (1 - p)) - log(share / (1 - share))


def encode_slowly(batch, targets):
    """Encode rows one by one with dictionaries: codes, numbers, statistics, filled numbers, indicators."""
    n_targets, out = max(1, len(targets)), []
    seen, everyone, means = {}, np.zeros(1 + n_targets), {j: [0.0, 0.0, 0] for j in (0, 2, 4)}
    for i, (x, y, weight) in enumerate(zip(batch.X, batch.y, batch.weight, strict=True)):
        keys = [(j, -1 if np.isnan(x[j]) else int(x[j])) for j in (1, 3)]
        statistics = [
            value_by_formula(seen[key][0], seen[key][k], (everyone[0], everyone[k]), everyone[0] / i, bool(targets))
            if key in seen else 0.0
            for key in keys
            for k in range(1, 1 + n_targets)
        ]  # fmt: skip
        filled = [means[j][1] / means[j][0] if np.isnan(x[j]) and means[j][0] else np.nan_to_num(x[j]) for j in means]
        marks = [float(np.isnan(x[j]) and means[j][2] >= 256) for j in (0, 2)]
        out.append(np.concatenate([x[[1, 3, 0, 2, 4]], statistics, filled, marks]))
        sums = weight * np.array([1.0, *([y == target for target in targets] or [y])])
        everyone += sums
        for key in keys:
            seen[key] = seen.get(key, 0) + sums
        for j in means:
            if np.isnan(x[j]):
                means[j][2] += 1
            else:
                means[j][0] += weight
                means[j][1] += weight * x[j]
    return np.array(out)


@pytest.mark.parametrize(("targets", "n_classes"), [((1.0,), 2), ((0.0, 1.0, 2.0), 3), ((), 0)])
def test_encoded_rows_are_those_of_the_definition(targets, n_classes):
    batch, n_targets = rows(1500, n_classes=n_classes), max(1, len(targets))
    encoding = Encoding(KINDS, targets, "all")
    state = encoding.init()
    found = encoding.learn(state, batch).X
    np.testing.assert_allclose(found, encode_slowly(batch, targets), rtol=1e-9, atol=1e-12)
    for form, width in (("codes", 5), ("trees", 3 + 2 * n_targets), ("numbers", 2 * n_targets + 5)):
        own = Encoding(KINDS, targets, form)
        assert own.width == width
        np.testing.assert_array_equal(own.encode(state, batch.X), encoding.part(encoding.encode(state, batch.X), form))


def test_no_row_leaks_into_its_own_encoding_and_cuts_do_not_matter():
    batch, encoding = rows(400), Encoding(KINDS, (1.0,), "all")
    whole = encoding.init()
    expected = encoding.learn(whole, batch).X
    parts = encoding.init()
    found = [encoding.learn(parts, batch[cut]).X for cut in (slice(0, 1), slice(1, 7), slice(7, 250), slice(250, 400))]
    np.testing.assert_array_equal(np.vstack(found), expected)
    assert same(parts, whole)
    other = Batch(batch.X, batch.y.copy(), batch.weight, batch.query)
    other.y[200] = 1 - other.y[200]
    changed = encoding.learn(encoding.init(), other).X
    np.testing.assert_array_equal(changed[:201], expected[:201])
    assert not np.array_equal(changed[201:], expected[201:], equal_nan=True)


def test_forgetting_gives_later_rows_more_weight():
    encoding = Encoding("c", (1.0,), "trees")
    zeros, ones = (
        Batch(np.zeros((200, 1)), np.full(200, y), np.ones(200), np.zeros(200, np.int64)) for y in (0.0, 1.0)
    )
    old = Batch(np.ones((200, 1)), np.tile([0.0, 1.0], 100), np.ones(200), np.zeros(200, np.int64))
    state = encoding.init()
    for batch in (old, zeros):
        encoding.learn(state, batch)
    kept, fresh = copy(state), state
    fresh.forget(0.01)
    for one in (kept, fresh):
        encoding.learn(one, ones[:20])
    values = [encoding.encode(one, np.zeros((1, 1)))[0, 0] for one in (kept, fresh)]
    assert values[0] < -1.0 < values[1]


def test_a_million_categories_cost_bounded_memory():
    encoding = Encoding("cn", (1.0,), "all", n_codes=5120)
    state, n = encoding.init(), 50_000
    for start in range(0, 1_000_000, n):
        X = np.column_stack([np.arange(start, start + n), np.zeros(n)])
        encoding.learn(state, Batch(X, np.arange(n) % 2.0, np.ones(n), np.zeros(n, np.int64)))
    assert nbytes(state) < 8192 * 8 * 2 + 1000


def test_members_of_a_race_read_their_own_columns():
    frame, y = mixed(600)
    model = AUCClassifier(random_state=0).fit(frame, y)
    widths = {one.name: one.stream.n_features for one in model.stream_.learned.entrants}
    assert widths["boosted"] == 2 + 4 + 7  # categories, numbers, parts of the date
    assert widths["forest, renewed"] == 4 + 7 + 2
    assert widths["linear"] == 2 + 4 + 7 + 5  # with missing indicators


def test_a_frozen_race_reads_the_same_columns(tmp_path):
    frame, y = mixed(700)
    model = AUCClassifier(random_state=0).fit(frame[:600], y[:600])
    frozen = model.frozen()
    np.testing.assert_allclose(frozen.score_many(frame), model.score_many(frame), rtol=1e-4, atol=1e-5)
    pairloom.save(frozen, tmp_path / "frozen")
    np.testing.assert_array_equal(pairloom.load(tmp_path / "frozen").score_many(frame), frozen.score_many(frame))
    header, arrays = read(tmp_path / "frozen")
    values = header["state"]["values"]
    place = next(path for path in values if path.endswith("members.0.form"))
    for form in ("all", "everything", 3):
        values[place] = form
        (tmp_path / "hostile").write_bytes(sign(header, arrays))
        with pytest.raises(ModelFileError):
            pairloom.load(tmp_path / "hostile")


def test_boosting_splits_on_categories():
    frame, y = mixed(600)
    model = BoostingClassifier(random_state=0).fit(frame, y)
    assert model.stream_.model.categories == (0, 1)
    rng = np.random.default_rng(0)
    code = rng.integers(0, 8, 3000)
    odd = pd.DataFrame({"code": [f"c{k}" for k in code], "x": rng.normal(size=3000)})
    model = BoostingClassifier(random_state=0).fit(odd, code % 2)
    assert model.auc_.value > 0.99


@pytest.mark.parametrize("kind", ["number", "category", "date"])
def test_a_column_that_starts_with_missing_values(kind):
    frame, y = mixed(300)
    frame["late"] = {"number": frame["age"], "category": frame["device"], "date": frame["time"]}[kind].astype(object)
    frame.loc[:20, "late"] = None
    whole = AUCClassifier(random_state=0).fit(frame, y)
    one_by_one = AUCClassifier(random_state=0)
    for row, label in zip(records(frame), y, strict=True):
        one_by_one.learn_one(row, label)
    assert same(whole.state_, one_by_one.state_)
    assert whole.columns_.kinds["late"] == kind


def test_a_stream_with_an_encoding_is_saved(tmp_path):
    batch = rows(300)
    encoding = Encoding(KINDS, (1.0,), "codes")
    stream = Stream(Boosting(seed=0).reading(encoding), encoding=encoding)
    stream.partial_fit(batch.X[:200], 2 * batch.y[:200] - 1)
    pairloom.save(stream, tmp_path / "stream")
    other = pairloom.load(tmp_path / "stream")
    for one in (stream, other):
        one.partial_fit(batch.X[200:], 2 * batch.y[200:] - 1)
    assert same(stream.state, other.state)
    with pytest.raises(ValueError, match="X has 4 columns, but this model was fitted with 5"):
        stream.score(batch.X[:, :4])


def test_an_id_is_not_learned_unless_its_kind_is_set():
    frame, y = mixed(600)
    codes = np.random.default_rng(0).permutation(600)
    with_id = frame.assign(id=[f"t{k}" for k in codes], step=np.arange(600))
    model = BoostingClassifier(random_state=0).partial_fit(with_id, y)
    assert model.columns_.id_like == ["id", "step"]
    other = with_id.assign(id=[f"t{k}" for k in codes[::-1]], step=np.arange(600) + 600)
    np.testing.assert_array_equal(model.score_many(other), model.score_many(with_id))
    asked = BoostingClassifier(columns={"step": "number"}, random_state=0).partial_fit(with_id, np.arange(600) > 250)
    np.testing.assert_array_equal(asked.score_many(with_id) > 0, np.arange(600) > 250)
