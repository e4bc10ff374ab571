"""The script of docs/nightly.md: three nights in real processes, with a bad file, a full disk and kill -9."""

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pandas as pd
import pytest

from pairloom.data import fraud_like
from tests.commands import COMMAND, environment

PAGE = Path(__file__).parent.parent / "docs" / "nightly.md"
DAYS = ("2026-11-17", "2026-11-18", "2026-11-19")
ROWS = 2500
SPARE_BYTES = 200_000
"""Room on a full disk besides the rows of a day: less than a model needs."""


class Job:
    """A folder with the script of the page and its input."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        [script] = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
        (folder / "nightly.sh").write_text(script)
        columns, fraud = fraud_like(len(DAYS) * ROWS + 1000, positive=0.2)
        frame = pd.DataFrame(columns).assign(fraud=fraud)
        (folder / "incoming").mkdir()
        for k, day in enumerate(DAYS):
            frame[k * ROWS : (k + 1) * ROWS].to_csv(folder / "incoming" / f"{day}.csv", index=False)
        frame[len(DAYS) * ROWS :].to_csv(folder / "holdout.csv", index=False)
        path = os.pathsep.join([str(COMMAND.parent), os.environ["PATH"]])
        self.env = {**environment(), "PATH": path}

    def bytes_of(self, day: str) -> int:
        """The size of the rows of a day."""
        return (self.folder / "incoming" / f"{day}.csv").stat().st_size

    def start(self, day: str, limit: int | None = None) -> subprocess.Popen[str]:
        """Start a night; ``limit``: of the size of a file, in kB."""
        words = f"{'' if limit is None else f'ulimit -f {limit}; '}exec bash nightly.sh {day}"
        return subprocess.Popen(
            ["bash", "-c", words], cwd=self.folder, env=self.env, text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, day: str, limit: int | None = None) -> tuple[int, str]:
        """Run a night to its end; return the exit code and the errors."""
        process = self.start(day, limit)
        _, errors = process.communicate(timeout=600)
        return process.returncode, errors

    def models(self) -> dict[str, bytes]:
        return {path.stem: path.read_bytes() for path in sorted((self.folder / "models").glob("*.pairloom"))}

    def uninterrupted(self) -> bytes:
        """The model of one `pairloom fit` over the files of all days."""
        files = [f"incoming/{day}.csv" for day in DAYS]
        args = [COMMAND, "fit", *files, "--label", "fraud", "--model", "whole"]
        subprocess.run(args, cwd=self.folder, env=self.env, check=True, capture_output=True, timeout=600)
        return (self.folder / "whole").read_bytes()


@pytest.fixture
def disk(tmp_path):
    """A folder on a small disk of its own if mounting is allowed, or else None: a limit of file sizes then serves."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=512m", "tmpfs", folder]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True, check=False).returncode:
        yield None
        return
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def killed(job: Job, day: str) -> None:
    """Start a night, and kill all of its processes after the first checkpoint."""
    process = job.start(day)
    run = job.folder / "work" / f"{day}.run"
    for _ in range(60_000):
        if list(run.glob("checkpoint-*.pairloom")) or process.poll() is not None:
            break
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not (job.folder / "models" / f"{day}.pairloom").exists()
    assert list(run.glob("checkpoint-*.pairloom"))


def spoiled(job: Job, day: str) -> None:
    """Run a night with malformed rows; nothing may change. Then correct the file."""
    path, before = job.folder / "incoming" / f"{day}.csv", job.models()
    rows = path.read_text()
    lines = rows.splitlines(keepends=True)
    path.write_text("".join([*lines[:1200], "1,2,3\n", *lines[1200:]]))
    code, errors = job.run(day)
    assert (code, errors.startswith(f"work/{day}.csv:1201: expected 18 values, as in the header, got 3")) == (2, True)
    assert job.models() == before
    assert not (job.folder / "work" / f"{day}.run").exists()
    path.write_text(rows)


def full(job: Job, day: str, disk: Path | None) -> None:
    """Run a night with room for the rows of a day, but not for a model; nothing may change. Then make room."""
    before, room, filler = job.models(), job.bytes_of(day) + SPARE_BYTES, job.folder / "filler"
    if disk is not None:
        with filler.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(disk).free - room)
    code, errors = job.run(day, limit=room // 1024 if disk is None else None)
    filler.unlink(missing_ok=True)
    assert code == 1, errors
    assert re.search("No space left on device|File too large", errors)
    assert job.models() == before


def test_three_nights_with_failures_give_the_bytes_of_one_run(disk, tmp_path):
    job = Job(disk or tmp_path)
    assert job.run(DAYS[0])[0] == 0
    spoiled(job, DAYS[1])
    assert job.run(DAYS[1])[0] == 0
    older = [f"2026-11-{day:02d}" for day in range(1, 9)]
    for day in older:
        shutil.copy(job.folder / "models" / f"{DAYS[0]}.pairloom", job.folder / "models" / f"{day}.pairloom")
    full(job, DAYS[2], disk)
    killed(job, DAYS[2])
    code, errors = job.run(DAYS[2])
    assert (code, errors.count("Resuming after row ")) == (0, 1), errors
    assert list(job.models()) == [*older[-4:], *DAYS]
    assert job.models()[DAYS[2]] == job.uninterrupted()
    assert not list((job.folder / "work").iterdir())
    assert job.run(DAYS[2])[0] == 0  # a day that is done is left alone
    assert job.models()[DAYS[2]] == (job.folder / "whole").read_bytes()


def test_the_gate_stops_the_night(command, tmp_path):
    """Yesterday's model must rank the rows of today."""
    job = Job(tmp_path)
    (tmp_path / "models").mkdir()
    poor = ("--system", "FPOGD", "--set", "n_components=4", "--model", f"models/{DAYS[0]}.pairloom")
    done = command("fit", f"incoming/{DAYS[0]}.csv", "--label", "fraud", *poor, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    before = job.models()
    assert job.run(DAYS[1])[0] == 3
    assert job.models() == before
    assert [path.name for path in (tmp_path / "work").iterdir()] == [f"{DAYS[1]}.csv"]
