"""Exact kernels and sums of them: compiled values, scores, the width, and what every expansion shares."""

import copy
import pickle
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from pairloom import Stream
from pairloom.base.tree import nbytes, node
from pairloom.features import KERNELS, Gaussian, Identity, Linear, RandomFourier
from pairloom.features.compiled_kernels import exact_kernel, kernel_row, kernel_with_itself
from pairloom.models.expansion import Expansion, ExpansionState, KernelBlock, KernelRow
from pairloom.models.mapped import WARM_ROWS
from pairloom.pairs import OppositeClass
from tests.conftest import STREAMS, make_stream

EXACT = [*KERNELS, "linear"]


@node
class Sums(ExpansionState):
    """The first rows, shared by all models, and the weighted sums of their classes."""

    supports: np.ndarray
    coef: np.ndarray
    used: np.ndarray


@dataclass(frozen=True, kw_only=True)
class FirstRows(Expansion):
    """The smallest expansion: y times weight at each of the first 40 rows."""

    draws = 0

    def init(self, n_features, first):
        return self.begin_empty(n_features, first)

    def start(self, gamma, dim):
        return Sums(gamma, np.zeros((40, dim), self.dtype), np.zeros((len(self.pairs.targets), 40)), np.zeros(1, int))

    def terms(self, kept):
        return [(kept.supports[: kept.used[0]], kept.coef[:, : kept.used[0]])]

    def step_row(self, state, row: KernelRow):
        memory, at = state.memory, state.memory.used[0]
        if at < 40:
            memory.supports[at], memory.coef[:, at] = row.x, row.weight * row.y
            memory.used[0] += 1

    def run_block(self, state, block: KernelBlock):
        for i in range(len(block.X)):
            supports, coef = self.terms(state.memory)[0]
            for k in range(len(coef)):
                values = np.empty(len(supports), block.X.dtype)
                kernel_row(self.kernel.code, float(state.memory.gamma), block.X[i], supports, values)
                block.scores[i, k] = coef[k] @ values
            self.step_row(state, KernelRow(block.X[i], block.y[i], block.weight[i], block.eta[i], block.draws[i]))


def make(kernel="gaussian", gamma=0.1, **changes):
    return Stream(FirstRows(kernel=exact_kernel(kernel, gamma), **{"seed": 0, **changes}))


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("gamma", [0.01, 0.3, 4.0])
def test_compiled_values_are_those_of_the_matrix(name, gamma):
    X, _ = make_stream("random", 120, 7)
    kernel, expected = exact_kernel(name, gamma), exact_kernel(name, gamma)(np.asarray(gamma), X[:30], X)
    for dtype, tolerance in ((np.float64, 1e-12), (np.float32, 1e-4)):
        rows, values = X.astype(dtype), np.empty((30, 120), dtype)
        for x, out in zip(rows[:30], values, strict=True):
            kernel_row(kernel.code, gamma, x, rows, out)
        np.testing.assert_allclose(values, expected, rtol=tolerance, atol=tolerance)
        itself = [kernel_with_itself(kernel.code, x) for x in rows[:30]]
        np.testing.assert_allclose(itself, np.diag(expected), rtol=tolerance)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_supports_have_equal_values_wherever_they_are(name, dtype):
    """Ties between duplicates must not be broken by rounding, neither compiled nor in the specification."""
    x, row = np.random.default_rng(0).normal(size=(2, 23)).astype(dtype)
    for n in (1, 2, 3, 5, 8, 13, 31):
        values = np.empty(n, dtype)
        kernel_row(exact_kernel(name, 0.1).code, 0.1, x, np.tile(row, (n, 1)), values)
        assert len(set(values.tolist())) == 1
        assert len(set(exact_kernel(name, 0.1)(np.asarray(0.1), x[None], np.tile(row, (n, 1)))[0].tolist())) == 1


def test_values_stay_finite_far_away():
    far = np.full((1, 50), 1e15, np.float32)
    for name in KERNELS:
        values = np.empty(1, np.float32)
        kernel_row(KERNELS[name].code, 1.0, -far[0], far, values)
        assert values[0] == 0


def test_the_linear_kernel():
    X, _ = make_stream("random", 20, 3)
    expected = [[sum(a * b) for b in X] for a in X[:5]]
    for rows in (X, csr_array(X)):
        np.testing.assert_allclose(Linear()(np.asarray(1.0), rows[:5], rows), expected, rtol=1e-12, atol=1e-14)
    assert exact_kernel("linear", 0.3) == Linear()
    assert exact_kernel("gaussian", 0.3) == Gaussian(0.3)
    with pytest.raises(ValueError, match=r"kernel must be one of 'gaussian', .*'linear'; got 'poly'"):
        exact_kernel("poly", 0.1)


def test_random_features_refuse_the_linear_kernel():
    with pytest.raises(ValueError, match="kernel must be a Kernel"):
        RandomFourier(8, Linear())


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scores_are_the_sum(name, n_classes, dtype):
    """The double loop."""
    X, y = make_stream("random", 60, 4)
    y = y if n_classes == 2 else np.arange(60) % 3
    weight = np.random.default_rng(1).gamma(1.0, size=60)
    stream = make(name, 0.2, dtype=dtype, pairs=OppositeClass(n_classes)).partial_fit(X, y, weight)
    gamma, kernel = np.asarray(0.2), exact_kernel(name, 0.2)
    expected = np.zeros((60, len(stream.model.pairs.targets)))
    for i in range(60):
        for j in range(40):
            for k, target in enumerate(stream.model.pairs.targets):
                sign = 1 if (y[j] > 0 if n_classes == 2 else y[j] == target) else -1
                expected[i, k] += weight[j] * sign * kernel(gamma, X[i : i + 1], X[j : j + 1])[0, 0]
    tolerance = 1e-12 if dtype == "float64" else 1e-4
    scores = stream.score(X).reshape(60, -1)
    np.testing.assert_allclose(scores, expected, rtol=tolerance, atol=100 * tolerance)
    # Each row's score before it was learned is in the ring: row 40 was scored by all 40 terms.
    np.testing.assert_allclose(
        stream.state.observed["recent"].scores[40], expected[40], rtol=tolerance, atol=100 * tolerance
    )


@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("gamma", ["paper", "median", 0.3])
def test_the_specification_and_the_block_agree(kind, gamma):
    X, y = make_stream(kind, 100, 5)
    fast = make(gamma=gamma, dtype="float64", features=Identity(scale="standard")).partial_fit(X, y)
    truth = Stream(replace(fast.model, engine="reference")).partial_fit(X, y)
    np.testing.assert_allclose(fast.score(X), truth.score(X), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        fast.state.observed["recent"].scores, truth.state.observed["recent"].scores, rtol=1e-12, atol=1e-12
    )


def test_a_rows_score_does_not_depend_on_its_neighbours():
    X, y = make_stream("random", 5000, 40)
    stream = make("matern32").partial_fit(X[:50], y[:50])
    whole = stream.score(X)
    np.testing.assert_array_equal(whole, np.concatenate([stream.score(X[a : a + 7]) for a in range(0, 5000, 7)]))
    np.testing.assert_array_equal(whole[:50], [stream.score(x[None])[0] for x in X[:50]])


def test_the_width_is_fixed_on_the_first_rows():
    X, y = make_stream("random", 1500, 5)
    for rule, expected in (("paper", 0.1), (0.7, 0.7)):
        stream = make(gamma=rule)
        assert not stream.model.needs_data
        assert stream.partial_fit(X, y).learned.memory.gamma == expected
    assert make(gamma="median").model.needs_data
    stream = make(gamma="median", features=Identity(scale="standard"))
    assert stream.model.needs_data
    for n in (16, WARM_ROWS, 1500):
        stream = Stream(stream.model).partial_fit(X[:n], y[:n])
        kept = stream.learned.phi.scaler.apply(X[: min(n, WARM_ROWS)].astype(np.float32))
        np.testing.assert_allclose(stream.learned.memory.gamma, Gaussian("median").width(5, kept), rtol=1e-6)
    assert stream.state.kept is None
    assert not make("linear").model.needs_data


def test_one_width_for_all_columns():
    with pytest.raises(ValueError, match="one gamma for all columns"):
        make(gamma=[0.1, 0.2])


@pytest.mark.parametrize("scale", [None, "standard", "maxabs", "minmax"])
def test_csr_rows_are_learned_as_dense_ones(scale):
    X, y = make_stream("random", 300, 6)
    X[np.random.default_rng(0).random(X.shape) < 0.6] = 0
    parts = {"dtype": "float64", "gamma": "median", "features": Identity(scale=scale)}
    dense, sparse = make(**parts).partial_fit(X, y), make(**parts).partial_fit(csr_array(X), y)
    np.testing.assert_allclose(sparse.score(csr_array(X)), dense.score(X), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(sparse.learned.memory.supports, dense.learned.memory.supports, rtol=1e-12, atol=1e-14)


def test_state_is_arrays():
    X, y = make_stream("random", 200, 5)
    stream = make().partial_fit(X, y)
    assert stream.n_seen == 200
    assert stream.learned.w.shape == (1, 0)
    assert nbytes(stream.learned.memory) == 8 + 40 * 5 * 4 + 40 * 8 + 8
    twin, stored = copy.deepcopy(stream), pickle.loads(pickle.dumps(stream))
    for other in (twin, stored):
        np.testing.assert_array_equal(other.score(X), stream.score(X))
    assert make().score(X).tolist() == [0.0] * 200
