"""AUC, average precision, time and size on real data: AUCClassifier, FPOGD and widely used learners.

PAIRLOOM_DATA=folder python benchmarks/accuracy.py [--group sets|keel|halves|choosing|reporting ...]
    [--data NAME ...] [--only NAME ...] [--without NAME ...] [--again NAME ...] [--results FILE] [--as NAME]
    [--compare FILE] [--figure] [--markdown] [--toy]

Runs what is missing from the results (docs/accuracy.json), adds it fold by fold, and prints the table. It can be
stopped at any time and started again. A name may be given by its beginning, in any case, if only one has it. Groups
"choosing" and "reporting" have raw columns: rules are chosen on one and reported on the other.

``--figure``, ``--markdown`` and ``--compare`` run nothing. The first two write docs/accuracy.png, docs/accuracy-raw.png
and docs/accuracy.md from the results. The last prints how the results differ from those of another file on data sets
with raw columns. To compare a version of AUCClassifier with the one before:

    accuracy.py --group choosing --only auc --results old.json
    accuracy.py --group choosing --only auc --results new.json
    accuracy.py --group choosing --only auc --results new.json --compare old.json

``--as NAME`` stores and reads the results of one contestant under another name, so that several versions fit into one
file. ``--toy`` is a small run on embedded data that leaves nothing behind. docs/accuracy.md describes the protocol.
"""

import argparse
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from threadpoolctl import threadpool_limits

from common.script import DOCS, make_parser, require_data
from contest.compare import table_of_differences
from contest.contestants import CONTESTANTS, Contestant, Size
from contest.datasets import DATASETS, GROUPS, PANELS, TOY, TOY_RAW, Data
from contest.figure import draw
from contest.kinds import table_of_means
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
    """Run everything once on breast cancer data and simulated payments, in a temporary folder."""
    with TemporaryDirectory() as folder:
        records, console = Records(Path(folder) / "accuracy.json"), Console(stderr=True)
        size = Size(n_components=64, n_trees=20, n_bagged=10, n_boosted=10, first_rows=100)
        contest = Contest(records, size, n_folds=2, n_settings=2)
        contestants = present(list(CONTESTANTS), console)
        data: list[Data] = [*TOY, *TOY_RAW]
        run(contest, jobs(data, contestants, records, n_folds=2), console)
        draw(records, tuple(data), Path(folder) / "accuracy.png")
        (Path(folder) / "accuracy.md").write_text(markdown(records, {"sets": TOY, "choosing": TOY_RAW}))
        show(records, data, CONTESTANTS)
        Console(width=160).print(table_of_differences(records, records, data, [("AUCClassifier", "logistic")]))


def show(records: Records, data: list[Data], contestants: tuple[Contestant, ...]) -> None:
    """Print all results, and the means over data sets with raw columns."""
    console = Console(width=180)
    console.print(table(records, tuple(data), contestants))
    means = table_of_means(records, tuple(data), contestants)
    if means.row_count:
        console.print(means)


def full(names: list[str], text: str) -> str:
    """Return the name that begins with the text in any case, if there is one only, otherwise the text."""
    fits = [name for name in names if name.lower().startswith(text.lower())]
    same = [name for name in fits if len(name) == len(text)] or fits
    return same[0] if len(same) == 1 else text


def arguments() -> argparse.Namespace:
    parser = make_parser(__doc__)
    names = [contestant.name for contestant in CONTESTANTS]

    def several(flag: str, choices: list[str], default: list[str], help: str) -> None:
        kind = partial(full, choices)
        parser.add_argument(flag, nargs="+", type=kind, choices=choices, default=default, metavar="NAME", help=help)

    sets = [one.name for group in GROUPS.values() for one in group]
    several("--group", list(GROUPS), list(GROUPS), f"groups of data sets: {', '.join(GROUPS)}; default: all")
    several("--data", sets, sets, "only these data sets")
    several("--only", names, names, "only these contestants")
    several("--without", names, [], "without these contestants")
    several("--again", names, [], "drop the results of these contestants and repeat them")
    parser.add_argument("--results", type=Path, default=DOCS / "accuracy.json", help="the file of results")
    parser.add_argument("--as", dest="alias", metavar="NAME", help="name of the only contestant in the results")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="print the differences to other results")
    parser.add_argument("--figure", action="store_true", help="draw docs/accuracy*.png from the results")
    parser.add_argument("--markdown", action="store_true", help="write docs/accuracy.md from the results")
    options = parser.parse_args()
    options.chosen = [name for name in names if name in {*options.only, *options.again} - {*options.without}]
    if options.alias and len(options.chosen) != 1:
        parser.error("--as names one contestant: choose it with --only")
    if options.compare and not options.compare.exists():
        parser.error(f"--compare: {options.compare} does not exist")
    return options


def learn(options: argparse.Namespace, records: Records, data: list[Data]) -> None:
    console = Console(stderr=True)
    able = present([contestant for contestant in CONTESTANTS if contestant.name in options.chosen], console)
    for contestant in able:
        if contestant.name in options.again:
            records.forget(options.alias or contestant.name, {one.name for one in data})
    if options.alias:
        able = [replace(contestant, name=options.alias, title=options.alias) for contestant in able]
    todo = jobs(data, able, records, FOLDS)
    if todo:
        require_data("the LIBSVM files (a9a.xz, usps.train.xz, ...), keel/*.csv.xz, tables/*.csv.xz and adbench/*.npz")
    run(Contest(records, Size(), FOLDS), todo, console)
    own = tuple(able) if options.alias else ()
    show(records, data, (*CONTESTANTS, *own))


def main() -> None:
    options = arguments()
    if options.toy:
        return toy()
    records = Records(options.results)
    data = [one for name in options.group for one in GROUPS[name] if one.name in options.data]
    if options.figure:
        draw(records, DATASETS, DOCS / "accuracy.png")
        if any(record.data == one.name for one in PANELS for record in records.all.values()):
            draw(records, PANELS, DOCS / "accuracy-raw.png")
    if options.markdown:
        (DOCS / "accuracy.md").write_text(markdown(records, GROUPS))
    if options.compare:
        names = [(options.alias or name, name) for name in options.chosen]
        Console(width=160).print(table_of_differences(records, Records(options.compare), data, names))
    if not options.figure and not options.markdown and not options.compare:
        learn(options, records, data)


if __name__ == "__main__":
    main()
