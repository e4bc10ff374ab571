"""The examples of --help and of docs/command-line.md are run as written."""

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from typer.core import TyperGroup
from typer.main import get_command

from pairloom import systems
from pairloom.cli.commands import app
from pairloom.cli.parameters import DEFAULT, SYSTEMS
from pairloom.data import fraud_like
from tests.commands import COMMAND, environment

PAGE = Path(__file__).parent.parent / "docs" / "command-line.md"
LONG = ("demo", "systems")
"""Their examples take minutes: other tests run smaller ones."""


def commands():
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    return {name: one for name, one in group.commands.items() if not one.hidden}


def examples():
    """The example of each command's help."""
    return {name: re.fullmatch(r"Example: \[bold\](.+)\[/bold\]", one.epilog)[1] for name, one in commands().items()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Payments, with the file names of the examples."""
    folder = tmp_path_factory.mktemp("examples")
    columns, fraud = fraud_like(700, positive=0.2)
    frame = pd.DataFrame(columns).assign(fraud=fraud)
    frame[:500].to_csv(folder / "payments.csv", index=False)
    frame[500:].to_csv(folder / "new.csv", index=False)
    return folder


def test_every_command_has_an_example_that_begins_with_it():
    assert all(words.startswith(f"pairloom {name} ") for name, words in examples().items())


def test_the_examples_run(command, folder):
    """In the order of the help: each example may read what earlier ones wrote."""
    left = {name: words for name, words in examples().items() if name not in LONG}
    assert list(left) == ["fit", "predict", "evaluate", "inspect", "export", "serve", "datasets", "bench"]
    for words in left.values():
        done = command(*shlex.split(words)[1:], *(["--data-home", "."] if "libsvm" in words else []), cwd=folder)
        assert done.returncode == 0, done.stderr
    written = {path.name for path in folder.iterdir()}
    assert {"payments.pairloom", "curves.png", "model.png", "later.pairloom"} <= written


def test_the_recipe_of_the_page(tmp_path):
    [recipe] = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    path = os.pathsep.join([str(COMMAND.parent), os.environ["PATH"]])
    env = {**environment(), "PATH": path}
    done = subprocess.run(
        ["bash", "-eu", "-c", recipe], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("exit code 137\nrows   5,000; ")
    assert "Resuming after row 2,000." in done.stderr
    assert "rows                      2,000, " in done.stdout
    *_, alerts, log = done.stdout.splitlines()
    assert 5 <= int(alerts) <= 120
    assert json.loads(log)["row"] == 5000
    assert json.loads(log)["auc"] > 0.7
    assert len((tmp_path / "scores.csv").read_text().splitlines()) == 2001
    assert (tmp_path / "curves.png").stat().st_size > 10_000


def test_the_shell_completes_commands_options_and_systems(command):
    def completed(line):
        env = {**environment(), "_PAIRLOOM_COMPLETE": "complete_bash", "COMP_WORDS": line}
        env["COMP_CWORD"] = str(len(line.split(" ")) - 1)
        return subprocess.run([COMMAND], env=env, capture_output=True, text=True, check=False).stdout.split()

    assert completed("pairloom ev") == ["evaluate"]
    assert completed("pairloom fit --check") == ["--checkpoint"]
    assert completed("pairloom fit --system FP") == ["FPOGD"]


def test_systems_are_those_that_learn_row_by_row():
    online = {name for name in systems.__all__ if not getattr(systems, name)().needs_all_rows}
    assert set(SYSTEMS) == {DEFAULT, *online}


def test_the_reproduction_is_found_outside_the_package():
    done = subprocess.run([COMMAND, "reproduce", "all", "--quick"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "run python -m reproduction in a clone" in done.stderr
