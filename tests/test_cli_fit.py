"""`pairloom fit` and `predict`, in real processes: every format gives the model that Python gives, byte for byte."""

import bz2
import csv
import gzip
import io
import json
import lzma
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

import pairloom
from pairloom.data import fraud_like
from pairloom.estimators.saving import FileColumns
from pairloom.systems import FPOGD
from tests.commands import start
from tests.test_readers import zst

N = 1200
FPOGD_16 = ("--system", "FPOGD", "--set", "n_components=16", "--set", "max_strata=4")


def make(**more):
    return FPOGD(n_components=16, max_strata=4, random_state=0, **more)


@pytest.fixture(scope="module")
def frame():
    columns, fraud = fraud_like(N, positive=0.2)
    return pd.DataFrame(columns).assign(fraud=fraud)


@pytest.fixture(scope="module")
def text(frame):
    return frame.to_csv(index=False).encode()


@pytest.fixture(scope="module")
def model(frame, tmp_path_factory):
    """The model of all rows, by Python; its bytes."""
    return saved(make().fit(frame.drop(columns="fraud"), frame["fraud"]), tmp_path_factory.mktemp("model"))


def saved(model, folder, label="fraud"):
    """The bytes of a model, with the label column of its file, which Python does not know."""
    model._file_columns = None if label is None else FileColumns(label)
    pairloom.save(model, folder / "python.pairloom")
    return (folder / "python.pairloom").read_bytes()


def fitted(command, folder, *args, **more):
    """The bytes of the model, after a run that must succeed."""
    done = command("fit", *args, *FPOGD_16, "--model", folder / "m", **more)
    assert done.returncode == 0, done.stderr
    return (folder / "m").read_bytes()


def forms(frame, text):
    rows = frame.astype({"time": str}).astype(object).where(frame.notna(), None).to_dict("records")
    parquet = io.BytesIO()
    frame.to_parquet(parquet)
    return {
        "csv": text, "tsv": frame.to_csv(index=False, sep="\t").encode(), "parquet": parquet.getvalue(),
        "jsonl": "\n".join(map(json.dumps, rows)).encode(),
    }  # fmt: skip


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "parquet"])
def test_every_format_gives_pythons_model(form, command, frame, text, model, tmp_path):
    (tmp_path / f"rows.{form}").write_bytes(forms(frame, text)[form])
    made = fitted(command, tmp_path, tmp_path / f"rows.{form}", "--label", "fraud", "--chunk", 500)
    assert made == model


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress, zst], ids=["gz", "bz2", "xz", "zst"])
def test_every_compression_from_stdin(compress, command, text, model, tmp_path):
    assert fitted(command, tmp_path, "-", "--label", "fraud", stdin=compress(text)) == model


def test_libsvm_and_many_files_and_folders(command, tmp_path):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((300, 5)) < 0.6, rng.integers(-9, 9, (300, 5)) / 8, 0.0) + 0.0
    y = np.where(X[:, 0] > 0.2, 1, -1)
    lines = [
        f"{label:+d} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(row) if v)
        for label, row in zip(y, X, strict=True)
    ]
    (tmp_path / "folder").mkdir()
    for k in range(2):
        (tmp_path / "folder" / f"{k}.svm").write_text("\n".join(lines[100 * k : 100 * k + 100]))
    made = fitted(command, tmp_path, tmp_path / "folder", "-", "--width", 5, stdin="\n".join(lines[200:]).encode())
    assert made == saved(make().fit(X, y), tmp_path, label=None)
    done = command("predict", tmp_path / "m", tmp_path / "folder", "--proba")
    scores = np.loadtxt(io.StringIO(done.stdout), skiprows=1)
    np.testing.assert_allclose(scores, pairloom.load(tmp_path / "m").predict_proba(X[:200])[:, 1], rtol=1e-12)
    (tmp_path / "folder" / "1.svm").write_text("\n".join(lines[100:150]) + "\n-1 2:x\n+1 3:1\n")
    done = command("fit", tmp_path / "folder", *FPOGD_16, "--model", tmp_path / "m", "--width", 5, "--overwrite")
    assert done.returncode == 2
    assert f"{tmp_path / 'folder' / '1.svm'}:51: invalid LIBSVM row" in done.stderr
    assert (tmp_path / "m").read_bytes() == made
    assert (tmp_path / "m.partial").read_bytes() == saved(make().fit(X[:150], y[:150]), tmp_path, label=None)


def test_a_pipe_from_another_process(text, model, tmp_path):
    (tmp_path / "rows.csv.gz").write_bytes(gzip.compress(text))
    with subprocess.Popen(["gzip", "-dc", "rows.csv.gz"], cwd=tmp_path, stdout=subprocess.PIPE) as source:
        fit = start(
            "fit", "-", "--label", "fraud", *FPOGD_16, "--model", "m", "--json",
            cwd=tmp_path, stdin=source.stdout, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        out, err = fit.communicate(timeout=120)
    assert (fit.returncode, err) == (0, b"")
    printed = json.loads(out)
    assert (printed["rows"], printed["learned"], printed["bad"], printed["classes"]) == (N, N, 0, [0, 1])
    assert printed["auc"]["value"] == pairloom.load(tmp_path / "m").auc_.value
    assert (tmp_path / "m").read_bytes() == model


def test_auc_classifier_is_the_default_and_reports_the_positive_label(command, frame, tmp_path):
    named = frame.assign(kind=np.where(frame["fraud"] == 1, "fraud", frame["channel"])).drop(columns="fraud")
    named.assign(w=2.0).to_csv(tmp_path / "rows.csv", index=False)
    done = command(
        "fit", "rows.csv", "--label", "kind", "--positive", "fraud", "--weight", "w", "--drop", "merchant",
        "--set", "budget.bytes=1e7", "--set", "columns.device=drop", "--log", "log.jsonl", "--chunk", 400,
        "--half-life", 5000, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"rows   {N:,}; ")
    assert not {"\x1b", "\r"} & set(
        done.stderr
    )  # no bars or colours in a pipe, except perhaps a line every ten seconds
    model = pairloom.load(tmp_path / "model.pairloom")
    assert type(model) is pairloom.AUCClassifier
    assert model.half_life == 5000
    assert model.classes_.tolist() == ["fraud", "not fraud"]
    assert model.pos_label_ == "fraud"
    assert model.columns_.kinds["device"] == "drop"
    assert "merchant" not in model.feature_names_in_
    log = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [line["row"] for line in log] == [400, 800, 1200]
    assert log[-1]["auc"] == model.auc_.value

    done = command(
        "predict", "model.pairloom", "rows.csv", "--keep", "kind", "--alert-rate", 0.1, "-o", "out", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    budget = model.alert_budget(rate=0.1)
    flags = budget(
        scores := model.score_many(pa_csv.read_csv(tmp_path / "rows.csv").select(model.feature_names_in_.tolist()))
    )
    assert done.stderr.splitlines()[0] == f"alerts: {flags.mean():.4g} of {N:,} rows, requested 0.1"
    found = pd.read_csv(tmp_path / "out")
    assert list(found) == ["kind", "score", "alert"]
    np.testing.assert_array_equal(found["score"], scores)
    np.testing.assert_array_equal(found["alert"] == 1, flags)
    assert found["score"][found["kind"] == "fraud"].mean() > found["score"][found["kind"] != "fraud"].mean()


def test_predict_writes_json_lines_and_finds_columns_by_name(command, frame, text, model, tmp_path):
    (tmp_path / "m").write_bytes(model)
    frame[frame.columns[::-1]].assign(extra="x").head(7).to_json(
        tmp_path / "r.jsonl", orient="records", lines=True, date_format="iso"
    )
    done = command("predict", "m", "r.jsonl", "--json", "--keep", "extra", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert {line["extra"] for line in lines} == {"x"}
    expected = pairloom.load(tmp_path / "m").score_many(frame.drop(columns="fraud").head(7))
    np.testing.assert_array_equal([line["score"] for line in lines], expected)


def broken(form, frame, text):
    """Rows of a format of which number 700 is malformed, its line, and the message."""
    if form == "jsonl":
        lines = forms(frame, text)["jsonl"].splitlines()
        lines[700] = lines[700][:40]
        return b"\n".join(lines), 701, "invalid JSON at character "
    if form == "parquet":
        kept, out = frame.astype({"fraud": object}), io.BytesIO()
        kept.loc[700, "fraud"] = None
        kept.to_parquet(out)
        return out.getvalue(), 701, "the label is missing"
    rows = list(csv.reader(io.StringIO(text.decode())))
    rows[1][-2] = "two\nlines"  # a quoted value, before it
    place = {"columns": 4, "infinity": 3}.get(form)
    if place:
        rows[701][place] = "inf" if form == "infinity" else "oops"
    else:
        del rows[701][3:5]
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    said = {"columns": "column 'payments_24h' must contain numbers, but contains 'oops': correct it",
            "infinity": "column 'payments_1h' contains infinity"}  # fmt: skip
    return out.getvalue().encode(), 703, said.get(form, "expected 18 values, as in the header, got 16")


@pytest.mark.parametrize("form", ["csv", "gz", "columns", "infinity", "jsonl", "parquet"])
def test_a_malformed_row_is_reported_with_its_line_and_earlier_rows_are_saved(form, command, frame, text, tmp_path):
    data, line, said = broken(form, frame, text)
    (tmp_path / "rows").write_bytes(gzip.compress(data) if form == "gz" else data)
    args = ("fit", "rows", "--label", "fraud", *FPOGD_16, "--model", "m", "--chunk", 500)
    done = command(*args, "--checkpoint", "run", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"rows:{line}: {said}")
    assert done.stderr.endswith("\nPartial model of the first 700 rows: m.partial\n")
    assert len(done.stderr.splitlines()) == 2
    assert done.stdout == ""
    before = frame.head(700).copy()
    if form in ("csv", "gz", "columns", "infinity"):
        before.loc[0, "device"] = "two\nlines"
    expected = saved(make().fit(before.drop(columns="fraud"), before["fraud"]), tmp_path)
    assert not (tmp_path / "m").exists()
    assert (tmp_path / "m.partial").read_bytes() == expected

    done = command(*args, "--checkpoint", "other", "--on-bad-row", "skip", "--quarantine", "bad", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith("rows   1,200, 1 skipped; ")
    assert pairloom.load(tmp_path / "m").n_seen_ == N - 1
    if form != "parquet":
        bad = (tmp_path / "bad").read_bytes()
        lines = data.splitlines(keepends=True)
        assert bad == (b"" if form == "jsonl" else lines[0]) + lines[line - 1]


def test_a_corrected_file_resumes_where_it_stopped(command, frame, text, model, tmp_path):
    lines = text.splitlines(keepends=True)
    args = ("fit", "rows.csv", "--label", "fraud", *FPOGD_16, "--model", "m", "--checkpoint", "run", "--chunk", 500)
    (tmp_path / "rows.csv").write_bytes(b"".join([*lines[:701], b"oops\n", *lines[702:]]))
    assert command(*args, cwd=tmp_path).returncode == 2
    (tmp_path / "rows.csv").write_bytes(text)
    assert command(*args, cwd=tmp_path).stderr.startswith("pairloom: run already has checkpoints; use --resume")
    done = command(*args, "--resume", cwd=tmp_path)
    assert done.stderr == "Resuming after row 700.\n"
    assert (tmp_path / "m").read_bytes() == model
    done = command(*args, "--resume", "--set", "eta=1", cwd=tmp_path)
    assert (done.returncode, "settings was" in done.stderr) == (2, True)
    (tmp_path / "rows.csv").write_bytes(text.replace(b"online", b"onlime", 1))
    done = command(*args, "--resume", cwd=tmp_path)
    assert done.returncode == 2
    assert "rows.csv: the first 1,200 rows differ from those of the checkpoint" in done.stderr
    (tmp_path / "rows.csv").write_bytes(b"".join(lines[:100]))
    assert "the input ends at row 99, before the checkpoint" in command(*args, "--resume", cwd=tmp_path).stderr
    assert (tmp_path / "m").read_bytes() == model


WRONG = {
    "empty": (b"", "rows.csv: no rows to learn from"),
    "header": (b"a,label\n", "rows.csv: no rows to learn from"),
    "no label": (b"a,b\n1,2\n", "rows.csv: no label column; set --label to one of 'a', 'b'"),
    "twice": (b"a,a,label\n1,2,0\n", "rows.csv:1: the header has the column 'a' more than once"),
    "many": (b"a,b,c,d,e,f,g,h,bad\n" + b"1," * 8 + b"0\n", "rows.csv: no label column; set --label to "
             "one of 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'bad'"),
    "nothing": (b"label\n1\n", "rows.csv: no columns to learn from"),
    "nested": (b'{"a": {}, "label": 1}\n', "rows.csv:1: 'a' is {}, neither a number nor text: use --drop a"),
    "labels": (b"a,label\n1,0\n2,1\n3,2\n", "rows.csv:4: label 2 is not one of [0, 1], the classes of this model"),
    "gz": (gzip.compress(b"a,label\n" + b"1,0\n" * 9)[:-9], "rows.csv: the file is damaged or truncated"),
    "bytes": (b"a,label\n1,0\n\xe8\x01\n3,1\n", "rows.csv:3: the text is not UTF-8"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_files_that_will_not_do(case, command, tmp_path):
    data, said = WRONG[case]
    (tmp_path / "rows.csv").write_bytes(data)
    done = command("fit", "rows.csv", *FPOGD_16, *(["--format", "jsonl"] if case == "nested" else []), cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(said)
    assert len(done.stderr.splitlines()) <= 2
    assert done.stdout == ""


def test_columns_of_later_files_must_match(command, tmp_path):
    (tmp_path / "a.csv").write_text("a,b,y\n1,x,0\n2,z,1\n")
    (tmp_path / "b.csv").write_text("a,c,y\n1,2,0\n")
    (tmp_path / "c.csv").write_text("y,b,a\n1,x,5\n")
    done = command("fit", "a.csv", "b.csv", *FPOGD_16, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("b.csv: the columns do not match the model: missing 'b', unknown 'c'")
    assert fitted(command, tmp_path, "a.csv", "c.csv", cwd=tmp_path)
    for args in (("predict", "m", "b.csv"), ("predict", "m", "a.csv", "--keep", "q")):
        assert command(*args, cwd=tmp_path).returncode == 2
    (tmp_path / "d.csv").write_text("a,b\n1,x\noops,x\n")
    done = command("predict", "m", "d.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("d.csv:3: column 'a' must contain numbers, but contains 'oops'")
    assert len(done.stdout.splitlines()) == 2  # the header, and the row before it


def test_one_class_only_is_learned_with_a_warning(command, tmp_path):
    (tmp_path / "a.csv").write_text("a,y\n1,0\n2,0\n")
    done = command("fit", "a.csv", *FPOGD_16, "--json", cwd=tmp_path)
    assert (done.returncode, json.loads(done.stdout)["auc"]["value"]) == (0, None)
    assert "only one class so far, 0" in done.stderr


def test_ten_thousand_columns(command, tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 10_000)).round(2)
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(10_000)]).assign(y=(X[:, 0] > 0).astype(int))
    frame.to_csv(tmp_path / "wide.csv", index=False)
    assert fitted(command, tmp_path, tmp_path / "wide.csv")
    assert pairloom.load(tmp_path / "m").feature_names_in_.tolist() == list(frame)[:-1]


@pytest.mark.parametrize(("args", "code", "said"), [
    (("--system", "SVM"), 2, "pairloom: unknown system 'SVM'; choose one of AUCClassifier, "),
    (("--set", "etta=1"), 2, "pairloom: AUCClassifier has no parameter 'etta'; it has budget, "),
    (("--set", "loss=cubic"), 2, "pairloom: loss must be one of "),
    (("--set", "columns.a=colour"), 2, "pairloom: --set columns.a: the kind of a column is one of number, "),
    (("--quarantine", "q"), 2, "pairloom: --quarantine requires --on-bad-row skip"),
    (("--model", "nowhere/m"), 2, "no folder 'nowhere'"),
    (("--resume",), 2, "requires --checkpoint"),
    (("--label", "b"), 2, "a.csv: no column 'b' (--label); the columns are 'a', 'y'"),
    (("--debug", "--set", "eta"), 2, "Traceback"),
])  # fmt: skip
def test_wrong_options(args, code, said, command, tmp_path):
    (tmp_path / "a.csv").write_text("a,y\n1,0\n2,1\n")
    done = command("fit", "a.csv", *args, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert ("Traceback" in done.stderr) == ("--debug" in args)


def test_where_nothing_can_be_written_it_says_so_before_it_reads(tmp_path):
    folder = Path("/proc") if os.geteuid() == 0 else tmp_path
    folder.chmod(0o555) if folder == tmp_path else None
    (tmp_path / "a.csv").write_text("a,y\n1,0\n2,1\n") if folder != tmp_path else None
    done = start("fit", "-", "--model", folder / "m", cwd=tmp_path, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert b"cannot write" in done.communicate(timeout=60)[1].replace(b"\n", b" ")
    assert done.returncode == 2


def test_help_does_not_wait_for_compilers():
    code = """
import sys
sys.argv = ["pairloom", "fit", "--help"]
from pairloom.cli import app
try:
    app()
except SystemExit:
    print(sorted({"numba", "sklearn", "scipy", "pyarrow", "numpy", "matplotlib"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")
    assert pa.__version__
