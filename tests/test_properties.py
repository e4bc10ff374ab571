"""The six checkable properties of FPOGD (section 2.6 of the implementer's reference), on both engines."""

from dataclasses import replace

import numpy as np
import pytest

from pairloom import Learner, Stream
from pairloom.engines.reference import find_partners, gradient
from pairloom.features import Gaussian, Identity, RandomFourier
from pairloom.losses import LOSSES
from pairloom.memory import Example, Latest, Strata
from pairloom.pairs import NO_QUERY
from pairloom.steps import L2, Constant, Sqrt
from tests.conftest import make_stream

ENGINES = ["reference", "fused"]
T, D = 160, 24


@pytest.fixture(params=ENGINES)
def engine(request):
    return request.param


def learner(engine, **parts):
    defaults = {"features": RandomFourier(D, Gaussian(0.1)), "step": Sqrt(0.3), "penalty": L2(1e-2)}
    return Learner(**{**defaults, **parts}, dtype="float64", engine=engine, seed=5)


def iterates(stream, X, y):
    """w after each row."""
    path = []
    for x, label in zip(X, y, strict=True):
        stream.partial_fit(x[None], [label])
        path.append(stream.learned.w[0].copy())
    return np.array(path)


def mapped(stream, X):
    return stream.model.features.apply(stream.learned.phi, X)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("normalization", ["class", "history"])
def test_1_no_merging_is_descent_on_the_full_history(engine, loss, normalization):
    """eps < 0 and no cap: v = (1/N) sum over all earlier examples of the other class, written out as a double loop."""
    X, y = make_stream("random", T, 4)
    memory = Strata(eps=-1.0, max_strata=T, normalization=normalization)
    stream = Stream(learner(engine, loss=LOSSES[loss], memory=memory))
    path = iterates(stream, X, y)
    Z = mapped(stream, X)
    w = np.zeros(D)
    for t in range(T):
        others = [i for i in range(t) if y[i] != y[t]]
        if others:
            total = len(others) if normalization == "class" else t
            v = np.zeros(D)
            for i in others:
                d = Z[t] - Z[i]
                v += y[t] * float(LOSSES[loss].derivative(y[t] * (w @ d))) * d / total
            eta = 0.3 / np.sqrt(t + 1)
            w = (1 - eta * 1e-2) * w - eta * v
        np.testing.assert_allclose(path[t], w, rtol=0, atol=1e-10)


@pytest.mark.parametrize("loss", LOSSES)
def test_2_one_joint_stratum_is_yang_and_one_per_class_is_last_of_the_opposite_class(engine, loss):
    X, y = make_stream("random", T, 4)
    parts = {"loss": LOSSES[loss], "penalty": L2(0.0)}
    joint = Strata(eps=np.inf, by="joint", normalization="history")
    yang = iterates(Stream(learner(engine, memory=Latest("previous"), **parts)), X, y)
    np.testing.assert_allclose(iterates(Stream(learner(engine, memory=joint, **parts)), X, y), yang, rtol=0, atol=1e-12)
    opposite = iterates(Stream(learner(engine, memory=Latest("opposite"), **parts)), X, y)
    per_class = iterates(Stream(learner(engine, memory=Strata(eps=np.inf), **parts)), X, y)
    np.testing.assert_allclose(per_class, opposite, rtol=0, atol=1e-12)
    assert np.abs(yang[-1] - opposite[-1]).max() > 1e-3

    # Yang's step written out: learn from the previous example if its label differs.
    stream = Stream(learner(engine, memory=Latest("previous"), **parts)).partial_fit(X, y)
    Z, w = mapped(stream, X), np.zeros(D)
    for t in range(1, T):
        if y[t] != y[t - 1]:
            d = Z[t] - Z[t - 1]
            w = w - 0.3 / np.sqrt(t + 1) * y[t] * float(LOSSES[loss].derivative(y[t] * (w @ d))) * d
        np.testing.assert_allclose(yang[t], w, rtol=0, atol=1e-12)


@pytest.mark.parametrize("by", ["class", "joint"])
@pytest.mark.parametrize("normalization", ["class", "history"])
def test_3_counts_add_up_and_weights_sum_to_their_total(engine, by, normalization):
    if (by, normalization) == ("joint", "class"):
        with pytest.raises(ValueError, match="normalization='history'"):
            Strata(by=by, normalization=normalization)
        return
    X, y = make_stream("one_class_first", T, 4)
    stream = Stream(learner(engine, memory=Strata(eps=0.5, max_strata=5, by=by, normalization=normalization)))
    for t in range(T):
        if t:
            slots = stream.learned.memory.slots
            n = {label: int((y[:t] == label).sum()) for label in (-1.0, 1.0)}
            if by == "joint":
                assert slots.mass.sum() == t
            else:
                assert slots.mass[:5].sum() == n[-1.0]
                assert slots.mass[5:].sum() == n[1.0]
                example = Example(X[t], X[t], float(y[t] > 0), 1.0, NO_QUERY, np.empty(0))
                partners, p = find_partners(stream.model.memory, stream.model.pairs, slots, example, 1.0)
                assert slots.mass[partners].sum() == n[-y[t]]
                if n[-y[t]]:
                    assert p.sum() == pytest.approx(1 if normalization == "class" else n[-y[t]] / t, rel=1e-15)
                else:
                    assert p is None
        stream.partial_fit(X[t][None], y[t : t + 1])


def reservoir_runs(engine, runs):
    """Slots of the negative class after a fixed stream, over seeds; strata do not depend on the draws."""
    X, y = make_stream("random", 40, 3, seed=2)
    memory = Strata(eps=1.5, max_strata=3, representative="reservoir")
    start = learner(engine, features=Identity(), memory=memory, step=Constant(1e-3))
    points = []
    for seed in range(runs):
        stream = Stream(replace(start, seed=seed)).partial_fit(X, y)
        points.append(stream.learned.memory.slots.points[:3].copy())
    return X, y, stream, np.array(points)


def members_of(X, y, stream):
    """The negatives assigned to each stratum, by running the clustering alone."""
    centers, members = [], []
    for x in X[y < 0]:
        d = [np.square(x - c).sum() for c in centers]
        j = int(np.argmin(d)) if d else -1
        if not d or (d[j] > 1.5 and len(centers) < 3):
            centers.append(x.copy())
            members.append([x])
        else:
            centers[j] += 0.05 * (x - centers[j])
            members[j].append(x)
    assert [len(m) for m in members] == stream.learned.memory.slots.mass[:3].tolist()
    return members


@pytest.mark.parametrize(("name", "runs"), [("reference", 600), ("fused", 2000)])
def test_4_reservoir_is_uniform_and_its_gradient_unbiased_with_the_exact_variance(name, runs):
    X, y, stream, points = reservoir_runs(name, runs)
    members = members_of(X, y, stream)
    w, z = np.array([0.3, -0.2, 0.5]), X[y > 0][0]
    N = sum(len(m) for m in members)

    for j, stratum in enumerate(members):
        hits = np.array([(points[:, j] == x).all(axis=1).sum() for x in stratum])
        assert hits.sum() == runs
        chi2 = np.square(hits - runs / len(stratum)).sum() / (runs / len(stratum))
        assert chi2 < len(stratum) + 4 * np.sqrt(2 * len(stratum))

    def pair_gradient(b):
        d = z - b
        return -2 * (1 - w @ d) * d

    exact = np.mean([pair_gradient(x) for m in members for x in m], axis=0)
    slots = stream.learned.memory.slots
    example = Example(z, z, 1.0, 1.0, NO_QUERY, np.empty(0))
    partners, weights = find_partners(stream.model.memory, stream.model.pairs, slots, example, 1.0)
    estimates = []
    for drawn in points:
        slots.points[:3] = drawn
        estimates.append(gradient(stream.model, slots, w, 0, example, partners, weights)[1])
    estimates = np.array(estimates)
    error = estimates.std(axis=0) / np.sqrt(runs)
    assert (np.abs(estimates.mean(axis=0) - exact) < 4 * error).all()

    # sum_j p_j^2 Var_j, and not (1/k) sum_j p_j Var_j.
    within = [np.var([pair_gradient(x) for x in m], axis=0).sum() for m in members]
    p = np.array([len(m) / N for m in members])
    variance = estimates.var(axis=0).sum()
    assert variance == pytest.approx(p**2 @ within, rel=0.08)
    assert abs(variance - p @ within / 3) > 0.12 * variance


def test_5_features_scaled_by_root_two(engine):
    """Features scaled by sqrt(2) with (eta, alpha, eps) score as unit features with (2 eta, alpha / 2, eps / 2)."""
    X, y = make_stream("random", T, 4)
    unit = RandomFourier(D, Gaussian(0.1))
    plain = Stream(learner(engine, features=unit)).partial_fit(X[:1], y[:1])
    Z = mapped(plain, X)
    linear = {"features": Identity()}
    big = Stream(learner(engine, **linear, memory=Strata(eps=0.8), step=Constant(0.1), penalty=L2(0.2)))
    small = Stream(learner(engine, **linear, memory=Strata(eps=0.4), step=Constant(0.2), penalty=L2(0.1)))
    big.partial_fit(np.sqrt(2) * Z, y)
    small.partial_fit(Z, y)
    np.testing.assert_allclose(big.score(np.sqrt(2) * Z), small.score(Z), rtol=0, atol=1e-11)
    assert small.learned.memory.used.min() > 1


def test_6_mean_centroids_are_the_means_of_their_members(engine):
    X, y = make_stream("random", 400, 3)
    memory = Strata(eps=2.0, max_strata=6, centroid_step="mean", representative="centroid", cluster_in="input")
    start = learner(engine, features=Identity(), memory=memory, step=Constant(0.01))
    state = Stream(start).partial_fit(X, y).learned.memory
    # Follow the assignments from outside: the count that grew names the stratum.
    trace = Stream(start)
    members = [[] for _ in state.slots.mass]
    before = np.zeros(len(members))
    for x, label in zip(X, y, strict=True):
        after = trace.partial_fit(x[None], [label]).learned.memory.slots.mass.copy()
        members[int(np.flatnonzero(after > before)[0])].append(x)
        before = after
    for j, stratum in enumerate(members):
        if stratum:
            np.testing.assert_allclose(state.centers[j], np.mean(stratum, axis=0), rtol=0, atol=1e-12)
            np.testing.assert_allclose(state.slots.points[j], np.mean(stratum, axis=0), rtol=0, atol=1e-12)
            spread = np.square(np.array(stratum) - np.mean(stratum, axis=0)).sum()
            assert state.scatter[j] == pytest.approx(spread, rel=1e-10, abs=1e-12)
    assert sum(len(m) > 1 for m in members) > 4


@pytest.mark.parametrize("cluster_in", ["features", "input"])
def test_the_centroid_representative_is_the_mean_of_the_features(engine, cluster_in):
    """Also where strata live in the input space: the mean of phi(x), never phi of the mean."""
    X, y = make_stream("random", 200, 3)
    memory = Strata(eps=np.inf, representative="centroid", centroid_step="mean", cluster_in=cluster_in)
    stream = Stream(learner(engine, memory=memory)).partial_fit(X, y)
    Z = mapped(stream, X)
    for slot, label in ((0, -1), (16, 1)):
        np.testing.assert_allclose(stream.learned.memory.slots.points[slot], Z[y == label].mean(axis=0), atol=1e-12)


def test_every_direction_is_a_difference_of_examples(engine):
    """Coefficients of an update sum to zero: a constant feature never gets a weight."""
    X, y = make_stream("random", T, 4)
    X = np.column_stack([X, np.full(T, 3.0)])
    for loss in LOSSES.values():
        stream = Stream(learner(engine, features=Identity(), loss=loss, step=Constant(0.01))).partial_fit(X, y)
        assert abs(stream.learned.w[0, -1]) < 1e-13
        assert np.abs(stream.learned.w[0, :-1]).max() > 0.01
