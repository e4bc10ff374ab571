"""Merging: whatever keeps sums agrees with one pass over all rows; the rest is averaged, and says what it cannot do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.metrics import roc_auc_score

from pairloom import Learner, Stream
from pairloom import systems as all_systems
from pairloom.base.merging import RowCounts, added, joined_moments, pooled
from pairloom.base.tree import copy, same
from pairloom.features import Forest, Growing, Identity
from pairloom.memory import Latest
from pairloom.models import Boosting, Grid
from pairloom.models.exact import ExactPath
from pairloom.models.step_path import StepPath
from pairloom.steps import AdaGrad, Constant
from pairloom.systems import FPOGD, KOIL, OPAUC, SPAM, AllPairs, ExactAUC, FourierSGD
from tests.conftest import examples, make_stream

EXACT = {"rtol": 1e-10, "atol": 1e-10}

SUMS = {
    "ExactAUC": lambda: ExactAUC(dtype="float64", random_state=0).to_model(),
    "ExactAUC, standardised": lambda: ExactAUC(scale="standard", dtype="float64", random_state=0).to_model(),
    "ExactPath": lambda: ExactPath(dtype="float64", seed=0),
    "three classes": lambda: ExactAUC(dtype="float64", random_state=0).to_model(3),
}


def data(n=2400, d=5, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 10.0 * np.arange(d)
    y = (X[:, 0] + rng.normal(size=n) > 0.5).astype(float) + (X[:, 1] > 11 if classes == 3 else 0)
    return X, y if classes == 3 else 2 * y - 1, rng.exponential(size=n) + 0.1


def labels_of(model, y):
    return y if model.pairs.n_groups == 3 else np.sign(y)


def merged_tree(base, parts, rng):
    """Merge parts two by two, in a random order, until one is left."""
    parts = list(parts)
    while len(parts) > 1:
        rng.shuffle(parts)
        size = int(rng.integers(2, len(parts) + 1))
        parts = [base.merge(parts[:size]), *parts[size:]]
    return parts[0]


@pytest.mark.parametrize("name", SUMS)
@given(seed=st.integers(0, 10**6))
@examples(6)
def test_any_tree_of_merges_of_sums_agrees_with_one_pass(name, seed):
    """Shards of any size, an empty one among them, weights, and any order of the merges."""
    model, rng = SUMS[name](), np.random.default_rng(seed)
    X, y, w = data(classes=3 if "three" in name else 2, seed=seed)
    start = max(model.warm_rows, int(rng.integers(1, 600)))
    base = Stream(model).partial_fit(X[:start], y[:start], w[:start])
    cuts = np.sort(rng.integers(start, len(X), 5))
    bounds = [start, *cuts, cuts[-1], len(X)]
    parts = base.fork(len(bounds) - 1)
    for part, a, b in zip(parts, bounds, bounds[1:], strict=False):
        if b > a:
            part.partial_fit(X[a:b], y[a:b], w[a:b])
    whole, merged = Stream(model).partial_fit(X, y, w), merged_tree(base, parts, rng)
    mine, its = merged.learned.memory.folded(), whole.learned.memory.folded()
    assert merged.n_seen == whole.n_seen == len(X)
    for field in ("counts", "means"):
        np.testing.assert_allclose(getattr(mine, field), getattr(its, field), rtol=1e-10, atol=1e-8)
    np.testing.assert_allclose(*(np.tril(one.scatter) for one in (mine, its)), rtol=1e-10, atol=1e-8)
    np.testing.assert_allclose(merged.score(X), whole.score(X), rtol=1e-8, atol=1e-8)


def test_a_shard_of_one_class_adds_to_that_class_only():
    X, y, _ = data(600)
    model = SUMS["ExactAUC"]()
    base = Stream(model).partial_fit(X[:50], y[:50])
    rest = np.arange(50, 600)
    parts = base.fork(2)
    for part, label in zip(parts, (-1, 1), strict=True):
        own = rest[y[rest] == label]
        part.partial_fit(X[own], y[own])
    merged, whole = base.merge(parts), Stream(model).partial_fit(X, y)
    np.testing.assert_allclose(merged.coef, whole.coef, **EXACT)


@pytest.mark.parametrize("make", [lambda: OPAUC(dtype="float64"), lambda: AllPairs(dtype="float64", scale=None)])
def test_moments_of_rules_are_sums(make):
    X, y, w = data(900)
    model = make().set_params(random_state=0).to_model()
    base = Stream(model).partial_fit(X[:200], y[:200], w[:200])
    parts = [
        p.partial_fit(X[a:b], y[a:b], w[a:b]) for p, a, b in zip(base.fork(2), (200, 400), (400, 900), strict=True)
    ]
    mine, its = base.merge(parts).learned.memory, Stream(model).partial_fit(X, y, w).learned.memory
    for field in ("rows", "mass", "mean", "scatter"):
        np.testing.assert_allclose(getattr(mine, field), getattr(its, field), rtol=1e-10, atol=1e-8)


def test_sums_of_spam_do_not_depend_on_the_form_of_rows():
    X, y, _ = data(900)
    model = SPAM(eta=1e-3, dtype="float64", random_state=0).to_model()
    made = []
    for form in (np.asarray, csr_array):
        base = Stream(model).partial_fit(form(X[:200]), y[:200])
        parts = [
            p.partial_fit(form(X[a:b]), y[a:b]) for p, a, b in zip(base.fork(2), (200, 400), (400, 900), strict=True)
        ]
        merged = base.merge(parts)
        np.testing.assert_allclose(merged.learned.memory.sums.sum(axis=1)[0], X.sum(axis=0), **EXACT)
        made.append(merged.partial_fit(form(X[:100]), y[:100]).coef)
    np.testing.assert_allclose(*made, rtol=1e-8)


def merges():
    """Every system that can be merged, by name."""
    for name in all_systems.__all__:
        system = getattr(all_systems, name)
        for suffix, params in system.variants.items():
            model = system(random_state=0, **params)
            if not (model.needs_all_rows or name in ("KOIL", "ProjectronPP", "OPERA") or suffix == "r"):
                yield pytest.param(model, id=name + suffix)


@pytest.mark.parametrize("form", [np.asarray, csr_array], ids=["dense", "CSR"])
@pytest.mark.parametrize("system", list(merges()))
def test_every_system_that_learns_online_continues_after_a_merge(system, form):
    """It ranks about as well as one pass, leaves base and parts as they were, and can be learned further and saved."""
    X, y = make_stream("normal", 2000, 4)
    X = form(np.abs(X))
    model = system.to_model()
    base = Stream(model).partial_fit(X[:1200], y[:1200])
    parts = base.fork(3)
    for part, a in zip(parts, (1200, 1400, 1700), strict=True):
        part.partial_fit(X[a : a + 200], y[a : a + 200])
    before = [copy(one.state) for one in (base, *parts)]
    merged = base.merge(parts)
    assert all(same(one.state, was) for one, was in zip((base, *parts), before, strict=True))
    assert merged.n_seen == 1800
    again = copy(merged.state)
    assert same(again, base.merge(parts).state), "a merge is deterministic"
    merged.partial_fit(X[1800:], y[1800:])
    whole = Stream(model).partial_fit(X, y)
    area = [abs(roc_auc_score(y, one.score(X)) - 0.5) for one in (merged, whole)]
    assert area[0] > area[1] - 0.08


@pytest.mark.parametrize("name", ["KOIL", "ProjectronPP", "OPERA"])
def test_a_model_that_cannot_be_merged_names_itself(name):
    X, y = make_stream("normal", 300, 3)
    base = getattr(all_systems, name)(random_state=0).fit(X[:200], y[:200])
    with pytest.raises(TypeError, match=f"{name}: .* cannot be merged"):
        base.merge(base.fork(2))
    model = ExactAUC(half_life=100, random_state=0).fit(X, y)
    with pytest.raises(TypeError, match="half_life=None"):
        model.merge(model.fork(2))


def test_features_that_grow_by_themselves_cannot_be_merged():
    X, y = make_stream("normal", 1100, 3)
    base = Stream(Learner(Growing(64, block=32), memory=Latest(), seed=0)).partial_fit(X, y)
    with pytest.raises(TypeError, match=r"Growing.* cannot be merged"):
        base.merge(base.fork(2))


def test_weights_move_by_the_share_of_rows_or_of_squared_gradients():
    X, y = make_stream("normal", 400, 3)
    for step in (Constant(0.01), AdaGrad(0.1)):
        model = Learner(Identity(), memory=Latest(), step=step, dtype="float64", seed=0)
        base = Stream(model).partial_fit(X[:100], y[:100])
        one, two = base.fork(2)
        one.partial_fit(X[100:150], y[100:150])
        two.partial_fit(X[150:350], y[150:350])
        merged, start = base.merge([one, two]).learned, base.learned
        if step.per_coordinate:
            new = [part.learned.squares - start.squares for part in (one, two)]
            shares = [part / (new[0] + new[1]) for part in new]
            np.testing.assert_allclose(merged.squares, start.squares + new[0] + new[1])
        else:
            shares = [0.2, 0.8]
        moved = sum(share * (part.learned.w - start.w) for share, part in zip(shares, (one, two), strict=True))
        np.testing.assert_allclose(merged.w, start.w + moved)


def test_a_merge_of_one_part_is_that_part():
    """With one part, nothing is averaged: weights, sums and recent scores are those of the part."""
    X, y = make_stream("normal", 3000, 4)
    one = Learner(Forest(10, n_rows=500), memory=Latest(size=4), step=AdaGrad(0.1), dtype="float64", seed=0)
    grid = Grid([Learner(Identity(), step=Constant(eta), dtype="float64", seed=0) for eta in (0.01, 0.1)])
    for model in (one, grid, StepPath(one, [0.01, 0.1]), FPOGD(dtype="float64", random_state=0).to_model()):
        base = Stream(model).partial_fit(X[:1500], y[:1500])
        (part,) = base.fork(1)
        part.partial_fit(X[1500:], y[1500:])
        merged = base.merge([part])
        np.testing.assert_allclose(merged.score(X), part.score(X), rtol=1e-9, atol=1e-9)
        for mine, its in zip(merged.recent(), part.recent(), strict=True):
            np.testing.assert_array_equal(mine, its)


def test_boosted_trees_are_merged_by_leaf_and_grow_on_the_rows_of_all_parts():
    X, y = make_stream("normal", 6000, 4)
    model = Boosting(n_rows=1024, n_trees=20, seed=0)
    base = Stream(model).partial_fit(X[:3000], y[:3000])
    parts = base.fork(2)
    for k, part in enumerate(parts):
        part.partial_fit(X[3000 + 1500 * k :][:1500], y[3000 + 1500 * k :][:1500])
        assert same(part.learned.generations[0].trees.columns, base.learned.generations[0].trees.columns)
    merged = base.merge(parts)
    assert not same(merged.learned.generations[-1].trees.columns, base.learned.generations[-1].trees.columns)
    assert merged.learned.t == 6000
    assert merged.learned.came.sum() == 6000
    assert roc_auc_score(y, merged.score(X)) > roc_auc_score(y, base.score(X)) - 0.002
    with pytest.raises(ValueError, match=r"part .*base.fork\(n\)"):
        base.merge([copy_of(base).partial_fit(X[3000:], y[3000:])])


def copy_of(stream):
    made = Stream(stream.model)
    made.state = copy(stream.state)
    return made


def test_errors_name_the_part_and_the_difference():
    X, y = make_stream("normal", 400, 3)
    base = ExactAUC(random_state=0).fit(X, y)
    for other, message in (
        (ExactAUC(alpha=1.0, random_state=0).fit(X, y), "part 1 has alpha=1.0"),
        (ExactAUC(random_state=1).fit(X, y), "part 1 has random_state=1"),
        (ExactAUC(random_state=0).fit(X[:, :2], y), "part 1 has 2 columns"),
        (ExactAUC(random_state=0).fit(X, np.where(y > 0, "a", "b")), "part 1 has the classes"),
        (FourierSGD(random_state=0).fit(X, y), "part 1 is a FourierSGD"),
        (ExactAUC(random_state=0).fit(X[:200], y[:200]), "part 1 has learned 200 rows, fewer than the base"),
    ):
        with pytest.raises(ValueError, match=message):
            base.merge([base.fork(1)[0], other])
    with pytest.raises(ValueError, match="at least one part"):
        base.merge([])
    early = FPOGD(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="change until row 1,024"):
        early.merge(early.fork(2))
    other = copy_of(Stream(KOIL(random_state=0).to_model()).partial_fit(X, y))
    with pytest.raises(ValueError, match="part 0 has another model"):
        base.stream_.merge([other])


def test_other_features_are_an_error():
    X, y = make_stream("normal", 1500, 3)
    for params, what in (({"gamma": "median"}, "features"), ({}, "strata")):
        model = FPOGD(random_state=0, **params).to_model()
        one, two = (Stream(model).partial_fit(factor * X, y) for factor in (1.0, 2.0))
        with pytest.raises(ValueError, match=f"part 0 has other {what}"):
            one.merge([two])


def test_moments_without_the_base():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 3)) + np.array([0, 10, 100])
    of = lambda Z: (len(Z), Z.mean(axis=0), (Z - Z.mean(axis=0)).T @ (Z - Z.mean(axis=0)))  # noqa: E731
    start = rows[:20]
    parts = [of(np.vstack([start, rows[20:50]])), of(start), of(np.vstack([start, rows[50:]]))]
    for mine, its in zip(joined_moments(of(start), parts), of(rows), strict=True):
        np.testing.assert_allclose(mine, its, rtol=1e-12, atol=1e-9)


def test_pools_take_the_newest_rows_of_all_parts_in_turn():
    part, age = pooled(np.array([100, 300]), 40)
    assert np.bincount(part).tolist() == [10, 30]
    assert (np.bincount(part[:20]) == [5, 15]).all()
    for k, n in enumerate((10, 30)):
        assert age[part == k].tolist() == list(range(n))[::-1]
    assert added(5, [7, 9]) == 11
    assert RowCounts(5, (7, 9)).shares.tolist() == [1 / 3, 2 / 3]
