"""Ctrl-C at any time: the model has learned exactly the rows that it counts, and no row in part."""

import copy
import os
import signal
import sys
import threading
import warnings

import numpy as np
import pandas as pd
import pytest

from pairloom import AUCClassifier, PairwiseRanker, load, save
from pairloom.base import interrupts
from pairloom.base.interrupts import DeferredSignals
from pairloom.base.tree import same
from pairloom.systems import FPOGD, OPAUC, SparseKernelAUC
from tests.conftest import make_stream
from tests.generic import SMALL

pytestmark = pytest.mark.filterwarnings("ignore::pairloom.stream.StabilityWarning")

X, Y = make_stream("one_class_first", 700, 3)
SOURCE = os.path.dirname(interrupts.__file__).removesuffix("base")


def frame():
    """Columns of several kinds, one of them known late, and a class that appears late."""
    text = np.array(["a", "b", None], dtype=object)[np.arange(700) % 3]
    late = np.where(np.arange(700) < 150, None, "x").astype(object)
    return pd.DataFrame({"x": X[:, 0], "text": text, "late": late})


MODELS = {
    "race": (lambda: AUCClassifier(portfolio=SMALL, random_state=0), X, 100, 200),
    "race of three": (lambda: AUCClassifier(portfolio=SMALL, random_state=0), X, 100, 140),
    "fpogd": (lambda: FPOGD(n_components=16, random_state=0, drift="auto"), X, 100, 400),
    "frame": (lambda: FPOGD(n_components=16, class_weight="balanced", random_state=0), frame(), 0, 400),
    "rule": (lambda: OPAUC(random_state=0), X, 100, 400),
    "ranker": (lambda: PairwiseRanker(n_components=16, random_state=0), X, 0, 300),
}


def learned(name, n):
    """A model that has learned n rows."""
    model = MODELS[name][0]()
    return learn(model, name, 0, n) if n else model


def learn(model, name, start, end):
    """The model, with these rows learned."""
    three = name == "race of three"
    rows, y = MODELS[name][1], np.digitize(X[:, 0], [-0.5, 0.5]) if three else Y
    return model.partial_fit(rows[start:end], y[start:end], **({"classes": [0, 1, 2]} if three else {}))


class Tracer:
    """Sends a signal before the k-th line of the package that runs; counts the lines."""

    def __init__(self, k=0, number=signal.SIGINT):
        self.k, self.number, self.count = k, number, 0

    def __enter__(self):
        self.before = sys.gettrace()
        sys.settrace(self._call)
        return self

    def __exit__(self, *_):
        sys.settrace(self.before)

    def _call(self, frame, event, arg):
        return self._line if frame.f_code.co_filename.startswith(SOURCE) else None

    def _line(self, frame, event, arg):
        if event == "line" and "interrupts.py" not in frame.f_code.co_filename:
            self.count += 1
            if self.count == self.k:
                signal.raise_signal(self.number)
        return self._line


def interrupted(call, k, number=signal.SIGINT, expected=KeyboardInterrupt):
    with Tracer(k, number), pytest.raises(expected):
        call()


@pytest.fixture
def short(monkeypatch):
    """Pieces of 64 rows."""
    monkeypatch.setattr(interrupts, "FIRST_PIECE_ROWS", 64)
    monkeypatch.setattr(interrupts, "MIN_PIECE_SECONDS", 0.0)
    monkeypatch.setattr(interrupts, "MAX_PIECE_SECONDS", np.inf)


def assert_whole(model, name, path, most):
    """Equal to a model of the rows that it counts; it can be saved, loaded, and continues to learn."""
    n = model.n_seen_ if hasattr(model, "stream_") else 0
    assert n <= most
    if n:
        assert same(model.state_, learned(name, n).state_), n
        save(model, path)
        model = load(path)
    assert same(learn(model, name, n, most + 20).state_, learned(name, most + 20).state_)
    return n


@pytest.mark.parametrize("name", MODELS)
def test_an_interrupted_batch_is_learned_up_to_the_row_that_is_counted(name, short, tmp_path):
    at, most = MODELS[name][2:]
    start = learned(name, at)
    learn(copy.deepcopy(start), name, at, most)  # some lines run once
    with Tracer() as whole:
        learn(copy.deepcopy(start), name, at, most)
    found = set()
    for k in np.linspace(1, 0.95 * whole.count, 6).astype(int):
        model = copy.deepcopy(start)
        interrupted(lambda model=model: learn(model, name, at, most), k)
        found.add(assert_whole(model, name, tmp_path / "model", most))
    assert len(found) > 1


def test_fit_begins_from_nothing_or_has_begun(short, tmp_path):
    start = learned("fpogd", 100)
    with Tracer() as whole:
        copy.deepcopy(start).fit(X[:300], Y[:300])
    for k in np.linspace(1, 0.95 * whole.count, 6).astype(int):
        model = copy.deepcopy(start)
        interrupted(lambda model=model: model.fit(X[:300], Y[:300]), k)
        if not same(model.state_, start.state_):
            n = model.n_seen_
            again = MODELS["fpogd"][0]().partial_fit(X[:n], Y[:n], classes=[-1.0, 1.0])
            assert same(model.state_, again.state_)
        save(model, tmp_path / "model")
        load(tmp_path / "model").partial_fit(X[:9], Y[:9])


def test_fit_of_all_rows_at_once_leaves_the_model_as_it_was():
    start = SparseKernelAUC(max_support=5, random_state=0).fit(X[:100], Y[:100])
    assert start.needs_all_rows
    with Tracer() as whole:
        copy.deepcopy(start).fit(X[:300], Y[:300])
    for k in (whole.count // 4, whole.count // 2):
        model = copy.deepcopy(start)
        interrupted(lambda model=model: model.fit(X[:300], Y[:300]), k)
        assert same(model.state_, start.state_)


def test_a_row_that_was_interrupted_is_learned_or_not_or_the_model_says_so(tmp_path):
    start = learned("fpogd", 100)
    after = copy.deepcopy(start)
    with Tracer() as whole:  # of the call alone: a copy runs lines of states, too
        after.learn_one(X[100], Y[100])
    states, found = [start.state_, after.state_], set()
    for k in np.linspace(1, whole.count, 12).astype(int):
        model = copy.deepcopy(start)
        interrupted(lambda model=model: model.learn_one(X[100], Y[100]), k)
        found.add(model.stream_.broken)
        if model.stream_.broken:
            for use in (lambda: model.learn_one(X[0], Y[0]), lambda: model.partial_fit(X, Y), lambda: save(model, "x")):  # noqa: B023
                with pytest.raises(ValueError, match="a part of that row"):
                    use()
            assert model.fit(X[:50], Y[:50]).n_seen_ == 50
        else:
            assert any(same(model.state_, state) for state in states)
    assert found == {False, True}


def test_other_handlers_wait_as_well_and_one_that_does_not_raise_changes_nothing(short):
    caught = []

    def alarm(number, frame):
        caught.append(number)
        if number == signal.SIGALRM:
            raise TimeoutError

    before = {number: signal.signal(number, alarm) for number in (signal.SIGINT, signal.SIGALRM)}
    try:
        model = learned("fpogd", 100)
        interrupted(lambda: model.partial_fit(X[100:400], Y[100:400]), 3000, signal.SIGALRM, TimeoutError)
        assert model.n_seen_ < 400
        assert same(model.state_, learned("fpogd", model.n_seen_).state_)
        with Tracer(3000):
            other = learned("fpogd", 100).partial_fit(X[100:400], Y[100:400])
        assert same(other.state_, learned("fpogd", 400).state_)
        assert caught == [signal.SIGALRM, signal.SIGINT]
        assert signal.getsignal(signal.SIGINT) is alarm
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_a_second_signal_finds_the_handler_that_the_first_has_set():
    """Like the handler of the command line: the first Ctrl-C ends the stream, the second one the process."""
    calls = []

    def first(number, frame):
        calls.append("first")
        signal.signal(number, second)

    def second(number, frame):
        calls.append("second")
        raise KeyboardInterrupt

    def twice():
        with DeferredSignals():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            assert calls == []

    before = signal.signal(signal.SIGINT, first)
    try:
        with pytest.raises(KeyboardInterrupt):
            twice()
        assert calls == ["first", "second"]
        assert signal.getsignal(signal.SIGINT) is second
    finally:
        signal.signal(signal.SIGINT, before)


def test_signals_are_left_alone_in_other_threads():
    found = []

    def look():
        with DeferredSignals():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [signal.getsignal(signal.SIGINT)]


def test_pieces_end_at_multiples_of_256_rows_and_cover_all(monkeypatch):
    now = iter(np.cumsum([0, 0.01, 0, 0.01, 0, 5.0, 0, 5.0, *[0.0, 0.1] * 50]).tolist())
    monkeypatch.setattr(interrupts, "perf_counter", lambda: next(now))
    found = list(DeferredSignals().pieces(300, 3000))
    assert [(300 + rows.stop) % 256 for rows in found[:-1]] == [0] * (len(found) - 1)
    assert [rows.start for rows in found[1:]] == [rows.stop for rows in found[:-1]]
    assert (found[0].start, found[-1].stop) == (0, 3000)
    assert [rows.stop - rows.start for rows in found[:5]] == [212, 512, 1024, 512, 256]


@pytest.mark.soak
@pytest.mark.parametrize("name", MODELS)
def test_interrupts_at_random_moments(name, tmp_path):
    rng = np.random.default_rng(int(os.environ.get("PAIRLOOM_SOAK_SEED", "0")))
    at, most = MODELS[name][2:]
    start, found = learned(name, at), 0
    for _ in range(100):
        model = copy.deepcopy(start)
        timer = threading.Timer(rng.exponential(0.03), os.kill, (os.getpid(), signal.SIGINT))
        try:
            timer.start()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                learn(model, name, at, most)
            timer.join()
        except KeyboardInterrupt:
            found += 1
        assert_whole(model, name, tmp_path / "model", most)
    assert found > 10
