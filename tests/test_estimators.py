"""PairwiseRanker and PairwiseRegressor: what they compute."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes, load_digits, make_friedman1
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import check_estimator

from pairloom import Learner, Stream
from pairloom.base.randomness import generator
from pairloom.estimators import PairwiseRanker, PairwiseRegressor, concordance
from pairloom.features import Gaussian, Identity, Laplace, OrthogonalFourier, RandomFourier
from pairloom.memory import Latest, Reservoir, Strata, Window
from pairloom.pairs import OppositeClass, Order
from pairloom.stream import StabilityWarning
from tests.conftest import examples, make_stream

BOTH = pytest.mark.parametrize("make", [PairwiseRanker, PairwiseRegressor])
EXEMPT = {f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")}
"""One pass depends on the order of the rows: scikit-learn exempts its own SGD from the same two checks."""


@pytest.mark.filterwarnings("ignore:Skipping check check_array_api_input")
@pytest.mark.parametrize("estimator", [PairwiseRanker(memory=Window(8), loss="logistic")], ids=repr)
def test_check_estimator(estimator):
    results = check_estimator(estimator, on_fail=None)
    assert {r["check_name"] for r in results if r["status"] == "failed"} <= EXEMPT
    skipped = {r["check_name"] for r in results if r["status"] == "skipped"}
    assert skipped <= {"check_array_api_input"}  # runs only where SCIPY_ARRAY_API is set
    assert len(results) > 45


@pytest.mark.parametrize("name", ["check_regressors_int", "check_regressor_data_not_an_array"])
def test_the_ranker_is_no_regressor_but_learns_as_one(name):
    assert PairwiseRanker().__sklearn_tags__().estimator_type is None
    getattr(estimator_checks, name)("PairwiseRanker", PairwiseRanker())


@BOTH
def test_no_tag_switches_checks_off(make):
    tags = make().__sklearn_tags__()
    assert not tags.no_validation
    assert not tags.non_deterministic
    assert tags.requires_fit
    assert tags.target_tags.required
    assert tags.regressor_tags is None or not tags.regressor_tags.poor_score


# Pairs.


@pytest.mark.parametrize(
    ("phi", "kernel", "exact"),
    [
        (RandomFourier, Gaussian(0.2), rbf_kernel),
        (OrthogonalFourier, Gaussian(0.2), rbf_kernel),
        (RandomFourier, Laplace(0.2), laplacian_kernel),
    ],
)
def test_pairwise_kernel_identity(phi, kernel, exact):
    """<r(x1) - r(x2), r(x1') - r(x2')> -> k(x1, x1') + k(x2, x2') - k(x1, x2') - k(x2, x1') as D grows."""
    X = np.random.default_rng(1).normal(size=(12, 4))
    K = exact(X, gamma=0.2)
    pairs = list(combinations(range(len(X)), 2))
    pairwise = np.array([[K[a, c] + K[b, d] - K[a, d] - K[b, c] for c, d in pairs] for a, b in pairs])
    errors = []
    for dim in (200, 20_000):
        feature_map = phi(dim, kernel)
        Z = feature_map.apply(feature_map.fix(4, None, generator(0)), X)
        R = np.array([Z[a] - Z[b] for a, b in pairs])
        errors.append(np.sqrt(np.square(R @ R.T - pairwise).mean()))
    assert errors[1] < 0.02
    assert errors[1] < 0.2 * errors[0]


@pytest.mark.parametrize(
    "memory", [Strata(by="joint", normalization="history"), Latest("previous", 5), Window(20)], ids=repr
)
@pytest.mark.parametrize("engine", ["fused", "reference"])
def test_order_with_two_labels_is_auc(memory, engine):
    X, y = make_stream("random", 400, 4)
    auc = Learner(RandomFourier(64, Gaussian("median")), OppositeClass(), memory=memory, engine=engine, seed=0)
    auc, order = Stream(auc).partial_fit(X, y), Stream(replace(auc, pairs=Order())).partial_fit(X, y)
    np.testing.assert_array_equal(auc.coef, order.coef)
    np.testing.assert_array_equal(auc.learned.tally, order.learned.tally)
    assert auc.coef.any()


def slow_steps(X, y, groups, size, eta, target):
    """w after one pass: the mean gradient over the same query's rows among the last ``size``, written out."""
    w, pairs = np.zeros(X.shape[1]), 0
    for t in range(len(y)):
        partners = [j for j in range(max(0, t - size), t) if groups[j] == groups[t] and target(y[t], y[j]) is not None]
        gradients = [2 * (w @ (X[t] - X[j]) - target(y[t], y[j])) * (X[t] - X[j]) for j in partners]
        if partners:
            w = w - eta * np.mean(gradients, axis=0)
            pairs += len(partners)
    return w, pairs


@pytest.mark.parametrize("engine", ["fused", "reference"])
@pytest.mark.parametrize("kind", ["together", "mixed"])
def test_only_pairs_inside_a_query_count(kind, engine):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), rng.integers(0, 4, 300)
    queries = np.sort(rng.integers(0, 30, 300)) if kind == "together" else rng.integers(0, 4, 300)
    plain = {"features": Identity(), "dtype": "float64", "average": "last", "alpha": 0.0, "eta": 0.02, "engine": engine}
    ranker = PairwiseRanker(loss="square", memory=Window(16), **plain).fit(X, y, groups=queries)
    w, pairs = slow_steps(X, y, queries, 16, 0.02, lambda a, b: None if a == b else np.sign(a - b))
    np.testing.assert_allclose(ranker.coef_, w, rtol=1e-10)
    assert ranker.n_pairs_ == pairs
    regressor = PairwiseRegressor(memory=Window(16), **plain).fit(X, y, groups=queries)
    w, pairs = slow_steps(X, y, queries, 16, 0.02, lambda a, b: a - b)
    np.testing.assert_allclose(regressor.coef_, w, rtol=1e-10)
    assert regressor.n_pairs_ == pairs


@BOTH
def test_what_all_labels_of_a_query_share_drops_out(make):
    rng = np.random.default_rng(0)
    X, y, queries = rng.normal(size=(200, 3)), rng.integers(0, 5, 200), np.arange(200) // 10
    a = make(random_state=0).fit(X, y, groups=queries)
    b = make(random_state=0).fit(X, y + rng.integers(-50, 50, 20)[queries], groups=queries)
    np.testing.assert_array_equal(a.coef_, b.coef_)
    assert not np.array_equal(a.coef_, make(random_state=0).fit(X, y).coef_)


def test_queries_are_named_by_numbers_or_text():
    rng = np.random.default_rng(0)
    X, y, queries = rng.normal(size=(60, 3)), rng.normal(size=60), np.arange(60) // 6
    fit = lambda groups: PairwiseRanker(random_state=0).fit(X, y, groups=groups).coef_  # noqa: E731
    names = np.array([f"query {q}" for q in queries])
    same = [
        queries - 3,
        queries.astype(float),
        queries.astype(np.uint64) + 2**63,
        names,
        names.astype(object),
        list(names),
    ]
    for groups in same:
        np.testing.assert_array_equal(fit(queries), fit(groups))
    for wrong, message in (
        (queries / 4, r"groups must be integers or text; got 0.25 at row 6"),
        (np.where(queries == 2, np.nan, queries), "got nan at row 12"),
        ([None] * 60, "got None at row 0"),
        (queries[:-1], "groups has 59 entries, but X has 60 rows"),
    ):
        with pytest.raises(ValueError, match=message):
            fit(wrong)


def test_the_ranker_learns_inside_queries_what_labels_across_them_hide():
    X, y = make_friedman1(3000, noise=0.5, random_state=0)
    queries = np.arange(2000) // 10
    shifted = y[:2000] + 30 * np.random.default_rng(0).normal(size=200)[queries]
    inside = PairwiseRanker(random_state=0).fit(X[:2000], shifted, groups=queries).score(X[2000:], y[2000:])
    assert inside > 0.88
    assert PairwiseRanker(random_state=0).fit(X[:2000], shifted).score(X[2000:], y[2000:]) < inside - 0.05


def test_a_reservoir_serves_long_runs_of_like_labels_better():
    X, y = load_digits(return_X_y=True)
    train, test = np.split(np.random.default_rng(0).permutation(len(y)), [1300])
    runs = np.array_split(train[np.argsort(y[train], kind="stable")], 13)
    train = np.concatenate([runs[i] for i in np.random.default_rng(1).permutation(13)])
    score = lambda memory: PairwiseRanker(memory=memory, random_state=0).fit(X[train], y[train]).score(X[test], y[test])  # noqa: E731
    assert score(Reservoir(64, by="joint")) > score(None) + 0.03


# Concordance.


def slow_concordance(y, s, weight, groups):
    right = total = 0.0
    for i, j in combinations(range(len(y)), 2):
        if groups[i] == groups[j] and y[i] != y[j]:
            total += weight[i] * weight[j]
            right += weight[i] * weight[j] * (1 + np.sign(y[i] - y[j]) * np.sign(s[i] - s[j])) / 2
    return right / total if total else np.nan


@examples(200)
@given(data=st.data(), n=st.integers(1, 30))
def test_concordance_is_the_share_of_pairs_ranked_rightly(data, n):
    draw = lambda values: np.array(data.draw(st.lists(values, min_size=n, max_size=n)))  # noqa: E731
    y, s = draw(st.integers(0, 3)), draw(st.sampled_from([0.0, 0.1, 0.2, 1e9, -1e-9]))
    groups, weight = draw(st.sampled_from("abc")), draw(st.sampled_from([0.0, 0.5, 1.0, 7.0]))
    for w, g in ((weight, groups), (weight, None), (None, groups), (None, None)):
        expected = slow_concordance(y, s, np.ones(n) if w is None else w, np.zeros(n) if g is None else g)
        if np.isnan(expected):
            with pytest.warns(UndefinedMetricWarning, match="no pair of different labels"):
                assert np.isnan(concordance(y, s, sample_weight=w, groups=g))
        else:
            assert concordance(y, s, sample_weight=w, groups=g) == pytest.approx(expected, abs=1e-9)


def test_concordance_of_two_labels_is_auc_and_of_many_groups_is_exact():
    rng = np.random.default_rng(0)
    y, weight = rng.integers(0, 2, 5000), rng.random(5000)
    s = (y + 2 * rng.normal(size=5000)).round(1)
    assert concordance(y, s) == pytest.approx(roc_auc_score(y, s), rel=1e-12)
    expected = roc_auc_score(y, s, sample_weight=weight)
    assert concordance(y, s, sample_weight=weight) == pytest.approx(expected, rel=1e-12)
    assert concordance(np.tile([0, 1], 50_000), np.tile([0, 1], 50_000), groups=np.arange(100_000) // 2) == 1.0
    with pytest.raises(ValueError, match="y_score contains NaN"):
        concordance(y, np.full(5000, np.nan))


def test_score_is_concordance():
    X, y = load_diabetes(return_X_y=True)
    queries, weight = np.arange(len(y)) // 20, np.linspace(0, 1, len(y))
    model = PairwiseRanker(random_state=0).fit(X, y)
    s = model.predict(X)
    assert model.score(X, y) == concordance(y, s)
    assert model.score(X, y, weight, queries) == concordance(y, s, sample_weight=weight, groups=queries)
    grades = (y > 140).astype(int)
    two = PairwiseRanker(random_state=0).fit(X, grades)
    assert two.score(X, grades) == pytest.approx(roc_auc_score(grades, two.predict(X)), rel=1e-12)


# Differences.


def test_differences_recover_a_linear_function_up_to_a_constant():
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(5000, 4)), np.array([1.0, -2.0, 0.5, 0.0])
    model = PairwiseRegressor(kernel="linear", eta=0.02, scale=None, random_state=0).fit(
        X, X @ w + 7 + 0.1 * rng.normal(size=5000)
    )
    np.testing.assert_allclose(model.coef_, w, atol=0.02)
    assert model.intercept_ == pytest.approx(7, abs=0.05)


def test_differences_recover_a_smooth_function():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(6000, 2))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + 100
    model = PairwiseRegressor(eta=0.5, random_state=0).fit(X[:5000], y[:5000])
    truth = y[5000:5500] - y[5500:]
    assert r2_score(truth, model.pair_score(X[5000:5500], X[5500:])) > 0.95
    assert model.score(X[5000:], y[5000:]) > 0.95
    predicted = model.predict(X)
    np.testing.assert_allclose(model.pair_score(X[:9], X[9:18]), predicted[:9] - predicted[9:18], atol=1e-9)


def test_the_scale_of_y_does_not_matter():
    X, y = load_diabetes(return_X_y=True)
    one = PairwiseRegressor(random_state=0).fit(X, y)
    for c in (2.0**20, 2.0**-10):
        other = PairwiseRegressor(random_state=0).fit(X, c * y)
        np.testing.assert_array_equal(other.coef_, c * one.coef_)
        np.testing.assert_allclose(other.predict(X), c * one.predict(X), rtol=1e-12)
    far = PairwiseRegressor(random_state=0).fit(X, y + 1e9)
    np.testing.assert_array_equal(far.coef_, one.coef_)
    np.testing.assert_allclose(far.predict(X) - 1e9, one.predict(X), atol=1e-5)
    with pytest.raises(ValueError, match=r"y contains 1e\+13 at row 1, beyond 1e\+12: divide y by its scale"):
        one.fit(X[:2], [0, 1e13])


def test_the_intercept_is_the_mean_of_what_scores_left_over():
    X, y = load_diabetes(return_X_y=True)
    weight = np.linspace(0.5, 2, len(y))
    model = PairwiseRegressor(random_state=0).fit(X, y, sample_weight=weight)
    scores, labels, kept = model.stream_.state.observed["recent"].view()
    np.testing.assert_array_equal(labels, y)
    np.testing.assert_array_equal(kept, weight)
    assert model.intercept_ == pytest.approx(np.average(y - scores[:, 0], weights=weight))
    np.testing.assert_array_equal(model.predict(X), model.stream_.score(X) + model.intercept_)
    constant = PairwiseRegressor().fit(X[:50], np.full(50, 3.25))
    np.testing.assert_array_equal(constant.predict(X), 3.25)


@BOTH
def test_a_step_that_is_too_long_is_reported_where_it_was_asked_for(make):
    X, y = make_stream("random", 300, 3)
    for learn in (lambda m: m.fit(X, y), lambda m: [m.learn_one(*row) for row in zip(X, y, strict=True)]):
        with pytest.warns(StabilityWarning, match="eta=20 is too long") as caught:
            learn(make(eta=20.0, loss="square") if make is PairwiseRanker else make(eta=20.0))
        assert caught[0].filename == __file__
