"""docs/pairs.md: its numbers are the output of its snippets, its figures those that the code draws."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from tests.commands import NOTICE

DOCS = Path(__file__).parent.parent / "docs"
FIGURES = sorted(path.name for path in DOCS.glob("pairs-*.png"))


def test_numbers_on_the_page_are_printed_by_its_snippets(capsys):
    page = (DOCS / "pairs.md").read_text()
    space: dict[str, object] = {}
    for snippet in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(compile(snippet, "docs/pairs.md", "exec"), space)
    printed = capsys.readouterr().out.splitlines()
    stated = "".join(re.findall(r"```text\n(.*?)```", page, re.DOTALL)).splitlines()
    assert [line.split(": ")[0] for line in printed] == [line.split(": ")[0] for line in stated]
    for ours, theirs in zip(printed, stated, strict=True):
        # One unit in the last digit, for other processors.
        digits = len(theirs.split(".")[-1])
        assert float(ours.split(": ")[1]) == pytest.approx(float(theirs.split(": ")[1]), abs=1.01 * 10**-digits)


def test_the_page_shows_every_figure():
    page = (DOCS / "pairs.md").read_text()
    assert set(re.findall(r"\]\((pairs-.*?\.png)\)", page)) == set(FIGURES)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figures")
    command = [sys.executable, "-W", "error", str(DOCS / "figures" / "pairs.py"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.replace(NOTICE, "") == ""
    assert sorted(Path(line).name for line in done.stdout.splitlines()) == FIGURES
    return folder


@pytest.mark.parametrize("name", FIGURES)
def test_figures_in_the_docs_are_those_that_are_drawn(drawn, name):
    ours, theirs = imread(drawn / name), imread(DOCS / name)
    assert ours.shape == theirs.shape == (624, 1200, 4)
    assert ours[..., :3].std() > 0.05
    # Other processors and fonts may move a dot or a letter.
    assert np.abs(ours - theirs).mean() < 0.02
