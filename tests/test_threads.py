"""Several threads predict with one model; BLAS is limited to one thread whichever enters or leaves."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
import scipy.linalg
from threadpoolctl import ThreadpoolController

import pairloom.models.grid
from pairloom import AUCClassifier, Grid, Learner, Stream
from pairloom.base.threads import ONE_THREAD
from pairloom.features import RandomFourier
from pairloom.models.exact import ExactLearner
from pairloom.steps import Constant
from pairloom.systems import ExactAUC
from tests.conftest import make_stream


def blas_threads():
    assert scipy.linalg
    return {library["num_threads"] for library in ThreadpoolController().info() if library["user_api"] == "blas"}


@pytest.fixture
def two_threads():
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        yield


def grid_of_three():
    learners = [Learner(RandomFourier(32), step=Constant(eta), seed=0) for eta in (0.01, 0.1, 0.3)]
    return Stream(Grid(learners, block_rows=64))


@pytest.mark.parametrize("make", [lambda: AUCClassifier(random_state=0), grid_of_three, ExactAUC])
def test_threads_get_the_scores_that_one_gets(make):
    X, y = make_stream("random", 250, 4)
    alone, shared = make().partial_fit(X, y), make().partial_fit(X, y)
    score = "score" if isinstance(alone, Stream) else "decision_function"
    expected, start = getattr(alone, score)(X), Barrier(4)

    def ask(_):
        start.wait()
        return getattr(shared, score)(X)

    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            for answer in pool.map(ask, range(4)):
                np.testing.assert_array_equal(answer, expected)
            x, label = X[:1], y[:1]
            alone.partial_fit(x, label)
            shared.partial_fit(x, label)
            expected = getattr(alone, score)(X)


def test_an_interrupted_prediction_leaves_no_trace(monkeypatch):
    X, y = make_stream("random", 100, 4)
    alone, stopped = grid_of_three().partial_fit(X, y), grid_of_three().partial_fit(X, y)

    def interrupt(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(pairloom.models.grid, "run_engine", interrupt)
        with pytest.raises(KeyboardInterrupt):
            stopped.score(X)
    np.testing.assert_array_equal(stopped.score(X), alone.score(X))
    np.testing.assert_array_equal(stopped.partial_fit(X, y).score(X), alone.partial_fit(X, y).score(X))


def test_blas_has_one_thread_until_the_last_is_out(two_threads):
    assert blas_threads() == {2}
    inside, go_on = Barrier(3), Barrier(3)

    def stay(_):
        with ONE_THREAD:
            inside.wait()
            go_on.wait()

    with ThreadPoolExecutor(2) as pool:
        staying = pool.map(stay, range(2))
        with ONE_THREAD, ONE_THREAD:
            inside.wait()
        assert blas_threads() == {1}
        go_on.wait()
        list(staying)
    assert blas_threads() == {2}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no os.fork: this test is for systems that have it")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_a_child_that_was_forked_inside_learns():
    X, y = make_stream("random", 50, 3)
    with ONE_THREAD, ONE_THREAD._lock:
        child = os.fork()
        if child == 0:
            ExactAUC().fit(X, y)
            os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_an_error_lifts_the_limit_too(two_threads, monkeypatch):
    X, y = make_stream("random", 200, 4)
    seen = []
    monkeypatch.setattr(ExactLearner, "solve", lambda self, state: seen.append(blas_threads()) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        ExactAUC().fit(X, y)
    assert seen == [{1}]
    assert blas_threads() == {2}


def test_bits_do_not_depend_on_the_threads_of_blas():
    code = """
import hashlib, numpy as np
from pairloom import AUCClassifier
rng = np.random.default_rng(0)
X = rng.normal(size=(400, 12))
y = X[:, 0] ** 2 + X[:, 1] > 1.5
print(hashlib.sha256(AUCClassifier(random_state=0).fit(X, y).decision_function(X).tobytes()).hexdigest())
"""
    digests = set()
    for threads in ("1", "2"):
        env = {**os.environ, "OPENBLAS_NUM_THREADS": threads}
        digests.add(subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True).stdout)
    assert len(digests) == 1
