"""Runs that a test kills, each in a separate process, forked from one that has imported everything."""

import os
import resource
import signal
import sys

import pairloom
from pairloom import AUCClassifier, Checkpointer
from pairloom.race import Budget
from pairloom.systems import FPOGD
from tests.conftest import make_stream
from tests.test_state import SMALL

ROWS = 2000


def make(name):
    if name == "FPOGD":
        return FPOGD(n_components=16, max_strata=4, gamma="median", random_state=0)
    return AUCClassifier(portfolio=SMALL, budget=Budget(2**24), random_state=0)


def die_at(call, folder):
    """Kill this process just before the ``call``-th time that it opens, renames or removes a file of a folder."""
    left = [call]

    def hook(event, args):
        if event in ("open", "os.rename", "os.remove") and str(args[0]).startswith(str(folder)):
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def run(name, folder, every=64, step=32, call=0):
    """Learn a stream with checkpoints, from the newest one on, then save the model; ``call``: see ``die_at``."""
    die_at(call, folder)
    X, y = make_stream("random", ROWS, 3)
    checkpoints = Checkpointer(f"{folder}/{name}", every=every)
    model, position = checkpoints.newest() or (make(name), 0)
    while position < ROWS:
        model.partial_fit(X[position : position + step], y[position : position + step])
        position += step
        checkpoints.after(model, position)
    pairloom.save(model, f"{folder}/{name}.end")


def fail(how, folder, answer):
    """Try to save a larger model where that fails, and put the error into ``answer``."""
    X, y = make_stream("random", 300, 3)
    checkpoints = Checkpointer(folder, every=1)
    model, position = checkpoints.newest()
    model = FPOGD(n_components=512, random_state=0).fit(X, y)
    if how == "full":
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
    else:
        os.chmod(folder, 0o555)
        if os.geteuid() == 0:
            os.setuid(65534)  # root may write anywhere
    try:
        checkpoints.save(model, position + 1)
    except OSError as error:
        answer.put((type(error).__name__, str(error)))
    else:
        answer.put(None)
