"""Each benchmark runs at toy size, so that it cannot rot. Nothing here asserts a time."""

import runpy
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from tests.generic import forms

FOLDER = Path(__file__).parent.parent / "benchmarks"
VERDICTS = ("same_bits.py", "soak.py")
"""Those that end with an exit code."""


@pytest.mark.parametrize("script", sorted(p.name for p in FOLDER.glob("*.py")))
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


def test_same_bits_names_what_differs_by_one_bit(monkeypatch, capsys):
    monkeypatch.syspath_prepend(FOLDER)
    from same_bits import Found, compare, digest

    def found(failed=(), **arrays):
        return Found({k: digest(a) for k, a in arrays.items()}, dict.fromkeys(arrays, "kind"), dict(failed), arrays)

    a, b = np.array([1.0, -2.0]), np.array([0.0])
    assert compare(found(a=a, b=b), found(a=a.copy(), b=b.copy())) == 0
    assert "2 cases, all the same" in capsys.readouterr().out
    assert compare(found(a=a, b=b), found(a=np.nextafter(a, 3), b=-b, c=b)) == 3  # the bits of -0.0 are others
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
