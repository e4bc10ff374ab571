"""``python -m reproduction EXPERIMENT``: run experiments of the paper, and write results (CSV) and a report (HTML)."""

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from joblib import cpu_count
from rich.console import Console
from rich.markup import escape

from pairloom.data import DATASETS
from reproduction import table
from reproduction.columns import COLUMNS, column_of
from reproduction.config import read, read_file
from reproduction.problems import Protocol
from reproduction.report import write
from reproduction.report.terminal import aucs_in_terminal
from reproduction.results import NotResultsError, Results
from reproduction.runner import EXPERIMENTS, Plan, duration, execute, planned
from reproduction.sources import fetch, find, title_of

DESCRIPTION = """\
Run the experiments of the FPOGD paper (ACML 2023), and write results (CSV) and a report (HTML).

Results that are already in the folder are not computed again: the same command continues a run that was stopped."""

EPILOG = """\
Examples:
  python -m reproduction table --quick --datasets diabetes --out quick
  python -m reproduction table --data my.csv --system module:Class --systems "FPOGD, kernel;OGD" --out mine"""


def options() -> ArgumentParser:
    """Return the parser of the command."""
    parser = ArgumentParser(
        "python -m reproduction", description=DESCRIPTION, epilog=EPILOG, formatter_class=RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "experiment", choices=[*EXPERIMENTS, "all", "report"],
        help="a part of the paper, all of them, or only the report of the results that are in the folder",
    )  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="small sets and short sweeps: minutes instead of hours")
    parser.add_argument("--datasets", type=_datasets, help="only these data sets, separated by commas: usps,a9a")
    parser.add_argument("--out", type=_folder, default=Path("results"), help="folder of the results and the report")
    parser.add_argument("--jobs", type=_count, default=cpu_count(), help="processes; default: one per core")
    own = parser.add_argument_group("your own comparison", "for the experiment table")
    own.add_argument(
        "--data", action="append", default=[], metavar="FILE",
        help="a data set of yours, instead of the paper's: LIBSVM (.svm), CSV or NPZ; may be repeated",
    )  # fmt: skip
    own.add_argument(
        "--system", action="append", default=[], metavar="MODULE:CLASS",
        help="a classifier of yours, in addition to the systems; may be repeated",
    )  # fmt: skip
    own.add_argument("--systems", type=_systems, help="only these, separated by semicolons: 'FPOGD, kernel;OGD'")
    own.add_argument("--config", metavar="FILE", help="a file like reproduction/configs/table.toml")
    return parser


def _datasets(text: str) -> tuple[str, ...]:
    return _names(text, ",", "data set", DATASETS)


def _systems(text: str) -> tuple[str, ...]:
    return _names(text, ";", "system", COLUMNS)


def _names(text: str, between: str, kind: str, known: Collection[str]) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(between))
    for name in names:
        if name not in known:
            raise ArgumentTypeError(f"no {kind} {name!r}; there are {f'{between} '.join(known)}")
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


def plan_of(asked: Namespace, results: Results) -> Plan:
    """Return the plan of an experiment, of all of them, or of a comparison of the user's own.

    Raise ValueError or FileNotFoundError if a configuration is wrong or missing, or belongs to another experiment.
    """
    if not (asked.data or asked.system or asked.systems or asked.config):
        names = list(EXPERIMENTS) if asked.experiment == "all" else [asked.experiment]
        return planned([EXPERIMENTS[name](asked.quick, asked.datasets) for name in names], results)
    if asked.experiment != table.NAME:
        raise ValueError("--data, --system, --systems and --config need the experiment table")
    if asked.config:
        config = read_file(find(asked.config), table.TableConfig, asked.quick)
    else:
        config = read(table.NAME, table.TableConfig, asked.quick)
    for path in asked.data:
        find(path)
    if asked.data or asked.datasets:
        config = replace(config, datasets=(*(asked.datasets or ()), *asked.data), imbalanced=())
    config = replace(config, systems=(*(asked.systems or config.systems), *asked.system))
    for name in config.systems:
        column_of(name)
    return planned([table.tasks_of(config, asked.quick)], results)


def without_data(plan: Plan, console: Console) -> Plan:
    """Return the plan without the data sets whose files are not available; print the reason."""
    absent = set()
    for name in dict.fromkeys(task.arguments["dataset"] for task in plan.missing if "dataset" in task.arguments):
        try:
            fetch(name)
        except (FileNotFoundError, ImportError) as error:
            absent.add(title_of(name))
            console.print(f"[bold]{name} is left out.[/bold] {escape(str(error))}", highlight=False, soft_wrap=True)
    tasks, missing = ([one for one in some if one.cell.dataset not in absent] for some in (plan.tasks, plan.missing))
    return Plan(tuple(tasks), tuple(missing))


def run(plan: Plan, asked: Namespace, results: Results) -> bool:
    """Run a plan and print the AUC table; return False if nothing can be run."""
    console = Console(stderr=True)
    plan = without_data(plan, console)
    if not plan.tasks:
        return False
    console.print(plan.lines(asked.jobs))
    if plan.missing:
        guess = f"About {duration(plan.seconds / asked.jobs)} with {asked.jobs} jobs."
        console.print(f"{guess} You can stop it at any time: the same command continues the run.", highlight=False)
        execute(plan, results, read("protocol", Protocol, asked.quick).seed, asked.jobs, console)
    terminal = Console()
    for made in aucs_in_terminal(results, {task.cell for task in plan.tasks}, terminal.width):
        terminal.print(made)
    return True


def _plan_or_usage(parser: ArgumentParser, asked: Namespace, results: Results) -> Plan:
    try:
        return plan_of(asked, results)
    except NotResultsError:
        raise
    except (ValueError, FileNotFoundError) as error:
        parser.error(str(error))


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = options()
    asked = parser.parse_args(words)
    try:
        if asked.experiment != "report":
            results = Results(asked.out)
            if not run(_plan_or_usage(parser, asked, results), asked, results):
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
