"""Files of models with parts from outside the package: they load only if passed to load."""

import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from pairloom import Learner, PairwiseRanker, Stream, load, save
from pairloom.base.tree import node
from pairloom.features import RandomFourier
from pairloom.losses import Loss
from pairloom.memory import Memory, MemoryState, Plan, Slots
from pairloom.persist import ModelFileError
from pairloom.stream import Hook
from pairloom.systems import FPOGD, OGD
from tests.conftest import make_stream
from tests.hostile import read, sign
from tests.test_persist import assert_goes_on

pytestmark = pytest.mark.filterwarnings("ignore::pairloom.stream.StabilityWarning")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.pairloom"


@dataclass(frozen=True)
class Bent(Loss):
    name: ClassVar[str] = "bent"
    smoothness: ClassVar[float] = 1.0
    bend: float = 1.0

    def value(self, margin):
        gap = np.maximum(0.0, 1.0 - margin)
        return np.where(gap < self.bend, gap**2 / 2, self.bend * (gap - self.bend / 2))

    def derivative(self, margin):
        return -np.minimum(self.bend, np.maximum(0.0, 1.0 - margin))


@node
class NewestState(MemoryState):
    seen: np.ndarray


@dataclass(frozen=True)
class Newest(Memory):
    @property
    def joint(self):
        return True

    def start(self, dim, u_dim, n_classes, dtype, points):
        return NewestState(Slots.empty(1, dim, dtype), np.zeros(1, np.int64))

    def observe(self, state, example):
        state.seen[0] += 1
        state.slots.write(0, example, blend=1.0, mass=1.0)

    def plan(self, state, U, y, weight, draws):
        state.seen[0] += len(y)
        return Plan(np.arange(len(y) + 1), np.zeros(len(y), np.int64), np.ones(len(y)), np.ones(len(y)))


@node
class Total:
    rows: int
    sums: np.ndarray


@dataclass(frozen=True)
class Watcher(Hook):
    name: ClassVar[str] = "my watcher"

    def init(self, model):
        return Total(0, np.zeros(model.n_vectors))

    def see(self, own, scored):
        own.rows += len(scored.labels)
        own.sums += scored.scores.sum(axis=0)


def test_parts_from_outside_load_only_if_they_are_handed_over(path):
    X, y = make_stream("random", 300, 3)
    model = Learner(features=RandomFourier(8), loss=Bent(0.3), memory=Newest(), engine="reference", seed=0)
    stream = Stream(model, [Watcher()])
    assert_goes_on(stream, X, y, 200, path, parts=[Bent, Newest, Watcher])
    with pytest.raises(ModelFileError, match=r"needs 'Bent', which is not part of pairloom: pass its class, parts=\["):
        load(path)
    with pytest.raises(ModelFileError, match=r"needs 'Watcher', which is not part of pairloom: pass its class"):
        load(path, parts=[Bent, Newest])
    with pytest.raises(ValueError, match="parts= has a Strata, but the name is in use"):
        load(path, parts=[type("Strata", (), {})])
    with pytest.raises(TypeError, match="parts= takes classes"):
        load(path, parts=["Bent"])


def test_an_estimator_from_outside(path):
    class Mine(FPOGD):
        def __init__(self, *, eta=0.2):
            super().__init__(eta=eta, n_components=8, random_state=0)

    X, y = make_stream("random", 300, 3)
    assert_goes_on(Mine(), X, y, 200, path, parts=[Mine])


def test_no_file_holds_an_estimator_as_a_parameter(path):
    with pytest.raises(TypeError, match=r"FPOGD.features is OGD\(\), which is neither a part nor a plain value"):
        save(FPOGD(features=OGD()), path)


def test_classes_that_were_named_are_those_of_a_classifier(path):
    save(PairwiseRanker(), path)
    ranker, _ = read(path)
    named = FPOGD().partial_fit(np.zeros((2, 3)), [0, 1], classes=[0, 1], sample_weight=[0, 0])
    save(named, path)
    header, arrays = read(path)
    assert load(path)._declared.tolist() == [0, 1]
    path.write_bytes(sign({**header, "model": ranker["model"]}, arrays))
    with pytest.raises(ModelFileError, match="labels must be a Labels"):
        load(path)


def test_nothing_that_a_header_names_is_imported(path):
    save(FPOGD(), path)
    header, arrays = read(path)
    for name in ("this", "this.s", "os.system", "pairloom.cli.app", "builtins.eval"):
        header["model"]["features"] = {"part": name}
        path.write_bytes(sign(header, arrays))
        with pytest.raises(ModelFileError, match=f"the file needs '{name}'"):
            load(path)
    assert "this" not in sys.modules
