"""Run the tasks of experiments: what is done already is left alone, the rest goes to processes, one cell each."""

import json
import shlex
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table as Lines
from threadpoolctl import threadpool_limits

from pairloom.experiments.reproduce.auc_time import AucTime
from pairloom.experiments.reproduce.cells import Cell, Experiment, Record, Settings, Task
from pairloom.experiments.reproduce.clusters import Clusters
from pairloom.experiments.reproduce.cost import Cost
from pairloom.experiments.reproduce.features import Features
from pairloom.experiments.reproduce.provenance import commit, machine, versions
from pairloom.experiments.reproduce.regret import RegretCurves
from pairloom.experiments.reproduce.results import Results
from pairloom.experiments.reproduce.table import Table
from pairloom.experiments.reproduce.variance import Variance

EXPERIMENTS: dict[str, Experiment] = {
    one.name: one for one in (Table(), AucTime(), Features(), Clusters(), Cost(), RegretCurves(), Variance())
}
"""In the order in which they are run."""


@dataclass(frozen=True)
class Plan:
    """What a command stands for: all tasks, and those that are still to be run."""

    tasks: tuple[Task, ...]
    missing: tuple[Task, ...]

    @property
    def seconds(self) -> float:
        """A guess of what is missing, in CPU time."""
        return sum(task.seconds for task in self.missing)

    def lines(self, jobs: int) -> Lines:
        """One line per experiment."""
        made = Lines("experiment")
        for heading in ("cells", "done", "to run", "about"):
            made.add_column(heading, justify="right")
        for name in dict.fromkeys(task.cell.experiment for task in self.tasks):
            own = [task for task in self.tasks if task.cell.experiment == name]
            left = [task for task in self.missing if task.cell.experiment == name]
            guess = duration(sum(task.seconds for task in left) / jobs)
            made.add_row(name, str(len(own)), str(len(own) - len(left)), str(len(left)), guess)
        return made


def duration(seconds: float) -> str:
    """For people.

    >>> duration(20), duration(200), duration(9000)
    ('20 s', '3 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def planned(names: Iterable[str], quick: bool, datasets: tuple[str, ...] | None, results: Results) -> Plan:
    """The tasks of some experiments, each once, and which of them have no result yet."""
    tasks = {task.cell: task for name in names for task in EXPERIMENTS[name].tasks(quick, datasets)}
    again = {cell for cell, task in tasks.items() if not results.has(task)}
    # Settings that are selected anew are not those that later cells were learned with.
    again |= {cell for cell, task in tasks.items() if task.after in again}
    return Plan(tuple(tasks.values()), tuple(task for cell, task in tasks.items() if cell in again))


def apart(task: Task, settings: Settings | None) -> tuple[Task, list[Record]]:
    """Run a task in a process that may use one core."""
    arguments: dict[str, Any] = dict(task.arguments) | ({} if settings is None else {"settings": settings})
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return task, task.run(**arguments)


def stages(plan: Plan) -> Iterator[list[Task]]:
    """First what others wait for, then the rest; the longest of a data set first, so that all cores end together."""
    for late in (False, True):
        own = [task for task in plan.missing if (task.cell.experiment != "selection") == late]
        if own:
            weight: dict[str, float] = {}
            for task in own:
                weight[task.cell.dataset] = weight.get(task.cell.dataset, 0.0) + task.seconds
            yield sorted(own, key=lambda task: (-weight[task.cell.dataset], task.cell.dataset, -task.seconds))


def settings_of(cell: Cell | None, results: Results) -> Settings | None:
    """What was selected for a task that needs it."""
    if cell is None:
        return None
    settings: Settings = json.loads(results.of(cell)[0]["settings"])
    return settings


def execute(plan: Plan, results: Results, seed: int, jobs: int, console: Console) -> None:
    """Run what is missing, write each cell down as it is done, and show how far it is."""
    began, started = perf_counter(), datetime.now(UTC)
    run = {
        "run": started.strftime("%Y%m%dT%H%M%S"), "command": shlex.join(["pairloom", *sys.argv[1:]]),
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
            calls = (delayed(apart)(task, settings_of(task.after, results)) for task in stage)
            for task, records in Parallel(jobs, return_as="generator_unordered", batch_size=1)(calls):
                finished, done = datetime.now(UTC).isoformat(timespec="seconds"), done + 1
                results.add(task, records, {"seed": seed, "run": run["run"], "finished": finished})
                results.add_run({**run, "seconds": round(perf_counter() - began)})
                cells = f"{done}/{len(plan.missing)} cells"
                progress.update(bar, advance=task.seconds, description=task.cell.title, cells=cells)
