"""Output files of commands: complete or absent, never over an input or a device (docs/outputs.md)."""

import itertools
import json
import os
import signal
import stat
import subprocess
import time
from pathlib import Path

import pyarrow as pa
import pytest
import typer

import pairloom
from pairloom.base.files import replacing
from pairloom.cli.figures import _save, new_figure
from pairloom.cli.outputs import check_outputs
from pairloom.systems import FPOGD
from tests.commands import start

SMALL = ("--system", "FPOGD", "--set", "n_components=4")
ROWS = "a,b,y\n" + "".join(f"{i % 7},{i % 5},{i % 2}\n" for i in range(40))


@pytest.fixture
def folder(tmp_path):
    """Rows, good and bad, and a model of them."""
    (tmp_path / "in.csv").write_text(ROWS)
    (tmp_path / "bad.csv").write_text("a,b,y\n1,2,0\n2,3,1\n3\n4,5,1\n")
    X = [[float(i % 7), float(i % 5)] for i in range(40)]
    frame = {"a": [x[0] for x in X], "b": [x[1] for x in X]}
    model = FPOGD(n_components=4, random_state=0).fit(pa.table(frame), [i % 2 for i in range(40)])
    pairloom.save(model, tmp_path / "m")
    return tmp_path


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_a_failed_fit_leaves_the_model_and_keeps_what_it_learned_beside_it(command, folder):
    (folder / "log").write_text("old")
    (folder / "m").chmod(0o600)
    before = contents(folder)
    own = ("--model", "m", "--overwrite", "--log", "log")
    done = command("fit", "bad.csv", *SMALL, *own, "--chunk", 2, cwd=folder)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "bad.csv:4: expected 3 values, as in the header, got 1",
        "Partial model of the first 2 rows: m.partial; m is unchanged",
        "Partial output: log.partial",
    ]
    assert pairloom.load(folder / "m.partial").n_seen_ == 2
    assert json.loads((folder / "log.partial").read_text())["row"] == 2
    assert contents(folder).items() >= before.items()
    assert command("fit", "in.csv", *SMALL, *own, cwd=folder).returncode == 0
    assert pairloom.load(folder / "m").n_seen_ == 40
    assert contents(folder).keys() == before.keys()  # no partial file is left
    assert stat.S_IMODE((folder / "m").stat().st_mode) == 0o600


@pytest.mark.parametrize("wrong", [("--label", "z"), ("--set", "etta=1"), ("--drop", "z")])
def test_a_fit_that_never_learned_leaves_everything_alone(wrong, command, folder):
    before = contents(folder)
    assert command("fit", "in.csv", *SMALL, "--model", "m", "--overwrite", *wrong, cwd=folder).returncode == 2
    assert contents(folder) == before


def test_a_failed_predict_and_evaluate_leave_old_results(command, folder):
    for name in ("out", "q", "f.png"):
        (folder / name).write_text("old")
    (folder / "late.csv").write_text("a,b,y\n1,2,0\nx,2,0\n2,3,1\n" + "1,2,1\n" * 2 + "3\n")
    before = contents(folder)
    (folder / "cut.csv").write_text("a,b\n1,2\n3\n")
    done = command("predict", "m", "cut.csv", "--out", "out", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("\nPartial output: out.partial\n")
    assert len((folder / "out.partial").read_text().splitlines()) == 2
    (folder / "other.csv").write_text("a,c,y\n1,2,0\n")
    skip = ("--on-bad-row", "skip", "--quarantine", "q")
    done = command("evaluate", "m", "late.csv", "other.csv", *skip, "--figure", "f.png", cwd=folder)
    assert done.returncode == 2
    assert (folder / "q.partial").read_text() == "a,b,y\nx,2,0\n3\n"
    assert contents(folder).items() >= before.items()
    assert command("evaluate", "m", "late.csv", *skip, "--figure", "f.png", cwd=folder).returncode == 0
    assert (folder / "q").read_text() == "a,b,y\nx,2,0\n3\n"
    assert (folder / "f.png").read_bytes().startswith(b"\x89PNG")
    assert not (folder / "q.partial").exists()


def test_a_full_disk_leaves_old_files(command, folder):
    for name in ("out", "log"):
        (folder / name).write_text("old")
    before = contents(folder)
    (folder / "many.csv").write_text(ROWS + ROWS[6:] * 500)
    done = command("predict", "m", "many.csv", "--out", "out", "--chunk", 500, cwd=folder, most_bytes=60_000)
    assert done.returncode == 1
    assert "out.partial: File too large\nPartial output: out.partial" in done.stderr
    assert (folder / "out.partial").stat().st_size == 60_000
    options = ("--model", "m", "--overwrite", "--log", "log")
    done = command("fit", "in.csv", *SMALL, *options, cwd=folder, most_bytes=2_000)
    assert done.returncode == 1
    assert "m.partial: File too large; the model was not saved" in done.stderr
    assert "Partial output: log.partial" in done.stderr
    done = command("inspect", "m", "--figure", "out", cwd=folder, most_bytes=2_000)
    assert (done.returncode, "File too large" in done.stderr) == (1, True)
    assert contents(folder).items() >= before.items()
    assert not (folder / "m.partial").exists()


def test_a_signal_ends_a_prediction_and_its_scores_are_in_place(folder):
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    run = start("predict", "m", "-", "--out", "out", "--chunk", 10, cwd=folder, **pipes)
    run.stdin.write(ROWS.encode() + b"1,")
    run.stdin.flush()
    for _ in range(600):
        if (folder / "out.partial").exists() and (folder / "out.partial").read_bytes().count(b"\n") == 41:
            break
        time.sleep(0.05)
    run.send_signal(signal.SIGTERM)
    _, err = run.communicate(timeout=60)
    assert (run.returncode, err) == (143, b"Stopped after row 40.\n")
    assert len((folder / "out").read_text().splitlines()) == 41
    assert not (folder / "out.partial").exists()


def test_resume_wants_the_same_columns_in_the_same_order(command, folder):
    args = ("fit", "in.csv", *SMALL, "--model", "later", "--checkpoint", "run", "--resume")
    (folder / "in.csv").write_text("".join(ROWS.splitlines(keepends=True)[:20]) + "1\n")
    assert command(*args, cwd=folder).returncode == 2
    (folder / "in.csv").write_text(ROWS.replace("a,b,y", "b,a,y"))
    done = command(*args, cwd=folder)
    assert done.returncode == 2
    assert "in.csv: the columns differ from those of the checkpoint" in done.stderr
    (folder / "in.csv").write_text(ROWS)
    assert command(*args, cwd=folder).returncode == 0
    whole = (folder / "later").read_bytes()
    record = folder / "run" / "rows.json"
    saved = json.loads(record.read_text())
    for row in saved["rows"].values():  # a run of a version that did not record this
        del row["columns"], row["logged"]
    record.write_text(json.dumps(saved))
    assert command(*args, cwd=folder).returncode == 0
    assert (folder / "later").read_bytes() == whole


def test_log_and_quarantine_go_on_after_a_failure(command, folder):
    lines = ROWS.splitlines(keepends=True)
    lines[3] = "x\n"
    args = ("fit", "in.csv", *SMALL, "--model", "later", "--checkpoint", "run", "--resume", "--log", "log",
            "--every", 10, "--chunk", 10, "--on-bad-row", "skip", "--quarantine", "q")  # fmt: skip
    (folder / "q").write_text("of another run")
    (folder / "in.csv").write_text("".join(lines[:25]))
    (folder / "other.csv").write_text("a,c,y\n1,2,0\n")
    assert command(*args, "other.csv", cwd=folder).returncode == 2
    assert (folder / "q").read_text() == "of another run"
    with (folder / "log.partial").open("a") as log:
        log.write("left by a kill after the checkpoint")
    (folder / "in.csv").write_text("".join(lines))
    for _ in range(2):  # the second run continues from there
        done = command(*args, cwd=folder)
        assert done.returncode == 0, done.stderr
        assert [json.loads(line)["row"] for line in (folder / "log").read_text().splitlines()] == [10, 20, 24, 30, 40]
        assert (folder / "q").read_text() == "a,b,y\nx\n"


def linked(folder):
    """All names of the input: paths, links, and an output whose NAME.partial it is."""
    (folder / "soft").symlink_to("in.csv")
    os.link(folder / "in.csv", folder / "hard")
    (folder / "d").mkdir()
    (folder / "d" / "up").symlink_to("../soft")
    (folder / "e").symlink_to("d")
    (folder / "x.partial").symlink_to("in.csv")
    os.link(folder / "in.csv", folder / "z.partial")
    return ["in.csv", "./in.csv", "d/../in.csv", folder / "in.csv", "soft", "hard", "d/up", "e/up", "x", "z"]


def test_an_output_that_is_an_input_is_refused(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for name in linked(folder):
        with pytest.raises(typer.BadParameter, match="is also an input"):
            check_outputs({"--out": Path(name)}, ["m", "in.csv"])
    with pytest.raises(typer.BadParameter, match="is also an input"):
        check_outputs({"--out": Path("m")}, ["m", "in.csv"])
    (folder / "a.partial").write_text("x")
    with pytest.raises(typer.BadParameter, match=r"'a\.partial' is also an input"):
        check_outputs({"--out": Path("a")}, ["m", "a.partial"])
    for outputs in ({"--log": "n", "--model": "n"}, {"--log": "n", "--model": "./n.partial"}):
        with pytest.raises(typer.BadParameter, match="is also written by --log"):
            check_outputs({option: Path(name) for option, name in outputs.items()}, ["in.csv"])
    check_outputs({"--out": Path("new"), "--quarantine": None}, ["m", "in.csv", "absent.csv"])


def test_folders_whose_files_are_read_take_no_output(folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "d" / "deep").mkdir(parents=True)
    os.link(folder / "in.csv", folder / "d" / "deep" / "one.csv")
    for name in ("in.csv", "d/new", "d/deep/new"):
        with pytest.raises(typer.BadParameter, match=r"is also an input|is in the input folder 'd'"):
            check_outputs({"--model": Path(name)}, ["d"])
    with pytest.raises(typer.BadParameter, match="is in the input folder"):
        check_outputs({}, ["d"], Path("d/run"))
    check_outputs({"--model": Path("d/_hidden")}, ["d"])  # which is not read
    (folder / "run").mkdir()
    for name in ("rows.json", "checkpoint-000000000000010.pairloom"):
        (folder / "run" / name).write_text("x")
        with pytest.raises(typer.BadParameter, match="is also written by --checkpoint"):
            check_outputs({"--log": Path("run", name)}, ["in.csv"], Path("run"))
        with pytest.raises(typer.BadParameter, match="is also an input"):
            check_outputs({}, [f"run/{name}"], Path("run"))
    check_outputs({"--model": Path("run/m")}, ["in.csv"], Path("run"))


def test_what_is_no_regular_file_is_not_replaced(folder, command):
    os.mkfifo(folder / "fifo")
    (folder / "link").symlink_to("fifo")
    model = pairloom.load(folder / "m")
    for name in ("fifo", "link"):
        for write in (lambda p: pairloom.save(model, p), lambda p: _save(new_figure(1, 1), p)):
            with pytest.raises(FileExistsError, match=r"not a regular file.*(fifo|link)"):
                write(folder / name)
    with pytest.raises(IsADirectoryError), replacing(folder):
        pass
    for args in (("fit", "in.csv", *SMALL, "--model", "link"), ("predict", "m", "in.csv", "--out", "fifo"),
                 ("inspect", "m", "--figure", "fifo"), ("demo", "--out", "fifo")):  # fmt: skip
        done = command(*args, cwd=folder)
        assert done.returncode == 2
        assert "not a regular file" in done.stderr
    assert stat.S_ISFIFO((folder / "fifo").stat().st_mode)
    assert (folder / "link").is_symlink()
    assert not list(folder.glob("*.tmp"))


COMMANDS = {
    "fit in.csv --system FPOGD --set n_components=4": ("--model", "--log", "--quarantine"),
    "fit in.csv --set budget.bytes=1e6": ("--set",),
    "fit - --system FPOGD --set n_components=4": ("--model", "--log"),
    "predict m in.csv": ("--out", "--quarantine"),
    "evaluate m in.csv": ("--figure", "--quarantine"),
    "inspect m": ("--figure",),
    "serve m": ("--out",),
}  # fmt: skip


def attempted(command, folder, line, option, name):
    """Run a command with an option that names one of its inputs; it must fail and change nothing."""
    before = contents(folder)
    target = f"monitor={name}" if option == "--set" else name
    more = ("--on-bad-row", "skip") if option == "--quarantine" else ()
    done = command(*line.split(), option, target, *more, cwd=folder, stdin_file=folder / "in.csv")
    assert contents(folder) == before, (line, option, name)
    assert done.returncode == 2, (line, option, name, done.stderr)
    assert done.stdout == ""


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_refuse_to_write_over_their_inputs(line, command, folder):
    for option in COMMANDS[line]:
        for name in ("in.csv",) if "in.csv" in line or "-" in line.split() else ("m",):
            attempted(command, folder, line, option, name)


@pytest.mark.soak
def test_no_output_of_any_command_changes_an_input(command, folder):
    """Every option that names a file, every input, and every name of it."""
    names = [*linked(folder), "m", "./m", "d/../m", "mm", "mh", "w"]
    (folder / "mm").symlink_to("m")
    os.link(folder / "m", folder / "mh")
    os.link(folder / "m", folder / "w.partial")
    for (line, options), name in itertools.product(COMMANDS.items(), names):
        for option in options:
            of_rows = name in names[:10]
            if ("in.csv" in line or "-" in line.split() or line == "serve m") if of_rows else " m" in line:
                attempted(command, folder, line, option, name)
