"""CONTRIBUTING.md shows how to add parts and systems. These tests run its code, and test the parts that it adds."""

from dataclasses import replace
from inspect import isabstract, signature
from typing import ClassVar

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from pairloom import Grid, Learner, Stream, load, memory, save
from pairloom.base.spec import StateSpec
from pairloom.base.tree import same
from pairloom.estimators.card import Card
from pairloom.estimators.classifier import PairwiseClassifier
from pairloom.estimators.parameters import estimator
from pairloom.features import Gaussian, Identity, RandomFourier
from pairloom.losses import Logistic, Loss, Square
from pairloom.memory import Latest, Memory, Strata
from pairloom.memory.slots import checked_plan
from pairloom.pairs import OppositeClass, Order
from pairloom.steps import Constant
from pairloom.stream import ArrivalScores, DriftWatch
from pairloom.systems import FPOGD
from tests.conftest import make_stream
from tests.mixed import mixed
from tests.recipes import recipes
from tests.runtime import assert_agrees, session_of


@pytest.fixture(scope="module")
def page():
    return recipes()


def test_the_page_adds_a_memory_a_map_a_rule_a_hook_a_candidate_and_saves_them(page):
    """The page asserts that a loaded model continues exactly as the saved one."""
    assert set(page.race.mixture_) == {"squares", "pairs"}
    assert type(page.stream.model.loss) is page.Huberized
    for model in (page.pairs, page.rule):
        whole, cut = (Stream(model, hooks=[page.MeanScore()]) for _ in range(2))
        whole.partial_fit(page.X, page.y)
        for rows in np.array_split(np.arange(len(page.X)), 13):
            cut.partial_fit(page.X[rows], page.y[rows])
        assert same(whole.state, cut.state)
        truth = Stream(replace(model, engine="reference", dtype="float64")).partial_fit(page.X, page.y)
        fast = Stream(replace(model, dtype="float64")).partial_fit(page.X, page.y)
        np.testing.assert_allclose(fast.coef, truth.coef, rtol=0, atol=1e-10)


def test_a_hook_of_ones_own_sees_each_row_once(page):
    model = replace(page.pairs, features=Identity())
    stream = Stream(model, hooks=[page.MeanScore()]).partial_fit(page.X[:950], page.y[:950])
    scores = stream.recent()[0]
    expected = [scores[:n].mean() for n in range(100, 901, 100)]
    np.testing.assert_allclose(stream.state.observed["mean score"].means, expected)


def test_a_hook_says_what_it_requires():
    model = Learner(memory=Strata(), seed=0)
    with pytest.raises(ValueError, match=r"^DriftWatch\(.*\) requires ArrivalScores\(\) before it: hooks=\[Arr"):
        Stream(model, hooks=[DriftWatch()])
    with pytest.raises(ValueError, match="two hooks with the name 'arrivals'"):
        Stream(model, hooks=[ArrivalScores(), ArrivalScores()])
    with pytest.raises(ValueError, match=r"each of hooks must be a Hook, such as Forgetting\(1000\); got 7"):
        Stream(model, hooks=[7])
    Stream(model, hooks=[ArrivalScores(), DriftWatch()]).partial_fit(*make_stream("random", 300, 3))


def test_a_memory_of_ones_own_that_says_something_wrong_of_its_state_is_not_saved(page, tmp_path):
    class Larger(page.EveryOther):
        def state_spec(self, n_classes):
            return StateSpec(page.EveryOtherState, {"S": 17})

    stream = Stream(Learner(Identity(), memory=Larger(), seed=0)).partial_fit(page.X[:20], page.y[:20])
    with pytest.raises(ValueError, match=r"so it was not saved: .*memory.slots.points must have an axis of 17"):
        save(stream, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_loss_without_its_compiled_half_is_for_the_reference_engine_alone(page):
    bare = type("Bare", (page.Huberized,), {"scalars": Loss.scalars})()
    X, y = make_stream("random", 300, 3)
    stream = Stream(Learner(loss=bare, engine="reference", seed=0)).partial_fit(X, y)
    assert stream.pair_score(X[y > 0][:50], X[y < 0][:50]).mean() > 0
    with pytest.raises(ValueError, match=r"loss=Bare\(\) has no compiled form: use engine='reference'"):
        Learner(loss=bare)


def test_a_new_loss_runs_on_every_engine(page):
    X, y = make_stream("random", 300, 3)
    for rows in (X, csr_array(X)):  # each has a loop of its own, and grids have another
        learner = Learner(features=Identity(), loss=page.Huberized(), step=Constant(0.05), dtype="float64", seed=0)
        truth = Stream(replace(learner, engine="reference")).partial_fit(X, y)
        np.testing.assert_allclose(Stream(learner).partial_fit(rows, y).coef, truth.coef, rtol=0, atol=1e-12)
    grid = Stream(Grid([learner, replace(learner, loss=Logistic())])).partial_fit(X, y)
    np.testing.assert_allclose(grid.coef[0], truth.coef[0], rtol=0, atol=1e-12)
    assert np.abs(truth.coef).max() > 0


class Scaled(Loss):
    """A loss that is not a dataclass: two instances are equal, although they differ."""

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


def test_losses_that_claim_to_be_equal_are_distinguished():
    X, y = make_stream("random", 100, 3)
    for factor in (0.01, 0.5):
        learner = Learner(
            features=Identity(), memory=Latest(), loss=Scaled(factor), step=Constant(0.05), dtype="float64"
        )
        truth = Stream(replace(learner, engine="reference")).partial_fit(X, y)
        np.testing.assert_allclose(Stream(learner).partial_fit(X, y).coef, truth.coef, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", [Square, Order])
def test_a_changed_part_is_not_taken_for_the_one_it_was_made_of(kind):
    """A subclass has the code of its parent in compiled loops, which ignore its overrides."""
    part = type("Changed", (kind,), {})()
    with pytest.raises(ValueError, match=r"Changed\(\) has no compiled form"):
        Learner(features=Identity(), memory=Latest("previous"), **{"loss" if kind is Square else "pairs": part})


WRONG_PLANS = {
    "beyond the slots": ({"slot": [10**7]}, r"slot must be below 4, .*; got 10,000,000 in event 0"),
    "before the slots": ({"slot": [-1]}, r"slot must be below 4, .*; got -1 in event 0"),
    "a slot that is not an integer": ({"slot": [0.0]}, r"slot must be an array \(n,\) of integers; got float64"),
    "too few rows": ({"start": [0, 1]}, r"start must be 3 numbers that increase from 0 to 1, .*; got \[0 1\]"),
    "events without a row": ({"start": [0, 0, 0]}, r"start must be 3 numbers"),
    "more events than there are": ({"start": [0, 0, 2]}, r"start must be 3 numbers"),
    "a decreasing start": ({"start": [0, 2, 1]}, r"start must be 3 numbers"),
    "events of different lengths": ({"mass": [1.0, 1.0]}, r".* one number for each event; got 1, 1 and 2"),
    "an undeclared blend": ({"blend": [0.5]}, r"blend must be 0 or 1, .*; got 0.5"),
    "a mass below 0": ({"mass": [-1.0]}, r"mass must be finite and at least 0; got -1.0"),
    "an infinite mass": ({"mass": [np.inf]}, r"mass must be finite and at least 0; got inf"),
    "a mass that is NaN": ({"mass": [np.nan]}, r"mass must be finite and at least 0; got nan"),
}


@pytest.mark.parametrize("mistake", WRONG_PLANS)
def test_a_plan_that_cannot_be_carried_out_is_refused(mistake, page):
    """Compiled loops check no index: slot 10^7 would be a segmentation fault."""
    changes, text = WRONG_PLANS[mistake]

    def plan(self, *rows):
        return page.EveryOther.plan(self, *rows)._replace(**{name: np.array(value) for name, value in changes.items()})

    Wrong = type("Wrong", (page.EveryOther,), {"plan": plan})
    X, y = make_stream("random", 2, 3)
    one = Learner(features=Identity(), memory=Wrong(), seed=0)
    for model, rows in ((one, X), (one, csr_array(X)), (Grid([one], block_rows=2), X)):
        with pytest.raises(ValueError, match=rf"^Wrong\(size=4\) has returned an invalid plan: {text}"):
            Stream(model).partial_fit(rows, y)


def test_blends_of_a_plan_are_shares(page):
    class Blending(page.EveryOther):
        blends = True
        share = 0.5

        def plan(self, *rows):
            plan = super().plan(*rows)
            return plan._replace(blend=self.share * plan.blend)

    X, y = make_stream("random", 2, 3)
    Stream(Learner(features=Identity(), memory=Blending(), seed=0)).partial_fit(X, y)
    Blending.share = 1.5
    with pytest.raises(ValueError, match=r"blend must be between 0 and 1; got 1.5 in event 0"):
        Stream(Learner(features=Identity(), memory=Blending(), seed=0)).partial_fit(X, y)
    with pytest.raises(ValueError, match=r"plan must return a Plan; got None"):
        checked_plan(None, Blending(), 2, 1)


def test_only_the_memories_of_the_package_are_not_checked():
    kinds = {kind for kind in vars(memory).values() if isinstance(kind, type) and issubclass(kind, Memory)}
    assert {kind for kind in kinds if not isabstract(kind)} == memory.BUILT_IN


def test_a_new_map_with_an_onnx_form_is_exported(page, tmp_path):
    X, y = make_stream("random", 300, 3)
    model = FPOGD(features=page.Squares(scale="standard"), eta=0.001, random_state=0).fit(X, y)
    assert_agrees(model, X.astype(np.float32), session_of(model, tmp_path))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["memory", "features"])
def test_a_new_memory_and_a_new_map_run_on_every_engine_at_once(name, dtype, page):
    X, y = make_stream("random", 400, 3)
    part = page.EveryOther() if name == "memory" else page.Squares(scale="standard")
    learner = Learner(**{"features": Identity(), "step": Constant(0.001), "dtype": dtype, "seed": 0, name: part})
    truth = Stream(replace(learner, engine="reference")).partial_fit(X, y)
    whole, cut = Stream(learner).partial_fit(X, y), Stream(learner)
    for rows in np.array_split(np.arange(400), 9):
        cut.partial_fit(X[rows], y[rows])
    np.testing.assert_array_equal(whole.coef, cut.coef)
    np.testing.assert_allclose(whole.coef, truth.coef, rtol=0, atol=1e-10 if dtype == "float64" else 1e-5)
    assert np.abs(truth.coef).max() > 0


@estimator
class Recent(PairwiseClassifier):
    """A system: a composition of parts with the interface of scikit-learn."""

    eta: float = 0.1

    @property
    def card(self):
        return Card("nobody 2026", "d D + 4 D", "4 D + d D", model="kernel")

    def _make_model(self, n_classes, seed):
        return Learner(
            features=RandomFourier(64, Gaussian("median")), pairs=OppositeClass(n_classes), memory=Latest(size=4),
            step=Constant(self.eta), dtype=self.dtype, seed=seed, engine=self.engine,
        )  # fmt: skip


class OwnInit(Recent):
    """A system with few parameters, one of which may be positional."""

    def __init__(self, eta=0.1, dtype="float32", pos_label=None, random_state=None):
        self.eta = eta
        self.dtype = dtype
        self.pos_label = pos_label
        self.random_state = random_state


BOTH = pytest.mark.parametrize("kind", [Recent, OwnInit])


@BOTH
@pytest.mark.filterwarnings("ignore:Skipping check check_array_api_input")
def test_a_new_system_is_a_scikit_learn_estimator_at_once(kind):
    results = check_estimator(kind(), on_fail=None)
    exempt = {f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")}
    assert {r["check_name"] for r in results if r["status"] == "failed"} <= exempt


@BOTH
def test_a_new_system_takes_frames_and_is_saved_even_without_parameters_for_that(kind, tmp_path):
    frame, y = mixed(60)
    model = kind(random_state=0).fit(frame, y)
    save(model, tmp_path / "model")
    found = load(tmp_path / "model", parts=[kind])
    np.testing.assert_array_equal(found.decision_function(frame), model.decision_function(frame))


def test_the_parameters_of_a_new_system_are_its_fields_and_those_of_its_bases():
    shared = [
        "pos_label",
        "class_weight",
        "shuffle",
        "drift",
        "dtype",
        "random_state",
        "engine",
        "columns",
        "half_life",
    ]
    assert list(signature(Recent).parameters) == ["eta", *shared]
    assert list(signature(OwnInit).parameters) == ["eta", "dtype", "pos_label", "random_state"]
    model = Recent(eta=0.2, drift="auto")
    assert repr(model) == "Recent(drift='auto', eta=0.2)"
    assert vars(clone(model)) == vars(model)
    assert model != clone(model)
    assert len({model, clone(model)}) == 2
    assert repr(OwnInit(0.2)) == "OwnInit(eta=0.2)"
    for wrong in ({"etta": 0.2}, {"stream_": None}, {"_encoder": None}):
        with pytest.raises(TypeError, match="unexpected keyword argument"):
            Recent(**wrong)
    with pytest.raises(TypeError, match="positional"):
        Recent(0.2)


def test_a_system_of_a_system_changes_a_default_and_adds_a_parameter():
    @estimator
    class Slower(Recent):
        eta: float = 0.01
        dtype: str = "float64"
        patience: int = 3
        waited: ClassVar[int] = 0

    assert list(signature(Slower).parameters)[:2] == ["patience", "eta"]
    X, y = make_stream("random", 60, 3)
    model = Slower(patience=5, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.coef_, Recent(eta=0.01, dtype="float64", random_state=0).fit(X, y).coef_)
    assert model.set_params(patience=7).get_params()["patience"] == 7


def test_an_init_that_is_written_is_left_alone():
    @estimator
    class Written(Recent):
        eta: float = 0.01

        def __init__(self, random_state=None, eta=0.05):
            super().__init__(random_state=random_state, eta=eta)

    assert list(signature(Written).parameters) == ["random_state", "eta"]
    assert Written().eta == 0.05
