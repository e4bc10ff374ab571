"""Each benchmark runs at toy size, so that it cannot rot. Nothing here asserts a time."""

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "benchmarks"


@pytest.mark.parametrize("script", sorted(p.name for p in FOLDER.glob("*.py")))
def test_benchmark_runs_at_toy_size(script):
    done = subprocess.run([sys.executable, FOLDER / script, "--toy"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "─" in done.stdout  # a table
    assert done.stdout.count("\n") > 5
