"""`python -m reproduction`: cells, plans, results, and real runs that are stopped and continued."""

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from reproduction.__main__ import main
from reproduction.cells import Cell, Task
from reproduction.report import write
from reproduction.results import STAMP, Results
from reproduction.runner import EXPERIMENTS, execute, planned
from reproduction.tests import invented


def counting(start: float, fold: int, chosen: dict | None = None) -> list[dict]:
    """A task for the tests below."""
    settings = json.loads((chosen or {}).get("settings", "{}"))
    return [{"auc": start + fold, "settings": json.dumps({"eta": start, **settings})}]


def tasks_from(start: float) -> list[Task]:
    first = Task(Cell("selection", "toy", "one"), counting, {"start": start, "fold": 0})
    return [first, *(Task(Cell("table", "toy", "one", fold=k), counting, {"start": 1.0, "fold": k}, after=first.cell)
                     for k in range(3))]  # fmt: skip


BUDGETS = {"clusters": (40, 600), "cost": (30, 480), "regret": (25, 2000), "variance": (12, 1200)}
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


def test_the_committed_results_are_complete(data_folder):
    """The same command would run nothing: the results belong to these configurations."""
    pytest.importorskip("lightgbm", reason="LightGBM is not installed: pip install '.[reproduce]'")
    results = Results(Path(__file__).parents[2] / "docs" / "reproduction")
    assert planned([make(False, None) for make in EXPERIMENTS.values()], results).missing == ()


def test_finished_cells_are_not_run_again(tmp_path, monkeypatch):
    monkeypatch.setitem(EXPERIMENTS, "toy", lambda quick, datasets: tasks_from(0.5))
    results, quiet = Results(tmp_path), Console(quiet=True)
    plan = planned([EXPERIMENTS["toy"](True, None)], results)
    assert len(plan.missing) == 4
    execute(plan, results, 0, 1, quiet)
    found = Results(tmp_path).read("table")
    assert [record["auc"] for record in found] == [1.0, 2.0, 3.0]
    assert json.loads(found[0]["settings"]) == {"eta": 0.5}  # what was selected came with the call
    assert not planned([EXPERIMENTS["toy"](True, None)], Results(tmp_path)).missing
    assert {"run", "command", "commit", "versions", "machine", "jobs", "started"} <= set(Results(tmp_path).runs()[0])


def test_a_new_selection_is_followed_by_what_depends_on_it(tmp_path, monkeypatch):
    monkeypatch.setitem(EXPERIMENTS, "toy", lambda quick, datasets: tasks_from(0.5))
    results = Results(tmp_path)
    execute(planned([EXPERIMENTS["toy"](True, None)], results), results, 0, 1, Console(quiet=True))
    monkeypatch.setitem(EXPERIMENTS, "toy", lambda quick, datasets: tasks_from(0.25))
    assert len(planned([EXPERIMENTS["toy"](True, None)], Results(tmp_path)).missing) == 4
    execute(planned([EXPERIMENTS["toy"](True, None)], results), results, 0, 1, Console(quiet=True))
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
