"""AUC, time and size on real data: AUCClassifier, FPOGD and widely used learners, by five-fold cross-validation.

PAIRLOOM_DATA=folder python benchmarks/accuracy.py [--group sets|keel|halves ...] [--data NAME ...]
    [--only NAME ...] [--without NAME ...] [--again NAME ...]

Runs what is missing from the results (docs/accuracy.json), adds it fold by fold, and prints the table. It can be
stopped at any time and started again. ``--figure`` and ``--markdown`` run nothing, and write docs/accuracy.png and
docs/accuracy.md from the results. ``--toy`` is a small run on embedded data that leaves nothing behind.
docs/accuracy.md describes the protocol.
"""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from threadpoolctl import threadpool_limits

from common.script import DOCS, make_parser, require_data
from contest.contestants import CONTESTANTS, Contestant, Size
from contest.datasets import DATASETS, GROUPS, TOY, Data
from contest.figure import draw
from contest.records import FOLDS, Records
from contest.report import markdown, table
from contest.rounds import Contest, Job, jobs


def present(contestants: list[Contestant], console: Console) -> list[Contestant]:
    """Return the available contestants, and print why the others are not."""
    for contestant in contestants:
        if contestant.absent:
            console.print(f"{contestant.title} is left out: {contestant.absent}", markup=False)
    return [contestant for contestant in contestants if not contestant.absent]


def run(contest: Contest, todo: list[Job], console: Console) -> None:
    """Run all jobs, with a progress bar that counts rows."""
    columns = (
        TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn(),
        TimeRemainingColumn(),
    )  # fmt: skip
    # No thread that draws: each fit is forked from this process.
    with threadpool_limits(1), Progress(*columns, console=console, auto_refresh=False) as progress:
        bar = progress.add_task("rows", total=sum(job.data.n_rows * len(job.folds) for job in todo))
        for job in todo:
            progress.update(bar, description=f"{job.data.name}, {job.contestant.title}", refresh=True)
            for _ in contest.run(job):
                progress.update(bar, advance=job.data.n_rows, refresh=True)


def toy() -> None:
    """Run everything once on breast cancer data, in a temporary folder."""
    with TemporaryDirectory() as folder:
        records, console = Records(Path(folder) / "accuracy.json"), Console(stderr=True)
        size = Size(n_components=64, n_trees=20, n_bagged=10, first_rows=100)
        contest = Contest(records, size, n_folds=2, n_settings=2)
        contestants = present(list(CONTESTANTS), console)
        run(contest, jobs(list(TOY), contestants, records, n_folds=2), console)
        draw(records, TOY, Path(folder) / "accuracy.png")
        (Path(folder) / "accuracy.md").write_text(markdown(records, {"sets": TOY}))
        Console(width=140).print(table(records, TOY))


def arguments() -> argparse.Namespace:
    parser = make_parser(__doc__)
    names = [contestant.name for contestant in CONTESTANTS]

    def several(flag: str, choices: list[str], default: list[str], help: str) -> None:
        parser.add_argument(flag, nargs="+", choices=choices, default=default, metavar="NAME", help=help)

    sets = [one.name for group in GROUPS.values() for one in group]
    several("--group", list(GROUPS), list(GROUPS), "groups of data sets: sets, keel, halves; default: all")
    several("--data", sets, sets, "only these data sets")
    several("--only", names, names, "only these contestants")
    several("--without", names, [], "without these contestants")
    several("--again", names, [], "drop the results of these contestants and repeat them")
    parser.add_argument("--results", type=Path, default=DOCS / "accuracy.json", help="the file of results")
    parser.add_argument("--figure", action="store_true", help="draw docs/accuracy.png from the results")
    parser.add_argument("--markdown", action="store_true", help="write docs/accuracy.md from the results")
    return parser.parse_args()


def learn(options: argparse.Namespace, records: Records, data: list[Data]) -> None:
    console = Console(stderr=True)
    chosen = {*options.only, *options.again} - {*options.without}
    able = present([contestant for contestant in CONTESTANTS if contestant.name in chosen], console)
    for contestant in able:
        if contestant.name in options.again:
            records.forget(contestant.name, {one.name for one in data})
    todo = jobs(data, able, records, FOLDS)
    if todo:
        require_data("the LIBSVM files (a9a.xz, usps.train.xz, ...) and keel/*.csv.xz")
    run(Contest(records, Size(), FOLDS), todo, console)


def main() -> None:
    options = arguments()
    if options.toy:
        return toy()
    records = Records(options.results)
    data = [one for name in options.group for one in GROUPS[name] if one.name in options.data]
    if options.figure:
        draw(records, DATASETS, DOCS / "accuracy.png")
    if options.markdown:
        (DOCS / "accuracy.md").write_text(markdown(records, GROUPS))
    if not options.figure and not options.markdown:
        learn(options, records, data)
        Console(width=160).print(table(records, tuple(data)))


if __name__ == "__main__":
    main()
