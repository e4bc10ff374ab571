"""Labels and kinds of files: each text is one label or category, and no two are merged."""

import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pairloom
from pairloom.cli.labels import LabelReader
from pairloom.data.readers import readers

LARGE = [2**53, 2**53 + 1]


def read(values, kind=None, **more):
    """The labels of a column, whose kind is inferred from its first rows."""
    reader, column = LabelReader(**more), pa.chunked_array([pa.array(values, kind)])
    return reader.read(column).tolist()


@pytest.mark.parametrize(
    ("texts", "labels"),
    [
        (["0", "1"], [0, 1]),
        (["+1", "-1", "1.0"], [1, -1, 1]),
        (["1.000000000000000000e+00", "0.000000000000000000e+00"], [1, 0]),
        ([str(one) for one in LARGE], LARGE),
        (["01", "1"], ["01", "1"]),
        (["1_0", "10"], ["1_0", "10"]),
        (["1.1", "1.10"], ["1.1", "1.10"]),
        (["0.5", "1"], [0.5, 1.0]),
        (["nan", "1"], ["nan", "1"]),
        (["inf", "1"], ["inf", "1"]),
        (["TRUE", "false"], [True, False]),
        (["TRUE", "yes"], ["TRUE", "yes"]),
        ([str(2**63), "1"], [str(2**63), "1"]),
        (["1e999999999", "1"], ["1e999999999", "1"]),
        (["9" * 5000, "1"], ["9" * 5000, "1"]),
        ([" fraud ", "fine"], ["fraud", "fine"]),
    ],
)
def test_labels_of_text(texts, labels):
    found = read(texts)
    assert found == labels
    assert [type(one) for one in found] == [type(one) for one in labels]


def test_labels_of_types():
    assert read(LARGE, pa.int64()) == LARGE
    assert read([1.0, 0.0], pa.float64()) == [1, 0]
    assert read([True, False], pa.bool_()) == [True, False]
    assert read(["nan", "x"], pa.dictionary(pa.int8(), pa.string())) == ["nan", "x"]
    for gap, kind in ((None, pa.string()), ("", pa.string()), (np.nan, pa.float64())):
        with pytest.raises(ValueError, match="the label is missing"):
            read([gap], kind)
    with pytest.raises(ValueError, match="the label has type list"):
        read([[1]], pa.list_(pa.int8()))


def test_the_positive_label_is_compared_as_a_number_only_if_it_is_one():
    assert read(["1", "1.0", "+1", "01", "1_0"], positive="1") == ["1", "1", "1", "not 1", "not 1"]
    assert read(["nan", "0"], positive="nan") == ["nan", "not nan"]


def test_labels_of_a_model_are_read_as_its_classes_are():
    class Model:
        pos_label = None
        classes_ = np.array([2**64 - 1, 0], dtype=np.uint64)

    reader = LabelReader.of(Model())
    assert reader.read_one(2**64 - 1) == 2**64 - 1
    with pytest.raises(ValueError, match=r"^the label is '1e5x', but the labels before it are integers$"):
        reader.read_one("1e5x")
    Model.classes_ = np.array([b"a", b"b"])
    assert LabelReader.of(Model()).read_one("a") == "a"


def kinds_of(path, data):
    path.write_bytes(data)
    [chunk] = [chunk for reader in readers([str(path)]) for chunk in reader.chunks()]
    kinds = chunk.infer(["x"])
    return kinds["x"], chunk.table(0, len(chunk), kinds).column("x").to_pylist()


def test_codes_are_categories_and_underscores_make_no_numbers(tmp_path):
    assert kinds_of(tmp_path / "a.csv", b"x\n01\n1\n") == ("category", ["01", "1"])
    assert kinds_of(tmp_path / "a.csv", b"x\n0x1F\n31\n") == ("category", ["0x1F", "31"])
    assert kinds_of(tmp_path / "a.csv", b"x\n0\n0.5\n-7\n") == ("number", [0.0, 0.5, -7.0])
    assert kinds_of(tmp_path / "a.csv", b"x\n1_0\n" + b"10\n" * 19) == ("number", ["1_0"] + ["10"] * 19)  # an error
    assert kinds_of(tmp_path / "a.jsonl", b'{"x": "01"}\n{"x": 1}\n') == ("category", ["01", "1"])
    many = "\n".join(json.dumps({"x": one}) for one in [*"abcdef", *LARGE, True, 1, 0.5, None, float("nan")])
    assert kinds_of(tmp_path / "a.jsonl", many.encode()) == (
        "category", [*"abcdef", *map(str, LARGE), "True", "1", "0.5", None, None]
    )  # fmt: skip
    assert kinds_of(tmp_path / "a.jsonl", b'{"x": NaN}\n{"x": null}\n') == (None, [None, None])


@pytest.mark.parametrize("line", [b"1_0 1:2\n", b"1 1_0:2\n", b"1 1:2_0\n", b"9007199254740993 1:2\n"])
def test_libsvm_has_plain_numbers(line, tmp_path):
    (tmp_path / "a.svm").write_bytes(b"1 1:2 # a_comment\n" + line)
    [chunk] = [chunk for reader in readers([str(tmp_path / "a.svm")]) for chunk in reader.chunks()]
    assert chunk.rows(0, 1, 10)[1].tolist() == [1]
    with pytest.raises(ValueError, match="invalid LIBSVM row: "):
        chunk.rows(1, 2, 10)


def test_every_format_learns_the_same_exact_labels_and_categories(command, tmp_path):
    rows = [{"x": k / 4, "id": 2**60 + k % 2, "y": LARGE[k % 2]} for k in range(8)]
    parquet = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), parquet)
    csv = "x,id,y\n" + "".join("{x},{id},{y}\n".format(**row) for row in rows)
    forms = {
        "a.csv": csv.encode(),
        "a.jsonl": "\n".join(map(json.dumps, rows)).encode(),
        "a.parquet": parquet.getvalue(),
    }
    made = set()
    for name, data in forms.items():
        (tmp_path / name).write_bytes(data)
        done = command(
            "fit", name, "--system", "FPOGD", "--set", "n_components=4", "--set", "columns.id=category", "--model", "m",
            "--overwrite", cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        model = pairloom.load(tmp_path / "m")
        assert model.classes_.tolist() == LARGE
        assert model.columns_.categories["id"] == [str(2**60), str(2**60 + 1)]
        made.add((tmp_path / "m").read_bytes())
    assert len(made) == 1
