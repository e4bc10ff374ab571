"""Several threads in one model: the bits of one, errors as with one, and joblib's way to count."""

import threading
from functools import partial

import joblib
import numpy as np
import pytest

from pairloom import AUCClassifier, load, save
from pairloom.base.parallel import run_all, several_threads
from pairloom.stream.stream import SCORE_ROWS
from tests.conftest import make_stream
from tests.generic import assert_same


def names(n=8):
    """Return the names of the threads that ran n tasks, which wait for each other in pairs."""
    barrier = threading.Barrier(2)

    def task():
        barrier.wait(20)
        return threading.current_thread().name

    return {name.split("_")[0] for name in run_all([task] * n)}


@pytest.mark.parametrize("cut", [1_700, 333])
def test_threads_change_no_bit(cut):
    X, y = make_stream("random", 2_500, 4)
    models = []
    for n_jobs in (None, 2, 3):
        model = AUCClassifier(random_state=0, n_jobs=n_jobs)
        for start in range(0, len(y), cut):
            model.partial_fit(X[start : start + cut], y[start : start + cut])
        models.append(model)
    many = np.tile(X, (2 * SCORE_ROWS // len(X) + 1, 1))
    for model in models[1:]:
        assert_same(model.stream_.state, models[0].stream_.state)
        assert model.predict_proba(many).tobytes() == models[0].predict_proba(many).tobytes()


def test_tasks_run_side_by_side_inside_the_block_only():
    with several_threads(2):
        assert names() == {"pairloom"}
    assert run_all([lambda: threading.current_thread().name] * 2) == ["MainThread"] * 2
    with joblib.parallel_config(n_jobs=2), several_threads(None):
        assert names() == {"pairloom"}


def test_tasks_of_a_task_run_one_after_the_other():
    def task():
        return run_all([partial(len, "ab")] * 3)

    with several_threads(2):
        assert run_all([task] * 3) == [[2, 2, 2]] * 3


def test_threads_have_the_settings_of_the_caller():
    with several_threads(2), np.errstate(divide="raise"):
        assert run_all([lambda: np.geterr()["divide"]] * 2) == ["raise", "raise"]


def test_the_first_error_is_raised_when_all_tasks_have_ended():
    ended = []

    def fail():
        raise ZeroDivisionError("first")

    with pytest.raises(ZeroDivisionError, match="first"), several_threads(2):
        run_all([fail, partial(ended.append, 1), partial(ended.append, 2)])
    assert sorted(ended) == [1, 2]


@pytest.mark.parametrize("n_jobs", [0, 1.5, "2"])
def test_n_jobs_is_checked_before_a_row_is_learned(n_jobs):
    X, y = make_stream("random", 100, 4)
    model = AUCClassifier(random_state=0).fit(X, y)
    model.set_params(n_jobs=n_jobs)
    with pytest.raises(ValueError, match="n_jobs must be a number of threads"):
        model.partial_fit(X, y)
    assert model.n_seen_ == 100


def test_n_jobs_can_change_and_is_saved(tmp_path):
    X, y = make_stream("random", 300, 4)
    model = AUCClassifier(random_state=0, n_jobs=2).fit(X, y)
    save(model, tmp_path / "model.pairloom")
    loaded = load(tmp_path / "model.pairloom")
    assert loaded.n_jobs == 2
    alone = AUCClassifier(random_state=0).fit(X, y)
    for one in (loaded, alone):
        one.set_params(n_jobs=1).partial_fit(X, y)
    assert_same(loaded.stream_.state, alone.stream_.state)
