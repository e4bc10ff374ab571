"""PairwiseRanker and PairwiseRegressor: each guarantee to users, tested."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from pairloom.base.tree import nbytes
from pairloom.columns.newest import N_NEWEST
from pairloom.estimators import PairwiseRanker, PairwiseRegressor
from pairloom.memory import Latest, Reservoir, Strata, Window
from tests.conftest import STREAMS, examples, make_stream
from tests.generic import assert_only_the_seed_matters, assert_same

VARIANTS = {
    "ranker": (PairwiseRanker, {}),
    "regressor": (PairwiseRegressor, {}),
    "logistic, reservoir": (
        PairwiseRanker,
        {"loss": "logistic", "memory": Reservoir(10, by="joint"), "average": "last"},
    ),
    "float64, strata": (PairwiseRegressor, {"dtype": "float64", "memory": Strata(by="joint", normalization="history")}),
    "linear, one": (PairwiseRegressor, {"kernel": "linear", "eta": 0.001, "memory": Latest("previous"), "scale": None}),
    "reference": (PairwiseRanker, {"engine": "reference", "memory": Window(5)}),
}


@pytest.fixture(params=VARIANTS, ids=str)
def make(request):
    kind, parameters = VARIANTS[request.param]
    return lambda **changes: kind(**{"random_state": 0, "n_components": 64, **parameters, **changes})


def stream(kind="random", n=330, d=5, seed=0):
    """Rows, real labels with ties, queries, and weights."""
    X, _ = make_stream(kind, n, d, seed)
    rng = np.random.default_rng(seed)
    y = np.round(np.square(X).sum(axis=1) + X[:, 0], 1)
    return X, y, np.sort(rng.integers(0, n // 8, n)), rng.choice([0.0, 0.5, 1.0, 3.0], n)


# 1. Any chunking gives the same model, bit for bit.


@pytest.mark.parametrize(
    ("make", "kind"),
    [(name, STREAMS[k % 4]) for k, name in enumerate(VARIANTS)],
    indirect=["make"],
)
def test_1_chunks_and_single_rows_give_the_same_bits(make, kind):
    X, y, queries, weight = stream(kind)
    whole = make().fit(X, y, weight, queries)
    one_by_one = make()
    for row in zip(X, y, weight, queries, strict=True):
        one_by_one.learn_one(*row)
    assert_same(whole, one_by_one)
    chunks = make()
    for rows in np.array_split(np.arange(len(y)), [1, 3, 70, 71, 256, 300]):
        chunks.partial_fit(X[rows], y[rows], weight[rows], queries[rows])
    assert_same(whole, chunks)
    np.testing.assert_array_equal(whole.predict(X), [one_by_one.score_one(x) for x in X])


@examples(15)
@given(
    cuts=st.lists(st.integers(1, 1499), max_size=6),
    seed=st.integers(0, 3),
    kind=st.sampled_from(["ranker", "regressor"]),
)
def test_1_any_cuts_of_a_longer_stream(cuts, seed, kind):
    X, y, queries, _ = stream(n=1500, seed=seed)
    names = [f"q{q}" for q in queries]
    whole, cut = (VARIANTS[kind][0](n_components=50, random_state=seed) for _ in range(2))
    whole.fit(X, y, groups=names)
    for rows in np.split(np.arange(1500), sorted(set(cuts))):
        cut.partial_fit(X[rows], y[rows], groups=[names[i] for i in rows])
    assert_same(whole, cut)


def test_1_the_container_does_not_matter(make):
    X, y, _, _ = stream()
    X = X.astype(np.float32)
    expected = make().fit(X, y)
    readonly = X.astype(np.float64)
    readonly.flags.writeable = False
    for rows, labels in ((readonly, list(y)), (np.asfortranarray(X), pd.Series(y)), (X.tolist(), y.astype(object))):
        assert_same(expected, make().fit(rows, labels))
    sparse = make().fit(csr_array(X), y)
    np.testing.assert_allclose(sparse.predict(csr_array(X)), expected.predict(X), rtol=1e-3, atol=1e-3)


# 2. A single label for many rows, also from the start.


def test_2_constant_labels_teach_nothing_and_do_no_harm(make):
    X, y, _, _ = stream()
    model = make().partial_fit(X[:50], np.full(50, 3))
    assert not model.coef_.any()
    expected = 3.0 if isinstance(model, PairwiseRegressor) else 0.0
    np.testing.assert_array_equal(model.predict(X), expected)
    assert np.isfinite(model.partial_fit(X, y).predict(X)).all()
    assert model.coef_.any()


def test_2_rows_of_weight_0_are_skipped_exactly(make):
    X, y, queries, weight = stream()
    keep = weight > 0
    a, b = make().fit(X, y, weight, queries), make().fit(X[keep], y[keep], weight[keep], queries[keep])
    assert_same(a, b)
    before = pickle.dumps(a)
    a.partial_fit(X, y, np.zeros(len(y))).learn_one(X[0], y[0], 0)
    assert pickle.dumps(a) == before
    unborn = make().partial_fit(X, y, np.zeros(len(y))).learn_one(X[0], y[0], 0.0)
    assert not hasattr(unborn, "stream_")
    late = make(random_state=np.random.default_rng(0)).learn_one(X[0], y[0], 0).fit(X, y)
    assert_same(late, make(random_state=np.random.default_rng(0)).fit(X, y))
    with pytest.raises(ValueError, match="all sample weights are zero"):
        make().fit(X, y, np.zeros(len(y)))


# 3. Predicting changes nothing.


def test_3_predicting_changes_nothing(make):
    X, y, _, _ = stream(n=100)
    model = make()
    assert model.score_one(X[0]) == 0.0
    for t in range(1, 101, 9):
        model.partial_fit(X[t - 1 : t + 8], y[t - 1 : t + 8])
        before = pickle.dumps(model)
        assert np.isfinite(model.predict(X)).all()
        assert np.isfinite(model.pair_score(X, X[::-1])).all()
        model.score_one(X[0])
        model.score(X, y)
        repr(model)
        assert model.nbytes_ > 0
        assert pickle.dumps(model) == before


def test_3_from_many_threads(make):
    X, y, _, _ = stream()
    model = make().fit(X, y)
    with ThreadPoolExecutor(4) as threads:
        for scores in threads.map(model.predict, [X] * 40):
            np.testing.assert_array_equal(scores, model.predict(X))


# 4. Bad input raises ValueError naming the place, and the model is exactly as before.


@pytest.mark.parametrize("seen", [0, 1, 300, 1100])
@pytest.mark.parametrize("kind", [PairwiseRanker, PairwiseRegressor])
def test_4_a_bad_batch_leaves_no_trace(kind, seen):
    X, y, queries, weight = stream(n=1200)
    model = kind(n_components=32, random_state=0)
    if seen:
        model.partial_fit(X[:seen], y[:seen])
    before = pickle.dumps(model)
    nan, infinite, huge, late = X[:20].copy(), X[:20].copy(), X[:20].copy(), y[:20].copy()
    nan[3, 1], infinite[0, 4], huge[7, 2], late[6] = np.nan, -np.inf, 1e300, np.inf
    X, y, queries, weight = X[:20], y[:20], queries[:20], weight[:20].copy()
    weight[2] = -1
    for message, batch in {
        "NaN at row 3, column 1": (nan, y),
        "infinity at row 0, column 4": (infinite, y),
        "row 7, column 2": (huge, y),
        "y contains infinity at row 6": (X, late),
        "y contains NaN at row 2": (X, np.where(np.arange(20) == 2, np.nan, y)),
        "y must contain numbers, got 'a' at row 0": (X, ["a"] * 20),
        "y should be a 1d array": (X, np.ones((20, 2))),
        "requires y to be passed": (X, None),
        "inconsistent numbers of samples": (X, y[:-1]),
        "sample_weight must be finite and not negative; it is -1.0 at row 2": (X, y, weight),
        "groups has 19 entries, but X has 20 rows": (X, y, None, queries[:-1]),
        "got 0.5 at row 0": (X, y, None, queries + 0.5),
        "Expected 2D array": (X[0], y[:1]),
        "minimum of 1 is required": (X[:0], y[:0]),
        "X must contain numbers, got the text [ab]": (np.where(X > 0, "a", "b"), y),
        **({f"X has 4 features, but {kind.__name__} is expecting 5": (X[:, :4], y)} if seen else {}),
    }.items():
        with pytest.raises(ValueError, match=message):
            model.partial_fit(*batch)
        assert pickle.dumps(model) == before
        with pytest.raises(ValueError, match=message if "features" not in message else "."):
            model.fit(*(batch if "features" not in message else (nan, y)))
        assert pickle.dumps(model) == before


@pytest.mark.parametrize("seen", [0, 200])
def test_4_a_bad_single_row_leaves_no_trace(make, seen):
    model = make().fit(*stream()[:2]) if seen else make()
    before, good = pickle.dumps(model), [1, 2, 3, 4, 5]
    for arguments, message in (
        (([1, 2, np.nan, 4, 5], 1.0), "NaN at row 0, column 2"),
        (([[1, 2, 3, 4, 5]], 1.0), "expected one row of"),
        (([1, 2, 3, 4, "x"], 1.0), "must contain numbers only"),
        ((good, "1"), "y must be one number, got '1'"),
        ((good, [1.0]), "y must be one number"),
        ((good, None), "y must be one number"),
        ((good, np.nan), "y contains NaN at row 0"),
        ((good, 1.0, -1.0), "sample_weight must be finite and not negative"),
        ((good, 1.0, 1.0, 0.5), "groups must be integers or text; got 0.5"),
        *(
            ((([1, 2, 3, 4], 1.0), "expected one row of 5 values"), (({"a": 1}, 1.0), "without column names"))
            if seen
            else ()
        ),
    ):
        with pytest.raises(ValueError, match=message):
            model.learn_one(*arguments)
        assert pickle.dumps(model) == before


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "poly"}, "kernel must be one of 'gaussian', .*'linear'; got 'poly'"),
        ({"loss": "log"}, "loss must be one of 'square', 'hinge', 'squared_hinge', 'logistic'; got 'log'"),
        ({"eta": -1}, "eta must be a number above 0; got -1"),
        ({"dtype": "float16"}, "dtype must be one of"),
        ({"memory": 64}, r"memory must be a memory, such as Window\(64\), or None; got 64"),
        ({"memory": Strata()}, "use a memory that mixes them"),
        ({"features": "fourier"}, "features must be a feature map"),
        ({"random_state": "x"}, "random_state must be"),
    ],
)
def test_4_bad_parameters_are_named_and_leave_no_trace(parameters, message):
    for make in (PairwiseRanker, PairwiseRegressor):
        if "loss" in parameters and make is PairwiseRegressor:
            continue
        model = make(**parameters)
        with pytest.raises(ValueError, match=message):
            model.fit(*make_stream("random", 50, 3))
        with pytest.raises(ValueError, match=message):
            model.learn_one([1.0, 2.0], 0)
        assert not [name for name in vars(model) if name.endswith("_")]


# 5. Memory does not grow with the stream.


def test_5_bytes_are_the_formula_and_flat():
    d, D, size = 6, 64, 32
    X, y, _, _ = stream(n=20_000, d=d)
    model, sizes = PairwiseRanker(n_components=D, memory=Window(size), random_state=0), []
    for start in range(0, 20_000, 1000):
        rows = slice(start, start + 1000)
        # Every query is new: names are not kept.
        model.partial_fit(X[rows], y[rows], groups=[f"query {i // 5}" for i in range(start, start + 1000)])
        sizes.append(model.nbytes_)
    # Points, weights and average, frequencies with their offset and scaling, in float32; ...
    single = 4 * (size * D + 2 * D + d * D // 2 + D // 2 + 3 * d)
    # ... labels, queries and mass, recent scores, labels and weights, the tally, the width, the row count.
    double = 8 * (3 * size + 5 * 4096 + len(model.stream_.learned.tally) + 1 + 1)
    # The newest 32 rows with their numbers, and a count.
    newest = 8 * (N_NEWEST * (d + 1) + 1)
    assert sizes[1] == sizes[-1] == single + double + newest
    assert nbytes(model.stream_.state) == sizes[-1] - newest
    assert len(pickle.dumps(model)) < sizes[-1] + 10_000


# 6. Same seed, same rows: same bits; no global random state.


def test_6_the_global_generator_is_neither_read_nor_written(make):
    X, y, _, _ = stream()
    assert_only_the_seed_matters(make, X, y)


def test_6_fit_twice_and_copies_go_on_alike(make):
    X, y, _, _ = stream()
    model = make().fit(X, y)
    assert_same(model, make().fit(X[::-1], y[::-1]).fit(X, y))
    other = copy.deepcopy(model)
    other.partial_fit(X[:100], y[:100])
    assert (model.n_seen_, other.n_seen_) == (330, 430)
    assert_same(model.partial_fit(X[:100], y[:100]), other)
