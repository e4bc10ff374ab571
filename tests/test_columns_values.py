"""Unusual values of columns: categories are exact, missing values stay missing, and errors name row and column."""

import os
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import pairloom
from pairloom.base.tree import same
from pairloom.columns import ColumnEncoder, Columns
from pairloom.evaluation import prequential
from pairloom.systems import FPOGD
from tests.generic import assert_same

FAR = timezone(timedelta(hours=14))
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


def objects(values):
    """A pandas frame that does not declare its types."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return pd.DataFrame({"x": pd.Series(column, dtype=object), "more": 1.0})


def by_rows(columns, rows):
    encoder = ColumnEncoder(columns)
    for row in rows:
        encoder.learn_one(row)
    return encoder


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize(
    ("values", "names"),
    [
        (np.arange(3) + 2**60, [str(2**60 + k) for k in range(3)]),
        (np.array([2**64 - 1, 2**64 - 2], np.uint64), [str(2**64 - 1), str(2**64 - 2)]),
        (np.array([True, False]), ["True", "False"]),
        (np.array([3.0, 0.5, 1e17]), ["3", "0.5", "100000000000000000"]),
        (np.array([0.1], np.float32), ["0.10000000149011612"]),
        (np.array(["2024-01-01", "2024-01-01T10:00"], "datetime64[us]"), ["2024-01-01", "2024-01-01T10:00:00"]),
        (np.array(["2024-01-01T00:00:00.000000001"], "datetime64[ns]"), ["2024-01-01T00:00:00.000000001"]),
        (np.array(["1", "01", "1.0", "1_0", "nan"]), ["1", "01", "1.0", "1_0", "nan"]),
    ],
)
def test_categories_are_distinguished_by_their_exact_values(frame, values, names):
    pin = {"x": "category"}
    whole = ColumnEncoder(pin).fit(FRAMES[frame]({"x": values}))
    assert whole.columns_.categories["x"] == names
    assert_same(by_rows(pin, [{"x": value} for value in values])._encoder, whole._encoder)


def test_bytes_that_are_no_text_stay_different_categories():
    encoder = by_rows(None, [{"x": b"\xff"}, {"x": b"\xfe"}, {"x": b"a"}, {"x": "a"}])
    assert encoder.columns_.categories["x"] == ["\\xff", "\\xfe", "a"]


def test_kinds_learned_from_rows_keep_the_integers_of_later_frames_exact():
    encoder = ColumnEncoder().learn_one({"x": "a"})
    encoder.partial_fit(pd.DataFrame({"x": [2**53, 2**53 + 1]}))
    assert encoder.columns_.categories["x"] == ["a", str(2**53), str(2**53 + 1)]


REFUSED = [
    ("category", np.inf, "must contain categories, but contains inf at row 1"),
    ("category", [1], "must contain categories, but contains a list at row 1"),
    ("category", np.timedelta64(3, "s"), "must contain categories, but contains np.timedelta64"),
    ("category", np.datetime64(10**7, "Y"), "must contain categories, but contains np.datetime64"),
    ("category", object(), "must contain categories, but contains <object"),
    ("category", 10**5000, "must contain categories, but contains an integer with thousands of digits at row 1"),
    ("number", np.timedelta64(3, "s"), "must contain numbers, but contains np.timedelta64.* at row 1"),
    ("number", "1_0", "must contain numbers, but contains '1_0' at row 1"),
    ("number", "\u0663", "must contain numbers, but contains '\u0663' at row 1"),
    ("number", np.array([1.0, 2.0]), r"must contain numbers, but contains array\(\[1., 2.\]\) at row 1"),
    ("number", 1e17, r"contains 1e\+17 at row 1, too large for float32, which allows up to 1e\+15: scale the column"),
    ("date", datetime(1, 1, 1, tzinfo=FAR), "contains a date outside the years 1 to 9999 at row 1"),
    ("date", "0001-01-01T00:00:00+14:00", "contains a date outside the years 1 to 9999 at row 1"),
    ("date", np.datetime64(10**7, "Y"), "contains a date outside the years 1 to 9999 at row 1"),
    ("date", pd.Timestamp(np.datetime64("20000-01-01", "s")), "contains a date outside the years 1 to 9999 at row 1"),
    ("date", time(1), r"must contain dates, but contains datetime.time\(1, 0\) at row 1"),
    (None, np.timedelta64(3, "s"), "contains a timedelta64 at row 1, not numbers, text or dates"),
    (None, np.array([1.0, 2.0]), "contains a ndarray at row 1, not numbers, text or dates"),
    (None, 1j, "contains a complex at row 1"),
]


@pytest.mark.parametrize(("kind", "value", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_no_value_of_its_kind_names_row_and_column(kind, value, message):
    pin = {"x": kind} if kind else None
    encoder, frame = ColumnEncoder(pin), objects([None, value])
    with pytest.raises(ValueError, match=f"column 'x' {message}"):
        encoder.fit(frame)
    encoder.learn_one({"x": None, "more": 1.0})
    before = ColumnEncoder(pin).learn_one({"x": None, "more": 1.0})
    with pytest.raises(ValueError, match="column 'x' " + message.replace("row 1", "row 0")):
        encoder.learn_one({"x": value, "more": 1.0})
    assert_same(encoder._encoder, before._encoder)


def arrow(values, kind):
    return pa.table({"x": pa.array(values, kind)})


@pytest.mark.parametrize(("kind", "values"), [
    (pa.timestamp("s"), [2**55]), (pa.date32(), [2**31 - 1]), (pa.timestamp("us"), [2**62]),
])  # fmt: skip
def test_dates_of_frames_outside_the_calendar_are_refused_or_missing(kind, values):
    frame = arrow([0, *values], kind)
    for one in (frame, pl.from_arrow(frame)):
        with pytest.raises(ValueError, match="column 'x' contains a date outside the years 1 to 9999 at row 1"):
            ColumnEncoder().fit(one)
        assert ColumnEncoder(Columns(on_text="missing")).fit(one).columns_.constant == ["x"]


def test_types_of_arrow_have_a_meaning_or_are_refused():
    moments = np.array(["2024-01-01T00:00:00.000000999", "1960-05-01T10:00", "NaT"], "datetime64[ns]")
    expected = ColumnEncoder().fit(pa.table({"x": moments.astype("datetime64[us]")}))
    assert_same(ColumnEncoder().fit(arrow(moments, pa.timestamp("ns")))._encoder, expected._encoder)
    large = arrow([2**53 + 1, None, 2**62], pa.int64())
    assert same(ColumnEncoder(dtype="float64").fit(large)._encoder.state,
                ColumnEncoder(dtype="float64").fit(pl.from_arrow(large))._encoder.state)  # fmt: skip
    with pytest.raises(ValueError, match=r"column 'x' contains 9.0072e\+15 at row 0, too large for float32"):
        ColumnEncoder().fit(large)
    for kind, value, own in [
        (pa.decimal128(20, 2), Decimal("1.10"), "number"), (pa.decimal256(50, 2), Decimal("1.10"), "number"),
        (pa.date64(), date(2024, 1, 1), "date"), (pa.binary(3), b"abc", "category"),
        (pa.large_binary(), b"a", "category"), (pa.float16(), np.float16(0.5), "number"),
        (pa.dictionary(pa.int8(), pa.int64()), 2**60 + 1, "category"),
    ]:  # fmt: skip
        encoder = ColumnEncoder().fit(arrow([value, None], kind))
        assert encoder.columns_.kinds == {"x": own}
        assert_same(by_rows({"x": own}, [{"x": value}, {"x": None}])._encoder.state, encoder._encoder.state)
    nested = [(pa.list_(pa.int8()), [1]), (pa.struct([("a", pa.int8())]), {"a": 1})]
    for kind, value in [(pa.duration("s"), 1), (pa.time32("s"), 1), (pa.month_day_nano_interval(), (1, 2, 3)), *nested]:
        with pytest.raises(ValueError, match=r"column 'x' (has the type|contains a)"):
            ColumnEncoder().fit(arrow([value], kind))


def test_decimals_of_frames_are_rounded_as_pythons_are():
    values = [Decimal(f"0.{k:018d}") * 7 for k in range(10**17, 10**17 + 50)]
    frame = arrow(values, pa.decimal128(38, 18))
    encoder = ColumnEncoder(dtype="float64")
    assert_same(by_rows(None, [{"x": value} for value in values])._encoder.state, encoder.fit(frame)._encoder.state)


@pytest.mark.parametrize("kind", ["number", "date"])
def test_a_frame_of_another_kind_than_the_column_is_refused(kind):
    other = {"number": pd.to_datetime(["2024-01-01"]), "date": [3]}[kind]
    with pytest.raises(ValueError, match=f"column 'x' must contain {kind}s, but contains .* at row 0"):
        ColumnEncoder({"x": kind}).fit(pd.DataFrame({"x": other}))


@pytest.mark.parametrize("gap", [np.nan, None, pd.NaT, pd.NA, np.float64("nan"), "", np.str_(""), b""])
@pytest.mark.parametrize("value", ["a", 2.5, datetime(2024, 1, 1, tzinfo=UTC)])
def test_gaps_before_the_first_value_leave_the_kind_open(gap, value):
    values = [gap, gap, value, gap]
    rows = by_rows(None, [{"x": one, "more": 1.0} for one in values])
    frame = objects(values)
    assert rows.columns_.kinds["x"] == {"a": "category", 2.5: "number"}.get(value, "date")
    assert_same(ColumnEncoder().fit(frame)._encoder, rows._encoder)
    chunks = ColumnEncoder().partial_fit(frame[:1]).partial_fit(frame[1:2])
    assert chunks.columns_.kinds["x"] == "open"
    assert_same(chunks.partial_fit(frame[2:])._encoder, rows._encoder)


def test_models_with_open_columns_are_saved_and_loaded(tmp_path):
    rows = [
        {"x": float("nan"), "a": 1.0},
        {"x": np.str_(""), "a": -1.0},
        {"x": "\ud800", "a": 0.5},
        {"x": "v", "a": 2.0},
    ]
    made, loaded = FPOGD(n_components=8, random_state=0), None
    for k, row in enumerate(rows):
        for model in (made, loaded):
            if model is not None:
                model.learn_one(row, k % 2)
        pairloom.save(made, tmp_path / "model")
        loaded = pairloom.load(tmp_path / "model")
        assert same(loaded.state_, made.state_)
    assert loaded.columns_.categories["x"] == ["\ud800", "v"]


def test_evaluation_row_by_row_learns_what_a_frame_says():
    frame = pd.DataFrame({"gap": [np.nan, 1.0, 2.0, 3.0], "id": 2**60 + np.arange(4)})
    y, part = np.array([0, 1, 0, 1]), {"id": "category"}
    made, expected = (FPOGD(n_components=8, columns=part, random_state=0) for _ in range(2))
    prequential(made, (frame, y), progress=False)
    assert_same(made, expected.partial_fit(frame, y))


VALUES = {
    "number": [1.5, -2, 0, True, np.float32(0.1), np.int64(7), Decimal("2.5"), 2**53 + 1, 1e14],
    "category": ["a", "b", "01", "1", "1_0", "nan", "None", "x" * 70, b"a", b"\xff", " ", "\ud800"],
    "date": [date(2024, 2, 29), datetime(1960, 1, 1, 3), datetime(2024, 1, 1, tzinfo=FAR), np.datetime64("1999-12-31"),
             pd.Timestamp("2024-05-01T01:02:03.000000004")],
}  # fmt: skip
GAPS = [None, np.nan, pd.NaT, pd.NA, ""]
ODD = [np.inf, 1e30, [1], np.timedelta64(1, "s"), 1j, datetime(1, 1, 1, tzinfo=FAR), np.datetime64(10**7, "Y"), "?"]
DECLARED = {
    "ints": lambda rng, n: rng.integers(-9, 9, n),
    "ids": lambda rng, n: rng.integers(2**60, 2**60 + 4, n),
    "flags": lambda rng, n: rng.random(n) < 0.5,
    "floats": lambda rng, n: np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n).round(2)),
    "singles": lambda rng, n: rng.normal(size=n).astype(np.float32),
    "text": lambda rng, n: rng.choice(np.array(["u", "v", "01", "1"], dtype=object), n),
    "dates": lambda rng, n: rng.integers(-(10**9), 2 * 10**9, n).astype("datetime64[s]").astype("datetime64[us]"),
}


def outcome(columns, pieces):
    """The state of an encoder after several tables, up to the first invalid one."""
    encoder = ColumnEncoder(columns, dtype="float64")
    for piece in pieces:
        try:
            encoder.learn_one(piece) if isinstance(piece, dict) else encoder.partial_fit(piece)
        except ValueError as error:
            return str(error)[:7], None
    return "taken", encoder._encoder


def any_pin(rng):
    return str(rng.choice(["number", "category", "date", "drop"])) if rng.random() < 0.4 else None


@pytest.mark.soak
def test_frames_without_types_and_rows_know_the_same():
    base = int(os.environ.get("PAIRLOOM_SOAK_SEED", "0"))
    for seed in range(base, base + 2000):
        rng = np.random.default_rng(seed)
        n, kind = int(rng.integers(1, 12)), str(rng.choice(list(VALUES)))
        pools = [GAPS if rng.random() < 0.3 else ODD if rng.random() < 0.02 else VALUES[kind] for _ in range(n)]
        values = [pool[rng.integers(len(pool))] for pool in pools]
        pin = any_pin(rng)
        columns = Columns({"x": pin} if pin else {}, max_categories=3, on_text=str(rng.choice(["raise", "missing"])))
        frame, cut = objects(values), int(rng.integers(0, n + 1))
        rows = outcome(columns, [{"x": value, "more": 1.0} for value in values])
        for pieces in ([frame], [piece for piece in (frame[:cut], frame[cut:]) if len(piece)]):
            assert_same(list(outcome(columns, pieces)), list(rows), f"seed {seed}: {values} as {columns}")


@pytest.mark.soak
def test_frames_of_every_library_and_rows_know_the_same():
    base = int(os.environ.get("PAIRLOOM_SOAK_SEED", "0"))
    for seed in range(base, base + 1000):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 30))
        chosen = [str(name) for name in rng.permutation(list(DECLARED))[: rng.integers(1, 5)]]
        data = {name: DECLARED[name](rng, n) for name in chosen}
        pins = {name: pin for name in chosen if (pin := any_pin(rng))}
        if list(pins.values()).count("drop") == len(chosen):
            continue
        # Rows do not declare their types: kinds that the first value does not determine are set.
        kinds = {"text": "category", "dates": "date"}
        full = Columns({name: pins.get(name, kinds.get(name, "number")) for name in chosen}, max_categories=3)
        rows = [{name: column[i] for name, column in data.items()} for i in range(n)]
        expected = list(outcome(full, rows))
        cut = int(rng.integers(0, n + 1))
        for make in FRAMES.values():
            frame = make(data)
            pieces = [piece for piece in (frame[:cut], frame[cut:]) if len(piece)]
            for given in ([frame], pieces):
                assert_same(list(outcome(full, given)), expected, f"seed {seed}: {make.__name__} with {full}")
