"""`pairloom fit` on a large CSV file compared with learning from arrays: time, and peak memory of the process.

python benchmarks/command_line.py [--toy] [--gigabytes X]

Linux only. Each run is a new process of the installed command. Rows are 22 normal numbers with all their digits. Times
are CPU times of all threads per row, the difference of a long and a short run, so that start-up does not count. For
arrays, the same rows are learned in the same chunks in this process. Rounds alternate, and medians are compared. Memory
is the largest resident set of the process.
"""

import statistics
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from time import process_time

import numpy as np
from rich.console import Console
from rich.progress import track

from common.script import make_parser, make_table, require_linux
from pairloom.cli.bench import CHUNK_ROWS, stream, write_csv
from pairloom.cli.parameters import make_estimator
from pairloom.race import Budget

COMMAND = Path(sysconfig.get_path("scripts")) / "pairloom"
D, SHORT = 22, 20_000
CASES = {"FPOGD, D = 1024": ("FPOGD", ["n_components=1024"]), "AUCClassifier": ("AUCClassifier", [])}
LIMITS = {"FPOGD, D = 1024": 500e6, "AUCClassifier": Budget().bytes + 400e6}


PEAK = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
sys.exit(done.returncode)
"""
"""A small process in between: the peak of a child includes the memory of its parent when it started."""


def process(system: str, settings: list[str], source: Path) -> tuple[float, int]:
    """Return the CPU seconds of a run, and its peak in bytes."""
    sets = [word for one in settings for word in ("--set", one)]
    args = [COMMAND, "fit", source, "--label", "label", "--system", system, *sets, "--model", source.parent / "m"]
    args += ["--overwrite", "-q"]
    done = subprocess.run([sys.executable, "-c", PEAK, *map(str, args)], stdout=subprocess.PIPE, check=True)
    seconds, kilobytes = done.stdout.split()
    return float(seconds), 1024 * int(kilobytes)


def arrays(system: str, settings: list[str], X: np.ndarray, y: np.ndarray) -> float:
    """Return the CPU seconds to learn from arrays."""
    model, began = make_estimator(system, settings), process_time()
    for start in range(0, len(y), CHUNK_ROWS):
        model.partial_fit(X[start : start + CHUNK_ROWS], y[start : start + CHUNK_ROWS])
    return process_time() - began


def throughput(name: str, rows: int, rounds: int, folder: Path) -> list[str]:
    """Return the microseconds per row from arrays and from CSV, and their ratio."""
    system, settings = CASES[name]
    X, y = stream(rows, D)
    short = min(SHORT, rows // 2)
    write_csv(folder / "long.csv", X, y)
    write_csv(folder / "short.csv", X[:short], y[:short])
    arrays(system, settings, X[:2100], y[:2100])  # compiles
    found: dict[str, list[float]] = {"arrays": [], "csv": []}
    for _ in range(rounds):
        found["arrays"].append(arrays(system, settings, X, y) - arrays(system, settings, X[:short], y[:short]))
        seconds = [process(system, settings, folder / name)[0] for name in ("long.csv", "short.csv")]
        found["csv"].append(seconds[0] - seconds[1])
    own, other = (1e6 * statistics.median(found[way]) / (rows - short) for way in ("arrays", "csv"))
    return [name, f"{rows:,}", f"{own:.1f}", f"{other:.1f}", f"{other / own:.2f}"]


def memory(name: str, size: float, folder: Path) -> list[str]:
    """Return the peak of a run over a file of ``size`` bytes."""
    X, y = stream(20_000, D)
    write_csv(folder / "part.csv", X.astype(float), y)
    part = (folder / "part.csv").read_bytes()
    header, rows = part.split(b"\n", 1)
    with (folder / "large.csv").open("wb") as out:
        out.write(header + b"\n")
        while out.tell() < size:
            out.write(rows)
    seconds, peak = process(*CASES[name], folder / "large.csv")
    size = (folder / "large.csv").stat().st_size
    (folder / "large.csv").unlink()
    return [name, f"{size / 1e9:.2f}", f"{seconds:,.0f}", f"{peak / 1e6:,.0f}", f"{LIMITS[name] / 1e6:,.0f}"]


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--gigabytes", type=float, default=1.0, help="size of the large file")
    options = parser.parse_args()
    require_linux()
    names = list(CASES)[:1] if options.toy else list(CASES)
    rows, rounds = (
        (dict.fromkeys(CASES, 1000), 1) if options.toy else (dict(zip(CASES, (300_000, 30_000), strict=True)), 5)
    )
    title = f"CPU microseconds per row, d = {D}, chunks of {CHUNK_ROWS:,}"
    speeds = make_table(title, ["system"], ["rows", "arrays", "CSV, pairloom fit", "times"])
    peaks = make_table("Memory", ["system"], ["GB of CSV", "CPU seconds", "peak, MB", "limit, MB"])
    with tempfile.TemporaryDirectory() as folder:
        for name in track(names, description="time", console=Console(stderr=True)):
            speeds.add_row(*throughput(name, rows[name], rounds, Path(folder)))
        for name in track(names, description="memory", console=Console(stderr=True)):
            peaks.add_row(*memory(name, 2e6 if options.toy else 1e9 * options.gigabytes, Path(folder)))
    for table in (speeds, peaks):
        Console(width=100).print(table)


if __name__ == "__main__":
    main()
