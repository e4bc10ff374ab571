"""Shared streams and fixtures; fixed seeds, so that no test is random."""

import os
import signal
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from pairloom.base import randomness
from tests.commands import Commands

# Shells start background jobs with Ctrl-C ignored, and children inherit that; some tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "fixed", derandomize=True, database=None, deadline=None, print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],  # it depends on time
)  # fmt: skip
settings.register_profile("soak", settings.get_profile("fixed"), derandomize=False)
settings.load_profile("fixed")  # `make soak` loads the other one


def examples(n: int) -> settings:
    """Try the same n examples of a property in every run; in `make soak` ten times as many, different each time."""
    return settings(max_examples=10 * n if settings.get_current_profile_name() == "soak" else n)


calls: Counter[str] = Counter()


def entropy() -> np.random.SeedSequence:
    """Return entropy for models without a seed: from the name of the test and the number of calls so far."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    calls[test] += 1
    return np.random.SeedSequence([zlib.crc32(test.encode()), calls[test]])


randomness.SeedSequence = entropy


def make_stream(kind: str, n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return a stream with a non-linear rare class.

    ``duplicates`` has few distinct rows, as binary data do: exact ties and zero distances. ``sorted`` rises in its
    first column; ``one_class_first`` shows the second class late.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    if kind == "duplicates":
        X = np.sign(X[:, :3]) @ rng.normal(size=(3, d)).round(1)
    elif kind == "sorted":
        X = X[np.argsort(X[:, 0])]
    score = np.square(X).sum(axis=1) + X[:, 0] + 0.5 * rng.normal(size=n)
    y = np.where(score > np.quantile(score, 0.75), 1.0, -1.0)
    if kind == "one_class_first":
        order = np.argsort(-y[: n // 3], kind="stable")
        X[: n // 3], y[: n // 3] = X[order], y[order]
    return X, y


LONG = (
    "agreement", "benchmarks", "blocked", "checkpoint", "cli", "compiled", "contributing", "demo", "docs",
    "every", "extras", "forest_deep", "forest_engines", "fuzz", "half_life", "monitor", "nightly", "outputs",
    "pairs_page", "parameters", "persist_f", "scikit_learn", "sparse", "spam", "systems_table", "theory",
    "threads",
)  # fmt: skip
"""Prefixes of test files that start processes, run scripts or compare engines on many options."""


FIRST = (["test_every_estimator"], ["test_blocked", "test_every_engine", "test_adagrad"])
"""Files that each of two processes runs first: loops in float32; those of grids, then in float64, and of ``AdaGrad``.

Loops of boosting and forests are the same in float64: they are compiled while the other process compiles grids."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="the first case of each short test")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With --quick: the first case of each test of files that are not ``LONG``.

    Without it, each of two processes begins with files that compile most loops: see ``FIRST``. Otherwise both would
    compile the same ones at the same time.
    """
    if not config.getoption("quick"):
        first, second = ([item for stem in stems for item in items if item.path.stem == stem] for stems in FIRST)
        rest = [item for item in items if item not in {*first, *second}]
        half = max(0, len(items) // 2 - len(first))
        items[:] = [*first, *rest[:half], *second, *rest[half:]]
        return
    seen: dict[str, pytest.Item] = {}
    for item in items:
        if not item.path.stem.removeprefix("test_").startswith(LONG) and "scikit_learn" not in item.nodeid:
            seen.setdefault(item.nodeid.partition("[")[0], item)
    config.hook.pytest_deselected(items=[item for item in items if seen.get(item.nodeid.partition("[")[0]) is not item])
    items[:] = seen.values()


STREAMS = ("random", "duplicates", "sorted", "one_class_first")


@pytest.fixture
def data_folder() -> Path:
    """Return the folder of real data sets, or skip the test with instructions."""
    folder = os.environ.get("PAIRLOOM_DATA")
    if not folder:
        pytest.skip("PAIRLOOM_DATA is not set: it names a folder of the LIBSVM files that `pairloom datasets` lists")
    return Path(folder)


@pytest.fixture(scope="session")
def command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    """Run `pairloom ...`, each time in a separate process."""
    commands = Commands(tmp_path_factory.mktemp("commands"))
    yield commands
    commands.close()


@pytest.fixture
def check_every_plan(monkeypatch):
    """Also check the plans of the built-in memories."""
    monkeypatch.setattr("pairloom.engines.base.BUILT_IN", frozenset())
