"""CSR rows in linear mode, and strata of CSR rows: the specification on the dense array, bits, memory, real data."""

import pickle
import tracemalloc
import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score

from pairloom import Learner, Stream
from pairloom.base.tree import flatten, nbytes
from pairloom.data import load_dataset
from pairloom.engines.state import LOSS, PAIRS, SKIPPED, STEPS, LazyModel
from pairloom.features import Gaussian, Identity, RandomFourier
from pairloom.memory import Latest, Reservoir, RSx, Strata, WholeHistory
from pairloom.memory.strata import StrataState
from pairloom.steps import L2, Ball, Constant, ElasticNet
from pairloom.stream import StabilityWarning
from pairloom.systems import FPOGD
from tests import test_agreement as dense
from tests.conftest import make_stream
from tests.covering import Configurations, every_pair, in_four_parts, soak_in_both_dtypes

pytestmark = pytest.mark.usefixtures("check_every_plan")

FEATURES = {
    "linear": Identity(),
    "standard": Identity(scale="standard"),
    "maxabs": Identity(scale="maxabs"),
    "minmax": Identity(scale="minmax"),
    "fourier": RandomFourier(30, Gaussian(0.1)),
    "fourier, rules": RandomFourier(64, Gaussian("median"), scale="standard"),
}

OPTIONS = dense.OPTIONS | {"features": ["linear", "linear", "linear", *list(FEATURES)[1:]]}

MEMORIES = {
    "several": Latest("previous", size=5),
    "reservoir": Reservoir(6),
    "joint reservoir": Reservoir(9, by="joint"),
    "rsx": RSx(8),
    "rsx by class": RSx(5, by="class"),
    "history": WholeHistory(300),
    "neyman": Strata(eps=4.0, max_strata=4, allocation="neyman", representative="reservoir", centroid_step="mean"),
    "neyman queues": Strata(eps=4.0, max_strata=3, allocation="neyman", slots=7),
}


def make_rows(kind, n, d=8, seed=7):
    """A stream with many zeros, and some rows that are all zero; ``duplicates`` keeps its few distinct rows."""
    X, y = make_stream(kind, n, d, seed)
    X[np.abs(X) < 0.6] = 0.0
    X[5::23] = 0.0
    return X, y


def rows_for(config, n=None):
    """Enough rows for slots to be reallocated, where allocation applies."""
    n = n or (300 if config["allocation"] == "neyman" else 130)
    X, y = make_rows(config["stream"], n)
    groups = None if config["groups"] is None else np.arange(n) // 7 % config["groups"]
    return X, dense.labels_for(config["pairs"], X, y), dense.weights_for(config["weights"], n), groups


def make_learner(config, **changes):
    learner = dense.make_learner(config | {"features": "linear"})
    return replace(learner, features=FEATURES[config["features"]], **changes)


def learn(stream, X, y, weight=None, groups=None, cuts=()):
    """The stream after rows in several calls."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StabilityWarning)
        for a, b in pairwise([0, *cuts, len(y)]):
            rest = (None if v is None else v[a:b] for v in (weight, groups))
            stream.partial_fit(X[a:b], y[a:b], *rest)
    return stream


def assert_agree(learner, rows, dtype, hooks=()):
    """CSR rows with the compiled loops, against dense rows with the specification."""
    X, *rest = rows
    learner = dense.comparable(learner, dtype)
    ours = learn(Stream(replace(learner, dtype=dtype, engine="fused"), hooks), sp.csr_array(X), *rest)
    truth = learn(Stream(replace(learner, dtype=dtype, engine="reference"), hooks), X, *rest)
    compare(ours, truth, 1e-10 if dtype == "float64" else 1e-4, learner.average)
    assert dense.close(ours.score(sp.csr_array(X)), truth.score(X), 1e-10 if dtype == "float64" else 1e-4)


def compare(our_stream, true_stream, tol, average):
    ours, truth = our_stream.learned, true_stream.learned
    np.testing.assert_array_equal(ours.memory.slots.mass, truth.memory.slots.mass)
    np.testing.assert_array_equal(ours.memory.slots.labels, truth.memory.slots.labels)
    np.testing.assert_array_equal(ours.memory.slots.queries, truth.memory.slots.queries)
    np.testing.assert_array_equal(ours.tally[[STEPS, PAIRS, SKIPPED]], truth.tally[[STEPS, PAIRS, SKIPPED]])
    assert ours.tally[LOSS] == pytest.approx(truth.tally[LOSS], rel=tol)
    assert dense.close(ours.w, truth.w, tol)
    assert average == "last" or dense.close(ours.w_bar, truth.w_bar, tol)
    assert dense.close_squares(ours, truth, tol)
    assert dense.close(ours.memory.slots.points, truth.memory.slots.points, tol)
    assert dense.close(our_stream.recent()[0], true_stream.recent()[0], tol)
    if isinstance(ours.memory, StrataState):
        np.testing.assert_array_equal(ours.memory.used, truth.memory.used)
        assert ours.memory.eps == pytest.approx(truth.memory.eps, rel=tol)
        assert dense.close(ours.memory.centers, truth.memory.centers, tol)
        assert dense.close(ours.memory.scatter, truth.memory.scatter, 10 * tol)


CONFIGURATIONS = Configurations(OPTIONS, dense.valid, seed=1)


@in_four_parts
def test_agrees_on_every_pair_of_options(part):
    for config in CONFIGURATIONS.covering[part::4]:
        assert_agree(make_learner(config), rows_for(config), "float64", dense.fading(config))


def test_agrees_in_float32():
    """On a sixth of the array: the same loops, compiled for another type. In float64 differences show more clearly."""
    for config in CONFIGURATIONS.covering[::6]:
        assert_agree(make_learner(config), rows_for(config), "float32", dense.fading(config))


@soak_in_both_dtypes
def test_agrees_on_thousands_of_random_options(seed, dtype):
    for config in CONFIGURATIONS.draws(150, seed=2000 + seed):
        assert_agree(make_learner(config), rows_for(config, 500), dtype)


@every_pair(memory=MEMORIES, stream=["random", "duplicates"], dtype=["float64", "float32"])
def test_agrees_with_every_memory(memory, stream, dtype):
    X, y = make_rows(stream, 300)
    learner = Learner(Identity(scale="standard"), memory=MEMORIES[memory], step=Constant(0.02), penalty=L2(0.1), seed=1)
    assert_agree(learner, (X, y, dense.weights_for("counts", 300)), dtype)


@pytest.mark.parametrize("average", ["last", "mean", "poly"])
@pytest.mark.parametrize("penalty", [L2(19.9), L2(1e6, "proximal"), Ball(1e-3), ElasticNet(5.0, l1=0.5)], ids=str)
def test_factors_that_vanish_are_multiplied_in(penalty, average):
    X, y = make_rows("random", 400)
    learner = Learner(
        Identity(scale="minmax"), memory=Strata(eps=2.0, centroid_step=0.9), step=Constant(0.05), penalty=penalty,
        average=average,
    )  # fmt: skip
    assert_agree(learner, (X, y), "float64")


def arrays(state):
    """All arrays of a state by path, the lists of the slots without their spare room."""
    rooms = ("lazy.columns", "lazy.values")
    return {path: array for path, array in flatten(state).arrays.items() if not path.endswith(rooms)}


CUTS = {"rows": range(1, 300), "pieces": [1, 2, 10, 11, 64, 65, 200, 257], "one cut": [150]}


@pytest.mark.parametrize(("seed", "dtype"), list(enumerate(["float64", "float32"] * 2)))
def test_calls_leave_no_trace_in_the_bits(seed, dtype):
    config = CONFIGURATIONS.draw(np.random.default_rng(100 + seed))
    X, *rest = rows_for(config, 300)
    whole = learn(Stream(make_learner(config, dtype=dtype)), sp.csr_array(X), *rest)
    for cuts in CUTS.values():
        cut = learn(Stream(make_learner(config, dtype=dtype)), sp.csr_array(X), *rest, cuts=cuts)
        ours, expected = arrays(cut.state), arrays(whole.state)
        assert ours.keys() == expected.keys()
        for path, array in ours.items():
            np.testing.assert_array_equal(array, expected[path], err_msg=path)
        np.testing.assert_array_equal(cut.score(sp.csr_array(X)), whole.score(sp.csr_array(X)))


def test_pickled_mid_stream_it_goes_on_as_if_nothing_had_happened():
    X, y = make_rows("random", 400)
    X = sp.csr_array(X)
    learner = Learner(Identity(scale="maxabs"), penalty=L2(0.3), average="poly", step=Constant(0.05), seed=0)
    whole = learn(Stream(learner), X, y)
    resumed = pickle.loads(pickle.dumps(learn(Stream(learner), X[:213], y[:213])))
    np.testing.assert_array_equal(learn(resumed, X[213:], y[213:]).coef, whole.coef)
    assert isinstance(whole.learned.lazy, LazyModel)


@every_pair(
    scale=[None, "standard", "maxabs", "minmax"], kernel=["linear", "gaussian"], cluster_in=["features", "input"]
)
def test_sparse_and_dense_rows_give_the_same_classifier(kernel, scale, cluster_in):
    X, y = make_rows("random", 1500)
    parameters = {"kernel": kernel, "scale": scale, "cluster_in": cluster_in, "eta": 0.02, "random_state": 0}
    from_dense = FPOGD(**parameters, n_components=64).fit(X[:1200], y[:1200])
    from_sparse = FPOGD(**parameters, n_components=64).fit(sp.csr_array(X[:1200]), y[:1200])
    for rows in (X[1200:], sp.csr_array(X[1200:]), sp.csc_matrix(X[1200:])):
        np.testing.assert_allclose(from_sparse.decision_function(rows), from_dense.decision_function(rows), atol=1e-3)
        np.testing.assert_array_equal(from_sparse.predict(rows), from_sparse.predict(X[1200:]))
    for a, b in zip(from_sparse.strata_sizes_, from_dense.strata_sizes_, strict=True):
        np.testing.assert_array_equal(a, b)


@every_pair(
    cluster_in=["features", "input"], features=["linear", "standard", "fourier, rules"], sparse_first=[True, False]
)
def test_sparse_and_dense_rows_may_alternate(features, cluster_in, sparse_first):
    X, y = make_rows("random", 1100)
    learner = Learner(
        FEATURES[features], memory=Strata(cluster_in=cluster_in), step=Constant(0.01), penalty=L2(0.1), dtype="float64",
        seed=0, average="mean",
    )  # fmt: skip
    truth, ours = learn(Stream(replace(learner, engine="reference")), X, y), Stream(learner)
    for k, (a, b) in enumerate([(0, 90), (90, 91), (91, 300), (300, 1050), (1050, 1100)]):
        rows = sp.csr_array(X[a:b]) if (k % 2 == 0) == sparse_first else X[a:b]
        learn(ours, rows, y[a:b])
    compare(ours, truth, 1e-10, "mean")


def test_once_sparse_a_dense_row_leaves_the_bits_of_a_sparse_one():
    X, y = make_rows("random", 300)
    whole = FPOGD(kernel="linear", scale="standard", random_state=0, eta=0.02).fit(sp.csr_array(X), y)
    mixed = FPOGD(kernel="linear", scale="standard", random_state=0, eta=0.02)
    mixed.partial_fit(sp.csr_array(X[:200]), y[:200], classes=[-1, 1])
    for x, label in zip(X[200:], y[200:], strict=True):
        mixed.learn_one(x, label)
    np.testing.assert_array_equal(mixed.coef_, whole.coef_)
    np.testing.assert_array_equal(mixed.decision_function(sp.csr_array(X)), whole.decision_function(sp.csr_array(X)))


def shuffled_entries(X, rng):
    """The same rows with unsorted entries, each stored in two parts, zeros included."""
    d = X.shape[1]
    columns = rng.permuted(np.tile(np.arange(2 * d), (len(X), 1)), axis=1)  # each twice: the first part and the rest
    values = np.take_along_axis(np.hstack([X * 0.25, X * 0.75]), columns, axis=1)
    return sp.csr_array((values.ravel(), (columns % d).ravel(), np.arange(len(X) + 1) * 2 * d), shape=X.shape)


@pytest.mark.parametrize("features", ["linear", "standard", "fourier, rules"])
def test_entries_in_disorder_or_in_parts_and_stored_zeros(features):
    X, y = make_rows("duplicates", 400)
    X = X.round(2)
    odd = shuffled_entries(X, np.random.default_rng(0))
    assert not odd.has_sorted_indices
    before = odd.copy()
    learner = Learner(
        FEATURES[features], memory=Strata(representative="centroid"), step=Constant(0.01), dtype="float64", seed=0
    )
    truth = learn(Stream(replace(learner, engine="reference")), X, y)
    compare(learn(Stream(learner), odd, y), truth, 1e-10, "last")
    compare(learn(Stream(replace(learner, engine="reference")), odd, y), truth, 1e-10, "last")
    np.testing.assert_array_equal(odd.indices, before.indices)
    np.testing.assert_array_equal(odd.data, before.data)


def test_a_column_out_of_range_is_an_error_and_nothing_is_learned():
    X, y = make_rows("random", 50)
    stream = Stream(Learner(Identity(), memory=Latest(), step=Constant(0.01))).partial_fit(sp.csr_array(X), y)
    bad, before = sp.csr_array(X), stream.coef.copy()
    bad.indices[3] = 1000
    with pytest.raises(ValueError, match="stores column 1000 at row 1"):
        stream.partial_fit(bad, y)
    np.testing.assert_array_equal(stream.coef, before)


def test_rows_without_any_stored_value():
    y = np.tile([1.0, -1.0], 20)
    stream = Stream(Learner(Identity(), step=Constant(0.1), seed=0)).partial_fit(sp.csr_array((40, 7)), y)
    assert not stream.coef.any()
    assert stream.learned.memory.slots.mass.sum() == 40
    np.testing.assert_array_equal(stream.score(sp.csr_array((3, 7))), 0.0)


@pytest.mark.parametrize("scale", [None, "standard"])
def test_many_columns_need_no_dense_rows(scale):
    n, d = 3000, 47_236
    X = sp.random_array((n, d), density=0.002, format="csr", rng=np.random.default_rng(0), dtype=np.float32)
    X.data = 0.5 + X.data / 2
    y = np.where(np.random.default_rng(1).random(n) < 0.2, 1, -1)
    FPOGD(kernel="linear", scale=scale, random_state=0, eta=1e-6).fit(X[:5], y[:5])  # compiled, imported
    tracemalloc.start()
    model = FPOGD(kernel="linear", scale=scale, random_state=0, eta=1e-6).fit(X, y)
    scores = model.decision_function(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.isfinite(scores).all()
    state = 32 * d * (4 + 4 + 8)  # points, centres, and the centres' lazy form, in float64
    assert state < nbytes(model.stream_.learned) < state + 8e6
    assert peak < 100e6 < n * d * 4 / 5


@pytest.mark.parametrize("name", ["reuters.moneyfx", "rcv1.subset"])
def test_real_documents(name, data_folder):
    data = load_dataset(name)
    order = np.random.default_rng(0).permutation(len(data.y))
    X, y = data.X[order].astype(np.float32), data.y[order]
    learner = Learner(Identity(), step=Constant(0.125), penalty=L2(1e-4), seed=0)
    ours, truth = (
        learn(Stream(replace(learner, engine=engine)), X[:600], y[:600]) for engine in ("fused", "reference")
    )
    compare(ours, truth, 1e-4, "last")
    assert dense.close(ours.score(X), truth.score(X), 1e-4)
    cut = int(0.8 * len(y))
    model = FPOGD(kernel="linear", loss="logistic", eta=1.0, random_state=0).fit(X[:cut], y[:cut])
    assert roc_auc_score(y[cut:], model.decision_function(X[cut:])) > 0.93
