"""Messy columns: the kind is that of nearly all values, and the others are malformed; columns of little use."""

from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import pairloom
from pairloom.base.tree import same
from pairloom.columns import ColumnEncoder, Columns, ColumnsWarning
from pairloom.systems import FPOGD
from tests.generic import assert_same
from tests.mixed import mixed

DATES = ["2024-01-31", "2024-02-01 10:00", "2024-02-01T10:00:00.5+02:00", " 2024-03-01"]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1.5, 2, True, "12.5O"] + [3.0] * 16, "number"),  # 19 of 20
        ([1.5, 2, True, "12.5O"] + [3.0] * 15, "category"),  # 18 of 19
        ([1.5, None, "", np.nan], "number"),
        ([0.5] * 93 + ["x"] * 7, "category"),
        ([*DATES, "2024-02-30"], "date"),  # the form of a date
        ([*DATES * 5, "soon"], "date"),
        ([*DATES, date(2024, 1, 1), None, ""], "date"),
        (["2024-01-31 to 2024-02-03"] * 3, "category"),
        (["1", "2", "3"], "category"),
        (["20240131"] * 3, "category"),
        ([1, 2, "3"], "category"),
        ([date(2024, 1, 1), 3.0], "category"),
    ],
)
def test_the_kind_of_a_column_is_that_of_nearly_all_values(values, kind):
    column = np.empty(len(values), dtype=object)
    column[:] = values
    frames = [pd.DataFrame({"x": pd.Series(column, dtype=object), "more": 1.0})]
    if all(isinstance(value, str) for value in values):
        frames += [pd.DataFrame({"x": values}), pl.DataFrame({"x": values}), pa.table({"x": values})]
    part = Columns(on_text="missing")
    assert {ColumnEncoder(part).fit(frame).columns_.kinds["x"] for frame in frames} == {kind}


def test_a_first_row_decides_and_declared_types_are_kept():
    row = {"number": 1, "date": "2024-01-31", "digits": "1", "text": "a"}
    kinds = ColumnEncoder().learn_one(row).columns_.kinds
    assert kinds == {"number": "number", "date": "date", "digits": "category", "text": "category"}
    assert ColumnEncoder().fit(pd.DataFrame({"x": DATES}, dtype="category")).columns_.kinds == {"x": "category"}
    assert ColumnEncoder().fit(pa.table({"x": pa.array(DATES).dictionary_encode()})).columns_.kinds == {"x": "category"}


def messy(n=300):
    """A frame with malformed values, and the same with missing values in their place."""
    frame, y = mixed(n)
    frame["amount"] = frame["amount"].astype(object)
    frame["time"] = frame["time"].dt.strftime("%Y-%m-%d %H:%M").astype(object)
    clean, bad = frame.copy(), frame.copy()
    for row, column, value in [(5, "amount", "12.5O"), (250, "amount", "oops"), (9, "time", "2024-02-30")]:
        clean.loc[row, column], bad.loc[row, column] = None, value
    return bad, clean, y


def test_malformed_values_are_refused_or_missing_and_counted(tmp_path):
    bad, clean, y = messy()
    model = FPOGD(n_components=8, random_state=0)
    with pytest.raises(ValueError, match=r"column 'amount' must contain numbers, but contains '12.5O' at row 5: "):
        model.fit(bad, y)
    assert not hasattr(model, "stream_")
    part = Columns(on_text="missing")
    made, expected, chunks, rows = (FPOGD(n_components=8, columns=part, random_state=0) for _ in range(4))
    made.fit(bad, y)
    assert made.columns_.malformed == {"amount": 2, "time": 1}
    assert made.columns_.missing["amount"] == pytest.approx(clean["amount"].isna().mean())
    assert expected.fit(clean, y).columns_.malformed == {}
    np.testing.assert_array_equal(made.coef_, expected.coef_)
    for k in range(0, 300, 50):
        chunks.partial_fit(bad[k : k + 50], y[k : k + 50])
    for row, label in zip(bad.to_dict("records"), y, strict=True):
        rows.learn_one(row, label)
    assert_same(made, chunks)
    assert_same(made, rows)
    pairloom.save(made, tmp_path / "model")
    loaded = pairloom.load(tmp_path / "model")
    assert same(loaded.state_, made.state_)
    assert loaded.columns_ == made.columns_
    assert loaded.score_one({**bad.iloc[0].to_dict(), "amount": "?"}) == made.score_many(clean[5:6].assign(**{
        name: [bad.iloc[0][name]] for name in bad.columns if name != "amount"}))[0]  # fmt: skip


def test_numbers_out_of_range_are_malformed():
    encoder = ColumnEncoder(Columns(on_text="missing")).fit(pd.DataFrame({"x": [1.0, np.inf, 1e17, np.nan]}))
    encoder.learn_one({"x": -np.inf})
    assert encoder.columns_.malformed == {"x": 3}
    assert encoder.columns_.missing == {"x": 0.8}


def test_columns_of_little_use_are_reported_by_one_warning_after_fit():
    frame, y = mixed(300)
    words = np.array(
        ["the", "order", "came", "late", "and", "nobody", "knew", "why", "so", "please", "call", "me", "again"]
    )
    rng = np.random.default_rng(0)
    poor = frame.assign(same=1.0, id=[f"t{k}" for k in range(300)],
                        note=[" ".join(rng.choice(words, 6)) for _ in range(300)])  # fmt: skip
    model = FPOGD(n_components=8, random_state=0)
    expected = r"constant so far: 'same'; look like ids: 'id'; free text: 'note'\): leave .*'note': \"drop\"}.*Hashing"
    with pytest.warns(ColumnsWarning, match=expected) as caught:
        model.fit(poor, y)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    report = model.columns_
    assert (report.constant, report.id_like, report.free_text) == (["same"], ["id"], ["note"])
    # Nothing is reported without need, for columns that the user has chosen, or by partial_fit.
    model.fit(frame, y)
    model.set_params(columns={"same": "number", "id": "category", "note": "drop"}).fit(poor, y)
    FPOGD(n_components=8, random_state=0).partial_fit(poor, y)
