"""Runs of `pairloom fit` that are stopped by signals: real processes and pipes."""

import json
import signal
import subprocess
import time

import numpy as np
import pytest

from tests.commands import start

N = 6000
FIT = ("fit", "-", "--system", "FPOGD", "--set", "n_components=16", "--chunk", "100", "--log", "log", "--model")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3)).round(4)
    y = (X[:, 0] + rng.normal(size=N) > 1).astype(int)
    words = np.array(["web", "two\nlines", "", 'a "quote"'])[rng.integers(0, 4, N)]
    lines = ['{},{},{},"{}",{}\n'.format(*x, w.replace('"', '""'), k) for x, w, k in zip(X, words, y, strict=True)]
    return b"a,b,c,word,label\n", [line.encode() for line in lines]


@pytest.fixture(scope="module")
def whole(rows, tmp_path_factory):
    """The model of a run that was not stopped."""
    folder = tmp_path_factory.mktemp("whole")
    fit = start(*FIT, "m", cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    fit.communicate(rows[0] + b"".join(rows[1]), timeout=120)
    assert fit.returncode == 0
    return (folder / "m").read_bytes()


def begin(rows, n, folder, *args, tail=b""):
    """A run that has read n rows from its pipe, and waits for more."""
    fit = start(*FIT, "m", "--checkpoint", "run", "--every", 150, *args, cwd=folder,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    fit.stdin.write(rows[0] + b"".join(rows[1][:n]) + tail)
    fit.stdin.flush()
    return fit


def until(folder, row):
    """Wait for a checkpoint."""
    for _ in range(1200):
        found = sorted((folder / "run").glob("checkpoint-*.pairloom")) if (folder / "run").exists() else []
        if found and int(found[-1].name[11:26]) >= row:
            return
        time.sleep(0.05)
    raise AssertionError("no checkpoint came")


def go_on(rows, folder):
    fit = begin(rows, N, folder, "--resume", "--json")
    out, err = fit.communicate(timeout=120)
    assert fit.returncode == 0, err
    assert err.startswith(b"Resuming after row ")
    assert json.loads(out)["rows"] == N
    return (folder / "m").read_bytes()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_the_stream_and_what_came_is_saved(number, code, rows, whole, tmp_path):
    fit = begin(rows, 2345, tmp_path, tail=b"1.5,2.5")  # it waits in the middle of a row
    until(tmp_path, 2300)
    time.sleep(0.3)  # until it waits for more: the checkpoint is there before the rows after it are learned
    fit.send_signal(number)
    out, err = fit.communicate(timeout=60)
    assert fit.returncode == code
    assert err == b"Stopped after row 2,345; saved m and a checkpoint in run.\n"
    assert out.startswith(b"rows   2,345; ")
    if number == signal.SIGTERM:  # both have the same partial files
        assert go_on(rows, tmp_path) == whole


def test_killed_again_and_again_it_ends_with_the_same_bytes(rows, whole, tmp_path):
    for n, row in ((1111, 1000), (3050, 3000)):
        fit = begin(rows, n, tmp_path, "--resume")
        until(tmp_path, row)
        fit.kill()
        fit.communicate()
        assert fit.returncode == -9
    assert not (tmp_path / "m").exists()
    assert not (tmp_path / "log").exists()
    assert (tmp_path / "log.partial").exists()
    assert go_on(rows, tmp_path) == whole
    log = [json.loads(line)["row"] for line in (tmp_path / "log").read_text().splitlines()]
    assert log == list(range(100, N + 1, 100))  # each row once, despite all kills
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "m", "run"]


def test_a_signal_before_the_first_row_leaves_nothing_behind(rows, tmp_path):
    fit = begin(rows, 0, tmp_path)  # a header without rows
    time.sleep(0.1)
    fit.send_signal(signal.SIGTERM)
    out, err = fit.communicate(timeout=60)
    assert fit.returncode in (143, -15)  # before or after it was ready for it
    assert (out, err) == (b"", b"")
    assert not (tmp_path / "m").exists()
