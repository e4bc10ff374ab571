"""`pairloom demo`, in a real process."""

import os
import re
import subprocess
import sysconfig
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread
from typer.testing import CliRunner

import pairloom
from pairloom.cli.commands import app
from pairloom.cli.demo import OURS, Contender, encoded, follow, make_curves
from pairloom.cli.demo_figure import draw_curves as draw_change
from pairloom.cli.demo_systems import CAPTION, TITLE, make_learners, make_panel, make_streams, run_stream
from pairloom.cli.figures import draw_demo
from pairloom.cli.systems import all_systems
from tests.commands import NOTICE

COMMAND = Path(sysconfig.get_path("scripts")) / "pairloom"


def pairloom_command(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    # A wide, plain terminal: rich must neither wrap the table nor colour it.
    env = {**os.environ, "COLUMNS": "150", "NO_COLOR": "1", "TERM": "dumb", "PYTHONIOENCODING": "utf-8"}
    env.pop("FORCE_COLOR", None)
    return subprocess.run(
        [COMMAND, *args], cwd=cwd, env=env, capture_output=True, encoding="utf-8", timeout=300, check=False
    )


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    folder = tmp_path_factory.mktemp("job")
    return pairloom_command("demo", "--out", "figure.png", cwd=folder), folder


def test_the_job_finds_the_change_and_keeps_the_budget(job):
    done, folder = job
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert len(done.stdout.splitlines()) < 40
    found, frauds, since = re.search(
        r"Change: found at row ([\d,]+), after (\d+) frauds, and dated to row ([\d,]+)\.", done.stdout
    ).groups()
    assert 12_000 < int(found.replace(",", "")) < 14_000
    assert int(frauds) <= 40
    assert abs(int(since.replace(",", "")) - 12_000) < 500
    rate, low, high = re.search(r"Alerts: ([\d.]+) % .* (\d+) to (\d+) in each 2,000 rows", done.stdout).groups()
    assert float(rate) == pytest.approx(2.0, abs=0.1)
    assert int(low) >= 23
    assert int(high) <= 57
    assert {path.name for path in folder.iterdir()} == {"figure.png", "figure.html"}
    assert "<dd>20,000<small>" in (folder / "figure.html").read_text("utf-8")
    assert imread(folder / "figure.png").shape[:2] == (840, 1350)


def test_the_job_ends_with_a_short_table(job):
    rows = re.findall(r"^\W*(\w.*?) +\W+ ([01]\.\d{4}) +\W+ ([01]\.\d{4}) ", job[0].stdout, re.MULTILINE)
    found = {name: (float(before), float(after)) for name, before, after in rows}
    assert len(found) == 5
    assert next(iter(found)) == OURS
    assert all(found[OURS] >= pair for pair in found.values())
    assert max(after for name, (_, after) in found.items()) == found[OURS][1] > 0.7


class Oracle:
    """It ranks by the labels themselves; nothing is ever found."""

    changes_ = ()

    def partial_fit(self, X, y, classes):
        return self

    def score_many(self, X):
        return X[:, 0]


def test_a_change_that_is_not_found_has_a_figure_too(tmp_path):
    y = np.arange(20_000) % 50 == 0
    run = follow(Contender("oracle", Oracle(), y[:, None].astype(float)), y.astype(int), lambda run, seen: None)
    assert (run.auc(2_000, 12_000), run.found, run.frauds_until_found) == (1.0, None, "")
    assert np.isnan(run.auc(0, 1_000))
    curves = replace(make_curves([run]), auc={OURS: np.ones(39)})
    draw_change(curves, tmp_path / "figure.png")
    assert imread(tmp_path / "figure.png")[..., :3].std() > 0.05


def test_text_and_times_are_encoded_for_the_batch_model():
    columns = {
        "time": np.array(["2025-01-01T06:30"], "M8[s]"), "n": np.array([2.0]), "text": np.array(["b"], object),
        "none": np.array([None], object),
    }  # fmt: skip
    X, categories = encoded(columns)
    np.testing.assert_array_equal(X, [[6.5, 2.0, 0.0, np.nan]])
    assert categories.tolist() == [False, False, True, True]


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    return pairloom_command("demo", "--systems", "--out", "figure.png", cwd=folder), folder / "figure.png"


def aucs(output):
    """Learner -> AUC on digits and on breast cancer."""
    rows = re.findall(r"^\W*(\w.*?) +\W+ ([01]\.\d{4}) +\W+ ([01]\.\d{4}) ", output, re.MULTILINE)
    return {learner: (float(digits), float(cancer)) for learner, digits, cancer in rows}


def test_succeeds_in_silence(demo):
    done, _ = demo
    assert done.returncode == 0, done.stderr
    assert done.stderr.replace(NOTICE, "") == ""
    assert "\x1b" not in done.stdout
    assert len(done.stdout.splitlines()) < 60


def test_table_has_auc_classifier_first_and_names_every_online_system(demo):
    done, _ = demo
    found = aucs(done.stdout)
    others = {line.name for line in all_systems() if line.model.card.scheme == "online" and line.name != "FPOGD"}
    assert set(found) == {"AUCClassifier", "FPOGD, kernel", "FPOGD, linear", "RBFSampler + SGD"} | others
    assert next(iter(found)) == "AUCClassifier"
    assert all(auc > 0.9 for both in found.values() for auc in both)


def test_figure_is_a_png_worth_looking_at(demo):
    _, figure = demo
    assert figure.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    pixels = imread(figure)
    assert pixels.shape[:2] == (1800, 1500)
    assert pixels[..., :3].std() > 0.05


def test_figure_is_the_same_for_the_same_seed_and_has_auc_classifier_first(tmp_path):
    drawn = []
    for name in ("one.png", "other.png"):
        stream = make_streams(seed=3)[1]
        short = replace(stream, X=stream.X[:250], y=stream.y[:250])
        panels = [make_panel(run_stream(short, make_learners(short, seed=3), lambda moment: None))]
        assert next(iter(panels[0].auc)) == next(iter(panels[0].label)) == "AUCClassifier"
        draw_demo(panels, tmp_path / name, TITLE, CAPTION)
        drawn.append((tmp_path / name).read_bytes())
    assert drawn[0] == drawn[1]


def test_missing_folder_is_an_error_at_once(tmp_path):
    done = pairloom_command("demo", "--out", "nowhere/figure.png", cwd=tmp_path)
    assert done.returncode == 2
    assert "nowhere" in done.stderr


def test_the_figure_must_not_have_the_name_of_the_page(tmp_path):
    done = pairloom_command("demo", "--out", "demo.html", cwd=tmp_path)
    assert done.returncode == 2
    assert "the monitor page" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_help_has_an_example():
    done = CliRunner().invoke(app, ["demo", "--help"])
    assert done.exit_code == 0
    assert "pairloom demo --out" in done.stdout
    assert "demo" in CliRunner().invoke(app, ["--help"]).stdout


def test_version_is_known(tmp_path):
    assert pairloom_command("--version", cwd=tmp_path).stdout == f"pairloom {pairloom.__version__}\n"
