"""Reasons in commands and on the monitor page, with hostile names and values."""

import csv
import json
from datetime import UTC, datetime
from xml.etree import ElementTree

import pandas as pd
import pytest

import pairloom
from pairloom import AUCClassifier
from pairloom.cli.inspect import _lines, describe
from pairloom.cli.serve import Server
from pairloom.estimators.explaining import importance_shown
from pairloom.estimators.monitor.page import page
from pairloom.estimators.monitor.view import view_of
from pairloom.features import Gaussian, RandomFourier
from pairloom.race import Portfolio
from pairloom.systems import ExactAUC
from tests.mixed import mixed

CHEAP = Portfolio(forests=(), boosted=None, kernels=())
HOSTILE = "<b>&\"'</b>\x1b"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model and rows in a file."""
    folder = tmp_path_factory.mktemp("explain")
    X, y = mixed(600)
    X = X.drop(columns=["time", "known"])
    model = ExactAUC(random_state=0).fit(X, y)
    pairloom.save(model, folder / "m")
    X[:30].to_csv(folder / "rows.csv", index=False)
    return folder, model, X


def test_predict_writes_reasons_of_each_row(command, folder):
    path, model, _ = folder
    expected = model.explain(pd.read_csv(path / "rows.csv"), top=2).top()
    done = command("predict", "m", "rows.csv", "--explain", 2, "--chunk", 7, cwd=path)
    assert done.returncode == 0, done.stderr
    header, *rows = csv.reader(done.stdout.splitlines())
    assert header == ["score", "reason_1", "reason_2"]
    assert [[text for text in row[1:] if text] for row in rows] == expected
    assert any("raises the score by" in text for row in rows for text in row)
    done = command("predict", "m", "rows.csv", "--explain", 2, "--json", cwd=path)
    assert [json.loads(line)["reasons"] for line in done.stdout.splitlines()] == expected
    assert command("predict", "m", "rows.csv", "--explain", 0, cwd=path).returncode == 2


def test_inspect_lists_the_importance(command, folder):
    path, model, _ = folder
    done = command("inspect", "m", "--importance", "--json", cwd=path)
    assert json.loads(done.stdout)["importance"] == pytest.approx(model.importance())
    assert "importance" not in json.loads(command("inspect", "m", "--json", cwd=path).stdout)
    assert command("inspect", "m", "m", "--importance", cwd=path).returncode == 2
    values = describe(model, path / "m") | {"importance": {HOSTILE: 1.5}}
    assert ("importance", "1.5 <b>&\"'</b>?") in _lines(values)


def test_serve_explains_alerts_with_the_model_that_scored_them(folder):
    _, model, X = folder
    model = model.with_state(pairloom.base.tree.copy(model.state_))
    server = Server(model, "id", "label", 100, 0.3, explain=2)
    rows = X[300:400].astype(object).where(X[300:400].notna(), None).to_dict("records")
    flagged = 0
    for number, row in enumerate(rows):
        expected = model.explain(row, top=2).top()[0]
        reply = json.loads(server.answer(json.dumps({"id": number, **row, "label": 1}).encode(), 1))
        assert "error" not in reply
        assert ("reasons" in reply) == reply["alert"]
        if reply["alert"]:
            flagged += 1
            assert reply["reasons"] == expected
    assert 0 < flagged < len(rows)
    every = Server(model, "id", "label", 100, explain=1)
    assert len(json.loads(every.answer(json.dumps({"id": 1, **rows[0]}).encode(), 1))["reasons"]) == 1
    assert "reasons" not in json.loads(Server(model, "id", "label", 9).answer(json.dumps(rows[0]).encode(), 1))


def test_the_page_lists_the_columns_that_matter_with_their_names_escaped():
    X, y = mixed(700)
    X = X.rename(columns={"age": HOSTILE.rstrip("\x1b")})
    model = AUCClassifier(portfolio=CHEAP, random_state=0)
    assert not view_of(model.partial_fit(X[:5], y[:5] * 0), with_importance=True).importance
    model = AUCClassifier(portfolio=CHEAP, random_state=0).fit(X, y)
    view = view_of(model, with_importance=True)
    assert sum(share for _, share in view.importance) == pytest.approx(1)
    assert not view_of(model).importance
    text = page(view, datetime(2026, 1, 2, tzinfo=UTC))
    assert "<b>&" not in text
    section = text[text.index('<section id="importance"') :].partition("</section>")[0] + "</section>"
    names = [row[0].text for row in next(ElementTree.fromstring(section).iter("tbody"))]
    assert names == [name for name, _ in view.importance]
    assert HOSTILE.rstrip("\x1b") in names


def test_importance_that_would_be_sampled_is_not_on_the_page():
    X, y = mixed(300)
    X = X[["age", "items"]].to_numpy(float)
    model = AUCClassifier(features=RandomFourier(32, Gaussian(0.5)), random_state=0).fit(X, y)
    assert importance_shown(model) == []
    assert len(model.explain(X[:2]).values) == 2
