"""Members of the base classes of parts; optional features are capabilities, properties that are None by default."""

from typing import NamedTuple

import pytest

from pairloom import Learner
from pairloom.features import FeatureMap, Forest, Growing, Identity, Landmarks, RandomFourier
from pairloom.memory import Latest, Memory, Reservoir, RSx, Strata, WholeHistory, Window
from pairloom.models.base import Model
from pairloom.models.exact import ExactPath
from pairloom.models.grid import Grid
from pairloom.models.moments_rule import Moments
from pairloom.models.rule import Rule, RuleLearner
from pairloom.models.step_path import StepPath
from pairloom.race import Race
from pairloom.steps import AdaGrad, Constant
from pairloom.systems.fourier_sgd import Pointwise
from pairloom.systems.opera import PairExpansion
from pairloom.systems.spam import ClassMeans


class Members(NamedTuple):
    """The public members of a base class."""

    abstract: str
    others: str
    capabilities: str


CORES = {
    FeatureMap: Members(
        abstract="apply fix n_outputs",
        others="check graph_forms inputs keeps_csr needs_data scale state_spec takes_nan to_onnx warm_rows",
        capabilities="forgetting growing labelled racing sparse",
    ),
    Memory: Members(
        abstract="observe plan start",
        others="blends draws holds_rows joint needs_data space state_spec weighting",
        capabilities="csr forgetting limited merging",
    ),
    Rule: Members(
        abstract="run start step",
        others="averages_before draws rates state_spec",
        capabilities="csr forgetting merging prepared",
    ),
    Model: Members(
        abstract="init n_vectors run score",
        others=(
            "dtype explainable form graph_forms instability large_products merge n_scored next_row pairs reading "
            "recode seed settle state_spec steady takes_nan to_onnx waiting warm_rows"
        ),
        capabilities="forgetting limited many",
    ),
}


def members(kind):
    """The members of a class and of its bases, annotations included."""
    found = {}
    for base in reversed(kind.__mro__[:-1]):
        found |= dict.fromkeys(base.__annotations__ if "__annotations__" in vars(base) else ()) | vars(base)
    return {name: what for name, what in found.items() if not name.startswith("_")}


@pytest.mark.parametrize("kind", CORES, ids=lambda kind: kind.__name__)
def test_a_base_class_has_these_members_and_no_others(kind):
    """A new member applies to every part of the kind, or is a capability."""
    listed, found = CORES[kind], members(kind)
    assert " ".join(sorted(kind.__abstractmethods__)) == listed.abstract
    assert sorted(found) == sorted(" ".join(listed).split())


@pytest.mark.parametrize("kind", CORES, ids=lambda kind: kind.__name__)
def test_capabilities_are_asked_for_one_way(kind):
    """A property that is None unless a part has the capability."""
    for name in CORES[kind].capabilities.split():
        assert members(kind)[name].fget(None) is None


LATEST, CELLS = Learner(Identity(), memory=Latest()), Learner(Forest(5), memory=Latest(), step=AdaGrad(0.1))
WHOLE = Learner(Identity(), memory=WholeHistory(), step=Constant(0.1))

CAN = [
    (FeatureMap, Identity(), "racing"),
    (FeatureMap, RandomFourier(), "racing"),
    (FeatureMap, Landmarks(), "racing"),
    (FeatureMap, Growing(), "growing racing"),
    (FeatureMap, Forest(), "labelled racing sparse"),
    (FeatureMap, Forest(labels=False), "racing sparse"),
    (FeatureMap, Forest(growth="boosted"), "forgetting growing racing sparse"),
    (Memory, Latest(), "merging"),
    (Memory, Window(), "merging"),
    (Memory, Reservoir(), "forgetting merging"),
    (Memory, RSx(), "forgetting merging"),
    (Memory, WholeHistory(), "forgetting limited merging"),
    (Memory, Strata(), "csr forgetting merging"),
    (Memory, Strata(allocation="neyman"), "csr forgetting"),
    (Rule, Moments(), "forgetting merging"),
    (Rule, Pointwise(), "csr merging"),
    (Rule, ClassMeans(), "csr forgetting merging"),
    (Rule, ClassMeans("full"), "csr merging prepared"),
    (Model, LATEST, ""),
    (Model, WHOLE, "forgetting limited"),
    (Model, Grid([WHOLE]), "forgetting limited many"),
    (Model, StepPath(CELLS, [0.1]), "forgetting many"),
    (Model, ExactPath(), "forgetting many"),
    (Model, RuleLearner(rule=Pointwise(), step=Constant(0.1)), ""),
    (Model, PairExpansion(), "forgetting limited"),
    (Model, Race(), "forgetting limited"),
]


@pytest.mark.parametrize(("kind", "part", "can"), CAN, ids=lambda value: str(value)[:60])
def test_who_can_do_what(kind, part, can):
    """Checked on the value: the capabilities of a forest depend on its parameters."""
    found = [name for name in CORES[kind].capabilities.split() if getattr(part, name) is not None]
    assert " ".join(found) == can
