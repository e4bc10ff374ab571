"""Changes of columns, found without labels: counts, tests, the stream, files, and what is shown of them."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from scipy.stats import chi2_contingency, fisher_exact

from pairloom import AUCClassifier, load, save
from pairloom.base.tree import copy, nbytes, same
from pairloom.cli.columns import change_lines, change_values
from pairloom.columns import changes
from pairloom.columns.cells import CELLS, MISSING, NEW, OF, ROWS, Rules, counts_of, cuts_of
from pairloom.columns.changes import compare, g_test, more_than, stability_index
from pairloom.columns.windows import BLOCK, BLOCKS, MAX_FOUND, ColumnWindows
from pairloom.estimators import saving
from pairloom.estimators.monitor.page import page
from pairloom.estimators.monitor.view import view_of
from pairloom.race import Portfolio
from pairloom.systems import FPOGD

CHEAP = Portfolio(forests=(), boosted=None, kernels=())
COMPLETE = (1 + BLOCKS) * BLOCK
"""Rows after which the first older window is complete."""

HOSTILE = "<b>&\"'</b>"


def model(**rest):
    return AUCClassifier(portfolio=CHEAP, random_state=0, **rest)


def stream(n, seed=0):
    """Return four columns of numbers: normal, heavy tails, missing values, few values; and labels."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=n), rng.standard_cauchy(n), rng.normal(size=n), rng.integers(0, 3, n)])
    X[rng.random(n) < 0.3, 2] = np.nan
    return X, (X[:, 0] + rng.normal(size=n) > 1).astype(int)


def frame_of(n, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(stream(n, seed)[0], columns=["plain", "heavy", "gaps", "few"])
    frame["shop"] = rng.choice(["a", "b", "c"], n).astype(object)
    frame["when"] = np.datetime64("2024-01-01") + np.arange(n).astype("timedelta64[m]")
    return frame, stream(n, seed)[1]


def windows_of(X, kinds=None, n=None):
    """Return the windows after these rows, which come in calls of n rows."""
    made = ColumnWindows.empty(X.shape[1])
    for start in range(0, len(X), n or len(X)):
        made.add(X[start : start + (n or len(X))], kinds)
    return made


def what(made):
    """Return the rows, columns and aspects found."""
    return [tuple(places[:3]) for places in made.found.places.tolist()]


# Counts and tests.


def test_counts_are_those_of_the_values():
    values = np.array([[1.0, 0.0], [2.0, 1.0], [2.5, 1.0], [np.nan, 3.0], [9.0, np.nan], [-1.0, 7.0]])
    cuts = np.full((CELLS - 1, 2), np.inf)
    cuts[:2] = [[1.0, 1.0], [2.0, 3.0]]
    counts = counts_of(values, Rules(np.array([False, True]), np.zeros(2, bool), 7), np.array([[0, 0], [3.0, 2]]), cuts)
    assert counts[:CELLS, 0].tolist() == [2, 1, 2, *[0] * 7]  # up to 1, up to 2, above
    assert counts[:CELLS, 1].tolist() == [2, 2, 1, *[0] * 7]  # all others, code 1, code 3
    assert counts[[MISSING, ROWS, NEW, OF]].T.tolist() == [[1, 6, 2, 5], [1, 6, 1, 5]]  # code 7 is shared: not new


def test_tenths_of_a_sample_hold_a_tenth_each_and_frequent_values_are_apart():
    rng = np.random.default_rng(0)
    x = rng.normal(size=1_000)
    rules = Rules.of(1, None, 9)
    assert counts_of(x[:, None], rules, np.zeros((2, 1)), cuts_of(x, False)[:, None])[:CELLS, 0].tolist() == [100] * 10
    x = np.where(rng.random(1_000) < 0.8, 0.0, x)
    found = counts_of(x[:, None], rules, np.zeros((2, 1)), cuts_of(x, False)[:, None])[:CELLS, 0]
    assert found.max() == (x == 0).sum()


def test_tests_are_those_of_scipy():
    rng = np.random.default_rng(0)
    for _ in range(20):
        older, newer = rng.multinomial(900, [0.1] * 10), rng.multinomial(500, [0.12] * 5 + [0.08] * 5)
        expected = chi2_contingency(np.stack([older, newer]), lambda_="log-likelihood", correction=False).pvalue
        assert g_test(older[None], newer) == pytest.approx(expected)
        k, k_new = rng.integers(0, 40, 2)
        table = [[k_new, 300 - k_new], [k, 400 - k]]
        assert more_than((k, 400), (k_new, 300)) == pytest.approx(fisher_exact(table, "greater").pvalue)
    p, q = np.array([0.2, 0.8]), np.array([0.5, 0.5])
    index = stability_index(1e9 * p[:, None], 1e9 * q[:, None])
    assert index[0] == pytest.approx(((q - p) * np.log(q / p)).sum())
    merged = g_test(np.array([[900, 100, 7]]), np.array([500, 60, 9]))
    assert g_test(np.array([[900, 100, 3, 0, 4]]), np.array([500, 60, 0, 9, 0])) == merged < 1.0
    assert g_test(np.array([[9, 0]]), np.array([20, 0])) == 1.0


def counts(cells, missing=0, new=0, of=1_000):
    table = np.zeros((OF + 1, 1))
    table[: len(cells), 0] = cells
    table[[MISSING, ROWS, NEW, OF], 0] = missing, sum(cells) + missing, new, of
    return table


@pytest.mark.parametrize(
    ("newer", "bit"),
    [
        (counts([1400, 600]), 1), (counts([1200, 800]), 0), (counts([67, 33]), 0), (counts([1000, 1000], 100), 2),
        (counts([1000, 1000], 30), 0), (counts([1000, 1000], new=40), 4), (counts([1000, 1000], new=9), 0),
    ],
)  # fmt: skip
def test_an_alarm_needs_a_change_that_is_both_large_and_significant(newer, bit):
    no, yes = np.array([False]), np.array([True])
    older = counts([1000, 1000])[None]
    assert compare(older, newer, no, yes).changed[0] == bit
    assert compare(older, newer, no, no).changed[0] == bit & 6
    assert compare(older, newer, yes, yes).changed[0] == bit & 2


def test_blocks_that_differ_from_each_other_raise_the_bar():
    no, yes, newer = np.array([False]), np.array([True]), counts([1400, 600], 300)
    for apart, bits in ((0, 3), (200, 0)):
        blocks = [counts([500 + way * apart, 500 - way * apart], 50 + way * apart // 4) for way in (1, -1) * 4]
        assert compare(np.stack(blocks), newer, no, yes).changed[0] == bits
    older = np.stack([counts([1000, 1000], new=k) for k in (0, 35)])
    assert compare(older, counts([1000, 1000], new=40), no, yes).changed[0] == 0  # one block had almost as many


def test_the_level_is_shared_by_all_columns(monkeypatch):
    older, newer, no = counts([1000, 1000]), counts([180, 120]), np.array([False])
    p = g_test(older[None, :2, 0], newer[:2, 0])
    monkeypatch.setattr(changes, "MIN_PSI", 0.03)
    monkeypatch.setattr(changes, "FALSE_RATE", 4 * p)
    for c, changed in ((1, 1), (2, 0)):
        table, other = (np.repeat(one, c, axis=1) for one in (older, newer))
        assert (compare(table[None], other, np.repeat(no, c), ~np.repeat(no, c)).changed == changed).all()


# Streams.


def still(n, seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack([stream(n, seed)[0], rng.zipf(1.5, n) % 4096, rng.geometric(0.05, n), np.arange(n)])
    for j in (4, 5):  # codes in the order of arrival
        _, first, inverse = np.unique(X[:, j], return_index=True, return_inverse=True)
        X[:, j] = np.argsort(np.argsort(first))[inverse]
    return X, np.array([0, 0, 0, 0, 1, 1, 1])


def test_no_alarm_without_a_change():
    for seed in range(4):
        X, kinds = still(30_000, seed)
        made = windows_of(X[:-2_000], kinds)
        assert what(made) == []
        assert not made.compare_with(X[-2_000:], kinds)[0].any()


def test_tests_keep_their_level_without_least_changes(monkeypatch):
    """At a level of a half, all tests of a stream together would find one change in two comparisons, if not fewer."""
    for name in ("MIN_PSI", "MIN_MISSING", "MIN_NEW"):
        monkeypatch.setattr(changes, name, 1e-9)
    monkeypatch.setattr(changes, "FALSE_RATE", 0.5)
    rows = [len({row for row, *_ in what(windows_of(*still(30_000, seed)))}) for seed in range(6)]
    assert 1 <= sum(rows) < 0.5 * 6 * (30_000 // BLOCK)


def test_what_changes_is_found_and_where():
    n, at = 12_000, 7_000
    X, _ = stream(n)
    X[at:, 0] += 1.0
    X[at:, 1] = np.where(np.random.default_rng(1).random(n - at) < 0.1, 1e9, X[at:, 1])
    X[at:, 2] = np.where(np.random.default_rng(2).random(n - at) < 0.2, np.nan, X[at:, 2])
    found = what(windows_of(X))
    assert sorted((column, aspects) for _, column, aspects in found) == [(0, 1), (1, 4), (2, 2)]
    assert all(at < row <= at + 2_600 and row % BLOCK == 0 for row, *_ in found)


def test_a_change_while_the_older_window_is_filled_is_found():
    X, kinds = stream(3_000)[0][:, :2], np.array([0, 1])
    X[:, 1] = np.random.default_rng(0).integers(0, 3, 3_000)
    for at in (1_100, 2_000):
        changed = X.copy()
        changed[at:, 0] = np.nan
        changed[at:, 1] = 5.0
        assert {column: aspects for _, column, aspects in reversed(what(windows_of(changed, kinds)))} == {0: 2, 1: 4}


def test_the_block_of_a_change_is_in_no_window_and_early_blocks_have_no_share_of_new_values():
    X = stream(4 * BLOCK)[0][:, :1]
    X[3 * BLOCK :] = 1e9
    assert windows_of(X[:-1]).sizes[:, 0].tolist() == [2, 0]
    made = windows_of(X)
    assert made.sizes[:, 0].tolist() == [0, 0]
    assert made.older[0, :CELLS].sum() == 0
    made = windows_of(stream(COMPLETE)[0][:, :1])
    assert made.older[:, OF, 0].tolist() == [0] * 4 + [BLOCK] * 4
    assert made.older[:, ROWS, 0].tolist() == [BLOCK] * 8


def test_a_slow_change_is_found_against_the_first_rows():
    X = stream(40_000)[0][:, :1] + np.linspace(0, 1.5, 40_000)[:, None]
    assert [aspects & 1 for _, _, aspects in what(windows_of(X))][:2] == [1, 1]


def test_a_new_window_begins_after_a_change():
    X = stream(20_000)[0][:, :1]
    X[7_000:, 0] += 3.0
    made = windows_of(X)
    assert len(what(made)) == 1
    assert made.older_range[0, 0] > X[:7_000].min() + 0.5
    assert made.sizes[:, 0].tolist() == [8, 8]
    low, high = made.found.values[0, -2:]
    assert low >= X[7_000:].min()  # rows since the change
    assert high > X[:7_000].max()


def test_a_clock_and_a_date_are_no_change_but_their_missing_values_are():
    n = 9_000
    X = np.column_stack([np.arange(n), np.arange(n) // 3, 1e6 - np.arange(n), np.arange(n) % 7.0 + np.arange(n)])
    kinds = np.array([0, 0, 0, 2])
    assert what(windows_of(X, kinds)) == []
    X[7_000:] = np.nan
    assert {aspects for *_, aspects in what(windows_of(X, kinds))} == {2}


@pytest.mark.parametrize("n", [1, 7, 511, 513, 5_000])
def test_cuts_between_calls_do_not_show(n):
    X, kinds = still(9_000, 0)
    X[6_000:, 0] += 2.0
    X[5_000:, 4] = 9_999.0
    whole = windows_of(X, kinds)
    assert what(whole) != []
    assert same(whole, windows_of(X, kinds, n))


def test_memory_is_bounded_and_the_newest_changes_are_kept():
    X = np.random.default_rng(0).normal(size=(2_000 * BLOCK, 1)) + np.repeat(np.arange(400) % 2 * 9, 5 * BLOCK)[:, None]
    X[::2] = np.where(np.repeat(np.arange(400) % 3 == 0, 5 * BLOCK)[::2, None], np.nan, X[::2])
    made = windows_of(X)
    assert made.found.count > MAX_FOUND == len(made.found.places)
    assert nbytes(replace(made, found=None)) == nbytes(replace(ColumnWindows.empty(1), found=None)) < 6_200
    assert made.found.places[-1, 0] > 1_900 * BLOCK


def test_comparing_rows_changes_nothing_and_counts_values_never_seen():
    X, kinds = still(6_000, 0)
    made = windows_of(X, kinds)
    before = copy(made)
    rows = X[-1_000:].copy()
    rows[:, 0] = 5.5
    rows[:200, 4] = -1.0  # the code of a category that was never learned
    changed, values = made.compare_with(rows, kinds)
    assert same(made, before)
    assert changed.tolist() == [5, 0, 0, 0, 5, 0, 0]
    assert values[[0, 4], 4].tolist() == [1.0, 0.2]
    assert values[0, -2:].tolist() == [5.5, 5.5]


@pytest.mark.parametrize("n", [BLOCK, BLOCK + 9, COMPLETE - 1])
def test_rows_are_compared_after_one_block(n):
    X, kinds = still(n + 600, 0)
    made = windows_of(X[:n], kinds)
    assert not made.compare_with(X[n:], kinds)[0].any()
    X[n:, 0] += 9.0
    assert made.compare_with(X[n:], kinds)[0][0] & 1


# Estimators.


@pytest.fixture(scope="module")
def shifted():
    """A frame and labels; two columns change at row 6,000, and another at 7,500."""
    frame, y = frame_of(9_000)
    frame.loc[6_000:, "plain"] += 2.0
    frame.loc[7_500:, "shop"] = HOSTILE
    frame.loc[6_000:, "gaps"] = np.nan
    return frame, y


@pytest.fixture(scope="module")
def fitted(shifted):
    return model().fit(*shifted)


def test_the_report_states_what_changed(fitted, shifted):
    report = fitted.columns_.changes
    assert {name: one.changed for name, one in report.items()} == {
        "shop": ("distribution", "new values"), "gaps": ("missing",), "plain": ("distribution", "new values"),
    }  # fmt: skip
    shop, gaps, plain = report["shop"], report["gaps"], report["plain"]
    assert shop.new_categories == (HOSTILE,)
    assert shop.ranges is None
    assert gaps.missing[0] == pytest.approx(0.3, abs=0.03)
    assert gaps.missing[1] == 1.0
    assert plain.ranges[1][0] > plain.ranges[0][0] + 1
    assert 6_000 < plain.row < 7_100
    assert [one.row for one in fitted.column_changes_] == sorted(one.row for one in fitted.column_changes_)
    assert report == {one.column: one for one in fitted.column_changes_}
    assert fitted.changes_ == model().fit(*shifted).changes_


def test_changes_do_not_change_the_model(fitted, shifted, monkeypatch):
    monkeypatch.setattr(AUCClassifier, "finds_column_changes", False)
    frame, y = shifted
    plain = model().fit(frame, y)
    assert plain.column_changes_ == []
    assert same(plain.stream_.state, fitted.stream_.state)


def test_any_chunking_and_single_rows_and_files_give_the_same(fitted, shifted, tmp_path):
    frame, y = shifted
    parts = model().partial_fit(frame[:5_900], y[:5_900])
    save(parts, tmp_path / "model")
    parts = load(tmp_path / "model")
    for row in frame[5_900:5_950].to_dict("records"):
        parts.learn_one(row, y[parts.n_seen_])
    for start in range(5_950, 9_000, 777):
        parts.partial_fit(frame[start : start + 777], y[start : start + 777])
    assert same(parts.state_, fitted.state_)
    assert parts.column_changes_ == fitted.column_changes_


def test_rows_not_learned_are_compared_by_column_and_score(fitted, shifted):
    frame, _ = shifted
    before = copy(fitted.state_)
    rows = frame[8_000:].copy()
    now = fitted.column_changes(rows)
    assert list(now) == [*frame.columns, "(score)"]
    assert not any(one.changed for one in now.values())
    rows["shop"] = ["new one", "other"] * 500
    rows["few"] = 17.0
    now = fitted.column_changes(rows)
    assert now["shop"].new_categories == ("new one", "other")
    assert now["shop"].new[1] == now["few"].new[1] == 1.0
    assert now["few"].ranges[1] == (17.0, 17.0)
    assert now["(score)"].changed == ()
    rows["plain"] += 9.0
    assert fitted.column_changes(rows)["(score)"].psi > now["(score)"].psi + 0.5
    assert same(fitted.state_, before)
    newest = fitted.column_changes()
    assert newest["heavy"].psi < 0.1
    assert newest["(score)"].psi > 0


def test_arrays_and_csr_have_changes_too():
    X, y = stream(9_000)
    X = np.nan_to_num(X)
    X[6_000:, 0] += 2.0
    dense, sparse = model().fit(X, y), model().fit(csr_array(X), y)
    assert dense.columns_ is None
    assert [(one.column, one.row) for one in dense.column_changes_] == [("x0", 6_656)]
    assert dense.column_changes_ == sparse.column_changes_
    one, other = dense.column_changes(X[-999:]), sparse.column_changes(csr_array(X[-999:]))
    assert one.pop("(score)").psi == pytest.approx(other.pop("(score)").psi, abs=0.01)
    assert one == other


def test_wide_rows_and_other_estimators_have_none(monkeypatch):
    X, y = stream(600)
    X = np.nan_to_num(X)
    assert FPOGD(random_state=0).fit(X, y)._windows is None
    monkeypatch.setattr(saving, "WIDEST", 4)
    assert model().fit(X, y)._windows.n_columns == 4
    monkeypatch.setattr(saving, "WIDEST", 3)
    wide = model().fit(X, y)
    assert wide._windows is None
    assert wide.column_changes_ == []
    assert wide.column_changes(X) == {}


def test_few_rows_are_an_error():
    X, y = stream(400)
    with pytest.raises(ValueError, match="at least 512 rows that the model has learned, not 400"):
        model().fit(X[:, :1], y).column_changes(X[:, :1])


def test_a_frozen_copy_compares_rows_and_does_not_follow(fitted, shifted):
    frozen, frame = fitted.frozen(), shifted[0]
    assert frozen.column_changes(frame[:900])["plain"] == fitted.column_changes(frame[:900])["plain"]
    assert not any(np.shares_memory(frozen._windows.block, own._windows.block) for own in (fitted,))


# Files.


def test_an_older_file_starts_at_its_row(shifted, tmp_path, monkeypatch):
    frame, y = shifted
    with monkeypatch.context() as older:
        older.setattr(AUCClassifier, "finds_column_changes", False)
        save(model().fit(frame[:1_000], y[:1_000]), tmp_path / "model")
    found = load(tmp_path / "model")
    assert found._windows.t == 0
    found.partial_fit(frame[1_000:2_000], y[1_000:2_000])
    assert found._windows.t == 1_000


@pytest.mark.parametrize(
    ("name", "value"),
    [("sizes", 9), ("older", -1), ("t", 5), ("cuts", np.nan), ("known", np.nan)],
)
def test_windows_that_cannot_be_are_refused(fitted, tmp_path, name, value):
    broken = fitted.with_state(copy(fitted.state_))
    if name == "t":
        broken._windows.t = value
    else:
        getattr(broken._windows, name)[...] = value
    with pytest.raises(ValueError, match=r"not saved: .* windows"):
        save(broken, tmp_path / "model")


def test_windows_of_other_columns_and_unknown_changes_are_refused(fitted, tmp_path):
    broken = fitted.with_state(copy(fitted.state_))
    broken._windows.found.places[0, 1] = 6
    with pytest.raises(ValueError, match=r"not saved: .* windows.found must be of known columns"):
        save(broken, tmp_path / "model")
    broken._windows = ColumnWindows.empty(3)
    with pytest.raises(ValueError, match=r"not saved: .* windows must be of 6 columns"):
        save(broken, tmp_path / "model")


# What is shown.


def test_inspect_prints_a_table_of_changes(fitted):
    values = change_values(fitted)
    assert [one["column"] for one in values] == [*fitted.columns_.changes, "(score)"]
    lines = change_lines(json.loads(json.dumps(values)))
    assert lines[0].split() == ["column", "row", "PSI", "missing", "new", "values", "range"]
    assert len(lines) == len(values) + 1
    assert any(line.startswith("'gaps'") and "-> 100 %" in line for line in lines)
    assert change_lines([]) == []


def test_the_page_has_a_table_with_names_escaped(fitted):
    text = page(view_of(fitted), datetime(2025, 1, 2, tzinfo=UTC))
    assert HOSTILE not in text
    table = next(ElementTree.fromstring(text).iter("table"))
    shown = [[cell.text or "" for cell in row] for row in table.iter("tr")]
    assert shown[0] == ["column", "row", "PSI", "missing", "new values", "range"]
    assert [row[0] for row in shown[1:]] == [*fitted.columns_.changes, "(score)"]
    assert any(HOSTILE in row[4].replace("\\'", "'") for row in shown)
    assert "nan" not in text
    assert "<table" not in page(replace(view_of(fitted), changes=()), datetime(2025, 1, 2, tzinfo=UTC))
