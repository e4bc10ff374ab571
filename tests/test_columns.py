"""Mixed columns as numbers: against a naive encoder, and every message."""

import math
import pickle
from datetime import UTC, date, datetime
from decimal import Decimal
from zlib import crc32

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from pairloom import AUCClassifier
from pairloom.columns import ColumnEncoder, Columns
from pairloom.columns.encoder import Encoder
from pairloom.columns.frames import table_of
from pairloom.columns.state import MARKED
from pairloom.features import Forest
from pairloom.systems import FPOGD, SPAM
from tests.conftest import examples
from tests.generic import assert_same
from tests.mixed import mixed, records

SMALL = Columns(max_categories=3, n_hashed=2, marks_after=0)


class Naive:
    """The specification, in Python, one row at a time. Numbers "a" and "b", a category "c", a date "d"."""

    def __init__(self):
        self.values, self.codes, self.now = {"a": [], "b": [], "d": []}, [], -math.inf
        self.oldest = math.inf

    def row(self, x):
        made = []
        for name in ("a", "b"):
            past = self.values[name]
            made += [x[name], 0.0] if x[name] is not None else [sum(past) / len(past), 1.0] if past else [0.0, 0.0]
        made += self.category(x["c"]) + self.date(x["d"])
        for name in self.values:
            self.values[name] += [] if x[name] is None else [made[-8] if name == "d" else x[name]]
        return made

    def category(self, value):
        one_hot = [0.0] * 6
        if value is None:
            one_hot[0] = float(bool(self.codes))
            return one_hot
        if value not in self.codes and len(self.codes) < 3:
            self.codes.append(value)
        place = self.codes.index(value) if value in self.codes else 3 + crc32(value.encode()) % 2
        one_hot[1 + place] = 1.0
        return one_hot

    def date(self, value):
        past = self.values["d"]
        if value is None:
            return [sum(past) / len(past), *[0.0] * 6, 1.0] if past else [0.0] * 8
        days = (value - datetime(1970, 1, 1)).total_seconds() / 86400
        seen = self.now - self.oldest if past else 0.0
        self.now, self.oldest = max(self.now, days), min(self.oldest, days)
        turns = {1: days, 7: (days + 3) / 7, 365.2425: days / 365.2425}
        parts = [f(2 * math.pi * (turn % 1)) if seen >= period / 2 else 0.0
                 for period, turn in turns.items() for f in (math.sin, math.cos)]  # fmt: skip
        return [self.now - days, *parts, 0.0]


ROWS = st.fixed_dictionaries(
    {
        "a": st.none() | st.floats(-1e6, 1e6),
        "b": st.none() | st.floats(-10, 10),
        "c": st.none() | st.sampled_from([*"uvwxyz"]),
        "d": st.none() | st.datetimes(datetime(1960, 1, 1), datetime(2040, 1, 1)),
    }
)
KINDS = {"a": "number", "b": "number", "c": "category", "d": "date"}


@examples(60)
@given(rows=st.lists(ROWS, min_size=1, max_size=12), cut=st.integers(0, 12))
def test_a_row_is_encoded_by_what_came_before_it(rows, cut):
    rows = [{name: row[name] for name in KINDS} for row in rows]
    naive = Naive()
    expected = [naive.row(row) for row in rows]
    part = Columns(KINDS, max_categories=3, n_hashed=2, marks_after=0)
    frame = pl.DataFrame(rows, schema={"a": float, "b": float, "c": str, "d": datetime}, strict=False)
    encoder = Encoder.of_table(part, table_of(frame), (MARKED, MARKED))
    found = [learned(encoder, table_of(piece)) for piece in (frame[:cut], frame[cut:]) if len(piece)]
    np.testing.assert_allclose(np.concatenate(found), expected, rtol=1e-12, atol=1e-9)
    by_row = Encoder.of_row(part, rows[0], (MARKED, MARKED))
    np.testing.assert_array_equal(np.concatenate([learned(by_row, row) for row in rows]), np.concatenate(found))
    assert_same(encoder, by_row)


def learned(encoder, rows):
    values = encoder.read(rows, "float64")
    return encoder.learn(values, np.ones(values.n), "float64")


def test_weights_count_as_repeated_rows_do():
    one = ColumnEncoder().learn_one({"a": 1.0, "c": "u"}).learn_one({"a": 4.0, "c": "v"}, sample_weight=2.0)
    two = ColumnEncoder().fit(pd.DataFrame({"a": [1.0, 4.0, 4.0], "c": ["u", "v", "v"]}))
    assert one.transform_one({"a": None, "c": "v"}).tolist() == two.transform_one({"a": None, "c": "v"}).tolist()
    assert one.transform_one({"a": None, "c": "v"})[0] == 3.0
    assert_same(one._encoder, one.learn_one({"a": 9.0, "c": "w"}, sample_weight=0.0)._encoder)


def test_marks_are_used_once_there_were_gaps_enough():
    encoder = ColumnEncoder(Columns(marks_after=2)).learn_one({"a": 1.0})
    marks = []
    for _ in range(4):
        marks.append(encoder.transform_one({"a": None})[1])
        encoder.learn_one({"a": None})
    assert marks == [0.0, 0.0, 1.0, 1.0]


def test_a_new_category_changes_no_other_row_and_no_width():
    frame, _ = mixed(300)
    encoder = ColumnEncoder(SMALL).fit(frame)
    before = encoder.transform(frame)
    encoder.partial_fit(frame.assign(shop="new").iloc[:5])
    after = encoder.transform(frame)
    names = encoder.get_feature_names_out()
    other = [not name.startswith(("amount", "age", "items", "known", "time")) for name in names]
    np.testing.assert_array_equal(after[:, other], before[:, other])
    assert len(names) == before.shape[1] == after.shape[1]


def test_codes_for_trees():
    frame = pd.DataFrame({"c": ["u", None, "v", "u"], "a": [1.0, np.nan, 3.0, 4.0]})
    found = ColumnEncoder(codes=True).fit(frame).transform(frame)
    np.testing.assert_array_equal(found, [[0, 1], [np.nan, np.nan], [1, 3], [0, 4]])
    assert np.isnan(ColumnEncoder(codes=True).fit(frame).transform_one({"c": "never", "a": 0.0})[0])


def test_an_unseen_category_says_nothing_before_it_is_learned():
    encoder = ColumnEncoder(SMALL).learn_one({"c": "u", "a": 1.0})
    assert encoder.transform_one({"c": "never", "a": 1.0})[:6].tolist() == [0.0] * 6


@pytest.mark.parametrize(
    ("values", "kind"),
    [([3, 4.5, True, np.float32(1), Decimal("2.5")], "number"), (["a", "b"], "category"), ([b"a", "a"], "category"),
     ([date(2024, 1, 1), datetime(2024, 1, 2, 3, tzinfo=UTC), np.datetime64("2024-01-01")], "date"),
     ([None, "a", None], "category"), ([None, None, 3.0], "number"), ([None, pd.Timestamp("2024-05-01")], "date"),
     ([None, None], "open")],
)  # fmt: skip
def test_the_first_value_determines_the_kind(values, kind):
    encoder, frames = ColumnEncoder(), ColumnEncoder()
    for value in values:
        encoder.learn_one({"x": value, "more": 1.0})
    assert encoder.columns_.kinds == {"x": kind, "more": "number"}
    column = np.empty(len(values), dtype=object)
    column[:] = values
    frame = pd.DataFrame({"x": pd.Series(column, dtype=object), "more": 1.0})
    frames.partial_fit(frame[:1]).partial_fit(frame[1:])
    assert_same(frames._encoder, encoder._encoder)
    assert_same(ColumnEncoder().fit(frame)._encoder, encoder._encoder)


def test_declared_types_determine_the_kind():
    frame = pd.DataFrame({
        "int": pd.array([1, None], "Int64"), "flag": pd.array([True, None], "boolean"),
        "text": pd.array(["a", None], "string"), "cat": pd.Categorical([2, None]),
        "when": pd.to_datetime(["2024-01-01", None], utc=True), "float": [np.nan, 1.0],
    })  # fmt: skip
    kinds = ColumnEncoder().fit(frame).columns_.kinds
    assert list(kinds.values()) == ["number", "number", "category", "category", "date", "number"]
    assert FPOGD(n_components=8, random_state=0).fit(frame, [0, 1]).columns_.kinds == kinds


def test_pins_and_drops():
    frame, y = mixed(100)
    model = FPOGD(n_components=8, columns={"items": "category", "shop": "drop"}, random_state=0).fit(frame, y)
    assert model.columns_.kinds["items"] == "category"
    assert "3" in model.columns_.categories["items"]
    np.testing.assert_array_equal(model.predict(frame.assign(shop=7)), model.predict(frame))
    with pytest.raises(ValueError, match="columns= names 'shoe', but the columns are"):
        FPOGD(columns={"shoe": "drop"}).fit(frame, y)
    with pytest.raises(ValueError, match=r"columns\['shop'\] must be one of 'number', 'category', 'date', 'drop'"):
        FPOGD(columns={"shop": "text"}).fit(frame, y)
    with pytest.raises(ValueError, match="columns must be a mapping from names to kinds"):
        FPOGD(columns="category").fit(frame, y)
    with pytest.raises(ValueError, match="but X has no names: pass a data frame"):
        FPOGD(columns={"a": "number"}).fit(np.eye(4), [0, 1, 0, 1])
    with pytest.raises(ValueError, match="drops all columns"):
        ColumnEncoder({"a": "drop"}).fit(pd.DataFrame({"a": [1.0]}))


def test_text_as_numbers_and_dates_where_the_kind_is_pinned():
    rows = [{"a": "1.5", "when": "2024-02-01"}, {"a": "", "when": "2024-02-03T12:00"}]
    encoder = ColumnEncoder(Columns({"a": "number", "when": "date"}))
    for row in rows:
        encoder.learn_one(row)
    assert encoder.transform_one(rows[0])[:3].tolist() == [1.5, 0.0, 2.5]


def test_age_is_before_the_newest_of_all_dates():
    encoder = ColumnEncoder().learn_one({"born": date(2000, 1, 1), "now": date(2000, 1, 5)})
    encoder.learn_one({"born": None, "now": date(2000, 1, 11)})
    age = encoder.get_feature_names_out().tolist().index("born_age")
    assert encoder.transform_one({"born": date(2000, 1, 1), "now": None})[age] == 10.0
    assert encoder.transform_one({"born": date(2000, 1, 1), "now": date(2000, 1, 21)})[age] == 20.0
    assert encoder.transform_one({"born": None, "now": None})[age] == 4.0  # the mean age so far


def test_text_in_numbers_is_an_error_or_missing():
    encoder = ColumnEncoder().learn_one({"a": 1.0})
    with pytest.raises(
        ValueError, match="column 'a' must contain numbers, but contains 'n/a' at row 0: correct it, or before"
    ):
        encoder.learn_one({"a": "n/a"})
    tolerant = ColumnEncoder(Columns(on_text="missing", marks_after=0)).learn_one({"a": 1.0})
    assert tolerant.transform_one({"a": "n/a"}).tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="column 'a' contains infinity at row 0"):
        encoder.learn_one({"a": 10**400})
    with pytest.raises(ValueError, match="marks_after, unless it is 0, must be an integer >= 1; got -1"):
        Columns(marks_after=-1)
    with pytest.raises(ValueError, match="column 'd' must contain dates, but contains 3 at row 0"):
        ColumnEncoder().learn_one({"d": date(2024, 1, 1)}).learn_one({"d": 3})


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame({"a": [[1], [2]]}), "column 'a' contains a list at row 0"),
        (pl.DataFrame({"a": [[1], [2]]}), "column 'a' has the type List"),
        (pd.DataFrame({"a": pd.to_timedelta([1, 2])}), "column 'a' has the type timedelta64"),
        (pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]), "'a' occurs twice"),
        (pd.DataFrame({"a": [1.0, 1e20]}), "column 'a' contains 1e.20 at row 1, too large for float32"),
        (pd.DataFrame({"a": [10**400]}, dtype=object), "column 'a' contains infinity at row 0"),
        (pd.DataFrame({"a": []}), "a minimum of 1 is required"),
        (np.eye(3), "must be a data frame whose columns have names"),
        (pl.LazyFrame({"a": [1.0]}), "collect it first"),
        ([{"a": 1.0}], r"turn mappings into a frame, pandas.DataFrame\(X\)"),
        (pd.DataFrame({"a": [1j]}), "column 'a' contains a complex at row 0"),
    ],
)
@pytest.mark.filterwarnings("ignore:Determining the:polars.exceptions.PerformanceWarning")
def test_what_is_no_table_is_refused(frame, message):
    with pytest.raises(ValueError, match=message):
        ColumnEncoder().fit(frame)
    encoder = ColumnEncoder().learn_one({"a": 1.0})
    assert encoder.transform_one({"a": 2.0}).tolist() == [2.0, 0.0]


def test_whole_numbers_alone_are_numbers():
    encoder = ColumnEncoder(SMALL).learn_one({"a": 1, "c": "u"})
    assert encoder.transform_one({"a": 2, "c": "u"}).tolist() == [2.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]


def test_absent_names_are_missing_values_and_unknown_ones_are_refused():
    encoder, explicit = (ColumnEncoder().learn_one({"a": 1.0, "c": "u"}) for _ in range(2))
    for row in ({"a": 4.0}, {"c": "v"}, {}):
        assert encoder.transform_one(row).tolist() == encoder.transform_one({"a": None, "c": None, **row}).tolist()
        encoder.learn_one(row)
        explicit.learn_one({"a": None, "c": None, **row})
    assert_same(encoder._encoder, explicit._encoder)
    with pytest.raises(ValueError, match=r"unknown columns \['b'\]; .* columns=Columns\(reserve=32\)"):
        encoder.learn_one({"a": 1.0, "b": 2.0})
    with pytest.raises(ValueError, match="the features of a transformer cannot change"):
        ColumnEncoder(Columns(reserve=1)).learn_one({"a": 1.0})
    with pytest.raises(ValueError, match="expected one row of 2 values, got 3"):
        encoder.learn_one([1.0, "u", 2.0])
    with pytest.raises(ValueError, match=r"column names .*must be strings"):
        ColumnEncoder().learn_one({1: 2.0})
    assert encoder.transform_one([1.0, "u"]).tolist() == encoder.transform_one({"c": "u", "a": 1.0}).tolist()


def test_columns_of_no_use_are_named():
    n = 300
    frame = pd.DataFrame({"id": [f"t{k}" for k in range(n)], "number": np.arange(n), "same": 1.0, "never": [None] * n,
                          "c": ["u", "v"] * (n // 2), "amount": np.random.default_rng(0).normal(size=n)})  # fmt: skip
    report = ColumnEncoder().fit(frame).columns_
    assert report.constant == ["same", "never"]
    assert report.id_like == ["id", "number"]
    assert ColumnEncoder().fit(frame[:100]).columns_.id_like == []


def test_it_is_a_transformer_of_scikit_learn():
    frame, y = mixed(200)
    encoder = ColumnEncoder(SMALL).fit(frame)
    assert clone(encoder).get_params() == encoder.get_params()
    assert_same(pickle.loads(pickle.dumps(encoder))._encoder, encoder._encoder)
    model = make_pipeline(ColumnEncoder(SMALL), SPAM(eta=0.01, scale="standard")).fit(frame, y)
    assert model.score(frame, y) > 0.6
    assert model[:-1].get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()


def test_frames_of_numbers_keep_their_width_and_gaps_get_the_mean():
    frame = pd.DataFrame({"a": [1.0, 3.0, np.nan], "b": [0.0, 1.0, 2.0]})
    model = FPOGD(kernel="linear", eta=0.1, random_state=0).fit(frame, [0, 1, 0])
    assert model.stream_.state.n_features == 2
    assert model.score_one({"a": None, "b": 1.0}) == model.score_one({"a": 2.0, "b": 1.0})
    with pytest.warns(UserWarning, match="valid feature names"):
        assert model.decision_function([[2.0, 1.0]]) == model.decision_function(pd.DataFrame({"a": [2.0], "b": [1.0]}))


def test_a_forest_is_given_codes_and_gaps():
    frame, y = mixed(200)
    model = FPOGD(features=Forest(8, max_leaves=8), random_state=0).fit(frame, y)
    assert model.stream_.state.n_features == 6 + 7
    assert np.isfinite(model.decision_function(frame)).all()


def test_the_race_takes_rows_as_they_are():
    frame, y = mixed(1500)
    model = AUCClassifier(random_state=0).fit(frame[:1000], y[:1000])
    assert model.auc_.value > 0.8
    frozen = model.frozen()
    np.testing.assert_allclose(frozen.score_many(frame[1000:]), model.score_many(frame[1000:]), atol=1e-4)
    assert frozen.score_one(records(frame)[1200]) == frozen.score_many(frame[1200:1201])[0]
