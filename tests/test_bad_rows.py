"""Malformed rows: all of a chunk are found at once, and are the same as row by row."""

import json
import os
import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pairloom
from pairloom.cli.errors import error_message
from pairloom.cli.labels import LabelReader
from pairloom.cli.rows import RowReader
from pairloom.data.readers import delimited, readers
from pairloom.data.readers.libsvm import MAX_INFERRED_COLUMNS
from pairloom.data.readers.opening import FileError
from pairloom.systems import FPOGD

SMALL = ("--system", "FPOGD", "--set", "n_components=4")
CSV = [
    b"1,x,2024-01-01,0,1", b"oops,x,2024-01-02,1,1", b"NA,x,2024-01-03,0,1", b"true,x,2024-01-03,0,1", b"1,x", b"",
    b"1_0,x,2024-01-02 10:00,1,1", b"inf,x,2024-01-03,0,1", b"1e300,x,2024-01-03,0,1", b'2,"a\nb",nodate,0,1',
    b"3,\xff,2024-01-01,0,1", b",,,1,1", b"4,x,2024-01-05T10:00+02:00,,1", b"5,x,2024-01-05,zwei,1",
    b"6,x,2024-01-05,1,heavy", b"7,x,2024-01-05,1,", b"8,x,2024-01-05,1,1,1,1", b"2024-01-01,x,2024-01-05,1,1",
    b"10:30,x,2024-01-05,1,1", b'9,"x,2024-01-05,1,1', b"nan,x,0001-01-01,0,1", b"9,x,99999-01-01,0,1",
    b" 8 ,x, 2024-01-05,1,1", b'"7","x""y",2024-01-05,1,2', b"false,,2024-01-05,1,0.5", *[b"5,x,2024-01-01,0,1"] * 30,
]  # fmt: skip
REST = ', "y": 1, "w": 1}'
JSON = [
    '{"a": 1, "b": "x", "d": "2024-01-01"' + REST, "[1]", '{"a": 1', '{"a": 1, "w": 1}', '{"a": 3, "y": 1}',
    '{"a": 3, "y": "zwei", "w": 1}', '{"b\\udc00": 1' + REST, *(f'{{"a": {a}{REST}' for a in (
        '"oops"', "true", '"true"', '"2.5"', "[1]", "1" + "0" * 400, "Infinity", '""', "null",
    )), '{"z": 1' + REST, '{"b": "\\ud800"' + REST, '{"d": "never"' + REST, '{"b": 3' + REST,
    '{"b": "\\ud83d\\ude00"' + REST, *['{"a": 2, "b": "x", "d": "2024-01-02"' + REST] * 30,
]  # fmt: skip
LIBSVM = [
    b"1 1:2 3:4", b"0 3:1 2:1", b"1 2:x", b"x 1:1", b"1 0:1", b"1 1:1 1:1", b"1", b"0 4:1 # far", b"1 9:1", b"nan 1:1",
    b"1 1099511627776:1", b"1 " + b"9" * 5000 + b":1", b"1  2:3", b"1 1:inf", b"-1e0 1:+.5", b"1 qid:3 2:1", b"1 a:1",
]  # fmt: skip


def only(path, **options):
    """The only chunk of a file, and its reader."""
    for reader in readers([str(path)], chunk_rows=1000, **options):
        return reader, next(iter(reader.chunks()))


def sifted_and_one_by_one(path, model, label="y", weight="w", **options):
    """The errors of rows, found at once and row by row; and the rows that are accepted both ways."""
    reader, chunk = only(path, **options)
    intake, labels = RowReader(model, label=label, weight=weight), LabelReader(kind="i")
    intake.open(reader)
    intake.start_chunk(chunk)
    taken, faults = intake.read_valid(chunk, 0, len(chunk), labels.read)
    alone, rows = {}, []
    for row in range(len(chunk)):
        try:
            one = intake.read(chunk, row, row + 1)
            labels.read(one.labels)
            model.score_many(one.X)
            rows.append(one)
        except ValueError as error:
            alone[row] = error_message(error)
    return faults, alone, taken[~np.isin(taken.rows, list(faults))], rows


def values(table):
    """Rows, with None in place of NaN, since both are missing."""
    return [[None if value != value else value for value in row.values()] for row in table.to_pylist()]


@pytest.fixture
def model():
    X = pa.table({"a": [1.0, 2.0], "b": ["x", "z"], "d": pa.array([0, 1], pa.timestamp("us"))})
    return FPOGD(n_components=4, random_state=0).fit(X, [0, 1])


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_rows_are_refused_together_as_they_are_alone(form, model, tmp_path):
    path = tmp_path / f"rows.{form}"
    path.write_bytes(b"a,b,d,y,w\n" + b"\n".join(CSV) if form == "csv" else "\n".join(JSON).encode())
    faults, alone, together, rows = sifted_and_one_by_one(path, model)
    assert faults == alone
    assert len(faults) >= 9
    assert values(together.X) == [row for one in rows for row in values(one.X)]
    assert together.weight.tolist() == [one.weight[0] for one in rows]


def test_libsvm_rows_are_refused_together_as_they_are_alone(tmp_path):
    (tmp_path / "rows.svm").write_bytes(b"\n".join(LIBSVM))
    model = FPOGD(n_components=4, random_state=0).fit(np.eye(4), [0, 1, 0, 1])
    faults, alone, together, rows = sifted_and_one_by_one(tmp_path / "rows.svm", model, None, None, width=4)
    assert {row: text for row, text in alone.items() if row in faults} == faults
    assert {LIBSVM[row] for row in alone.keys() - faults.keys()} == {b"1 1:inf"}  # which the model reports
    assert together.X.shape == (len(rows) + 1, 4)
    assert f"columns above {MAX_INFERRED_COLUMNS:,} are errors" in faults[LIBSVM.index(b"1 1099511627776:1")]


def test_malformed_rows_are_not_read_one_by_one(model, tmp_path, monkeypatch):
    good = "5,x,2024-01-01,0,1\n"
    (tmp_path / "rows.csv").write_text("a,b,d,y,w\n" + (good + "oops,x,2024-01-01,0,1\n" + good + "1\n") * 250)
    reader, chunk = only(tmp_path / "rows.csv")
    intake = RowReader(model, label="y", weight="w")
    intake.open(reader)
    intake.start_chunk(chunk)
    calls = []
    read = delimited.DelimitedChunk._read
    monkeypatch.setattr(delimited.DelimitedChunk, "_read", lambda *a, **k: calls.append(1) or read(*a, **k))
    taken, faults = intake.read_valid(chunk, 0, 1000)
    assert (len(taken), len(faults)) == (500, 500)
    assert len(calls) < 10


@pytest.mark.parametrize("slip", ["oops", "2024-99-99"])
def test_text_among_the_first_numbers_and_dates_is_malformed(slip, command, tmp_path):
    lines = [f"{i % 7},2024-01-{1 + i % 28:02d},{i % 2}\n" for i in range(20)]
    bad = "oops,2024-01-01,1\n" if slip == "oops" else f"1,{slip},1\n"
    (tmp_path / "bad.csv").write_text("a,d,y\n" + "".join([*lines[:10], bad, *lines[10:]]))
    (tmp_path / "good.csv").write_text("a,d,y\n" + "".join(lines))
    assert command("fit", "good.csv", *SMALL, "--model", "good", cwd=tmp_path).returncode == 0
    done = command("fit", "bad.csv", *SMALL, "--model", "m", "--on-bad-row", "skip", cwd=tmp_path)
    assert (done.returncode, done.stderr.startswith("bad.csv:12: column ")) == (0, True)
    assert (tmp_path / "m").read_bytes() == (tmp_path / "good").read_bytes()
    done = command("fit", "bad.csv", *SMALL, "--set", "columns.on_text=missing", "--model", "n", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert pairloom.load(tmp_path / "n").columns_.kinds == {"a": "number", "d": "date"}


def test_labels_that_a_model_does_not_know_are_skipped(command, tmp_path):
    rows = [f"{i},{'abca'[i % 4]}\n" for i in range(60)]
    (tmp_path / "rows.csv").write_text("x,y\n" + "".join(rows))
    done = command("fit", "rows.csv", *SMALL, "--model", "m", "--on-bad-row", "skip", "--quarantine", "q", cwd=tmp_path)
    assert done.stdout.startswith("rows   60, 15 skipped")
    assert (tmp_path / "q").read_text() == "x,y\n" + "".join(row for row in rows if "c" in row)
    done = command("evaluate", "m", "rows.csv", "--on-bad-row", "skip", "--json", cwd=tmp_path)
    assert (json.loads(done.stdout)["bad"], done.stderr.count("skipped")) == (15, 5)


@pytest.mark.parametrize("values", [
    pa.array([1, 2**64 - 1, 3] * 5, pa.uint64()), pa.array([1, 2**60 + 1, 3] * 5, pa.int64()),
    pa.array([1, 2**62, 3] * 5, pa.int64()).cast(pa.timestamp("us")), pa.array([1, 2, 3] * 5, pa.duration("us")),
    pa.array([[1], [2], [3]] * 5), pa.array([10**30, 1, 2] * 5, pa.decimal128(38, 0)),
], ids=lambda values: str(values.type))  # fmt: skip
@pytest.mark.parametrize("place", ["column", "label"])
def test_parquet_that_does_not_fit_is_malformed(values, place, command, tmp_path):
    rest = {"y": [0, 1, 0] * 5} if place == "column" else {}
    table = pa.table({"x": np.arange(15.0), "v": values, **rest})
    pq.write_table(table, tmp_path / "p.parquet")
    args = ("fit", "p.parquet", *SMALL, "--model", "m", "--on-bad-row", "skip", "--quarantine", "q")
    done = command(*args, "--label", "y" if rest else "v", cwd=tmp_path)
    assert "bug" not in done.stderr
    assert done.returncode in (0, 2)
    assert done.returncode == 0 or done.stderr.startswith("p.parquet")


def test_parquet_from_a_fifo_is_refused(tmp_path):
    pq.write_table(pa.table({"a": [1.0], "y": [1]}), tmp_path / "p.parquet")
    os.mkfifo(tmp_path / "fifo")
    threading.Thread(target=lambda: (tmp_path / "fifo").write_bytes((tmp_path / "p.parquet").read_bytes())).start()
    with pytest.raises(FileError, match="must be a file, not a pipe"):
        next(readers([str(tmp_path / "fifo")]))


def test_a_column_that_nobody_believes_does_not_take_all_memory(command, tmp_path):
    (tmp_path / "rows.svm").write_text("1 1:1\n0 2:1\n" * 5 + f"1 {2**40}:1\n0 {2**31}:1\n")
    done = command("fit", "rows.svm", *SMALL, "--model", "m", "--on-bad-row", "skip", cwd=tmp_path)
    assert done.returncode == 0
    assert f"rows.svm:11: column {2**40} exceeds the 2 columns of the model" in done.stderr
    assert pairloom.load(tmp_path / "m").n_features_in_ == 2
