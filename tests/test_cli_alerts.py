"""Alert budgets and monitor pages of `pairloom predict`, `fit` and `serve`."""

import json
import subprocess
import time

import numpy as np
import pandas as pd
import pytest

import pairloom
from pairloom import AUCClassifier
from pairloom.base.tree import same
from pairloom.cli.serve import Server
from pairloom.systems import SPAM
from tests.commands import start

N = 3000


def frame_of(n, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.1).astype(int)
    return pd.DataFrame({"a": rng.normal(size=n) + 1.5 * y + shift, "b": rng.normal(size=n)}), y


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model that has used its budget, and rows."""
    folder = tmp_path_factory.mktemp("alerts")
    X, y = frame_of(N, 0)
    model = SPAM(random_state=0).fit(X, y)
    pairloom.save(model, folder / "new")
    model.alert_budget(rate=0.05)(model.score_many(X[:1234]))
    pairloom.save(model, folder / "m")
    frame_of(N, 1)[0].to_csv(folder / "rows.csv", index=False)
    frame_of(50, 2, shift=20.0)[0].to_csv(folder / "shifted.csv", index=False)
    return folder


@pytest.mark.parametrize("model", ["m", "new"])
def test_predict_continues_the_budget_of_the_model_and_does_not_change_the_file(command, folder, model):
    before = (folder / model).read_bytes()
    python = pairloom.load(folder / model)
    flags = python.alert_budget(rate=0.05)(python.score_many(frame_of(N, 1)[0]))
    assert flags.any()
    for chunk in (7, 10_000):
        done = command("predict", model, "rows.csv", "--alert-rate", 0.05, "--proba", "--chunk", chunk, cwd=folder)
        assert done.returncode == 0, done.stderr
        assert done.stderr == f"alerts: {flags.mean():.4g} of {N:,} rows, requested 0.05\n"
        found = [int(line.rpartition(",")[2]) for line in done.stdout.splitlines()[1:]]
        np.testing.assert_array_equal(found, flags)
    assert (folder / model).read_bytes() == before


def test_a_rate_outside_its_interval_is_a_warning(command, folder):
    done = command("predict", "m", "shifted.csv", "--alert-rate", 0.05, cwd=folder)
    assert done.returncode == 0
    said, warning = done.stderr.splitlines()
    assert said.startswith("alerts: 0.1")
    assert warning.startswith("pairloom: warning: the alert rate, 0.1")
    assert "differs from the requested 0.05" in warning
    assert command("predict", "m", "shifted.csv", "--alert-rate", 0.05, "-q", cwd=folder).stderr == ""
    done = command("predict", "m", "rows.csv", "--alert-rate", 1.5, cwd=folder)
    assert (done.returncode, "--alert-rate must be a number above 0 and at most 1" in done.stderr) == (2, True)


def test_serve_replies_with_alerts_by_the_scores_on_arrival(folder):
    model, python = pairloom.load(folder / "m"), pairloom.load(folder / "m")
    server, (X, y) = Server(model, "id", "label", 100, 0.05), frame_of(400, 3)
    budget, found = python.alert_budget(rate=0.05), []
    for k, row in enumerate(X.to_dict("records")):
        line = row | {"id": k} | ({"label": int(y[k])} if k % 2 else {})
        reply = json.loads(server.answer(json.dumps(line).encode(), k))
        found.append(budget(python.score_one(row)))
        assert reply["alert"] is found[-1]
        if k % 2:
            python.learn_one(row, int(y[k]))
        assert "error" in json.loads(server.answer(json.dumps(line | {"a": "much"}).encode(), k))
    assert any(found)
    assert server.counts["errors"] == 400
    assert same(model.state_, python.state_)
    assert "alert" not in json.loads(Server(model, "id", "label", 100).answer(b'{"a": 1.0, "b": 2.0}', 1))
    with pytest.raises(ValueError, match="--id alert: choose another key"):
        Server(model, "alert", "label", 100)


def served(folder, rows, *args):
    process = start("serve", "m", "--alert-rate", "0.05", "--checkpoint", "run", "--every", "100", *args, cwd=folder,
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    out, err = process.communicate("".join(json.dumps(row) + "\n" for row in rows).encode(), timeout=120)
    assert process.returncode == 0, err
    return [json.loads(line)["alert"] for line in out.splitlines()], err.decode()


def test_the_budget_is_part_of_what_serve_saves(folder):
    X, y = frame_of(700, 4)
    rows = [row | {"label": int(label)} for row, label in zip(X.to_dict("records"), y, strict=True)]
    python = pairloom.load(folder / "m")
    expected = []
    for row in rows:
        features = {name: row[name] for name in ("a", "b")}
        expected.append(python.alert_budget(rate=0.05)(python.score_one(features)))
        python.learn_one(features, row["label"])
    first, err = served(folder, rows[:350])
    assert f"\nalerts: {np.mean(first):.4g} of 350 rows, requested 0.05\n" in err
    second, _ = served(folder, rows[350:], "--resume", "--out", "later")
    assert first + second == expected
    assert any(second)
    assert same(pairloom.load(folder / "later").state_, python.state_)


@pytest.fixture
def learned(tmp_path):
    X, y = frame_of(600, 0)
    X.assign(label=y).to_csv(tmp_path / "rows.csv", index=False)
    pairloom.save(AUCClassifier(random_state=0).fit(X[:300], y[:300]), tmp_path / "m")
    return tmp_path


def test_fit_writes_a_monitor_page(command, learned):
    options = ("--monitor", "page.html", "--chunk", 100, "--checkpoint", "run")
    done = command("fit", "rows.csv", *options, cwd=learned)
    assert done.returncode == 0, done.stderr
    assert "600 rows</title>" in (learned / "page.html").read_text()
    assert pairloom.load(learned / "model.pairloom").monitor is None
    (learned / "page.html").unlink()
    text = (learned / "rows.csv").read_text()
    (learned / "more.csv").write_text(text + text.partition("\n")[2])
    done = command("fit", "more.csv", *options, "--resume", cwd=learned)
    assert done.returncode == 0, done.stderr
    assert "1,200 rows</title>" in (learned / "page.html").read_text()


def test_serve_writes_a_monitor_page(learned):
    process = start("serve", "m", "--monitor", "page.html", "--alert-rate", "0.05", cwd=learned,
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    page = learned / "page.html"
    for _ in range(600):
        if page.exists():
            break
        time.sleep(0.1)
    assert "300 rows</title>" in page.read_text()
    lines = [json.dumps({"a": 0.1 * k, "b": 1.0, "label": k % 2}) + "\n" for k in range(20)]
    process.communicate("".join(lines).encode(), timeout=120)
    assert process.returncode == 0
    assert "320 rows</title>" in page.read_text()
    assert "of 20 rows, requested 5 %" in page.read_text()


def test_a_monitor_page_is_for_models_that_have_one(command, folder):
    for args in (("fit", "rows.csv", "--system", "SPAM", "--label", "b"), ("serve", "m")):
        done = command(*args, "--monitor", "page.html", cwd=folder)
        assert done.returncode == 2, done.stderr
        assert "--monitor is for AUCClassifier; SPAM has no monitor page" in done.stderr
    done = command("serve", "m", "--monitor", "m", cwd=folder)
    assert (done.returncode, "'m' is also an input" in done.stderr) == (2, True)
