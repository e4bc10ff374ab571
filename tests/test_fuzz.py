"""Fuzzing of compiled code: indices in bounds, finite numbers, and calls that raise change nothing."""

import os
import subprocess
import sys
import textwrap

import pytest

from tests.fuzz import attack

pytestmark = pytest.mark.filterwarnings("ignore::pairloom.stream.StabilityWarning")


def test_random_configurations():
    for seed in range(120):
        attack(seed)


@pytest.mark.soak
@pytest.mark.parametrize("block", range(80))
def test_many_random_configurations_with_bounds_checked(block):
    """Run by `make soak`, where every compiled function checks its indices."""
    assert os.environ.get("NUMBA_BOUNDSCHECK") == "1", "run `make soak`: it sets NUMBA_BOUNDSCHECK=1"
    for seed in range(1000 + 250 * block, 1250 + 250 * block):
        attack(seed)


def test_bounds_are_checked_where_it_is_asked_for(tmp_path):
    """A read beyond the end is found with NUMBA_BOUNDSCHECK=1, also after a process without it has compiled."""
    (tmp_path / "planted.py").write_text(
        textwrap.dedent("""
        import numpy as np
        from pairloom.base.compiled import compiled

        @compiled
        def behind(a):
            return a[a.shape[0]] * 0.0

        try:
            behind(np.zeros(8)[:4])
            print("read")
        except IndexError:
            print("found")
        """)
    )
    found = []
    for check in ("0", "1", "0"):
        env = {**os.environ, "NUMBA_BOUNDSCHECK": check, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        run = [sys.executable, str(tmp_path / "planted.py")]
        found.append(subprocess.run(run, env=env, capture_output=True, text=True, check=True).stdout.strip())
    assert found == ["read", "found", "read"]
