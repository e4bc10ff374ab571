"""The commands of `pairloom` that are not about a model of the user; `commands.py` adds them to the others."""

from pathlib import Path
from typing import Annotated

import typer

from pairloom.base.extras import import_extra
from pairloom.cli import options as opt
from pairloom.cli.errors import report_errors
from pairloom.cli.outputs import check_outputs


def demo(
    out: Annotated[Path, opt.option(help="Save the figure (PNG) to this file.", dir_okay=False, writable=True)] = Path(
        "pairloom-demo.png"
    ),
    seed: Annotated[int, opt.option(min=0, max=2**32 - 1, help="Random seed of the models and the rows.")] = 0,
    systems: Annotated[
        bool, opt.option("--systems", help="Compare all online systems on two small data sets instead.")
    ] = False,
) -> None:
    """Learn payments whose fraudsters change their method; print live AUC, alerts and the change, and save a figure.

    The monitor page has the name of the figure, with .html. At the end, a few systems are compared on the same rows.
    """
    page = out.with_suffix(".html")
    check_outputs({"--out": out} | ({} if systems else {"the monitor page": page}))
    import_extra("matplotlib", "plot", "The demo")
    if systems:
        from pairloom.cli import demo_systems

        return demo_systems.run(out, seed)
    from pairloom.cli import demo

    return demo.run(out, page, seed)


def datasets(
    data_home: Annotated[
        Path | None, opt.option(help="Search this folder of LIBSVM files first.", exists=True, file_okay=False)
    ] = None,
) -> None:
    """List the known data sets and their files; nothing is downloaded.

    Searches --data-home, the folder in the environment variable PAIRLOOM_DATA, and the user's cache.
    """
    from pairloom.cli.datasets import run

    try:
        run(data_home)
    except FileNotFoundError as error:
        raise typer.BadParameter(str(error)) from error


def systems(
    markdown: Annotated[bool, opt.option("--markdown", help="Print the table as Markdown.")] = False,
) -> None:
    """Compare all systems: properties, cost (Table 1 of the paper), and speed on this machine."""
    from pairloom.cli.systems import run

    run(markdown)


def bench(
    rows: Annotated[int, opt.option(min=1, help="Number of rows.")] = 50_000,
    columns: Annotated[int, opt.option(min=1, help="Number of columns.")] = 22,
    as_json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Measure the speed of learning, from arrays and from CSV, and of scoring."""
    with report_errors(debug):
        from pairloom.cli.bench import run

        run(rows, columns, as_json)


def warmup(debug: opt.Debug = False) -> None:
    """Compile what most models need, once for this machine, and say where the machine code is kept.

    Without it, the first model that learns compiles what it needs. In an image, run it after the installation.
    """
    with report_errors(debug):
        from pairloom.cli.warmup import run

        run()


def reproduce() -> None:
    """Print where to find the reproduction of the paper; to be removed after one release."""
    message = (
        "The reproduction is not part of the package: run python -m reproduction in a clone (docs/reproduction.md)"
    )
    typer.echo(message, err=True)
    raise typer.Exit(2)
