"""The monitor of a running model: its history, its figure and its page."""

import errno
import os
import re
import subprocess
import sys
import time
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest

from pairloom import AUCClassifier, load, save
from pairloom.base.clock import next_race_calibration
from pairloom.base.tree import copy, nbytes, same
from pairloom.estimators.classifier import PairwiseClassifier
from pairloom.estimators.monitor import writer as writing
from pairloom.estimators.monitor.page import page
from pairloom.estimators.monitor.panels import panels_of
from pairloom.estimators.monitor.view import view_of
from pairloom.metrics.alerts import alert_threshold, choose_threshold
from pairloom.persist import ModelFileError
from pairloom.race import Portfolio
from pairloom.stream import history
from pairloom.stream.history import POINTS, QUANTILES, Timeline
from tests.browser import opened
from tests.hostile import read, sign

mpl.use("Agg")
from matplotlib import pyplot as plt

CHEAP = Portfolio(forests=(), boosted=None, kernels=())
TICKS = [16, 32, 64, *range(128, 2048, 128), 2048, 2304, 2560]


def model(**rest):
    return AUCClassifier(portfolio=CHEAP, random_state=0, **rest)


@cache
def rows(n=2700):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + rng.normal(size=n) > 1.5).astype(int)


@cache
def _fitted():
    made = model().fit(*rows())
    drift = made.stream_.state.observed["drift"]
    drift.alarms, drift.since = np.array([700, 1900]), 1750
    return made


@pytest.fixture
def fitted():
    """2,700 rows, and two alarms of drift among them."""
    return _fitted().with_state(copy(_fitted().state_))


@pytest.fixture(autouse=True)
def _no_figure_is_left():
    yield
    plt.close("all")


def timeline(one) -> Timeline:
    return one.stream_.state.observed["history"]


# The history.


def test_cuts_between_calls_do_not_show_nor_does_a_page(fitted, tmp_path, monkeypatch):
    monkeypatch.setattr("pairloom.estimators.auc.ROWS_PER_CHECK", 100)
    monkeypatch.setattr(writing, "MIN_INTERVAL", 0.05)
    X, y = rows()
    parts = model(monitor=tmp_path / "page.html")
    for x, label in zip(X[:300], y[:300], strict=True):
        parts.learn_one(x, label)
    for some in np.split(np.arange(300, 2700), [1, 40, 900, 901, 2000]):
        parts.partial_fit(X[some], y[some])
    drift = fitted.stream_.state.observed["drift"]
    drift.alarms, drift.since = np.zeros(0, np.int64), 0
    assert same(parts.state_, fitted.state_)
    assert timeline(fitted).rows[: timeline(fitted).count].tolist() == TICKS


def test_a_point_is_what_the_model_said_at_its_row():
    X, y = rows()
    one = model().partial_fit(X[:1920], y[:1920])
    line, observed = timeline(one), one.stream_.state.observed
    np.testing.assert_array_equal(line.areas[line.count - 1], one.auc_)
    scores = observed["arrivals"].scores[:1920, 0]
    a, b = one.calibration_[0]
    for side, code in enumerate((1, 0)):
        own = a * scores[observed["recent"].labels[:1920] == code] + b
        np.testing.assert_allclose(line.scores[line.count - 1, side], np.quantile(own, QUANTILES))
    known = observed["recent"].scores[:1920, 0].copy()
    one.partial_fit(X[1920:2048], y[1920:2048])
    new = observed["arrivals"].scores[1920:2048, 0]
    alerts = [(sign * new >= alert_threshold(sign * known, 0.01)).sum() for sign in (1, -1)]
    assert line.alerts[line.count - 1].tolist() == [*alerts, 128]
    assert sum(alerts) > 0


def test_a_budget_cut_is_the_threshold_without_labels():
    rng = np.random.default_rng(0)
    for n in (2, 7, 99, 100, 250):
        scores = rng.normal(size=n).round(1)
        for rate in (0.01, 0.1, 0.5, 1.0):
            cut = choose_threshold(np.arange(n) == 0, scores, alert_rate=rate)
            assert alert_threshold(scores, rate) == float(cut)


def test_three_million_rows_are_256_points_at_most_and_nothing_is_lost():
    line, rng, row, before = Timeline(), np.random.default_rng(0), 0, 0
    empty, ticks = nbytes(line), []
    while (row := next_race_calibration(row)) <= 3_000_000:
        areas, scores = rng.normal(size=3), rng.normal(size=(2, 5))
        ticks.append((row, areas, np.array([rng.integers(9), 0.0, row - before]), scores))
        line.add(*ticks[-1])
        before = row
        assert line.count <= POINTS
        assert line.last == row
    assert nbytes(line) == empty
    assert line.each == 8
    assert line.alerts.sum(axis=0).tolist() == sum(tick[2] for tick in ticks).tolist()
    for k in range(line.count):
        own = ticks[k * 8 : k * 8 + 8]
        assert line.rows[k] == own[-1][0]
        np.testing.assert_allclose(line.areas[k], np.mean([tick[1] for tick in own], axis=0))
        np.testing.assert_allclose(line.scores[k], np.mean([tick[3] for tick in own], axis=0))
    assert len(ticks) == 8 * (line.count - 1) + line.open
    assert not line.rows[line.count :].any()


def test_what_is_missing_at_a_tick_is_no_part_of_a_mean():
    line, nothing = Timeline(), np.full(3, np.nan)
    line.each = 3
    for areas in (nothing, np.ones(3), nothing):
        line.add(1, areas, np.zeros(3), np.ones((2, 5)))
    assert line.areas[0].tolist() == [1, 1, 1]


def test_a_full_history_is_cut_anywhere_too(monkeypatch):
    monkeypatch.setattr(history, "POINTS", 8)
    X, y = rows()
    whole, parts = model().fit(X, y), model()
    for some in np.split(np.arange(2700), [900, 1024, 1500]):
        parts.partial_fit(X[some], y[some])
    assert timeline(whole).each == 4
    assert same(timeline(whole), timeline(parts))


def test_scores_that_move_show_in_the_alerts():
    X, y = rows()
    X = np.where(np.arange(2700)[:, None] < 2304, X, 3.0 * X)
    line = timeline(model().fit(X, y))
    rate = line.alerts[: line.count, 0] / np.maximum(1, line.alerts[: line.count, 2])
    assert rate[-1] > 0.1
    assert 0.002 < rate[8:-1].mean() < 0.025


def test_before_anything_is_learned_there_are_no_alerts():
    line = timeline(model().fit(rows(300)[0], np.zeros(300)))
    assert line.last == 256
    assert not line.alerts.any()


# Files.


def test_a_file_has_the_history_and_not_the_page(fitted, tmp_path):
    save(fitted.set_params(monitor=tmp_path / "page.html"), tmp_path / "model")
    assert b"page.html" not in (tmp_path / "model").read_bytes()
    found = load(tmp_path / "model")
    assert found.monitor is None
    assert same(found.state_, fitted.state_)
    X, y = rows()
    found.partial_fit(X[:200], y[:200])
    assert not (tmp_path / "page.html").exists()
    assert timeline(found).last == 2816


def test_a_file_that_names_a_page_is_refused(tmp_path):
    save(model().fit(*rows(300)), tmp_path / "model")
    header, arrays = read(tmp_path / "model")
    header["model"]["monitor"] = str(tmp_path / "page.html")
    (tmp_path / "model").write_bytes(sign(header, arrays))
    with pytest.raises(ModelFileError, match="different parameters in the file and in this version: monitor"):
        load(tmp_path / "model")


@pytest.mark.parametrize(("name", "value"), [("count", 257), ("count", 3), ("each", 0), ("each", 3), ("open", 2)])
def test_a_history_that_cannot_be_is_refused(fitted, tmp_path, name, value):
    setattr(timeline(fitted), name, value)
    with pytest.raises(ValueError, match=r"not saved: .* stream.observed.history "):
        save(fitted, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_file_from_before_there_was_a_history_goes_on_with_an_empty_one(tmp_path, monkeypatch):
    X, y = rows()
    with monkeypatch.context() as older:
        older.setattr(AUCClassifier, "_hooks", PairwiseClassifier._hooks)
        save(model().fit(X[:1000], y[:1000]), tmp_path / "model")
    found = load(tmp_path / "model")
    assert timeline(found).count == 0
    assert not found.plot_stream()[0].lines[0].get_xdata().size
    found.partial_fit(X[1000:], y[1000:])
    whole = model().fit(X, y)
    assert timeline(found).rows[0] == 1024
    np.testing.assert_array_equal(found.decision_function(X), whole.decision_function(X))
    np.testing.assert_array_equal(timeline(found).areas[5], timeline(whole).areas[TICKS.index(1664)])


# The figure.


def test_the_figure_draws_what_the_history_says(fitted):
    axes = fitted.plot_stream()
    line, race = timeline(fitted), fitted.race_
    n = line.count
    area, alerts, scores, mixture = axes
    np.testing.assert_array_equal(area.lines[0].get_xydata(), np.column_stack([line.rows[:n], line.areas[:n, 0]]))
    drawn = alerts.lines[1].get_xydata()
    there = line.alerts[:n, 2] > 0
    rate = line.alerts[:n, 0][there] / line.alerts[:n, 2][there]
    np.testing.assert_array_equal(drawn, np.column_stack([line.rows[:n][there], rate]))
    for drawn, side in zip(scores.lines, (1, 0), strict=False):
        np.testing.assert_array_equal(drawn.get_ydata(), line.scores[:n, side, 2])
    names = [text.get_text() for text in scores.get_legend().get_texts()]
    assert names == ["1", "0"]
    assert [text.get_text() for text in mixture.get_legend().get_texts()] == list(dict.fromkeys(race["name"]))
    for ax in axes:
        marks = [mark.get_xdata()[0] for mark in ax.lines if len(set(mark.get_xdata())) == 1]
        assert marks == [700, 1900]
        assert ax.get_xlim() == (0, 2700)
    assert [text.get_text() for text in mixture.get_xticklabels()][-1] == "2,500"


def test_the_figure_is_drawn_on_the_given_axes(fitted):
    axes = plt.subplots(4)[1]
    assert fitted.plot_stream(axes) is axes
    assert axes[0].lines


@pytest.mark.parametrize(
    ("low", "high", "span"),
    [(0.97, 0.99, (0.48, 1.0)), (0.8, 0.9, (0.48, 0.905)), (0.2, 0.3, (0.195, 0.52)), (0.0, 1.0, (0.0, 1.0))],
)
def test_the_area_is_shown_with_the_line_of_chance(fitted, low, high, span):
    view = view_of(fitted)
    panel = panels_of(replace(view, areas=np.tile([0.5 * (low + high), low, high], (len(view.at), 1))))[0]
    assert panel.span == pytest.approx(span)
    chance = panel.lines[1]
    assert (chance.x.tolist(), chance.y.tolist(), chance.dashed) == ([0, 2700], [0.5, 0.5], True)


def test_the_newest_change_is_shaded_from_its_row_to_where_it_was_found(fitted):
    band = panels_of(view_of(fitted))[0].bands[1]
    assert band.x.tolist() == [1750, 1900]
    assert len(panels_of(replace(view_of(fitted), alarms=()))[0].bands) == 1


@pytest.mark.parametrize("n", [1, 200])
@pytest.mark.parametrize("labels", ["one class", "two", "three", "three, one positive"])
def test_there_is_a_figure_and_a_page_of_every_stream(n, labels, tmp_path):
    X, y = rows(200)
    y = {"one class": np.zeros(200, int), "two": y}.get(labels, np.digitize(X[:, 1], [-0.5, 0.5]))
    one = model(monitor=tmp_path / "page.html", pos_label=2 if "positive" in labels else None)
    one.partial_fit(X[:n], y[:n], classes=[0, 1, 2] if "three" in labels else None)
    axes = one.plot_stream()
    assert len(axes) == 4
    axes[0].figure.draw_without_rendering()
    root = ElementTree.parse(tmp_path / "page.html").getroot()
    assert numbers(root)["rows"] == str(n)
    key = [item.get_text() for ax in axes[2:3] if ax.get_legend() for item in ax.get_legend().get_texts()]
    known = {"one class": ["0"], "two": ["1", "0"], "three": ["all rows"], "three, one positive": ["2", "all others"]}
    assert key == (known[labels] if n == 200 else key)


def test_scores_and_alerts_are_those_of_the_positive_class():
    X, y = rows()
    one, other = (view_of(model(pos_label=label).fit(X, y)) for label in (1, 0))
    np.testing.assert_array_equal(one.scores, -other.scores[:, ::-1, ::-1])
    assert one.names == other.names[::-1] == ("1", "0")
    assert one.positives == (y.sum(), y.mean())
    assert other.positives == (2700 - y.sum(), 1 - y.mean())
    assert (one.alerts[:, 0] != other.alerts[:, 0]).any()


@pytest.mark.parametrize("weight", ["balanced", {1: 5.0}])
def test_positives_are_counted_without_the_weights_of_classes(weight):
    X, y = rows(300)
    assert view_of(model(class_weight=weight).fit(X, y)).positives == pytest.approx((y.sum(), y.mean()))


def test_axes_have_few_round_numbers_whatever_the_scores_are(fitted):
    view = view_of(fitted)
    for factor in (0.0, 1e-12, 1e-3, 1.0, 1e6, 1e300, np.inf):
        with np.errstate(invalid="ignore"):
            panel = panels_of(replace(view, scores=view.scores * factor))[2]
        assert 2 <= len(panel.ticks) <= 6
        assert len(set(panel.ticks.values())) == len(panel.ticks)
        assert max(map(len, panel.ticks.values())) < 16


# The page.


def numbers(root) -> dict[str, str]:
    """The headline numbers of a page."""
    return {one.get("id"): one.find("dd").text for one in root.iter("div") if one.find("dd") is not None}


def page_of(one) -> str:
    return page(view_of(one), datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC))


def test_the_page_is_whole_by_itself_and_says_how_the_model_stands(fitted):
    text = page_of(fitted)
    root = ElementTree.fromstring(text)
    assert numbers(root) == {
        "auc": f"{fitted.auc_.value:.4f}",
        "rows": "2,700",
        "positives": f"{rows()[1].sum():,}",
        "alert-threshold": f"{float(fitted.threshold(alert_rate=0.01)):.3f}".replace("-", "\N{MINUS SIGN}"),
        "last-change": "row 1,750",
        "members": "1",
    }
    assert "2025-01-02 03:04:05 UTC" in text
    assert f"{fitted.auc_.low:.4f} to {fitted.auc_.high:.4f}" in text
    assert "found at row 1,900; 2 in all" in text
    assert root.find("head/meta[@http-equiv='refresh']").get("content") == "5"
    assert not re.search(r"\s(src|href)=[\"'](?!#|data:)|url\(|@import|<script|nan", text)
    assert len(list(root.iter("svg"))) == 4
    assert len([one for one in root.iter("line") if one.get("class") == "drift"]) == 8
    assert len(text) < 100_000


def test_the_page_says_how_the_alert_budget_is_kept(fitted):
    one = deepcopy(fitted)
    assert "budget" not in page_of(one)
    one.alert_budget(rate=0.02)
    assert "budget" not in page_of(one)
    flags = one.alert_budget(rate=0.02)(np.random.default_rng(0).normal(size=1000))
    assert f"budget: alerts on {100 * flags.mean():.3g} % of 1,000 rows, requested 2 %" in page_of(one)
    flags = one.alert_budget(per_hour=1.0)(np.arange(1000) % 7, 600.0 * np.arange(1000))
    assert f"budget: {flags.sum() / 166.5:.3g} alerts per hour, requested 1" in page_of(one)


def test_names_are_escaped(tmp_path):
    X, y = rows(300)
    model(monitor=tmp_path / "page.html").fit(X, np.where(y == 1, "<b>&\ud800", "fine"))
    assert "&lt;b&gt;&amp;" in (tmp_path / "page.html").read_text("utf-8")
    ElementTree.parse(tmp_path / "page.html")


SHOWN = """
  const boxes = [...document.querySelectorAll(".plot svg")].map((one) => one.getBoundingClientRect());
  return {rows: document.querySelector("#rows dd").firstChild.textContent,
          seen: document.querySelectorAll("path").length,
          least: Math.min(...boxes.map((box) => Math.min(box.width, box.height))),
          loaded: performance.getEntriesByType("resource").map((one) => one.name),
          overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth};
"""


@pytest.mark.parametrize("width", [1400, 420])
def test_a_browser_shows_it(fitted, tmp_path, width):
    (tmp_path / "page.html").write_text(page_of(fitted), encoding="utf-8")
    seen = opened(tmp_path / "page.html", SHOWN, width, tmp_path)
    assert seen["rows"] == "2,700"
    assert seen["seen"] >= 10
    assert seen["least"] > 100
    assert seen["loaded"] == []
    assert seen["overflow"] == 0


# When it is written.


@pytest.fixture
def written(monkeypatch):
    """The rows at which pages were written, with a stopped clock."""
    found, now = [], [1e9]
    one = writing.Writer._write
    monkeypatch.setattr(writing.time, "time", lambda: now[0])
    monkeypatch.setattr(writing.Writer, "_write", lambda self, model: (one(self, model), found.append(view_of(model))))
    return found, now


def test_a_page_is_written_before_the_first_row_and_then_now_and_then(written, tmp_path):
    found, now = written
    X, y = rows(300)
    one = model(monitor=str(tmp_path / "page.html"))
    for k in range(100):
        now[0] += 0.125
        one.learn_one(X[k], y[k])
    assert [view.rows for view in found] == [0, 1, 17, 33, 49, 65, 81, 97]
    for end in (150, 200):
        one.partial_fit(X[end - 50 : end], y[end - 50 : end])
        assert found[-1].rows == end
    one.fit(X, y)
    assert [view.rows for view in found][10:] == [300]
    assert numbers(ElementTree.parse(tmp_path / "page.html").getroot())["rows"] == "300"


def test_a_long_call_writes_on_the_way(written, tmp_path, monkeypatch):
    monkeypatch.setattr("pairloom.estimators.auc.ROWS_PER_CHECK", 100)
    found, now = written
    monkeypatch.setattr(writing.time, "time", lambda: now.append(now[-1] + 1.0) or now[-1])
    model(monitor=tmp_path / "page.html").fit(*rows(300))
    assert found[0].rows == 0
    assert {100, 200, 256, 300} >= {view.rows for view in found[1:]} > {300}


@pytest.mark.parametrize("path", ["no/folder/page.html", "", "."])
def test_a_path_that_cannot_be_written_is_an_error_before_the_first_row(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = rows(300)
    one, text = model(monitor=path), "cannot be written: .*Nothing was learned"
    for call in (lambda: one.fit(X, y), lambda: one.partial_fit(X, y), lambda: one.learn_one(X[0], y[0])):
        with pytest.raises(OSError, match=text):
            call()
    assert not hasattr(one, "stream_")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match=r"monitor must be None or the path of a page"):
        one.set_params(monitor=3).fit(X, y)


def test_a_disk_that_fills_stops_no_learning(tmp_path, monkeypatch):
    X, y = rows(300)
    one = model(monitor=tmp_path / "page.html").partial_fit(X[:100], y[:100])

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def learn(*calls):
        for k in calls:
            one.partial_fit(X[k : k + 50], y[k : k + 50])

    with monkeypatch.context() as disk:
        disk.setattr(os, "replace", full)
        disk.setattr(writing, "WRITE_TIMES", 0.0)
        with pytest.warns(UserWarning, match="could not be written .No space left on device.; learning") as caught:
            learn(100, 150, 200, 250)
    assert len(caught) == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["page.html"]
    assert same(one.state_, model().fit(X, y).state_)


LEARN = """
import sys
import numpy as np
from pairloom import AUCClassifier
from pairloom.estimators.monitor import writer
from pairloom.race import Portfolio
writer.MIN_INTERVAL = 0.0
model = AUCClassifier(portfolio=Portfolio(forests=(), boosted=None, kernels=()), monitor=sys.argv[1], random_state=0)
rng = np.random.default_rng(0)
for k in range(200):
    model.learn_one(rng.normal(size=3), k % 2)
"""


def test_another_process_never_finds_half_a_page(tmp_path):
    path, seen = tmp_path / "page.html", []
    with subprocess.Popen([sys.executable, "-c", LEARN, str(path)], stderr=subprocess.PIPE) as process:
        while process.poll() is None:
            if path.exists():
                root = ElementTree.fromstring(path.read_bytes())
                seen.append(int(numbers(root)["rows"].replace(",", "")))
            time.sleep(0.005)
        assert process.returncode == 0, process.stderr.read().decode()
    assert seen == sorted(seen)
    assert numbers(ElementTree.fromstring(path.read_bytes()))["rows"] == "200"
    assert os.listdir(tmp_path) == ["page.html"]
