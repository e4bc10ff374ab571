"""What ``pairloom reproduce`` does: a plan, the run, a table, a page."""

from pathlib import Path

from rich.console import Console
from rich.markup import escape

from pairloom.data import DATASETS
from pairloom.data.datasets import obtain
from pairloom.data.places import usual_places
from pairloom.experiments.reproduce.columns import Protocol
from pairloom.experiments.reproduce.config import read
from pairloom.experiments.reproduce.problems import source_of
from pairloom.experiments.reproduce.results import Results
from pairloom.experiments.reproduce.runner import EXPERIMENTS, Plan, duration, execute, planned


def without_data(plan: Plan, console: Console) -> Plan:
    """The plan less the data sets whose files cannot be had; says why."""
    absent = set()
    for dataset in dict.fromkeys(task.cell.dataset for task in plan.missing):
        try:
            if dataset:
                obtain(DATASETS[source_of(dataset)], usual_places(None))
        except (FileNotFoundError, ImportError) as error:
            absent.add(dataset)
            console.print(f"[bold]{dataset} is left out.[/bold] {escape(str(error))}", highlight=False, soft_wrap=True)
    tasks, missing = ([one for one in some if one.cell.dataset not in absent] for some in (plan.tasks, plan.missing))
    return Plan(tuple(tasks), tuple(missing))


def run(name: str, quick: bool, datasets: tuple[str, ...] | None, out: Path, jobs: int) -> bool:
    """Run an experiment, or all; whether anything could be run, or had been."""
    from pairloom.experiments.reproduce.report import write

    console, results = Console(stderr=True), Results(out)
    names = list(EXPERIMENTS) if name == "all" else [name]
    plan = without_data(planned(names, quick, datasets, results), console)
    if not plan.tasks:
        return False
    console.print(plan.lines(jobs))
    if plan.missing:
        guess = f"About {duration(plan.seconds / jobs)} with {jobs} jobs."
        console.print(f"{guess} Stop it at any time: the same command goes on where it stopped.", highlight=False)
        execute(plan, results, read("protocol", Protocol, quick).seed, jobs, console)
    Console().print(f"Report: {write(out)}", highlight=False, soft_wrap=True)
    return True
