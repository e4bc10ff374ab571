"""Whether the state in a file is one that its model could have: checked before anything is made of it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pairloom.base.clock import CATCH_UP, REFITS, next_evaluation, refit_before
from pairloom.base.tree import Flat
from pairloom.base.typing import Array
from pairloom.estimators.class_labels import Labels
from pairloom.estimators.class_weight import check_class_weight, is_balanced
from pairloom.models.base import Model
from pairloom.models.exact import ExactLearner
from pairloom.models.exact_path import ExactPath
from pairloom.models.expansion import Expansion
from pairloom.models.grid import Grid
from pairloom.models.learner import Learner
from pairloom.models.path import StepPath
from pairloom.models.rule import RuleLearner
from pairloom.persist.format import ModelFileError
from pairloom.persist.observed import check_observed
from pairloom.persist.scopes import scope_of
from pairloom.persist.walk import SIZES, Scope, Walk
from pairloom.race import Race
from pairloom.race.entrant import Entrant
from pairloom.race.evidence import RAW
from pairloom.stream import Observer, RecentScores
from pairloom.systems.adadsg import StagedPairs

FULL, MOST_ENTRANTS = 10_000, 100
"""Standings and entrants of a race: more than any has."""

PAST = {"since": 0, "turn": None, "old": 0}
"""What a forest that has forgotten nothing would say of its past."""

ADDED_UP = 1e-6
"""How far two sums of the same weights may be apart, relative to them."""

OWN = (Learner, Grid, StepPath, RuleLearner, ExactLearner, ExactPath, Expansion, StagedPairs)


def numbers_in(flat: Flat) -> int:
    """The numbers of all arrays."""
    return sum(array.size for array in flat.arrays.values())


def check_labels(walk: Walk, path: str) -> Labels | None:
    """Take the labels of an estimator; None if there are none."""
    flat = walk.flat
    if flat.values.get(path, 0) is None:
        return walk.value(path, "none")  # type: ignore[no-any-return]
    walk.branch(path, "Labels")
    walk.anything(f"{path}.classes", Scope())
    walk.anything(f"{path}.first", Scope())
    classes, first = flat.arrays.get(f"{path}.classes"), flat.values.get(f"{path}.first")
    if classes is None:
        n = int(walk.kind(f"{path}.classes").removeprefix("objects "))
        classes = np.array([flat.values[f"{path}.classes.{i}"] for i in range(n)], dtype=object)
    if classes.ndim != 1 or first not in classes.tolist() or not (classes[1:] > classes[:-1]).all():
        raise walk.refuse(path, "must be different labels, in order")
    return Labels(classes.copy(), first)


def check_class_counts(walk: Walk, path: str, class_weight: Any, labels: Labels | None) -> None:
    """Take what was counted for ``class_weight="balanced"``: rows of classes that are known, and their sum."""
    check_class_weight(class_weight)
    if not is_balanced(class_weight) or labels is None:
        return  # and what is there all the same is not part of it
    n = len(labels.classes)
    walk.node(path, "ClassCounts", Scope({"C": max(2, n)}))
    values: Any = walk.flat.values
    mass, total = walk.flat.arrays[f"{path}.mass"], values[f"{path}.total"]
    if mass[n:].any() or not 0 < total < SIZES["MASS"] or not np.isclose(mass.sum(), total, rtol=ADDED_UP, atol=0.0):
        raise walk.refuse(path, "must be the rows of each class, and their sum")


def check_stream(walk: Walk, path: str, model: Model, observers: Sequence[Observer]) -> None:
    """Take the state of a stream."""
    walk.branch(path, "StreamState")
    dot = f"{path}." if path else ""
    t, d = (walk.value(f"{dot}{name}", "count") for name in ("t", "n_features"))
    if not 0 < d <= numbers_in(walk.flat):
        raise walk.refuse(f"{dot}n_features", "must be the number of columns")
    scored: Any = None
    if isinstance(model, Race):
        scope = _check_race(walk, f"{dot}learned", model, d, t)
        scored = walk.flat.values.get(f"{dot}learned.evaluated") if t >= next_evaluation(0) else t
    elif isinstance(model, OWN):
        scope = _check_learned(walk, f"{dot}learned", model, d, t)
        scored = walk.flat.values[f"{dot}learned.t"]
    else:
        scope = Scope({"d": d, "v": model.n_vectors, "t": t}, classes=model.pairs.n_groups)
        walk.anything(f"{dot}learned", scope)
    _check_kept(walk, f"{dot}kept", model, d, t, scope)
    check_observed(walk, f"{dot}observed", observers, scope, t, scored)
    walk.take(f"{dot}time", "finite?", scope, {})


def _check_learned(walk: Walk, path: str, model: Any, d: int, t: int) -> Scope:
    """Take what a model has learned; it has counted the same rows as its stream."""
    flat = walk.flat
    scope = scope_of(walk, model, d, t, numbers_in(flat))
    waiting = 0
    if isinstance(model, Grid):
        walk.node(path, "GridState", scope)
        if f"{path}.open" in flat.kinds:
            waiting = len(flat.arrays[f"{path}.open.y"])
        if t % model.block_rows != waiting:
            raise walk.refuse(f"{path}.open", f"must be the rows of a block of {model.block_rows}")
    else:
        walk.node(path, "State", scope)
    if flat.values[f"{path}.t"] != t - waiting:
        raise walk.refuse(f"{path}.t", f"must be {t - waiting}")
    _check_faded(walk, path, t - waiting, waiting)
    if f"{path}.phi.sample" in flat.kinds:
        _check_growth(walk, f"{path}.phi", getattr(model, "learner", model).features, t)
    _check_memory(walk, f"{path}.memory", t, scope)
    if f"{path}.lazy" in flat.kinds:
        columns, counts = (flat.arrays[f"{path}.lazy.{name}"] for name in ("columns", "counts"))
        rises, inside = columns[:, 1:] > columns[:, :-1], np.arange(1, columns.shape[1]) < counts[:, None]
        if (inside & ~rises).any():
            raise walk.refuse(f"{path}.lazy", "must have the columns of each point in order, each once")
    return scope


def _check_faded(walk: Walk, path: str, t: int, waiting: int) -> None:
    """What was forgotten is of the ``t`` rows that were learned, and what is to be, of those that are ``waiting``."""
    values: Any = walk.flat.values
    if not 0 <= values.get(f"{path}.since", 0.0) <= t:
        raise walk.refuse(f"{path}.since", f"must be some of {t} rows")
    faded = walk.flat.arrays.get(f"{path}.faded", np.zeros((0, 2)))
    rows, keep = faded[:, 0], faded[:, 1]
    whole = (rows == np.floor(rows)) & (rows >= 1) & (rows <= waiting)
    if not whole.all() or (np.diff(rows) < 0).any() or not ((keep > 0) & (keep <= 1)).all():
        raise walk.refuse(f"{path}.faded", f"must be of the {waiting} rows of an open block, in order")


def _check_growth(walk: Walk, path: str, features: Any, t: int) -> None:
    """A forest that goes on growing has seen all rows, and planted the trees that were due before the last of them."""
    values: Any = walk.flat.values
    planted, count = (values[f"{path}.{name}"] for name in ("planted", "sample.count"))
    if count != t:
        raise walk.refuse(f"{path}.sample.count", f"must be {t}")
    due = [features.next_planting(k) for k in (planted - 1, planted) if k >= 0]
    since, turn, old = (values.get(f"{path}.past.{name}", none) for name, none in PAST.items())
    age = t - since
    if not (0 <= since <= t and 0 <= old <= features.n_trees and (turn is None or turn >= planted)):
        raise walk.refuse(f"{path}.past", "must be the past of a forest that has forgotten")
    # A forest that has just forgotten may have grown a tree at its very age.
    if not (planted == 0 or due[0] < age + (turn is not None)) or due[-1] < age:
        raise walk.refuse(f"{path}.planted", f"must be the number of trees that {age} rows grow")


def _check_memory(walk: Walk, path: str, t: int, scope: Scope) -> None:
    """What holds between the arrays of a memory that was taken."""
    arrays = walk.flat.arrays
    if walk.kind(path) == "ClassMoments":
        grown = arrays.get(f"{path.removesuffix('memory')}phi.grown", np.asarray(0))
        filled = max(0, t - int(grown)) % scope.sizes["s"]
        if arrays[f"{path}.filled"][0] != filled:
            raise walk.refuse(f"{path}.filled", f"must be {filled}")
    if f"{path}.seats" in walk.flat.kinds:
        owner, slot = (arrays[f"{path}.seats.{name}"] for name in ("owner", "slot"))
        if ((slot >= 0) & (owner < 0)).any():
            raise walk.refuse(f"{path}.seats", "has seats that are filled and belong to nobody")


def _check_kept(walk: Walk, path: str, model: Model, d: int, t: int, scope: Scope) -> None:
    """Take the first rows, which there are while rules on data are open."""
    if path in walk.flat.values:
        walk.value(path, "none")
        return
    walk.branch(path, "Kept")
    rows = 0
    for batch in walk.items(f"{path}.batches", 1):
        rows += walk.node(batch, "Batch", scope)["_n"]
    if walk.value(f"{path}.count", "count") != rows or rows != t:
        raise walk.refuse(path, f"must be the first {t} rows")
    if not model.needs_data or t >= model.warm_rows(d):
        raise walk.refuse(path, "must not be there any more")


def _check_race(walk: Walk, path: str, race: Race, d: int, t: int) -> Scope:
    """Take a race: each entrant is one of its candidates, and has a stream of its own."""
    portfolio, descent = race.portfolio, race.portfolio.descent
    models = len(portfolio.steps.etas) + len(descent.steps) * len(descent.penalties)
    models += len(portfolio.exact.alphas) if portfolio.exact else 0
    if len(portfolio.forests) + len(portfolio.kernels) > MOST_ENTRANTS or models > FULL:
        raise ModelFileError("the portfolio in the file has too many candidates")
    v = race.n_vectors
    sizes = {"d": d, "v": v, "C": race.pairs.n_classes, "t": t}
    scope = Scope(sizes, {}, None, f"f{np.dtype(race.dtype).itemsize}")
    scope.classes, scope.nan = race.pairs.n_classes, race.takes_nan
    if walk.kind(path) == "FrozenState":
        return _check_frozen(walk, path, d, t, scope)
    walk.branch(path, "RaceState")
    counts = {name: walk.value(f"{path}.{name}", "count") for name in ("n_features", "t", "evaluated")}
    if counts["n_features"] != d or counts["t"] != t:
        raise walk.refuse(path, f"must have {t} rows of {d} columns")
    walk.take(f"{path}.since", "count?", scope, {})
    since: Any = walk.flat.values.get(f"{path}.since", 0)
    if since > t:
        raise walk.refuse(f"{path}.since", f"must be one of {t} rows")
    looked = counts["evaluated"]
    if not looked <= t < next_evaluation(looked) or (looked and next_evaluation(looked - 1) != looked):
        raise walk.refuse(f"{path}.evaluated", "must be the last row at which scores were looked at")
    entrants = _check_entrants(walk, f"{path}.entrants", race, d, t)
    coming = _check_entrants(walk, f"{path}.coming", race, d)
    counted = [len(one) for one in entrants]
    _check_standing(walk, path, race, t, entrants, coming)
    due = t >= next_evaluation(0)
    n_models = sum(counted) if due else sum(len(race.make(one)) for one in race.admitted(d))
    _check_evidence(walk, f"{path}.evidence", scope, n_models, race.pairs.targets)
    walk.take(f"{path}.counts", "f8 C 0:MASS", scope, {})
    _check_mixture(walk, f"{path}.mixture", scope, counted if due else [])
    _check_standings(walk, f"{path}.standings", scope, t)
    _check_first(walk, f"{path}.kept", race, d, t, scope)
    return scope


def _check_frozen(walk: Walk, path: str, d: int, t: int, scope: Scope) -> Scope:
    """Take a race that only predicts. Children come after their parent, so that a walk down a tree comes to an end."""
    walk.branch(path, "FrozenState")
    if [walk.value(f"{path}.{name}", "count") for name in ("n_features", "t")] != [d, t]:
        raise walk.refuse(path, f"must have {t} rows of {d} columns")
    walk.take(f"{path}.counts", "f8 C 0:MASS", scope, {})
    for item in walk.items(f"{path}.members", MOST_ENTRANTS):
        kind = walk.kind(item)
        if kind not in {"FrozenLinear", "FrozenKernel", "FrozenForest"}:
            raise walk.refuse(item, "is no member of a mixture")
        walk.node(item, kind, scope)
        if kind == "FrozenForest":
            yes, values = (walk.flat.arrays[f"{item}.{name}"] for name in ("yes", "values"))
            here = np.arange(yes.shape[1])
            leaf = yes == here
            if (yes < here).any() or (yes[~leaf] + 1 >= yes.shape[1]).any() or not np.isposinf(values[leaf]).all():
                raise walk.refuse(item, "must be trees whose children come after their parents")
    _check_standings(walk, f"{path}.standings", scope, t)
    return scope


def _check_mixture(walk: Walk, path: str, scope: Scope, models: list[int]) -> None:
    """Take the mixture of entrants with so many models each; those that have a say say it in numbers."""
    scope.sizes |= {"E": len(models), "M": sum(models)}
    walk.node(path, "Mixture", scope)
    weights, slopes, shifts = (walk.flat.arrays[f"{path}.{name}"] for name in ("weights", "slopes", "shifts"))
    said = np.repeat(weights > 0, models)
    if not np.isfinite(slopes[said]).all() or not np.isfinite(shifts[said]).all() or (models and not weights.any()):
        raise walk.refuse(path, "must be finite numbers for those that are in it")


def _check_standings(walk: Walk, path: str, scope: Scope, t: int) -> None:
    """Take the standings, which are in the order of their rows."""
    last = 0
    for item in walk.items(path, FULL):
        walk.node(item, "Standing", scope)
        row: Any = walk.flat.values[f"{item}.row"]
        if not last <= row <= t:
            raise walk.refuse(f"{item}.row", f"must be one of {t} rows, in order")
        last = row


def _check_entrants(walk: Walk, path: str, race: Race, d: int, t: int | None = None) -> list[Entrant]:
    """Take entrants, which have learned t rows, or if that is None some; each with what learns, which its name says."""
    where, found = walk.items(path, MOST_ENTRANTS), []
    for item in where:
        walk.branch(item, "Entrant")
        name = walk.value(f"{item}.name", "text")
        stage, large = (walk.value(f"{item}.{field}", "count") for field in ("stage", "large"))
        known = {one.name: one for one in race.admitted(d)}.get(name)
        if known is None or stage not in {*REFITS, 0} or (stage > 0) != known.refits:
            raise walk.refuse(item, "is no entrant")
        if large and large not in known.larger(d):
            raise walk.refuse(item, "has no such size")
        entrant = Entrant(name, stage, large, None)  # type: ignore[arg-type]
        entrant.runner = race.runner(entrant, d)
        check_stream(walk, f"{item}.stream", entrant.model, (RecentScores(),))
        rows, columns = (walk.flat.values[f"{item}.stream.{field}"] for field in ("t", "n_features"))
        if columns != d or (t is not None and rows != t):
            raise walk.refuse(f"{item}.stream", f"must have {t} rows of {d} columns")
        found.append(entrant)
    return found


def _check_standing(walk: Walk, path: str, race: Race, t: int, entrants: list[Entrant], coming: list[Entrant]) -> None:
    """Each candidate takes part once, and what is made at a row has caught up as far as it should by row t."""
    for name, own in (("entrants", entrants), ("coming", coming)):
        if len({one.name for one in own}) < len(own):
            raise walk.refuse(f"{path}.{name}", "names a candidate twice")
    if not entrants and t >= next_evaluation(0):
        raise walk.refuse(f"{path}.entrants", "must not be empty")
    row = refit_before(t)
    end = REFITS.get(row, 0)
    if coming and (t >= end or f"{path}.kept" in walk.flat.values):
        raise walk.refuse(f"{path}.coming", "must have taken over")
    last = t - t % CATCH_UP
    for k, one in enumerate(coming):
        rows = walk.flat.values[f"{path}.coming.{k}.stream.t"]
        if one.stage != row or rows != end * (last - row) // (end - row):
            raise walk.refuse(f"{path}.coming.{k}", f"must have caught up by row {t}")


def _check_first(walk: Walk, path: str, race: Race, d: int, t: int, scope: Scope) -> None:
    """Take the first rows of a race, which there are while rules on data may be fixed anew."""
    if path in walk.flat.values:
        walk.value(path, "none")
        return
    walk.branch(path, "Kept")
    rows = 0
    for batch in walk.items(f"{path}.batches", 1):
        rows += walk.node(batch, "Batch", scope)["_n"]
    if walk.value(f"{path}.count", "count") != rows or rows != t or t >= max(REFITS.values()):
        raise walk.refuse(path, f"must be the first {t} rows")


def _check_evidence(walk: Walk, path: str, scope: Scope, n_models: int, targets: Array) -> None:
    """Take the windows of a race of so many models."""
    walk.branch(path, "Evidence")
    scope.sizes["M"] = n_models
    walk.take(f"{path}.targets", "f8 v", scope, {})
    if not np.array_equal(walk.flat.arrays[f"{path}.targets"], targets):
        raise walk.refuse(f"{path}.targets", f"must be {targets.tolist()}")
    walk.take(f"{path}.areas", "f8 _n M 0:2", scope, {})
    closed, areas = walk.value(f"{path}.closed", "count"), walk.flat.arrays[f"{path}.areas"]
    windows = walk.kind(f"{path}.raw")
    if walk.value(f"{path}.n_models", "count") != n_models or windows != f"list {len(areas)}":
        raise walk.refuse(path, f"must be of {n_models} models, with the areas of each window")
    if len(areas) != min(closed, RAW):
        raise walk.refuse(f"{path}.closed", f"must be the number of windows, of which the newest {RAW} are there")
    for name, most in (("open", 1), ("raw", RAW)):
        for item in walk.items(f"{path}.{name}", most):
            walk.node(item, "ScoredWindow", scope)
