"""`pairloom evaluate`, `inspect` and `serve`, in real processes."""

import json
import signal
import subprocess

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread
from sklearn.metrics import average_precision_score, roc_auc_score

import pairloom
from pairloom.data import fraud_like
from pairloom.metrics import delong, precision_at_k
from pairloom.systems import FPOGD, SPAM
from tests.commands import start


@pytest.fixture(scope="module")
def frame():
    columns, fraud = fraud_like(900, positive=0.3)
    return pd.DataFrame(columns).astype({"time": str}).assign(kind=np.where(fraud == 1, "fraud", "fine"), w=1.0 + fraud)


@pytest.fixture(scope="module")
def folder(frame, tmp_path_factory):
    folder = tmp_path_factory.mktemp("judge")
    made = FPOGD(n_components=16, max_strata=4, random_state=0, pos_label="fraud", columns={"time": "date"})
    X = frame.drop(columns=["kind", "w"])
    pairloom.save(made.fit(X[:600], frame["kind"][:600]), folder / "m")
    frame[600:].to_csv(folder / "new.csv", index=False)
    return folder


def test_evaluate_says_what_others_say(command, frame, folder):
    args = ("evaluate", "m", "new.csv", "--label", "kind")
    done = command(*args, "--weight", "w", "--figure", "f.png", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    printed, later = json.loads(done.stdout), frame[600:]
    scores = pairloom.load(folder / "m").score_many(later.drop(columns=["kind", "w"]))
    y, w = (later["kind"] == "fraud").to_numpy(), later["w"].to_numpy()
    assert printed["auc"]["value"] == pytest.approx(roc_auc_score(y, scores, sample_weight=w))
    assert (printed["auc"]["low"], printed["auc"]["high"]) == pytest.approx(delong(scores, y, w))
    partial = roc_auc_score(y, scores, max_fpr=0.1, sample_weight=w)
    assert printed["partial_auc"] == {"max_fpr": 0.1, "value": pytest.approx(partial)}
    assert printed["average_precision"] == pytest.approx(average_precision_score(y, scores, sample_weight=w))
    assert printed["precision_at"] == {str(k): pytest.approx(precision_at_k(y, scores, k, w)) for k in (10, 100)}
    assert (printed["rows"], printed["positive"], printed["bad"]) == (300, int(y.sum()), 0)
    assert imread(folder / "f.png")[..., :3].std() > 0.05
    done = command(*args, cwd=folder)
    assert done.stdout.splitlines()[1].startswith("AUC  ")
    assert "precision at 100" in done.stdout


def test_evaluate_wants_known_labels_of_both_classes(command, frame, folder):
    frame[600:].assign(kind="fine").to_csv(folder / "one.csv", index=False)
    done = command("evaluate", "m", "one.csv", "--label", "kind", cwd=folder)
    assert (done.returncode, "AUC requires rows of both classes; 0 of 300" in done.stderr) == (2, True)
    odd = frame[600:].reset_index(drop=True)
    odd.loc[5, "kind"] = "odd"
    odd.to_csv(folder / "odd.csv", index=False)
    done = command("evaluate", "m", "odd.csv", "--label", "kind", cwd=folder)
    assert done.returncode == 2
    assert done.stderr.startswith("odd.csv:7: label 'odd' is not one of ['fine', 'fraud']")
    done = command("evaluate", "m", "odd.csv", "--label", "kind", "--on-bad-row", "skip", "--json", cwd=folder)
    assert (json.loads(done.stdout)["rows"], json.loads(done.stdout)["bad"]) == (299, 1)


def test_inspect_says_what_is_in_a_model(command, frame, folder):
    done = command("inspect", "m", "--json", "--figure", "strata.png", cwd=folder)
    assert done.returncode == 0, done.stderr
    printed, model = json.loads(done.stdout), pairloom.load(folder / "m")
    assert (printed["system"], printed["rows"], printed["positive"]) == ("FPOGD", 600, "fraud")
    assert printed["columns"] == model.columns_.kinds
    assert printed["bytes"] == model.nbytes_
    assert printed["parts"]["memory"].startswith("Strata(")
    assert [len(own) for own in printed["strata"].values()] == [len(own) for own in model.strata_sizes_]
    assert imread(folder / "strata.png")[..., :3].std() > 0.02
    X, y = frame[["amount", "payments_1h"]].to_numpy(), frame["kind"]
    pairloom.save(SPAM(scale="standard").fit(X, y), folder / "spam")
    pairloom.save(pairloom.AUCClassifier(budget=pairloom.race.Budget(2**22)).fit(X, y), folder / "race")
    for name, said in (("spam", "rule      ClassMeans"), ("race", "  linear ")):
        done = command("inspect", name, "--figure", f"{name}.png", cwd=folder)
        assert done.returncode == 0, done.stderr
        assert said in done.stdout
        assert imread(folder / f"{name}.png")[..., :3].std() > 0.02
    assert command("inspect", "new.csv", cwd=folder).stderr.startswith("pairloom: new.csv: ")


class Service:
    """A process that serves."""

    def __init__(self, folder, *args):
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        self.process = start("serve", "m", *args, cwd=folder, **pipes)

    def __call__(self, line):
        """The answer to a line, which comes before the next one is sent."""
        self.process.stdin.write((line if isinstance(line, str) else json.dumps(line)).encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def end(self, number=None):
        if number is not None:
            self.process.send_signal(number)
        out, err = self.process.communicate(timeout=60)
        assert out == b""
        return self.process.returncode, err.decode()


def test_serve_scores_at_once_and_learns_when_the_label_comes(frame, folder):
    serve = Service(folder, "--label", "kind", "--pending", 2, "--checkpoint", "run", "--every", 2, "--out", "later")
    python = pairloom.load(folder / "m")
    names, rows = python.feature_names_in_.tolist(), frame[600:].astype(object).where(frame.notna(), None)
    rows = rows.to_dict("records")

    def row(i, **more):
        return {name: rows[i][name] for name in names} | more

    for i in range(3):
        said = serve(row(i, id=f"p{i}", extra="not a column"))
        assert said["id"] == f"p{i}"
        assert said["score"] == python.score_one(row(i))
        assert 0 < said["probability"] < 1
    assert serve({"id": "p0", "kind": "fraud"}) == {"id": "p0", "late": True}
    assert serve({"id": "p9", "kind": "fraud"}) == {"id": "p9", "unknown": True}
    assert serve({"id": "p2", "kind": "fraud"}) == {"id": "p2", "learned": 601}
    python.learn_one(row(2), "fraud")
    assert serve({"id": "p2", "kind": "fraud"}) == {"id": "p2", "unknown": True}
    both = serve(row(3, kind="fine"))
    assert (both["score"], both["learned"]) == (python.score_one(row(3)), 602)
    python.learn_one(row(3), "fine")
    odd = [
        ("{", "invalid JSON"), ({"id": 1}, "expected a row"), (row(4, id=[1]), "must be a number or text"),
        (row(4, id=1, kind="odd"), "label 'odd' is not one of"), (row(4, id=2) | {"amount": "much"}, "'much'"),
    ]  # fmt: skip
    for line, said in odd:
        assert said in serve(line)["error"]
    code, err = serve.end(signal.SIGTERM)
    assert code == 143
    assert err == "4 scored, 2 learned, 1 late, 2 unknown, 5 errors, 1 pending\n"
    pairloom.save(python, folder / "python")
    assert (folder / "later").read_bytes() == (folder / "python").read_bytes()

    again = Service(folder, "--id", "payment", "--label", "kind", "--checkpoint", "run", "--resume")
    assert again("x" * 9_000_000) == {"error": "the line is longer than 8 MB", "line": 1}
    said = again(row(5, payment=5))
    assert (said["payment"], said["score"]) == (5, python.score_one(row(5)))
    assert again.end() == (0, "1 scored, 0 learned, 0 late, 0 unknown, 1 errors, 1 pending\n")
