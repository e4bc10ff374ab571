"""What the names of the layout stand for in a model: sizes and kinds that follow from its parts, without making any."""

from collections.abc import Callable
from typing import Any

import numpy as np

from pairloom.engines.base import candidates
from pairloom.features import (
    FeatureMap,
    Forest,
    Growing,
    Identity,
    Landmarks,
    Nystroem,
    OrthogonalFourier,
    RandomFourier,
    Whitened,
)
from pairloom.memory import Latest, Memory, Reservoir, RSx, Strata, WholeHistory, Window
from pairloom.models.exact import ExactLearner
from pairloom.models.exact_path import ExactPath
from pairloom.models.expansion import Expansion
from pairloom.models.grid import Grid
from pairloom.models.learner import Learner
from pairloom.models.moments import Moments
from pairloom.models.path import StepPath
from pairloom.models.rule import Rule, RuleLearner
from pairloom.persist.format import ModelFileError
from pairloom.persist.walk import Scope, Walk
from pairloom.systems.adadsg import StagedPairs
from pairloom.systems.fourier_sgd import Pointwise
from pairloom.systems.koil import Budgeted
from pairloom.systems.opauc import Sketch
from pairloom.systems.opera import PairExpansion
from pairloom.systems.projectronpp import Projecting
from pairloom.systems.solam import SaddlePoint
from pairloom.systems.spam import ClassMeans
from pairloom.systems.sparse_kernel_auc import GreedyBasis

KINDS: dict[type, str] = {
    Identity: "IdentityState", RandomFourier: "FourierState", OrthogonalFourier: "FourierState",
    Growing: "GrowingState", Nystroem: "NystroemState", Landmarks: "NystroemState", Whitened: "WhitenedState",
    Forest: "ForestState",
    Strata: "StrataState", Latest: "LatestState", Window: "LatestState", RSx: "RSxState",
    Reservoir: "ReservoirState", WholeHistory: "HistoryState",
    Moments: "MomentsState", Sketch: "SketchState", ClassMeans: "Means2", SaddlePoint: "Saddle",
    Pointwise: "Intercept", ExactLearner: "ClassMoments", ExactPath: "ClassMoments", StagedPairs: "none",
    Budgeted: "Buffers", Projecting: "Span", PairExpansion: "History", GreedyBasis: "BasisState",
}  # fmt: skip
"""What a part, or a model, keeps. A class of the caller's own has its own, even if it extends one of these."""


def map_rule(walk: Walk, features: FeatureMap, d: int, t: int, work: str, k: int) -> Callable[[str], Any] | str:
    """How the arrays of a map, for k targets, are taken."""
    kind = KINDS.get(type(features))
    if kind is None:
        return "any"
    features.check(d)
    D = n_outputs(features, d, t)
    sizes: dict[str, Any] = {"d": d, "D": D, "h": D // 2}
    by_column = isinstance(getattr(getattr(features, "kernel", None), "gamma", None), tuple)
    scope = Scope(sizes, {"gamma": "R d finite" if by_column else "f8 0:LATE"}, work)
    if isinstance(features, Forest):
        kind, leaves = "GroveState" if features.grows else kind, features.max_leaves
        sizes |= {"T": features.n_trees, "K": 1 + len(features.levels), "N": 2 * leaves - 1, "L": leaves}
        sizes |= {"n": max(features.n_rows, features.deep_rows), "k": k}
        return lambda path: _take_forest(walk, path, kind, scope)
    if isinstance(features, Whitened):
        sizes["k"] = min(features.rank, D)
        scope.rules["inner"] = map_rule(walk, features.inner, d, t, work, k)
    return lambda path: walk.node(path, kind, scope)


def _take_forest(walk: Walk, path: str, kind: str, scope: Scope) -> None:
    """Children come after their parent, and from a leaf there is no way: a walk down a tree comes to an end."""
    walk.node(path, kind, scope)
    yes, values, missing = (walk.flat.arrays[f"{path}.nodes.{name}"] for name in ("yes", "values", "missing_yes"))
    here = np.arange(yes.shape[1])
    leaf = (yes == here) & (values == np.inf) & missing
    if not (leaf | ((yes > here) & (yes + 1 < yes.shape[1]) & np.isfinite(values))).all():
        raise walk.refuse(f"{path}.nodes", "must have every node after its parent")


def n_outputs(features: FeatureMap, d: int, t: int) -> int:
    """D after ``t`` rows."""
    if isinstance(features, Growing):
        return features.block * features.n_blocks(max(1, t))
    return features.n_outputs(d)


def scope_of(walk: Walk, model: Any, d: int, t: int, room: int) -> Scope:
    """The scope of the state of a model of this package after ``t`` rows with ``d`` columns.

    ``room``: the numbers in the file; a model of more vectors than that is refused before it counts them.
    """
    one = model.learners[0] if isinstance(model, Grid) else model.learner if isinstance(model, StepPath) else model
    many = len(model) if isinstance(model, (Grid, StepPath)) else 1
    if many * max(1, model.pairs.n_groups) > room:
        raise ModelFileError(f"{model!r:.80} has more weights than the file has numbers")
    features, work = one.features, f"f{one.work.itemsize}"
    D = n_outputs(features, d, t)
    sizes: dict[str, Any] = {"d": d, "D": D, "v": model.n_vectors, "C": model.pairs.n_groups, "t": t}
    rules: dict[str, Any] = {
        "phi": map_rule(walk, features, d, t, work, len(one.pairs.targets)), "w": "R v D", "w_bar": "R v D",
        "tally": "f8 7 0:LATE", "totals": "f8 0 2", "lazy": "none", "rows": "none",
        "squares": "absent", "lazy_squares": "absent", "cells": "absent",
    }  # fmt: skip
    averaging = one.average != "last"
    if isinstance(one, Learner):
        rules |= _memory_rules(one)
        by_input, dense = one.memory.space == "input", one.by_specification or not features.sparse
        sizes |= {"p": D if dense else 0, "u": d if by_input else D, "q": d if by_input else D if dense else 0}
        sizes |= {"l": "S", **_memory_sizes(one.memory, sizes["C"])}
        rules["totals"] = "f8 v 2 0:MASS" if one.memory.weighting == "sum" else "f8 0 2"
        if one.step.per_coordinate:
            rules |= {"squares": "R v D 0:1e38", "lazy_squares": "f8 v D 0:1e38"}
        if one.by_cells:
            sizes["m"] = features.n_cells
            rules["cells"] = "i4 S m 0:D"
    else:
        rules["memory"] = KINDS.get(type(getattr(one, "rule", one)), "any")
        sizes |= {"l": 0, **_other_sizes(one, D)}
    if isinstance(one, (Learner, RuleLearner)):
        rules["lazy"] = "LazyModel | none"
    if isinstance(one, Expansion):
        rules["w"] = rules["w_bar"] = "R v 0"
    if isinstance(model, StepPath):
        sizes |= {"k": one.n_vectors, "G": len(model)}
        rules |= {"w": "R k D G", "w_bar": "R k 0 G", "squares": "R k D G 0:1e38", "tally": "f8 7 G 0:LATE"}
        rules["totals"] = "f8 k 2 0:MASS" if one.memory.weighting == "sum" else "f8 0 2"
    sizes["a"] = model.lanes.n_averaged if isinstance(model, Grid) else D if averaging else 0
    rows = f"f{np.dtype(model.dtype).itemsize}"
    return Scope(sizes, rules, work, rows, model.pairs.n_groups, model.takes_nan)


def _memory_rules(learner: Learner) -> dict[str, str]:
    memory = learner.memory
    neyman = isinstance(memory, Strata) and memory.allocation == "neyman"
    return {
        "memory": KINDS.get(type(memory), "any"),
        "rows": "R S d" if learner.features.grows else "none",
        "seats": "Seats" if neyman else "none",
    }


def _memory_sizes(memory: Memory, n_classes: int) -> dict[str, int]:
    """Groups, slots of each and in all, strata; nothing is known of a memory of the caller's own."""
    g = 1 if memory.joint else n_classes
    if type(memory) is Strata:
        return {
            "g": g,
            "s": memory.n_slots,
            "S": g * memory.n_slots,
            "c": g * memory.max_strata,
            "cap": memory.max_strata,
        }
    if type(memory) is WholeHistory:
        return {"S": memory.max_rows}
    if isinstance(memory, (Latest, Window, RSx, Reservoir)) and type(memory) in KINDS:
        return {"g": g, "s": memory.size, "S": g * memory.size}
    return {}


def _other_sizes(model: Any, D: int) -> dict[str, int]:
    """Of what a rule, an exact learner or a sum of kernels keeps."""
    rule: Rule | None = getattr(model, "rule", None)
    if type(rule) is Moments:
        return {"s": 1 if rule.pairs == "all" else 2, "e": (D + 1) * (D + 2) // 2}
    if type(rule) is Sketch:
        return {"s": rule.rank}
    if isinstance(model, (ExactLearner, ExactPath)):
        return {"s": candidates(model)[0].rows}  # type: ignore[attr-defined]
    if type(model) is Budgeted:
        return {"m": 2 * model.budget}
    if type(model) is Projecting:
        return {"m": model.max_supports}
    return {}
