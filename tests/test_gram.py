"""The engine that learns from inner products with the slots: which models it learns, agreement, chunks, files."""

from dataclasses import replace

import numpy as np
import pytest

import pairloom
from pairloom import Learner, Stream
from pairloom.base.products import ROWS, products
from pairloom.base.tree import flatten, unflatten
from pairloom.engines import fused, gram
from pairloom.features import Gaussian, Identity, RandomFourier
from pairloom.losses import Hinge, Logistic, Square
from pairloom.memory import Latest, Reservoir, RSx, Strata
from pairloom.memory.strata import WIDE
from pairloom.pairs import OppositeClass, Order
from pairloom.steps import L2, Constant, ElasticNet, Sqrt

ENGINES = {"gram": gram, "fused": fused, "reference": "reference"}

LEARNERS = {
    "wide strata": Learner(
        RandomFourier(WIDE, Gaussian(0.2)), memory=Strata(0.2, 8, centroid_step=0.3), step=Constant(0.3), seed=0
    ),
    "strata": Learner(RandomFourier(200, Gaussian(0.2)), memory=Strata(0.2, 8), step=Constant(0.3), seed=0),
    "strata in input space": Learner(
        RandomFourier(64, Gaussian("median"), scale="standard"), memory=Strata("auto", 6, cluster_in="input"), seed=0
    ),
    "fades quickly": Learner(
        RandomFourier(40, Gaussian(0.2)),
        memory=Reservoir(5),
        penalty=L2(1.5),
        step=Constant(0.3),
        loss=Logistic(),
        seed=1,
    ),
    "several slots per row": Learner(
        RandomFourier(64, Gaussian(0.2)), Order(), memory=RSx(7), step=Sqrt(0.5), loss=Hinge(), seed=2
    ),
    "three classes": Learner(
        RandomFourier(80, Gaussian(0.2)), OppositeClass(3), memory=Strata(0.3, 5, "reservoir"), seed=3, dtype="float64"
    ),
    "newest row": Learner(RandomFourier(30, Gaussian(0.2)), memory=Latest("opposite"), seed=4, dtype="float64"),
}


def rows(n: int = 300, n_classes: int = 2) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, some of them equal, their labels, and weights, some of which need several steps."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, 6))
    X[rng.integers(n, size=n // 4)] = X[0]
    y = np.digitize(X[:, 0] + 0.5 * X[:, 1] ** 2, [1.0, 2.0][: n_classes - 1])
    weight = rng.choice([0.5, 1.0, 2.0, 40.0], p=[0.1, 0.7, 0.15, 0.05], size=n)
    return X, y.astype(float), weight


@pytest.fixture(params=LEARNERS)
def learner(request: pytest.FixtureRequest) -> Learner:
    return LEARNERS[request.param]


def learned(learner: Learner, *sizes: int) -> Stream:
    """Return a stream that has learned the rows in chunks, repeating these sizes."""
    X, y, weight = rows(n_classes=learner.pairs.n_groups or 2)
    stream, at, k = Stream(learner), 0, 0
    while at < len(X):
        end = at + sizes[k % len(sizes)]
        stream.partial_fit(X[at:end], y[at:end], weight[at:end])
        at, k = end, k + 1
    return stream


@pytest.mark.filterwarnings("ignore::pairloom.stream.stream.StabilityWarning")
def test_engines_agree(learner):
    by_name = {name: learned(replace(learner, engine=engine), 300) for name, engine in ENGINES.items()}
    assert by_name["gram"].learned.combination is not None
    tolerance = {"float32": 3e-4, "float64": 1e-9}[learner.dtype]
    expected = by_name.pop("reference")
    for name, stream in by_name.items():
        np.testing.assert_allclose(stream.coef, expected.coef, atol=tolerance, rtol=0, err_msg=name)
        for one, other in zip(stream.recent(), expected.recent(), strict=True):
            np.testing.assert_allclose(one, other, atol=tolerance, rtol=1e-3, err_msg=name)
        np.testing.assert_allclose(stream.learned.tally, expected.learned.tally, rtol=3e-3, atol=1e-3, err_msg=name)


@pytest.mark.filterwarnings("ignore::pairloom.stream.stream.StabilityWarning")
@pytest.mark.parametrize("sizes", [(1,), (3, 4, 1), (2, 5, 64), (67,)], ids=str)
def test_chunks_give_the_same_bits(learner, sizes):
    whole, parts = flatten(learned(learner, 300).state), flatten(learned(learner, *sizes).state)
    assert whole.values == parts.values
    for path, array in whole.arrays.items():
        np.testing.assert_array_equal(parts.arrays[path], array, err_msg=path)
    assert "learned.combination.gram" in whole.arrays


def test_a_combination_equals_its_parts():
    stream = learned(LEARNERS["strata"], 300)
    state, own = stream.learned, stream.learned.combination
    points = state.memory.slots.points
    np.testing.assert_allclose(own.gram, points @ points.T, atol=1e-5)
    np.testing.assert_allclose(own.scores, state.w @ points.T, atol=1e-5)
    np.testing.assert_allclose(own.factor[:, None] * (own.base + own.coef @ points), state.w, atol=1e-5)
    assert np.abs(own.coef).max() > 0


def test_products_do_not_depend_on_the_other_rows_and_points():
    rng = np.random.default_rng(0)
    Z, points = rng.normal(size=(9, 203)).astype("f"), rng.normal(size=(11, 203)).astype("f")
    order, every = np.arange(9), np.arange(11)
    one, four, few = (np.zeros((ROWS, 11), "f") for _ in range(3))
    for i in range(9):
        products(Z, order, i, i, points, every, 11, one)
        np.testing.assert_allclose(one[0], points @ Z[i], rtol=1e-4, atol=1e-4)
        for place in range(min(ROWS, i + 1)):
            products(Z, order, i - place, 8, points, every, 11, four)
            products(Z, order, i - place, 8, points, np.array([7, 2, 9]), 3, few)
            np.testing.assert_array_equal(four[place], one[0])
            np.testing.assert_array_equal(few[place, [7, 2, 9]], one[0, [7, 2, 9]])


def test_files_continue_with_the_same_bits(tmp_path):
    X, y, weight = rows()
    stream = Stream(LEARNERS["strata"]).partial_fit(X[:101], y[:101], weight[:101])
    pairloom.save(stream, tmp_path / "half.pairloom")
    again = pairloom.load(tmp_path / "half.pairloom")
    for one in (stream, again):
        one.partial_fit(X[101:], y[101:], weight[101:])
    np.testing.assert_array_equal(again.coef, stream.coef)


def test_a_state_of_an_older_version_continues():
    X, y, weight = rows()
    old = Stream(replace(LEARNERS["strata"], engine=fused)).partial_fit(X[:101], y[:101], weight[:101])
    flat = flatten(old.state)
    assert not any("combination" in path for path in flat.kinds)
    new = Stream(LEARNERS["strata"])
    new.resume(unflatten(flat))
    for one in (old, new):
        one.partial_fit(X[101:], y[101:], weight[101:])
    assert new.learned.combination is not None
    np.testing.assert_allclose(new.coef, old.coef, atol=1e-4)


@pytest.mark.filterwarnings("ignore::pairloom.stream.stream.StabilityWarning")
@pytest.mark.parametrize(
    "change",
    [
        {"average": "poly"}, {"penalty": ElasticNet(0.1, 0.1)}, {"memory": Strata(0.2, 8, "centroid")},
        {"memory": Reservoir(60)}, {"features": Identity()},
    ],
    ids=["averages", "thresholds", "means", "many slots", "few features"],
)  # fmt: skip
def test_other_models_are_left_to_the_fused_engine(change):
    stream = learned(replace(LEARNERS["strata"], loss=Square(), **change), 300)
    assert stream.learned.combination is None


def test_csr_rows_end_a_combination():
    from scipy.sparse import csr_array

    X, y, weight = rows()
    learner = replace(LEARNERS["strata"], memory=Strata(0.2, 8, cluster_in="input"))
    stream = Stream(learner).partial_fit(X[:100], y[:100], weight[:100])
    assert stream.learned.combination is not None
    stream.partial_fit(csr_array(X[100:]), y[100:], weight[100:])
    assert stream.learned.combination is None
    dense = Stream(learner).partial_fit(X, y, weight)
    np.testing.assert_allclose(stream.coef, dense.coef, atol=1e-4)
