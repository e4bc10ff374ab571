"""Start-up in new processes: imports, the first fit without and with machine code on disk, and `pairloom warmup`.

python benchmarks/startup.py [--toy]

All times are CPU times of a process, the smallest of several rounds for what takes less than a second. "Fit" is without
the import.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from common.script import ONE_CORE, make_parser, make_table

IMPORTS = {
    "import pairloom": "import pairloom",
    "scikit-learn and numba alone": "import sklearn.base, sklearn.utils.validation, numba",
    "from pairloom import AUCClassifier": "from pairloom import AUCClassifier",
    "from pairloom import FPOGD": "from pairloom import FPOGD",
}

ARRAYS = """
import numpy as np
X = np.random.default_rng(0).normal(size=({rows}, 22))
y = np.square(X[:, :6]).sum(axis=1) > 9
"""
MIXED = """
import pyarrow
from pairloom.data import payments
columns, y = payments({rows}, positive=0.05)
X = pyarrow.table(columns)
"""
FIT = """
import time
from pairloom import AUCClassifier, FPOGD
start = time.process_time()
{model}(random_state=0).fit(X, y)
print(time.process_time() - start)
"""
FITS = {
    "AUCClassifier, 2,000 rows of an array": ARRAYS.format(rows=2_000) + FIT.format(model="AUCClassifier"),
    "AUCClassifier, 20,000 rows of an array": ARRAYS.format(rows=20_000) + FIT.format(model="AUCClassifier"),
    "AUCClassifier, 2,000 rows of mixed columns": MIXED.format(rows=2_000) + FIT.format(model="AUCClassifier"),
    "FPOGD, 2,000 rows of an array": ARRAYS.format(rows=2_000) + FIT.format(model="FPOGD"),
}
WARMUP = "import sys; sys.argv = ['pairloom', 'warmup']; from pairloom.cli import app; app()"
TIMED = "import atexit, time; atexit.register(lambda: print(time.process_time())); "


def printed(code: str, cache: Path) -> list[str]:
    """Return what a new process prints."""
    env = {**os.environ, **ONE_CORE, "NUMBA_CACHE_DIR": str(cache), "COLUMNS": "200"}
    env |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(cache / "bytecode")}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def seconds(code: str, cache: Path) -> float:
    """Return the number in the last line that a process prints."""
    return float(printed(code, cache)[-1])


def import_times(rounds: int, cache: Path) -> dict[str, float]:
    """Return the seconds of each import, measured in turn."""
    times: dict[str, list[float]] = {name: [] for name in ["pass", *IMPORTS]}
    for _ in track(range(rounds), "imports", console=Console(stderr=True)):
        for name, code in {"pass": "pass", **IMPORTS}.items():
            times[name].append(seconds(TIMED + code, cache))
    bare = min(times.pop("pass"))
    return {name: min(spent) - bare for name, spent in times.items()}


def table_of(toy: bool) -> Table:
    rounds, fits = (1, {}) if toy else (5, FITS)
    table = make_table("Start-up, seconds of CPU time", ["call"], ["nothing on disk", "later", "ratio"])
    table.caption = "ratio: over importing scikit-learn (what pairloom needs of it) and numba alone"
    with tempfile.TemporaryDirectory() as folder:
        found = import_times(rounds, Path(folder))
        alone = found["scikit-learn and numba alone"]
        for name, spent in found.items():
            table.add_row(name, "", f"{spent:.2f}", f"{spent / alone:.2f}")
        for name, code in track(fits.items(), "fits", console=Console(stderr=True)):
            cache = Path(folder) / name
            first = seconds(code, cache)
            later = min(seconds(code, cache) for _ in range(rounds))
            table.add_row(name, f"{first:.1f}", f"{later:.2f}", "")
        if not toy:
            cache = Path(folder) / "warmup"
            *_, size, first = printed(TIMED + WARMUP, cache)
            name = f"pairloom warmup, {size.rpartition('(')[2].rstrip(')')} of machine code"
            table.add_row(name, f"{float(first):.1f}", f"{seconds(TIMED + WARMUP, cache):.1f}", "")
    return table


def main() -> None:
    Console(width=100).print(table_of(make_parser(__doc__).parse_args().toy))


if __name__ == "__main__":
    main()
