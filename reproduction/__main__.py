"""``python -m reproduction EXPERIMENT``: run experiments of the paper, and write results (CSV) and a report (HTML)."""

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path

from joblib import cpu_count
from rich.console import Console
from rich.markup import escape

from pairloom.data import DATASETS, fetch_dataset
from reproduction.config import read
from reproduction.problems import Protocol, source_of
from reproduction.report import write
from reproduction.results import NotResultsError, Results
from reproduction.runner import EXPERIMENTS, Plan, duration, execute, planned

DESCRIPTION = """\
Run the experiments of the FPOGD paper (ACML 2023), and write results (CSV) and a report (HTML).

Results that are already in the folder are not computed again: the same command continues a run that was stopped."""


def options() -> ArgumentParser:
    """Return the parser of the command."""
    parser = ArgumentParser(
        "python -m reproduction", description=DESCRIPTION, formatter_class=RawDescriptionHelpFormatter,
        epilog="Example: python -m reproduction table --quick --datasets diabetes --out quick",
    )  # fmt: skip
    parser.add_argument(
        "experiment", choices=[*EXPERIMENTS, "all", "report"],
        help="a part of the paper, all of them, or only the report of the results that are in the folder",
    )  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="small sets and short sweeps: minutes instead of hours")
    parser.add_argument("--datasets", type=_names, help="only these data sets, separated by commas: usps,a9a")
    parser.add_argument("--out", type=_folder, default=Path("results"), help="folder of the results and the report")
    parser.add_argument("--jobs", type=_count, default=cpu_count(), help="processes; default: one per core")
    return parser


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        if name not in DATASETS:
            raise ArgumentTypeError(f"no data set {name!r}; there are {', '.join(DATASETS)}")
    return names


def _folder(text: str) -> Path:
    path = Path(text)
    if path.exists() and not path.is_dir():
        raise ArgumentTypeError(f"{text} is a file, not a folder")
    return path


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"must be an integer from 1 on, got {text!r}")
    return int(text)


def without_data(plan: Plan, console: Console) -> Plan:
    """Return the plan without the data sets whose files are not available; print the reason."""
    absent = set()
    for dataset in dict.fromkeys(task.cell.dataset for task in plan.missing):
        try:
            if dataset:
                fetch_dataset(source_of(dataset))
        except (FileNotFoundError, ImportError) as error:
            absent.add(dataset)
            console.print(f"[bold]{dataset} is left out.[/bold] {escape(str(error))}", highlight=False, soft_wrap=True)
    tasks, missing = ([one for one in some if one.cell.dataset not in absent] for some in (plan.tasks, plan.missing))
    return Plan(tuple(tasks), tuple(missing))


def run(asked: Namespace, results: Results) -> bool:
    """Run an experiment, or all of them; return False if nothing can be run."""
    console = Console(stderr=True)
    names = list(EXPERIMENTS) if asked.experiment == "all" else [asked.experiment]
    plan = without_data(planned(names, asked.quick, asked.datasets, results), console)
    if not plan.tasks:
        return False
    console.print(plan.lines(asked.jobs))
    if plan.missing:
        guess = f"About {duration(plan.seconds / asked.jobs)} with {asked.jobs} jobs."
        console.print(f"{guess} You can stop it at any time: the same command continues the run.", highlight=False)
        execute(plan, results, read("protocol", Protocol, asked.quick).seed, asked.jobs, console)
    return True


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = options()
    asked = parser.parse_args(words)
    try:
        if asked.experiment != "report" and not run(asked, Results(asked.out)):
            return 2
        print(f"Report: {write(asked.out)}")
    except NotResultsError as error:
        parser.error(f"argument --out: {error}")
    except KeyboardInterrupt:
        print(f"Stopped. Finished results are in {asked.out}: the same command continues the run.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
