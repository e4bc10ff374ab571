"""`pairloom fit --from`: a model continues as if it had not been saved, and no other file is replaced."""

import json
import os
import signal
import subprocess
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import pairloom
from pairloom.data import fraud_like
from pairloom.systems import FPOGD
from tests.commands import start

N = 1200
SMALL = ("--system", "FPOGD", "--set", "n_components=16", "--set", "max_strata=4", "--set", "drift=auto")
FIRST = ("--label", "kind", "--positive", "fraud", "--weight", "w", "--drop", "merchant", "--half-life", 5000)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three nights, the model of the first one, and that of all three by one run."""
    folder = tmp_path_factory.mktemp("nights")
    columns, fraud = fraud_like(N, positive=0.2)
    frame = pd.DataFrame(columns).assign(kind=np.where(fraud == 1, "fraud", "fine"), w=1.0 + fraud)
    for k in range(3):
        frame[400 * k : 400 * (k + 1)].to_csv(folder / f"{k}.csv", index=False)
    return folder


@pytest.fixture
def nights(folder, command, tmp_path):
    """The files, in a folder of their own, with the model of the first night."""
    for k in range(3):
        os.link(folder / f"{k}.csv", tmp_path / f"{k}.csv")
    if not (folder / "whole").exists():
        for files, model in (("0.csv", "first"), ("0.csv 1.csv 2.csv", "whole")):
            done = command("fit", *files.split(), *SMALL, *FIRST, "--model", model, cwd=folder)
            assert done.returncode == 0, done.stderr
    (tmp_path / "m").write_bytes((folder / "first").read_bytes())
    return tmp_path


def names(folder):
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".csv"))


def test_three_nights_give_the_bytes_of_one_run(command, folder, nights):
    done = command("fit", "1.csv", "--from", "m", "--model", "n", cwd=nights)
    assert done.returncode == 0, done.stderr
    assert "; 800 learned in all" in done.stdout.splitlines()[0]
    done = command("fit", "2.csv", "--from", "n", "--model", "n", "--json", "--chunk", 7, cwd=nights)
    assert (json.loads(done.stdout)["rows"], json.loads(done.stdout)["learned"]) == (400, 1200)
    assert (nights / "n").read_bytes() == (folder / "whole").read_bytes()
    assert names(nights) == ["m", "n"]


def test_the_alert_budget_and_the_history_of_the_page_go_on(command, tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(900, 2)), columns=["a", "b"])
    y = (X["a"] + rng.normal(size=900) > 1).astype(int)
    X[600:].assign(label=y).to_csv(tmp_path / "rows.csv", index=False)
    model = pairloom.AUCClassifier(random_state=0, budget=pairloom.race.Budget(2**24)).fit(X[:600], y[:600])
    model.alert_budget(rate=0.05)(model.score_many(X[:600]))
    pairloom.save(model, tmp_path / "m")
    done = command("fit", "rows.csv", "--from", "m", "--model", "m", "--monitor", "page.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    later = pairloom.load(tmp_path / "m")
    assert (later.n_seen_, later._alerts.rate, later._alerts.n_seen) == (900, 0.05, 600)
    assert "900 rows</title>" in (tmp_path / "page.html").read_text()
    told = command("inspect", "m", cwd=tmp_path).stdout
    assert f" requested 0.05 per row, realised {later._alerts.realised:.4g}: " in told
    assert " label 'label'\n" in told


REFUSED = {
    "--system OGD": "FPOGD", "--half-life 7": "half_life=5000", "--label y": "the label 'kind'",
    "--positive fine": "the positive label fraud", "--weight amount": "the weight 'w'", "--drop amount": "this column",
    "--width 3": "16 columns", "--set n_components=17": "n_components=16", "--set drift=None": "drift=auto",
    "--set pos_label=fine": "pos_label=fraud", "--set columns.device=number": "columns.device=category",
    "--set half_life=7": "half_life=5000",
}  # fmt: skip


@pytest.mark.parametrize("option", REFUSED)
def test_options_that_contradict_the_model_are_refused_by_name(option, command, nights):
    before = (nights / "m").read_bytes()
    done = command("fit", "1.csv", "--from", "m", "--model", "m", *option.split(), cwd=nights)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        f"pairloom: {option} contradicts m, which has {REFUSED[option]}: leave the option out"
    )
    assert (nights / "m").read_bytes() == before
    assert names(nights) == ["m"]


def test_options_that_repeat_the_model_and_columns_that_are_new_are_accepted(command, folder, nights):
    pd.read_csv(nights / "1.csv").drop(columns="merchant").assign(extra=1).to_csv(nights / "x.csv", index=False)
    assert "unknown 'extra'" in command("fit", "x.csv", "--from", "m", "--model", "n", cwd=nights).stderr
    again = (*SMALL, "--label", "kind", "--positive", "fraud", "--weight", "w", "--half-life", 5000,
             "--set", "columns.device=category", "--set", "random_state=0")  # fmt: skip
    done = command("fit", "x.csv", "--from", "m", "--model", "n", *again, "--drop", "extra", cwd=nights)
    assert done.returncode == 0, done.stderr
    assert command("fit", "1.csv", "--from", "m", "--model", "o", cwd=nights).returncode == 0
    one, other = (pairloom.load(nights / name) for name in "no")
    assert one._file_columns.dropped == ["extra", "merchant"]
    np.testing.assert_array_equal(one.coef_, other.coef_)


def test_a_model_that_is_not_continued_needs_overwrite(command, nights):
    before = (nights / "m").read_bytes()
    args = ("fit", "0.csv", *SMALL, *FIRST, "--model", "m")
    for more in ((), ("--checkpoint", "run"), ("--checkpoint", "run", "--resume")):
        done = command(*args, *more, cwd=nights)
        assert (done.returncode, done.stdout) == (2, "")
        assert "'m' exists; use --overwrite to replace it, or --from m to continue it" in done.stderr
    os.link(nights / "m", nights / "other")
    done = command("fit", "1.csv", "--from", "0.csv", "--model", "m", cwd=nights)
    assert done.returncode == 2
    assert names(nights) == ["m", "other"]
    assert (nights / "m").read_bytes() == before
    assert command(*args, "--overwrite", "--drop", "time", cwd=nights).returncode == 0
    assert (nights / "m").read_bytes() != before


@pytest.mark.parametrize("name", ["m", "./m", "soft", "hard"])
def test_in_place_under_every_name_and_only_on_success(name, command, nights):
    before, expected = (nights / "m").read_bytes(), nights / "expected"
    assert command("fit", "1.csv", "--from", "m", "--model", "expected", cwd=nights).returncode == 0
    (nights / "soft").symlink_to("m")
    os.link(nights / "m", nights / "hard")
    (nights / "bad.csv").write_text((nights / "1.csv").read_text() + "1,2\n")
    done = command("fit", "bad.csv", "--from", name, "--model", "m", cwd=nights)
    assert done.returncode == 2
    assert done.stderr.endswith("Partial model of the first 400 rows: m.partial; m is unchanged\n")
    assert (nights / "m").read_bytes() == before
    assert (nights / "m.partial").read_bytes() == expected.read_bytes()
    done = command("fit", "1.csv", "--from", "m", "--model", "m", cwd=nights, most_bytes=2_000)
    assert (done.returncode, (nights / "m").read_bytes()) == (1, before)
    assert command("fit", "1.csv", "--from", name, "--model", "m", cwd=nights).returncode == 0
    assert (nights / "m").read_bytes() == expected.read_bytes()
    assert (nights / "soft").is_symlink()
    assert (nights / "hard").read_bytes() == before
    (nights / "m.partial").write_bytes(before)
    done = command("fit", "1.csv", "--from", "m.partial", "--model", "m", cwd=nights)
    assert (done.returncode, "is also an input" in done.stderr) == (2, True)


def test_a_run_without_new_rows_changes_nothing(command, nights):
    before = (nights / "m").read_bytes()
    (nights / "empty.csv").write_text((nights / "1.csv").read_text().partition("\n")[0] + "\n")
    (nights / "other.csv").write_text("a,kind\n1,fraud\n")
    for file, said in (("empty", "no rows to learn from"), ("other", "no column 'w' (--weight)")):
        done = command("fit", f"{file}.csv", "--from", "m", "--model", "m", cwd=nights)
        assert done.returncode == 2
        assert done.stderr.startswith(f"{file}.csv: {said}")
        assert "Partial" not in done.stderr
    assert (nights / "m").read_bytes() == before
    assert names(nights) == ["m"]


def test_resume_goes_on_in_place_and_after_success_gives_the_same_file(command, nights):
    assert command("fit", "1.csv", "--from", "m", "--model", "whole", cwd=nights).returncode == 0
    args = ("fit", "1.csv", "--from", "m", "--model", "m", "--checkpoint", "run", "--every", 100, "--chunk", 50)
    lines = (nights / "1.csv").read_text().splitlines(keepends=True)
    (nights / "1.csv").unlink()
    (nights / "1.csv").write_text("".join([*lines[:250], "1,2\n", *lines[250:]]))
    assert command(*args, "--resume", cwd=nights).returncode == 2
    (nights / "1.csv").write_text("".join(lines))
    for _ in range(2):  # the second run has nothing to learn
        done = command(*args, "--resume", cwd=nights)
        assert done.returncode == 0, done.stderr
        assert (nights / "m").read_bytes() == (nights / "whole").read_bytes()
    done = command("fit", "2.csv", *args[2:], "--resume", cwd=nights)
    assert (done.returncode, "rows before it" in done.stderr or "differ" in done.stderr) == (2, True)
    args = ("fit", "1.csv", "--from", "n", *args[4:])
    pairloom.save(pairloom.load(nights / "m").learn_one(*one_row(nights)), nights / "n")
    done = command(*args, "--resume", "--overwrite", cwd=nights)
    assert (done.returncode, "--resume requires the same options: from was" in done.stderr) == (2, True)


def one_row(folder):
    frame = pd.read_csv(folder / "2.csv").astype(object)
    row = frame.drop(columns=["kind", "w", "merchant"]).iloc[0]
    return {name: None if value != value else value for name, value in row.items()}, "not fraud"


def test_a_signal_in_place_leaves_the_model(nights):
    before = (nights / "m").read_bytes()
    args = (
        "fit",
        "-",
        "--from",
        "m",
        "--model",
        "m",
        "--checkpoint",
        "run",
        "--every",
        100,
        "--chunk",
        100,
        "--resume",
    )
    fit = start(*args, cwd=nights, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    lines = (nights / "1.csv").read_bytes().splitlines(keepends=True)
    fit.stdin.write(b"".join(lines[:251]))
    fit.stdin.flush()
    for _ in range(1200):
        if list((nights / "run").glob("checkpoint-*")):
            break
        time.sleep(0.05)
    time.sleep(0.3)
    fit.send_signal(signal.SIGTERM)
    _, err = fit.communicate(timeout=60)
    assert fit.returncode == 143
    assert err.endswith(b"saved m.partial; m is unchanged and a checkpoint in run.\n")
    assert (nights / "m").read_bytes() == before
    assert pairloom.load(nights / "m.partial").n_seen_ > 400
    fit = start(*args, cwd=nights, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert fit.communicate(b"".join(lines), timeout=120)[1].startswith(b"Resuming after row ")
    assert pairloom.load(nights / "m").n_seen_ == 800


def test_models_that_do_not_name_their_label_need_it_once(command, nights):
    """Models of earlier versions, and of Python."""
    frame = pd.read_csv(nights / "0.csv")
    X, y = frame.drop(columns=["kind", "w", "merchant"]), frame["kind"]
    pairloom.save(FPOGD(n_components=4, random_state=0, pos_label="fraud").fit(X, y), nights / "python")
    rest = ("--drop", "merchant", "--drop", "w")
    for done in (
        command("fit", "1.csv", "--from", "python", "--model", "python", *rest, cwd=nights),
        command("evaluate", "python", "1.csv", cwd=nights),
    ):
        assert done.returncode == 2
        assert done.stderr.startswith("1.csv: no label column, and the model does not name one; set --label to one of")
    for label in (("--label", "kind"), ()):
        done = command("fit", "1.csv", "--from", "python", "--model", "python", *rest, *label, cwd=nights)
        assert done.returncode == 0, done.stderr
    assert pairloom.load(nights / "python").n_seen_ == 1200
    assert command("evaluate", "python", "2.csv", cwd=nights).returncode == 0


def test_the_label_of_the_model_is_used_by_evaluate_and_not_needed_by_predict(command, nights):
    done = command("evaluate", "m", "1.csv", "--json", cwd=nights)
    assert json.loads(done.stdout)["positive"] == (pd.read_csv(nights / "1.csv")["kind"] == "fraud").sum()
    pd.read_csv(nights / "1.csv").drop(columns="kind").to_csv(nights / "x.csv", index=False)
    done = command("evaluate", "m", "x.csv", cwd=nights)
    assert done.returncode == 2
    assert done.stderr.startswith("x.csv: no column 'kind' (the label of the model); the columns are 'time'")
    scores = [command("predict", "m", file, cwd=nights).stdout for file in ("1.csv", "x.csv")]
    assert scores[0] == scores[1]
    assert len(scores[0].splitlines()) == 401


def test_what_cannot_learn_is_refused_before_a_row_is_read(command, tmp_path):
    X, y = pa.table({"a": [float(i % 7) for i in range(60)]}), [i % 2 for i in range(60)]
    race = pairloom.AUCClassifier(random_state=0, budget=pairloom.race.Budget(2**22)).fit(X, y)
    pairloom.save(race.frozen(), tmp_path / "frozen")
    (tmp_path / "rows.csv").write_text("a,label\n1,0\n2,1\n")
    for name, said in (
        ("frozen", "a frozen model only predicts"),
        ("rows.csv", "not a model file"),
        ("none", "No such"),
    ):
        done = command("fit", "rows.csv", "--from", name, "--model", "new", cwd=tmp_path)
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert names(tmp_path) == ["frozen"]


def test_libsvm_goes_on_too(command, tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{k % 2} 1:{x:.3f} 3:{z:.3f}\n" for k, (x, z) in enumerate(rng.normal(size=(300, 2)))]
    for k in range(3):
        (tmp_path / f"{k}.svm").write_text("".join(lines[100 * k : 100 * (k + 1)]))
    args = ("--system", "FPOGD", "--set", "n_components=4", "--model", "m")
    assert command("fit", "0.svm", *args, cwd=tmp_path).returncode == 0
    for k in (1, 2):
        assert command("fit", f"{k}.svm", "--from", "m", "--model", "m", cwd=tmp_path).returncode == 0
    made = (tmp_path / "m").read_bytes()
    assert command("fit", *(f"{k}.svm" for k in range(3)), *args, "--overwrite", cwd=tmp_path).returncode == 0
    assert (tmp_path / "m").read_bytes() == made
