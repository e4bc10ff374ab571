"""Standings of a race: messages while it learns, columns, and their plot."""

import logging

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from pairloom import AUCClassifier
from pairloom.race.standings import COLOURS
from tests.conftest import make_stream
from tests.generic import SMALL

mpl.use("agg")
LOG = logging.getLogger("pairloom.race")
MIXES = [16, 32, 64, 128, 256, 512, 1024, 1536, 2048, 2560, 3072, 3584, 4096]


def model(**changes):
    return AUCClassifier(**{"portfolio": SMALL, "random_state": 0, **changes})


@pytest.fixture(scope="module")
def fitted():
    X, y = make_stream("random", 4200, 4)
    return model().fit(X, y)


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


# Messages.


def test_nothing_is_printed_by_default(capfd):
    X, y = make_stream("random", 300, 4)
    model().fit(X, y)
    said = capfd.readouterr()
    assert said.out == said.err == ""


def test_verbose_prints_every_mix(capsys):
    X, y = make_stream("random", 300, 4)
    one = model(verbose=1).partial_fit(X[:100], y[:100])
    said = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in said] == ["row 16", "row 32", "row 64"]
    assert all(name in line for line in said for name in ("linear", "forest, renewed", "kernel, width 4, minmax"))
    one.partial_fit(X[100:], y[100:])
    said = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in said] == ["row 128", "row 256"]
    best = max((s for s in one.stream_.learned.standings if s.row == 256), key=lambda s: s.share)
    assert said[-1].startswith(f"row 256: {best.name} {best.auc:.4f} ({best.share:.0%})")


def test_the_logger_works_without_verbose(caplog):
    X, y = make_stream("random", 40, 4)
    with caplog.at_level(logging.INFO, "pairloom.race"):
        model().fit(X, y)
    assert [record.getMessage().split(":")[0] for record in caplog.records] == ["row 16", "row 32"]
    assert {record.levelno for record in caplog.records} == {logging.INFO}


@pytest.mark.parametrize("level", [logging.NOTSET, logging.DEBUG, logging.ERROR])
def test_the_handler_is_gone_afterwards_and_the_level_as_it_was(level, capsys):
    X, y = make_stream("random", 20, 4)
    LOG.setLevel(level)
    try:
        before = list(LOG.handlers)
        model(verbose=1).fit(X, y)
        assert LOG.handlers == before
        assert LOG.level == level
        with pytest.raises(ValueError, match="X has 2 features"):
            model(verbose=1).fit(X, y).partial_fit(X[:, :2], y)
        assert LOG.handlers == before
        assert LOG.level == level
    finally:
        LOG.setLevel(logging.NOTSET)
    assert "row 16" in capsys.readouterr().err
    model().fit(X, y)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("verbose", [-1, "much"])
def test_verbose_is_a_number_from_0_on(verbose):
    X, y = make_stream("random", 20, 4)
    with pytest.raises(ValueError, match="verbose"):
        model(verbose=verbose).fit(X, y)


def test_verbose_changes_no_bit():
    X, y = make_stream("random", 300, 4)
    one, other = (model(verbose=v).fit(X, y).decision_function(X) for v in (0, 1))
    np.testing.assert_array_equal(one, other)


# Standings.


def test_the_standings_are_columns_of_one_length(fitted):
    table = pd.DataFrame(fitted.race_)
    assert list(table) == ["row", "name", "auc", "share"]
    assert not table.duplicated(["row", "name"]).any()
    assert table["row"].unique().tolist() == MIXES
    assert table["auc"].between(0, 1).all()
    assert table["share"].between(0, 1).all()
    np.testing.assert_allclose(table.groupby("row")["share"].sum(), 1.0)
    last = table[table["row"] == 4096].sort_values("share", ascending=False)
    now = [one.name for one in fitted.stream_.learned.entrants]
    assert fitted.mixture_ == [name for name in last[last["share"] > 0]["name"] if name in now]
    assert set(table["name"]) == {one.name for one in SMALL.candidates(4)}
    assert pd.DataFrame(model().fit(np.eye(2), [0, 1]).race_).empty


def test_the_mixture_has_the_best_first(fitted):
    weights = dict(zip([e.name for e in fitted.stream_.learned.entrants], fitted.stream_.learned.mixture.weights,
                       strict=True))  # fmt: skip
    said = [weights[name] for name in fitted.mixture_]
    assert said == sorted(said, reverse=True)
    assert min(said) > 0
    assert set(weights) - set(fitted.mixture_) == {name for name, weight in weights.items() if weight == 0}


# The plot.


def test_the_picture_has_all_candidates_and_their_shares(fitted, tmp_path):
    above, below = fitted.plot_race()
    table = pd.DataFrame(fitted.race_)
    names = list(dict.fromkeys(fitted.race_["name"]))
    labels = [text.get_text() for text in above.get_legend().get_texts()]
    assert labels == names
    assert len(above.get_lines()) == 2 * len(names)
    thin, thick = above.get_lines()[::2], above.get_lines()[1::2]
    for name, line, bold in zip(names, thin, thick, strict=True):
        own = table[table["name"] == name]
        np.testing.assert_array_equal(line.get_xydata(), own[["row", "auc"]])
        said = np.where(own["share"] > 0, own["auc"], np.nan)
        np.testing.assert_array_equal(bold.get_ydata(), said)
        assert line.get_color() == bold.get_color() in COLOURS
    assert len({line.get_color() for line in thick}) == len(names)
    assert len(below.collections) == len(names)
    bounds = [collection.get_paths()[0].get_extents() for collection in below.collections]
    assert min(box.y0 for box in bounds) == 0
    assert max(box.y1 for box in bounds) == pytest.approx(1.0)
    assert (bounds[0].x0, bounds[0].x1) == (16, 4096)
    above.figure.savefig(tmp_path / "race.png", dpi=60)
    assert (tmp_path / "race.png").stat().st_size > 5000


def test_shares_lie_on_top_of_each_other_up_to_1(fitted):
    _, below = fitted.plot_race()
    table = pd.DataFrame(fitted.race_).pivot_table(index="row", columns="name", values="share", sort=False).fillna(0.0)
    tops = table.cumsum(axis=1)
    for collection, name in zip(below.collections, table.columns, strict=True):
        corners = {(x, round(y, 9)) for x, y in collection.get_paths()[0].vertices}
        for row, top in tops[name].items():
            assert (float(row), round(top, 9)) in corners
    np.testing.assert_allclose(tops.iloc[:, -1], 1.0)


def test_the_plot_uses_given_axes(fitted):
    axes = plt.subplots(2)[1]
    assert fitted.plot_race(axes) is axes
    assert len(axes[0].get_lines()) > 0


def test_a_race_without_standings_is_an_empty_picture():
    above, below = model().fit(np.eye(2), [0, 1]).plot_race()
    assert not above.get_lines()
    assert above.get_legend() is None
    assert below.get_ylim() == (0, 1)
