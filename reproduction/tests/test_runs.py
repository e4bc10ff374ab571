"""`python -m reproduction`: cells, selection, folds, and real runs that are stopped and continued."""

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from sklearn.datasets import load_breast_cancer

from reproduction import problems
from reproduction.__main__ import main
from reproduction.auc_time import learning_curve
from reproduction.cells import Cell, Task
from reproduction.columns import COLUMNS, n_features_of
from reproduction.config import read
from reproduction.problems import Protocol, Shape, Split, source_of, split_of
from reproduction.report import write
from reproduction.results import STAMP, Results
from reproduction.runner import EXPERIMENTS, execute, planned
from reproduction.selection import aucs, best
from reproduction.table import learn_fold
from reproduction.tests import invented

PROTOCOL = replace(read("protocol", Protocol, quick=True), most_rows=150, selection_rows=150, slow_selection_rows=90)


@pytest.fixture(scope="module")
def split() -> Split:
    X, y = load_breast_cancer(return_X_y=True)
    y = np.where(y == 0, 1.0, -1.0)
    return Split(X[:300], y[:300], X[300:], y[300:])


@pytest.mark.parametrize("name", COLUMNS)
def test_every_column_learns_a_fold(name, split):
    column = COLUMNS[name]
    grid = column.grid(split.shape, PROTOCOL)
    record = learn_fold(column, split, grid[0] if grid else {}, PROTOCOL)
    assert record["auc"] > 0.8
    assert record["rows"] == column.n_learned(split.shape, PROTOCOL) == (150 if column.most == "capped" else 300)
    assert (record["n_train"], record["n_test"]) == (300, 269)


@pytest.mark.parametrize("name", ["FPOGD, kernel", "FPOGD, linear", "OGD", "Kar"])
def test_one_pass_of_all_settings_is_each_of_them_alone(name, split):
    column, rows = COLUMNS[name], split.seen_as(COLUMNS[name].view)
    grid = [{"alpha": 1e-4, "eta": 0.002}, {"alpha": 1e-2, "eta": 0.01}]
    together = aucs(column, split.shape, grid, rows, 0)
    alone = aucs(replace(column, one_pass=False), split.shape, grid, rows, 0)
    # Weights agree to 1e-5 relative; a pair of rows may change places.
    assert together == pytest.approx(alone, abs=3e-4)
    assert together[0] != together[1]


def test_widths_do_not_share_a_pass(split):
    column, rows = COLUMNS["FPOGD, tuned width"], split.seen_as("scaled")
    grid = [{"gamma": g, "alpha": 1e-4, "eta": eta} for g in (0.001, 1.0) for eta in (0.1, 0.2)]
    found = aucs(column, split.shape, grid, rows, 0)
    assert found == [aucs(column, split.shape, [one], rows, 0)[0] for one in grid]


def test_selection_takes_the_best_mean_over_inner_folds(split):
    column = COLUMNS["ExactAUC"]
    found = best(column, split.shape, split, PROTOCOL)
    grid = column.grid(split.shape, PROTOCOL)
    inner = [part.seen_as(column.view) for part in split.first(150).inner(3, PROTOCOL.seed)]
    means = np.mean([aucs(column, split.shape, grid, part, 0) for part in inner], axis=0)
    assert json.loads(found["settings"]) == grid[int(means.argmax())]
    assert (found["auc"], found["n_settings"], found["rows"]) == (pytest.approx(means.max()), 8, 150)


def test_the_protocol_has_the_settings_of_the_paper():
    protocol, shape = read("protocol", Protocol, quick=False), Shape(10_000, 20, sparse=False)
    assert protocol.etas == tuple(2.0**k for k in range(-8, 0))
    assert protocol.lambdas == tuple(10.0**k for k in range(-8, 0))
    counts = {name: len(column.grid(shape, protocol)) for name, column in COLUMNS.items()}
    assert counts["FPOGD, kernel"] == counts["FPOGD, linear"] == counts["OGD"] == counts["Kar"] == 64
    assert counts["SPAM-NET"] == 8 * 4 * 4
    assert all(counts[name] == 8 for name in ("SparseKernelAUC", "ProjectronPP", "KOIL++", "OPERA"))
    assert n_features_of(shape) == 922  # 100 ln 10,000


def test_scaling_looks_at_the_rows_to_learn_alone(split):
    far = replace(split, X_test=split.X_test + 1000.0)
    scaled, other = split.seen_as("scaled"), far.seen_as("scaled")
    np.testing.assert_array_equal(scaled.X, other.X)
    np.testing.assert_allclose((scaled.X.min(), scaled.X.max()), (-1, 1))
    assert other.X_test.max() > 2
    assert split.seen_as("raw") is split


def test_a_curve_ends_where_the_table_is(split):
    column, rows = COLUMNS["FPOGD, kernel"], split.seen_as("scaled")
    model = column.make(split.shape, {"eta": 0.1, "alpha": 1e-4}, 0)
    curve = learning_curve(model, rows, [50, 100, 300])
    assert [point["row"] for point in curve] == [50, 100, 300]
    assert all(later["seconds"] > sooner["seconds"] for sooner, later in pairwise(curve))
    assert curve[-1]["auc"] == learn_fold(column, split, {"eta": 0.1, "alpha": 1e-4}, PROTOCOL)["auc"]


def test_a_system_that_needs_all_rows_has_one_point(split):
    model = COLUMNS["SparseKernelAUC"].make(split.shape, {}, 0)
    curve = learning_curve(model, split.seen_as("scaled"), [50, 300])
    assert [point["row"] for point in curve] == [300]


def test_folds_are_disjoint_shuffled_and_the_same_each_time(data_folder):
    folds = [split_of("german", fold, 5, 0) for fold in range(5)]
    assert sum(len(fold.y_test) for fold in folds) == 1000
    assert all(fold.X.shape == (800, 24) for fold in folds)
    assert all(np.mean(fold.y_test > 0) == pytest.approx(0.3) for fold in folds)
    assert not np.array_equal(folds[0].y, np.sort(folds[0].y))
    np.testing.assert_array_equal(split_of("german", 3, 5, 0).X_test, folds[3].X_test)


def test_rcv1_has_a_stand_in_where_its_file_is_not_here(data_folder, tmp_path, monkeypatch):
    assert source_of("rcv1") == "reuters.moneyfx"
    monkeypatch.setenv("PAIRLOOM_DATA", str(tmp_path))
    assert source_of("rcv1") == "rcv1"  # then it would be downloaded


def counting(start: float, fold: int, settings: dict | None = None) -> list[dict]:
    """A task for the tests below."""
    return [{"auc": start + fold, "settings": json.dumps({"eta": start, **(settings or {})})}]


def tasks_from(start: float) -> list[Task]:
    first = Task(Cell("selection", "toy", "one"), counting, {"start": start, "fold": 0})
    return [first, *(Task(Cell("table", "toy", "one", fold=k), counting, {"start": 1.0, "fold": k}, after=first.cell)
                     for k in range(3))]  # fmt: skip


BUDGETS = {"clusters": (40, 600), "cost": (30, 480), "regret": (15, 1000), "variance": (10, 800)}
"""CPU seconds of a quick run and of a full run, at most."""


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("experiment", BUDGETS)
def test_tasks_are_distinct_and_can_be_sent_to_a_process(experiment, quick):
    tasks = EXPERIMENTS[experiment](quick, None)
    assert len({task.cell for task in tasks}) == len({task.config for task in tasks}) == len(tasks) > 10
    assert all(task.cell.experiment == experiment and "seed" in str(task.arguments) for task in tasks)
    sent = pickle.loads(pickle.dumps(tasks))
    assert [task.config for task in sent] == [task.config for task in EXPERIMENTS[experiment](quick, None)]
    assert 0 < sum(task.seconds for task in tasks) < BUDGETS[experiment][not quick]


@pytest.mark.parametrize("experiment", [name for name in EXPERIMENTS if name != "cost"])
def test_other_datasets_replace_those_of_the_configuration(experiment):
    tasks = EXPERIMENTS[experiment](True, ("german", "diabetes"))
    assert {task.cell.dataset for task in tasks} == {"german", "diabetes"}


def test_the_committed_results_are_complete(monkeypatch):
    """The same command would run nothing: the results belong to these configurations."""
    pytest.importorskip("lightgbm", reason="LightGBM is not installed: pip install '.[reproduce]'")
    monkeypatch.setattr(problems, "is_available", lambda name: name == "reuters.moneyfx")
    results = Results(Path(__file__).parents[2] / "docs" / "reproduction")
    assert planned(EXPERIMENTS, False, None, results).missing == ()


def test_finished_cells_are_not_run_again(tmp_path, monkeypatch):
    monkeypatch.setitem(EXPERIMENTS, "toy", lambda quick, datasets: tasks_from(0.5))
    results, quiet = Results(tmp_path), Console(quiet=True)
    plan = planned(["toy"], True, None, results)
    assert len(plan.missing) == 4
    execute(plan, results, 0, 1, quiet)
    found = Results(tmp_path).read("table")
    assert [record["auc"] for record in found] == [1.0, 2.0, 3.0]
    assert json.loads(found[0]["settings"]) == {"eta": 0.5}  # what was selected came with the call
    assert not planned(["toy"], True, None, Results(tmp_path)).missing
    assert {"run", "command", "commit", "versions", "machine", "jobs", "started"} <= set(Results(tmp_path).runs()[0])


def test_a_new_selection_is_followed_by_what_depends_on_it(tmp_path, monkeypatch):
    monkeypatch.setitem(EXPERIMENTS, "toy", lambda quick, datasets: tasks_from(0.5))
    results = Results(tmp_path)
    execute(planned(["toy"], True, None, results), results, 0, 1, Console(quiet=True))
    monkeypatch.setitem(EXPERIMENTS, "toy", lambda quick, datasets: tasks_from(0.25))
    assert len(planned(["toy"], True, None, Results(tmp_path)).missing) == 4
    execute(planned(["toy"], True, None, results), results, 0, 1, Console(quiet=True))
    assert len(Results(tmp_path).read("table")) == 3
    assert json.loads(Results(tmp_path).read("table")[0]["settings"]) == {"eta": 0.25}


def test_results_come_back_as_they_were(tmp_path):
    results = Results(tmp_path)
    task = Task(Cell("table", "a9a", 'odd, "name"', "D", 0.1, 2), counting, {})
    results.add(task, [{"auc": 0.123456789012345678, "note": "1e5"}, {"rows": 7, "settings": "{}"}], {"run": "2026"})
    one, other = Results(tmp_path).of(task.cell)
    assert one["auc"] == 0.123456789012345678
    assert (one["note"], one["run"], other["rows"], other["settings"]) == ("1e5", "2026", 7, "{}")
    assert "auc" not in other
    assert Results(tmp_path).has(task)
    assert not Results(tmp_path).has(replace(task, arguments={"start": 2.0}))


@pytest.mark.parametrize("experiment", ["features", "report"])
def test_a_folder_with_other_files_is_refused(data_folder, tmp_path, capsys, experiment):
    (tmp_path / "features.csv").write_text("a,b\n1,2\n")
    with pytest.raises(SystemExit, match="2"):
        main([experiment, "--quick", "--out", str(tmp_path)])
    assert "not a record of the reproduction" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["features.csv"]


def test_without_data_the_command_names_what_is_missing(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PAIRLOOM_DATA", str(tmp_path))
    assert main(["table", "--datasets", "reuters.moneyfx", "--out", str(tmp_path / "o")]) == 2
    assert "reuters.moneyfx is left out" in capsys.readouterr().err
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["table", "--datasets", "usps,ups"], "no data set 'ups'; there are diabetes, "),
        (["tables"], "invalid choice: 'tables'"),
        (["table", "--jobs", "0"], "must be an integer from 1 on, got '0'"),
        (["table", "--out", __file__], "is a file, not a folder"),
    ],
)
def test_wrong_options_are_refused(words, message, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert message in capsys.readouterr().err


def test_the_report_alone_needs_no_data(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PAIRLOOM_DATA", str(tmp_path))
    invented.write(tmp_path / "results", only=("cost",))
    assert main(["report", "--out", str(tmp_path / "results")]) == 0
    page = tmp_path / "results" / "index.html"
    assert capsys.readouterr().out == f"Report: {page}\n"
    assert page.read_bytes() == write(page.parent).read_bytes()


def reproduce(out: Path) -> subprocess.Popen:
    words = [sys.executable, "-m", "reproduction", "features", "--quick", "--datasets", "diabetes"]
    return subprocess.Popen([*words, "--jobs", "2", "--out", str(out)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            cwd=Path(__file__).parents[2], env=os.environ, text=True)  # fmt: skip


def measured(out: Path) -> list[dict]:
    times = {"seconds", *STAMP}
    return [{key: value for key, value in record.items() if key not in times}
            for record in Results(out).read("features")]  # fmt: skip


@pytest.mark.soak
def test_a_run_that_is_stopped_goes_on_and_ends_the_same(data_folder, tmp_path):
    """Real processes: one is interrupted after its first cells, and started again; another runs through."""
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    one = reproduce(stopped)
    deadline = time.monotonic() + 120
    while not (stopped / "features.csv").exists() and time.monotonic() < deadline and one.poll() is None:
        time.sleep(0.05)
    one.send_signal(signal.SIGINT)
    _, errors = one.communicate(timeout=60)
    assert one.returncode == 130, errors
    assert "the same command continues the run" in errors
    done = len(measured(stopped))
    assert 0 < done < 15
    again = reproduce(stopped)
    out, errors = again.communicate(timeout=200)
    assert again.returncode == 0, errors
    assert "index.html" in out
    assert len(Results(stopped).runs()) == 2
    other = reproduce(whole)
    other.communicate(timeout=200)
    assert measured(whole) == measured(stopped)
    assert len(measured(whole)) == 15
    assert all(record["auc"] > 0.7 for record in measured(whole))
