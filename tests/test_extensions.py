"""A custom engine, added from outside the package as CONTRIBUTING.md describes."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from pairloom import Learner, Stream
from pairloom.features import Gaussian, RandomFourier
from pairloom.memory import Example, Latest
from pairloom.steps import Constant
from tests.conftest import make_stream

LEARNER = Learner(
    features=RandomFourier(32, Gaussian("median")), memory=Latest(size=3), step=Constant(0.1), dtype="float64", seed=0
)


@dataclass(frozen=True)
class Plain:
    """An engine: gradient steps on the square loss, in simple NumPy."""

    double: ClassVar[bool] = True
    any_part: ClassVar[bool] = True

    def takes(self, learner, state, batch):
        return learner.loss.name == "square"

    def run(self, learner, state, batch):
        scores = []
        for x, y in zip(batch.X, batch.y, strict=True):
            state.t += 1
            z = learner.features.apply(state.phi, x[None, :])[0]
            scores.append(state.w @ z)
            slots = state.memory.slots
            partners = np.flatnonzero((slots.mass > 0) & (slots.labels != y))
            if partners.size:
                D = (1.0 if y else -1.0) * (z - slots.points[partners])
                slope = -2.0 * (1.0 - D @ state.w[0])
                p = slots.mass[partners] / slots.mass[partners].sum()
                state.w[0] -= learner.step.eta * (p * slope) @ D
            learner.memory.observe(state.memory, Example(z, z, y, 1.0, int(slots.queries[0]), np.empty(0), x))
        return np.array(scores)


def test_a_new_engine_is_an_object_that_a_learner_is_given():
    X, y = make_stream("random", 400, 3)
    mine, truth = (Stream(replace(LEARNER, engine=engine)).partial_fit(X, y) for engine in (Plain(), "reference"))
    np.testing.assert_allclose(mine.coef, truth.coef, rtol=0, atol=1e-12)
    np.testing.assert_allclose(mine.recent()[0], truth.recent()[0], rtol=0, atol=1e-12)
    assert np.abs(mine.coef).max() > 0


def test_an_engine_that_does_not_take_the_rows_is_named():
    from pairloom.losses import Logistic

    with pytest.raises(ValueError, match=r"Plain\(\) does not take these rows"):
        Stream(replace(LEARNER, engine=Plain(), loss=Logistic())).partial_fit(*make_stream("random", 10, 3))


def test_what_is_no_engine_is_refused():
    with pytest.raises(ValueError, match="engine must be one of 'auto', 'fused', 'reference'; got 7"):
        replace(LEARNER, engine=7)
