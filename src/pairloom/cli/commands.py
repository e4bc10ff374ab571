"""The commands of `pairloom` and their options. Each command is implemented in the module of its name.

These modules are imported when a command runs, so that --help is fast.
"""

from pathlib import Path
from typing import Annotated

import typer

from pairloom import __version__
from pairloom.cli import options as opt
from pairloom.cli import tools
from pairloom.cli.errors import report_errors
from pairloom.cli.model_file import check_replaced, same_file
from pairloom.cli.outputs import check_outputs
from pairloom.cli.parameters import parse_value

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", pretty_exceptions_enable=False)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pairloom {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Online AUC maximisation: learn to rank the rare class first, in one pass and bounded memory.

    Results go to stdout, progress and errors to stderr.

    Exit codes: 0 success, 1 failure, 2 wrong options or invalid input, 3 a requirement failed, 130 Ctrl-C, 141 closed
    pipe, 143 SIGTERM.
    """


@app.command(epilog="Example: [bold]pairloom fit payments.csv --label fraud --model payments.pairloom[/bold]")
def fit(
    files: opt.Files,
    model: opt.ModelOut = Path("model.pairloom"),
    start: opt.From = None,
    overwrite: opt.Overwrite = False,
    system: opt.System = None,
    settings: opt.Settings = None,
    half_life: opt.HalfLife = None,
    label: opt.Label = None,
    positive: opt.Positive = None,
    weight: opt.Weight = None,
    drop: opt.Drop = None,
    format_: opt.InputFormat = opt.Format.AUTO,
    width: opt.Width = None,
    chunk: opt.ChunkRows = 10_000,
    on_bad_row: opt.BadRowAction = opt.OnBadRow.STOP,
    quarantine: opt.Quarantine = None,
    checkpoint: opt.Checkpoint = None,
    every: opt.Every = 100_000,
    resume: opt.Resume = False,
    workers: opt.Workers = None,
    scheduler: opt.Scheduler = None,
    log: opt.Log = None,
    monitor: opt.Monitor = None,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Fit a model on files or stdin, in one pass and bounded memory.

    Numbers, text, dates and missing values are used as they are; the kinds of columns are inferred from the first rows.

    The printed AUC is prequential: each row is scored before it is learned.

    Ctrl-C stops reading; the model of the rows so far is saved.

    With --from, the model of a file continues, with its columns, label and parameters.

    With --workers or --scheduler, each Parquet file is a partition that a worker reads (docs/dask.md).
    """
    outputs = {"--model": model, "--log": log, "--quarantine": quarantine, "--monitor": monitor}
    outputs["--set monitor"] = _monitor(settings or [])
    check_outputs(outputs, [*files, *([start] if start and not same_file(start, model) else [])], checkpoint)
    _check_resume(resume, checkpoint)
    check_replaced(model, start, overwrite, checkpoint if resume else None)
    with report_errors(debug):
        from pairloom.cli.fit import run
        from pairloom.cli.fit_options import FitOptions

        options = FitOptions(
            files, model, start, system, settings or [], label, positive, weight, drop or [], format_.value, width,
            chunk, checkpoint, every, resume, half_life, log, monitor, on_bad_row.value, quarantine, as_json, quiet,
        )  # fmt: skip
        if workers is None and scheduler is None:
            run(options)
        else:
            from pairloom.cli.fit_dask import run as run_on_dask

            run_on_dask(options, workers, scheduler)


def _monitor(settings: list[str]) -> Path | None:
    """Return the output of --set monitor=page.html."""
    given = [parse_value(value) for key, _, value in (text.partition("=") for text in settings) if key == "monitor"]
    return Path(given[-1]) if given and isinstance(given[-1], str) else None


def _check_resume(resume: bool, checkpoint: Path | None) -> None:
    if resume and checkpoint is None:
        raise typer.BadParameter("requires --checkpoint", param_hint="--resume")


@app.command(epilog="Example: [bold]pairloom predict payments.pairloom new.csv --keep time --alert-rate 0.01[/bold]")
def predict(
    model: opt.ModelFile,
    files: opt.Files,
    out: Annotated[
        Path | None,
        opt.optional("--out", "-o", help="Write the scores to this file (default: stdout).", dir_okay=False),
    ] = None,
    proba: Annotated[bool, opt.option("--proba", help="Write probabilities instead of log-odds.")] = False,
    alert_rate: opt.AlertRate = None,
    explain: opt.Explain = None,
    keep: Annotated[list[str] | None, opt.optional(help="Copy this column to the output; may be repeated.")] = None,
    format_: opt.InputFormat = opt.Format.AUTO,
    chunk: opt.ChunkRows = 10_000,
    on_bad_row: opt.BadRowAction = opt.OnBadRow.STOP,
    quarantine: opt.Quarantine = None,
    as_json: Annotated[bool, opt.option("--json", help="Write JSON lines instead of CSV.", panel=opt.OUTPUT)] = False,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Score rows: one line of CSV per row, in order. Rows with higher scores are more likely to be positive.

    Columns are found by name; unknown columns are ignored.
    """
    check_outputs({"--out": out, "--quarantine": quarantine}, [model, *files])
    with report_errors(debug):
        from pairloom.cli.predict import Wanted, run

        _exit(
            run(
                model, files, out, Wanted(proba, alert_rate, keep or [], explain), format_=format_.value,
                chunk_rows=chunk, on_bad_row=on_bad_row.value, quarantine=quarantine, as_json=as_json, quiet=quiet,
            )
        )  # fmt: skip


def _exit(code: int | None) -> None:
    if code is not None:
        raise typer.Exit(code)


@app.command(
    epilog="Example: [bold]pairloom evaluate payments.pairloom new.csv --label fraud --figure curves.png[/bold]"
)
def evaluate(
    model: opt.ModelFile,
    files: opt.Files,
    label: opt.Label = None,
    weight: opt.Weight = None,
    require: Annotated[
        list[str] | None,
        opt.optional(
            metavar="NAME>=X",
            help="Exit with 3 unless a figure is at least X: auc, pauc@FPR, ap, precision@K; may be repeated.",
        ),
    ] = None,
    figure: Annotated[
        Path | None, opt.optional(help="Draw the ROC and precision-recall curves.", dir_okay=False)
    ] = None,
    format_: opt.InputFormat = opt.Format.AUTO,
    chunk: opt.ChunkRows = 10_000,
    on_bad_row: opt.BadRowAction = opt.OnBadRow.STOP,
    quarantine: opt.Quarantine = None,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Evaluate a model on labelled rows: AUC (95 % CI) and precision at k.

    The model is not changed. Memory: 17 bytes per row.
    """
    check_outputs({"--figure": figure, "--quarantine": quarantine}, [model, *files])
    with report_errors(debug):
        from pairloom.cli.evaluate import run

        _exit(
            run(
                model, files, label=label, weight=weight, format_=format_.value, chunk_rows=chunk, figure=figure,
                require=require or [], quiet=quiet, on_bad_row=on_bad_row.value, quarantine=quarantine,
                as_json=as_json,
            )
        )  # fmt: skip


@app.command(epilog="Example: [bold]pairloom inspect payments.pairloom --figure model.png[/bold]")
def inspect(
    model: opt.ModelFile,
    other: Annotated[
        Path | None, typer.Argument(help="Another model, to compare with.", metavar="OTHER", show_default=False)
    ] = None,
    figure: Annotated[
        Path | None, opt.optional(help="Draw the race, the strata, or the ROC of the last rows.", dir_okay=False)
    ] = None,
    importance: Annotated[
        bool, opt.option("--importance", help="Print the mean absolute contribution of each column to the scores.")
    ] = False,
    as_json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Describe a model: parameters, columns, labels, AUC, drift, alerts and memory; or compare two models."""
    if other is not None and figure is not None:
        raise typer.BadParameter("is for one model", param_hint="--figure")
    if other is not None and importance:
        raise typer.BadParameter("is for one model", param_hint="--importance")
    check_outputs({"--figure": figure}, [model])
    with report_errors(debug):
        if other is not None:
            from pairloom.cli.comparing import run as compare

            compare((model, other), as_json)
            return
        from pairloom.cli.inspect import run

        run(model, figure, as_json, importance)


@app.command(epilog="Example: [bold]pairloom export payments.pairloom payments.onnx[/bold]")
def export(
    model: opt.ModelFile,
    out: Annotated[Path, typer.Argument(help="The ONNX file to write.", metavar="OUT.onnx", dir_okay=False)],
    ml_opset: Annotated[
        opt.MLOpset, opt.option(help="Operators for trees: 5, or 3 for onnxruntime before 1.21.")
    ] = opt.MLOpset.FIVE,
    on_hashed: Annotated[
        opt.OnHashed, opt.option(help="Categories that only a hash identifies: an error, or unknown categories.")
    ] = opt.OnHashed.RAISE,
    debug: opt.Debug = False,
) -> None:
    """Write a model as ONNX, for prediction without Python. It predicts only, and does not validate its input."""
    check_outputs({"OUT.onnx": out}, [model])
    with report_errors(debug):
        from pairloom.cli.export import run

        run(model, out, 5 if ml_opset is opt.MLOpset.FIVE else 3, on_hashed.value)


@app.command(epilog="Example: [bold]pairloom serve payments.pairloom --label fraud --out later.pairloom[/bold]")
def serve(
    model: opt.ModelFile,
    id_: Annotated[str, opt.option("--id", help="Key of the row id.", panel=opt.INPUT)] = "id",
    label: Annotated[str, opt.option(help="Key of the label.", panel=opt.INPUT)] = "label",
    pending: Annotated[
        int,
        opt.option(
            min=1, help="Maximum number of rows waiting for labels; beyond it, the oldest are dropped.", panel=opt.INPUT
        ),
    ] = 10_000,
    out: Annotated[
        Path | None, opt.optional("--out", "-o", help="Write the model to this file at the end.", dir_okay=False)
    ] = None,
    checkpoint: opt.Checkpoint = None,
    every: Annotated[
        int, opt.option(min=1, help="Number of labels between checkpoints.", panel=opt.CHECKPOINTS)
    ] = 10_000,
    resume: opt.Resume = False,
    alert_rate: opt.AlertRate = None,
    explain: opt.Explain = None,
    monitor: opt.Monitor = None,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Score JSON lines from stdin as they arrive, and learn from labels that arrive later, by id.

    {"id": 7, "amount": 12.5} is answered with its score; {"id": 7, "label": 1} is learned.

    With --alert-rate, replies contain "alert": true or false. With --explain, they contain the "reasons" of the score;
    with both, only replies to alerts do.

    An invalid line is answered with {"error": ...}. Checkpoints do not contain rows that wait for labels.
    """
    check_outputs({"--out": out, "--monitor": monitor}, [model, "-"], checkpoint)
    _check_resume(resume, checkpoint)
    with report_errors(debug):
        from pairloom.cli.serve import run

        _exit(
            run(
                model, id_name=id_, label=label, pending=pending, out=out, checkpoint=checkpoint, every=every,
                resume=resume, alert_rate=alert_rate, explain=explain, monitor=monitor, quiet=quiet,
            )
        )  # fmt: skip


app.command(epilog="Example: [bold]pairloom demo --out demo.png --seed 1[/bold]")(tools.demo)
app.command(epilog="Example: [bold]pairloom datasets --data-home ~/libsvm[/bold]")(tools.datasets)
app.command(epilog="Example: [bold]pairloom systems --markdown > systems.md[/bold]")(tools.systems)
app.command(epilog="Example: [bold]pairloom bench --rows 3000[/bold]")(tools.bench)
app.command(epilog="Example: [bold]pairloom warmup[/bold]")(tools.warmup)
app.command(
    hidden=True,
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)(tools.reproduce)
