"""Files and pipes as rows: the same chunks and line numbers for every format and compression."""

import bz2
import csv
import gzip
import hashlib
import io
import json
import lzma

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairloom.data.readers import readers, records
from pairloom.data.readers.opening import FileError, Gate, detect_format, list_files, open_input
from pairloom.data.readers.records import RecordSplitter, row_ends
from tests.conftest import examples

ROWS = [(1, "x\ny", "2024-01-01"), (2, 'q"z', "2024-01-02 10:00:00"), (3, "", ""), (4, "é, e", "2024-05-05")]
WORDS = st.text(alphabet='a,"\r\n é', max_size=4)


class Dribble(Gate):
    """A pipe that gives few bytes at a time."""

    def __init__(self, n):
        self.n = n

    def read(self, stream):
        return stream.read(self.n)


def zst(data):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def written(delimiter=",", end="\r\n"):
    text = io.StringIO()
    out = csv.writer(text, delimiter=delimiter, lineterminator=end)
    out.writerows([("a", "b", "c"), *ROWS])
    return text.getvalue().encode()


def parquet(rows=ROWS):
    sink = io.BytesIO()
    pq.write_table(pa.table(list(map(pa.array, zip(*rows, strict=True))), names=["a", "b", "c"]), sink)
    return sink.getvalue()


@pytest.fixture
def only():
    """The reader of a file, which stays open during the test."""
    alive = []

    def call(path, **options):
        alive.append(readers([str(path)], **options))
        return next(alive[-1])

    return call


def read(path, **options):
    """All rows of named columns, and the line of each."""
    rows, lines, kinds = [], [], None
    for reader in readers([str(path)], **options):
        for chunk in reader.chunks():
            kinds = kinds or chunk.infer(reader.names)
            rows += chunk.table(0, len(chunk), kinds).to_pylist()
            lines += [chunk.records.line_of(i) for i in range(len(chunk))]
    return rows, lines, kinds


COMPRESSIONS = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress, ".zst": zst}
FORMS = {
    "csv": written(), "tsv": written("\t", "\n"),
    "jsonl": "\n\n".join(json.dumps(dict(zip("abc", row, strict=True))) for row in ROWS).encode(),
}  # fmt: skip
LINES = {"csv": [2, 4, 5, 6], "tsv": [2, 4, 5, 6], "jsonl": [1, 3, 5, 7]}


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("named", [True, False], ids=["named", "unnamed"])
def test_text_formats_give_the_same_rows_in_every_compression(form, compression, named, tmp_path):
    path = tmp_path / (f"rows.{form}{compression}" if named else "rows")
    path.write_bytes(COMPRESSIONS[compression](FORMS[form]))
    rows, lines, kinds = read(path, chunk_rows=3)
    assert kinds == {"a": "number", "b": "category", "c": "date"}
    assert [(row["a"], row["b"]) for row in rows] == [row[:2] for row in ROWS]
    assert [None if row["c"] is None else row["c"].isoformat(" ") for row in rows] == [
        "2024-01-01 00:00:00", "2024-01-02 10:00:00", None, "2024-05-05 00:00:00",
    ]  # fmt: skip
    assert lines == LINES[form]


def test_two_members_of_a_compressed_file_are_one_stream(tmp_path):
    head, tail = written().split(b"\r\n", 1)
    for suffix, compress in list(COMPRESSIONS.items())[1:]:
        path = tmp_path / f"rows.csv{suffix}"
        path.write_bytes(compress(head + b"\r\n") + compress(tail))
        assert len(read(path)[0]) == 4


def test_parquet(tmp_path):
    (tmp_path / "rows").write_bytes(parquet())
    rows, lines, kinds = read(tmp_path / "rows", chunk_rows=3)
    assert [tuple(row.values()) for row in rows] == ROWS
    assert lines == [1, 2, 3, 4]
    assert kinds == {"a": "number", "b": "category", "c": "date"}


@examples(60)
@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=8), st.sampled_from(["\n", "\r\n", "\r"]),
       st.integers(1, 7), st.integers(1, 4), st.booleans())  # fmt: skip
def test_rows_are_cut_as_pythons_csv_module_does(rows, end, step, most, ended):
    text = io.StringIO(newline="")
    bare = any(end in word for row in rows for word in row for end in "\r\n")  # which the writer leaves without quotes
    csv.writer(text, lineterminator=end, quoting=csv.QUOTE_ALL if bare else csv.QUOTE_MINIMAL).writerows(rows)
    data = text.getvalue().encode()
    data = data if ended else data.removesuffix(end.encode())
    splitter = RecordSplitter("x", io.BytesIO(data), row_ends(","), Dribble(step))
    chunks = list(splitter.chunks(most))
    found = [chunk.record(i) for chunk in chunks for i in range(len(chunk))]
    assert [tuple(next(csv.reader([one.decode()]))) for one in found] == rows
    lines, at = [], 0
    for one in found:
        lines.append(1 + records.count_lines(data[:at]))
        at += len(one) if ended or one is not found[-1] else 0
    assert [chunk.line_of(i) for chunk in chunks for i in range(len(chunk))] == lines
    assert all(len(chunk) == most for chunk in chunks[:-1])


def test_a_digest_does_not_depend_on_cuts():
    data, found = b"a,b\n1,2\n\n3,4\n5,6", set()
    for step, most in [(1, 1), (3, 2), (100, 100)]:
        digest = hashlib.blake2b()
        for chunk in RecordSplitter("x", io.BytesIO(data), row_ends(","), Dribble(step)).chunks(most):
            chunk.feed(digest, 0, 1)
            chunk.feed(digest, 1, len(chunk))
        found.add(digest.digest())
    assert found == {hashlib.blake2b(b"a,b\n1,2\n3,4\n5,6\n").digest()}


def test_chunks_are_bounded_in_bytes_wherever_blocks_end(monkeypatch):
    monkeypatch.setattr(records, "MAX_CHUNK_BYTES", 10)
    data = b"aaaa\n" * 5
    sizes = [
        [len(p) for p in RecordSplitter("x", io.BytesIO(data), row_ends(","), Dribble(n)).chunks(99)]
        for n in (1, 7, 99)
    ]
    assert sizes == [[2, 2, 1]] * 3


def test_a_quote_that_is_never_closed_is_reported_with_its_line(tmp_path, monkeypatch, only):
    path = tmp_path / "a.csv"
    path.write_bytes(b'a,b\n1,2\n3,"4\n' + b"5,6\n" * 10)
    reader = only(path)
    [chunk] = reader.chunks()
    assert chunk.table(0, 1, {"a": "number"}).num_rows == 1
    with pytest.raises(ValueError, match="a quote opened here is never closed"):
        chunk.table(1, 2, {"a": "number"})
    assert chunk.records.line_of(1) == 3
    monkeypatch.setattr(records, "MAX_RECORD_BYTES", 20)
    reader = only(path)
    chunks = reader.chunks()
    assert len(next(chunks)) == 1
    with pytest.raises(FileError, match=r"a\.csv:3: the row is longer than"):
        next(chunks)


@pytest.mark.parametrize("compression", [".gz", ".xz", ".bz2", ".zst"])
def test_a_file_that_is_cut_off_gives_its_rows_and_then_says_so(compression, tmp_path):
    data = b"a,b\n" + b"".join(b"%d,%d\n" % (i * 7919 % 10007, i) for i in range(40_000))
    whole = COMPRESSIONS[compression](data)
    path = tmp_path / "a.csv"
    path.write_bytes(whole[: len(whole) * 9 // 10])
    sizes = []
    with pytest.raises(FileError, match=r"a\.csv: the file is damaged or truncated"):
        sizes.extend(len(chunk) for reader in readers([str(path)], chunk_rows=100) for chunk in reader.chunks())
    assert sum(sizes) > 20_000 or compression == ".bz2"  # which is one block, or none


@pytest.mark.parametrize(("row", "message"), [
    (b"1,2", "expected 3 values, as in the header, got 2"), (b'1,"a\nb",2,3', "expected 3 values, .* got 4"),
    (b"1,\xff,3", "not UTF-8"),
])  # fmt: skip
def test_rows_that_are_no_csv(row, message, tmp_path, only):
    (tmp_path / "a.csv").write_bytes(b"a,b,c\n" + row + b"\n4,5,6\n")
    reader = only(tmp_path / "a.csv")
    [chunk] = reader.chunks()
    kinds = {"a": "number", "b": "category", "c": "number"}
    for high in (1, 2):
        with pytest.raises(ValueError, match=message):
            chunk.table(0, high, kinds)
    assert chunk.table(1, 2, kinds).to_pylist() == [{"a": 4, "b": "5", "c": 6}]


def test_kinds_are_read_as_they_are_known(tmp_path, only):
    (tmp_path / "a.csv").write_bytes(b"flag,zip,day,empty,number\ntrue,007,2024-01-01,,2024-01-01\nfalse,8,x,,1\n")
    reader = only(tmp_path / "a.csv")
    [chunk] = reader.chunks()
    assert chunk.infer(["flag", "zip", "empty"]) == {"flag": "number", "zip": "category", "empty": None}
    kinds = {"flag": "number", "zip": "category", "day": "date", "empty": None, "number": "number"}
    rows = chunk.table(0, 2, kinds).to_pylist()
    assert [row["zip"] for row in rows] == ["007", "8"]
    assert [row["flag"] for row in rows] == [True, False]
    assert [row["day"] for row in rows] == ["2024-01-01", "x"]  # the model reports invalid dates
    assert chunk.table(0, 1, kinds).to_pylist()[0]["number"] == "2024-01-01"  # not a number of days


@pytest.mark.parametrize(("line", "message"), [
    ('{"a": 1', "invalid JSON at"), ("[1]", "expected an object"), ('{"a": [1]}', "neither a number nor text"),
    ('{"z": 1}', "unknown key 'z'"), ('{"a": 1' + "0" * 400 + "}", "too large for a 64-bit float"),
])  # fmt: skip
def test_lines_that_are_no_json(line, message, tmp_path, only):
    (tmp_path / "a.jsonl").write_text('{"a": 1, "b": "x"}\n{"a": 2, "b": 3}\n' + line + "\n")
    reader = only(tmp_path / "a.jsonl", chunk_rows=2)
    first, second = reader.chunks()
    kinds = first.infer(reader.names)
    assert kinds == {"a": "number", "b": "category"}
    assert first.table(0, 2, kinds).to_pylist() == [{"a": 1, "b": "x"}, {"a": 2, "b": "3"}]
    with pytest.raises(ValueError, match=message):
        second.table(0, 1, kinds)


def test_libsvm(tmp_path, only):
    path = tmp_path / "rows"
    path.write_text("+1 1:0.5 3:2\n# a comment\n-1 2:1\n\n+1 5:1 # another\n1 3:x\n")
    reader = only(path, chunk_rows=2)
    first, second = reader.chunks()
    assert reader.width == 5  # of the whole file
    X, y = first.rows(0, 2, 5)
    assert X.tolist() == [[0.5, 0, 2, 0, 0], [0, 1, 0, 0, 0]]
    assert y.tolist() == [1, -1]
    assert [second.records.line_of(i) for i in range(2)] == [5, 6]
    with pytest.raises(ValueError, match="invalid LIBSVM row"):
        second.rows(1, 2, 5)
    with pytest.raises(ValueError, match=r"column 5 exceeds the 4 columns of the model: .*--width"):
        second.rows(0, 1, 4)
    assert first.rows(0, 1, 2000)[0].format == "csr"


def test_a_closed_gate_ends_the_stream_and_leaves_out_half_a_record():
    class Closing(Gate):
        def read(self, stream):
            self.closed = True
            return stream.read(9)

    chunks = list(RecordSplitter("x", io.BytesIO(b"1,2\n3,4\n5,6\n"), row_ends(","), gate := Closing()).chunks(10))
    assert len(chunks) == 1 or gate.closed
    gate = Gate()
    splitter = RecordSplitter("x", io.BytesIO(b"1,2\n3,4\n5"), row_ends(","), gate)
    splitter._read()
    gate.closed = True
    assert [chunk.raw for chunk in splitter.chunks(10)] == [b"1,2\n3,4\n"]


@pytest.mark.parametrize(("first", "form"), [
    (b'{"a": 1}', "jsonl"), (b"+1 3:4 7:1e-3", "libsvm"), (b"0.5 1:2 # x", "libsvm"), (b"a\tb", "tsv"), (b"a,b", "csv"),
    (b"1,2:3", "csv"), (b"", "csv"), (b"PAR1\x00", "parquet"), (b"\xef\xbb\xbfa,b", "csv"),
])  # fmt: skip
def test_the_first_line_determines_the_format(first, form, tmp_path):
    (tmp_path / "x").write_bytes(first)
    with open_input(str(tmp_path / "x"), Dribble(2)) as stream:
        assert detect_format("x", stream) == form


def test_folders_are_their_files_in_order(tmp_path):
    for name in ("b/2.csv", "b/1.csv", "a.csv", "_SUCCESS", ".hidden", "b/.x.crc"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    assert list_files([str(tmp_path), "-"]) == [*(str(tmp_path / n) for n in ("a.csv", "b/1.csv", "b/2.csv")), "-"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileError, match="no files in this folder"):
        list_files([str(tmp_path / "empty")])
    with pytest.raises(FileError, match="nowhere: No such file"):
        list(readers(["nowhere"]))


def test_headers_that_will_not_do(tmp_path):
    for text, message in [
        (b"a,a\n1,2\n", r"x\.csv:1: the header has the column 'a' more than once"),
        (b"\xff,b\n", "header cannot be"),
    ]:
        (tmp_path / "x.csv").write_bytes(text)
        with pytest.raises(FileError, match=message):
            list(readers([str(tmp_path / "x.csv")]))
    (tmp_path / "x.csv").write_bytes(b"\xef\xbb\xbfa,b\n1,2\n")
    assert read(tmp_path / "x.csv")[0] == [{"a": 1, "b": 2}]
