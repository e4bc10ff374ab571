"""The error of a memory's gradient, against loops over all pairs."""

from dataclasses import replace

import numpy as np
import pytest

from pairloom import AUCClassifier, Learner, Stream
from pairloom.data import load_dataset
from pairloom.evaluation import GradientVariance, gradient_variance
from pairloom.evaluation.replay import ClassSums, KeptRows, history_of
from pairloom.features import Forest, Gaussian, Growing, Identity, RandomFourier
from pairloom.features.base import dense_features
from pairloom.losses import Hinge, Logistic, Square
from pairloom.memory import Latest, Reservoir, RSx, Strata, WholeHistory, Window
from pairloom.pairs import Difference, OppositeClass, Order
from pairloom.steps import Constant
from pairloom.systems import FPOGD, OAM, OGD, OLP, SPAM, FourierSGD
from tests.conftest import make_stream

X, LABELS = make_stream("random", 50, 3)
SHORT = Constant(0.003)  # also for sums over pairs, which are a hundred times as large
RFF = RandomFourier(16, Gaussian(0.3))

MEMORIES = {
    "strata": Strata(eps=0.3, max_strata=4),
    "reservoirs in strata": Strata(eps=0.3, max_strata=4, representative="reservoir"),
    "centroids": Strata(eps=0.3, max_strata=4, representative="centroid"),
    "joint strata": Strata(eps=0.3, max_strata=4, by="joint", normalization="history"),
    "neyman": Strata(eps=0.3, max_strata=3, representative="reservoir", allocation="neyman", slots=5),
    "reservoir": Reservoir(4),
    "sums": Reservoir(4, normalization="sum"),
    "RS-x": RSx(4),
    "previous": Latest("previous"),
    "opposite": Latest("opposite", 4),
    "window": Window(4),
}


def pair(learner, w, z, y, other, label, k):
    """Loss and gradient of one pair; None if it does not count."""
    target, labels = learner.pairs.targets[k], np.array([label])
    a = float(learner.pairs.sign(y, labels, target)[0])
    if a == 0:
        return None
    margin = np.array([a * (w @ z - w @ other)]) + learner.pairs.offset(y, labels, target)
    return float(learner.pair_loss.value(margin)[0]), a * float(learner.pair_loss.derivative(margin)[0]) * (z - other)


def by_hand(learner, X, y, normalization="class", path=None):
    """e_t, squared norms and partners of all rows, by loops over pairs, slots taken from a stream's own state."""
    stream, codes, found = Stream(learner), learner.pairs.encode(np.asarray(y)), []
    for t in range(len(X)):
        if t:
            state = stream.learned
            Z = dense_features(learner.features, state.phi, np.asarray(X[: t + 1], float))
            slots, weighting = state.memory.slots, learner.memory.weighting
            error, norm, n_slots, pairs_of_row = 0.0, 0.0, 0, 0
            for k in range(len(state.w)):
                w = np.asarray(state.w if path is None else path[t], float).reshape(state.w.shape)[k]
                full = [pair(learner, w, Z[t], codes[t], Z[i], codes[i], k) for i in range(t)]
                full = [gradient for _, gradient in filter(None, full)]
                if not full:
                    continue
                own = [
                    (mass, pair(learner, w, Z[t], codes[t], point, label, k))
                    for mass, point, label in zip(slots.mass, slots.points, slots.labels, strict=True)
                    if mass > 0
                ]
                paired = [(mass, made[1]) for mass, made in own if made is not None]
                whole = sum(mass for mass, _ in (own if weighting == "history" else paired))
                # A mean over all rows, or over those that make a pair, times their number: an estimate of the sum.
                times = t if weighting == "history" else len(full)
                u = times * sum(mass / whole * v for mass, v in paired) if paired else 0.0
                n = t if normalization == "history" else len(full)
                error += np.square((u - sum(full)) / n).sum()
                norm += np.square(sum(full) / n).sum()
                n_slots += len(paired)
                pairs_of_row += len(full)
            if pairs_of_row:
                found.append((t + 1, error, norm, n_slots))
        stream.partial_fit(X[t : t + 1], y[t : t + 1])
    return tuple(map(np.array, zip(*found, strict=True)))


def check(found, expected):
    for name, values in zip(("rows", "errors", "norms", "n_slots"), expected, strict=True):
        np.testing.assert_allclose(getattr(found, name), values, rtol=1e-8, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("normalization", ["class", "history"])
@pytest.mark.parametrize("memory", MEMORIES)
def test_every_memory_against_all_pairs(memory, normalization):
    learner = Learner(features=RFF, memory=MEMORIES[memory], step=SHORT, dtype="float64", seed=0, engine="reference")
    found = gradient_variance(learner, X, LABELS, normalization=normalization)
    check(found, by_hand(learner, X, LABELS, normalization))
    assert found.normalization == normalization


@pytest.mark.parametrize("loss", [Hinge(), Logistic()])
def test_other_losses_by_the_kept_history(loss):
    learner = Learner(features=RFF, loss=loss, memory=Reservoir(4), dtype="float64", seed=0, engine="reference")
    check(gradient_variance(learner, X, LABELS), by_hand(learner, X, LABELS))


@pytest.mark.parametrize("loss", [Square(), Hinge()])
def test_several_classes_add_up(loss):
    y = (np.abs(X[:, 0]) * 2).astype(int) % 3
    learner = Learner(
        features=RFF, pairs=OppositeClass(3), loss=loss, memory=Strata(eps=0.3, max_strata=3), dtype="float64", seed=0,
        engine="reference",
    )  # fmt: skip
    check(gradient_variance(learner, X, y), by_hand(learner, X, y))


@pytest.mark.parametrize("pairs", [Order(), Difference()])
def test_pairs_of_numbers(pairs):
    learner = Learner(
        features=RFF, pairs=pairs, memory=Latest("previous", 4), dtype="float64", seed=0, engine="reference"
    )
    y = X[:, 0].round(1)
    check(gradient_variance(learner, X, y), by_hand(learner, X, y))


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_moments_give_the_sums_of_the_kept_rows(offset):
    rng = np.random.default_rng(0)
    learner = Learner(features=Identity(), pairs=OppositeClass(3), seed=0)
    kept, moments = history_of(learner, 90, 200, 90), history_of(learner, 90, 5, 90)
    assert isinstance(kept, KeptRows)
    assert isinstance(moments, ClassSums)
    kept = KeptRows(learner, 90, 5)
    for size in (1, 40, 49):
        Z, y = rng.normal(size=(size, 5)) + offset, rng.integers(0, 3, size).astype(float)
        at = np.flatnonzero(rng.random(size) < 0.7)
        W = rng.normal(size=(len(at), 3, 5))
        for one, other in zip(kept.extend(Z, y, at, W), moments.extend(Z, y, at, W), strict=True):
            for a, b in zip(one, other, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)


def test_many_blocks_and_long_streams_by_moments():
    X, y = make_stream("random", 530, 3)
    learner = Learner(features=Identity(), memory=Strata(eps=1.0, max_strata=4), step=Constant(0.01), seed=0)
    found = gradient_variance(learner, X, y, max_rows=100)
    check(found, [getattr(gradient_variance(learner, X, y, max_rows=530), name) for name in FIELDS])
    few = gradient_variance(learner, X, y, every=7, start=300, max_rows=100)
    assert few.rows.tolist() == list(range(300, 531, 7))
    check(few, [getattr(found, name)[np.isin(found.rows, few.rows)] for name in FIELDS])
    with pytest.raises(ValueError, match="give at most 500 rows, raise max_rows"):
        gradient_variance(Learner(features=Identity(), loss=Hinge(), seed=0), X, y, max_rows=500)


FIELDS = ("rows", "errors", "norms", "n_slots")


@pytest.mark.parametrize("joint", ["class", "joint"])
@pytest.mark.parametrize("loss", [Square(), Hinge()])
def test_the_whole_history_has_no_error(loss, joint):
    learner = Learner(features=RFF, loss=loss, memory=WholeHistory(max_rows=50, by=joint), seed=0)
    for normalization in ("class", "history"):
        found = gradient_variance(learner, X, LABELS, normalization=normalization)
        assert found.errors.max() < 1e-20
        assert found.norms.mean() > 0
        assert found.share() < 1e-15


def test_the_pass_ends_where_a_stream_does_with_its_rules_on_data():
    X, y = make_stream("random", 300, 3)
    model = FPOGD(gamma="median", scale="standard", n_components=16, max_strata=4, random_state=3, dtype="float64")
    ends = Stream(replace(model.to_model(), engine="reference")).partial_fit(X[:299], y[:299]).coef
    own = gradient_variance(model, X, y, start=300)
    there = gradient_variance(model, X, y, start=300, path=ends)
    check(own, [getattr(there, name) for name in FIELDS])


def test_a_path_is_another_model_or_weights():
    learner = Learner(features=RFF, memory=Strata(eps=0.3, max_strata=4), dtype="float64", seed=0, engine="reference")
    guide = Learner(features=RFF, memory=WholeHistory(max_rows=200), dtype="float64", seed=0, engine="reference")
    stream, weights = Stream(guide), [np.zeros(16)]
    for t in range(len(X) - 1):
        weights.append(stream.partial_fit(X[t : t + 1], LABELS[t : t + 1]).coef[0].copy())
    expected = by_hand(learner, X, LABELS, path=weights)
    check(gradient_variance(learner, X, LABELS, path=guide), expected)
    check(gradient_variance(learner, X, LABELS, path=np.array(weights)), expected)
    fixed = by_hand(learner, X, LABELS, path=[weights[-1]] * len(X))
    check(gradient_variance(learner, X, LABELS, path=weights[-1]), fixed)
    own = gradient_variance(learner, X, LABELS)
    check(gradient_variance(learner, X, LABELS, path=learner), [getattr(own, name) for name in FIELDS])
    assert not np.allclose(own.errors, expected[1])


SYSTEMS = {
    "FPOGD": FPOGD(n_components=16, max_strata=4, random_state=0),
    "OGD": OGD(random_state=0),
    "OLP": OLP(size=4, random_state=0),
    "OAM": OAM(size=4, random_state=0),
    "OAMgra": OAM(size=4, update="gradient", random_state=0),
    "FourierSGD": FourierSGD(pairs="reservoir", size=4, n_components=16, random_state=0),
    "AdaGrad": FPOGD(n_components=16, max_strata=4, schedule="adagrad", random_state=0),
    "Forest": FPOGD(features=Forest(4, max_leaves=8), max_strata=4, random_state=0),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system_with_a_memory(name):
    names = np.where(LABELS > 0, "rare", "common")
    found = gradient_variance(SYSTEMS[name], X, names)
    # Every row after the first of the other class has a partner in the past.
    assert found.rows.tolist() == list(range(found.rows[0], 51))
    assert found.rows[0] > np.argmax(LABELS[0] != LABELS)
    assert 0 < found.mean() < np.inf
    assert (found.norms > 0).all()
    assert found.n_slots.max() <= 4
    assert not hasattr(SYSTEMS[name], "stream_"), "a copy has learned"


def test_averages():
    found = GradientVariance(np.arange(1, 5), np.array([4.0, 1.0, 0.0, 9.0]), np.full(4, 7.0), np.ones(4), "class")
    assert found.mean() == 3.5
    assert found.share() == 0.5
    f = 0.9
    expected = [
        (1 - f) * sum(f ** (n - i) * found.errors[i] for i in range(n + 1)) / (1 - f ** (n + 1)) for n in range(4)
    ]
    np.testing.assert_allclose(found.running(f), expected)
    np.testing.assert_allclose(found.running(1), np.cumsum(found.errors) / np.arange(1, 5))
    with pytest.raises(ValueError, match="factor must be a number"):
        found.running(1.5)


@pytest.mark.parametrize(
    ("model", "changes", "message"),
    [
        (SPAM(), {}, "a learner that pairs each row with a memory"),
        (AUCClassifier(), {}, "a learner that pairs each row with a memory"),
        (FourierSGD(), {}, "a learner that pairs each row with a memory"),
        (Learner(features=Growing(16, block=16), memory=Latest()), {}, "needs features that stay as they are"),
        (
            FPOGD(n_components=16, random_state=0),
            {"path": FPOGD(n_components=16, random_state=1)},
            "has other features",
        ),
        (FPOGD(n_components=16, random_state=0), {"path": np.zeros(17)}, "shape \\(17,\\)"),
        (FPOGD(n_components=16, random_state=0), {"path": np.full(16, np.nan)}, "finite weights"),
        (FPOGD(), {"normalization": "sum"}, "normalization must be one of 'class', 'history'"),
        (FPOGD(), {"every": 0}, "every must be an integer"),
        (FPOGD(), {"start": 1000}, "no examined row has a partner"),
    ],
)
def test_what_cannot_be_measured_is_said(model, changes, message):
    with pytest.raises(ValueError, match=message):
        gradient_variance(model, X, LABELS, **changes)


def test_one_class_makes_no_pairs():
    with pytest.raises(ValueError, match="all rows have the label 1"):
        gradient_variance(FPOGD(), X, np.ones(len(X), int))


def test_partners_and_gradients_of_a_learner():
    learner = Learner(
        features=Identity(), memory=Reservoir(4, normalization="sum"), step=Constant(1e-4), seed=0, engine="reference"
    )
    stream = Stream(learner).partial_fit(X, LABELS)
    state, w = stream.learned, np.array([1.0, 2.0, 3.0])
    points, labels, weights = learner.partners(state, 1.0)
    assert weights.sum() == pytest.approx((LABELS < 0).sum())
    assert set(labels) == {0.0}
    g, v = learner.pair_gradient(state, X[0], 1.0, w=w)
    margins = w @ X[0] - points @ w
    assert g == pytest.approx(weights @ np.square(1 - margins))
    np.testing.assert_allclose(v, (weights * -2 * (1 - margins)) @ (X[0] - points))
    at_own = learner.pair_gradient(state, X[0], 1.0)[1]
    np.testing.assert_allclose(at_own, learner.pair_gradient(state, X[0], 1.0, w=state.w[0])[1])
    empty = learner.init(3, None)
    assert learner.pair_gradient(empty, X[0], 1.0)[0] == 0
    assert len(learner.partners(empty, 1.0).weights) == 0


def test_points_that_are_lists_are_refused_and_the_reference_engine_has_them():
    learner = Learner(features=Forest(4, max_leaves=8), memory=Latest(), seed=0)
    with pytest.raises(ValueError, match="use engine='reference'"):
        learner.partners(Stream(learner).partial_fit(X, LABELS).learned, 1.0)


def test_four_slots_on_diabetes(data_folder):
    """In the paper's setting. With a narrower kernel, or standard columns, strata are no better than a reservoir."""
    data = load_dataset("diabetes", data_home=data_folder)
    order = np.random.default_rng(0).permutation(768)
    learner = Learner(features=RandomFourier(128, Gaussian("paper"), scale="minmax"), step=Constant(0.02), seed=0)
    memories = {
        "centroids": Strata(max_strata=4, representative="centroid"),
        "newest of strata": Strata(max_strata=4),
        "reservoir": Reservoir(4),
        "previous": Latest("previous"),
    }
    found = {
        name: gradient_variance(replace(learner, memory=memory), data.X[order], data.y[order], every=3).mean()
        for name, memory in memories.items()
    }
    assert sorted(found, key=found.get) == list(memories), found
    assert 5 * found["centroids"] < found["newest of strata"]
