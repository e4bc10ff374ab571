"""Sums over all pairs in the order of the scores, against the double loop."""

import numpy as np
import pytest

from pairloom.losses import SquaredHinge
from pairloom.systems.pair_sums import EveryPair, PairSums

KINDS = ("plain", "ties", "equal", "apart", "far")


def case(kind, n=60, seed=0, weighted=True):
    rng = np.random.default_rng(seed)
    o = rng.normal(size=n)
    positive = rng.random(n) < 0.3
    if kind == "ties":
        o = np.round(2 * o) / 2  # margins of exactly 1 too
    elif kind == "equal":
        o[:] = 0.25
    elif kind == "apart":
        o += 10.0 * positive
    elif kind == "far":
        o += 1000.0
    return o, positive, rng.gamma(1.0, size=n) if weighted else np.ones(n), rng.normal(size=(3, n))


def by_double_loop(o, positive, weight, U):
    value, gradient, product, total = 0.0, np.zeros(len(o)), np.zeros(U.shape), 0.0
    for i in np.flatnonzero(positive):
        for j in np.flatnonzero(~positive):
            w, margin = weight[i] * weight[j], o[i] - o[j]
            total += w
            value += w * float(SquaredHinge().value(margin)) / 2
            slope = w * float(SquaredHinge().derivative(margin)) / 2
            gradient[i] += slope
            gradient[j] -= slope
            if margin < 1:
                product[:, i] += w * (U[:, i] - U[:, j])
                product[:, j] += w * (U[:, j] - U[:, i])
    return value / total, gradient / total, product / total


@pytest.mark.parametrize("sums", [PairSums, EveryPair])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_value_gradient_and_hessian_are_those_of_the_double_loop(sums, kind, weighted, seed):
    o, positive, weight, U = case(kind, seed=seed, weighted=weighted)
    found = sums(positive, weight)
    value, gradient, product = by_double_loop(o, positive, weight, U)
    np.testing.assert_allclose(found.value(o), value, rtol=1e-12)
    np.testing.assert_allclose(found.gradient(o), gradient, rtol=0, atol=1e-12 * max(1e-300, np.abs(gradient).max()))
    np.testing.assert_allclose(
        found.hessian_product(o, U), product, rtol=0, atol=1e-12 * max(1e-300, np.abs(product).max())
    )


@pytest.mark.parametrize("kind", ["plain", "ties", "far"])
def test_the_scan_agrees_with_every_pair_on_many_rows(kind):
    o, positive, weight, U = case(kind, n=3000)
    fast, slow = PairSums(positive, weight), EveryPair(positive, weight)
    np.testing.assert_allclose(fast.value(o), slow.value(o), rtol=1e-12)
    for one, other in ((fast.gradient(o), slow.gradient(o)), (fast.hessian_product(o, U), slow.hessian_product(o, U))):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12 * np.abs(other).max())


def test_derivatives_are_those_of_the_value():
    o, positive, weight, U = case("plain")
    sums = PairSums(positive, weight)
    for u, bent in zip(U, sums.hessian_product(o, U), strict=True):
        slope = (sums.value(o + 1e-6 * u) - sums.value(o - 1e-6 * u)) / 2e-6
        np.testing.assert_allclose(sums.gradient(o) @ u, slope, rtol=1e-8)
        change = (sums.gradient(o + 1e-7 * u) - sums.gradient(o - 1e-7 * u)) / 2e-7
        np.testing.assert_allclose(bent, change, atol=1e-8)
    np.testing.assert_allclose(sums.gradient(o).sum(), 0.0, atol=1e-14)


def test_a_weight_is_so_many_equal_rows():
    o, positive, *_ = case("ties")
    weight = np.random.default_rng(1).integers(1, 4, size=len(o))
    weighted = PairSums(positive, weight.astype(float))
    repeated = PairSums(np.repeat(positive, weight), np.ones(weight.sum()))
    np.testing.assert_allclose(weighted.value(o), repeated.value(np.repeat(o, weight)), rtol=1e-12)
    gradient = np.add.reduceat(repeated.gradient(np.repeat(o, weight)), np.cumsum([0, *weight[:-1]]))
    np.testing.assert_allclose(weighted.gradient(o), gradient, rtol=0, atol=1e-14)
