"""Checkpoints survive killed processes, full disks and damaged files."""

import multiprocessing
import os
import stat
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

from pairloom import Checkpointer, load, save
from pairloom.base.tree import same
from pairloom.persist import ModelFileError
from pairloom.systems import FPOGD
from tests.conftest import make_stream
from tests.killed import fail, run

FORKED = multiprocessing.get_context("forkserver")


@pytest.fixture(scope="module", autouse=True)
def _preloaded():
    FORKED.set_forkserver_preload(["tests.killed"])


def start(target, *args):
    process = FORKED.Process(target=target, args=args)
    process.start()
    return process


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The result of a run that was not killed."""
    found = {}

    def of(name):
        if name not in found:
            folder = tmp_path_factory.mktemp("whole")
            process = start(run, name, str(folder))
            process.join()
            assert process.exitcode == 0
            found[name] = (folder / f"{name}.end").read_bytes()
        return found[name]

    return of


def kill_again_and_again(name, times, folder, expected, begin):
    """Kill a run, resume it from its newest checkpoint, kill that one too, and so on; let the last run end.

    ``begin`` starts a run, and waits until it was killed or has ended.
    """
    killed = 0
    while killed < times:
        process = begin()
        killed += process.exitcode == -9
        assert process.exitcode in (0, -9)
        assert_newest_loads(folder / name)
        if process.exitcode == 0:
            assert (folder / f"{name}.end").read_bytes() == expected
            for old in (folder / name).iterdir():  # the next run starts from scratch
                old.unlink()
    process = start(run, name, str(folder))
    process.join()
    assert process.exitcode == 0
    assert (folder / f"{name}.end").read_bytes() == expected


def assert_newest_loads(folder):
    """All files with a final name load, and the newest has its position."""
    if not folder.exists():
        return
    checkpoints = Checkpointer(folder, every=64)
    for position in checkpoints.positions():
        assert load(checkpoints._file(position)).n_seen_ == position
    found = checkpoints.newest()
    assert found is None or found[0].n_seen_ == found[1]
    assert len(checkpoints.positions()) <= 3  # a kill may come between a new file and the removal of an old one


@pytest.mark.parametrize(("name", "times"), [("FPOGD", 5), ("AUCClassifier", 2)])
def test_a_killed_run_goes_on_and_ends_with_the_same_bytes(name, times, tmp_path, whole):
    rng = np.random.default_rng(0)

    def begin():
        process = start(run, name, str(tmp_path), 64, 32, int(rng.integers(1, 60)))
        process.join()
        return process

    kill_again_and_again(name, times, tmp_path, whole(name), begin)


@pytest.mark.soak
@pytest.mark.parametrize(("name", "times"), [("FPOGD", 150), ("AUCClassifier", 50)])
def test_two_hundred_kills(name, times, tmp_path, whole):
    """At random times."""
    rng = np.random.default_rng(int(os.environ.get("PAIRLOOM_SOAK_SEED", "0")))
    expected = whole(name)  # everything is compiled by now
    first = time.perf_counter()
    start(run, name, str(tmp_path / "once")).join()
    seconds = time.perf_counter() - first

    def begin():
        process = start(run, name, str(tmp_path))
        process.join(timeout=rng.uniform(0.0, seconds))
        if process.exitcode is None:
            process.kill()
        process.join()
        return process

    kill_again_and_again(name, times, tmp_path, expected, begin)


@pytest.fixture
def model():
    X, y = make_stream("random", 100, 3)
    return FPOGD(n_components=8, random_state=0).fit(X, y)


@pytest.fixture
def open_folder():
    """A folder to which everyone has access; pytest's own are for one user."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


@pytest.mark.parametrize(("how", "kind"), [("full", "OSError"), ("unwritable", "PermissionError")])
def test_where_nothing_can_be_written_the_old_checkpoint_stays(how, kind, open_folder, model):
    folder = open_folder / "checkpoints"
    kept = Checkpointer(folder).save(model, 100).read_bytes()
    answer = FORKED.Queue()
    process = start(fail, how, str(folder), answer)
    name, text = answer.get(timeout=120)
    process.join()
    folder.chmod(0o755)
    assert name == kind
    assert "the model was not saved, and an existing file is unchanged" in text
    assert "checkpoint-000000000000101.pairloom" in text
    assert [entry.name for entry in folder.iterdir()] == ["checkpoint-000000000000100.pairloom"]
    assert next(folder.iterdir()).read_bytes() == kept


def test_an_error_while_a_file_is_written_leaves_the_old_one(tmp_path, model, monkeypatch):
    path = tmp_path / "model.pairloom"
    save(model, path)
    before = path.read_bytes()
    monkeypatch.setattr(os, "fsync", lambda handle: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match=r"No space left on device; the model was not saved.*model.pairloom"):
        save(model.partial_fit([[0.0, 0.0, 0.0]], [1.0]), path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model.pairloom"]


def test_a_file_has_the_rights_of_any_other_and_a_link_stays_one(tmp_path, model):
    (tmp_path / "link").symlink_to(tmp_path / "model")
    save(model, tmp_path / "link")
    (tmp_path / "plain").touch()
    assert (tmp_path / "link").is_symlink()
    assert stat.S_IMODE((tmp_path / "model").stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


def test_it_saves_when_a_multiple_is_passed_and_keeps_the_newest(tmp_path, model):
    checkpoints = Checkpointer(tmp_path, every=100, keep=2)
    saved = [position for position in range(30, 600, 30) if checkpoints.after(model, position)]
    assert saved == [120, 210, 300, 420, 510]
    assert checkpoints.positions() == [420, 510]
    again = Checkpointer(tmp_path, every=100, keep=2)
    assert again.after(model, 540) is None
    found, position = again.newest()
    assert position == 510
    assert same(found.state_, model.state_)
    assert repr(again).endswith("every=100, keep=2)")


def test_what_a_kill_left_half_written_is_removed_and_nothing_else(tmp_path, model):
    (tmp_path / "checkpoint-000000000000007.pairloom.00ff.tmp").write_bytes(b"half")
    (tmp_path / "notes.tmp").write_text("mine")
    Checkpointer(tmp_path).save(model, 10)
    assert sorted(os.listdir(tmp_path)) == ["checkpoint-000000000000010.pairloom", "notes.tmp"]


def test_a_damaged_checkpoint_is_passed_over_with_a_warning(tmp_path, model):
    checkpoints = Checkpointer(tmp_path, every=10)
    for position in (10, 20):
        newest = checkpoints.save(model, position)
    raw = newest.read_bytes()
    newest.write_bytes(raw[: len(raw) // 2])
    again = Checkpointer(tmp_path, every=10)
    with pytest.warns(UserWarning, match="a checkpoint was skipped: .*20.pairloom: the file is truncated or damaged"):
        assert again.newest()[1] == 10
    assert again.after(model, 15) is None
    assert again.after(model, 20)  # replaces the damaged one
    assert again.newest()[1] == 20


def test_if_none_loads_that_is_an_error_and_no_new_beginning(tmp_path, model):
    checkpoints = Checkpointer(tmp_path)
    checkpoints.save(model, 10).write_bytes(b"")
    with pytest.raises(ModelFileError, match="not a model file"):
        checkpoints.newest()
    assert Checkpointer(tmp_path / "empty").newest() is None


def test_a_checkpoint_that_was_renamed_is_not_believed(tmp_path, model):
    checkpoints = Checkpointer(tmp_path)
    checkpoints.save(model, 10).rename(tmp_path / "checkpoint-000000000000030.pairloom")
    with pytest.raises(ModelFileError, match="is of row 10: the file was renamed"):
        checkpoints.newest()


def test_a_run_that_starts_over_does_not_mix_with_an_older_one(tmp_path, model):
    Checkpointer(tmp_path).save(model, 500)
    with pytest.raises(
        ValueError, match=r"has a checkpoint of row 500, but this would be one of row 100: resume from it"
    ):
        Checkpointer(tmp_path).save(model, 100)
    assert Checkpointer(tmp_path).positions() == [500]


@pytest.mark.parametrize("values", [{"every": 0}, {"keep": 0}, {"every": 1.5}])
def test_bad_parameters_are_refused(values, tmp_path):
    with pytest.raises(ValueError, match=f"{next(iter(values))} must be an integer >= 1"):
        Checkpointer(tmp_path, **values)


@pytest.mark.parametrize("position", [-1, 1.0, None])
def test_a_bad_position_is_refused(position, tmp_path, model):
    with pytest.raises(ValueError, match="position must be an integer >= 0"):
        Checkpointer(tmp_path).save(model, position)
