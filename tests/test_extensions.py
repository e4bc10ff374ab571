"""CONTRIBUTING says how to add a rule, an engine and an observer. Here each is added, from outside the package."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from pairloom import Constant, Gaussian, Latest, Learner, RandomFourier, Stream
from pairloom.base.clock import next_multiple
from pairloom.base.tree import Rounded, flatten, same, unflatten
from pairloom.memory import Example
from pairloom.models.rule import Rule, RuleLearner, descend
from tests.conftest import make_stream

LEARNER = Learner(
    features=RandomFourier(32, Gaussian("median")), memory=Latest(size=3), step=Constant(0.1), dtype="float64", seed=0
)


@dataclass(frozen=True)
class Plain:
    """An engine: gradient steps on the square loss, in the plainest NumPy."""

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
    from pairloom import Logistic

    with pytest.raises(ValueError, match=r"Plain\(\) does not take these rows"):
        Stream(replace(LEARNER, engine=Plain(), loss=Logistic())).partial_fit(*make_stream("random", 10, 3))


def test_what_is_no_engine_is_refused():
    with pytest.raises(ValueError, match="engine must be one of 'auto', 'fused', 'reference'; got 7"):
        replace(LEARNER, engine=7)


@dataclass
class Sums:
    """The statistics of a rule."""

    total: Rounded


@dataclass(frozen=True)
class Correlation(Rule):
    """A rule: w follows the mean of y z."""

    def start(self, dim, n_models):
        return Sums(np.zeros((n_models, dim)))

    def step(self, state, k, row, penalty):
        state.memory.total[k] += row.weight * row.y * row.z
        state.w[k] = descend(state.w[k], -row.y * row.z, row, row.rate, penalty.bound)

    def run(self, state, block):
        for i, z in enumerate(block.Z):
            for k in range(len(state.w)):
                block.scores[i, k] = state.w[k] @ z
                state.memory.total[k] += block.weight[i] * block.y[i, k] * z
                state.w[k] = block.steps[0, i] * state.w[k] + block.steps[1, i] * block.y[i, k] * z


def test_a_new_rule_runs_by_specification_and_in_blocks():
    X, y = make_stream("random", 1200, 4)
    model = RuleLearner(rule=Correlation(), step=Constant(0.01), dtype="float64", seed=0)
    fast, truth, cut = (Stream(replace(model, engine=engine)) for engine in ("auto", "reference", "auto"))
    fast.partial_fit(X, y)
    truth.partial_fit(X, y)
    for rows in np.array_split(np.arange(1200), 7):
        cut.partial_fit(X[rows], y[rows])
    np.testing.assert_allclose(fast.coef, truth.coef, rtol=1e-12)
    np.testing.assert_array_equal(fast.coef, cut.coef)
    assert fast.auc()[0] > 0.5


@dataclass
class Means:
    """What the observer below remembers."""

    total: float
    rows: int
    history: list


@dataclass(frozen=True)
class MeanScore:
    """An observer: the mean score of the rows so far, written down every 100 rows."""

    name: ClassVar[str] = "mean score"

    def init(self, model):
        return Means(0.0, 0, [])

    def see(self, own, scored):
        new = scored.end - own.rows
        own.total += float(scored.scores[len(scored.labels) - new :].sum())
        own.rows = scored.end

    def next_row(self, t):
        return next_multiple(t, 100)

    def tick(self, own, state, model):
        own.history.append(own.total / own.rows)


def test_a_new_observer_sees_each_row_once_however_the_stream_is_cut():
    X, y = make_stream("random", 950, 3)
    learner = replace(LEARNER, features=RandomFourier(32, Gaussian(0.5)))
    whole, cut = (Stream(learner, observers=[MeanScore()]) for _ in range(2))
    whole.partial_fit(X, y)
    for rows in np.array_split(np.arange(950), 13):
        cut.partial_fit(X[rows], y[rows])
    own = whole.state.observed["mean score"]
    scores = whole.recent()[0]
    np.testing.assert_allclose(own.history, [scores[:n].mean() for n in range(100, 901, 100)])
    np.testing.assert_allclose(cut.state.observed["mean score"].history, own.history)
    found = unflatten(flatten(whole.state), [Means])
    assert same(found, whole.state)
