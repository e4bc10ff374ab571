"""CONTRIBUTING says how to add a loss, a memory, a feature map and a system. Here each is added, by the book."""

from dataclasses import dataclass, replace
from inspect import isabstract
from typing import ClassVar

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.utils.estimator_checks import check_estimator

from pairloom import (
    Constant,
    Gaussian,
    Grid,
    Identity,
    Latest,
    Learner,
    Logistic,
    OppositeClass,
    Order,
    RandomFourier,
    Square,
    Stream,
    load,
    memory,
    save,
)
from pairloom.estimators.card import Card
from pairloom.estimators.classifier import PairwiseClassifier
from pairloom.features import FeatureMap
from pairloom.features.scaling import fit_scaler
from pairloom.losses import Loss
from pairloom.memory import Example, Memory, MemoryState, Plan, Slots, checked_plan
from tests.conftest import make_stream
from tests.mixed import mixed


@dataclass(frozen=True)
class Huberized(Loss):
    """A smoothed hinge: the specification half of a new loss."""

    name: ClassVar[str] = "huberized"
    smoothness: ClassVar[float] = 1.0

    bend: float = 1.0

    def value(self, margin):
        gap = np.maximum(0.0, 1.0 - margin)
        return np.where(gap < self.bend, gap**2 / 2, self.bend * (gap - self.bend / 2))

    def derivative(self, margin):
        return -np.minimum(self.bend, np.maximum(0.0, 1.0 - margin))


class Compiled(Huberized):
    """The whole of it."""

    def scalars(self):
        bend = self.bend

        def value(m):
            gap = max(0.0, 1.0 - m)
            return gap * gap / 2 if gap < bend else bend * (gap - bend / 2)

        def slope(m):
            return -min(bend, max(0.0, 1.0 - m))

        return value, slope


def test_a_loss_without_its_compiled_half_is_for_the_reference_engine_alone():
    X, y = make_stream("random", 300, 3)
    stream = Stream(Learner(loss=Huberized(), engine="reference", seed=0)).partial_fit(X, y)
    assert stream.pair_score(X[y > 0][:50], X[y < 0][:50]).mean() > 0
    with pytest.raises(ValueError, match=r"loss=Huberized\(bend=1.0\) has no compiled form: use engine='reference'"):
        Learner(loss=Huberized())


def test_a_new_loss_runs_on_every_engine():
    X, y = make_stream("random", 300, 3)
    for features, rows in ((RandomFourier(32), X), (Identity(), X), (Identity(), csr_array(X))):
        learner = Learner(features=features, loss=Compiled(0.3), step=Constant(0.05), dtype="float64", seed=0)
        truth = Stream(replace(learner, engine="reference")).partial_fit(X, y)
        np.testing.assert_allclose(Stream(learner).partial_fit(rows, y).coef, truth.coef, rtol=0, atol=1e-12)
    grid = Stream(Grid([learner, replace(learner, loss=Logistic())])).partial_fit(X, y)
    np.testing.assert_allclose(grid.coef[0], truth.coef[0], rtol=0, atol=1e-12)
    assert np.abs(truth.coef).max() > 0


class Scaled(Loss):
    """A loss that is no dataclass: two of them are equal, though they are not the same."""

    name = "scaled"
    smoothness = 2.0

    def __init__(self, factor):
        object.__setattr__(self, "factor", factor)

    def value(self, margin):
        return self.factor * np.square(1.0 - margin)

    def derivative(self, margin):
        return -2.0 * self.factor * (1.0 - margin)

    def scalars(self):
        factor = self.factor
        return lambda m: factor * (1.0 - m) * (1.0 - m), lambda m: -2.0 * factor * (1.0 - m)


def test_losses_that_claim_to_be_equal_are_told_apart():
    X, y = make_stream("random", 100, 3)
    for factor in (0.01, 0.5):
        learner = Learner(
            features=Identity(), memory=Latest(), loss=Scaled(factor), step=Constant(0.05), dtype="float64"
        )
        truth = Stream(replace(learner, engine="reference")).partial_fit(X, y)
        np.testing.assert_allclose(Stream(learner).partial_fit(X, y).coef, truth.coef, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", [Square, Order])
def test_a_changed_part_is_not_taken_for_the_one_it_was_made_of(kind):
    """A subclass has the number of its parent in compiled code, which does not know what it changed."""
    part = type("Changed", (kind,), {})()
    with pytest.raises(ValueError, match=r"Changed\(\) has no compiled form"):
        Learner(features=Identity(), memory=Latest("previous"), **{"loss" if kind is Square else "pairs": part})


@dataclass(frozen=True)
class EveryOther(Memory):
    """The last example with an even number: a memory in one class."""

    @property
    def joint(self):
        return True

    @property
    def weighting(self):
        return "history"

    def start(self, dim, u_dim, n_classes, dtype, points):
        return Counted(Slots.empty(1, dim, dtype), np.zeros(1, np.int64))

    def observe(self, state: MemoryState, example: Example) -> None:
        state.seen[0] += 1
        if state.seen[0] % 2 == 0:
            state.slots.write(0, example, blend=1.0, mass=1.0)

    def plan(self, state, U, y, weight, draws):
        number = state.seen[0] + 1 + np.arange(len(y))
        state.seen[0] += len(y)
        even = number % 2 == 0
        start = np.concatenate([[0], np.cumsum(even)])
        n = int(even.sum())
        return Plan(start, np.zeros(n, np.int64), np.ones(n), np.ones(n))


@dataclass
class Counted(MemoryState):
    """How many examples there were."""

    seen: np.ndarray


WRONG_PLANS = {
    "beyond the slots": ({"slot": [10**7]}, r"slot must be below 1, .*; got 10,000,000 in event 0"),
    "before the slots": ({"slot": [-1]}, r"slot must be below 1, .*; got -1 in event 0"),
    "a slot that is no whole number": ({"slot": [0.0]}, r"slot must be an array \(n,\) of whole numbers; got float64"),
    "too few rows": ({"start": [0, 1]}, r"start must be 3 numbers that rise from 0 to 1, .*; got \[0 1\]"),
    "events nobody has": ({"start": [0, 0, 0]}, r"start must be 3 numbers"),
    "more events than there are": ({"start": [0, 0, 2]}, r"start must be 3 numbers"),
    "a start that falls": ({"start": [0, 2, 1]}, r"start must be 3 numbers"),
    "events of two lengths": ({"mass": [1.0, 1.0]}, r".* one number for each event; got 1, 1 and 2"),
    "a blend that is not announced": ({"blend": [0.5]}, r"blend must be 0 or 1, .*; got 0.5"),
    "a mass below 0": ({"mass": [-1.0]}, r"mass must be finite and at least 0; got -1.0"),
    "a mass without end": ({"mass": [np.inf]}, r"mass must be finite and at least 0; got inf"),
    "a mass that is no number": ({"mass": [np.nan]}, r"mass must be finite and at least 0; got nan"),
}


@dataclass(frozen=True)
class Wrong(EveryOther):
    """The same with a mistake in the plan of two rows."""

    mistake: str = "beyond the slots"

    def plan(self, state, U, y, weight, draws):
        changes = WRONG_PLANS[self.mistake][0]
        return super().plan(state, U, y, weight, draws)._replace(**{k: np.array(v) for k, v in changes.items()})


@pytest.mark.parametrize("mistake", WRONG_PLANS)
def test_a_plan_that_cannot_be_carried_out_is_refused(mistake):
    """Compiled loops check no index: slot 10^7 would be a segmentation fault."""
    X, y = make_stream("random", 2, 3)
    one = Learner(features=Identity(), memory=Wrong(mistake=mistake), seed=0)
    message = r"^the plan of Wrong\(mistake=.*\) cannot be carried out: " + WRONG_PLANS[mistake][1]
    for model, rows in ((one, X), (one, csr_array(X)), (Grid([one], block_rows=2), X)):
        with pytest.raises(ValueError, match=message):
            Stream(model).partial_fit(rows, y)


@dataclass(frozen=True)
class Blending(EveryOther):
    """Points that are means, with a share that may be too large."""

    share: float = 0.5
    blends = True

    def plan(self, state, U, y, weight, draws):
        plan = super().plan(state, U, y, weight, draws)
        return plan._replace(blend=self.share * plan.blend)


def test_blends_of_a_plan_are_shares():
    X, y = make_stream("random", 2, 3)
    Stream(Learner(features=Identity(), memory=Blending(), seed=0)).partial_fit(X, y)
    with pytest.raises(ValueError, match=r"blend must be between 0 and 1; got 1.5 in event 0"):
        Stream(Learner(features=Identity(), memory=Blending(share=1.5), seed=0)).partial_fit(X, y)
    with pytest.raises(ValueError, match=r"plan must return a Plan; got None"):
        checked_plan(None, Blending(), 2, 1)


def test_only_the_memories_of_the_package_are_not_checked():
    kinds = {kind for kind in vars(memory).values() if isinstance(kind, type) and issubclass(kind, Memory)}
    assert {kind for kind in kinds if not isabstract(kind)} == memory.BUILT_IN


@dataclass
class SquaresState:
    """Arrays of a fixed map."""

    scaler: object


@dataclass(frozen=True)
class Squares(FeatureMap):
    """[x, x^2] / (2 d)."""

    def n_outputs(self, n_features):
        return 2 * n_features

    def fix(self, n_features, rows, rng):
        return SquaresState(fit_scaler(self.scale, n_features, rows))

    def apply(self, state, X):
        x = state.scaler.apply(X)
        return np.ascontiguousarray(np.hstack([x, x * x]) / x.dtype.type(2 * x.shape[1]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("parts", [{"memory": EveryOther()}, {"features": Squares(scale="standard")}])
def test_a_new_memory_and_a_new_map_run_on_every_engine_at_once(parts, dtype):
    X, y = make_stream("random", 400, 3)
    learner = Learner(**{"features": Identity(), "step": Constant(0.01), "dtype": dtype, "seed": 0, **parts})
    truth = Stream(replace(learner, engine="reference")).partial_fit(X, y)
    whole, cut = Stream(learner).partial_fit(X, y), Stream(learner)
    for rows in np.array_split(np.arange(400), 9):
        cut.partial_fit(X[rows], y[rows])
    np.testing.assert_array_equal(whole.coef, cut.coef)
    np.testing.assert_allclose(whole.coef, truth.coef, rtol=0, atol=1e-10 if dtype == "float64" else 1e-5)
    assert np.abs(truth.coef).max() > 0


class Recent(PairwiseClassifier):
    """A system: a composition of parts behind scikit-learn's face."""

    def __init__(self, eta=0.1, dtype="float32", pos_label=None, random_state=None):
        self.eta = eta
        self.dtype = dtype
        self.pos_label = pos_label
        self.random_state = random_state

    @property
    def card(self):
        return Card("nobody 2026", "d D + 4 D", "4 D + d D", model="kernel")

    def _make_model(self, n_classes, seed):
        return Learner(
            features=RandomFourier(64, Gaussian("median")), pairs=OppositeClass(n_classes), memory=Latest(size=4),
            step=Constant(self.eta), dtype=self.dtype, seed=seed,
        )  # fmt: skip


@pytest.mark.filterwarnings("ignore:Skipping check check_array_api_input")
def test_a_new_system_is_a_scikit_learn_estimator_at_once():
    results = check_estimator(Recent(), on_fail=None)
    exempt = {f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")}
    assert {r["check_name"] for r in results if r["status"] == "failed"} <= exempt


def test_a_new_system_takes_frames_and_is_saved_without_parameters_for_that(tmp_path):
    frame, y = mixed(60)
    model = Recent(random_state=0).fit(frame, y)
    save(model, tmp_path / "model")
    found = load(tmp_path / "model", parts=[Recent])
    np.testing.assert_array_equal(found.decision_function(frame), model.decision_function(frame))
