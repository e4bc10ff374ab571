"""Run code and commands in separate processes: new ones, or forks of one that has already imported everything."""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from pairloom.base import machine_code

COMMAND = Path(sysconfig.get_path("scripts")) / "pairloom"

NOTICE = f"{machine_code.ONCE}\n"
"""What a new process writes to stderr if it has to compile."""

FORKS = """
import json, os, sys, warnings
{imports}

warnings.filterwarnings("ignore", message=".*multi-threaded")
for line in sys.stdin:
    task = json.loads(line)
    if (child := os.fork()) == 0:
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
for number, name in enumerate(["stdin", "stdout", "stderr"]):
    how = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    os.dup2(os.open(task[name], how), number)
sys.stdin = open(0, closefd=False)
os.chdir(task["cwd"])
os.environ.clear()
os.environ.update(task["env"])
{run}
"""

IMPORTS = """
import pyarrow, pyarrow.csv, pyarrow.json, pyarrow.parquet, rich.console, typer.rich_utils
import pairloom, pairloom.persist, pairloom.systems, sklearn.datasets
from pairloom.base import machine_code
from pairloom.cli import app, commands

machine_code.logger.disabled = True  # what is printed must not depend on what else was compiled before
rows = pyarrow.table({"a": [1.0, 2.0, 3.0], "b": ["x", None, "y"]})
for X in (rows, [[1.0], [2.0], [3.0]]):  # which loads the machine code
    pairloom.systems.FPOGD(n_components=4).fit(X, [0, 1, 1]).score_many(X)
"""

RUN = """
sys.argv = ["pairloom", *task["args"]]
if task["most_bytes"]:
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (task["most_bytes"],) * 2)
try:
    app()
except SystemExit as end:  # at once: to tear all of this down takes longer than most commands
    sys.stdout.flush()
    print(end.code, file=sys.stderr, end="") if isinstance(end.code, str) else None
    sys.stderr.flush()
    os._exit(end.code if isinstance(end.code, int) else end.code is not None)
"""


def environment() -> dict[str, str]:
    """A wide, plain terminal: nothing is wrapped, nothing is coloured."""
    env = {**os.environ, "COLUMNS": "150", "NO_COLOR": "1", "TERM": "dumb", "PYTHONIOENCODING": "utf-8"}
    env.pop("FORCE_COLOR", None)
    return env


class Forks:
    """A process that has run ``imports``, which take long. Each task runs the code ``run`` in a fork of it."""

    def __init__(self, folder: Path, imports: str, run: str, env: dict[str, str] | None = None) -> None:
        self.folder, code = folder, FORKS.format(imports=imports, run=run)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "encoding": "utf-8"}
        self.process = subprocess.Popen([sys.executable, "-W", "error", "-c", code], env=env, **pipes)

    def run(self, task: dict[str, object], stdin: bytes | Path = b"") -> subprocess.CompletedProcess[str]:
        """Run a task: ``cwd``, ``env``, and what the code reads from ``task``."""
        files = {name: self.folder / name for name in ("stdin", "stdout", "stderr")}
        if isinstance(stdin, bytes):
            files["stdin"].write_bytes(stdin)
        else:
            files["stdin"] = stdin
        print(json.dumps({**task, **files}, default=str), file=self.process.stdin, flush=True)
        code = int(self.process.stdout.readline())
        printed = (files[name].read_text("utf-8") for name in ("stdout", "stderr"))
        return subprocess.CompletedProcess((), code, *printed)

    def close(self) -> None:
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


class Commands(Forks):
    """Runs `pairloom` commands one after the other."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, IMPORTS, RUN, environment())

    def __call__(
        self, *args: object, stdin: bytes = b"", stdin_file: Path | None = None, cwd: Path | None = None,
        most_bytes: int | None = None,
    ) -> subprocess.CompletedProcess[str]:  # fmt: skip
        """``most_bytes``: of a file; what would be longer meets a full disk."""
        task = {"args": [*map(str, args)], "cwd": cwd or self.folder, "env": environment(), "most_bytes": most_bytes}
        return self.run(task, stdin_file or stdin)


def start(*args: object, cwd: Path, **pipes: object) -> subprocess.Popen[bytes]:
    """A new process."""
    return subprocess.Popen([COMMAND, *map(str, args)], cwd=cwd, env=environment(), **pipes)
