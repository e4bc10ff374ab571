"""Gradient boosting in one pass: agreement with the specification, the ring, bins, generations and forgetting."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

import pairloom
from pairloom import Stream
from pairloom.base.tree import copy, same
from pairloom.engines import boosting, boosting_reference
from pairloom.engines.bins import N_BINS, N_CUTS, OTHER
from pairloom.engines.splits import Growth, slopes_of, unpack
from pairloom.estimators import BoostingClassifier
from pairloom.models import Boosting
from pairloom.models.boosting_growth import ROWS_APART
from pairloom.models.boosting_state import Ring
from pairloom.pairs import OppositeClass
from pairloom.stream import Forgetting
from tests.covering import Configurations


def rows(n, d=4, seed=0, classes=2, share_missing=0.1):
    """Rows whose last column is a category, with missing values, and labels that depend on all of these."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[:, 1] = rng.integers(0, 4, n)
    X[:, -1] = rng.permutation(9)[rng.integers(0, 9, n)]
    signal = X[:, 0] ** 2 + (X[:, -1] % 3) + 0.3 * rng.normal(size=n)
    X[rng.random(X.shape) < share_missing] = np.nan
    y = np.digitize(signal, np.quantile(signal, np.linspace(0, 1, classes + 1)[1:-1] ** (1 / 3)))
    return X.astype(np.float32), y, np.where(rng.random(n) < 0.5, 1.0, rng.exponential(size=n))


OPTIONS = {
    "classes": [2, 3], "weighted": [False, True], "categories": [False, True], "missing": [0.0, 0.3],
    "n_rows": [64, 16384], "max_leaves": [2, 5], "min_rows": [1, 20], "alpha": [0.0, 1.0], "eta": [0.0, 0.1],
    "half_life": [None, 60.0], "dtype": ["float32", "float64"], "d": [4, 20],
}  # fmt: skip
CONFIGURATIONS = Configurations(OPTIONS).covering


@pytest.mark.parametrize("k", range(len(CONFIGURATIONS)))
def test_compiled_trees_are_those_of_the_specification(k):
    """Equal splits, since sums of integers are exact; values and scores up to rounding."""
    config = dict(CONFIGURATIONS[k])
    n = 130
    X, y, weight = rows(n, config.pop("d"), k, config["classes"], config.pop("missing"))
    weight = weight if config.pop("weighted") else None
    half_life = config.pop("half_life")
    hooks = [Forgetting(half_life)] if half_life else []
    categories = (X.shape[1] - 1,) if config.pop("categories") else ()
    pairs = OppositeClass(config.pop("classes"))
    model = Boosting(pairs=pairs, n_trees=6, learning_rate=0.5, categories=categories, seed=k, **config)
    ours, truth = (
        Stream(replace(model, engine=engine), hooks).partial_fit(X, y, weight) for engine in ("auto", "reference")
    )
    assert len(ours.learned.generations) > 0
    for one, other in zip(ours.learned.generations, truth.learned.generations, strict=True):
        for name in ("columns", "masks", "children", "grown"):
            np.testing.assert_array_equal(getattr(one.trees, name), getattr(other.trees, name), err_msg=name)
        for name in ("values", "squares"):
            expected = getattr(other.trees, name)
            np.testing.assert_allclose(getattr(one.trees, name), expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(ours.learned.curve.drops, truth.learned.curve.drops, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours.recent()[0], truth.recent()[0], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(ours.score(X), truth.score(X), rtol=1e-10, atol=1e-12)
    assert ours.learned.rng.bit_generator.state == truth.learned.rng.bit_generator.state


@pytest.mark.parametrize("classes", [2, 4])
def test_any_chunking_gives_the_same_bits(classes):
    X, y, weight = rows(900, 18, 1, classes)
    model = Boosting(pairs=OppositeClass(classes), n_rows=256, n_trees=20, categories=(17,), seed=0)
    whole, parts = (Stream(model, [Forgetting(200.0)]) for _ in range(2))
    whole.partial_fit(X, y, weight)
    for chunk in np.array_split(np.arange(900), [1, 2, 30, 33, 34, 257, 500, 777]):
        parts.partial_fit(X[chunk], y[chunk], weight[chunk])
        parts.state = copy(parts.state)  # what is derived is computed again
    assert same(whole.state, parts.state)


def test_it_ranks_as_well_as_a_batch_of_histogram_boosting():
    X, y, _ = rows(6000, 6, 2)
    ours = Stream(Boosting(seed=0, categories=(5,))).partial_fit(X[:5000], y[:5000])
    with threadpool_limits(1):  # its threads would wait for cores that run other tests
        batch = HistGradientBoostingClassifier(max_leaf_nodes=7, categorical_features=[5]).fit(X[:5000], y[:5000])
    area = roc_auc_score(y[5000:], ours.score(X[5000:]))
    assert area > roc_auc_score(y[5000:], batch.decision_function(X[5000:])) - 0.005
    assert abs(ours.auc()[0] - area) < 0.02


def test_the_ring_keeps_the_newest_rows_of_each_class():
    """With the quota, a class loses its oldest row only while it has more rows than its quota."""
    rng = np.random.default_rng(0)
    y = (rng.random(500) < 0.05).astype(float)
    ring, size = Ring.empty(40, 1, "float32"), 40
    ring.index(2)
    for part in np.array_split(np.arange(500), [7, 100, 101, 350]):
        ring.add(np.zeros((len(part), 1)), y[part], np.ones(len(part)), part[0])
        if part[0] == 100:
            ring.index(2)
    kept = list(range(size))
    for row in range(size, 500):
        sizes = {k: sum(y[r] == k for r in kept) for k in (0.0, 1.0)}
        kept.remove(min(r for r in kept if sizes[y[r]] > size // 4))
        kept.append(row)
    assert sorted(ring.row.tolist()) == kept
    np.testing.assert_array_equal(ring.y, y[ring.row])
    assert ring.y.sum() == 10


def test_bins_of_numbers_hold_equally_many_values_and_frequent_values_their_own():
    rng = np.random.default_rng(0)
    cuts, other = np.empty((2, N_CUTS), np.float32)
    columns = {
        "normal": rng.normal(size=4000), "few": rng.integers(0, 5, 4000), "one": np.ones(50), "none": np.zeros(0),
        "half zero": np.where(rng.random(4000) < 0.5, 0.0, rng.normal(size=4000)), "large": [-1e15, -1e14, 1e15],
    }  # fmt: skip
    for name, values in columns.items():
        values = np.sort(np.asarray(values, np.float32))
        for bins in (31, 63):
            made = boosting.fit_cuts(values, False, 2, bins, cuts)
            assert made == boosting_reference.fit_cuts(values, False, 2, bins, other), name
            np.testing.assert_array_equal(cuts, other, err_msg=name)
            assert made <= bins - 1
        out = np.empty((len(values), 1), np.uint8)
        boosting.bin_rows(values[:, None], np.zeros(1, bool), cuts[None], out)
        assert (np.diff(out[:, 0].astype(int)) >= 0).all()
        counts = np.bincount(out[:, 0], minlength=N_BINS)
        if name == "normal":
            assert counts[1:63].min() >= 55
            assert counts.max() <= 70
        if name == "half zero":
            zero = out[values == 0, 0]
            assert len(set(zero)) == 1
            assert abs(counts[zero[0]] - (values == 0).sum()) < 70


def test_rare_and_unseen_categories_share_a_bin():
    codes = np.sort(np.repeat(np.arange(100.0), np.arange(100) + 1)).astype(np.float32)
    cuts, other = np.empty((2, N_CUTS), np.float32)
    assert boosting.fit_cuts(codes, True, 2, 63, cuts) == boosting_reference.fit_cuts(codes, True, 2, 63, other) == 61
    np.testing.assert_array_equal(cuts, other)
    found = [boosting.bin_rows, boosting_reference.bin_rows]
    X = np.array([[99.0], [39.0], [38.0], [-1.0], [50.5], [1e9], [np.nan]], np.float32)
    for bin_rows in found:
        out = np.empty(X.shape, np.uint8)
        bin_rows(X, np.ones(1, bool), cuts[None], out)
        assert out[:, 0].tolist() == [61, 1, OTHER, OTHER, OTHER, OTHER, 0]


def test_bins_of_rows_and_columns_are_those_of_the_specification():
    rng, n, d = np.random.default_rng(0), 150, 9  # more than two blocks of rows
    X = np.round(rng.normal(size=(n, d)) * 5).astype(np.float32)
    X[:, 0] = rng.random(n) < 0.1
    X[rng.random((n, d)) < 0.1] = np.nan
    category = np.arange(d) % 3 == 1
    cuts = np.full((d, N_CUTS), np.inf, np.float32)
    for c, count in enumerate((1, 1, 0, 2, 7, 40, 62, 63, 63)):
        cuts[c, :count] = np.sort(rng.choice(np.arange(-40, 40), count, replace=False)) / 2
    cuts[0, 0] = 0.5
    right, out = np.zeros((2, n, d), np.uint8)
    boosting_reference.bin_rows(X, category, cuts, right)
    for start in range(0, n, 50):
        boosting.bin_rows(X[start : start + 50], category, cuts, out[start : start + 50])
    np.testing.assert_array_equal(out, right)
    columns = np.zeros((d, n), np.uint8)
    for start in (0, 4, 8):
        boosting.bin_columns(X, n, start, min(d, start + 4), category, cuts, columns)
    np.testing.assert_array_equal(columns, right.T)


def test_packed_sums_are_exact_and_their_rounding_is_unbiased():
    rng = np.random.default_rng(0)
    scores, positive, weight = rng.normal(size=16384) - 5, rng.random(16384) < 0.01, rng.exponential(size=16384)
    slopes = slopes_of(scores, positive.astype(float), weight, Growth(7, 20, 1.0, 0.1, 3, 1.0, 1.0))
    p = 1 / (1 + np.exp(-scores))
    np.testing.assert_allclose(slopes.g, (p - positive) * weight, rtol=1e-12, atol=1e-300)
    g, h, count = unpack(int(slopes.packed.sum()), slopes)
    assert count == 16384
    one_by_one = np.array([unpack(int(one), slopes) for one in slopes.packed])
    np.testing.assert_allclose([g, h, count], one_by_one.sum(axis=0), rtol=1e-12)
    error = one_by_one[:, :2] - np.column_stack([slopes.g, slopes.h])
    units = np.array([slopes.g_unit, slopes.h_unit])
    assert (np.abs(error) <= units * (1 + 1e-9)).all()
    assert (np.abs(error.sum(axis=0)) < 4 * units * np.sqrt(16384 / 4)).all()


def test_few_trees_are_grown_at_a_time():
    """A row waits for at most the trees due in 16 rows."""
    X, y, _ = rows(6000, 6, 3)
    stream = Stream(Boosting(seed=0)).partial_fit(X[:1], y[:1])
    most, before = 0, 0
    for start in range(1, 6000, 16):
        stream.partial_fit(X[start : start + 16], y[start : start + 16])
        growing = stream.learned.growing
        done = 0 if growing is None else growing.done
        most, before = max(most, done - before if done > before else 0), done
    assert most <= 1 + ROWS_APART / 0.8


def test_the_sum_is_cut_where_unseen_rows_are_predicted_best():
    """Labels without structure: few trees stay, and they become small; with structure, many."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 5))
    noise, clear = (
        Stream(Boosting(seed=0)).partial_fit(X, y).learned.generations[-1].trees
        for y in (rng.integers(0, 2, 4000), (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int))
    )
    assert noise.grown[0] <= 8
    assert clear.grown[0] >= 60
    assert noise.columns.shape[2] < clear.columns.shape[2]


def test_after_a_change_only_the_newest_rows_are_kept():
    X, y, _ = rows(6000, 4, 4)
    stream = Stream(Boosting(seed=0)).partial_fit(X[:4000], y[:4000])
    before, state = stream.score(X[5000:]), stream.learned
    stream.model.forget(state, 1100 / 16_000)
    assert state.ring.count == state.age == 1100
    np.testing.assert_array_equal(np.sort(state.ring.row[:1100]), np.arange(2900, 4000))
    np.testing.assert_array_equal(stream.score(X[5000:]), before)  # the old trees serve until new ones are there
    stream.partial_fit(X[4000:], 1 - y[4000:])
    assert roc_auc_score(1 - y[5000:], stream.score(X[5000:])) > 0.9


@pytest.mark.parametrize("half_life", [None, 300.0])
@pytest.mark.parametrize("n_rows", [16_384, 1500, 300])
def test_after_a_change_a_file_goes_on_to_the_last_bit(n_rows, half_life, tmp_path):
    """Also while the room for rows before the change is larger than that for the next period."""
    X, y, weight = rows(3300, 4, 6, classes=3)
    model = Boosting(pairs=OppositeClass(3), n_rows=n_rows, n_trees=6, categories=(3,), seed=0)
    kept, saved = (Stream(model, [Forgetting(half_life)] if half_life else []) for _ in range(2))
    cuts = [0, 1500, 1501, 1520, 1800, 2400, 2410, 3300]
    for start, end in pairwise(cuts):
        for one in (kept, saved):
            one.partial_fit(X[start:end], y[start:end], weight[start:end])
            if end in (1500, 1520, 2400):
                model.forget(one.learned, 0.1)
        pairloom.save(saved, tmp_path / "model")
        saved = pairloom.load(tmp_path / "model")
        assert same(saved.state, kept.state), end
    np.testing.assert_array_equal(saved.score(X), kept.score(X))


def test_a_generation_without_trees_can_be_saved(tmp_path):
    """A ring of 5 rows does not always hold two rows of two classes while a generation grows."""
    X, y, _ = rows(400, 4, 7)
    kept = Stream(Boosting(n_rows=5, n_trees=6, seed=0)).partial_fit(X[:1], y[:1])
    empty = 0
    for start in range(1, 400, 3):
        kept.partial_fit(X[start : start + 3], y[start : start + 3])
        if any(one.trees.grown.max() == 0 for one in kept.learned.generations):
            empty += 1
            pairloom.save(kept, tmp_path / "model")
            assert same(pairloom.load(tmp_path / "model").state, kept.state)
        if empty == 3:
            return
    raise AssertionError("every generation had trees")


def test_half_lives_reduce_the_weight_of_rows():
    X, y, _ = rows(300, 4, 5)
    stream = Stream(Boosting(seed=0)).partial_fit(X, y)
    ring, came = stream.learned.ring.weight.copy(), stream.learned.came.copy()
    stream.model.forget(stream.learned, 0.75)
    np.testing.assert_allclose(stream.learned.ring.weight[:300], 0.75 * ring[:300])
    np.testing.assert_allclose(stream.learned.came, 0.75 * came)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_rows": 16_385}, "n_rows must be at most 16,384"), ({"max_leaves": 1}, "max_leaves at least 2"),
        ({"n_trees": 0}, "n_trees must be an integer >= 1"), ({"learning_rate": 0.0}, "learning_rate must be a number"),
        ({"alpha": -1.0}, "alpha must be a number"), ({"pairs": None}, "pairs must be an instance of OppositeClass"),
    ],
)  # fmt: skip
def test_invalid_parameters_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        Boosting(**change)


def test_a_category_beyond_the_columns_is_an_error():
    with pytest.raises(ValueError, match=r"categories=\(7,\) names a column beyond the 4 columns"):
        Stream(Boosting(categories=(7,), seed=0)).partial_fit(*rows(20)[:2])


def test_trees_have_no_weight_vector():
    X, y, _ = rows(100, share_missing=0.0)
    model = BoostingClassifier(random_state=0).fit(X, y)
    with pytest.raises(AttributeError, match="no weight vector"):
        _ = model.coef_
