"""Run the tasks of experiments in processes, one cell each; finished cells are not run again."""

import platform
import shlex
import subprocess
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter
from typing import Any

from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from threadpoolctl import threadpool_limits

import pairloom
from reproduction import auc_time, clusters, cost, features, regret, table, variance
from reproduction.cells import Experiment, Record, Task
from reproduction.results import Results

EXPERIMENTS: dict[str, Experiment] = {
    "table": table.tasks,
    "auc-time": auc_time.tasks,
    "features": features.tasks,
    "clusters": clusters.tasks,
    "cost": cost.tasks,
    "regret": regret.tasks,
    "variance": variance.tasks,
}
"""Experiments in the order in which they are run."""

PACKAGES = ("numpy", "numba", "scikit-learn", "scipy", "lightgbm")
"""Packages whose versions are recorded."""


@dataclass(frozen=True)
class Plan:
    """All tasks of a command, and those that have no result yet."""

    tasks: tuple[Task, ...]
    missing: tuple[Task, ...]

    @property
    def seconds(self) -> float:
        """Estimated CPU time of the missing tasks."""
        return sum(task.seconds for task in self.missing)

    def lines(self, jobs: int) -> Table:
        """Return a table with one line per experiment."""
        made = Table("experiment")
        for heading in ("cells", "done", "to run", "about"):
            made.add_column(heading, justify="right")
        for name in dict.fromkeys(task.cell.experiment for task in self.tasks):
            own = [task for task in self.tasks if task.cell.experiment == name]
            left = [task for task in self.missing if task.cell.experiment == name]
            guess = duration(sum(task.seconds for task in left) / jobs)
            made.add_row(name, str(len(own)), str(len(own) - len(left)), str(len(left)), guess)
        return made


def duration(seconds: float) -> str:
    """Return a time in a readable unit.

    >>> duration(20), duration(200), duration(9000)
    ('20 s', '3 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def planned(experiments: Iterable[list[Task]], results: Results) -> Plan:
    """Return the tasks of some experiments, without duplicates, and those that have no result yet."""
    tasks = {task.cell: task for own in experiments for task in own}
    again = {cell for cell, task in tasks.items() if not results.has(task)}
    # A new selection may find other settings: run the tasks that used the old settings again.
    again |= {cell for cell, task in tasks.items() if task.after in again}
    return Plan(tuple(tasks.values()), tuple(task for cell, task in tasks.items() if cell in again))


def run_alone(task: Task, chosen: Record | None) -> tuple[Task, list[Record]]:
    """Run a task on one core."""
    arguments: dict[str, Any] = dict(task.arguments) | ({} if chosen is None else {"chosen": chosen})
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return task, task.run(**arguments)


def stages(plan: Plan) -> Iterator[list[Task]]:
    """Yield selections, then the tasks that need them; the longest of a data set first, so that all cores stay busy."""
    for late in (False, True):
        own = [task for task in plan.missing if (task.cell.experiment != "selection") == late]
        if own:
            weight: dict[str, float] = {}
            for task in own:
                weight[task.cell.dataset] = weight.get(task.cell.dataset, 0.0) + task.seconds
            yield sorted(own, key=lambda task: (-weight[task.cell.dataset], task.cell.dataset, -task.seconds))


def execute(plan: Plan, results: Results, seed: int, jobs: int, console: Console) -> None:
    """Run the missing tasks, record each cell as soon as it is finished, and show the progress."""
    began, started = perf_counter(), datetime.now(UTC)
    run = {
        "run": started.strftime("%Y%m%dT%H%M%S"), "command": f"python -m reproduction {shlex.join(sys.argv[1:])}",
        "commit": commit(), "versions": versions(), "machine": machine(), "jobs": jobs,
        "started": started.isoformat(timespec="seconds"),
    }  # fmt: skip
    columns = (
        BarColumn(bar_width=20), TaskProgressColumn(), TimeElapsedColumn(), TextColumn("left"),
        TimeRemainingColumn(), TextColumn("{task.fields[cells]}, {task.description}"),
    )  # fmt: skip
    with Progress(*columns, console=console) as progress:
        bar, done = progress.add_task("starting", total=plan.seconds, cells=f"0/{len(plan.missing)} cells"), 0
        for stage in stages(plan):
            calls = (delayed(run_alone)(task, results.of(task.after)[0] if task.after else None) for task in stage)
            for task, records in Parallel(jobs, return_as="generator_unordered", batch_size=1)(calls):
                finished, done = datetime.now(UTC).isoformat(timespec="seconds"), done + 1
                results.add(task, records, {"seed": seed, "run": run["run"], "finished": finished})
                results.add_run({**run, "seconds": round(perf_counter() - began)})
                cells = f"{done}/{len(plan.missing)} cells"
                progress.update(bar, advance=task.seconds, description=task.cell.title, cells=cells)


def versions() -> str:
    """Return the versions of Python and of the numerical packages."""
    found = [f"Python {platform.python_version()}"]
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


def machine() -> str:
    """Return the processor and the number of cores."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{len(names)} x {names[0]}" if names else cpu


def commit() -> str:
    """Return the commit of the clone, marked if there are changes; the version if pairloom is installed elsewhere."""
    try:
        _git("ls-files", "--error-unmatch", "__init__.py")  # fails in an installed copy inside a clone
        head = _git("rev-parse", "HEAD")
        changed = _git("status", "--porcelain", "--", ".", str(Path(__file__).parent))
    except (OSError, subprocess.CalledProcessError):
        return f"pairloom {pairloom.__version__}"
    return f"{head[:12]}{' with changes' if changed else ''}"


def _git(*words: str) -> str:
    folder = Path(pairloom.__file__).parent
    return subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()
