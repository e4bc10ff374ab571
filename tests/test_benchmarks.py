"""Each benchmark runs at toy size, so that it keeps working. Nothing here asserts a time."""

import json
import os
import runpy
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from tests.generic import forms

FOLDER = Path(__file__).parent.parent / "benchmarks"
INSIDE_SPEED = {"calls.py", "startup.py", "throughput.py", "wide.py"}
"""Those that speed.py runs."""

VERDICTS = ("same_bits.py", "soak.py")
"""Those that end with an exit code."""


@pytest.fixture(scope="module", autouse=True)
def _left_behind():
    """Hypothesis draws constants from all modules that it finds: those of the benchmarks must not be among them."""
    yield
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith(str(FOLDER)):
            del sys.modules[name]


@pytest.mark.toy
@pytest.mark.parametrize("script", sorted({p.name for p in FOLDER.glob("*.py")} - INSIDE_SPEED))
@pytest.mark.filterwarnings("default")
def test_benchmark_runs_at_toy_size(script, monkeypatch, capsys):
    """In this process, where everything is imported and compiled; those that need others start them."""
    before = written(FOLDER.parent / "docs")
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.setattr(sys, "argv", [str(FOLDER / script), "--toy"])
    verdict = pytest.raises(SystemExit) if script in VERDICTS else nullcontext()
    with verdict as end:
        runpy.run_path(str(FOLDER / script), run_name="__main__")
    assert end is None or not end.value.code
    said = capsys.readouterr().out
    assert "─" in said  # a table
    assert said.count("\n") > 5
    assert written(FOLDER.parent / "docs") == before


def written(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_accuracy_goes_on_where_it_stopped(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(FOLDER)
    from contest.contestants import CONTESTANTS, Size
    from contest.datasets import TOY
    from contest.records import Records, summary
    from contest.rounds import Contest, jobs

    logistic = next(contestant for contestant in CONTESTANTS if contestant.name == "logistic")
    stopped = Records(tmp_path / "accuracy.json")
    (job,) = jobs(list(TOY), [logistic], stopped, 3)
    next(Contest(stopped, Size(), 3).run(job))  # one fold of three

    resumed = Records(tmp_path / "accuracy.json")
    assert resumed.all == stopped.all
    (job,) = jobs(list(TOY), [logistic], resumed, 3)
    assert job.folds == (1, 2)
    list(Contest(resumed, Size(), 3).run(job))
    assert jobs(list(TOY), [logistic], resumed, 3) == []

    aucs = [record.auc for record in resumed.all.values()]
    made = summary(resumed, "toy", "logistic")
    assert made.folds == 3
    assert made.auc == pytest.approx(sum(aucs) / 3)
    resumed.forget("logistic", {"toy"})
    assert Records(tmp_path / "accuracy.json").all == {}


def test_accuracy_reads_old_records_and_says_who_learned_fewer_rows(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(FOLDER)
    from contest.datasets import DATASETS, GROUPS, HALVES, KEEL
    from contest.figure import draw
    from contest.records import Records, summary
    from contest.report import markdown

    def line(data, contestant, fold, auc, **more):
        spent = {"seconds": 1.0, "wall": 1.0, "tuning": 0.0, "size": 10}
        where = {"settings": {}, "package": "a 1", "machine": "b"}
        key = {"data": data, "contestant": contestant, "fold": fold}
        return {**key, "rows": 80, "auc": auc, **spent, **where, **more}

    found = [line("usps", "logistic", fold, 0.75) for fold in range(5)]  # as before peaks were recorded
    found += [line("usps", "ARF", fold, 0.5 + fold / 100, peak=fold, capped=True) for fold in range(5)]
    found += [line(one.name, name, 0, auc, peak=7) for one in (*KEEL, HALVES[0])
              for name, auc in (("logistic", 0.7), ("ExactAUC-linear", 0.8), ("LightGBM", 0.6))]  # fmt: skip
    (tmp_path / "accuracy.json").write_text(json.dumps(found))
    records = Records(tmp_path / "accuracy.json")
    assert summary(records, "usps", "logistic").peak is None
    assert summary(records, "usps", "ARF").peak == 4
    page = markdown(records, GROUPS)
    assert "| river ARF | one | 0.5200 (80 rows) |" in page
    assert "| river ARF, first 80 rows |" in page
    assert "| contestant | passes | usps | usps-half |" in page
    assert "| ExactAUC, linear | one |  | **0.8000** |" in page
    assert "| *best of three* |  | " + " | ".join(["0.8000"] * 8) + " |" in page  # seven sets and their mean
    draw(records, DATASETS, tmp_path / "accuracy.png")
    assert (tmp_path / "accuracy.png").stat().st_size > 1000


def test_the_groups_of_the_contest(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    from contest.contestants import CONTESTANTS
    from contest.datasets import DATASETS, HALVES, KEEL, Data
    from contest.keel import REPORTED, half

    assert tuple(one.name for one in KEEL) == REPORTED
    assert [one.name for one in HALVES] == [f"{name}-half" for name in ("usps", "ijcnn1", "a9a", "mnist", "covtype")]
    for whole, one in zip(DATASETS[2:], HALVES, strict=True):
        assert one.n_rows == len(half(whole.n_rows, to_choose=False))
    beside = {c.name for c in CONTESTANTS if c.takes(KEEL[0])}
    assert beside == {c.name for c in CONTESTANTS if c.takes(HALVES[-1])}
    assert {"AUCClassifier", "ExactAUC-linear", "logistic", "LightGBM", "LightGBM-255"} < beside
    (X, y), (few, labels) = (Data("toy", "", 569, 30, cut=0.5, group=group).read() for group in ("sets", "halves"))
    rows = half(len(y), to_choose=False)
    np.testing.assert_array_equal(X[rows], few)
    np.testing.assert_array_equal(y[rows], labels)


def test_the_reported_sets_have_the_sizes_that_are_said(monkeypatch, data_folder):
    monkeypatch.syspath_prepend(FOLDER)
    from contest.datasets import KEEL

    for one in KEEL:
        X, y = one.read()
        assert X.shape == (one.n_rows, one.n_features)
        assert 0 < y.mean() < 0.5


def test_rules_are_chosen_on_other_rows_than_those_that_are_reported(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    from contest.contestants import CONTESTANTS
    from contest.datasets import CHOOSING, GROUPS, REPORTING, Raw

    names = [one.name for group in GROUPS.values() for one in group]
    assert len(set(names)) == len(names)
    chosen, reported = ({one.source for one in group if one.source} for group in (CHOOSING, REPORTING))
    assert not chosen & reported
    assert len([one for one in CHOOSING if one.kind == "KEEL"]) == 14
    rows = {group: Raw("toy", "", 90, 3, group=group, kind="halves").rows(90) for group in ("choosing", "reporting")}
    assert sorted([*rows["choosing"], *rows["reporting"]]) == list(range(90))
    assert [one.folds for one in CHOOSING[:2]] == [2, 3]
    for one in (*CHOOSING, *REPORTING):
        own = {contestant.name for contestant in CONTESTANTS if contestant.takes(one)}
        assert own == {"AUCClassifier", "Boosting", "logistic", "LightGBM-7", "LightGBM-defaults", "CatBoost"}


def test_raw_columns_have_the_sizes_that_are_said(monkeypatch, data_folder):
    monkeypatch.syspath_prepend(FOLDER)
    from contest.apart import apart
    from contest.datasets import CHOOSING, REPORTING

    for one in (*CHOOSING, *REPORTING):
        if one.kind != "halves":  # those of large files
            X, y = apart(one.read)  # the memory of this process is measured below
            assert X.shape == (one.n_rows, one.n_features), one.name
            assert 0 < y.mean() < 0.5


def test_a_walk_scores_rows_before_it_learns_them(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    from contest.walk import walk

    class Rows:
        """Scores by the label of rows that it knows, which are in the first column."""

        def fit(self, X, y):
            return self.partial_fit(X, y)

        def partial_fit(self, X, y, classes=None):
            self.known = max(getattr(self, "known", 0), X[-1, 0])
            seen.append(len(y))
            return self

        def decision_function(self, X):
            assert X[0, 0] == self.known + 1 or not one_pass
            return X[:, 1]

    y = np.tile([0, 1], 50)
    X = np.column_stack([np.arange(100), y])
    for one_pass, learned in ((True, [10] * 10), (False, [20, 40, 60, 80, 100])):
        seen = []
        made = walk(Rows, one_pass, X, y, 20)
        assert seen == learned
        assert made.auc == made.precision == 1.0


def test_accuracy_compares_the_folds_that_two_files_share(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(FOLDER)
    from contest.compare import both, difference, mean_difference
    from contest.datasets import CHOOSING
    from contest.records import Record, Records

    where = {"wall": 1.0, "size": 1, "settings": {}, "tuning": 0.0, "package": "", "machine": ""}

    def records(name, **folds):
        made = Records(tmp_path / f"{name}.json")
        for fold, (auc, seconds) in enumerate(folds.values()):
            made.add(Record("shoppers", name, fold, 100, auc, seconds, precision=auc / 2, scoring=seconds, **where))
        return made

    old, new = records("old", a=(0.8, 1.0), b=(0.7, 3.0), c=(0.1, 9.0)), records("new", a=(0.9, 1.0), b=(0.8, 1.0))
    ours, theirs = both(new, old, CHOOSING[1], ("new", "old"))
    assert len(ours) == len(theirs) == 2
    found = difference(ours, theirs)
    assert (found.auc, found.precision) == pytest.approx((0.1, 0.05))
    assert (found.learning, found.scoring) == pytest.approx((0.5, 0.5))
    twice = difference(theirs, ours)
    assert mean_difference([found, twice]).learning == pytest.approx(1.0)
    assert both(new, old, CHOOSING[0], ("new", "old")) == ([], [])


@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="no /proc/self/clear_refs: peaks are measured on Linux only"
)
def test_the_peak_is_what_a_call_takes_at_its_highest(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    from contest.apart import Peak, apart

    def call(megabytes):
        np.ones(30 * 2**17).sum()  # earlier peaks do not count
        peak = Peak()
        np.ones(megabytes * 2**17).sum()
        return peak.bytes() / 2**20

    assert apart(call, 0) < 1.0
    assert apart(call, 20) == pytest.approx(20, abs=1.0)

    def fail():
        raise ValueError("no rows")

    with pytest.raises(RuntimeError, match="no rows"):
        apart(fail)
    with pytest.raises(RuntimeError, match="code 3"):
        apart(os._exit, 3)


class Knows:
    """Scores by the old rule, which the new one reverses, until so many rows of the new concept are learned."""

    alarms = ()

    def __init__(self, a, after):
        self.a, self.left = a, after

    def learn(self, X, y):
        self.left -= len(y)

    def score(self, X):
        return X @ self.a * (1 if self.left > 0 else -1)


def test_recovery_counts_the_rows_from_the_change_to_the_end_of_a_window_as_good_as_the_goal(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    from changes.recovery import first_back, goal_of, recovery
    from changes.streams import Length, sudden

    stream = sudden("reversed, 5 % positive", 0, Length(3_000, 6_000))
    assert (len(stream.y), len(stream.more[1]), stream.at, stream.window) == (9_000, 6_000, 3_000, 1_000)
    old, a = stream.y[:3_000] == 1, np.random.default_rng(0).normal(size=10)
    assert (stream.X[:3_000] @ a)[old].min() > (stream.X[:3_000] @ a)[~old].max()

    goal = goal_of(stream, lambda: Knows(a, 0))
    np.testing.assert_array_equal(goal, 1.0)  # of windows in the last 6,000 rows
    assert len(goal) == 51
    assert goal_of(stream, lambda: Knows(a, 6_001)).max() == 0.0  # it learns only 6,000 rows
    found = {rows: recovery(stream, lambda rows=rows: Knows(a, 3_000 + rows), goal) for rows in (0, 1_500, 4_500)}
    assert [run.rows for run in found.values()] == [1_000, 2_500, 6_000]
    assert [run.never for run in found.values()] == [False, False, True]  # the last has no second window to show it
    assert found[1_500].aucs[-1] == 1.0

    once = np.array([0.5, 0.995, 0.5, 0.991, 0.992])
    assert first_back(once, np.ones(5), 1) == 3  # one window by chance does not count
    assert first_back(once - 0.01, np.ones(5), 1) is None


def test_intervals_of_series_know_that_neighbours_are_alike(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    from changes.order import interval

    assert interval(np.full(40, 0.25), 8) == (0.25, 0.25)
    alike = np.repeat(np.random.default_rng(0).normal(size=20), 8)
    (low, high), (one_low, one_high) = interval(alike, 8), interval(alike, 1)
    assert low < one_low < alike.mean() < one_high < high
    apart = np.random.default_rng(0).normal(size=160)
    wide, one_wide = (np.ptp(interval(apart, together)) for together in (8, 1))
    assert 0.7 < wide / one_wide < 1.4


def test_same_bits_names_what_differs_by_one_bit(monkeypatch, capsys):
    monkeypatch.syspath_prepend(FOLDER)
    from same_bits import Found, compare, digest

    def found(failed=(), **arrays):
        return Found({k: digest(a) for k, a in arrays.items()}, dict.fromkeys(arrays, "kind"), dict(failed), arrays)

    a, b = np.array([1.0, -2.0]), np.array([0.0])
    assert compare(found(a=a, b=b), found(a=a.copy(), b=b.copy())) == 0
    assert "2 cases, all the same" in capsys.readouterr().out
    assert compare(found(a=a, b=b), found(a=np.nextafter(a, 3), b=-b, c=b)) == 3  # -0.0 has other bits
    said = capsys.readouterr().out
    assert "2.2e-16" in said
    assert "in one only" in said
    assert compare(found(a=a), found([("b", "no room")], a=a)) == 1
    assert "no room" in capsys.readouterr().out


def test_same_bits_has_every_published_form(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    from bits.cases import cases

    made = cases(toy=False)
    assert {case.name for case in made if case.kind == "estimators"} == set(forms())
    names = [f"{case.name}: {case.setting}" for case in made]
    assert len(set(names)) == len(names)
