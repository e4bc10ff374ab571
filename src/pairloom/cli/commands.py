"""The command `pairloom`, all of it; here what shows and measures: they parse options and call."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pairloom.base.extras import needed
from pairloom.cli import at_work
from pairloom.cli.ending import manners
from pairloom.cli.options import Debug, Json
from pairloom.cli.outputs import check
from pairloom.cli.root import app

__all__ = ["app", "at_work"]


class Experiments(StrEnum):
    """The parts of the paper."""

    TABLE = "table"
    AUC_TIME = "auc-time"
    FEATURES = "features"
    CLUSTERS = "clusters"
    COST = "cost"
    REGRET = "regret"
    VARIANCE = "variance"
    ALL = "all"


@app.command(epilog="Example: [bold]pairloom demo --out demo.png --seed 1[/bold]")
def demo(
    out: Annotated[Path, typer.Option(help="Where to save the figure (PNG).", dir_okay=False, writable=True)] = Path(
        "pairloom-demo.png"
    ),
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="Seed of the streams' order and of the learners.")
    ] = 0,
) -> None:
    """Stream two embedded data sets once, with AUC live; print a table and save a figure.

    AUCClassifier first, then every online system, beside scikit-learn's RBFSampler + SGDClassifier on the same rows.
    """
    check({"--out": out})
    needed("matplotlib", "plot", "The demo")
    # Imported here, so that `pairloom --help` does not wait for scikit-learn and matplotlib.
    from pairloom.experiments.demo import run

    run(out, seed)


@app.command(epilog="Example: [bold]pairloom datasets --data-home ~/libsvm[/bold]")
def datasets(
    data_home: Annotated[
        Path | None, typer.Option(help="A folder of LIBSVM files, looked at first.", exists=True, file_okay=False)
    ] = None,
) -> None:
    """List the data sets that are known by name, and where their files are; reads and downloads nothing.

    Looks in --data-home, in the folder that the environment variable PAIRLOOM_DATA names, and in the user's cache.
    """
    from pairloom.cli.datasets import run

    try:
        run(data_home)
    except FileNotFoundError as error:
        raise typer.BadParameter(str(error)) from error


@app.command(epilog="Example: [bold]pairloom systems --markdown > systems.md[/bold]")
def systems(
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the table as Markdown.")] = False,
) -> None:
    """Print the paper's Table 1 for every system of the library: what it is, what it costs, how fast it runs here."""
    from pairloom.experiments.systems import run

    run(markdown)


@app.command(epilog="Example: [bold]pairloom bench --rows 3000[/bold]")
def bench(
    rows: Annotated[int, typer.Option(min=1, help="Rows of the stream.")] = 50_000,
    columns: Annotated[int, typer.Option(min=1, help="Columns of the stream.")] = 22,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Measure how fast this machine learns, from arrays and from a CSV, and how fast it scores."""
    with manners(debug):
        from pairloom.cli.bench import bench as measure

        measure(rows, columns, as_json)


@app.command(epilog="Example: [bold]pairloom reproduce table --quick --datasets diabetes --out quick[/bold]")
def reproduce(
    experiment: Annotated[Experiments, typer.Argument(help="A part of the paper, or all of them.", show_default=False)],
    quick: Annotated[
        bool, typer.Option("--quick", help="Small sets and short sweeps: minutes in place of an hour.")
    ] = False,
    datasets: Annotated[
        str | None, typer.Option(help="These data sets only, with commas between: usps,a9a.", show_default=False)
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of the results and the report.", file_okay=False)] = Path(
        "reproduction"
    ),
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes; default: one for each core.", show_default=False)
    ] = None,
) -> None:
    """Run the experiments of the FPOGD paper (ACML 2023), and write results (CSV) and a report (HTML).

    What is in the folder already is not run again: a run that was stopped goes on where it was.
    """
    needed("matplotlib", "plot", "The report")
    from joblib import cpu_count

    from pairloom.data import DATASETS
    from pairloom.experiments.reproduce.command import run
    from pairloom.experiments.reproduce.results import NotResultsError

    chosen = None if datasets is None else tuple(name.strip() for name in datasets.split(","))
    unknown = [name for name in chosen or () if name not in DATASETS]
    if unknown:
        raise typer.BadParameter(
            f"no data set {unknown[0]!r}; there are {', '.join(DATASETS)}", param_hint="--datasets"
        )
    try:
        done = run(experiment.value, quick, chosen, out, jobs or cpu_count())
    except NotResultsError as error:
        raise typer.BadParameter(str(error), param_hint="--out") from error
    except KeyboardInterrupt:
        typer.echo(f"Stopped. What is done is in {out}: the same command goes on from there.", err=True)
        raise typer.Exit(130) from None
    if not done:
        raise typer.Exit(2)
