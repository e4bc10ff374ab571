"""The notice of a process that compiles, and `pairloom warmup`, in real processes."""

import re
import subprocess
import sys

from pairloom.base.machine_code import EVERY_TIME
from tests.commands import NOTICE, environment

CALLS = """
import numpy as np
from pairloom.base import machine_code
from pairloom.base.compiled import dot

machine_code.QUIET_SECONDS = 0.0  # from the second function on
for kind in ("f8", "f4", "i8"):
    dot(np.ones(3, kind), np.ones(3, kind))
"""


def run(code, **env):
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, env=environment() | env, capture_output=True, text=True, check=True)


def test_a_process_says_once_that_it_compiles_and_not_that_it_loads(tmp_path):
    assert run(CALLS, NUMBA_CACHE_DIR=str(tmp_path)).stderr == NOTICE
    assert run(CALLS, NUMBA_CACHE_DIR=str(tmp_path)).stderr == ""


def test_without_a_folder_the_notice_says_what_to_do(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    assert run(CALLS, NUMBA_CACHE_DIR=str(tmp_path / "file")).stderr == EVERY_TIME + "\n"
    assert "set NUMBA_CACHE_DIR" in EVERY_TIME
    done = subprocess.run(
        [sys.executable, "-m", "pairloom", "warmup"], capture_output=True, text=True, check=False,
        env=environment() | {"NUMBA_CACHE_DIR": str(tmp_path / "file")},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(r"pairloom: no folder .* NUMBA_CACHE_DIR to one\n", done.stderr)


# Whether machine code is on disk already, from other tests, does not matter: what counts is which of it is used.
WARM = """
import gc
import numpy as np
import pandas
from pairloom.base.compiled import dot
from pairloom.cli import warmup


def used():
    found = [one for one in gc.get_objects() if isinstance(one, type(dot))]
    return {(one.__module__, one.__name__, types) for one in found for types in one.overloads}


warmup.run()
before = used()
from pairloom import FPOGD, AUCClassifier
from pairloom.data import payments

rng = np.random.default_rng(1)
X = rng.normal(size=(3000, 5))
y = X[:, 0] + X[:, 1] ** 2 > 2
for made in (AUCClassifier(random_state=1), FPOGD(scale="standard", gamma="median", random_state=1)):
    made.fit(X, y).decision_function(X[:50])
    made.partial_fit(X.astype("f4"), y).decision_function(X[:50].astype("f4"))
    made.learn_one(list(X[0]), True)
    made.score_one(list(X[0]))
columns, y = payments(3000, positive=0.05, seed=3)
frame = pandas.DataFrame(columns)
model = AUCClassifier(random_state=1).fit(frame, y)
model.predict_proba(frame)
model.frozen().score_many(frame)
more = used() - before
assert len(before) > 20
assert not more, more
"""


def test_after_a_warmup_the_usual_models_compile_nothing():
    printed = run(WARM).stdout
    steps = re.findall(r"^(.+): \d+\.\d s$", printed, re.MULTILINE)
    assert {"AUCClassifier", "AUCClassifier, mixed columns", "FPOGD"} <= set(steps)
    assert re.search(r"^Machine code: .+pairloom-[0-9a-f]{16} \(\d+\.\d MB\)$", printed, re.MULTILINE)
