"""The commands for rows of one's own: they parse options and call; what a command does lives elsewhere."""

from pathlib import Path
from typing import Annotated

import typer

from pairloom.cli.ending import manners
from pairloom.cli.options import (
    ROWS,
    RUN,
    SAYING,
    BadRow,
    Checkpoint,
    Chunk,
    Debug,
    Drop,
    Every,
    Files,
    Format,
    FormatOf,
    HalfLife,
    Json,
    Label,
    Log,
    ModelFile,
    ModelOut,
    OnBadRow,
    Positive,
    Quarantine,
    Quiet,
    Resume,
    Settings,
    System,
    Weight,
    Width,
)
from pairloom.cli.outputs import check
from pairloom.cli.parameters import DEFAULT, literal
from pairloom.cli.root import app


@app.command(epilog="Example: [bold]pairloom fit payments.csv --label fraud --model payments.pairloom[/bold]")
def fit(
    files: Files,
    model: ModelOut = Path("model.pairloom"),
    system: System = DEFAULT,
    settings: Settings = None,
    half_life: HalfLife = None,
    label: Label = None,
    positive: Positive = None,
    weight: Weight = None,
    drop: Drop = None,
    format_: FormatOf = Format.AUTO,
    width: Width = None,
    chunk: Chunk = 10_000,
    on_bad_row: BadRow = OnBadRow.STOP,
    quarantine: Quarantine = None,
    checkpoint: Checkpoint = None,
    every: Every = 100_000,
    resume: Resume = False,
    log: Log = None,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Learn from files, folders and pipes, in one pass and bounded memory, and write the model.

    Every row is scored before it is learned: the AUC is that of these scores.

    Columns are taken as they are: numbers, text, dates, gaps. The first rows tell which is what.

    Ctrl-C ends the stream: what has come is learned and saved.
    """
    outputs = {"--model": model, "--log": log, "--quarantine": quarantine, "--set monitor": _monitor(settings or [])}
    check(outputs, files, checkpoint)
    if resume and checkpoint is None:
        raise typer.BadParameter("goes on from a folder of checkpoints: --checkpoint DIR", param_hint="--resume")
    with manners(debug):
        from pairloom.cli.fit import Asked, run

        run(
            Asked(
                files, model, system, settings or [], label, positive, weight, drop or [], format_.value, width, chunk,
                checkpoint, every, resume, half_life, log, on_bad_row is OnBadRow.SKIP, quarantine, as_json, quiet,
            )
        )  # fmt: skip


def _monitor(settings: list[str]) -> Path | None:
    """The page that a model writes of itself, --set monitor=page.html."""
    given = [literal(value) for key, _, value in (text.partition("=") for text in settings) if key == "monitor"]
    return Path(given[-1]) if given and isinstance(given[-1], str) else None


@app.command(epilog="Example: [bold]pairloom predict payments.pairloom new.csv --keep time --alert-rate 0.01[/bold]")
def predict(
    model: ModelFile,
    files: Files,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Where the scores go; default: stdout.", dir_okay=False, show_default=False),
    ] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Probabilities in place of log-odds.")] = False,
    alert_rate: Annotated[
        float | None,
        typer.Option(help="Mark the rows that are as bad as the worst X of the newest learned.", show_default=False),
    ] = None,
    keep: Annotated[list[str] | None, typer.Option(help="A column to hand through.", show_default=False)] = None,
    format_: FormatOf = Format.AUTO,
    chunk: Chunk = 10_000,
    on_bad_row: BadRow = OnBadRow.STOP,
    quarantine: Quarantine = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="JSON lines in place of CSV.", rich_help_panel=SAYING)
    ] = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Score rows: CSV out, a line for each row, in order; the higher the score, the more likely it is positive.

    Columns are found by their names; those that the model does not know are left alone.
    """
    check({"--out": out, "--quarantine": quarantine}, [model, *files])
    with manners(debug):
        from pairloom.cli.predict import run

        code = run(
            model, files, out, proba=proba, alert_rate=alert_rate, keep=keep or [], format_=format_.value, chunk=chunk,
            skip=on_bad_row is OnBadRow.SKIP, quarantine=quarantine, as_json=as_json, quiet=quiet,
        )  # fmt: skip
        if code is not None:
            raise typer.Exit(code)


@app.command(
    epilog="Example: [bold]pairloom evaluate payments.pairloom new.csv --label fraud --figure curves.png[/bold]"
)
def evaluate(
    model: ModelFile,
    files: Files,
    label: Label = None,
    weight: Weight = None,
    figure: Annotated[
        Path | None,
        typer.Option(help="Draw ROC, and precision against recall.", dir_okay=False, show_default=False),
    ] = None,
    format_: FormatOf = Format.AUTO,
    chunk: Chunk = 10_000,
    on_bad_row: BadRow = OnBadRow.STOP,
    quarantine: Quarantine = None,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Say how well a model ranks rows with labels: AUC with its 95 % interval, and what stands at the top.

    Nothing is learned. Of each row 17 bytes are kept until the end.
    """
    check({"--figure": figure, "--quarantine": quarantine}, [model, *files])
    with manners(debug):
        from pairloom.cli.evaluate import run

        code = run(
            model, files, label=label, weight=weight, format_=format_.value, chunk=chunk, figure=figure, quiet=quiet,
            skip=on_bad_row is OnBadRow.SKIP, quarantine=quarantine, as_json=as_json,
        )  # fmt: skip
        if code is not None:
            raise typer.Exit(code)


@app.command(epilog="Example: [bold]pairloom inspect payments.pairloom --figure model.png[/bold]")
def inspect(
    model: ModelFile,
    figure: Annotated[
        Path | None,
        typer.Option(
            help="Draw the race, the strata, or how the newest rows ranked.", dir_okay=False, show_default=False
        ),
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Say what is in a model file: parts, columns, labels, strata, the race, memory."""
    check({"--figure": figure}, [model])
    with manners(debug):
        from pairloom.cli.inspect import run

        run(model, figure, as_json)


@app.command(epilog="Example: [bold]pairloom serve payments.pairloom --label fraud --out later.pairloom[/bold]")
def serve(
    model: ModelFile,
    id_: Annotated[str, typer.Option("--id", help="The key of a row's id.", rich_help_panel=ROWS)] = "id",
    label: Annotated[str, typer.Option(help="The key of the label.", rich_help_panel=ROWS)] = "label",
    pending: Annotated[
        int, typer.Option(min=1, help="Rows that may wait for their labels; the oldest go.", rich_help_panel=ROWS)
    ] = 10_000,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Where the model goes at the end.", dir_okay=False, show_default=False),
    ] = None,
    checkpoint: Checkpoint = None,
    every: Annotated[int, typer.Option(min=1, help="Labels between checkpoints.", rich_help_panel=RUN)] = 10_000,
    resume: Resume = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Score JSON lines from stdin as they come, and learn from labels that come later, by id.

    {"id": 7, "amount": 12.5} is answered by its score at once; {"id": 7, "label": 1} teaches.

    A line that cannot be taken is answered by {"error": ...}. Rows that wait for labels are not in checkpoints.
    """
    check({"--out": out}, [model, "-"], checkpoint)
    if resume and checkpoint is None:
        raise typer.BadParameter("goes on from a folder of checkpoints: --checkpoint DIR", param_hint="--resume")
    with manners(debug):
        from pairloom.cli.serve import run

        code = run(
            model, id_name=id_, label=label, pending=pending, out=out, checkpoint=checkpoint, every=every,
            resume=resume, quiet=quiet,
        )  # fmt: skip
        if code is not None:
            raise typer.Exit(code)
