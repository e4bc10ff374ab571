"""OLP (Kar et al. 2013): descent on a sample with replacement. The laws of the sample itself: ``test_memories``."""

from dataclasses import replace

import numpy as np
import pytest

from pairloom import Stream
from pairloom.losses import LOSSES
from pairloom.memory import RSx, WholeHistory
from pairloom.systems import OLP
from tests.conftest import make_stream
from tests.test_memories import weights_of
from tests.test_memory_laws import contents, fits


def iterates(learner, X, y, weight):
    """w after every row."""
    stream, weight = Stream(learner), np.ones(len(y)) if weight is None else weight
    return np.array([stream.partial_fit(X[[i]], y[[i]], weight[[i]]).learned.w[0].copy() for i in range(len(y))])


@pytest.mark.parametrize("engine", ["fused", "reference"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weights", ["none", "counts"])
def test_while_all_rows_fit_it_is_all_pairs_descent(weights, loss, engine):
    """And leaves it when the full buffer is redrawn."""
    X, y = make_stream("random", 120, 4)
    weight = weights_of(weights, 120)
    seen = np.arange(120) if weight is None else np.cumsum(weight > 0) - 1  # rows met before each
    for buffer in ("joint", "class"):
        ours = OLP(loss=loss, eta=0.02, size=120, buffer=buffer, dtype="float64", engine=engine)._make_model(2, 0)
        truth = iterates(replace(ours, memory=WholeHistory(120, by=buffer)), X, y, weight)
        np.testing.assert_allclose(iterates(ours, X, y, weight), truth, rtol=0, atol=1e-12)
        small = iterates(replace(ours, memory=RSx(40, by=buffer)), X, y, weight)
        np.testing.assert_allclose(small[seen <= 40], truth[seen <= 40], rtol=0, atol=1e-12)
        assert np.abs(small - truth).max() > 1e-4


@pytest.mark.parametrize("engine", ["fused", "reference"])
@pytest.mark.parametrize("buffer", ["joint", "class"])
def test_same_labels_count_in_the_divisor_of_a_joint_buffer_only(buffer, engine):
    """The published step, written out on the buffer that the model holds before each row."""
    X, y = make_stream("random", 200, 4)
    model, w = (
        OLP(size=9, buffer=buffer, eta=0.3, radius=0.4, dtype="float64", random_state=1, engine=engine),
        np.zeros(4),
    )
    model.partial_fit(X[:1], y[:1], classes=[-1, 1])
    for t in range(2, 201):
        slots = model.stream_.learned.memory.slots
        points, copies = slots.points.copy(), slots.mass.astype(int)
        signs = np.where(slots.labels == model._labels.codes[1], 1, -1)
        x, label = X[t - 1], y[t - 1]
        buffered = [(B, sign) for B, sign, n in zip(points, signs, copies, strict=True) for _ in range(n)]
        if buffer == "class":
            buffered = [(B, sign) for B, sign in buffered if sign != label]
        v = np.zeros(4)
        for B, sign in buffered:
            if sign != label and label * (w @ (x - B)) < 1:
                v -= label * (x - B) / len(buffered)
        w = w - 0.3 / np.sqrt(t) * v
        w = w * min(1, 0.4 / max(np.linalg.norm(w), 1e-300))
        model.partial_fit(x[None], [label])
        np.testing.assert_allclose(model._labels.sign * model.stream_.learned.w[0], w, rtol=0, atol=1e-12)
    assert copies.sum() == (9 if buffer == "joint" else 18)


def test_a_buffer_per_class_counts_its_own_rows():
    """Two draws of a class: uniform on its rows alone, and independent."""
    runs, y = 6000, (np.arange(15) % 3 == 0).astype(float)  # 10 rows and 5
    tables = {0: np.zeros((10, 10)), 1: np.zeros((5, 5))}
    for seed in range(runs):
        rows, state = contents(RSx(3, by="class"), y, seed)
        for g, table in tables.items():
            first, second = rows[3 * g + state.pointer[g, :2]]
            own = np.flatnonzero(y == g)
            table[np.searchsorted(own, first), np.searchsorted(own, second)] += 1
            assert {y[first], y[second]} == {g}
    assert all(fits(table.ravel(), runs / table.size) for table in tables.values())


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"buffer": "both"}, "buffer must be one of 'class', 'joint'; got 'both'"),
        ({"size": 0}, "size must be an integer >= 1; got 0"),
        ({"alpha": 1.0, "radius": 1.0}, "set one of them"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        OLP(**parameters).fit(*make_stream("random", 50, 3))
