"""`pairloom fit --workers`: files of a folder are partitions that worker processes read."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import pairloom
from pairloom.cli.commands import app

pytest.importorskip("distributed", reason="distributed is missing: pip install -e .[dask]")


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "logs").mkdir()
    for k, n in enumerate((1500, 2500, 40)):
        frame = pd.DataFrame({"x": rng.normal(size=n), "kind": rng.choice(["a", "b"], n), "w": 1.0})
        frame["label"] = np.where(frame["x"] + (frame["kind"] == "a") + rng.normal(size=n) > 1.5, "fraud", "fine")
        frame.to_parquet(tmp_path / "logs" / f"part{k}.parquet")
    return tmp_path / "logs"


def fit(*words):
    return CliRunner().invoke(app, ["fit", *map(str, words)])


@pytest.mark.filterwarnings("ignore")
def test_two_workers_learn_a_folder(folder, tmp_path):
    out = tmp_path / "model.pairloom"
    args = ("--label", "label", "--positive", "fraud", "--weight", "w", "--system", "FPOGD", "--model", out, "--json")
    done = fit(folder, "--workers", 2, *args)
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout.strip().splitlines()[-1])
    assert (result["rows"], result["files"]) == (4040, 3)
    assert "Dashboard: http" in done.stderr
    model = pairloom.load(out)
    assert model.classes_.tolist() == ["fraud", "not fraud"]
    assert model.columns_.kinds == {"x": "number", "kind": "category"}
    assert model.auc_.value > 0.7


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--label", "label", "--log", "log.jsonl"], "--log is for a run in one process"),
        ([], "need --label"),
        (["--label", "label", "--system", "OGD"], "OGD cannot learn on several workers"),
    ],
)
def test_errors_before_a_cluster_starts(folder, tmp_path, words, message, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = fit(folder, "--workers", 2, *words)
    assert done.exit_code != 0
    assert message in done.output
    assert not (tmp_path / "model.pairloom").exists()


def test_other_files_are_an_error(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (folder / "more.csv").write_text("x,label\n1,a\n")
    done = fit(folder, "--workers", 2, "--label", "label")
    assert "more.csv: workers read Parquet files only" in done.output
