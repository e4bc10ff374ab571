"""`pairloom evaluate --require`, and what `inspect` says about the past of a model and of two models."""

import json

import numpy as np
import pandas as pd
import pytest

import pairloom
from pairloom.cli.comparing import changed_columns
from pairloom.cli.history import alert_line, drift_line, drift_values
from pairloom.cli.inspect import describe
from pairloom.cli.mixture import mixture_lines, mixture_values
from pairloom.cli.requirements import NAMES, parse_requirement
from pairloom.metrics.auc import weighted_auc
from pairloom.metrics.intervals import paired_difference
from pairloom.race import Budget
from pairloom.systems import ExactAUC

N = 3000


@pytest.fixture(scope="module")
def frame():
    """In the second half the class depends on another column, which is missing at first."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(N, 2)), columns=["a", "b"])
    value = np.where(np.arange(N) < N // 2, frame["a"], frame["b"])
    frame["y"] = (value + 0.5 * rng.normal(size=N) > 0.8).astype(int)
    frame.loc[: N // 3, "b"] = np.nan
    return frame


@pytest.fixture(scope="module")
def folder(frame, tmp_path_factory):
    """A race before and after the change, and an exact model."""
    folder = tmp_path_factory.mktemp("gate")
    X = frame[["a", "b"]]
    race = pairloom.AUCClassifier(random_state=0, budget=Budget(2**24)).fit(X[: N // 2], frame["y"][: N // 2])
    pairloom.save(race, folder / "old")
    pairloom.save(race.partial_fit(X[N // 2 :], frame["y"][N // 2 :]), folder / "new")
    pairloom.save(ExactAUC().fit(X[["a"]], frame["y"]), folder / "exact")
    frame[:600].to_csv(folder / "rows.csv", index=False)
    return folder


def test_requirements_are_checked_and_the_code_is_3_if_one_fails(command, folder):
    args = ("evaluate", "exact", "rows.csv", "--json")
    printed = json.loads(command(*args, cwd=folder).stdout)
    assert printed["requirements"] == []
    values = {"auc": printed["auc"]["value"], "pauc@0.1": printed["partial_auc"]["value"],
              "ap": printed["average_precision"], "precision@10": printed["precision_at"]["10"]}  # fmt: skip
    for name, value in values.items():
        for minimum, passed in ((value, True), (np.nextafter(value, 2.0), False)):
            if minimum > 1.0:
                continue
            done = command(*args, "--require", f"{name} >= {float(minimum)!r}", cwd=folder)
            [found] = json.loads(done.stdout)["requirements"]
            assert (found["name"], found["value"], found["passed"]) == (name, value, passed)
            assert done.returncode == (0 if passed else 3)
    done = command(*args[:3], "--require", "auc>=0.1", "--require", "pauc@0.01>=1", cwd=folder)
    assert done.returncode == 3
    auc, partial = done.stdout.splitlines()[-2:]
    assert (auc.split()[:3], auc.split()[-1]) == (["auc", ">=", "0.1"], "passed")
    assert (partial.split()[:3], partial.split()[-1]) == (["pauc@0.01", ">=", "1"], "failed")


@pytest.mark.parametrize("text", ["auc", "auc>0.9", "auc>=", "auc>=x", "auc>=90", "auc>=nan", "auc@3>=0.5", "gini>=0.5",
                                  "pauc>=0.5", "pauc@0>=0.5", "pauc@2>=0.5", "precision@1.5>=0.5", "precision@0>=0.5",
                                  "precision@inf>=0.5", ">=0.5", ""])  # fmt: skip
def test_malformed_requirements_are_errors_that_list_the_names(text):
    with pytest.raises(ValueError, match="expected NAME>=X") as error:
        parse_requirement(text)
    assert str(error.value).endswith(NAMES)


def test_a_malformed_requirement_has_exit_code_2_before_anything_is_read(command, folder):
    done = command("evaluate", "none", "none.csv", "--require", "auc=0.5", cwd=folder)
    assert (done.returncode, done.stderr.startswith("pairloom: --require 'auc=0.5': expected NAME>=X")) == (2, True)
    done = command("evaluate", "exact", "rows.csv", "--require", "precision@601>=0.5", cwd=folder)
    assert (done.returncode, done.stderr) == (2, "pairloom: --require precision@601: there are only 600 rows\n")


def test_inspect_shows_drift_and_alerts(command, folder):
    model = pairloom.load(folder / "new")
    [row] = model.changes_
    since = drift_values(model)["since"]
    assert N // 2 - 100 < since < row
    done = command("inspect", "new", cwd=folder)
    assert f"detected at rows {row:,}; the last change began at about row {since:,}\n" in done.stdout
    assert " no budget\n" in done.stdout
    assert drift_line(drift_values(pairloom.load(folder / "old"))) == "none detected"
    assert drift_line(drift_values(pairloom.load(folder / "exact"))) == "not monitored"
    many = {"changes": list(range(1, 13)), "since": 11}
    assert drift_line(many).startswith("detected at rows 2 earlier, then 3, 4, ")
    per_hour = {"rate": None, "per_hour": 5.0, "realised": 4.5, "alerts": 9, "rows": 700}
    assert alert_line(per_hour) == "requested 5 per hour, realised 4.5: 9 of 700 rows"


def test_inspect_compares_two_models(command, folder):
    done = command("inspect", "old", "new", cwd=folder)
    assert done.returncode == 0, done.stderr
    lines = {" ".join(line.split()[:1]): line for line in done.stdout.splitlines()}
    assert lines["rows"].split()[1:] == ["1,500", "3,000"]
    for name in ("old", "new"):
        assert str(pairloom.load(folder / name).auc_) in lines["AUC"]
    assert "  boosted  " in done.stdout
    printed = json.loads(command("inspect", "old", "new", "--json", cwd=folder).stdout)
    assert [one["file"] for one in printed["models"]] == ["old", "new"]
    assert [one["column"] for one in printed["columns"]] == ["b"]
    assert f"'b': {printed['columns'][0]['what']}" in done.stdout
    assert all(one["row"] > N // 2 for one in printed["changes"])
    done = command("inspect", "new", "exact", cwd=folder)
    assert "'b': number -> absent" in done.stdout
    assert command("inspect", "old", "new", "--figure", "f.png", cwd=folder).returncode == 2
    assert command("inspect", "old", "none", cwd=folder).returncode == 2


def test_columns_that_differ_are_named():
    one, other = (
        {"columns": {"a": "number"}, "missing": {"a": 0.0}},
        {"columns": {"a": "number"}, "missing": {"a": 0.01}},
    )
    assert changed_columns(one, other) == []
    assert changed_columns({**one, "columns": None}, one) == [{"column": "a", "what": "absent -> number"}]


def test_the_mixture_is_compared_with_its_candidates_on_the_same_rows(folder):
    model = pairloom.load(folder / "new")
    found = mixture_values(model)
    race, state = model.stream_.model, model.stream_.learned
    assert list(found["candidates"]) == [one.name for one in race.entrants(state)]
    assert found["fitted"] == max(one.row for one in state.standings)
    assert found["next"] > N
    scores, labels, weights = model._arrivals()
    assert found["auc"] == pytest.approx(float(weighted_auc(scores, labels == 1, weights)[0]), abs=0.01)
    assert mixture_values(pairloom.load(folder / "exact")) is None
    assert describe(model, folder / "new")["mixture"] == found


def test_a_mixture_below_a_candidate_is_explained(folder):
    """With weights that prefer the worst candidate: its scores on arrival were others, so both cases occur."""
    model = pairloom.load(folder / "new")
    found = mixture_values(model)
    worst = min(found["candidates"], key=found["candidates"].get)
    state = model.stream_.learned
    names = [one.name for one in state.entrants]
    arrivals = model.stream_.state.observed["arrivals"]
    arrivals.scores[:, 0] = np.random.default_rng(0).normal(size=len(arrivals.scores))
    random = mixture_values(model)
    assert max(random["candidates"], key=random["candidates"].get) in random["better"]
    assert random["follows"]
    *lines, why = mixture_lines(random, [], 1.0)
    assert all("by more than chance: AUC 0." in line for line in lines)
    assert why.startswith("because earlier weights scored them: the present weights, fitted at row ")
    state.mixture.weights[:] = np.array(names) == worst
    behind = mixture_values(model)
    assert not behind["follows"]
    assert "because weights minimise the log-loss in windows of earlier rows" in mixture_lines(behind, [], 1.0)[-1]
    quiet = {**found, "better": {}}
    assert mixture_lines(quiet, [], 1.0) == []
    race = [{"name": worst, "auc": 0.99}]
    assert mixture_lines(quiet, race, 0.9)[0].startswith(f"not below {worst!r} by more than chance on the newest ")


def test_paired_differences_cover_the_truth_and_are_shorter_than_two_intervals():
    rng, inside, n = np.random.default_rng(0), [], 400
    positive, weights = np.arange(n) % 4 == 0, np.ones(n)
    for _ in range(200):
        common = 1.5 * positive + rng.normal(size=n)
        one, other = common + 0.3 * rng.normal(size=n), common + 0.3 * rng.normal(size=n)
        found = paired_difference(one, other, positive, weights)
        inside.append(found.low <= 0.0 <= found.high)
        assert found.high - found.low < 0.06
    assert 0.9 <= np.mean(inside) <= 0.99
    areas = weighted_auc(np.column_stack([one, other]), positive, weights)
    assert found.value == pytest.approx(areas[0] - areas[1])
    wide = paired_difference(one, other, positive, weights, level=0.999)
    assert wide.low < found.low < found.high < wide.high
    assert tuple(paired_difference(one, one, positive, weights)) == (0.0, 0.0, 0.0)
