"""A custom map and a custom model in a race, from outside the package, as CONTRIBUTING.md describes."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from pairloom import AUCClassifier
from pairloom.base.tree import copy, node
from pairloom.base.typing import Array
from pairloom.features import FeatureMap, Identity, RacingMap
from pairloom.features.capabilities import FrozenSum, summed_weights
from pairloom.features.scaling import Scaler, fit_scaler
from pairloom.models.base import Many
from pairloom.models.rule import RuleLearner
from pairloom.race import Candidate, Head, Portfolio
from pairloom.steps import Constant
from pairloom.systems.spam import ClassMeans
from tests.conftest import make_stream
from tests.generic import SMALL

ROWS = 2100
"""At row 2,048 the larger map takes over."""


@node
class PowersState:
    scaler: Scaler


@dataclass(frozen=True)
class Powers(RacingMap):
    """The powers 1, ..., p of each scaled column."""

    p: int = 2

    def n_outputs(self, n_features):
        return self.p * n_features

    def fix(self, n_features, rows, rng):
        return PowersState(fit_scaler(self.scale, n_features, rows))

    def apply(self, state, X):
        Z = state.scaler.apply(X)
        return np.concatenate([Z**k for k in range(1, self.p + 1)], axis=1)

    def halved(self):
        return replace(self, p=self.p // 2) if self.p > 1 else None


@node
class FrozenPowers(FrozenSum):
    """:class:`Summed`, reduced to what prediction needs."""

    scaler: Scaler
    w: Array

    def add(self, X, out):
        out += Powers(len(self.w) // X.shape[1]).apply(self, X) @ self.w


@dataclass(frozen=True)
class PowersSum:
    scaler: Scaler
    w: Array

    def add(self, X, out):
        self.frozen(("", 1.0, 0.0)).add(X, out)

    def frozen(self, share):
        return FrozenPowers(*share, copy(self.scaler), self.w.copy())


class Summed(Powers):
    """A map with a custom loop for the sum of several models."""

    def linear_sum(self, state, w, slopes):
        return PowersSum(state.scaler, summed_weights(w, slopes))


@dataclass(frozen=True, kw_only=True)
class OneRule(RuleLearner, Many):
    """A single model with defaults for everything else."""

    engines = RuleLearner.engines

    def __len__(self):
        return 1

    def pick(self, index):
        return self

    def only(self, index, state):
        return state, np.arange(self.n_vectors)


@dataclass(frozen=True)
class Means(Head):
    n_models = 1

    def learner(self, features, pairs, *, dtype, seed, **rest):
        return OneRule(
            features=features, pairs=pairs, rule=ClassMeans(), step=Constant(0.01), average="poly",
            dtype=dtype, seed=seed,
        )  # fmt: skip

    def flops(self, features, n_features):
        return 10.0 * features.n_outputs(n_features)

    def nbytes(self, features, n_features, n_classes, itemsize):
        return 4 * itemsize * features.n_outputs(n_features)


@dataclass(frozen=True)
class Mine(Portfolio):
    features: FeatureMap = Powers()
    head: Head = SMALL.exact

    def candidates(self, n_features):
        large = replace(self.features, p=8)
        linear = Candidate("linear", "linear", Identity(), self.exact)
        return [linear, Candidate("mine", "mine", self.features, self.head, large)]


@pytest.fixture(scope="module")
def rows():
    X, _ = make_stream("random", ROWS + 100, 3)
    return X, np.where(np.square(X).sum(axis=1) + X[:, 0] > 4, 1, -1)


def race(**parts):
    return AUCClassifier(portfolio=Mine(exact=SMALL.exact, **parts), random_state=0)


@pytest.mark.parametrize("kind", [Powers, Summed])
def test_a_map_of_ones_own_races_grows_mixes_and_predicts(kind, rows):
    X, y = rows
    model = race(features=kind(scale="standard")).fit(X[:ROWS], y[:ROWS])
    assert model.mixture_[0] == "mine"
    assert model.auc_.value > 0.95
    state = model.stream_.learned
    assert {one.name: one.candidate.features for one in state.entrants}["mine"] == kind(8, scale="standard")
    parts = race(features=kind(scale="standard"))
    for start in range(0, ROWS, 700):
        parts.partial_fit(X[start : start + 700], y[start : start + 700], classes=[-1, 1])
    np.testing.assert_array_equal(parts.score_many(X), model.score_many(X))
    # A copy has no candidates; they are found by name and size.
    test = X[ROWS:].astype(np.float32)
    np.testing.assert_array_equal(model.stream_.model.score(copy(state), test), model.stream_.model.score(state, test))


def test_a_map_that_can_be_halved_is_before_it_is_left_out():
    mine = Mine(features=Powers(8)).candidates(3)[1]
    assert [one.features.p for one in mine.larger(3).values()] == [8, 4, 2, 1]
    assert list(mine.larger(3)) == [24, 12, 6, 3]
    assert mine.smaller().features == Powers(4)


def test_a_map_with_a_sum_of_its_own_can_be_frozen_and_others_are_named(rows):
    X, y = rows
    model = race(features=Summed(scale="standard")).fit(X[:ROWS], y[:ROWS])
    frozen = model.frozen()
    np.testing.assert_allclose(frozen.score_many(X), model.score_many(X), rtol=1e-9, atol=1e-9)
    assert frozen.mixture_ == model.mixture_
    with pytest.raises(ValueError, match=r"frozen\(\) is for .* 'mine' has features=Powers"):
        race(features=Powers()).fit(X[:300], y[:300]).frozen()


def test_a_model_of_ones_own_races_and_mixes(rows):
    X, y = rows
    model = race(head=Means(), features=Powers(scale="standard")).fit(X[:600], y[:600])
    assert model.mixture_[0] == "mine"
    assert model.auc_.value > 0.9
    assert np.isfinite(model.score_many(X)).all()
    with pytest.raises(ValueError, match="'mine' has features=Powers"):
        model.frozen()
